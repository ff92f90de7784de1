/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_BUDGET_H
#define TM_TESTS_BUDGET_H
/*
 * What keeps the tests short.
 *
 * A search with a given seed takes the same steps whichever compiler built it (scripts/compare sees
 * to that). So of a list of long searches, and of many rounds, only the plain build makes all: the
 * build with the sanitizers makes a third, and so does `make test`, which sets TIDEMARK_QUICK. A
 * test that uses this has the label "reduced" (cmake/Tests.cmake): `make test` runs it without the
 * sanitizers only, `make test-all` whole and with them.
 *
 * Continuous integration does a share of what `make test-all` does of such a list, another one for
 * each commit: TIDEMARK_SHARE=K/N (scripts/test). tests/share.sh is the same for shell scripts.
 */
#include "tests/suite.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/rt/asan.h"

static inline bool is_quick(void)
{
	return getenv("TIDEMARK_QUICK") != NULL;
}

/* Is number i of a list of independent cases to be done in this run, if the list is not shortened
 * otherwise? */
static inline bool in_turn(uint64_t i)
{
	const char *share = getenv("TIDEMARK_SHARE");
	unsigned k = 0, n = 1;

	return !share || !*share || (sscanf(share, "%u/%u", &k, &n) == 2 && i % n == k);
}

/* Is number i of a list of searches to be done? */
static inline bool in_share(int i)
{
	if (TM_ASAN || is_quick())
		return i % 3 == 0 && in_turn((uint64_t)i / 3);
	return in_turn((uint64_t)i);
}

/* Number of rounds to do where the plain build does `plain`. */
static inline unsigned rounds(unsigned plain)
{
	return TM_ASAN || is_quick() ? plain / 3 : plain;
}

#endif
