/* SPDX-License-Identifier: BSD-3-Clause */
/* Items and messages. See hydradb.h. */
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/hydradb/hydradb.h"

/* ----------------------------------------------------------------- items */

uint32_t hydradb_item_bytes(uint32_t klen, uint32_t vlen)
{
	uint64_t before = kv_round_up(sizeof(struct hydradb_item) + klen + vlen, sizeof(uint64_t));

	return (uint32_t)(before + sizeof(uint64_t));
}

uint64_t *hydradb_guardian(void *item, uint32_t bytes)
{
	return (uint64_t *)((uint8_t *)item + bytes) - 1;
}

bool hydradb_live(uint64_t guardian)
{
	return guardian & 1;
}

uint64_t hydradb_version(uint64_t guardian)
{
	return guardian >> 1;
}

bool hydradb_fits(const struct hydradb_item *item, uint32_t bytes, const uint8_t key[TM_MAX_KEY])
{
	uint8_t padded[TM_MAX_KEY];

	return bytes >= hydradb_item_bytes(0, 0) && item->klen <= TM_MAX_KEY &&
	       item->vlen <= bytes && hydradb_item_bytes(item->klen, item->vlen) == bytes &&
	       !kv_key_pad(padded, item->bytes, item->klen) &&
	       rt_check(memcmp(padded, key, TM_MAX_KEY) == 0);
}

/* ------------------------------------------------------------------ pool */

struct tm_params hydradb_pool_params(const struct tm_params *params)
{
	struct tm_params pool = *params;

	pool.max_vlen = hydradb_item_bytes(TM_MAX_KEY, params->max_vlen);
	return pool;
}

size_t hydradb_pm_bytes(const struct tm_params *params)
{
	struct tm_params pool = hydradb_pool_params(params);

	return kv_pool_bytes(&pool);
}

unsigned hydradb_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	static const char *const names[] = {"table", "items"};
	struct tm_params pool = hydradb_pool_params(params);
	unsigned n = kv_pool_regions(&pool, out, max);

	for (unsigned i = 0; i < n; i++)
		out[i].name = names[i];
	return n;
}

bool hydradb_names_item(const struct kv_entry *entry)
{
	return (entry->ctl & KV_USED) && (entry->where & 1);
}

struct hydradb_item *hydradb_item_at(const struct kv_pool *pool, uint64_t where)
{
	return (struct hydradb_item *)(pool->log + kv_where_line(where) * TM_LINE);
}

/* -------------------------------------------------------------- messages */

/* Where the second mark is. */
static size_t end_of(uint32_t len)
{
	return HYDRADB_BODY + kv_round_up(len, sizeof(uint32_t));
}

size_t hydradb_message_bytes(uint32_t len)
{
	return end_of(len) + sizeof(uint32_t);
}

size_t hydradb_request_bytes(const struct tm_params *params)
{
	uint32_t len = (uint32_t)sizeof(struct kv_req) + params->max_vlen;

	return kv_round_up(hydradb_message_bytes(len), TM_LINE);
}

size_t hydradb_reply_bytes(const struct tm_params *params)
{
	uint32_t len = (uint32_t)sizeof(struct hydradb_reply) + params->max_vlen;

	return kv_round_up(hydradb_message_bytes(len), TM_LINE);
}

/* whole=crc: the marks are the body's CRC. */
static uint32_t crc_mark(const uint8_t *message, uint32_t len)
{
	return kv_crc(message + HYDRADB_BODY, len) | 1u << 31;
}

void hydradb_mark(uint8_t *message, uint32_t len, uint32_t number, const struct tm_params *params)
{
	bool crc = params->knob[WHOLE] == WHOLE_CRC;
	uint32_t mark = crc ? crc_mark(message, len) : number;
	uint64_t first = len | (uint64_t)mark << 32;

	memcpy(message, &first, sizeof(first));
	memcpy(message + end_of(len), &mark, sizeof(mark));
}

bool hydradb_landed(const uint8_t *message, size_t cap, const struct tm_params *params, bool front,
		    uint32_t *len)
{
	uint64_t first = __atomic_load_n((const uint64_t *)message, __ATOMIC_SEQ_CST);
	uint32_t mark = (uint32_t)(first >> 32), body = (uint32_t)first, end;

	if (!mark || body > cap || hydradb_message_bytes(body) > cap)
		return false;
	end = __atomic_load_n((const uint32_t *)(message + end_of(body)), __ATOMIC_SEQ_CST);
	if (!front && !rt_check(end == mark))
		return false;
	if (params->knob[WHOLE] == WHOLE_CRC && !rt_check(mark == crc_mark(message, body)))
		return false;
	*len = body;
	return true;
}
