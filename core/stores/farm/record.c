/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of the logs. See farm.h. */
#include <stddef.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/farm/farm.h"

static size_t entry_bytes(uint32_t vlen)
{
	return sizeof(struct entry) + (vlen == FARM_DELETED ? 0 : kv_round_up(vlen, TM_LINE));
}

void farm_record_begin(struct record *record, enum farm_type type, const struct record *like)
{
	memset(record, 0, sizeof(*record));
	record->type = (uint8_t)type;
	record->epoch = like->epoch;
	record->counter = like->counter;
	record->client = like->client;
	record->regions = like->regions;
	record->len = sizeof(*record);
}

void farm_record_add(struct record *record, const struct entry *entry, const void *value)
{
	uint8_t *at = (uint8_t *)record + record->len;
	const size_t bytes = entry_bytes(entry->vlen);
	memset(at, 0, bytes);
	memcpy(at, entry, sizeof(*entry));
	if (entry->vlen != FARM_DELETED)
		memcpy(at + sizeof(*entry), value, entry->vlen);
	record->len += (uint32_t)bytes;
	record->entries++;
}

static uint64_t *trailer(const struct record *record)
{
	return (uint64_t *)((uint8_t *)record + record->len) - 1;
}

static uint32_t crc_of(const struct record *record)
{
	struct record header = *record;
	header.seq = 0;
	header.crc = kv_crc(record + 1, record->len - sizeof(*record) - TM_LINE);
	return kv_crc(&header, sizeof(header));
}

void farm_record_end(struct record *record, uint64_t seq)
{
	memset((uint8_t *)record + record->len, 0, TM_LINE);
	record->len += TM_LINE;
	record->seq = seq;
	record->crc = crc_of(record);
	*trailer(record) = seq;
}

const struct entry *farm_entry(const struct record *record, const struct entry *after)
{
	const uint8_t *at = after ? (const uint8_t *)after + entry_bytes(after->vlen)
				  : (const uint8_t *)(record + 1);
	return at < (const uint8_t *)record + record->len - TM_LINE ? (const struct entry *)at
								    : NULL;
}

struct record *farm_place(const struct farm_pool *pool, unsigned client, unsigned place)
{
	return (struct record *)(pool->log + (client * FARM_PLACES + place) * pool->record_bytes);
}

/* Nothing in it leads out of the pool. */
static bool has_form(const struct farm_pool *pool, const struct tm_params *params,
		     const struct record *record)
{
	size_t left = record->len;
	const struct entry *e = (const struct entry *)(record + 1);
	if (left < sizeof(*record) + TM_LINE || left > pool->record_bytes || left % TM_LINE ||
	    record->entries > TM_TXN_OPS)
		return false;
	left -= sizeof(*record) + TM_LINE;
	for (unsigned i = 0; i < record->entries; i++) {
		if (left < sizeof(*e) || e->region >= FARM_REGIONS || e->slot >= pool->slots ||
		    (e->vlen > params->max_vlen && e->vlen != FARM_DELETED) ||
		    left < entry_bytes(e->vlen))
			return false;
		left -= entry_bytes(e->vlen);
		e = (const struct entry *)((const uint8_t *)e + entry_bytes(e->vlen));
	}
	return !left;
}

bool farm_is_record(const struct farm_pool *pool, const struct tm_params *params,
		    const struct record *record, uint64_t seq)
{
	if (!seq || record->seq != seq || !has_form(pool, params, record) ||
	    *trailer(record) != seq)
		return false;
	return params->knob[LOG_CRC] == CRC_OFF || rt_check(record->crc == crc_of(record));
}

bool farm_has_record(const struct farm_pool *pool, const struct tm_params *params, unsigned client,
		     unsigned place)
{
	const struct record *record = farm_place(pool, client, place);
	if (!farm_is_record(pool, params, record, record->seq) || record->client != client)
		return false;
	return place >= FARM_RING
		       ? record->type >= COMMIT_RECOVERY
		       : record->seq % FARM_RING == place && record->type < COMMIT_RECOVERY;
}
