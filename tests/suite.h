/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_SUITE_H
#define TM_TESTS_SUITE_H
#include <check.h>

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
