/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_SUITE_H
#define TM_TESTS_SUITE_H
/* For each file of tests, in the place of <check.h>, with the headers that most of them need. */
#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A call that makes an object makes none, and says why. */
#define NOT_MADE(call, error)                   \
	do {                                    \
		errno = 0;                      \
		ck_assert_ptr_null(call);       \
		ck_assert_int_eq(errno, error); \
	} while (0)

/* Functions of tests are called by what is under test, which tells them more than they ask. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define ROWS_OF(table) (sizeof(table) / sizeof(*(table)))

/*
 * A test that registers itself, as its file is the program; TESTS: n times, _i from 0 on.
 *
 *	TEST(what_holds)
 *	{
 *		ck_assert(...);
 *	}
 *
 *	RUN_TESTS(setup, NULL)
 */
struct listed_test {
	const TTest *test;
	int (*times)(void);
	struct listed_test *next;
};
static struct listed_test *listed_tests, **listed_tail __attribute__((unused)) = &listed_tests;

#define TEST(name) TESTS(name, 1)
#define TESTS(name, n)                                                                \
	static void name##_test(int _i);                                              \
	static const TTest name##_ttest = {#name, name##_test, __FILE__, __LINE__};   \
	static int name##_times(void)                                                 \
	{                                                                             \
		return (int)(n);                                                      \
	}                                                                             \
	__attribute__((constructor)) static void name##_listed(void)                  \
	{                                                                             \
		static struct listed_test self = {&name##_ttest, name##_times, NULL}; \
		*listed_tail = &self;                                                 \
		listed_tail = &self.next;                                             \
	}                                                                             \
	static void name##_test(int _i CK_ATTRIBUTE_UNUSED)

/* All of them, in their order; before and after each setup() and teardown(), if there are. Ten
 * minutes are enough for each. */
static inline Suite *listed_suite(void (*setup)(void), void (*teardown)(void))
{
	const char *name = strrchr(listed_tests->test->file, '/') + 1;
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, setup, teardown);
	for (const struct listed_test *t = listed_tests; t; t = t->next)
		tcase_add_loop_test(tcase, t->test, 0, t->times());
	suite_add_tcase(suite, tcase);
	return suite;
}

/* Run the tests of a program, and free them. Its exit status: 1 if one failed. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#define RUN_TESTS(setup, teardown)                               \
	int main(void)                                           \
	{                                                        \
		return run_suite(listed_suite(setup, teardown)); \
	}

#endif
