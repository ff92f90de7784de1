/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An empty pool, and a pool after a power failure.
 *
 * The paper gives the principle (EF 4.1): go back along the version list to an
 * intact version. Ours, step by step, for each used entry:
 *
 *	1. From the newest version back: accept the first that is valid and whose
 *	   CRC is right. A flag of 0 says nothing (the flag is flushed lazily); a
 *	   flag of 1 is not believed either (knob trust_flag).
 *	2. If that is not the newest, the entry names it from now on. If there is
 *	   none the key has no version; its entry stays, because linear probing
 *	   wants no holes.
 *	3. The accepted version has no newer one, and is durable.
 *
 * If a log was being cleaned, the cleaning is ended here. A key may have versions in
 * both logs then; its newest is the one with the newer stamp, wherever the mark points,
 * and links name their log. When all have been accepted, it is known how much of the new log is
 * needed. Then all that was accepted in the old log is copied after that; named in its
 * entry, whose mark is flipped; the old offsets are cleared: each durable before the
 * next, so that a recovery that is cut by another power failure can be done again.
 * There is room: PUTs have left free what the old log still had to give. So that a recovery
 * that is done again needs no more of it, entries are named in their order, each durable
 * before the next: what is left to copy then goes to the place where it was copied before.
 *
 * A PUT that was in flight, never acknowledged, may come back if its bytes are
 * complete. Nothing after the last reachable object need be cleared: an object
 * is reachable only after its whole header was written anew and persisted, and
 * stale bytes of the value area count for a value only if they are the value.
 * The log's tail, the stamps and the verifier's list are volatile; ef_serve()
 * derives the first two from the entries and starts with an empty list, as no
 * writer survives.
 */
#include "core/rt/rt.h"
#include "core/stores/efactory/efactory.h"

#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>

int ef_format(const struct tm_env *env)
{
	struct ef_pool pool;

	ef_pool_map(&pool, env->params, env->pm);
	pool.header->magic = EF_MAGIC;
	pmem_persist(pool.header, sizeof(*pool.header));
	return 0;
}

static bool acceptable(const struct ef_pool *pool, const struct ef_object *object)
{
	const struct tm_params *params = pool->params;

	if (!rt_check(object->state & EF_VALID) && !ef_knobs(params)->ignore_valid)
		return false;
	if (ef_bug(params, EF_BUG_RECOVER_NO_CRC))
		return true;
	if (ef_bug(params, EF_BUG_RECOVER_UNREAD) && !(object->state & EF_FLAG))
		return false;
	if (rt_check(object->state & EF_FLAG) && ef_knobs(params)->trust_flag)
		return true;
	return rt_check(ef_crc_ok(object));
}

/* The newest version from `place` back that can be accepted; 0: none. */
static uint64_t newest_intact(const struct ef_pool *pool, const struct ef_now *now,
			      const struct ef_entry *entry, uint64_t place)
{
	while (place) {
		if (!ef_fits(pool, place))
			return 0;
		if (acceptable(pool, ef_at(pool, place)))
			return place;
		if (ef_bug(pool->params, EF_BUG_RECOVER_HEAD_ONLY))
			return 0;
		place = ef_older(pool, now, entry, place);
	}
	return 0;
}

/* The accepted version becomes what a newest version is at rest. */
static void settle(const struct ef_pool *pool, struct ef_object *object)
{
	const struct tm_params *params = pool->params;

	if (object->next && !ef_bug(params, EF_BUG_RECOVER_NEXT)) {
		object->next = 0;
		pmem_persist(&object->next, sizeof(object->next));
	}
	if (object->state != EF_DURABLE && !ef_bug(params, EF_BUG_RECOVER_NO_FLAG)) {
		/* After the death of the process alone it may be in a cache only. */
		if (!ef_bug(params, EF_BUG_RECOVER_CACHED))
			pmem_persist(object->value, object->vlen);
		object->state = EF_DURABLE;
		pmem_persist(&object->state, sizeof(object->state));
	}
}

static void set_off(uint64_t *off, uint64_t place)
{
	if (*off == ef_off_of(place))
		return;
	*off = ef_off_of(place);
	pmem_persist(off, sizeof(*off));
}

/* A seeded bug: what is new is only in the cache. */
static void set_off_lazily(uint64_t *off, uint64_t place)
{
	*off = ef_off_of(place);
}

static void recover_entry(const struct ef_pool *pool, const struct ef_now *now,
			  struct ef_entry *entry)
{
	uint64_t *head = &entry->off[ef_mark(pool->params, entry)];
	uint64_t newest = ef_newest(pool, now, entry);
	uint64_t intact = newest_intact(pool, now, entry, newest);

	if (intact != newest) {
		if (ef_bug(pool->params, EF_BUG_RECOVER_CLEARS))
			set_off(head, 0);
		if (ef_bug(pool->params, EF_BUG_RECOVER_UNFLUSHED))
			set_off_lazily(head, intact);
		else
			set_off(head, intact);
	}
	if (intact)
		settle(pool, ef_at(pool, intact));
}

/* ------------------------------------------------ a half-done cleaning */

/* What is left of the copies when recovery takes the old log as it is (knob recover_clean). */
static void discard_copies(const struct ef_pool *pool, const struct ef_now *now)
{
	for (uint64_t i = 0; i < pool->slots; i++) {
		struct ef_entry *entry = &pool->table[i];

		if (!(entry->ctl & EF_USED))
			continue;
		set_off(&entry->off[now->to], 0);
		uint64_t place = ef_place(now->from, entry->off[now->from]);
		for (; place && ef_log_of(place) == now->from;
		     place = ef_older(pool, now, entry, place)) {
			if (ef_log_of(ef_pre(pool, now, entry, ef_at(pool, place))) == now->to)
				ef_set_pre(pool, now, ef_at(pool, place), 0);
		}
	}
}

/* Has no entry been flipped yet? */
static bool none_flipped(const struct ef_pool *pool, const struct ef_now *now)
{
	for (uint64_t i = 0; i < pool->slots; i++) {
		if (pool->table[i].ctl & EF_USED &&
		    ef_mark(pool->params, &pool->table[i]) == now->to)
			return false;
	}
	return true;
}

/* The log is in use up to an object's end. */
static void grow(const struct ef_pool *pool, const struct ef_now *now, uint64_t place,
		 uint64_t *tail)
{
	if (!place || ef_log_of(place) != now->to || !ef_fits(pool, place))
		return;
	uint64_t end = ef_off_of(place) + ef_span(pool, ef_at(pool, place)->vlen);
	if (end > *tail)
		*tail = end;
}

/*
 * What each entry's key is to have, in either log; and where the new log's free room
 * begins: after all that this recovery looked at, so that the next one would see it too.
 */
static uint64_t accept_all(const struct ef_pool *pool, const struct ef_now *now, uint64_t *accepted)
{
	uint64_t tail = TM_LINE;

	for (uint64_t i = 0; i < pool->slots; i++) {
		const struct ef_entry *entry = &pool->table[i];
		unsigned mark = ef_mark(pool->params, entry);

		if (!(entry->ctl & EF_USED))
			continue;
		uint64_t newest = ef_knobs(pool->params)->recover_head
					  ? ef_place(mark, entry->off[mark])
					  : ef_newest(pool, now, entry);
		accepted[i] = newest_intact(pool, now, entry, newest);
		if (mark == now->to && ef_bug(pool->params, EF_BUG_RECOVER_OVER_COPY))
			continue;
		grow(pool, now, ef_place(now->to, entry->off[now->to]), &tail);
		for (uint64_t place = newest; place && place != accepted[i];
		     place = ef_older(pool, now, entry, place))
			grow(pool, now, place, &tail);
		grow(pool, now, accepted[i], &tail);
	}
	return tail;
}

/*
 * After the death of the process alone what was accepted may be in a cache only, and what is
 * brought over may take the place of the version before it.
 */
static void persist_accepted(const struct ef_pool *pool, const uint64_t *accepted)
{
	if (ef_bug(pool->params, EF_BUG_RECOVER_COPY_CACHED))
		return;
	for (uint64_t i = 0; i < pool->slots; i++) {
		if (!accepted[i])
			continue;
		const struct ef_object *object = ef_at(pool, accepted[i]);
		pmem_flush(object, sizeof(*object) + object->vlen);
	}
	pmem_drain();
}

/*
 * Bring what was accepted into the new log, if it is not there; durable with the caller's next
 * fence. A tombstone has no older version any more.
 */
static uint64_t bring_over(const struct ef_pool *pool, const struct ef_now *now,
			   const struct ef_entry *entry, uint64_t place, uint64_t *tail)
{
	uint64_t copied = ef_place(now->to, entry->off[now->to]);

	if (!place)
		return 0;
	struct ef_object *object = ef_at(pool, place);
	if (ef_log_of(place) == now->to) {
		if (ef_pre(pool, now, entry, object))
			ef_set_pre(pool, now, object, 0);
		settle(pool, object);
		return place;
	}
	if (ef_kind(pool->params, object) == EF_TOMBSTONE)
		return 0;
	if (copied && ef_fits(pool, copied) && ef_at(pool, copied)->stamp == object->stamp)
		return copied;
	copied = ef_place(now->to, *tail);
	*tail += ef_span(pool, object->vlen);
	if (*tail > pool->log_len)
		return 0; /* the caller sees it */
	ef_copy(pool, copied, object, EF_DURABLE);
	return copied;
}

/*
 * The entry names the new log. The offset is durable before the mark is: of a line that is torn any
 * words may survive.
 */
static void move_entry(const struct ef_pool *pool, const struct ef_now *now, struct ef_entry *entry,
		       uint64_t place)
{
	if (ef_bug(pool->params, EF_BUG_RECOVER_FLIP_FIRST)) {
		ef_set_mark(pool->params, entry, now->to);
		pmem_persist(entry, sizeof(*entry));
	}
	if (entry->off[now->to] != ef_off_of(place)) {
		entry->off[now->to] = ef_off_of(place);
		pmem_persist(&entry->off[now->to], sizeof(entry->off[now->to]));
	}
	if (ef_mark(pool->params, entry) != now->to)
		ef_set_mark(pool->params, entry, now->to);
	pmem_flush(entry, sizeof(*entry));
}

static int end_cleaning(const struct ef_pool *pool, const struct ef_now *now)
{
	uint64_t *accepted = calloc(pool->slots, sizeof(*accepted));

	if (!accepted)
		return -ENOMEM;
	uint64_t tail = accept_all(pool, now, accepted);
	persist_accepted(pool, accepted);
	for (uint64_t i = 0; i < pool->slots; i++)
		accepted[i] = bring_over(pool, now, &pool->table[i], accepted[i], &tail);
	pmem_drain();
	if (tail > pool->log_len) {
		free(accepted);
		return -ENOSPC;
	}
	if (ef_bug(pool->params, EF_BUG_RECOVER_STATE_FIRST)) {
		pool->header->state = now->to;
		pmem_persist(pool->header, sizeof(*pool->header));
	}
	for (uint64_t i = 0; i < pool->slots; i++) {
		if (!(pool->table[i].ctl & EF_USED))
			continue;
		move_entry(pool, now, &pool->table[i], accepted[i]);
		pmem_drain();
	}
	for (uint64_t i = 0; i < pool->slots; i++) {
		uint64_t *off = &pool->table[i].off[now->from];

		if (!(pool->table[i].ctl & EF_USED) || !*off)
			continue;
		*off = 0;
		pmem_flush(off, sizeof(*off));
	}
	pmem_drain();
	free(accepted);
	pool->header->state = now->to;
	pmem_persist(pool->header, sizeof(*pool->header));
	return 0;
}

int ef_recover(const struct tm_env *env)
{
	struct ef_pool pool;

	ef_pool_map(&pool, env->params, env->pm);
	if (pool.header->magic != EF_MAGIC)
		return -EINVAL;
	/* After the death of the process alone they may be in a cache only, and what recovery
	 * makes durable has to come after what it relies on. */
	pmem_flush(pool.header, sizeof(*pool.header));
	pmem_persist(pool.table, pool.slots * sizeof(pool.table[0]));
	struct ef_now now = ef_pool_now(&pool);
	if (now.stage != EF_REST && !ef_bug(env->params, EF_BUG_RECOVER_UNCLEANED)) {
		if (!ef_knobs(env->params)->recover_clean || !none_flipped(&pool, &now))
			return end_cleaning(&pool, &now);
		discard_copies(&pool, &now);
	}
	if (now.stage != EF_REST) {
		pool.header->state = now.from;
		pmem_persist(pool.header, sizeof(*pool.header));
		now.stage = EF_REST;
	}
	for (uint64_t i = 0; i < pool.slots; i++) {
		if (pool.table[i].ctl & EF_USED)
			recover_entry(&pool, &now, &pool.table[i]);
	}
	return 0;
}
