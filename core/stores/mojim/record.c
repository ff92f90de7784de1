/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: what the primary sends, and how the mirror applies it. See mojim.h. */
#include <libpmem.h>
#include <stddef.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/mojim/mojim.h"

static struct range *range_of(const struct record *record, unsigned i)
{
	struct record *r = (struct record *)record;
	return i < MOJIM_RANGES ? &r->range[i] : (struct range *)(r + 1) + i - MOJIM_RANGES;
}

static uint8_t *bytes_of(const struct record *record)
{
	const unsigned n = record->n > MOJIM_RANGES ? record->n - MOJIM_RANGES : 0;
	return (uint8_t *)(record + 1) + kv_round_up(n * sizeof(struct range), TM_LINE);
}

/* What lies after the header. */
static size_t body_bytes(const struct record *record)
{
	size_t bytes = (size_t)(bytes_of(record) - (uint8_t *)(record + 1));
	for (unsigned i = 0; i < record->n; i++)
		bytes += kv_round_up(range_of(record, i)->len, TM_LINE);
	return bytes;
}

static size_t record_bytes(const struct record *record, const struct tm_params *params)
{
	return record->updates * mojim_record_bytes(params);
}

static uint64_t *commit_of(const struct record *record, const struct tm_params *params)
{
	return (uint64_t *)((uint8_t *)record + record_bytes(record, params) - TM_LINE);
}

static uint32_t crc_of(const struct record *record)
{
	struct record header = *record;
	header.crc = kv_crc(record + 1, body_bytes(record));
	return kv_crc(&header, sizeof(header));
}

void mojim_fill(struct record *to, struct head head, const struct tm_params *params,
		const struct source *source, unsigned n, unsigned updates)
{
	memset(to, 0, updates * mojim_record_bytes(params));
	to->seq = head.seq;
	to->epoch = head.epoch;
	to->n = n;
	to->updates = updates;
	uint8_t *at = bytes_of(to);
	for (unsigned i = 0; i < n; i++) {
		*range_of(to, i) = source[i].range;
		memcpy(at, source[i].bytes, source[i].range.len);
		at += kv_round_up(source[i].range.len, TM_LINE);
	}
	to->crc = crc_of(to);
	*commit_of(to, params) = head.seq;
}

void mojim_for_log(struct record *to, const struct record *from, const struct tm_params *params,
		   struct head head)
{
	memmove(to, from, record_bytes(from, params));
	to->seq = head.seq;
	to->epoch = head.epoch;
	to->crc = crc_of(to);
	*commit_of(to, params) = head.seq;
}

static bool has_right_form(const struct mojim_pool *pool, const struct tm_params *params,
			   const struct record *record)
{
	if (!record->n || record->n > MOJIM_RANGES * record->updates)
		return false;
	for (unsigned i = 0; i < record->n; i++) {
		const struct range *range = range_of(record, i);
		if (range->len > pool->area_bytes || range->off > pool->area_bytes - range->len)
			return false;
	}
	return sizeof(*record) + body_bytes(record) + TM_LINE <= record_bytes(record, params);
}

const struct record *mojim_record(const struct mojim_pool *pool, const struct tm_params *params,
				  uint64_t seq)
{
	const struct record *record = (const struct record *)(pool->log +
							      (seq - 1) *
								      mojim_record_bytes(params));
	if (seq > pool->records || record->seq != seq || record->epoch != pool->head->epoch)
		return NULL;
	if (!record->updates || record->updates > TM_TXN_OPS ||
	    record->updates > pool->records - (seq - 1))
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
	const uint64_t seq = record->seq + record->updates - 1;
	const uint8_t *from = bytes_of(record);
	/* First the record itself: a failure in the middle is mended by applying it again. */
	pmem_persist(record, record_bytes(record, params));
	if (has_bug(params, head_early))
		set_head(pool, seq);
	for (unsigned i = 0; i < record->n; i++) {
		const struct range *range = range_of(record, i);
		uint8_t *to = pool->area + range->off;
		memcpy(to, from, range->len);
		if (params->knob[MIRROR_FLUSH] == FLUSH_EACH)
			pmem_persist(to, range->len);
		from += kv_round_up(range->len, TM_LINE);
	}
	if (!has_bug(params, head_early))
		set_head(pool, seq);
}
