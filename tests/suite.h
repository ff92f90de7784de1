/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_SUITE_H
#define TM_TESTS_SUITE_H
/* For each file of tests, in the place of <check.h>. */
#include <check.h>
#include <stdbool.h>

/*
 * Where a test was last is printed when it crashes. Check tells its parent of each assertion that
 * holds, a write() each time, which was most of the time of some tests; now each place in the
 * source tells that a test has passed it when that happens first.
 */
#define _mark_point(file, line)                        \
	({                                             \
		static bool told;                      \
		if (!told)                             \
			(_mark_point)((file), (line)); \
		told = true;                           \
	})

/* Run the tests of a program, and free them. Its exit status: 1 if one failed. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
