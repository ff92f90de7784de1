/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dynamic partial order reduction against a search without it: for all litmus tests that are small
 * enough for the latter, both must find the same outcomes. If dpor.c takes dependent events for
 * independent ones, some outcome is missing here.
 */
#include <dirent.h>
#include "checker/models/litmus.h"
#include "tests/checker/explore/budget.h"

#define WHOLE_RUNS 6000 /* more than that are too many here */

static char *read_file(const char *dir, const char *name, size_t *len)
{
	char path[600], *text = malloc(100000);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	*len = fread(text, 1, 100000, file);
	ck_assert_uint_lt(*len, 100000);
	fclose(file);
	return text;
}

static bool same_values(const struct litmus_outcomes *a, const struct litmus_outcomes *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (memcmp(a->outcome[i].value, b->outcome[i].value, sizeof(a->outcome[i].value)))
			return false;
	return true;
}

/* False: too large. */
static bool compare(const char *name, const char *text, size_t len)
{
	struct litmus_limits limits = litmus_default;
	struct input_error error;
	struct litmus_test *test = malloc(sizeof(*test));
	struct litmus_result few, all;
	ck_assert_int_eq(litmus_parse(test, text, len, &error), 0);
	limits.whole = true;
	limits.runs = WHOLE_RUNS;
	ck_assert_int_eq(litmus_run(test, &limits, &all), 0);
	ck_assert_int_eq(litmus_run(test, &litmus_default, &few), 0);
	ck_assert(few.complete);
	bool complete = all.complete;
	if (complete) {
		ck_assert_msg(same_values(&few.final, &all.final), "%s: other final outcomes",
			      name);
		ck_assert_msg(same_values(&few.crash, &all.crash), "%s: other crash outcomes",
			      name);
		ck_assert_uint_le(few.runs, all.runs);
	}
	litmus_result_free(&few);
	litmus_result_free(&all);
	litmus_free(test);
	free(test);
	return complete;
}

static int is_litmus(const struct dirent *entry)
{
	return strstr(entry->d_name, ".litmus") != NULL;
}

TEST(suite)
{
	unsigned compared = 0, files = 0;
	struct dirent **entry;
	int n = scandir("scenarios/litmus", &entry, is_litmus, alphasort);
	ck_assert_int_gt(n, 0);
	for (int i = 0; i < n; i++) {
		size_t len;
		if (in_share(i)) {
			char *text = read_file("scenarios/litmus", entry[i]->d_name, &len);
			compared += compare(entry[i]->d_name, text, len);
			files++;
			free(text);
		}
		free(entry[i]);
	}
	free(entry);
	printf("%u of %u litmus tests compared\n", compared, files);
	ck_assert_uint_gt(compared, files / 2);
}

/* Dependences that few files of the suite have. */
static const char *const little[] = {
	/* The registers of two threads when the power fails. */
	"litmus learn { x@A; } P0@A | P1@A ; r0 = 1 | r0 = 1 ; r0 = 2 | r0 = 2 ; "
	"exists (P0:r0=1 /\\ P1:r0=0 /\\ crash:x=0)",
	/* A register of one thread, and what the other has made durable or put in flight. */
	"litmus know { x@A; } P0@A | P1@A ; r0 = 1 | x = 1 ; r0 = 2 | clflush x ; | x = 2 ; "
	"exists (P0:r0=0 /\\ crash:x=2)",
	/* Arrived, not landed. */
	"litmus arrive config domain=wsp { x@S; y@S; qp q A S; qp p B S; } P0@A | P1@B ; "
	"put q x <- 1 | put p y <- 1 ; exists (crash:x=1 /\\ crash:y=0)",
};

TESTS(little_ones, (int)(sizeof(little) / sizeof(little[0])))
{
	ck_assert(compare(little[_i], little[_i], strlen(little[_i])));
}

RUN_TESTS(NULL, NULL)
