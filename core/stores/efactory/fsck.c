/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What holds in every recovered pool, entry by entry and version by version.
 * Read only. Not checked, because it need not hold: that older versions are
 * intact, durable or valid, and what lies in the log after the last object.
 */
#include "core/stores/efactory/efactory.h"

#include <string.h>

/* The name of a place: as the trace calls its line. */
#define PLACE	    "log-%c+%#llx"
#define ARGS(place) ef_log_of(place) ? 'b' : 'a', (unsigned long long)ef_off_of(place)

/* One version of a key: does it belong here, and does its flag tell the truth? */
static bool check_version(const struct ef_pool *pool, const struct ef_entry *entry, uint64_t place,
			  struct tm_fsck *fsck)
{
	if (!ef_fits(pool, place)) {
		fsck->bad(fsck, PLACE ": no object can be here", ARGS(place));
		return false;
	}
	const struct ef_object *object = ef_at(pool, place);
	if (memcmp(object->key, entry->key, TM_MAX_KEY) != 0)
		fsck->bad(fsck, PLACE ": its key is not its entry's", ARGS(place));
	if (object->klen != (uint8_t)(entry->ctl >> EF_KLEN_SHIFT))
		fsck->bad(fsck, PLACE ": its key's length is not its entry's", ARGS(place));
	if (object->state != EF_INFLIGHT && object->state != EF_DURABLE &&
	    object->state != EF_INVALID)
		fsck->bad(fsck, PLACE ": state %#x is none", ARGS(place), object->state);
	if (object->kind > EF_TOMBSTONE)
		fsck->bad(fsck, PLACE ": kind %u is none", ARGS(place), object->kind);
	if (object->pre & EF_TRANS)
		fsck->bad(fsck, PLACE ": Trans, but no log is being cleaned", ARGS(place));
	if ((object->state & EF_FLAG) && !ef_crc_ok(object))
		fsck->bad(fsck, PLACE ": its flag says durable, its CRC does not agree",
			  ARGS(place));
	return true;
}

/*
 * The list of versions: strictly older at each step, all in one log, linked both ways. It
 * leads down the log, but for the one version that cleaning moves there late; no reader goes
 * as far as that one when a newer version is durable.
 */
static void check_versions(const struct ef_pool *pool, const struct ef_now *now,
			   const struct ef_entry *entry, struct tm_fsck *fsck)
{
	uint64_t place = ef_newest(pool, now, entry), newer = 0;

	while (place) {
		const struct ef_object *object = ef_at(pool, place);

		if (!check_version(pool, entry, place, fsck))
			return;
		if (!newer && object->state != EF_DURABLE)
			fsck->bad(fsck, PLACE ": newest version, but not marked durable",
				  ARGS(place));
		if (newer && !ef_newer(pool->params, ef_at(pool, newer)->stamp, object->stamp))
			fsck->bad(fsck, PLACE ": not older than " PLACE " which follows it",
				  ARGS(place), ARGS(newer));
		if (object->next != newer)
			fsck->bad(fsck, PLACE ": next is " PLACE ", not " PLACE, ARGS(place),
				  ARGS(object->next), ARGS(newer));
		uint64_t pre = ef_pre(pool, now, entry, object);
		if (pre && ef_log_of(pre) != now->from)
			fsck->bad(fsck, PLACE ": its previous version is in the other log",
				  ARGS(place));
		if (pre >= place)
			return;
		newer = place;
		place = pre;
	}
}

static void check_entry(const struct ef_pool *pool, const struct ef_now *now,
			const struct ef_entry *entry, struct tm_fsck *fsck)
{
	static const uint8_t nothing[TM_MAX_KEY];
	unsigned klen = (uint8_t)(entry->ctl >> EF_KLEN_SHIFT);
	unsigned long long slot = (unsigned long long)(entry - pool->table);
	bool found;

	if (ef_mark(pool->params, entry) != now->from)
		fsck->bad(fsck, "table[%llu]: its mark names the other log", slot);
	if (entry->off[now->to])
		fsck->bad(fsck, "table[%llu]: has an offset in the other log", slot);
	if (klen == 0 || klen > TM_MAX_KEY) {
		fsck->bad(fsck, "table[%llu]: key of %u bytes", slot, klen);
		return;
	}
	if (memcmp(entry->key + klen, nothing, TM_MAX_KEY - klen) != 0)
		fsck->bad(fsck, "table[%llu]: key is longer than its %u bytes", slot, klen);
	/* Says at once that no entry before it has the same key, and that no hole hides it. */
	if (ef_lookup(pool, entry->key, &found) != entry || !found)
		fsck->bad(fsck, "table[%llu]: its key does not lead to it", slot);
	check_versions(pool, now, entry, fsck);
}

void ef_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct ef_pool pool;

	ef_pool_map(&pool, env->params, env->pm);
	struct ef_now now = ef_pool_now(&pool);
	if (pool.header->magic != EF_MAGIC)
		fsck->bad(fsck, "log-a+0: not an eFactory pool");
	if (pool.header->state & ~EF_STATE_LOG)
		fsck->bad(fsck, "log-a+0x8: a log is being cleaned, or the state is none");
	for (uint64_t i = 0; i < pool.slots; i++) {
		if (pool.table[i].ctl & EF_USED)
			check_entry(&pool, &now, &pool.table[i], fsck);
	}
}
