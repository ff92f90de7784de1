/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks and their records. See nvfs.h. */
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/nvfs/nvfs.h"

size_t nvfs_record_bytes(size_t vlen)
{
	return sizeof(struct record) + kv_round_up(vlen, 8);
}

struct nvfs_pool nvfs_pool_at(const struct tm_params *params, uint8_t *pm)
{
	const size_t records = (params->updates + 1) * nvfs_record_bytes(params->max_vlen);
	return (struct nvfs_pool){
		.generation = (uint64_t *)pm,
		.blocks_at = pm + TM_LINE,
		.blocks = params->keys + 1,
		.block_bytes = sizeof(struct block) + kv_round_up(records, TM_LINE),
	};
}

size_t nvfs_pm_bytes(const struct tm_params *params)
{
	const struct nvfs_pool pool = nvfs_pool_at(params, NULL);
	return TM_LINE + pool.blocks * pool.block_bytes;
}

unsigned nvfs_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	const struct tm_region all[] = {{"mark", 0, TM_LINE},
					{"blocks", TM_LINE, nvfs_pm_bytes(params) - TM_LINE}};
	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

struct block *nvfs_block(const struct nvfs_pool *pool, uint32_t i)
{
	return (struct block *)(pool->blocks_at + i * pool->block_bytes);
}

static uint32_t crc_of(const struct record *record)
{
	struct record header = *record;
	header.crc = kv_crc(record + 1, record->vlen);
	return kv_crc(&header, sizeof(header));
}

void nvfs_record(void *to, enum kv_op op, const void *value, uint32_t vlen)
{
	struct record *record = to;
	memset(to, 0, nvfs_record_bytes(vlen));
	record->vlen = vlen;
	record->op = op;
	if (vlen)
		memcpy(record + 1, value, vlen);
	record->crc = crc_of(record);
}

const struct record *nvfs_last(const uint8_t *records, size_t len, size_t *end)
{
	const struct record *last = NULL;
	for (*end = 0; len - *end >= sizeof(struct record);) {
		const struct record *record = (const struct record *)(records + *end);
		if ((record->op != KV_PUT && record->op != KV_DEL) ||
		    nvfs_record_bytes(record->vlen) > len - *end ||
		    !rt_check(record->crc == crc_of(record)))
			break;
		last = record;
		*end += nvfs_record_bytes(record->vlen);
	}
	return last;
}

void nvfs_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	const struct nvfs_pool pool = nvfs_pool_at(env->params, env->pm);
	if (*pool.generation == NVFS_COPYING)
		return;
	for (uint32_t i = 0; i < pool.blocks; i++) {
		const struct block *block = nvfs_block(&pool, i);
		size_t end;
		if (block->len > pool.block_bytes - sizeof(*block)) {
			fsck->bad(fsck, "block %u: a length of %llu", i,
				  (unsigned long long)block->len);
			continue;
		}
		nvfs_last((const uint8_t *)(block + 1), block->len, &end);
		if (end != block->len)
			fsck->bad(fsck, "block %u: of %llu bytes, those from %zu on are no record",
				  i, (unsigned long long)block->len, end);
		for (uint32_t k = 0; k < i && block->len; k++)
			if (nvfs_block(&pool, k)->len &&
			    !memcmp(nvfs_block(&pool, k)->key, block->key, TM_MAX_KEY))
				fsck->bad(fsck, "blocks %u and %u have the same key", k, i);
	}
}
