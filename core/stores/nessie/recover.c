/* SPDX-License-Identifier: BSD-3-Clause */
/* Recovery, and what a recovered pool has to be. See nessie.h. */
#include <libpmem.h>
#include <string.h>
#include "core/stores/nessie/nessie.h"

static const struct nessie_entry *entry_at(const struct nessie_pool *pool, uint64_t entry)
{
	return (const struct nessie_entry *)(pool->data + nessie_entry_off(pool, entry));
}

/* Does the entry's key lead to this slot, by a word with this tag? */
static bool leads_to(const struct nessie_pool *pool, const struct nessie_entry *entry,
		     uint64_t slot)
{
	uint8_t key[TM_MAX_KEY];
	struct nessie_place place;
	bool found = false;

	kv_key_pad(key, entry->bytes, entry->klen);
	place = nessie_place_of(pool, key);
	for (unsigned i = 0; i < place.slots; i++)
		found |= place.slot[i] == slot;
	return found && nessie_tag(pool->index[slot]) == place.tag;
}

/* Does an owned slot's word name a whole entry of a key that may be here? */
static bool word_right(const struct nessie_pool *pool, uint64_t slot, uint32_t max_vlen)
{
	uint64_t entry;

	return nessie_names(pool, pool->index[slot], &entry) &&
	       nessie_whole(entry_at(pool, entry), max_vlen) &&
	       leads_to(pool, entry_at(pool, entry), slot);
}

/* Entries need no recovery: which are free a client finds out when it comes. Where the server's
 * process has died and the power held, words need not be durable; they become so before clients
 * READ them. */
int nessie_recover(const struct tm_env *env)
{
	struct nessie_pool pool = nessie_pool_at(env->params, env->pm);

	if (!nessie_flushes(env->params))
		return 0;
	for (uint64_t i = 0; i < pool.slots; i++) {
		if (!nessie_owned(pool.index[i]) || !word_right(&pool, i, env->params->max_vlen))
			pool.index[i] = 0;
		else
			pool.index[i] &= ~NESSIE_PENDING;
	}
	if (!has_bug(env->params, index_assumed))
		pmem_persist(pool.index, pool.slots * sizeof(*pool.index));
	return 0;
}

/* ------------------------------------------------------------------ fsck */

static bool same_key(const struct nessie_entry *a, const struct nessie_entry *b)
{
	return a->klen == b->klen && !memcmp(a->bytes, b->bytes, a->klen);
}

/* Two slots with owners. */
static void check_two(const struct nessie_pool *pool, uint64_t i, uint64_t k, struct tm_fsck *fsck)
{
	uint64_t a, b;

	if (!nessie_names(pool, pool->index[i], &a) || !nessie_names(pool, pool->index[k], &b))
		return;
	if (a == b)
		fsck->bad(fsck, "index[%llu] and index[%llu] name one entry", (unsigned long long)k,
			  (unsigned long long)i);
	else if (same_key(entry_at(pool, a), entry_at(pool, b)))
		fsck->bad(fsck, "index[%llu] and index[%llu] have one key", (unsigned long long)k,
			  (unsigned long long)i);
}

void nessie_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct nessie_pool pool = nessie_pool_at(env->params, env->pm);

	for (uint64_t i = 0; i < pool.slots; i++) {
		if (!nessie_owned(pool.index[i]))
			continue;
		if (!word_right(&pool, i, env->params->max_vlen)) {
			fsck->bad(fsck, "index[%llu] names no whole entry of a key of its own",
				  (unsigned long long)i);
			return; /* what else is read would be no entry's */
		}
		for (uint64_t k = 0; k < i; k++)
			if (nessie_owned(pool.index[k]))
				check_two(&pool, i, k, fsck);
	}
}
