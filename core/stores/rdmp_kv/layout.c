/* SPDX-License-Identifier: BSD-3-Clause */
/* Records, objects, and the index over them. See rdmp_kv.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/stores/kv_small.h"
#include "core/stores/rdmp_kv/rdmp_kv.h"

/* ------------------------------------------------------------------ pool */

static size_t log_bytes(const struct tm_params *params)
{
	if (params->knob[BACKEND] == NO_LOG)
		return rdmp_table_bytes(params);
	return params->updates * sizeof(struct rdmp_record);
}

static uint64_t lines(const struct tm_params *params)
{
	return params->updates * rdmp_object_lines(params, TM_MAX_KEY, params->max_vlen);
}

size_t rdmp_pm_bytes(const struct tm_params *params)
{
	return log_bytes(params) + lines(params) * TM_LINE;
}

unsigned rdmp_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	const struct tm_region all[] = {
		{params->knob[BACKEND] == NO_LOG ? "table" : "log", 0, log_bytes(params)},
		{"objects", log_bytes(params), lines(params) * TM_LINE}};

	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

struct rdmp_pool rdmp_pool_at(const struct tm_params *params, uint8_t *pm)
{
	struct rdmp_pool pool = {.params = params,
				 .records = params->updates,
				 .objects = pm + log_bytes(params),
				 .lines = lines(params)};

	if (params->knob[BACKEND] == NO_LOG) {
		pool.table = (struct rdmp_entry *)pm;
		pool.entries = rdmp_table_bytes(params) / sizeof(*pool.table);
	} else {
		pool.log = (struct rdmp_record *)pm;
	}
	return pool;
}

/* --------------------------------------------------------------- objects */

static bool has_own_word(const struct tm_params *params)
{
	return params->knob[OWN_WORD] || params->knob[METHOD] == CC_ADP;
}

uint64_t rdmp_flags_at(const struct tm_params *params, unsigned klen, uint32_t vlen)
{
	uint64_t end = (uint64_t)klen + vlen;

	if (has_own_word(params))
		return kv_round_up(end, 8);
	return end % 8 == 7 ? end + 1 : end;
}

uint64_t rdmp_object_bytes(const struct tm_params *params, unsigned klen, uint32_t vlen)
{
	return rdmp_flags_at(params, klen, vlen) + (has_own_word(params) ? 8 : 2);
}

uint64_t rdmp_object_lines(const struct tm_params *params, unsigned klen, uint32_t vlen)
{
	return kv_round_up(rdmp_object_bytes(params, klen, vlen), TM_LINE) / TM_LINE;
}

uint8_t *rdmp_object(const struct rdmp_pool *pool, const struct rdmp_record *record)
{
	return pool->objects + record->off;
}

uint8_t *rdmp_flags(const struct rdmp_pool *pool, const struct rdmp_record *record)
{
	return rdmp_object(pool, record) + rdmp_flags_at(pool->params, record->klen, record->vlen);
}

/* --------------------------------------------------------------- records */

static uint32_t crc_of(const struct rdmp_record *record)
{
	return kv_crc(record, offsetof(struct rdmp_record, crc));
}

void rdmp_record_set(struct rdmp_record *record, enum rdmp_kind kind)
{
	struct rdmp_record copy = *record;
	uint64_t word;

	copy.kind = (uint8_t)kind;
	copy.crc = crc_of(&copy);
	memcpy(&word, &copy.klen, sizeof(word));
	__atomic_store_n((uint64_t *)&record->klen, word, __ATOMIC_SEQ_CST);
}

bool rdmp_record_whole(const struct rdmp_pool *pool, uint32_t number)
{
	const struct rdmp_record *record = rdmp_record(pool, number);

	return record->kind && record->crc == crc_of(record);
}

/* ----------------------------------------------------------------- index */

struct rdmp_key *rdmp_index_find(const struct rdmp_index *index, const uint8_t key[TM_MAX_KEY])
{
	uint64_t at = kv_hash(key);

	for (uint64_t i = 0; i < index->places; i++, at++) {
		struct rdmp_key *place = &index->key[at & (index->places - 1)];

		if (!place->newest || !memcmp(place->key, key, TM_MAX_KEY))
			return place;
	}
	return NULL;
}

void rdmp_index_add(struct rdmp_index *index, const struct rdmp_pool *pool, uint32_t number)
{
	const struct rdmp_record *record = rdmp_record(pool, number);
	struct rdmp_key *place = rdmp_index_find(index, record->key);

	memcpy(place->key, record->key, sizeof(place->key));
	assert(place->newest < number); /* who follows `older` comes to an end */
	index->older[number] = place->newest;
	place->newest = number;
}

static void load_log(const struct rdmp_pool *pool, struct rdmp_index *index)
{
	while (index->records < pool->records && rdmp_record_whole(pool, index->records + 1)) {
		index->records++;
		if (rdmp_record(pool, index->records)->kind != RDMP_UNDONE)
			rdmp_index_add(index, pool, index->records);
	}
}

int rdmp_index_build(struct rdmp_index *index, struct rdmp_pool *pool)
{
	index->places = kv_pow2(2ull * pool->params->keys);
	index->key = calloc(index->places, sizeof(*index->key));
	index->older = calloc((size_t)pool->records + 1, sizeof(*index->older));
	index->records = 0;
	if (pool->table)
		pool->log = calloc(pool->records, sizeof(*pool->log));
	if (!index->key || !index->older || !pool->log) {
		rdmp_index_free(index, pool);
		return -ENOMEM;
	}
	if (pool->table)
		rdmp_table_load(pool, index);
	else
		load_log(pool, index);
	return 0;
}

void rdmp_index_free(struct rdmp_index *index, struct rdmp_pool *pool)
{
	if (pool->table)
		free(pool->log);
	free(index->key);
	free(index->older);
}

/* -------------------------------------------------------------- messages */

static uint32_t threshold(const struct tm_params *params)
{
	static const uint32_t bytes[] = {0, 64, 16384};

	return bytes[params->knob[THRESHOLD]];
}

bool rdmp_commits(const struct tm_params *params)
{
	unsigned method = params->knob[METHOD];

	return method != SA && method != CC_EVALUATED && params->knob[COMMIT] == COMMIT_NATIVE;
}

bool rdmp_is_small(const struct tm_params *params, size_t vlen)
{
	return vlen < threshold(params);
}

size_t rdmp_message_bytes(const struct tm_params *params)
{
	uint32_t longest = threshold(params) ? threshold(params) - 1 : 0;

	return sizeof(struct kv_req) + (longest < params->max_vlen ? longest : params->max_vlen);
}
