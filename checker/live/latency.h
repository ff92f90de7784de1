/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_LATENCY_H
#define TM_CHECKER_LIVE_LATENCY_H
/*
 * How long operations took: a log-linear histogram. Below 128 ns each value has a bucket of its
 * own; above, each power of two is cut into 64, so that what is read out is at most
 * 1/64 too large. A fixed size, no allocation.
 */
#include <stdint.h>

#define LATENCY_SUB_BITS 6
#define LATENCY_BITS	 42 /* longer times, of more than an hour, count as the longest there is */
#define LATENCY_BUCKETS	 ((LATENCY_BITS - LATENCY_SUB_BITS + 1) << LATENCY_SUB_BITS)

/* Starts zeroed. */
struct latency {
	uint64_t count[LATENCY_BUCKETS];
	uint64_t times, max_ns;
};

void latency_add(struct latency *l, uint64_t ns);
/* The time that `per_mille` of 1000 operations did not exceed: the upper end of its bucket, never
 * more than the longest; 0 where there were none. */
uint64_t latency_quantile(const struct latency *l, unsigned per_mille);

#endif
