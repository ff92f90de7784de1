/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BUF: is there one moment of epoch 0 at which all keys had their recovered values?
 *
 * A moment is named by the number of events before it. For each key and value, the
 * search says at which moments the key could be read as that value (a set of bits);
 * the store kept the state of some moment if the sets of all keys have one in common.
 * In a short history the sets are one word and are remembered; in a long one they are
 * computed for each judgement that gets here, which costs about one search per key.
 */
#include <string.h>
#include "checker/judge/contract.h"

#define WORDS (HISTORY_EVENTS / 64 + 1)

static enum search_result key_times(struct judge *j, const struct history *h, unsigned key,
				    int32_t value, uint64_t *times)
{
	bool put = value >= 0, small = h->crash_at[0] < 64; /* so an operation's index is, too */
	uint64_t *known = put ? &j->times_known : &j->times_absent_known;
	unsigned at = put ? (unsigned)value : key;
	uint64_t *memory = put ? j->times : j->times_absent;
	enum search_result result;

	assert(key < h->keys && value >= VALUE_ABSENT && value < (int32_t)h->ops);
	assert(!small || at < 64);
	if (small && *known >> at & 1) {
		*times = memory[at];
		return SEARCH_FITS;
	}
	result = search_times(j, h, key, value, times);
	if (small && result == SEARCH_FITS) {
		memory[at] = *times;
		*known |= UINT64_C(1) << at;
	}
	return result;
}

static bool meet(const uint64_t *a, const uint64_t *b, unsigned words)
{
	for (unsigned i = 0; i < words; i++)
		if (a[i] & b[i])
			return true;
	return false;
}

/* An earlier recovered value that was never there together with `times`, or -1. */
static int apart(struct judge *j, const struct history *h, const int16_t *get, unsigned key,
		 const uint64_t *times, unsigned words)
{
	uint64_t other[WORDS];

	for (unsigned k = 0; k < key; k++) {
		if (get[k] < 0 || j->key[k].unsure)
			continue;
		if (key_times(j, h, k, h->op[get[k]].value, other) == SEARCH_FITS &&
		    !meet(other, times, words))
			return get[k];
	}
	return -1;
}

void buf_judge(struct judge *j, const struct history *h, const int16_t *get, struct verdict *out)
{
	unsigned words = (unsigned)h->crash_at[0] / 64 + 1;
	uint64_t common[WORDS], times[WORDS];

	assert(words <= WORDS && j->epoch == 1);
	memset(common, 0xff, words * sizeof(common[0]));
	for (unsigned key = 0; key < h->keys && !out->broken; key++) {
		if (get[key] < 0)
			continue;
		assert(h->op[get[key]].kind == HISTORY_GET && h->op[get[key]].key == key);
		if (j->key[key].unsure ||
		    key_times(j, h, key, h->op[get[key]].value, times) == SEARCH_FULL) {
			out->unsure = true;
			continue;
		}
		if (!meet(times, times, words))
			lin_break(out, get[key], lin_missed(h, get[key]));
		else if (!meet(common, times, words))
			verdict_break(out, get[key], apart(j, h, get, key, times, words));
		for (unsigned i = 0; i < words; i++)
			common[i] &= times[i];
	}
}
