/* SPDX-License-Identifier: BSD-3-Clause */
/* Recovery, and the structural check. See octopus.h. */
#include <libpmem.h>
#include "core/stores/octopus/octopus.h"

/* Clients that had locks are gone. A lock lies in a file's line, and comes to PM with it. */
static void free_locks(struct kv_pool *pool)
{
	for (uint64_t i = 0; i < pool->table.slots; i++)
		pool->table.entry[i].lock = 0;
}

/* Where the server's process has died and the power held, data may be visible that are not durable:
 * a client had written them, and the server had not been told. */
static void persist_data(const struct kv_pool *pool)
{
	for (uint64_t i = 0; i < pool->table.slots; i++) {
		uint64_t where = pool->table.entry[i].where;

		if (where & 1)
			pmem_persist(octopus_data(pool, where), kv_where_vlen(where));
	}
}

/* Data that were being replaced are left as the mix that is there. */
int octopus_recover(const struct tm_env *env)
{
	struct kv_pool pool = kv_pool_at(env->params, env->pm);

	kv_pool_drop_impossible(&pool);
	if (!has_bug(env->params, locks_kept))
		free_locks(&pool);
	while (kv_pool_move_unreachable(&pool))
		;
	if (env->params->knob[PERSIST] != PERSIST_NONE && !has_bug(env->params, data_assumed))
		persist_data(&pool);
	pmem_persist(pool.table.entry, kv_table_bytes(env->params));
	return 0;
}

void octopus_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct kv_pool pool = kv_pool_at(env->params, env->pm);

	for (uint64_t i = 0; i < pool.table.slots; i++)
		if (pool.table.entry[i].lock)
			fsck->bad(fsck, "table[%llu]: locked, and no client is at it",
				  (unsigned long long)i);
	kv_pool_fsck(env, fsck);
}
