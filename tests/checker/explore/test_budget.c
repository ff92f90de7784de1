/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shares of long lists (budget.h, tests/share.sh): together they are the list, no two have a
 * case in common, and both languages mean the same by them.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/checker/explore/budget.h"
#include "tests/suite.h"

#define CASES  60
#define SHARES 4

static void set_share(unsigned k, unsigned n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u/%u", k, n);
	ck_assert_int_eq(setenv("TIDEMARK_SHARE", text, 1), 0);
}

START_TEST(shares_are_the_list)
{
	unsigned n = (unsigned)_i, turns[CASES] = {0}, shares[CASES] = {0};

	for (unsigned k = 0; k < n; k++) {
		set_share(k, n);
		for (int i = 0; i < CASES; i++) {
			turns[i] += in_turn((uint64_t)i);
			shares[i] += in_share(i);
		}
	}
	ck_assert_int_eq(unsetenv("TIDEMARK_SHARE"), 0);
	for (int i = 0; i < CASES; i++) {
		ck_assert(in_turn((uint64_t)i));
		ck_assert_uint_eq(turns[i], 1);
		ck_assert_uint_eq(shares[i], in_share(i)); /* as without shares */
	}
}
END_TEST

START_TEST(scripts_agree)
{
	unsigned n = (unsigned)_i, number;
	bool done[CASES];
	char command[64];

	for (unsigned k = 0; k < n; k++) {
		set_share(k, n);
		snprintf(command, sizeof(command), "seq 0 %d | tests/share.sh", CASES - 1);
		memset(done, 0, sizeof(done));
		FILE *lines = popen(command, "r");
		ck_assert_ptr_nonnull(lines);
		while (fscanf(lines, "%u", &number) == 1) {
			ck_assert_uint_lt(number, CASES);
			done[number] = true;
		}
		ck_assert_int_eq(pclose(lines), 0);
		for (unsigned i = 0; i < CASES; i++)
			ck_assert_int_eq(done[i], in_turn(i));
		for (unsigned i = 0; i < SHARES; i++) {
			snprintf(command, sizeof(command), "tests/share.sh %u true >/dev/null 2>&1",
				 i);
			int status = system(command);
			ck_assert(WIFEXITED(status));
			ck_assert_int_eq(WEXITSTATUS(status), in_turn(i) ? 0 : 77);
		}
	}
}
END_TEST

/* Cases FIRST to CASES - 1 that Check runs, by number. */
#define FIRST 1
static bool ran[CASES];

START_TEST(note)
{
	ran[_i] = true;
}
END_TEST

/* The process of its own is for Check, which has one runner at a time. */
static bool runs_in_turn(void)
{
	Suite *suite = suite_create("turns");
	TCase *tc = tcase_create("turns");
	SRunner *runner;
	bool same = true;

	add_in_turn(tc, note, FIRST, CASES);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_SILENT);
	for (unsigned i = 0; i < CASES; i++)
		same = same && ran[i] == (i >= FIRST && in_turn(i));
	srunner_free(runner);
	return same;
}

START_TEST(check_agrees)
{
	unsigned n = (unsigned)_i;

	for (unsigned k = 0; k < n; k++) {
		int status = 0;

		set_share(k, n);
		pid_t child = fork();
		ck_assert_int_ge(child, 0);
		if (!child)
			_exit(runs_in_turn() ? 0 : 1);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("budget");
	TCase *tc = tcase_create("shares");

	tcase_add_loop_test(tc, shares_are_the_list, 1, SHARES + 1);
	tcase_add_loop_test(tc, scripts_agree, 1, SHARES + 1);
	tcase_add_loop_test(tc, check_agrees, 1, SHARES + 1);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
