/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log cleaning, the part that moves versions (EF 4.4). See clean.c for its course.
 *
 * What is moved of a key is one version, durable when the entry, or a newer version, names its
 * copy: no reader that finds it goes further back, so a copy has no previous version. A
 * version whose value has not arrived is not moved. In stage COMPRESS an older one is, and
 * MERGE comes back to it (it is carried); there it has to arrive or time out, as its
 * writer has an address in the old log.
 *
 * A tombstone is not moved either: when a key's newest usable version is one, then
 * older ones, in flight or not, will never be looked at again, and the key has no version.
 */
#include "core/rt/rt.h"
#include "core/stores/efactory/server.h"

#include <assert.h>
#include <libpmem.h>

enum verdict {
	USABLE,	 /* durable */
	WAITING, /* its value may still arrive */
	DEAD	 /* it will not count any more */
};

static enum verdict judge(const struct ef_server *server, uint64_t place)
{
	struct ef_object *object = ef_at(&server->pool, place);
	uint16_t state = __atomic_load_n(&object->state, __ATOMIC_ACQUIRE);
	bool any = ef_knobs(&server->params)->ignore_valid;

	if (rt_check(state & EF_FLAG))
		return state & EF_VALID || any ? USABLE : DEAD;
	if (!(state & EF_VALID) && !any)
		return DEAD;
	if (!rt_check(ef_crc_ok(object)))
		return state & EF_VALID ? WAITING : DEAD;
	return ef_make_durable(server, object, true) || any ? USABLE : DEAD;
}

/* Move a version, if that was not done before. Its place in the new log. */
static uint64_t move(struct ef_server *server, const struct ef_now *now, struct ef_moved *moved,
		     uint64_t place)
{
	const struct ef_object *object = ef_at(&server->pool, place);
	uint64_t span = ef_span(&server->pool, object->vlen);

	if (moved->from == place)
		return moved->to;
	uint64_t to = ef_alloc(server, now->to, span, 0);
	assert(to); /* there are no more versions to move than were in the old log */
	ef_copy(&server->pool, to, object, object->state & EF_FLAG ? EF_DURABLE : EF_INFLIGHT);
	pmem_drain();
	moved->from = place;
	moved->to = to;
	if (now->stage == EF_MERGE && !ef_bug(&server->params, EF_BUG_NO_RESERVE))
		__atomic_fetch_sub(&server->reserve, span, __ATOMIC_ACQ_REL);
	return to;
}

/* -------------------------------------------------------------- COMPRESS */

/* A copy is durable: name it, in the entry, or in the version that came after it. */
static void name_copy(const struct ef_server *server, const struct ef_now *now,
		      struct ef_entry *entry, const struct ef_moved *moved)
{
	const struct ef_pool *pool = &server->pool;

	if (__atomic_load_n(&entry->off[now->from], __ATOMIC_ACQUIRE) == ef_off_of(moved->from)) {
		__atomic_store_n(&entry->off[now->to], ef_off_of(moved->to), __ATOMIC_RELEASE);
		pmem_flush(&entry->off[now->to], sizeof(entry->off[now->to]));
	}
	uint64_t next = __atomic_load_n(&ef_at(pool, moved->from)->next, __ATOMIC_ACQUIRE);
	if (next && ef_fits(pool, next) &&
	    ef_pre(pool, now, entry, ef_at(pool, next)) == moved->from)
		ef_set_pre(pool, now, ef_at(pool, next), moved->to);
}

static void compress_entry(struct ef_server *server, const struct ef_now *now, uint64_t slot)
{
	const struct tm_params *params = &server->params;
	struct ef_entry *entry = &server->pool.table[slot];
	struct ef_moved *moved = &server->moved[slot];
	uint64_t place = ef_newest(&server->pool, now, entry);
	bool deleted = false;

	for (; place; place = ef_older(&server->pool, now, entry, place)) {
		const struct ef_object *object = ef_at(&server->pool, place);

		if (ef_off_of(place) >= server->cut)
			continue;
		enum verdict verdict = judge(server, place);
		if (verdict == WAITING && !ef_knobs(params)->copy_inflight) {
			server->carried += ef_span(&server->pool, object->vlen);
			moved->carried = place;
			continue;
		}
		if (verdict == DEAD)
			continue;
		if (ef_kind(params, object) != EF_TOMBSTONE)
			break;
		if (ef_bug(params, EF_BUG_TOMBSTONE_SKIPPED))
			continue;
		if (!ef_knobs(params)->tombstone_drop)
			return;
		deleted = true;
	}
	if (!place || deleted)
		return;
	move(server, now, moved, place);
	name_copy(server, now, entry, moved);
}

void ef_compress(struct ef_server *server, const struct ef_now *now)
{
	for (uint64_t i = 0; i < server->pool.slots; i++) {
		if (server->pool.table[i].ctl & EF_USED)
			compress_entry(server, now, i);
	}
	pmem_drain();
}

/* ----------------------------------------------------------------- MERGE */

/*
 * What a key's list of versions will end with, in the new log: *base, 0: nothing. *last: the
 * version before which that belongs, 0: the entry. False: a version must be waited for.
 */
static bool find_base(struct ef_server *server, const struct ef_now *now, uint64_t slot,
		      uint64_t *base, uint64_t *last)
{
	const struct tm_params *params = &server->params;
	struct ef_entry *entry = &server->pool.table[slot];
	struct ef_moved *moved = &server->moved[slot];
	uint64_t place = ef_newest(&server->pool, now, entry);
	bool deleted = false;

	*base = *last = 0;
	if (ef_bug(params, EF_BUG_COPY_OLDER) && entry->off[now->from])
		place = ef_place(now->from, entry->off[now->from]);
	for (; place; place = ef_older(&server->pool, now, entry, place)) {
		enum verdict verdict = judge(server, place);
		bool old = ef_log_of(place) == now->from;

		if (old && verdict == WAITING) {
			if (ef_knobs(params)->copy_inflight)
				verdict = USABLE;
			else if (!ef_bug(params, EF_BUG_NO_CARRY))
				return false;
		}
		if (verdict != USABLE) {
			*last = old ? *last : place;
			continue;
		}
		if (deleted && place != moved->carried)
			return true;
		if (!old) {
			*base = place;
			return true;
		}
		if (ef_kind(params, ef_at(&server->pool, place)) != EF_TOMBSTONE) {
			*base = move(server, now, moved, place);
			return true;
		}
		if (ef_bug(params, EF_BUG_TOMBSTONE_SKIPPED))
			continue;
		if (!ef_knobs(params)->tombstone_drop)
			return true;
		deleted = true;
	}
	return true;
}

/* False: not yet. */
static bool merge_entry(struct ef_server *server, const struct ef_now *now, uint64_t slot)
{
	const struct ef_pool *pool = &server->pool;
	struct ef_entry *entry = &pool->table[slot];
	uint64_t *off = &entry->off[now->to];
	uint64_t base, last, was;

	for (;;) {
		was = __atomic_load_n(off, __ATOMIC_ACQUIRE);
		if (!find_base(server, now, slot, &base, &last))
			return false;
		if (last) {
			if (ef_pre(pool, now, entry, ef_at(pool, last)) != base)
				ef_set_pre(pool, now, ef_at(pool, last), base);
			return true;
		}
		if (was == ef_off_of(base))
			return true;
		if (ef_bug(&server->params, EF_BUG_COPY_OLDER))
			was = *off;
		/* A PUT that came first is the newest version now: look again. */
		if (__atomic_compare_exchange_n(off, &was, ef_off_of(base), false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			break;
	}
	pmem_flush(off, sizeof(*off));
	return true;
}

/* Does the entry still belong to the old log? */
static bool unflipped(const struct ef_server *server, const struct ef_now *now, uint64_t slot)
{
	const struct ef_entry *entry = &server->pool.table[slot];

	return entry->ctl & EF_USED && ef_mark(&server->params, entry) == now->from;
}

void ef_merge(struct ef_server *server, const struct ef_now *now)
{
	uint64_t nap = 0;

	for (;;) {
		bool all = true;

		for (uint64_t i = 0; i < server->pool.slots; i++) {
			struct ef_moved *moved = &server->moved[i];

			if (!moved->merged && unflipped(server, now, i))
				moved->merged = merge_entry(server, now, i);
			all = all && (moved->merged || !unflipped(server, now, i));
		}
		if (all)
			break;
		ef_clean_wait(server, &nap);
	}
	pmem_drain(); /* all names and links before the first flip */
}

/* ------------------------------------------------------------------ FLIP */

/* Does the object name `pre`, and has no Trans? */
static bool names(const struct ef_pool *pool, const struct ef_object *object, uint64_t pre)
{
	if (ef_knobs(pool->params)->split_trans)
		return object->pre == ef_off_of(pre) && !(object->kind & EF_KIND_TRANS);
	return object->pre == pre;
}

/*
 * What is left of a key's list at rest: nothing names the old log, nothing has Trans, and
 * nothing comes before a durable version.
 */
static void cut_versions(const struct ef_server *server, const struct ef_now *now,
			 struct ef_entry *entry)
{
	const struct ef_pool *pool = &server->pool;
	const struct ef_now rest = {EF_REST, now->to, now->from};
	uint64_t place = ef_place(now->to, __atomic_load_n(&entry->off[now->to], __ATOMIC_ACQUIRE));
	uint64_t newer = 0;

	while (place) {
		struct ef_object *object = ef_at(pool, place);
		uint64_t next = __atomic_load_n(&object->next, __ATOMIC_ACQUIRE);
		uint64_t pre = ef_pre(pool, now, entry, object);

		/* The newest one's may just be on its way to a PUT's version, which is in the new
		 * log. */
		if (next != newer && (newer || ef_log_of(next) != now->to) &&
		    __atomic_compare_exchange_n(&object->next, &next, newer, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			pmem_flush(&object->next, sizeof(object->next));
		if (pre && (ef_log_of(pre) != now->to || object->state & EF_FLAG))
			pre = 0;
		if (!names(pool, object, pre))
			ef_set_pre(pool, &rest, object, pre);
		newer = place;
		place = pre;
	}
}

static void cut_all(const struct ef_server *server, const struct ef_now *now)
{
	for (uint64_t i = 0; i < server->pool.slots; i++) {
		if (server->pool.table[i].ctl & EF_USED)
			cut_versions(server, now, &server->pool.table[i]);
	}
	pmem_drain();
}

static void clear_all(const struct ef_server *server, const struct ef_now *now)
{
	for (uint64_t i = 0; i < server->pool.slots; i++) {
		uint64_t *off = &server->pool.table[i].off[now->from];

		if (!(server->pool.table[i].ctl & EF_USED) || !*off)
			continue;
		*off = 0;
		pmem_flush(off, sizeof(*off));
	}
	pmem_drain();
}

void ef_flip(struct ef_server *server, const struct ef_now *now)
{
	enum ef_end_order order = ef_knobs(&server->params)->end_order;

	if (order == EF_END_CLEAR)
		clear_all(server, now);
	if (order == EF_END_TRANS)
		cut_all(server, now);
	for (uint64_t i = 0; i < server->pool.slots; i++) {
		if (!unflipped(server, now, i))
			continue;
		ef_set_mark(&server->params, &server->pool.table[i], now->to);
		pmem_flush(&server->pool.table[i], sizeof(struct ef_entry));
	}
	pmem_drain();
	ef_quiesce(server);
	if (order != EF_END_TRANS)
		cut_all(server, now);
	clear_all(server, now);
}
