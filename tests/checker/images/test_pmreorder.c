/* SPDX-License-Identifier: BSD-3-Clause */
/* The sequences of pmreorder's engines, and the sections of a log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/images/pm_sequence.h"
#include "tests/suite.h"

/* All sequences of n stores: "", "a", "ab", with spaces between; to be freed. */
static char *sequences(enum pm_engine engine, unsigned n, uint64_t seed)
{
	struct pm_sequence s;
	char *text = NULL;
	size_t len;
	uint64_t given = 0;
	FILE *out = open_memstream(&text, &len);
	pm_sequence_init(&s);
	ck_assert_int_eq(pm_sequence_begin(&s, engine, n, seed), 0);
	for (; pm_sequence_next(&s); given++) {
		fputs(given ? " (" : "(", out);
		for (unsigned i = 0; i < s.len; i++)
			putc('a' + (int)s.at[i], out);
		putc(')', out);
	}
	ck_assert_uint_eq(given, pm_sequence_count(engine, n));
	ck_assert(!pm_sequence_next(&s));
	pm_sequence_free(&s);
	fclose(out);
	return text;
}

START_TEST(all_engines)
{
	static const struct {
		enum pm_engine engine;
		unsigned n;
		const char *sequences;
	} row[] = {
		{PM_NO_CHECK, 3, ""},
		{PM_DO_CHECK, 3, "(abc)"},
		{PM_DO_CHECK, 0, "()"},
		{PM_FULL, 0, "()"},
		{PM_FULL, 1, "() (a)"},
		{PM_FULL, 2, "() (a) (b) (ab) (ba)"},
		{PM_FULL, 3,
		 "() (a) (b) (c) (ab) (ac) (ba) (bc) (ca) (cb) (abc) (acb) (bac) (bca) (cab) "
		 "(cba)"},
		{PM_ACCUMULATIVE, 3, "() (a) (ab) (abc)"},
		{PM_REVERSE, 3, "() (c) (cb) (cba)"},
		{PM_PARTIAL, 0, "()"},
	};
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		char *text = sequences(row[i].engine, row[i].n, 1);
		ck_assert_str_eq(text, row[i].sequences);
		free(text);
	}
}
END_TEST

START_TEST(how_many)
{
	struct pm_sequence s;
	uint64_t given = 0;
	ck_assert_uint_eq(pm_sequence_count(PM_FULL, 8), 109601);
	ck_assert_uint_eq(pm_sequence_count(PM_FULL, 30), UINT64_MAX);
	pm_sequence_init(&s);
	ck_assert_int_eq(pm_sequence_begin(&s, PM_FULL, 8, 0), 0);
	while (pm_sequence_next(&s)) {
		unsigned seen = 0;
		for (unsigned i = 0; i < s.len; i++)
			seen |= 1u << s.at[i];
		ck_assert_int_eq(__builtin_popcount(seen), (int)s.len);
		given++;
	}
	ck_assert_uint_eq(given, 109601);
	pm_sequence_free(&s);
}
END_TEST

/* Three selections, each once, in the stores' order; the same ones for the same seed. */
START_TEST(at_random)
{
	struct pm_sequence s;
	bool differ = false;
	pm_sequence_init(&s);
	for (uint64_t seed = 0; seed < 200; seed++) {
		char *a = sequences(PM_PARTIAL, 7, seed), *b = sequences(PM_PARTIAL, 7, seed),
		     *c = sequences(PM_PARTIAL, 7, seed + 1);
		ck_assert_str_eq(a, b);
		differ |= strcmp(a, c) != 0;
		free(a);
		free(b);
		free(c);
		/* Three selections of a long list. */
		ck_assert_int_eq(pm_sequence_begin(&s, PM_PARTIAL, 300, seed), 0);
		for (unsigned n = 0; n < 3; n++) {
			ck_assert(pm_sequence_next(&s));
			for (unsigned i = 1; i < s.len; i++)
				ck_assert_uint_lt(s.at[i - 1], s.at[i]);
			ck_assert(!s.len || s.at[s.len - 1] < 300);
		}
		ck_assert(!pm_sequence_next(&s));
		ck_assert(s.drawn[0] != s.drawn[1] && s.drawn[1] != s.drawn[2] &&
			  s.drawn[0] != s.drawn[2]);
	}
	ck_assert(differ);
	pm_sequence_free(&s);
}
END_TEST

/* All of a short list can be drawn. */
START_TEST(each_at_random)
{
	bool seen[8] = {false};
	struct pm_sequence s;
	pm_sequence_init(&s);
	for (uint64_t seed = 0; seed < 100; seed++) {
		ck_assert_int_eq(pm_sequence_begin(&s, PM_PARTIAL, 3, seed), 0);
		while (pm_sequence_next(&s)) {
			unsigned set = 0;
			for (unsigned i = 0; i < s.len; i++)
				set |= 1u << s.at[i];
			seen[set] = true;
		}
	}
	for (unsigned i = 0; i < 8; i++)
		ck_assert(seen[i]);
	pm_sequence_free(&s);
}
END_TEST

/* --- sections --- */

/* A log of these markers, and a fence after each; the engine at each fence, as a digit. */
static int engines(const char *const *marker, char *out, char *why, size_t n)
{
	static const struct pm_markers m = {PM_FULL, {{"A", PM_NO_CHECK}, {"B", PM_PARTIAL}}, 2};
	struct pm_log log;
	struct pm_sections s;
	ck_assert_int_eq(pm_log_open(&log), 0);
	for (; *marker; marker++) {
		struct pm_event e = {.kind = PM_MARK, .line = 7};
		e.source = pm_log_source(&log, *marker, strlen(*marker));
		ck_assert_int_eq(pm_log_add(&log, &e, NULL), 0);
		e = (struct pm_event){.kind = PM_FENCE};
		ck_assert_int_eq(pm_log_add(&log, &e, NULL), 0);
	}
	int error = pm_sections_open(&s, &log, &m, why, n);
	if (!error) {
		for (size_t i = 1; i < log.events; i += 2)
			*out++ = (char)('0' + s.engine[i]);
		*out = 0;
		pm_sections_close(&s);
	}
	pm_log_close(&log);
	return error;
}

START_TEST(sections_of_a_log)
{
	static const struct {
		const char *marker[8], *engines, *why;
	} row[] = {
		{{NULL}, "", NULL},
		{{"A.BEGIN", "A.END"}, "02", NULL},
		{{"A.BEGIN", "B.BEGIN", "B.END", "A.END"}, "0502", NULL},
		/* A section without an engine has that of the section around it. */
		{{"C.BEGIN", "A.BEGIN", "C.BEGIN", "C.END", "A.END"}, "20002", NULL},
		/* The name ends at the first dot. */
		{{"A.x.BEGIN", "A.x.END"}, "02", NULL},
		{{"B.BEGIN"}, "5", NULL},
		{{"A.END"}, "", "line 7 of the log: A.END: no section is open"},
		{{"A.BEGIN", "B.BEGIN", "A.END"},
		 "",
		 "line 7 of the log: A.END: sections cross; expected B.END"},
		{{"AB.BEGIN", "A.END"},
		 "",
		 "line 7 of the log: A.END: sections cross; expected AB.END"},
	};
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		char out[16] = "", why[200] = "";
		int error = engines(row[i].marker, out, why, sizeof(why));
		ck_assert_int_eq(error != 0, row[i].why != NULL);
		ck_assert_str_eq(out, row[i].engines);
		ck_assert_str_eq(why, row[i].why ? row[i].why : "");
	}
}
END_TEST

START_TEST(names)
{
	for (int i = 0; i < PM_ENGINES; i++)
		ck_assert_int_eq(pm_engine_find(pm_engine_name[i]), i);
	ck_assert_int_eq(pm_engine_find("reorderfull"), -1);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("pmreorder");
	TCase *t = tcase_create("pmreorder");
	tcase_add_test(t, all_engines);
	tcase_add_test(t, how_many);
	tcase_add_test(t, at_random);
	tcase_add_test(t, each_at_random);
	tcase_add_test(t, sections_of_a_log);
	tcase_add_test(t, names);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return run_suite(s);
}
