/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What holds in every recovered pool, entry by entry and version by version.
 * Read only. Not checked, because it need not hold: that older versions are
 * intact, durable or valid, and what lies in the log behind the last object.
 */
#include "core/stores/efactory/efactory.h"

#include <string.h>

/* One version of a key: does it belong here, and does its flag tell the truth? */
static bool check_version(const struct ef_pool *pool, const struct ef_entry *entry, uint64_t off,
			  struct tm_fsck *fsck)
{
	const struct ef_object *object;

	if (!ef_fits(pool, off)) {
		fsck->bad(fsck, "log+%#llx: no object can be here", (unsigned long long)off);
		return false;
	}
	object = ef_at(pool, off);
	if (memcmp(object->key, entry->key, TM_MAX_KEY) != 0)
		fsck->bad(fsck, "log+%#llx: its key is not its entry's", (unsigned long long)off);
	if (object->klen != (uint8_t)(entry->ctl >> EF_KLEN_SHIFT))
		fsck->bad(fsck, "log+%#llx: its key's length is not its entry's", (unsigned long long)off);
	if (object->state != EF_INFLIGHT && object->state != EF_DURABLE && object->state != EF_INVALID)
		fsck->bad(fsck, "log+%#llx: state %#x is none", (unsigned long long)off, object->state);
	if (object->kind > EF_TOMBSTONE)
		fsck->bad(fsck, "log+%#llx: kind %u is none", (unsigned long long)off, object->kind);
	if ((object->state & EF_FLAG) && !ef_crc_ok(object))
		fsck->bad(fsck, "log+%#llx: its flag says durable, its CRC does not agree",
			  (unsigned long long)off);
	return true;
}

/* The list of versions: strictly older and further down at each step, linked both ways. */
static void check_versions(const struct ef_pool *pool, const struct ef_entry *entry, struct tm_fsck *fsck)
{
	uint64_t off = entry->off[entry->ctl & EF_MARK];
	uint64_t newer = 0;

	while (off) {
		const struct ef_object *object = ef_at(pool, off);
		uint64_t pre;

		if (!check_version(pool, entry, off, fsck))
			return;
		if (!newer && object->state != EF_DURABLE)
			fsck->bad(fsck, "log+%#llx: newest version, but not marked durable",
				  (unsigned long long)off);
		if (newer && (int32_t)(ef_at(pool, newer)->stamp - object->stamp) <= 0)
			fsck->bad(fsck, "log+%#llx: not older than log+%#llx which follows it",
				  (unsigned long long)off, (unsigned long long)newer);
		if (object->next != newer)
			fsck->bad(fsck, "log+%#llx: next is log+%#llx, not log+%#llx",
				  (unsigned long long)off, (unsigned long long)object->next,
				  (unsigned long long)newer);
		pre = object->pre & EF_PRE_MASK;
		if (pre >= off) {
			fsck->bad(fsck, "log+%#llx: its previous version log+%#llx is not before it",
				  (unsigned long long)off, (unsigned long long)pre);
			return;
		}
		newer = off;
		off = pre;
	}
}

static void check_entry(const struct ef_pool *pool, const struct ef_entry *entry, struct tm_fsck *fsck)
{
	unsigned klen = (uint8_t)(entry->ctl >> EF_KLEN_SHIFT);
	unsigned long long slot = (unsigned long long)(entry - pool->table);
	bool found;

	if ((entry->ctl & EF_MARK) || entry->off[1])
		fsck->bad(fsck, "table[%llu]: in a second log, but there is none", slot);
	if (klen == 0 || klen > TM_MAX_KEY) {
		fsck->bad(fsck, "table[%llu]: key of %u bytes", slot, klen);
		return;
	}
	for (unsigned i = klen; i < TM_MAX_KEY; i++) {
		if (entry->key[i]) {
			fsck->bad(fsck, "table[%llu]: key is longer than its %u bytes", slot, klen);
			break;
		}
	}
	/* Says at once that no entry before it has the same key, and that no hole hides it. */
	if (ef_lookup(pool, entry->key, &found) != entry || !found)
		fsck->bad(fsck, "table[%llu]: its key does not lead to it", slot);
	check_versions(pool, entry, fsck);
}

void ef_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct ef_pool pool;

	ef_pool_map(&pool, env->params, env->pm);
	if (*(const uint64_t *)pool.log != EF_MAGIC)
		fsck->bad(fsck, "log+0: not an eFactory pool");
	for (uint64_t i = 0; i < pool.slots; i++) {
		if (pool.table[i].ctl & EF_USED)
			check_entry(&pool, &pool.table[i], fsck);
	}
}
