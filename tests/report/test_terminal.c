/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress where standard error is no terminal: a line each half minute, by a clock that the test
 * has; and what was not written to a full standard output is known afterwards.
 */
#include <time.h>
#include "report/terminal.h"
#include "tests/suite.h"

static time_t now = 1000;

/* The library's, for report/terminal.c. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	*t = (struct timespec){.tv_sec = now};
	return 0;
}

/* What is on standard error by now, of a call at this time. */
static void shown(FILE *file, time_t at, const char *expected)
{
	char text[200] = "";
	now = at;
	progress_line("%d of %d", (int)(at - 1000), 90);
	rewind(file);
	size_t n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	ck_assert_str_eq(text, expected);
}

TEST(line_each_half_minute)
{
	FILE *file = tmpfile(), *err = stderr;
	int saved = dup(STDERR_FILENO);
	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
	shown(file, 1000, "");
	shown(file, 1029, "");
	shown(file, 1030, "tidemark: 30 of 90\n");
	shown(file, 1031, "tidemark: 30 of 90\n");
	shown(file, 1059, "tidemark: 30 of 90\n");
	shown(file, 1061, "tidemark: 30 of 90\ntidemark: 61 of 90\n");
	progress_line(NULL);
	shown(file, 1062, "tidemark: 30 of 90\ntidemark: 61 of 90\n");
	dup2(saved, STDERR_FILENO);
	close(saved);
	fclose(file);
	ck_assert_ptr_eq(err, stderr);
}

TEST(full_output)
{
	FILE *out = stdout;
	ck_assert_int_eq(output_flush(), 0);
	stdout = fopen("/dev/full", "w");
	if (stdout) {
		fputs("lost", stdout);
		ck_assert_int_eq(output_flush(), -ENOSPC);
		ck_assert_int_eq(output_flush(), -ENOSPC); /* it is still so */
		fclose(stdout);
	}
	stdout = out;
}

RUN_TESTS(NULL, NULL)
