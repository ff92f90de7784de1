/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The summary of a campaign, of made-up results: the matrix has the right mark in each cell and its
 * rows appear in their order, whatever is finished first; below it stands what needs attention; and
 * all of it is about a screen.
 */
#include "checker/hunt/plan.h"
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "report/report.h"
#include "tests/suite.h"

#define SCREEN	50  /* lines */
#define COLUMNS 80  /* of the matrix and its legend, when all is finished */
#define WIDE	100 /* of text; not of commands, whose file names can be long */

static struct made {
	struct campaign c;
	struct report r;
	char *text;
	size_t len;
} m;

/* The default campaign: everything breaks that may, and nothing else. */
static void setup(void)
{
	const struct plan all = {0};
	char why[PLAN_TEXT];
	memset(&m, 0, sizeof(m));
	m.c.options = campaign_default;
	m.c.config = calloc(PLAN_CONFIGS, sizeof(*m.c.config));
	ck_assert_ptr_nonnull(m.c.config);
	ck_assert_int_eq(plan_configs(&m.c, &all, why), 0);
	ck_assert_int_eq(plan_builtin_workloads(&m.c), 0);
	m.c.cell = calloc(m.c.configs, sizeof(*m.c.cell));
	m.c.total = calloc(m.c.configs, sizeof(*m.c.total));
	m.c.unit = calloc((size_t)m.c.configs * m.c.workloads, sizeof(*m.c.unit));
	ck_assert(m.c.cell && m.c.total && m.c.unit);
	for (unsigned u = 0; u < m.c.configs * m.c.workloads; u++)
		m.c.unit[u].done = true;
	for (unsigned i = 0; i < m.c.configs; i++) {
		const struct campaign_config *cfg = &m.c.config[i];
		m.c.total[i].runs = cfg->shape ? 3100 : 62000;
		m.c.total[i].states = cfg->shape ? 44483 : 889677;
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			const struct expectation *e = expect_find(cfg->store->name, cfg->name,
								  (int)k);
			m.c.cell[i][k].broken = e && (e->broken || e->open);
			m.c.cell[i][k].broken_states = m.c.cell[i][k].broken;
		}
	}
	m.r = (struct report){.campaign = &m.c, .whole = true, .out = "nowhere"};
}

static unsigned config(const char *store, const char *name)
{
	for (unsigned i = 0; i < m.c.configs; i++)
		if (!strcmp(m.c.config[i].store->name, store) && !strcmp(m.c.config[i].name, name))
			return i;
	ck_abort_msg("no configuration %s of %s", name, store);
}

/* As report_traces() leaves it. */
static void add_case(unsigned i, unsigned k)
{
	const struct campaign_config *cfg = &m.c.config[i];
	struct report_case *one = &m.r.cell[i][k].one[0];
	snprintf(one->text, sizeof(one->text), "%s saw %s under %s", cfg->store->name,
		 contract_name(k), cfg->name);
	ck_assert_int_gt(asprintf(&one->trace, "nowhere/%s-%s-%s.trace", cfg->store->name,
				  cfg->name, contract_name(k)),
			 0);
	one->operations = 2;
	one->deviations = strcmp(cfg->name, "ddio=off") ? 2 : 1;
	m.r.cell[i][k].cases = 1;
}

static void undo(unsigned i, unsigned done)
{
	for (unsigned w = done; w < m.c.workloads; w++)
		m.c.unit[i * m.c.workloads + w].done = false;
}

static void print(void)
{
	struct report_matrix matrix;
	FILE *out = stdout;
	ck_assert_int_eq(report_open(&m.r), 0);
	report_judge_all(&m.r);
	for (unsigned i = 0; i < m.c.configs; i++)
		for (unsigned k = 0; k < TM_CONTRACTS; k++)
			if (m.c.cell[i][k].broken && !report_in_short(&m.r, i))
				add_case(i, k);
	stdout = open_memstream(&m.text, &m.len);
	report_matrix_begin(&matrix, &m.r);
	report_matrix_end(&matrix);
	report_conclude(&m.r);
	json_t *tree = report_tree(&m.r);
	report_summary(&m.r, tree);
	json_decref(tree);
	fclose(stdout);
	stdout = out;
}

static void teardown(void)
{
	report_close(&m.r);
	campaign_free(&m.c);
	free(m.text);
}

/* Where the text stands; it does. */
static const char *find(const char *text)
{
	const char *at = strstr(m.text, text);
	ck_assert_msg(at != NULL, "no \"%s\" in:\n%s", text, m.text);
	return at;
}

/* A row of the matrix: of a store, and of the hardware that stands below it. */
static const char *row(const char *store, const char *hardware)
{
	char start[100];
	snprintf(start, sizeof(start), "\n  %s  ", store);
	const char *at = find(start);
	if (!*hardware)
		return at + 1;
	snprintf(start, sizeof(start), "\n    %s  ", hardware);
	at = strstr(at, start);
	ck_assert_msg(at != NULL, "no row of %s, %s in:\n%s", store, hardware, m.text);
	return at + 1;
}

static char mark_at(const char *store, const char *hardware, unsigned k)
{
	const char *head = find(" RDA LIN"), *column = strstr(head, contract_name(k));
	while (head > m.text && head[-1] != '\n')
		head--;
	return row(store, hardware)[column - head + (strlen(contract_name(k)) - 1) / 2];
}

static char mark(const char *store, unsigned k)
{
	return mark_at(store, "", k);
}

/* At most so many columns up to the end of the legend. */
static void check_size(size_t columns)
{
	unsigned lines = 0;
	const char *text = find("docs/contracts.md");
	for (const char *at = m.text; *at; at += strcspn(at, "\n") + 1, lines++) {
		size_t len = strcspn(at, "\n");
		ck_assert_msg(len <= (at < text ? columns : WIDE) ||
				      strstr(at, " replay ") < at + len,
			      "%zu columns: %.*s", len, (int)len, at);
	}
	ck_assert_msg(lines <= SCREEN, "%u lines:\n%s", lines, m.text);
}

TEST(all_as_expected)
{
	print();
	const char *head = find(" RDA LIN"), *legend = find("\n  .  holds"),
		   *nothing = find("\nNothing needs attention: ");
	ck_assert(head < legend && legend < nothing);
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		char line[40];
		snprintf(line, sizeof(line), "\n  %-5s  %.20s", contract_name(k), contract_what(k));
		/* No store of the default campaign has a judge of its own, transactions, or
		 * several servers. */
		if (k != TM_OWN && k != TM_ATOM && k != TM_SSER && k != TM_DURN && k != TM_FENCE &&
		    k != TM_AGREE)
			find(line);
	}
	ck_assert_str_eq(find("Everything is as expected.\n"), "Everything is as expected.\n");
	ck_assert_int_eq(mark("efactory", TM_RDA), '.');
	ck_assert_int_eq(mark("efactory", TM_NORES), '.');
	ck_assert_int_eq(mark("efactory", TM_LIN), 'X');
	ck_assert_int_eq(mark("efactory", TM_DUR), 'x');
	ck_assert_int_eq(mark("erda (all hardware)", TM_FSCK), '.');
	ck_assert_int_eq(mark("rdmp_kv (all hardware)", TM_DUR), '.');
	ck_assert_ptr_null(strstr(m.text, "sizes"));
	find("shapes (full logs");
	/* Only one of the traces is named: the smallest of a promise. */
	find("How efactory breaks LIN, step by step");
	find("replay nowhere/efactory-ddio=off-LIN.trace\n");
	ck_assert_ptr_null(strstr(find("-LIN.trace\n") + 11, ".trace\n"));
	ck_assert_ptr_null(strstr(m.text, "\033"));
	check_size(COLUMNS);
}

TEST(promise_broken)
{
	m.c.cell[config("efactory", "default")][TM_KEEP].broken = true;
	m.c.cell[config("efactory", "domain=mhp")][TM_KEEP].broken = true;
	m.c.cell[config("erda", "wrap")][TM_RDA].broken = true;
	m.c.cell[config("rdmp_kv", "ddio=off")][TM_DUR].broken = true;
	print();
	const char *attention = find("\n4 results need attention\n");
	ck_assert_int_eq(mark_at("rdmp_kv", "ddio=off", TM_DUR), '!');
	ck_assert_int_eq(mark_at("rdmp_kv", "ack_early=off", TM_DUR), '.');
	const char *first = find("\nefactory KEEP: NOT AS EXPECTED, in 0 of 889677 states\n"
				 "  efactory saw KEEP under default\n"),
		   *replay = find("replay nowhere/efactory-default-KEEP.trace"),
		   *why = find("  expected otherwise: the version list"),
		   *also = find("  also under domain=mhp\n"),
		   *shape = find("\nerda (wrap) RDA: NOT AS EXPECTED");
	ck_assert(first < replay && replay < why && why < also && also < shape);
	ck_assert(row("erda (all hardware)", "wrap") < attention && attention < first);
	ck_assert_int_eq(mark("efactory", TM_KEEP), '!');
	ck_assert_int_eq(mark_at("efactory", "domain=mhp", TM_KEEP), '!');
	ck_assert_int_eq(mark_at("efactory", "domain=wsp", TM_KEEP), '.');
	ck_assert_int_eq(mark_at("erda (all hardware)", "wrap", TM_RDA), '!');
	ck_assert_ptr_null(strstr(m.text, "Everything is as expected"));
	ck_assert_str_eq(find("Not everything is as it should be: "),
			 "Not everything is as it should be: efactory KEEP, efactory (domain=mhp) "
			 "KEEP, erda (wrap) RDA,\nrdmp_kv (ddio=off) DUR.\n");
}

TEST(known_breaks_that_differ)
{
	unsigned first;
	struct campaign_cell *erda = m.c.cell[config("erda", "default")];
	known_store_rows(m.c.config[config("erda", "default")].store, &first);
	erda[TM_NORES].broken = false;
	erda[TM_DUR].strange = true;
	erda[TM_DUR].strange_unit = config("erda", "default") * m.c.workloads;
	erda[TM_DUR].blame.contract = TM_DUR;
	erda[TM_BUF].often = true;
	erda[TM_BUF].often_row = first;
	erda[TM_BUF].often_runs = 97;
	print();
	find("\n3 results need attention\n");
	ck_assert(find("erda DUR: BROKEN FOR ANOTHER CAUSE, in 1 of") <
		  find("  another cause than the known ones, in 0 of 1 broken state, "));
	ck_assert(find("erda BUF: BROKEN FAR MORE OFTEN, in 1 of") <
		  find("  a known cause, but 97 runs show it"));
	ck_assert(find("erda NORES: NOT AS EXPECTED, it holds in 889677 states\n") <
		  find("  expected otherwise: a delete object is not flushed either"));
	ck_assert_int_eq(mark("erda", TM_DUR), '!');
	ck_assert_int_eq(mark("erda", TM_BUF), '!');
	ck_assert_int_eq(mark("erda", TM_NORES), '!');
	ck_assert_int_eq(mark_at("erda", "ddio=off", TM_NORES), 'x');
}

/* What was not seen to break, where it may; and what nothing was tried of. */
TEST(could_not_tell)
{
	m.r.whole = false;
	m.c.cell[config("efactory", "default")][TM_BUF].broken = false;
	m.c.total[config("efactory", "ddio=off")].states = 0;
	print();
	find("\nNothing needs attention: ");
	ck_assert_int_eq(mark("efactory", TM_BUF), '?');
	ck_assert_int_eq(mark_at("efactory", "ddio=off", TM_RDA), '.');
	ck_assert_int_eq(mark_at("efactory", "ddio=off", TM_KEEP), '?');
	ck_assert_int_eq(mark("efactory", TM_KEEP), '.');
}

/* What is expected to break and need not have, with a smaller budget, is named. */
TEST(unseen)
{
	m.c.cell[config("efactory", "default")][TM_LIN].broken = false;
	m.r.whole = false;
	m.r.budgeted = true;
	print();
	find("\nexpected to break, and not seen to with so small a budget: efactory LIN\n");
	ck_assert_int_eq(mark("efactory", TM_LIN), '?');
	ck_assert_int_eq(m.r.conclusion.status, EXIT_HELD);
}

/* And what another seed may judge otherwise. */
TEST(narrow)
{
	struct campaign_cell *near = &m.c.cell[config("erda", "ddio=off")][TM_DUR],
			     *rare = &m.c.cell[config("efactory", "default")][TM_KEEP];
	near->nearly_runs = 47;
	near->nearly_limit = 53;
	rare->broken = true;
	rare->broken_states = 1;
	m.c.total[config("efactory", "default")].states = 231205;
	m.c.options.shares = true;
	m.c.options.seed = 4;
	print();
	find("\nnarrow, another seed may tell otherwise: efactory KEEP (in 1 of ");
	find("erda (ddio=off) DUR (47");
	find(" crashtest efactory --budget whole --seed 5\n");
}

/* A surprise that is one by a few runs more than a limit, and one that few of the broken states
 * are. */
static void surprise_by(uint64_t often_runs, uint64_t strange_states)
{
	struct campaign_cell *often = &m.c.cell[config("erda", "ddio=off")][TM_DUR],
			     *strange = &m.c.cell[config("efactory", "default")][TM_LIN];
	often->broken = often->often = true;
	often->broken_states = 5000;
	often->recorded = 22;
	often->often_runs = often_runs;
	strange->broken = strange->strange = true;
	strange->broken_states = 50000;
	strange->strange_states = strange_states;
	m.c.total[config("efactory", "default")].runs = 231205;
	m.c.total[config("erda", "ddio=off")].states = 20000;
	m.c.options.shares = true;
	print();
}

TEST(narrow_surprises)
{
	surprise_by(58, 3);
	find("erda (ddio=off) DUR (58");
	find("efactory LIN (in 3 of ");
}

TEST(plain_surprises)
{
	surprise_by(65, 300);
	ck_assert_ptr_null(strstr(m.text, "narrow"));
}

TEST(not_narrow)
{
	struct campaign_cell *rare = &m.c.cell[config("efactory", "default")][TM_KEEP];
	rare->broken = true;
	rare->broken_states = 100;
	m.c.total[config("efactory", "default")].states = 231205;
	m.c.options.shares = true;
	print();
	ck_assert_ptr_null(strstr(m.text, "narrow"));
}

/* What was left off: what is not finished is not known unless it broke; nothing else is. */
TEST(left_off)
{
	m.r.left_off = "at SIGINT";
	m.r.whole_command = "tidemark crashtest";
	for (unsigned i = 0; i < m.c.configs; i++)
		if (i > config("efactory", "ddio=off"))
			undo(i, 0);
	undo(config("efactory", "ddio=off"), 3);
	m.c.cell[config("efactory", "ddio=off")][TM_BUF].broken = false;
	print();
	ck_assert_int_eq(mark("efactory", TM_RDA), '.');
	ck_assert_int_eq(mark_at("efactory", "ack_early=off", TM_RDA), '.');
	ck_assert_int_eq(mark_at("efactory", "ddio=off", TM_RDA), '-');
	find("\n  -  nothing broken until now: ");
	ck_assert_int_eq(mark_at("efactory", "ddio=off", TM_LIN), 'X');
	find("  3/");
	find(" more rows were not begun\n");
	ck_assert_ptr_null(strstr(m.text, "rdmp_kv"));
	ck_assert_int_eq(m.r.surprises, 0); /* what should break need not have, yet */
	find("\nLeft off at SIGINT: ");
	ck_assert_int_eq(m.r.conclusion.status, EXIT_UNSURE);
	find("\nAll of it: tidemark crashtest\n");
	ck_assert_ptr_null(strstr(m.text, "Everything is as expected"));
	ck_assert_ptr_null(strstr(m.text, "Nothing needs attention"));
}

/* Something of all was tried, and nothing is finished: hardware that is alike is still one row, and
 * all of it is a screen. */
TEST(nothing_finished)
{
	m.r.left_off = "after --time";
	m.r.whole_command = "tidemark crashtest";
	for (unsigned i = 0; i < m.c.configs; i++)
		undo(i, 2);
	m.c.cell[config("rdmp_kv", "ddio=off")][TM_DUR].broken = true;
	print();
	ck_assert_int_eq(mark("efactory", TM_RDA), '-');
	ck_assert_int_eq(mark("efactory", TM_LIN), 'X');
	ck_assert_int_eq(mark("erda (all hardware)", TM_FSCK), '-');
	ck_assert_int_eq(mark_at("rdmp_kv", "ddio=off", TM_DUR), '!');
	const char *alike = row("erda (all hardware)", ""), *all = strchr(alike, '\n');
	char count[60];
	snprintf(count, sizeof(count), "  14/%u workloads", 7 * m.c.workloads);
	ck_assert(all && !strncmp(all - strlen(count), count, strlen(count)));
	find("shapes (full logs");
	find(" more\n  until now, ");
	find("\n1 result needs attention\n");
	find("\nLeft off after --time: ");
	ck_assert_ptr_null(strstr(m.text, "finished is as expected"));
	check_size(WIDE);
}

/* What breaks wherever there is DDIO is one thing, of all contracts that it is so of. */
TEST(holds_on_some_hardware)
{
	static const char *const with[] = {"default", "ack_early=off", "dma_order=any",
					   "line_torn=prefix", "sizes"};
	for (unsigned i = 0; i < 5; i++)
		m.c.cell[config("erda", with[i])][TM_RDA]
			.broken = m.c.cell[config("erda", with[i])][TM_FSCK].broken = true;
	m.c.cell[config("erda", "default")][TM_LIVE].broken = true;
	print();
	find("\n2 results need attention, in 11 cells of the matrix\n");
	find("\nerda RDA, FSCK: NOT AS EXPECTED, holds on: ddio=off, domain=mhp, domain=wsp\n"
	     "  RDA, in 0 of 951677 runs and states\n");
	find("\n  if ddio=on+domain=dmp  RDA,FSCK  broken  WHY\n");
	find("\nerda LIVE: NOT AS EXPECTED, in ");
	ck_assert_str_eq(m.r.conclusion.text,
			 "Not everything is as it should be: erda RDA, FSCK (holds on: ddio=off, "
			 "domain=mhp, domain=wsp), erda LIVE.");
}

/* Of a small budget it is said how small it was. */
TEST(small_budget)
{
	snprintf(m.r.tried, sizeof(m.r.tried), "60 of the usual 450 runs of a workload");
	print();
	ck_assert_int_eq(m.r.conclusion.status, EXIT_HELD);
	find("\nEverything that was tried is as expected: 60 of the usual 450 runs of a "
	     "workload.\n");
}

/* Of many that need attention, as many are named as there is room for. */
TEST(many_surprises)
{
	for (unsigned i = 0; i < m.c.configs; i++)
		m.c.cell[i][TM_RDA].broken = m.c.cell[i][TM_FSCK].broken = m.c.cell[i][TM_LIVE]
										   .broken = true;
	print();
	const char *text = m.r.conclusion.text, *more = strstr(text, ", and ");
	ck_assert_int_eq(m.r.conclusion.status, EXIT_BROKEN);
	ck_assert(more && !strcmp(strstr(more, " more"), " more."));
}

/* A file could not be written: that is the verdict, not that all is well. */
TEST(unwritten)
{
	m.r.unwritten = EXIT_USAGE;
	print();
	ck_assert_ptr_null(strstr(m.text, "Everything is as expected"));
	find("\nNot all results could be written.\n");
}

/* The text so far, and what came since. */
static size_t rows_now(struct report_matrix *matrix, size_t before)
{
	report_matrix_rows(matrix);
	fflush(stdout);
	ck_assert_uint_ge(m.len, before);
	return m.len;
}

/* Rows appear as soon as they are finished, in the order of the configurations; and the text is
 * that of a campaign that is printed at its end. */
TEST(rows_as_finished)
{
	struct report_matrix matrix;
	print();
	char *whole = m.text;
	m.text = NULL;
	teardown();
	setup();
	const unsigned early = config("efactory", "ack_early=off"),
		       kv = config("rdmp_kv", "default");
	for (unsigned i = 0; i < m.c.configs; i++)
		undo(i, 0);
	FILE *out = stdout;
	stdout = open_memstream(&m.text, &m.len);
	ck_assert_int_eq(report_open(&m.r), 0);
	report_matrix_begin(&matrix, &m.r);
	size_t at = 0;
	for (unsigned turn = 0; turn < m.c.configs; turn++) {
		/* The second one is finished before the first. */
		unsigned i = turn == 0 ? early : turn <= early ? turn - 1 : turn;
		for (unsigned w = 0; w < m.c.workloads; w++)
			m.c.unit[i * m.c.workloads + w].done = true;
		report_judge(&m.r, i);
		size_t now = rows_now(&matrix, at);
		if (turn == 0)
			ck_assert_uint_eq(now, 0);
		if (turn == 1)
			row("efactory", "ack_early=off");
		if (i == kv) /* it may be that all hardware is alike */
			ck_assert_uint_eq(now, at);
		at = now;
	}
	report_matrix_end(&matrix);
	fclose(stdout);
	stdout = out;
	ck_assert(!strncmp(m.text, whole, m.len));
	free(whole);
}

RUN_TESTS(setup, teardown)
