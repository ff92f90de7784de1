/* SPDX-License-Identifier: BSD-3-Clause */
/* The area: slots with two buffers each. See mojim.h. */
#include <errno.h>
#include <string.h>
#include "core/stores/mojim/mojim.h"

static size_t buffer_bytes(const struct tm_params *params)
{
	return kv_round_up(params->max_vlen, TM_LINE);
}

static size_t slot_bytes(const struct tm_params *params)
{
	return sizeof(struct slot) + 2 * buffer_bytes(params);
}

size_t mojim_record_bytes(const struct tm_params *params)
{
	return sizeof(struct record) + buffer_bytes(params) + sizeof(struct slot) + TM_LINE;
}

/* How large its parts are; where they are is not known yet. */
static struct mojim_pool pool_sizes(const struct tm_params *params)
{
	const uint64_t records = params->updates + params->keys;
	return (struct mojim_pool){.records = records,
				   .area_bytes = (params->keys + 1) * slot_bytes(params),
				   .log_bytes = records * mojim_record_bytes(params)};
}

struct mojim_pool mojim_pool_at(const struct tm_params *params, uint8_t *pm)
{
	struct mojim_pool pool = pool_sizes(params);
	pool.head = (struct head *)pm;
	pool.area = pm + TM_LINE;
	pool.log = pool.area + pool.area_bytes;
	return pool;
}

size_t mojim_pm_bytes(const struct tm_params *params)
{
	const struct mojim_pool pool = pool_sizes(params);
	return TM_LINE + pool.area_bytes + pool.log_bytes;
}

unsigned mojim_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	const struct mojim_pool pool = mojim_pool_at(params, NULL);
	const struct tm_region all[] = {{"head", 0, TM_LINE},
					{"area", TM_LINE, pool.area_bytes},
					{"log", TM_LINE + pool.area_bytes, pool.log_bytes}};
	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

struct slot *mojim_slot(const struct mojim_pool *pool, const struct tm_params *params,
			const uint8_t *key)
{
	for (size_t off = 0; off < pool->area_bytes; off += slot_bytes(params)) {
		struct slot *slot = (struct slot *)(pool->area + off);
		if (!slot->version || !memcmp(slot->key, key, TM_MAX_KEY))
			return slot;
	}
	return NULL;
}

struct slot *mojim_slot_after(const struct mojim_pool *pool, const struct tm_params *params,
			      struct slot *slot, unsigned later)
{
	uint8_t *at = (uint8_t *)slot + later * slot_bytes(params);
	return at < pool->area + pool->area_bytes ? (struct slot *)at : NULL;
}

uint8_t *mojim_buffer(const struct slot *slot, const struct tm_params *params, unsigned which)
{
	return (uint8_t *)(slot + 1) + which * buffer_bytes(params);
}

bool mojim_has_value(const struct slot *slot)
{
	return slot && slot->version && !(slot->version & 2);
}

void mojim_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	const struct mojim_pool pool = mojim_pool_at(env->params, env->pm);
	bool free_slot = false;
	if (pool.head->epoch == MOJIM_COPYING)
		return;
	if (pool.head->seq > pool.records)
		fsck->bad(fsck, "head: %llu, and there is room for %llu records",
			  (unsigned long long)pool.head->seq, (unsigned long long)pool.records);
	for (size_t off = 0; off < pool.area_bytes; off += slot_bytes(env->params)) {
		const struct slot *slot = (const struct slot *)(pool.area + off);
		if (slot->version && free_slot)
			fsck->bad(fsck, "slot +0x%zx is after a free one", off);
		free_slot |= !slot->version;
		if (mojim_has_value(slot) && slot->vlen[slot->version & 1] > env->params->max_vlen)
			fsck->bad(fsck, "slot +0x%zx: a length of %u", off,
				  slot->vlen[slot->version & 1]);
	}
}

int mojim_dump(const struct tm_env *env, const void *key, size_t klen, struct tm_dump *out)
{
	const struct mojim_pool pool = mojim_pool_at(env->params, env->pm);
	struct kv_req req;
	int rc = kv_req_init(&req, KV_GET, key, klen);
	const struct slot *slot = rc ? NULL : mojim_slot(&pool, env->params, req.key);

	if (rc || !mojim_has_value(slot))
		return rc ? rc : -ENOENT;
	const unsigned which = slot->version & 1;
	out->version = slot->version >> 2;
	out->vlen = slot->vlen[which];
	if (out->vlen > out->cap)
		return -EMSGSIZE;
	memcpy(out->value, mojim_buffer(slot, env->params, which), out->vlen);
	return 0;
}
