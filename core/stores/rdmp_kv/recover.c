/* SPDX-License-Identifier: BSD-3-Clause */
/* Recovery, and what a recovered pool has to be. See rdmp_kv.h. */
#include <libpmem.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/rdmp_kv/rdmp_kv.h"

/* A PUT that did not come to its PF was not acknowledged, and no client has read it. */
static void undo(struct rdmp_record *record, const struct tm_params *params)
{
	if (has_bug(params, undo_forgotten))
		return;
	rdmp_record_set(record, RDMP_UNDONE);
	if (!has_bug(params, undo_unflushed))
		pmem_persist(record, sizeof(*record));
}

/* The newest whole object of a key is current again, or none after a DELETE. Records before that
 * one are not looked at: their objects' lines may have been given to others. */
static void recover_key(const struct rdmp_pool *pool, const struct rdmp_index *index,
			uint32_t newest, const struct tm_params *params)
{
	for (uint32_t number = newest; number; number = index->older[number]) {
		struct rdmp_record *record = rdmp_record(pool, number);
		uint8_t *flags = rdmp_flags(pool, record);
		bool older = has_bug(params, oldest_kept) && index->older[number];

		if (record->kind == RDMP_DEL)
			return;
		if (rt_check(flags[0] == 1) && !older) {
			if (!has_bug(params, pf_assumed))
				pmem_persist(flags, 1);
			/* VF need not be durable, but without it the object could not be read. */
			if (!params->knob[RECOVER_VF])
				flags[1] = 1;
			return;
		}
		undo(record, params);
	}
}

/* Where the server's process has died and the power held, what it had written and not made durable
 * is there: it becomes durable before any client is told of it. */
int rdmp_recover(const struct tm_env *env)
{
	struct rdmp_pool pool = rdmp_pool_at(env->params, env->pm);
	struct rdmp_index index;

	if (pool.table) {
		rdmp_table_recover(&pool);
		return 0;
	}
	int rc = rdmp_index_build(&index, &pool);
	if (rc)
		return rc;
	if (index.records && !has_bug(env->params, log_assumed))
		pmem_persist(pool.log, index.records * sizeof(*pool.log));
	for (uint64_t i = 0; i < index.places; i++)
		recover_key(&pool, &index, index.key[i].newest, env->params);
	rdmp_index_free(&index, &pool);
	return 0;
}

/* ------------------------------------------------------------------ fsck */

static bool in_pool(const struct rdmp_pool *pool, const struct rdmp_record *record)
{
	uint64_t lines = rdmp_object_lines(pool->params, record->klen, record->vlen);

	return record->off % TM_LINE == 0 && record->off / TM_LINE <= pool->lines &&
	       lines <= pool->lines - record->off / TM_LINE;
}

static bool overlap(const struct rdmp_pool *pool, const struct rdmp_record *a,
		    const struct rdmp_record *b)
{
	return a->off < b->off + rdmp_object_bytes(pool->params, b->klen, b->vlen) &&
	       b->off < a->off + rdmp_object_bytes(pool->params, a->klen, a->vlen);
}

static void check_current(const struct rdmp_pool *pool, const struct rdmp_index *index,
			  uint32_t number, struct tm_fsck *fsck)
{
	const struct rdmp_record *record = rdmp_record(pool, number);

	if (record->kind == RDMP_DEL)
		return;
	if (!in_pool(pool, record)) {
		fsck->bad(fsck, "record %u: its object is outside of the pool", number);
		return;
	}
	if (rdmp_flags(pool, record)[0] != 1)
		fsck->bad(fsck, "record %u: its object is not whole, and was not undone", number);
	if (memcmp(rdmp_object(pool, record), record->key, record->klen))
		fsck->bad(fsck, "record %u: its object has another key", number);
	for (uint64_t i = 0; i < index->places; i++) {
		uint32_t other = index->key[i].newest;

		if (other && other < number && rdmp_record(pool, other)->kind == RDMP_PUT &&
		    overlap(pool, record, rdmp_record(pool, other)))
			fsck->bad(fsck, "records %u and %u: their objects share bytes", other,
				  number);
	}
}

void rdmp_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct rdmp_pool pool = rdmp_pool_at(env->params, env->pm);
	struct rdmp_index index;

	if (rdmp_index_build(&index, &pool)) {
		fsck->bad(fsck, "there is no memory to check it");
		return;
	}
	for (uint64_t i = 0; i < index.places; i++)
		if (index.key[i].newest)
			check_current(&pool, &index, index.key[i].newest, fsck);
	rdmp_index_free(&index, &pool);
}
