/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_CLOCK_H
#define TM_CHECKER_EXPLORE_CLOCK_H
/* Measures how long work takes, for progress and budgets of time. Nothing that is compared or
 * hashed may depend on it. */
#include <time.h>

static inline double clock_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
