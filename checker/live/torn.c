/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See torn.h. A value begins with its PUT's id, at any byte. Few words of a pool look like
 * an id: clients and sessions are small numbers.
 */
#include "checker/live/torn.h"
#include <endian.h>
#include <string.h>
#include "scenarios/live_store.h"

#define SESSION ((uint64_t)0xffffff << 32) /* in live_put_id() */

static const struct recording_op *find(const struct recording_op *const *put, size_t puts,
				       uint64_t id)
{
	size_t lo = 0, hi = puts;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (put[mid]->value == id)
			return put[mid];
		if (put[mid]->value < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static bool any(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return true;
	return false;
}

static void look(const uint8_t *pool, size_t len, uint64_t off, const struct recording_op *put,
		 struct torn *out)
{
	static _Thread_local uint8_t value[TM_MAX_VALUE];
	uint32_t vlen = put->vlen, same = 0;

	if (vlen < LIVE_MIN_VALUE)
		return;
	live_value(put->value, put->key, value, vlen);
	while (same < vlen && off + same < len && pool[off + same] == value[same])
		same++;
	if (same == vlen) {
		out->whole++;
		return;
	}
	if (!out->torn++)
		out->first = (struct torn_value){
			put, off, same,
			off + same < len && any(pool + off + same,
						len - off < vlen ? len - off - same : vlen - same)};
}

void torn_scan(const uint8_t *pool, size_t len, const struct recording_op *const *put, size_t puts,
	       struct torn *out)
{
	memset(out, 0, sizeof(*out));
	if (!puts)
		return;
	const uint64_t lo = put[0]->value, hi = put[puts - 1]->value;
	uint64_t sessions = 0;
	for (size_t i = 0; i < puts; i++)
		sessions |= put[i]->value & SESSION;
	for (uint64_t off = 0; off + sizeof(uint64_t) <= len; off++) {
		uint64_t word;

		memcpy(&word, pool + off, sizeof(word));
		word = le64toh(word);
		if (word < lo || word > hi || (word & SESSION & ~sessions))
			continue;
		const struct recording_op *op = find(put, puts, word);
		if (op)
			look(pool, len, off, op, out);
	}
}
