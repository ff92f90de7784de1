/* SPDX-License-Identifier: BSD-3-Clause */
/* Recovery: what was not applied is. See redo.h. */
#include <libpmem.h>
#include <string.h>
#include "core/stores/redo_log/redo.h"

/* Where the server's process has died and the power held, what is there need not be durable. A
 * record, or an entry of one that was being applied, becomes so when it is applied, which can be
 * done again. A record that is not whole was not acknowledged (redo), or its client has died, or
 * the power failure took it. */
static bool newer_of_key(struct redo_pool *pool, uint64_t seq, uint64_t last,
			 const struct tm_params *params)
{
	const uint8_t *key = redo_record(pool, seq)->key;

	for (uint64_t later = seq + 1; later <= last; later++)
		if (redo_is_whole(pool, later, params) &&
		    !memcmp(redo_record(pool, later)->key, key, TM_MAX_KEY))
			return true;
	return false;
}

/* A seeded bug. */
static void apply_by_key(struct redo_pool *pool, uint64_t first, uint64_t last,
			 const struct tm_params *params)
{
	for (uint64_t seq = last; seq >= first; seq--)
		if (redo_is_whole(pool, seq, params) && !newer_of_key(pool, seq, last, params))
			redo_apply(pool, seq, params);
}

int redo_recover(const struct tm_env *env)
{
	struct redo_pool pool = redo_pool_at(env->params, env->pm);
	uint64_t first = *pool.applied + 1, last = *pool.applied + pool.slots;

	pmem_persist(pool.applied, sizeof(*pool.applied));
	if (has_bug(env->params, recover_by_key))
		apply_by_key(&pool, first, last < pool.records ? last : pool.records, env->params);
	for (uint64_t seq = first; seq <= last && seq <= pool.records; seq++) {
		if (redo_is_whole(&pool, seq, env->params))
			redo_apply(&pool, seq, env->params);
		else if (env->params->knob[REPLAY])
			break;
	}
	return 0;
}

void redo_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct redo_pool pool = redo_pool_at(env->params, env->pm);
	struct tm_env inner = redo_inner(env);

	if (*pool.applied > pool.records)
		fsck->bad(fsck, "applied: %llu, and there is room for %llu records",
			  (unsigned long long)*pool.applied, (unsigned long long)pool.records);
	kv_pool_fsck(&inner, fsck);
}
