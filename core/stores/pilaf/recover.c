/* SPDX-License-Identifier: BSD-3-Clause */
/* Recovery, and what a recovered pool has to be. See pilaf.h. */
#include <libpmem.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/pilaf/pilaf.h"

static void clear(struct pilaf_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	entry->crc2 = pilaf_crc2(entry);
}

/* The entry as it was before the update that was under way; cleared if that is not known. */
static void restore(const struct pilaf_pool *pool, uint64_t slot, const struct tm_params *params)
{
	struct pilaf_entry *entry = &pool->entry[slot], former = *pool->undo;
	bool known = former.undoes == slot + 1 && pilaf_entry_whole(&former, params);

	if (!known || has_bug(params, cleared_first))
		clear(entry);
	former.undoes = 0;
	if (known)
		memcpy(entry, &former, sizeof(*entry));
}

static bool pair_whole(const struct pilaf_pool *pool, const struct pilaf_entry *entry,
		       const struct tm_params *params)
{
	return pilaf_in_pool(pool, entry, params->max_vlen) &&
	       rt_check(entry->crc1 == pilaf_crc1(pool->pairs + entry->addr, entry));
}

/* What names no pair goes. */
static void drop(const struct pilaf_pool *pool, const struct tm_params *params)
{
	if (has_bug(params, pair_assumed))
		return;
	for (uint64_t i = 0; i < pool->table.slots; i++) {
		struct pilaf_entry *entry = &pool->entry[i];

		if (entry->used && !pair_whole(pool, entry, params)) {
			clear(entry);
			pmem_persist(entry, sizeof(*entry));
		}
	}
}

/* Where the server's process has died and the power held, what is there need not be durable:
 * entries become so before any client is told of them, and before the undo slot, which is for them,
 * is cleared. The slot is cleared before others are: else a power failure which tears one of these
 * brings back what the slot has of it from an update that was complete. */
int pilaf_recover(const struct tm_env *env)
{
	struct pilaf_pool pool = pilaf_pool_at(env->params, env->pm);
	const struct tm_params *params = env->params;

	for (uint64_t i = 0; i < pool.table.slots; i++)
		if (!pilaf_entry_whole(&pool.entry[i], params) ||
		    (has_bug(params, undo_always) && pool.undo->undoes == i + 1))
			restore(&pool, i, params);
	if (!has_bug(params, table_assumed))
		pmem_persist(pool.entry, pool.table.slots * sizeof(*pool.entry));
	if (has_bug(params, undo_late))
		drop(&pool, params);
	pool.undo->undoes = 0;
	pmem_persist(pool.undo, sizeof(*pool.undo));
	if (!has_bug(params, undo_late))
		drop(&pool, params);
	return 0;
}

/* ------------------------------------------------------------------ fsck */

static bool overlap(const struct pilaf_entry *a, const struct pilaf_entry *b)
{
	return a->addr < b->addr + b->cap && b->addr < a->addr + a->cap;
}

static bool same_key(const struct pilaf_pool *pool, const struct pilaf_entry *a,
		     const struct pilaf_entry *b)
{
	return a->klen == b->klen && !memcmp(pool->pairs + a->addr, pool->pairs + b->addr, a->klen);
}

/* Check two used entries whose pairs are whole. */
static void check_two(const struct pilaf_pool *pool, uint64_t i, uint64_t k, struct tm_fsck *fsck)
{
	if (overlap(&pool->entry[i], &pool->entry[k]))
		fsck->bad(fsck, "table[%llu] and table[%llu]: their pairs share bytes",
			  (unsigned long long)k, (unsigned long long)i);
	if (same_key(pool, &pool->entry[i], &pool->entry[k]))
		fsck->bad(fsck, "table[%llu] and table[%llu] have one key", (unsigned long long)k,
			  (unsigned long long)i);
}

static void check_place(const struct pilaf_pool *pool, uint64_t slot, struct tm_fsck *fsck)
{
	const struct pilaf_entry *entry = &pool->entry[slot];
	uint8_t key[TM_MAX_KEY];

	kv_key_pad(key, pool->pairs + entry->addr, entry->klen);
	if (entry->hash >= pool->probes || pilaf_slot(pool, key, entry->hash) != slot)
		fsck->bad(fsck, "table[%llu]: its key does not lead to it",
			  (unsigned long long)slot);
}

void pilaf_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct pilaf_pool pool = pilaf_pool_at(env->params, env->pm);

	for (uint64_t i = 0; i < pool.table.slots; i++) {
		const struct pilaf_entry *entry = &pool.entry[i];

		if (!pilaf_entry_whole(entry, env->params))
			fsck->bad(fsck, "table[%llu]: its CRC is wrong", (unsigned long long)i);
		if (!entry->used)
			continue;
		if (!pair_whole(&pool, entry, env->params)) {
			fsck->bad(fsck, "table[%llu]: its pair's CRC is wrong",
				  (unsigned long long)i);
			return; /* what else is read would be no pair's */
		}
		check_place(&pool, i, fsck);
		for (uint64_t k = 0; k < i; k++)
			if (pool.entry[k].used)
				check_two(&pool, i, k, fsck);
	}
}
