/* SPDX-License-Identifier: BSD-3-Clause */
/* Recovery, and what a recovered pool has to be. See hydradb.h. */
#include <libpmem.h>
#include "core/stores/hydradb/hydradb.h"

static bool fits(const struct kv_pool *pool, const struct kv_entry *entry)
{
	return hydradb_fits(hydradb_item_at(pool, entry->where), kv_where_vlen(entry->where),
			    entry->key);
}

/* An item is durable before an entry names it. With persist=off it may be anything. */
static void drop_unfit(const struct kv_pool *pool)
{
	for (uint64_t i = 0; i < pool->table.slots; i++) {
		struct kv_entry *entry = &pool->table.entry[i];

		if (hydradb_names_item(entry) && !fits(pool, entry))
			kv_entry_clear(entry);
	}
}

/* Clients with a lease have lost their connections, and the clock that it was counted by has
 * started again. Need not be durable, as the next recovery does it, too. */
static void end_leases(const struct kv_pool *pool)
{
	for (uint64_t i = 0; i < pool->table.slots; i++) {
		const struct kv_entry *entry = &pool->table.entry[i];

		if (hydradb_names_item(entry))
			hydradb_item_at(pool, entry->where)->lease_end = 0;
	}
}

/* Outdated items are those that no entry names, whatever their guardians say: the server finds
 * their room free. */
int hydradb_recover(const struct tm_env *env)
{
	struct tm_params params = hydradb_pool_params(env->params);
	struct kv_pool pool = kv_pool_at(&params, env->pm);

	kv_pool_drop_impossible(&pool);
	drop_unfit(&pool);
	while (kv_pool_move_unreachable(&pool))
		;
	if (!has_bug(env->params, leases_kept))
		end_leases(&pool);
	pmem_persist(pool.table.entry, kv_table_bytes(&params));
	return 0;
}

/* ------------------------------------------------------------------ fsck */

static void check_item(const struct kv_pool *pool, uint64_t i, struct tm_fsck *fsck)
{
	const struct kv_entry *entry = &pool->table.entry[i];
	struct hydradb_item *item = hydradb_item_at(pool, entry->where);
	unsigned long long slot = i;

	if (!fits(pool, entry)) {
		fsck->bad(fsck, "table[%llu]: what it names is not its key's", slot);
		return;
	}
	if (!hydradb_live(*hydradb_guardian(item, kv_where_vlen(entry->where))))
		fsck->bad(fsck, "table[%llu]: its item is outdated", slot);
	if (item->lease_end)
		fsck->bad(fsck, "table[%llu]: its item is leased, and no client has a lease", slot);
}

void hydradb_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct tm_params params = hydradb_pool_params(env->params);
	struct kv_pool pool = kv_pool_at(&params, env->pm);
	struct tm_env pool_env = *env;

	pool_env.params = &params;
	kv_pool_fsck(&pool_env, fsck);
	for (uint64_t i = 0; i < pool.table.slots; i++)
		if (hydradb_names_item(&pool.table.entry[i]) &&
		    kv_pool_has(&pool, &pool.table.entry[i]))
			check_item(&pool, i, fsck);
}
