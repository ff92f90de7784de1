/* SPDX-License-Identifier: BSD-3-Clause */
/* The sections of a log, and pmreorder's engines for them. */
#include "checker/logs/pm_sections.h"
#include "tests/suite.h"

/* A log of these markers, and a fence after each; the engine at each fence, as a digit. */
static int engines(const char *const *marker, char *out, char *why, size_t n)
{
	static const struct pm_markers m = {PM_FULL, {{"A", PM_NO_CHECK}, {"B", PM_DO_CHECK}}, 2};
	struct pm_log log;
	ck_assert_int_eq(pm_log_open(&log), 0);
	for (; *marker; marker++) {
		struct pm_event e = {.kind = PM_MARK, .line = 7};
		e.source = pm_log_source(&log, *marker, strlen(*marker));
		ck_assert_int_eq(pm_log_add(&log, &e, NULL), 0);
		e = (struct pm_event){.kind = PM_FENCE};
		ck_assert_int_eq(pm_log_add(&log, &e, NULL), 0);
	}
	uint8_t *engine = pm_sections(&log, &m, why, n);
	for (size_t i = 1; engine && i < log.events; i += 2)
		*out++ = (char)('0' + engine[i]);
	*out = 0;
	free(engine);
	pm_log_close(&log);
	return engine == NULL;
}

START_TEST(sections_of_a_log)
{
	static const struct {
		const char *marker[8], *engines, *why;
	} row[] = {
		{{NULL}, "", NULL},
		{{"A.BEGIN", "A.END"}, "02", NULL},
		{{"A.BEGIN", "B.BEGIN", "B.END", "A.END"}, "0102", NULL},
		/* A section without an engine has that of the section around it. */
		{{"C.BEGIN", "A.BEGIN", "C.BEGIN", "C.END", "A.END"}, "20002", NULL},
		/* The name ends at the first dot. */
		{{"A.x.BEGIN", "A.x.END"}, "02", NULL},
		{{"B.BEGIN"}, "1", NULL},
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
	ck_assert_int_eq(pm_engine_find("NoReorderNoCheck"), PM_NO_CHECK);
	ck_assert_int_eq(pm_engine_find("NoReorderDoCheck"), PM_DO_CHECK);
	ck_assert_int_eq(pm_engine_find("ReorderPartial"), PM_FULL);
	ck_assert_int_eq(pm_engine_find("reorderfull"), -1);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("pm_sections");
	TCase *t = tcase_create("pm_sections");
	tcase_add_test(t, sections_of_a_log);
	tcase_add_test(t, names);
	suite_add_tcase(s, t);
	return run_suite(s);
}
