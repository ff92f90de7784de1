/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of the pool, and the way around it: from a key to its entry, along its versions. See
 * efactory.h. */
#include "core/rt/rt.h"
#include "core/stores/efactory/efactory.h"

#include <assert.h>
#include <libpmem.h>
#include <string.h>

uint64_t ef_slots(const struct tm_params *params)
{
	uint64_t keys = params->keys ? params->keys : 1;

	return kv_pow2(ef_knobs(params)->crowd ? keys : 2 * keys);
}

uint64_t ef_home(const struct tm_params *params, const uint8_t key[TM_MAX_KEY])
{
	return ef_knobs(params)->crowd ? UINT64_MAX : kv_hash(key);
}

/*
 * Ample: a quarter stays free when everything has been written, so that cleaning never
 * starts by itself. Tight: a version of each key and three more.
 */
uint64_t ef_log_len(const struct tm_params *params)
{
	uint64_t object = sizeof(struct ef_object) + kv_round_up(params->max_vlen, TM_LINE);
	uint64_t objects = params->updates + params->updates / 3 + 2;

	if (ef_knobs(params)->room)
		objects = params->keys + 3;
	return TM_LINE + objects * object;
}

uint64_t ef_timeout_ns(const struct tm_params *params)
{
	static const uint64_t ns[] = {10000000000, 1000000};

	return ns[ef_knobs(params)->timeout];
}

static uint64_t table_len(const struct tm_params *params)
{
	return ef_slots(params) * sizeof(struct ef_entry);
}

size_t ef_pm_bytes(const struct tm_params *params)
{
	return table_len(params) + 2 * ef_log_len(params);
}

unsigned ef_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	uint64_t log = ef_log_len(params);
	const struct tm_region all[] = {
		{"table", 0, table_len(params)},
		{"log-a", table_len(params), log},
		{"log-b", table_len(params) + log, log},
	};
	unsigned n = 0;

	for (; n < max && n < 3; n++)
		out[n] = all[n];
	return n;
}

void ef_pool_map(struct ef_pool *pool, const struct tm_params *params, uint8_t *pm)
{
	pool->params = params;
	pool->slots = ef_slots(params);
	pool->table = (struct ef_entry *)pm;
	pool->log_len = ef_log_len(params);
	pool->log[0] = pm + table_len(params);
	pool->log[1] = pool->log[0] + pool->log_len;
	pool->header = (struct ef_header *)pool->log[0];
	pool->align = ef_knobs(params)->packed ? 8 : TM_LINE;
	assert(pool->log_len % TM_LINE == 0 && !(pool->slots & (pool->slots - 1)));
}

struct ef_now ef_pool_now(const struct ef_pool *pool)
{
	uint64_t state = pool->header->state;
	struct ef_now now;

	now.stage = state & EF_STATE_CLEAN ? EF_MERGE : EF_REST;
	now.from = state & EF_STATE_LOG;
	now.to = !now.from;
	return now;
}

void ef_set_mark(const struct tm_params *params, struct ef_entry *entry, unsigned log)
{
	if (ef_knobs(params)->split_mark)
		entry->mark = log;
	else
		entry->ctl = (entry->ctl & ~EF_MARK) | log;
}

bool ef_fits(const struct ef_pool *pool, uint64_t place)
{
	uint64_t off = ef_off_of(place);

	if (off < TM_LINE || off % pool->align || off > pool->log_len - sizeof(struct ef_object))
		return false;
	off += ef_bug(pool->params, EF_BUG_FITS_EXACT);
	return ef_at(pool, place)->vlen <= pool->log_len - sizeof(struct ef_object) - off;
}

uint64_t ef_newest(const struct ef_pool *pool, const struct ef_now *now,
		   const struct ef_entry *entry)
{
	unsigned mark = ef_mark(pool->params, entry);
	uint64_t here = ef_place(mark, __atomic_load_n(&entry->off[mark], __ATOMIC_ACQUIRE)), there;

	/* An entry whose mark has been flipped has nothing in the old log that counts. */
	if (!ef_moving(now) || mark == now->to)
		return here;
	there = ef_place(now->to, __atomic_load_n(&entry->off[now->to], __ATOMIC_ACQUIRE));
	if (!here || !there)
		return here ? here : there;
	return ef_newer(pool->params, ef_at(pool, here)->stamp, ef_at(pool, there)->stamp) ? here
											   : there;
}

uint64_t ef_pre(const struct ef_pool *pool, const struct ef_now *now, const struct ef_entry *entry,
		const struct ef_object *object)
{
	unsigned log = ef_mark(pool->params, entry);

	if (!ef_knobs(pool->params)->split_trans)
		return object->pre & ~EF_TRANS;
	if (ef_moving(now) && log == now->from && object->kind & EF_KIND_TRANS)
		log = now->to;
	return ef_place(log, object->pre);
}

uint64_t ef_older(const struct ef_pool *pool, const struct ef_now *now,
		  const struct ef_entry *entry, uint64_t place)
{
	const struct ef_object *object = ef_at(pool, place);
	uint64_t pre = ef_pre(pool, now, entry, object);

	if (!pre || !ef_fits(pool, pre) ||
	    !ef_newer(pool->params, object->stamp, ef_at(pool, pre)->stamp))
		return 0;
	return pre;
}

bool ef_trans(const struct ef_pool *pool, const struct ef_now *now, uint64_t pre)
{
	if (!pre || !ef_moving(now) || ef_log_of(pre) != now->to)
		return false;
	return now->stage == EF_COMPRESS || ef_knobs(pool->params)->split_trans;
}

void ef_set_pre(const struct ef_pool *pool, const struct ef_now *now, struct ef_object *object,
		uint64_t pre)
{
	bool trans = ef_trans(pool, now, pre);

	if (!ef_knobs(pool->params)->split_trans) {
		__atomic_store_n(&object->pre, pre | (trans ? EF_TRANS : 0), __ATOMIC_RELEASE);
		pmem_flush(&object->pre, sizeof(object->pre));
		return;
	}
	__atomic_store_n(&object->pre, ef_off_of(pre), __ATOMIC_RELEASE);
	pmem_persist(&object->pre, sizeof(object->pre));
	__atomic_store_n(&object->kind, ef_kind(pool->params, object) | (trans ? EF_KIND_TRANS : 0),
			 __ATOMIC_RELEASE);
	pmem_persist(&object->kind, sizeof(object->kind));
}

bool ef_crc_ok(const struct ef_object *object)
{
	return kv_crc(object->value, object->vlen) == object->crc;
}

unsigned ef_kind(const struct tm_params *params, const struct ef_object *object)
{
	return ef_knobs(params)->split_trans ? object->kind & ~EF_KIND_TRANS : object->kind;
}

/* Linear probing; entries are never given back, so a free one ends the search. */
struct ef_entry *ef_lookup(const struct ef_pool *pool, const uint8_t key[TM_MAX_KEY], bool *found)
{
	uint64_t first = ef_home(pool->params, key);

	*found = false;
	for (uint64_t i = 0; i < pool->slots; i++) {
		struct ef_entry *entry = &pool->table[(first + i) & (pool->slots - 1)];

		if (!(entry->ctl & EF_USED))
			return entry;
		*found = rt_check(memcmp(entry->key, key, TM_MAX_KEY) == 0);
		if (*found)
			return entry;
	}
	return NULL;
}

void ef_copy(const struct ef_pool *pool, uint64_t place, const struct ef_object *object,
	     uint16_t state)
{
	struct ef_object *copy = ef_at(pool, place);

	copy->vlen = object->vlen;
	copy->crc = object->crc;
	copy->pre = 0;
	copy->next = 0;
	copy->state = state;
	copy->kind = (uint8_t)ef_kind(pool->params, object);
	copy->klen = object->klen;
	copy->stamp = object->stamp;
	memcpy(copy->key, object->key, sizeof(copy->key));
	memcpy(copy->value, object->value, object->vlen);
	if (ef_bug(pool->params, EF_BUG_COPY_NO_FLUSH))
		return;
	pmem_flush(copy, sizeof(*copy) + copy->vlen);
}
