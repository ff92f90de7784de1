/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool: a log of one transaction, and records. See drtm.h. */
#include <libpmem.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/drtm/drtm.h"

struct drtm_pool drtm_pool_at(const struct tm_params *params, uint8_t *pm)
{
	const size_t value_bytes = kv_round_up(params->max_vlen, TM_LINE);
	struct drtm_pool pool = {
		.log = (struct log_head *)pm,
		.records = params->keys + 1,
		.value_bytes = value_bytes,
		.record_bytes = sizeof(struct record) + value_bytes,
		.entry_bytes = sizeof(struct entry) + value_bytes,
	};
	pool.records_at = pm + sizeof(struct log_head) + TM_TXN_OPS * pool.entry_bytes;
	return pool;
}

static size_t log_bytes(const struct tm_params *params)
{
	return sizeof(struct log_head) + TM_TXN_OPS * drtm_pool_at(params, NULL).entry_bytes;
}

size_t drtm_pm_bytes(const struct tm_params *params)
{
	const struct drtm_pool pool = drtm_pool_at(params, NULL);
	return log_bytes(params) + pool.records * pool.record_bytes;
}

unsigned drtm_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	const struct tm_region all[] = {
		{"log", 0, log_bytes(params)},
		{"records", log_bytes(params), drtm_pm_bytes(params) - log_bytes(params)}};
	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

struct record *drtm_record(const struct drtm_pool *pool, uint32_t i)
{
	return (struct record *)(pool->records_at + i * pool->record_bytes);
}

struct entry *drtm_entry(const struct drtm_pool *pool, uint64_t i)
{
	return (struct entry *)((uint8_t *)(pool->log + 1) + i * pool->entry_bytes);
}

struct record *drtm_find(const struct drtm_pool *pool, const uint8_t *key)
{
	for (uint32_t i = 0; i < pool->records; i++) {
		struct record *record = drtm_record(pool, i);
		if (record->used && !memcmp(record->key, key, TM_MAX_KEY))
			return record;
		if (record->used)
			continue;
		record->vlen = DRTM_ABSENT;
		memcpy(record->key, key, TM_MAX_KEY);
		__atomic_store_n(&record->used, 1, __ATOMIC_SEQ_CST);
		pmem_persist(record, sizeof(*record));
		return record;
	}
	return NULL;
}

bool drtm_is_place(const struct drtm_pool *pool, uint64_t server, uint64_t off)
{
	return server < DRTM_SERVERS && off % pool->record_bytes == 0 &&
	       off / pool->record_bytes < pool->records;
}

void drtm_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	const struct drtm_pool pool = drtm_pool_at(env->params, env->pm);
	if (pool.log->state > LOG_COMMITTED || (pool.log->state && pool.log->n > TM_TXN_OPS))
		fsck->bad(fsck, "the log makes no sense");
	for (uint32_t i = 0; i < pool.records; i++) {
		const struct record *record = drtm_record(&pool, i);
		if (record->vlen != DRTM_ABSENT && record->vlen > env->params->max_vlen)
			fsck->bad(fsck, "record %u: a length of %llu", i,
				  (unsigned long long)record->vlen);
	}
}
