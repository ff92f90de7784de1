/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backend without a log (RK III-B): a hash table in PM, which is updated in the metadata phase
 * of a PUT. With nothing to undo from, an entry keeps the object before the current one. See
 * rdmp_kv.h.
 */
#include <libpmem.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/rdmp_kv/rdmp_kv.h"

size_t rdmp_table_bytes(const struct tm_params *params)
{
	return kv_pow2(2ull * params->keys) * sizeof(struct rdmp_entry);
}

struct rdmp_entry *rdmp_entry_find(const struct rdmp_pool *pool, const uint8_t key[TM_MAX_KEY])
{
	uint64_t at = kv_hash(key);

	for (uint64_t i = 0; i < pool->entries; i++, at++) {
		struct rdmp_entry *entry = &pool->table[at & (pool->entries - 1)];

		if (!entry->klen || !memcmp(entry->key, key, TM_MAX_KEY))
			return entry;
	}
	return NULL;
}

/* ------------------------------------------------------------ references */

/* 0: of no record. */
static uint64_t refer(const struct rdmp_pool *pool, uint32_t number)
{
	if (!number)
		return 0;
	const struct rdmp_record *record = rdmp_record(pool, number);
	if (record->kind == RDMP_DEL)
		return (uint64_t)RDMP_DELETED << 32 | 1;
	return (uint64_t)record->vlen << 32 | (record->off / TM_LINE + 1);
}

/* The record that an entry's reference stands for. */
static struct rdmp_record referred(const struct rdmp_entry *entry, uint64_t reference)
{
	uint32_t vlen = (uint32_t)(reference >> 32);
	struct rdmp_record record = {.off = ((uint32_t)reference - 1ull) * TM_LINE,
				     .klen = entry->klen,
				     .vlen = vlen,
				     .kind = RDMP_PUT};

	memcpy(record.key, entry->key, sizeof(record.key));
	if (vlen == RDMP_DELETED) {
		record.off = record.vlen = 0;
		record.kind = RDMP_DEL;
	}
	return record;
}

static bool is_whole(const struct rdmp_pool *pool, const struct rdmp_record *record)
{
	return record->kind == RDMP_DEL || rdmp_flags(pool, record)[0] == 1;
}

/* --------------------------------------------------------------- entries */

static uint32_t newest_whole(const struct rdmp_pool *pool, const struct rdmp_index *index,
			     uint32_t number)
{
	while (number && !is_whole(pool, rdmp_record(pool, number)))
		number = index->older[number];
	return number;
}

/* An entry is one line, which comes to memory in the order of its stores. */
void rdmp_entry_update(const struct rdmp_pool *pool, const struct rdmp_index *index,
		       uint32_t number)
{
	const struct rdmp_record *record = rdmp_record(pool, number);
	struct rdmp_entry *entry = rdmp_entry_find(pool, record->key);
	uint32_t newest = rdmp_index_find(index, record->key)->newest;

	if (!entry->klen) {
		memcpy(entry->key, record->key, sizeof(entry->key));
		entry->klen = record->klen;
	}
	if (!pool->params->knob[KEEP_PREV])
		entry->before = refer(pool, newest_whole(pool, index, index->older[newest]));
	entry->current = refer(pool, newest);
	if (!has_bug(pool->params, record_unflushed))
		pmem_persist(entry, sizeof(*entry));
}

void rdmp_table_load(struct rdmp_pool *pool, struct rdmp_index *index)
{
	for (uint64_t i = 0; i < pool->entries; i++) {
		const struct rdmp_entry *entry = &pool->table[i];

		if (!entry->klen || !entry->current || index->records == pool->records)
			continue;
		*rdmp_record(pool, ++index->records) = referred(entry, entry->current);
		rdmp_index_add(index, pool, index->records);
	}
}

/* The current object stays if it is whole, and can be read then; else the one before it is current
 * again. */
static void recover_entry(const struct rdmp_pool *pool, struct rdmp_entry *entry)
{
	struct rdmp_record record = referred(entry, entry->current);

	if (!is_whole(pool, &record)) {
		entry->current = entry->before;
		record = referred(entry, entry->current);
	}
	pmem_persist(entry, sizeof(*entry));
	if (!entry->current || record.kind == RDMP_DEL)
		return;
	pmem_persist(rdmp_flags(pool, &record), 1);
	if (!pool->params->knob[RECOVER_VF])
		rdmp_flags(pool, &record)[1] = 1;
}

void rdmp_table_recover(const struct rdmp_pool *pool)
{
	for (uint64_t i = 0; i < pool->entries; i++)
		if (pool->table[i].klen && pool->table[i].current)
			recover_entry(pool, &pool->table[i]);
}
