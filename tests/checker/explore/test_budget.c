/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shares of long lists (budget.h, tests/share.sh): together they are the list, no two have a
 * case in common, and both languages mean the same by them.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
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

TESTS(shares_are_the_list, SHARES)
{
	unsigned n = (unsigned)_i + 1, turns[CASES] = {0}, shares[CASES] = {0};

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

TESTS(scripts_agree, SHARES)
{
	unsigned n = (unsigned)_i + 1, number;
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

int main(void)
{
	return run_suite(listed_suite("budget", NULL, NULL));
}
