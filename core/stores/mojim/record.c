/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: what the primary sends, and how the mirror applies it. See mojim.h. */
#include <libpmem.h>
#include <stddef.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/mojim/mojim.h"

static size_t body_bytes(const struct record *record)
{
	size_t bytes = 0;
	for (unsigned i = 0; i < record->n; i++)
		bytes += kv_round_up(record->range[i].len, TM_LINE);
	return bytes;
}

static uint64_t *commit_of(const struct record *record, const struct tm_params *params)
{
	return (uint64_t *)((uint8_t *)record + mojim_record_bytes(params) - TM_LINE);
}

static uint32_t crc_of(const struct record *record)
{
	struct record header = *record;
	header.crc = kv_crc(record + 1, body_bytes(record));
	return kv_crc(&header, sizeof(header));
}

void mojim_fill(struct record *to, struct head head, const struct mojim_pool *pool,
		const struct tm_params *params, const struct range *range, unsigned n)
{
	uint8_t *at = (uint8_t *)(to + 1);
	memset(to, 0, mojim_record_bytes(params));
	to->seq = head.seq;
	to->epoch = head.epoch;
	to->n = n;
	for (unsigned i = 0; i < n; i++) {
		to->range[i] = range[i];
		memcpy(at, pool->area + range[i].off, range[i].len);
		at += kv_round_up(range[i].len, TM_LINE);
	}
	to->crc = crc_of(to);
	*commit_of(to, params) = head.seq;
}

void mojim_for_epoch(struct record *to, const struct record *from, const struct tm_params *params,
		     uint64_t epoch)
{
	memcpy(to, from, mojim_record_bytes(params));
	to->epoch = epoch;
	to->crc = crc_of(to);
}

static bool has_right_form(const struct mojim_pool *pool, const struct tm_params *params,
			   const struct record *record)
{
	if (!record->n || record->n > MOJIM_RANGES)
		return false;
	for (unsigned i = 0; i < record->n; i++)
		if (record->range[i].len > pool->area_bytes ||
		    record->range[i].off > pool->area_bytes - record->range[i].len)
			return false;
	return sizeof(*record) + body_bytes(record) + TM_LINE <= mojim_record_bytes(params);
}

const struct record *mojim_record(const struct mojim_pool *pool, const struct tm_params *params,
				  uint64_t seq)
{
	const struct record *record = (const struct record *)(pool->log +
							      (seq - 1) *
								      mojim_record_bytes(params));
	if (seq > pool->records || record->seq != seq || record->epoch != pool->head->epoch)
		return NULL;
	if (params->knob[COMMIT_MARK] == MARK_ON && *commit_of(record, params) != seq)
		return NULL;
	if (!has_right_form(pool, params, record))
		return NULL;
	if (!has_bug(params, no_crc) && params->knob[COMMIT_MARK] == MARK_ON &&
	    !rt_check(record->crc == crc_of(record)))
		return NULL;
	return record;
}

static void set_head(const struct mojim_pool *pool, uint64_t seq)
{
	__atomic_store_n(&pool->head->seq, seq, __ATOMIC_SEQ_CST);
	pmem_persist(pool->head, sizeof(*pool->head));
}

void mojim_apply(const struct mojim_pool *pool, const struct tm_params *params,
		 const struct record *record)
{
	const uint64_t seq = record->seq;
	const uint8_t *from = (const uint8_t *)(record + 1);
	/* First the record itself: a failure in the middle is mended by applying it again. */
	pmem_persist(record, mojim_record_bytes(params));
	if (has_bug(params, head_early))
		set_head(pool, seq);
	for (unsigned i = 0; i < record->n; i++) {
		uint8_t *to = pool->area + record->range[i].off;
		memcpy(to, from, record->range[i].len);
		if (params->knob[MIRROR_FLUSH] == FLUSH_EACH)
			pmem_persist(to, record->range[i].len);
		from += kv_round_up(record->range[i].len, TM_LINE);
	}
	if (!has_bug(params, head_early))
		set_head(pool, seq);
}
