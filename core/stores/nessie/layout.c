/* SPDX-License-Identifier: BSD-3-Clause */
/* Words, entries, candidate slots. See nessie.h. */
#include "core/rt/rt.h"
#include "core/stores/nessie/nessie.h"

#define SLOTS_PER_KEY 32 /* that all of a key's candidates are other keys' hardly occurs */
#define LINE_SLOTS    (TM_LINE / sizeof(uint64_t))
#define TAG_SHIFT     48
#define TAG_MASK      0x3fffull
#define NODE	      (1ull << 40) /* the only one */
#define NODE_MASK     (0xffull << 40)
#define LINE_MASK     (NODE - 1)

/* ------------------------------------------------------------------ pool */

static struct nessie_pool shape(const struct tm_params *params)
{
	uint64_t keys = params->keys ? params->keys : 1;
	size_t bytes = sizeof(struct nessie_entry) + TM_MAX_KEY + params->max_vlen;
	struct nessie_pool pool = {.crowded = params->knob[CROWD], .shares = params->clients};

	pool.slots = kv_pow2(pool.crowded ? keys + 2 * LINE_SLOTS : SLOTS_PER_KEY * keys);
	/* A share may have all keys' entries. As many again wait for their grace to pass. */
	pool.entries = params->knob[SHARE] == SHARE_TIGHT ? keys + 1 : 2 * keys + 2;
	if (pool.entries > params->updates)
		pool.entries = params->updates;
	pool.entry_lines = kv_lines((uint32_t)bytes);
	return pool;
}

static size_t index_bytes(const struct nessie_pool *pool)
{
	return kv_round_up(pool->slots * sizeof(*pool->index), TM_LINE);
}

static size_t data_bytes(const struct nessie_pool *pool)
{
	return pool->shares * pool->entries * pool->entry_lines * TM_LINE;
}

size_t nessie_pm_bytes(const struct tm_params *params)
{
	struct nessie_pool pool = shape(params);

	return index_bytes(&pool) + data_bytes(&pool);
}

unsigned nessie_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	struct nessie_pool pool = shape(params);
	const struct tm_region all[] = {{"index", 0, index_bytes(&pool)},
					{"data", index_bytes(&pool), data_bytes(&pool)}};

	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

struct nessie_pool nessie_pool_at(const struct tm_params *params, uint8_t *pm)
{
	struct nessie_pool pool = shape(params);

	if (pm) {
		pool.index = (uint64_t *)pm;
		pool.data = pm + index_bytes(&pool);
	}
	return pool;
}

/* Crowded, two keys whose last characters follow one another have the same two slots, in two lines,
 * and all keys have the same tag. */
static struct nessie_place crowded_place(const struct nessie_pool *pool,
					 const uint8_t key[TM_MAX_KEY])
{
	unsigned klen = TM_MAX_KEY;

	while (klen > 1 && !key[klen - 1])
		klen--;
	uint64_t first = (uint64_t)(uint8_t)(key[klen - 1] - '1') & ~1ull & (pool->slots / 2 - 1);
	return (struct nessie_place){2, {first, first + pool->slots / 2}, 0};
}

struct nessie_place nessie_place_of(const struct nessie_pool *pool, const uint8_t key[TM_MAX_KEY])
{
	uint64_t hash = kv_hash(key), mask = pool->slots - 1;
	uint64_t first = hash & mask, second = hash >> 24 & mask;
	struct nessie_place place = {NESSIE_CANDIDATES, {first}, hash >> 50};

	if (pool->crowded)
		return crowded_place(pool, key);
	for (unsigned i = 1; i < NESSIE_CANDIDATES; i++, second++) {
		second = second == first ? second + 1 : second;
		place.slot[i] = second & mask;
	}
	return place;
}

/* ----------------------------------------------------------------- words */

uint64_t nessie_word(const struct nessie_pool *pool, const struct nessie_place *place,
		     uint64_t entry)
{
	return NESSIE_USED | place->tag << TAG_SHIFT | NODE | entry * pool->entry_lines;
}

bool nessie_owned(uint64_t word)
{
	return (word & NODE_MASK) != 0;
}

uint64_t nessie_tag(uint64_t word)
{
	return word >> TAG_SHIFT & TAG_MASK;
}

bool nessie_names(const struct nessie_pool *pool, uint64_t word, uint64_t *entry)
{
	uint64_t line = word & LINE_MASK;

	*entry = line / pool->entry_lines;
	return (word & NODE_MASK) == NODE && line % pool->entry_lines == 0 &&
	       *entry < pool->shares * pool->entries;
}

uint64_t nessie_entry_off(const struct nessie_pool *pool, uint64_t entry)
{
	return entry * pool->entry_lines * TM_LINE;
}

/* --------------------------------------------------------------- entries */

uint64_t nessie_crc(const struct nessie_entry *entry)
{
	uint64_t lengths = kv_crc(entry, offsetof(struct nessie_entry, crc));

	return lengths << 32 | kv_crc(entry->bytes, (size_t)entry->klen + entry->vlen);
}

bool nessie_sane(const struct nessie_entry *entry, uint32_t max_vlen)
{
	return entry->klen && entry->klen <= TM_MAX_KEY && entry->vlen <= max_vlen;
}

bool nessie_whole(const struct nessie_entry *entry, uint32_t max_vlen)
{
	return nessie_sane(entry, max_vlen) && rt_check(entry->crc == nessie_crc(entry));
}
