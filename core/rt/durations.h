/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_DURATIONS_H
#define TM_RT_DURATIONS_H
/*
 * The lengths of time that a store measures: leases, graces, times after which somebody counts as
 * dead. A bug in one of them shows only if a task is late by about so much, which is seldom the
 * case by chance, as an operation takes 10 us and a lease 250 us or 8 ms. So a simulation keeps
 * what it sees of them, and random runs delay tasks and packets for about as long
 * (faultinject/random_source.h).
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/rt/choose.h"

#define DURATIONS      8     /* so many are kept, the first ones */
#define DURATION_LEAST 20000 /* ns; shorter ones are met by the usual delays */

struct durations {
	uint32_t ns[DURATIONS];
	unsigned n;
	uint32_t clocks_ns; /* by so much two clocks differ at most */
};

static inline void durations_add(struct durations *to, uint64_t ns)
{
	if (ns < DURATION_LEAST || ns > DELAY_NS_MOST / 2 || to->n == DURATIONS)
		return;
	for (unsigned i = 0; i < to->n; i++)
		if (to->ns[i] == ns)
			return;
	to->ns[to->n++] = (uint32_t)ns;
}

#endif
