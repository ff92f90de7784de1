/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_BUDGET_H
#define TM_TESTS_BUDGET_H
/*
 * What keeps the tests short.
 *
 * A search with a given seed takes the same steps whichever compiler built it (scripts/compare sees
 * to that). So of a list of long searches, and of many rounds, only the plain build makes all, and
 * only in `make test-all`: `make test`, which sets TIDEMARK_QUICK, makes a sixth of both, and the
 * build with the sanitizers a 24th of the list and a sixth of the rounds. A test that uses this has
 * the label "reduced" (cmake/Tests.cmake): `make test-sanitized` leaves it out.
 */
#include "tests/suite.h"
#include "core/rt/asan.h"

static inline bool is_quick(void)
{
	return getenv("TIDEMARK_QUICK") != NULL;
}

/* Is number i of a list of searches to be done? */
static inline bool in_share(int i)
{
	return i % (TM_ASAN ? 24 : is_quick() ? 6 : 1) == 0;
}

/* Number of rounds to do where the plain build does `plain`. */
static inline unsigned rounds(unsigned plain)
{
	return TM_ASAN || is_quick() ? plain / 6 : plain;
}

#endif
