/* SPDX-License-Identifier: BSD-3-Clause */
/* Records, and how one is applied. See redo.h. */
#include <libpmem.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/redo_log/redo.h"

/* ------------------------------------------------------------------ pool */

/* A small ring is in use again soon. */
static uint64_t slots(const struct tm_params *params)
{
	return params->knob[RING] ? 3 : params->updates;
}

uint64_t redo_slot_bytes(const struct tm_params *params)
{
	return kv_round_up(sizeof(struct redo_record) + params->max_vlen, TM_LINE);
}

static size_t ring_bytes(const struct tm_params *params)
{
	return slots(params) * redo_slot_bytes(params);
}

size_t redo_pm_bytes(const struct tm_params *params)
{
	return TM_LINE + ring_bytes(params) + kv_pool_bytes(params);
}

unsigned redo_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	size_t inner = TM_LINE + ring_bytes(params), table = kv_table_bytes(params);
	const struct tm_region all[] = {{"applied", 0, TM_LINE},
					{"ring", TM_LINE, ring_bytes(params)},
					{"table", inner, table},
					{"values", inner + table, kv_pool_bytes(params) - table}};

	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

struct redo_pool redo_pool_at(const struct tm_params *params, uint8_t *pm)
{
	return (struct redo_pool){(uint64_t *)pm,
				  pm + TM_LINE,
				  slots(params),
				  redo_slot_bytes(params),
				  kv_pool_at(params, pm + TM_LINE + ring_bytes(params)),
				  params->updates};
}

struct tm_env redo_inner(const struct tm_env *env)
{
	struct tm_env inner = *env;

	inner.pm += TM_LINE + ring_bytes(env->params);
	inner.pm_len -= TM_LINE + ring_bytes(env->params);
	return inner;
}

uint64_t redo_off(const struct redo_pool *pool, uint64_t seq)
{
	return seq % pool->slots * pool->slot_bytes;
}

struct redo_record *redo_record(const struct redo_pool *pool, uint64_t seq)
{
	return (struct redo_record *)(pool->ring + redo_off(pool, seq));
}

/* --------------------------------------------------------------- records */

/* CRC of the record and the value after it; the value's own CRC stands in for the record's. */
static uint32_t crc_of(const struct redo_record *record)
{
	struct redo_record copy = *record;

	copy.crc = kv_crc(record + 1, record->vlen);
	return kv_crc(&copy, offsetof(struct redo_record, zero));
}

void redo_fill(struct redo_record *to, const struct kv_req *req, uint64_t seq, const void *value)
{
	memset(to, 0, sizeof(*to));
	memcpy(to->key, req->key, sizeof(to->key));
	to->seq = seq;
	to->vlen = req->op == KV_PUT ? req->vlen : 0;
	to->klen = req->klen;
	to->op = req->op;
	memcpy(to + 1, value, to->vlen);
	to->crc = crc_of(to);
}

bool redo_is_whole(const struct redo_pool *pool, uint64_t seq, const struct tm_params *params)
{
	const struct redo_record *record = redo_record(pool, seq);

	if (record->seq != seq && !(has_bug(params, seq_unchecked) && record->seq))
		return false;
	if (record->vlen > params->max_vlen)
		return false;
	return has_bug(params, crc_unchecked) || rt_check(record->crc == crc_of(record));
}

/* -------------------------------------------------------------- applying */

/* A place of its own, in lines, so that a record can be applied again. */
static uint64_t place_of(uint64_t seq, const struct tm_params *params)
{
	return (seq - 1) * kv_lines(params->max_vlen);
}

static void copy_value(struct redo_pool *pool, const struct redo_record *record, uint64_t place,
		       const struct tm_params *params)
{
	memcpy(pool->pool.log + place * TM_LINE, record + 1, record->vlen);
	if (!has_bug(params, value_unflushed))
		pmem_persist(pool->pool.log + place * TM_LINE, record->vlen);
}

static void publish(struct redo_pool *pool, const struct redo_record *record, uint64_t where,
		    const struct tm_params *params)
{
	bool found;
	struct kv_entry *entry = kv_table_find(&pool->pool.table, record->key, &found);
	if (!entry || (!found && !where))
		return; /* there is nothing to delete */
	if (!found) {
		memcpy(entry->key, record->key, sizeof(entry->key));
		entry->where = where;
		pmem_persist(entry, sizeof(*entry));
		__atomic_store_n(&entry->ctl, kv_checked_ctl(record->key, record->klen),
				 __ATOMIC_SEQ_CST);
	} else {
		__atomic_store_n(&entry->where, where, __ATOMIC_SEQ_CST);
	}
	if (!has_bug(params, entry_unflushed))
		pmem_persist(entry, sizeof(*entry));
}

static void set_applied(struct redo_pool *pool, uint64_t seq)
{
	__atomic_store_n(pool->applied, seq, __ATOMIC_SEQ_CST);
	pmem_persist(pool->applied, sizeof(*pool->applied));
}

void redo_apply(struct redo_pool *pool, uint64_t seq, const struct tm_params *params)
{
	const struct redo_record *record = redo_record(pool, seq);
	uint64_t place = place_of(seq, params);

	/* First it is sure to stay. Else a power failure could take it, and its number, and with
	 * that the place of its value, would be another record's. */
	if (!has_bug(params, record_assumed))
		pmem_persist(record, sizeof(*record) + record->vlen);
	if (has_bug(params, applied_first))
		set_applied(pool, seq);
	if (record->op == KV_DEL) {
		publish(pool, record, 0, params);
	} else if (params->knob[ORDER]) {
		publish(pool, record, kv_where(place, record->vlen), params);
		copy_value(pool, record, place, params);
	} else {
		copy_value(pool, record, place, params);
		publish(pool, record, kv_where(place, record->vlen), params);
	}
	if (!has_bug(params, applied_first))
		set_applied(pool, seq);
}
