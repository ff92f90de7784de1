/* SPDX-License-Identifier: BSD-3-Clause */
/* Items and entries, and the structural check. See octopus_tx.h. */
#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include "core/stores/octopus_tx/octopus_tx.h"

/* Entries that a power failure has left uncommitted are not used again. */
#define ENTRIES_LOST 16

static size_t stride(const struct tm_params *params)
{
	return sizeof(struct octx_item) + kv_round_up(params->max_vlen, TM_LINE);
}

size_t octx_txn_bytes(const struct tm_params *params, unsigned n)
{
	return sizeof(struct octx_txn) + n * stride(params);
}

static size_t entry_bytes(const struct tm_params *params)
{
	return octx_txn_bytes(params, TM_TXN_OPS) + sizeof(struct octx_tail);
}

struct octx_pool octx_pool_at(const struct tm_params *params, uint8_t *pm)
{
	struct octx_pool pool = {.params = params,
				 .items = pm,
				 .items_bytes = (params->keys + 1) * stride(params),
				 .entries = params->updates + params->keys + ENTRIES_LOST};
	pool.log = pm + pool.items_bytes;
	return pool;
}

size_t octx_pm_bytes(const struct tm_params *params)
{
	const struct octx_pool pool = octx_pool_at(params, NULL);
	return pool.items_bytes + pool.entries * entry_bytes(params);
}

unsigned octx_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	const struct octx_pool pool = octx_pool_at(params, NULL);
	const struct tm_region all[] = {
		{"items", 0, pool.items_bytes},
		{"log", pool.items_bytes, pool.entries * entry_bytes(params)}};
	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

/* --- items --- */

unsigned octx_home(const uint8_t key[TM_MAX_KEY])
{
	return kv_hash(key) % OCTX_SERVERS;
}

struct octx_item *octx_item(const struct tm_params *params, struct octx_txn *txn, unsigned i)
{
	return (struct octx_item *)((uint8_t *)(txn + 1) + i * stride(params));
}

struct octx_item *octx_item_at(const struct octx_pool *pool, uint64_t off)
{
	return (struct octx_item *)(pool->items + off);
}

static bool is_key(const struct octx_item *item, const struct octx_item *key)
{
	return item->klen == key->klen && !memcmp(item->key, key->key, TM_MAX_KEY);
}

/* Items are used in their order: so two that look for a new key want the same one. */
int octx_lock_item(const struct octx_pool *pool, const struct octx_item *key, unsigned coordinator,
		   struct octx_item **out)
{
	for (size_t off = 0; off < pool->items_bytes; off += stride(pool->params)) {
		struct octx_item *item = octx_item_at(pool, off);
		if (item->klen && !is_key(item, key))
			continue;
		*out = item;
		if (!octopus_lock_write(&item->lock, coordinator + 1, 0))
			return -EAGAIN;
		if (is_key(item, key))
			return 0;
		if (!item->klen) {
			item->len = OCTX_NONE;
			memcpy(item->key, key->key, TM_MAX_KEY);
			__atomic_store_n(&item->klen, key->klen, __ATOMIC_SEQ_CST);
			return 0;
		}
		octopus_unlock_write(&item->lock); /* it has just been used for another one */
	}
	return -ENOSPC;
}

void octx_free_locks(const struct octx_pool *pool, unsigned server)
{
	for (size_t off = 0; off < pool->items_bytes; off += stride(pool->params)) {
		struct octx_item *item = octx_item_at(pool, off);
		const uint64_t lock = __atomic_load_n(&item->lock, __ATOMIC_SEQ_CST);
		if (lock && (server == OCTX_SERVERS || lock >> 48 == server + 1))
			octopus_unlock_write(&item->lock);
	}
}

void octx_apply(const struct tm_env *env, const struct octx_pool *pool, struct octx_txn *txn,
		bool flush)
{
	for (unsigned i = 0; i < txn->n; i++) {
		const struct octx_item *item = octx_item(pool->params, txn, i);
		size_t len;
		const void *image = octx_image(item, &len);
		uint8_t *to = pool->items + item->off + OCTX_FROM;
		if (octx_home(item->key) != env->server)
			continue;
		memcpy(to, image, len);
		if (flush)
			pmem_persist(to, len);
	}
}

/* --- the log --- */

struct octx_txn *octx_entry(const struct octx_pool *pool, uint64_t i)
{
	return (struct octx_txn *)(pool->log + i * entry_bytes(pool->params));
}

struct octx_tail *octx_tail(const struct octx_pool *pool, struct octx_txn *entry)
{
	return (struct octx_tail *)((uint8_t *)entry + octx_txn_bytes(pool->params, TM_TXN_OPS));
}

bool octx_entry_sane(const struct octx_pool *pool, struct octx_txn *entry)
{
	if (!entry->op || !entry->n || entry->n > TM_TXN_OPS)
		return false;
	for (unsigned i = 0; i < entry->n; i++) {
		const struct octx_item *item = octx_item(pool->params, entry, i);
		if (item->off % stride(pool->params) || item->off >= pool->items_bytes ||
		    !item->klen || item->klen > TM_MAX_KEY || !item->version ||
		    (item->len > pool->params->max_vlen && item->len != OCTX_NONE))
			return false;
	}
	return true;
}

bool octx_to_redo(const struct octx_pool *pool, struct octx_txn *entry, unsigned server)
{
	const struct octx_tail *tail = octx_tail(pool, entry);
	return entry->op && entry->coordinator == server + 1 &&
	       (tail->commit || has_bug(pool->params, uncommitted_redone)) && !tail->ended &&
	       octx_entry_sane(pool, entry);
}

/* --- the check --- */

static void check_items(const struct octx_pool *pool, struct tm_fsck *fsck)
{
	for (size_t off = 0; off < pool->items_bytes; off += stride(pool->params)) {
		const struct octx_item *item = octx_item_at(pool, off);
		if (item->lock)
			fsck->bad(fsck, "item +0x%zx: locked, and nobody is at it", off);
		if (item->klen > TM_MAX_KEY ||
		    (item->len > pool->params->max_vlen && item->len != OCTX_NONE))
			fsck->bad(fsck, "item +0x%zx: a key of %u bytes, a value of %u", off,
				  item->klen, item->len);
		for (size_t at = 0; item->klen && at < off; at += stride(pool->params))
			if (is_key(octx_item_at(pool, at), item))
				fsck->bad(fsck, "items +0x%zx and +0x%zx: the same key", at, off);
	}
}

void octx_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	const struct octx_pool pool = octx_pool_at(env->params, env->pm);
	check_items(&pool, fsck);
	for (uint64_t i = 0; i < pool.entries; i++) {
		struct octx_txn *entry = octx_entry(&pool, i);
		const struct octx_tail *tail = octx_tail(&pool, entry);
		if (tail->commit && !tail->ended && !octx_entry_sane(&pool, entry))
			fsck->bad(fsck, "entry %llu is committed, and makes no sense",
				  (unsigned long long)i);
		for (unsigned k = 0; octx_to_redo(&pool, entry, env->server) && k < entry->n; k++) {
			const struct octx_item *item = octx_item(env->params, entry, k);
			if (octx_home(item->key) == env->server &&
			    octx_item_at(&pool, item->off)->version > item->version)
				fsck->bad(fsck, "entry %llu is older than its item +0x%llx",
					  (unsigned long long)i, (unsigned long long)item->off);
		}
	}
}
