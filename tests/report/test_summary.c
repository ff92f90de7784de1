/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The summary of a campaign, of made-up results: what needs attention comes first, the matrix has
 * the right mark in each cell, and all of it is about a screen.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "checker/hunt/plan.h"
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "report/report.h"

#define SCREEN	66  /* lines */
#define COLUMNS 100 /* but for commands, whose file names can be long */

struct made {
	struct campaign c;
	struct report r;
	char *text;
	size_t len;
};

/* The default campaign: everything breaks that may, and nothing else. */
static void setup(struct made *m)
{
	const struct plan all = {0};
	char why[PLAN_TEXT];
	memset(m, 0, sizeof(*m));
	m->c.options = campaign_default;
	m->c.config = calloc(PLAN_CONFIGS, sizeof(*m->c.config));
	ck_assert_ptr_nonnull(m->c.config);
	ck_assert_int_eq(plan_configs(&m->c, &all, why), 0);
	ck_assert_int_eq(plan_builtin_workloads(&m->c), 0);
	m->c.cell = calloc(m->c.configs, sizeof(*m->c.cell));
	m->c.total = calloc(m->c.configs, sizeof(*m->c.total));
	ck_assert(m->c.cell && m->c.total);
	for (unsigned i = 0; i < m->c.configs; i++) {
		const struct campaign_config *cfg = &m->c.config[i];
		m->c.total[i].runs = cfg->shape ? 3100 : 62000;
		m->c.total[i].states = cfg->shape ? 44483 : 889677;
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			const struct expectation *e = expect_find(cfg->store->name, cfg->name,
								  (int)k);
			m->c.cell[i][k].broken = e && (e->broken || e->open);
			m->c.cell[i][k].broken_states = m->c.cell[i][k].broken;
		}
	}
	m->r = (struct report){.campaign = &m->c, .whole = true, .out = "traces"};
}

static unsigned config(const struct made *m, const char *store, const char *name)
{
	for (unsigned i = 0; i < m->c.configs; i++)
		if (!strcmp(m->c.config[i].store->name, store) &&
		    !strcmp(m->c.config[i].name, name))
			return i;
	ck_abort_msg("no configuration %s of %s", name, store);
}

/* As report_traces() leaves it. */
static void add_case(struct made *m, unsigned i, unsigned k)
{
	const struct campaign_config *cfg = &m->c.config[i];
	struct report_case *one = &m->r.cell[i][k].one[0];
	snprintf(one->text, sizeof(one->text), "%s saw %s under %s", cfg->store->name,
		 contract_name(k), cfg->name);
	ck_assert_int_gt(asprintf(&one->trace, "traces/%s-%s-%s.trace", cfg->store->name, cfg->name,
				  contract_name(k)),
			 0);
	one->operations = 2;
	one->deviations = strcmp(cfg->name, "ddio=off") ? 2 : 1;
	m->r.cell[i][k].cases = 1;
}

static void print(struct made *m)
{
	FILE *out = stdout;
	ck_assert_int_eq(report_open(&m->r), 0);
	for (unsigned i = 0; i < m->c.configs; i++)
		for (unsigned k = 0; k < TM_CONTRACTS; k++)
			if (m->c.cell[i][k].broken && !report_in_short(&m->r, i))
				add_case(m, i, k);
	stdout = open_memstream(&m->text, &m->len);
	report_summary(&m->r);
	fclose(stdout);
	stdout = out;
}

static void teardown(struct made *m)
{
	report_close(&m->r);
	campaign_free(&m->c);
	free(m->text);
}

/* Where the text stands; it does. */
static const char *find(const struct made *m, const char *text)
{
	const char *at = strstr(m->text, text);
	ck_assert_msg(at != NULL, "no \"%s\" in:\n%s", text, m->text);
	return at;
}

/* A row of the matrix, or its head. */
static const char *row(const struct made *m, const char *name)
{
	char start[100];
	snprintf(start, sizeof(start), "\n  %s  ", name);
	return find(m, start) + 1;
}

static char mark(const struct made *m, const char *name, unsigned k)
{
	const char *head = find(m, "  RDA  LIN"), *column = strstr(head, contract_name(k));
	while (head > m->text && head[-1] != '\n')
		head--;
	return row(m, name)[column - head + (strlen(contract_name(k)) - 1) / 2];
}

static void check_size(const struct made *m)
{
	unsigned lines = 0;
	for (const char *at = m->text; *at; at += strcspn(at, "\n") + 1, lines++) {
		size_t len = strcspn(at, "\n");
		ck_assert_msg(len <= COLUMNS || strstr(at, " replay ") < at + len,
			      "%zu columns: %.*s", len, (int)len, at);
	}
	ck_assert_msg(lines <= SCREEN, "%u lines:\n%s", lines, m->text);
}

START_TEST(all_as_expected)
{
	struct made m;
	setup(&m);
	print(&m);
	ck_assert_ptr_eq(find(&m, "Nothing needs attention: "), m.text);
	ck_assert_str_eq(find(&m, "Everything is as expected.\n"), "Everything is as expected.\n");
	ck_assert_int_eq(mark(&m, "efactory", TM_RDA), '.');
	ck_assert_int_eq(mark(&m, "efactory", TM_NORES), '-');
	ck_assert_int_eq(mark(&m, "efactory", TM_LIN), 'X');
	ck_assert_int_eq(mark(&m, "efactory", TM_DUR), 'x');
	ck_assert_int_eq(mark(&m, "erda (all hardware)", TM_FSCK), '.');
	find(&m, "  efactory   7 shapes as expected: 21700 runs, 311381 states; broken RDA LIN "
		 "DUR BUF\n");
	ck_assert_ptr_null(strstr(m.text, "(sizes)"));
	ck_assert_int_eq(mark(&m, "rdmp_kv (all hardware)", TM_DUR), '.');
	ck_assert_ptr_null(strstr(m.text, "rdmp_kv (ddio=off)"));
	/* The smallest trace, and why: without the details of the sentence. */
	find(&m, "\n  LIN    a PUT is acknowledged when the responder's NIC has the value");
	find(&m, "replay traces/efactory-ddio=off-LIN.trace\n");
	ck_assert_ptr_null(strstr(m.text, "the paper takes"));
	ck_assert_ptr_null(strstr(m.text, "efactory-default-LIN"));
	check_size(&m);
	teardown(&m);
}
END_TEST

START_TEST(promise_broken)
{
	struct made m;
	setup(&m);
	m.c.cell[config(&m, "efactory", "default")][TM_KEEP].broken = true;
	m.c.cell[config(&m, "efactory", "domain=mhp")][TM_KEEP].broken = true;
	m.c.cell[config(&m, "erda", "wrap")][TM_RDA].broken = true;
	m.c.cell[config(&m, "rdmp_kv", "ddio=off")][TM_DUR].broken = true;
	print(&m);
	ck_assert_ptr_eq(find(&m, "4 results need attention\n"), m.text);
	ck_assert_int_eq(mark(&m, "rdmp_kv (ddio=off)", TM_DUR), '!');
	ck_assert_int_eq(mark(&m, "rdmp_kv (ack_early=off)", TM_DUR), '.');
	const char *first = find(&m, "\nefactory KEEP: NOT AS EXPECTED, in 0 of 889677 states\n"
				     "  efactory saw KEEP under default\n"),
		   *replay = find(&m, "replay traces/efactory-default-KEEP.trace"),
		   *why = find(&m, "  expected otherwise: the version list"),
		   *also = find(&m, "  also under domain=mhp\n"),
		   *shape = find(&m, "\nerda (wrap) RDA: NOT AS EXPECTED");
	ck_assert(first < replay && replay < why && why < also && also < shape);
	ck_assert(shape < row(&m, "efactory"));
	ck_assert_int_eq(mark(&m, "efactory", TM_KEEP), '!');
	ck_assert_int_eq(mark(&m, "efactory (domain=mhp)", TM_KEEP), '!');
	ck_assert_int_eq(mark(&m, "efactory (domain=wsp)", TM_KEEP), '.');
	ck_assert_int_eq(mark(&m, "erda (wrap)", TM_RDA), '!');
	find(&m, "  erda       15 of 16 shapes as expected: ");
	ck_assert_str_eq(find(&m, "Not everything is as it should be: "),
			 "Not everything is as it should be: efactory KEEP, efactory (domain=mhp) "
			 "KEEP, erda (wrap) RDA, rdmp_kv (ddio=off) DUR\n");
	teardown(&m);
}
END_TEST

START_TEST(known_breaks_that_differ)
{
	struct made m;
	unsigned first;
	setup(&m);
	struct campaign_cell *erda = m.c.cell[config(&m, "erda", "default")];
	known_store_rows(m.c.config[config(&m, "erda", "default")].store, &first);
	erda[TM_NORES].broken = false;
	erda[TM_DUR].strange = true;
	erda[TM_DUR].strange_unit = config(&m, "erda", "default") * m.c.workloads;
	erda[TM_DUR].blame.contract = TM_DUR;
	erda[TM_BUF].often = true;
	erda[TM_BUF].often_row = first;
	erda[TM_BUF].often_runs = 97;
	print(&m);
	ck_assert_ptr_eq(find(&m, "3 results need attention\n"), m.text);
	ck_assert(find(&m, "erda DUR: BROKEN FOR ANOTHER CAUSE, in 1 of") <
		  find(&m, "  another cause than the known ones, in 0 of 1 broken states"));
	ck_assert(find(&m, "erda BUF: BROKEN FAR MORE OFTEN, in 1 of") <
		  find(&m, "  a known cause, but 97 runs show it"));
	ck_assert(find(&m, "erda NORES: NOT AS EXPECTED, it holds in 889677 states\n") <
		  find(&m, "  expected otherwise: a delete object is not flushed either"));
	ck_assert_int_eq(mark(&m, "erda", TM_DUR), '!');
	ck_assert_int_eq(mark(&m, "erda", TM_BUF), '!');
	ck_assert_int_eq(mark(&m, "erda", TM_NORES), '!');
	ck_assert_int_eq(mark(&m, "erda (ddio=off)", TM_NORES), 'x');
	teardown(&m);
}
END_TEST

/* What was not seen to break, where it may; and what nothing was tried of. */
START_TEST(could_not_tell)
{
	struct made m;
	setup(&m);
	m.r.whole = false;
	m.c.cell[config(&m, "efactory", "default")][TM_BUF].broken = false;
	m.c.total[config(&m, "erda", "ddio=off")].states = 0;
	print(&m);
	ck_assert_ptr_eq(find(&m, "Nothing needs attention: "), m.text);
	ck_assert_int_eq(mark(&m, "efactory", TM_BUF), '?');
	ck_assert_int_eq(mark(&m, "erda (ddio=off)", TM_RDA), '.');
	ck_assert_int_eq(mark(&m, "erda (ddio=off)", TM_FSCK), '?');
	ck_assert_int_eq(mark(&m, "erda", TM_FSCK), '.');
	teardown(&m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("summary");
	TCase *cases = tcase_create("summary");
	tcase_add_test(cases, all_as_expected);
	tcase_add_test(cases, promise_broken);
	tcase_add_test(cases, known_breaks_that_differ);
	tcase_add_test(cases, could_not_tell);
	suite_add_tcase(suite, cases);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
