/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_BUDGET_H
#define TM_TESTS_BUDGET_H
/*
 * What keeps the tests short.
 *
 * A search with a given seed takes the same steps whichever compiler built it (scripts/compare sees
 * to that). Of a list of long searches the plain build makes all, the build with the sanitizers
 * every third, and of many rounds a third.
 */
#include <check.h>
#include <stdbool.h>
#include "core/rt/asan.h"

static inline bool in_share(int i)
{
	return !TM_ASAN || i % 3 == 0;
}

/* Of so many rounds. */
static inline unsigned rounds(unsigned plain)
{
	return TM_ASAN ? plain / 3 : plain;
}

/* ck_assert() notes each place that it passes in a file. This one does not, for what is asserted
 * 100,000 times. */
#define assert_often(expr)                                            \
	do {                                                          \
		if (!(expr))                                          \
			ck_abort_msg("Assertion '%s' failed", #expr); \
	} while (0)

#endif
