/* SPDX-License-Identifier: BSD-3-Clause */
/* A log-linear histogram. See latency.h. */
#include "checker/live/latency.h"
#include <assert.h>

#define SUB (1u << LATENCY_SUB_BITS)

/* The buckets of [2^e, 2^(e+1)) follow those of the power before: row 0 has [0, SUB), row 1 [SUB, 2
 * SUB), and from there on a bucket is twice as wide with each row. */
static unsigned bucket(uint64_t ns)
{
	unsigned row = 0;

	if (ns >= SUB)
		row = 64 - LATENCY_SUB_BITS - (unsigned)__builtin_clzll(ns);
	if (row >= LATENCY_BUCKETS / SUB)
		return LATENCY_BUCKETS - 1;
	return row ? row * SUB + (unsigned)(ns >> (row - 1)) - SUB : (unsigned)ns;
}

/* The largest time in a bucket. */
static uint64_t upper_end(unsigned bucket)
{
	unsigned row = bucket / SUB;
	uint64_t nth = bucket % SUB;

	return row ? ((SUB + nth + 1) << (row - 1)) - 1 : nth;
}

void latency_add(struct latency *l, uint64_t ns)
{
	l->count[bucket(ns)]++;
	l->times++;
	if (ns > l->max_ns)
		l->max_ns = ns;
}

uint64_t latency_quantile(const struct latency *l, unsigned per_mille)
{
	/* The first so many, rounded up: p50 of three is the second. */
	uint64_t want = (l->times * per_mille + 999) / 1000, seen = 0;

	assert(per_mille >= 1 && per_mille <= 1000);
	for (unsigned i = 0; i < LATENCY_BUCKETS && l->times; i++) {
		seen += l->count[i];
		if (seen >= want && i < LATENCY_BUCKETS - 1)
			return upper_end(i) < l->max_ns ? upper_end(i) : l->max_ns;
	}
	return l->max_ns;
}
