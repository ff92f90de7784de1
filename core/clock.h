/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CORE_CLOCK_H
#define TM_CORE_CLOCK_H
/* Real time, for what is live, for progress and budgets of time. Nothing that is compared or hashed
 * may depend on it. */
#include <stdint.h>
#include <time.h>

/* By CLOCK_MONOTONIC. */
static inline uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
static inline uint64_t clock_ms(void)
{
	return clock_ns() / 1000000;
}
static inline double clock_seconds(void)
{
	return (double)clock_ns() / 1e9; /* whole seconds are exact */
}

#endif
