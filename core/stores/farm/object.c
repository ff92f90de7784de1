/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects, and what lies where. See farm.h. */
#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/farm/farm.h"

#define LINE_DATA (TM_LINE - sizeof(uint16_t))

static unsigned further_lines(uint32_t vlen)
{
	const size_t first = sizeof(((struct object *)0)->first);
	return vlen <= first ? 0 : (unsigned)((vlen - first + LINE_DATA - 1) / LINE_DATA);
}

struct farm_pool farm_pool_at(const struct tm_params *params, uint8_t *pm)
{
	struct farm_pool pool = {.head = (struct farm_head *)pm,
				 .mark = (struct mark *)(pm + TM_LINE),
				 .senders = params->clients + 1,
				 .slots = (unsigned)kv_pow2(2 * params->keys)};
	pool.object_bytes = (1 + further_lines(params->max_vlen)) * (size_t)TM_LINE;
	pool.region_bytes = pool.slots * pool.object_bytes;
	pool.record_bytes = sizeof(struct record) +
			    TM_TXN_OPS * (sizeof(struct entry) +
					  kv_round_up(params->max_vlen, TM_LINE)) +
			    TM_LINE;
	pool.log_bytes = pool.senders * FARM_PLACES * pool.record_bytes;
	pool.region[0] = (uint8_t *)(pool.mark + pool.senders);
	pool.region[1] = pool.region[0] + pool.region_bytes;
	pool.log = pool.region[1] + pool.region_bytes;
	return pool;
}

size_t farm_pm_bytes(const struct tm_params *params)
{
	const struct farm_pool pool = farm_pool_at(params, NULL);
	return (size_t)(pool.log - (uint8_t *)pool.head) + pool.log_bytes;
}

unsigned farm_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	const struct farm_pool pool = farm_pool_at(params, NULL);
	const uint64_t marks = pool.senders * sizeof(struct mark), zero = TM_LINE + marks,
		       one = zero + pool.region_bytes;
	const struct tm_region all[] = {{"head", 0, TM_LINE},
					{"mark", TM_LINE, marks},
					{"region0", zero, pool.region_bytes},
					{"region1", one, pool.region_bytes},
					{"log", one + pool.region_bytes, pool.log_bytes}};
	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

struct object *farm_object(const struct farm_pool *pool, unsigned region, unsigned slot)
{
	return (struct object *)(pool->region[region] + slot * pool->object_bytes);
}

unsigned farm_region(const uint8_t key[TM_MAX_KEY])
{
	return kv_hash(key) & 1;
}

unsigned farm_slot(const struct farm_pool *pool, const uint8_t key[TM_MAX_KEY], unsigned nth)
{
	return (unsigned)((kv_hash(key) >> 8) + nth) % pool->slots;
}

uint64_t farm_next_head(uint64_t seen, bool value)
{
	uint64_t incarnation = seen >> 2 & 0xff;
	if (value && !(seen & HEAD_VALUE))
		incarnation = (incarnation + 1) & 0xff;
	return (farm_version(seen) + 1) << HEAD_VERSION | incarnation << 2 |
	       (value ? HEAD_VALUE : 0);
}

bool farm_is_whole(const struct object *object)
{
	const uint8_t *line = (const uint8_t *)(object + 1);
	for (unsigned n = further_lines(object->vlen); n--; line += TM_LINE) {
		uint16_t lv;
		memcpy(&lv, line, sizeof(lv));
		if (lv != (uint16_t)farm_version(object->head))
			return false;
	}
	return true;
}

void farm_value(const struct object *object, uint8_t *value)
{
	const uint8_t *line = (const uint8_t *)(object + 1) + sizeof(uint16_t);
	uint32_t left = object->vlen, n = sizeof(object->first);
	n = left < n ? left : n;
	memcpy(value, object->first, n);
	for (; left -= n; line += TM_LINE) {
		value += n;
		n = left < LINE_DATA ? left : LINE_DATA;
		memcpy(value, line, n);
	}
}

void farm_install(struct object *object, const struct entry *entry)
{
	const uint8_t *value = (const uint8_t *)(entry + 1);
	const uint16_t lv = (uint16_t)farm_version(entry->head);
	uint8_t *line = (uint8_t *)(object + 1);
	uint32_t left = entry->vlen == FARM_DELETED ? 0 : entry->vlen, n;

	__atomic_store_n(&object->head, object->head | HEAD_LOCK, __ATOMIC_SEQ_CST);
	object->vlen = left;
	memcpy(object->key, entry->key, sizeof(object->key));
	n = left < sizeof(object->first) ? left : (uint32_t)sizeof(object->first);
	memcpy(object->first, value, n);
	for (left -= n, value += n; left; left -= n, value += n, line += TM_LINE) {
		memcpy(line, &lv, sizeof(lv));
		n = left < LINE_DATA ? left : (uint32_t)LINE_DATA;
		memcpy(line + sizeof(lv), value, n);
	}
	__atomic_store_n(&object->head, entry->head, __ATOMIC_SEQ_CST);
}

/* The regions' first copies are at the first server and its next, at the second and its next. */
static uint32_t first_servers(unsigned region)
{
	return 3u << region;
}

int farm_format(const struct tm_env *env)
{
	const struct farm_pool pool = farm_pool_at(env->params, env->pm);
	struct rt_config now;
	do {
		rt_config_get(&now);
		now.epoch++;
		for (unsigned r = 0; r < FARM_REGIONS; r++) {
			now.part[r].servers = first_servers(r);
			now.part[r].primary = r;
		}
	} while (!env->server && rt_config_set(&now));
	for (unsigned r = 0; r < FARM_REGIONS; r++)
		if (!(first_servers(r) >> env->server & 1))
			pool.head->copying |= 1ull << r;
	return kv_format(env);
}

/* What was locked when the power failed is decided by all members together, when they serve. */
int farm_recover(const struct tm_env *env)
{
	const struct farm_pool pool = farm_pool_at(env->params, env->pm);
	for (unsigned r = 0; r < FARM_REGIONS; r++)
		for (unsigned s = 0; s < pool.slots; s++) {
			struct object *object = farm_object(&pool, r, s);
			if (!(object->head & HEAD_LOCK))
				continue;
			object->head &= ~HEAD_LOCK;
			pmem_persist(&object->head, sizeof(object->head));
		}
	return 0;
}

/* A record that is not dropped has the object's bytes. */
static bool is_in_log(const struct farm_pool *pool, const struct tm_params *params, unsigned r,
		      unsigned s)
{
	for (unsigned client = 1; client < pool->senders; client++)
		for (unsigned place = 0; place < FARM_PLACES; place++) {
			const struct record *record = farm_place(pool, client, place);
			const struct entry *e = NULL;
			if (!farm_has_record(pool, params, client, place) ||
			    record->counter <= pool->mark[client].counter)
				continue;
			while ((e = farm_entry(record, e)))
				if (e->region == r && e->slot == s)
					return true;
		}
	return false;
}

void farm_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	const struct farm_pool pool = farm_pool_at(env->params, env->pm);
	for (unsigned r = 0; r < FARM_REGIONS; r++) {
		if (pool.head->copying >> r & 1)
			continue;
		for (unsigned s = 0; s < pool.slots; s++) {
			const struct object *object = farm_object(&pool, r, s);
			const bool fits = object->vlen <= env->params->max_vlen;
			if ((fits && farm_is_whole(object)) || is_in_log(&pool, env->params, r, s))
				continue;
			if (!fits)
				fsck->bad(fsck, "region %u, slot %u: a length of %u", r, s,
					  object->vlen);
			else
				fsck->bad(fsck, "region %u, slot %u: lines of several versions", r,
					  s);
		}
	}
}

/* --- what a server has of a key --- */

static const struct object *find_object(const struct farm_pool *pool, const uint8_t *key)
{
	for (unsigned n = 0; n < pool->slots; n++) {
		const struct object *object = farm_object(pool, farm_region(key),
							  farm_slot(pool, key, n));
		if (!farm_version(object->head))
			break;
		if (!memcmp(object->key, key, sizeof(object->key)))
			return object;
	}
	return NULL;
}

/* A backup applies its last record when the client goes on. */
static const struct entry *find_unapplied(const struct farm_pool *pool,
					  const struct tm_params *params, const uint8_t *key)
{
	const struct entry *newest = NULL;
	for (unsigned i = FARM_PLACES; i < pool->senders * FARM_PLACES; i++) {
		const unsigned client = i / FARM_PLACES, place = i % FARM_PLACES;
		const struct record *record = farm_place(pool, client, place);
		const struct entry *e = NULL;
		if (!farm_has_record(pool, params, client, place) ||
		    record->type != COMMIT_BACKUP || record->counter <= pool->mark[client].counter)
			continue;
		while ((e = farm_entry(record, e)))
			if (!memcmp(e->key, key, sizeof(e->key)) &&
			    (!newest || farm_version(e->head) > farm_version(newest->head)))
				newest = e;
	}
	return newest;
}

int farm_dump(const struct tm_env *env, const void *key, size_t klen, struct tm_dump *out)
{
	const struct farm_pool pool = farm_pool_at(env->params, env->pm);
	uint8_t padded[TM_MAX_KEY];
	struct rt_config now;
	int rc = kv_key_pad(padded, key, klen);
	if (rc)
		return rc;
	/* Who cannot hear who has copies cannot say what they are. */
	if (rt_config_get(&now) || !(now.part[farm_region(padded)].servers >> env->server & 1))
		return -ENODATA;
	const struct object *object = find_object(&pool, padded);
	const struct entry *e = find_unapplied(&pool, env->params, padded);
	if (e && object && farm_version(e->head) <= farm_version(object->head))
		e = NULL;
	const uint64_t head = e ? e->head : object ? object->head : 0;
	if (!(head & HEAD_VALUE))
		return -ENOENT;
	out->version = farm_version(head);
	out->vlen = e ? e->vlen : object->vlen;
	if (out->vlen > out->cap)
		return -EIO;
	if (e)
		memcpy(out->value, e + 1, e->vlen);
	else
		farm_value(object, out->value);
	return 0;
}
