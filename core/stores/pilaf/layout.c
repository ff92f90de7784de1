/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries and their checksums. See pilaf.h. */
#include <libpmem.h>
#include "core/rt/rt.h"
#include "core/stores/pilaf/pilaf.h"

/* ------------------------------------------------------------------ pool */

/* A quarter full, hardly a key finds its entries taken by others. */
static struct kv_table table_at(const struct tm_params *params)
{
	struct kv_table table = kv_table_at(params, NULL);

	if (!table.crowded)
		table.slots *= 2;
	return table;
}

static size_t table_bytes(const struct tm_params *params)
{
	return table_at(params).slots * sizeof(struct pilaf_entry);
}

/* Lines for as many pairs as there are updates, with spare room. */
static uint64_t lines(const struct tm_params *params)
{
	uint32_t longest = TM_MAX_KEY + params->max_vlen;

	return params->updates * kv_lines(longest + longest / 4);
}

size_t pilaf_pm_bytes(const struct tm_params *params)
{
	return TM_LINE + table_bytes(params) + lines(params) * TM_LINE;
}

unsigned pilaf_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	size_t table = table_bytes(params);
	const struct tm_region all[] = {{"undo", 0, TM_LINE},
					{"table", TM_LINE, table},
					{"pairs", TM_LINE + table, lines(params) * TM_LINE}};

	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

static uint64_t probes(const struct kv_table *table)
{
	uint64_t n = table->slots / 16;

	n = n > PILAF_PROBES ? n : PILAF_PROBES;
	n = n < PILAF_PROBES_MOST ? n : PILAF_PROBES_MOST;
	/* Where all keys want the same entries, so few are not enough. */
	if (table->crowded)
		n = PILAF_PROBES_CROWDED;
	return n < table->slots ? n : table->slots;
}

struct pilaf_pool pilaf_pool_at(const struct tm_params *params, uint8_t *pm)
{
	struct kv_table table = table_at(params);
	struct pilaf_pool pool = {.table = table, .probes = probes(&table), .lines = lines(params)};

	if (pm) {
		pool.undo = (struct pilaf_entry *)pm;
		pool.entry = pool.undo + 1;
		pool.pairs = pm + TM_LINE + table_bytes(params);
	}
	return pool;
}

/* What the last characters of a key of 31 or 32 bytes say is in the hash's bits from 16 or 24 on
 * only: these are spread over the bits from which the slot is taken. */
uint64_t pilaf_slot(const struct pilaf_pool *pool, const uint8_t key[TM_MAX_KEY], uint64_t probe)
{
	uint64_t home = kv_table_home(&pool->table, key);

	if (!pool->table.crowded)
		home = home * 0x9e3779b97f4a7c15 >> 32;
	return (home + probe) & (pool->table.slots - 1);
}

int pilaf_format(const struct tm_env *env)
{
	struct pilaf_pool pool = pilaf_pool_at(env->params, env->pm);

	for (uint64_t i = 0; i < pool.table.slots; i++)
		pool.entry[i].crc2 = pilaf_crc2(&pool.entry[i]);
	return kv_format(env);
}

/* ------------------------------------------------------------- checksums */

bool pilaf_in_pool(const struct pilaf_pool *pool, const struct pilaf_entry *entry,
		   uint32_t max_vlen)
{
	uint64_t line = entry->addr / TM_LINE;

	return entry->addr % TM_LINE == 0 && entry->klen && entry->klen <= TM_MAX_KEY &&
	       entry->vlen <= max_vlen && entry->klen + entry->vlen <= entry->cap &&
	       line <= pool->lines && kv_lines(entry->cap) <= pool->lines - line;
}

uint64_t pilaf_crc1(const void *pair, const struct pilaf_entry *entry)
{
	return kv_crc(pair, (size_t)entry->klen + entry->vlen);
}

uint64_t pilaf_crc2(const struct pilaf_entry *entry)
{
	return kv_crc(entry, offsetof(struct pilaf_entry, crc2));
}

bool pilaf_entry_whole(const struct pilaf_entry *entry, const struct tm_params *params)
{
	return params->knob[NO_CRC2] || rt_check(entry->crc2 == pilaf_crc2(entry));
}
