/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark crashtest: run the campaign, shrink and write a trace for each broken
 * cell, print the matrix, compare it with what is expected.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "checker/campaign/budget.h"
#include "checker/judge/baseline.h"
#include "checker/judge/expect.h"
#include "checker/judge/known.h"
#include "checker/trace/wrong.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/coverage.h"
#include "report/rows/baseline.h"
#include "report/rows/causes.h"
#include "report/findings.h"
#include "report/output.h"
#include "report/page/campaign.h"
#include "report/report.h"
#include "core/text/text.h"

/* What is done while it runs. */
struct going {
	struct report *report;
	struct report_matrix matrix;
	struct leave_off *leave_off;
	bool tables; /* instead of the matrix */
	bool failed; /* a unit did not run as it should: that is all that is going to be told */
};

/* Cells of a configuration that need attention, as TM_BIT()s. */
static unsigned attention(const struct report *r, unsigned config)
{
	unsigned set = 0;
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		set |= r->cell[config][k].surprise ? TM_BIT(k) : 0;
	return set;
}

/* As soon as it is known: rows of the matrix end late, as all begin early. */
static void tell_found(const struct report *r, unsigned config, unsigned found)
{
	char name[REPORT_NAME], contracts[256];
	config_name(&r->campaign->config[config], name, sizeof(name));
	progress_line(NULL);
	fprintf(stderr, "%s: %s %s needs attention; the end of this campaign says why\n", program,
		name, contract_list(found, ", ", contracts, sizeof(contracts)));
}

static void taken(void *arg, unsigned unit)
{
	struct going *g = arg;
	const struct campaign *c = g->report->campaign;
	const unsigned config = unit / c->workloads;
	g->failed |= c->unit[unit].error || c->unit[unit].diverged;
	const unsigned before = attention(g->report, config);
	if (report_judge(g->report, config))
		leave_off_found(g->leave_off);
	const unsigned found = attention(g->report, config) & ~before;
	if (found && !g->leave_off->quiet && !shard_is_part(&g->leave_off->shard))
		tell_found(g->report, config, found);
	if (g->tables || g->failed || !report_is_whole(g->report, config))
		return;
	progress_line(NULL);
	report_matrix_rows(&g->matrix);
}

/* --- the verdict --- */

/* What is known of recoveries was wrong in a unit: with the run with which it was, for whoever
 * mends this. */
static int tell_wrong(const struct campaign *c, unsigned unit)
{
	char why[WORLDS_WHY];
	wrong_again(c, unit, why);
	return fail(EXIT_INTERNAL, "%s, workload %s: %s",
		    c->config[unit / c->workloads].store->name,
		    c->workload[unit % c->workloads].name, why);
}

/* The options that run a unit alone. */
static void unit_options(const struct campaign *c, unsigned unit, char *buf, size_t n)
{
	const struct campaign_config *cfg = &c->config[unit / c->workloads];
	char knobs[CAMPAIGN_NAME], *save = NULL;
	bool variant = strcmp(cfg->variant, "default");
	snprintf(buf, n, "%s%s --workload %s", variant ? " --variant " : "",
		 variant ? cfg->variant : "", c->workload[unit % c->workloads].name);
	snprintf(knobs, sizeof(knobs), "%s", strcmp(cfg->name, "default") ? cfg->name : "");
	for (char *knob = strtok_r(knobs, " ", &save); knob; knob = strtok_r(NULL, " ", &save)) {
		size_t len = strlen(buf);
		snprintf(buf + len, n - len, " --knob %s", knob);
	}
}

/* Runs differ when run again: in which unit they first do, and the command that shows it. */
static int tell_diverged(const struct campaign *c, unsigned unit, bool ops, uint64_t diverged)
{
	const struct campaign_config *cfg = &c->config[unit / c->workloads];
	char name[REPORT_NAME], options[400] = "";
	config_name(cfg, name, sizeof(name));
	/* No options name a shape; it is in all that is run of its store. */
	if (!cfg->shape && !ops)
		unit_options(c, unit, options, sizeof(options));
	return fail(EXIT_INTERNAL,
		    "%" PRIu64 " run%s when run again, the first with %s and workload %s; to see "
		    "it: %s crashtest %s%s --runs %" PRIu64 " --seed %" PRIu64 " --doublecheck",
		    diverged, diverged == 1 ? " differs" : "s differ", name,
		    c->workload[unit % c->workloads].name, program, cfg->store->name, options,
		    c->options.runs, c->options.seed);
}

/* A unit did not run. */
static int tell_unit(const struct campaign *c, unsigned unit)
{
	const struct campaign_unit *result = &c->unit[unit];
	return fail(result->error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE,
		    "%s (%s) cannot run workload %s: %s",
		    c->config[unit / c->workloads].store->name, c->config[unit / c->workloads].name,
		    c->workload[unit % c->workloads].name, result->why);
}

/* Did the campaign itself go well? 0, or the status after a message. */
static int check_campaign(const struct campaign *c, const struct arguments *a, int error)
{
	const unsigned units = c->unit ? c->configs * c->workloads : 0;
	uint64_t diverged = 0;
	unsigned first = 0;
	/* Then nothing that another one says is worth anything. */
	for (unsigned u = 0; u < units; u++)
		if (c->unit[u].error == -ENOTRECOVERABLE)
			return tell_wrong(c, u);
	for (unsigned u = 0; u < units; u++) {
		const struct campaign_unit *unit = &c->unit[u];
		if (unit->error)
			return tell_unit(c, u);
		first = unit->diverged && !diverged ? u : first;
		diverged += unit->diverged;
	}
	if (error)
		return fail(EXIT_INTERNAL, "%s", driver_error(error));
	return diverged ? tell_diverged(c, first, a->ops != NULL, diverged) : 0;
}

/* Of what the report makes of traces: 0, or the status after a message. */
static int told(int error, const char *why)
{
	if (!error)
		return 0;
	bool ours = error == -EPROTO || error == -ENOMEM || error == -ENOTRECOVERABLE;
	return fail(ours ? EXIT_INTERNAL : EXIT_USAGE, "%s", why);
}

static int write_pages(const struct report *r, const struct arguments *a)
{
	char why[REPORT_WHY];
	return a->html ? told(report_pages(r, a->html, a->leave_off.quiet, why), why) : 0;
}

/* The tree of results, with what needs attention at its lines of source if a format has that. */
static int make_tree(const struct report *r, const struct arguments *a, json_t **all)
{
	struct findings findings = {0};
	char why[REPORT_WHY];
	int status = 0;
	*all = report_tree(r);
	if (result_asked(OUTPUT_SARIF) || a->annotations) {
		status = told(findings_find(r, a->leave_off.quiet, &findings, why), why);
		json_object_set_new(*all, "findings", findings_json(&findings));
		findings_free(&findings);
	}
	return status;
}

static int write_baseline(const struct report *r, const struct arguments *a)
{
	bool more = false;
	int status = a->write_baseline ? saved(a->write_baseline,
					       report_baseline_save(r, a->write_baseline, &more))
				       : 0;
	if (more && !status)
		fprintf(stderr,
			"tidemark: %s: not all causes; this command again, with --baseline %s and "
			"another file, finds more\n",
			a->write_baseline, a->write_baseline);
	return status;
}

/* What it comes to, by what is known until now. */
static void conclude_all(struct going *g, int unwritten)
{
	struct report *r = g->report;
	r->unwritten = r->unwritten ? r->unwritten : unwritten;
	report_conclude(r);
	r->conclusion.status = leave_off_status(g->leave_off, r->conclusion.status);
}

/* The campaign is done, or left off. */
static int report(struct going *g, const struct arguments *a)
{
	struct report *r = g->report;
	char why[REPORT_WHY];
	json_t *all;
	report_judge_all(r);
	if (!g->tables)
		report_matrix_end(&g->matrix);
	output_flush();
	/* Even if traces cannot be written, the matrix has cost too much to be thrown away. */
	conclude_all(g, told(report_traces(r, a->leave_off.quiet, why), why));
	conclude_all(g, write_pages(r, a));
	conclude_all(g, make_tree(r, a, &all));
	conclude_all(g, outputs_write(json_incref(all), &r->conclusion));
	conclude_all(g, write_baseline(r, a));
	if (g->tables)
		report_tables(r, all);
	else
		report_summary(r, all);
	/* After the text, in which there are errors of the same words. */
	if (a->annotations && !tree_end(all, &r->conclusion))
		tree_write_annotations(stdout, all);
	json_decref(all);
	return r->conclusion.status;
}

static int record(const struct campaign *c, const char *path,
		  int (*save)(const struct campaign *c, const char *path,
			      struct input_error *error))
{
	struct input_error error;
	return input_status(path, save(c, path, &error), &error);
}

/* All workloads, with one of the budgets: nothing else can be compared with what is recorded. */
static bool has_shares(const struct arguments *a)
{
	return !a->knob.n && !a->workload.n && !a->ops && !a->options.exhaustive &&
	       !a->options.only && budget_of(a->options.runs, a->options.states);
}

static bool is_whole(const struct arguments *a)
{
	return a->options.runs >= budget_whole->runs && a->options.states >= budget_whole->states;
}

static bool take_budget(const struct option_row *row, void *into, const char *name)
{
	struct arguments *a = into;
	(void)row;
	a->budget = budget_find(name);
	if (!a->budget)
		fail(EXIT_USAGE, "--budget: \"%.40s\"; expected one of: %s", name, BUDGET_NAMES);
	return a->budget;
}

/* What the command line has not given itself. 0, or the status after a message. */
static int apply_budget(struct arguments *a)
{
	if (!a->budget)
		return 0;
	if (a->options.exhaustive)
		return fail(EXIT_USAGE, "--budget: of random schedules; expected no --exhaustive");
	if (!a->runs_given)
		a->options.runs = a->budget->runs;
	if (!a->states_given)
		a->options.states = a->budget->states;
	a->options.twice = a->budget == budget_whole && a->options.events == 1;
	/* Coverage has no tree of recoveries, without which a search takes long. */
	a->searches = a->budget == budget_whole && !a->options.only && !a->coverage;
	return 0;
}

static bool take_coverage(const struct option_row *row, void *into, const char *dir)
{
	struct arguments *a = into;
	(void)row;
	a->coverage = true;
	a->coverage_dir = dir;
	return true;
}

/* Of how much less than usual it is. */
static int say_budget(const struct arguments *a, const struct campaign *c, char *text, size_t size)
{
	const struct {
		uint64_t is, usual;
		const char *what;
	} budget[] = {{c->options.runs, budget_usual->runs, "runs of a workload"},
		      {c->options.states, budget_usual->states, "crash states of a workload"}};
	unsigned configs = c->configs, workloads = c->workloads, n = 0;
	if (a->options.exhaustive)
		return 0;
	for (unsigned i = 0; i < 2; i++)
		if (budget[i].is < budget[i].usual)
			n += (unsigned)snprintf(
				text + n, size - n, "%s%" PRIu64 " of the usual %" PRIu64 " %s",
				n ? ", " : "", budget[i].is, budget[i].usual, budget[i].what);
	if (a->options.only)
		n += (unsigned)snprintf(text + n, size - n, "%snot all that can happen",
					n ? ", " : "");
	int status = a->workload.n || a->ops ? arguments_usual(a, &configs, &workloads) : 0;
	if (workloads != c->workloads)
		n += (unsigned)snprintf(text + n, size - n,
					"%s%u workload%s instead of the usual %u", n ? ", " : "",
					c->workloads, plural(c->workloads), workloads);
	if (configs != c->configs)
		snprintf(text + n, size - n, ", %u configuration%s instead of the usual %u",
			 c->configs, plural(c->configs), configs);
	return status;
}

static int run_campaign(struct campaign *c, struct arguments *a)
{
	bool all = !a->variant.n && !a->knob.n && !a->workload.n && !a->ops && !a->options.only &&
		   !a->options.exhaustive;
	struct report r = {.campaign = c,
			   .out = a->no_traces ? NULL : a->out,
			   .baseline = a->baseline,
			   .whole = all && is_whole(a),
			   .budgeted = all};
	struct going g = {.report = &r,
			  .leave_off = &a->leave_off,
			  .tables = a->verbose || c->configs <= REPORT_TABLES ||
				    shard_is_part(&a->leave_off.shard)};
	struct covered covered = {0};
	char *command = NULL;
	int status = leave_off_begin(&a->leave_off);
	if (!status && a->coverage)
		status = coverage_open(c, &covered,
				       shard_is_part(&a->leave_off.shard) ? NULL : a->coverage_dir);
	if (!status && report_open(&r))
		status = fail(EXIT_INTERNAL, "out of memory");
	if (!status)
		status = say_budget(a, c, r.tried, sizeof(r.tried));
	if (status)
		goto out;
	report_matrix_begin(&g.matrix, &r);
	c->options.bounds = &a->leave_off.bounds;
	c->options.taken = taken;
	c->options.taken_arg = &g;
	int error = campaign_run(c);
	c->options.covered = NULL; /* what is run again to be shown does not count */
	status = leave_off_end(&a->leave_off, &error);
	if (status >= 0)
		goto out;
	r.left_off = leave_off_why(&a->leave_off);
	command = leave_off_command();
	r.whole_command = command;
	status = check_campaign(c, a, error);
	if (!status && a->causes)
		status = record(c, a->causes, causes_record);
	if (!status && a->shares)
		status = record(c, a->shares, shares_record);
	if (!status)
		status = report(&g, a);
	if (a->coverage && (status == EXIT_HELD || status == EXIT_BROKEN || status == EXIT_UNSURE))
		status = coverage_tell(&covered, a->coverage_dir, status);
	status = leave_off_status(&a->leave_off, status);
out:
	covered_close(&covered);
	report_close(&r);
	free(command);
	return status;
}

/* JSON has no other bytes than UTF-8. */
static int check_json_name(const char *what, const char *name)
{
	json_t *text = json_string(name);
	json_decref(text);
	return text ? 0
		    : fail(EXIT_USAGE,
			   "%s: a name that is not UTF-8 cannot be written to a JSON file", what);
}

/* The folder of pages, and the first of them. */
static int check_pages(const char *dir)
{
	char path[PATH_MAX];
	int status = check_folder("--html", dir, false);
	snprintf(path, sizeof(path), "%s/index.html", dir);
	return status ? status : check_output("--html", path, OUTPUT_PAGE);
}

static int read_baseline(const char *path, struct baseline *out)
{
	struct input_error error;
	return input_status(path, baseline_read(path, out, &error), &error);
}

static bool take_ops(const struct option_row *row, void *into, const char *path)
{
	struct arguments *a = into;
	(void)row;
	if (a->ops)
		fail(EXIT_USAGE, "--ops twice; expected one list");
	else
		a->ops = path;
	return a->ops == path;
}

/* In the order of enum happening. */
static bool take_only(const struct option_row *row, void *into, const char *what)
{
	static const char words[] = "all death power lost cut";
	struct arguments *a = into;
	const int i = word_list_find(words, what);
	(void)row;
	if (i < 0)
		return fail(EXIT_USAGE, "--only: \"%.40s\"; expected one of: %s", what, words),
		       false;
	a->options.only |= 1u << i;
	return true;
}

static const struct option_row rows[] = {
	{.help = "what is tested"},
	{"all", NULL, "every store, also those that are not in the default campaign",
	 ARGUMENT(all_stores)},
	ROW_VARIANT,
	ROW_KNOB,
	{"workload", "NAME", "a built-in workload (tidemark list workloads); may be repeated",
	 ARGUMENT(workload)},
	{"ops", "FILE",
	 "a recorded operation list (docs/ops-file.md), one more workload; - reads standard input",
	 OPTION_CALL(take_ops)},
	{.help = "Without all of these: every built-in workload, under seven kinds of hardware, "
		 "with lengths at edges, and in each store's shapes."},
	{.help = "how much"},
	{"budget", "NAME",
	 "how many runs and states each workload gets, where they are not given: quick, for a "
	 "first look; usual (the default); or whole, with which expectations are recorded",
	 OPTION_CALL(take_budget)},
	ROW_RUNS("schedules of each workload (=)"),
	{"states", "N", "crash states of each workload at most (=)",
	 ARGUMENT_GIVEN(options.states, 1, UINT64_MAX / 2, states_given)},
	ROW_SEED("of the schedules (=)"),
	OPTION_JOBS(struct arguments, options.jobs),
	ROW_TIME(struct arguments, leave_off),
	ROW_FAIL_FAST(struct arguments, leave_off,
		      "leave off at the first result that needs attention"),
	{"doublecheck", NULL, "run each schedule twice and compare the event hashes",
	 ARGUMENT(options.doublecheck)},
	{"no-tree", NULL,
	 "boot every crash image, even where the result is already known from another one, and "
	 "make every run from its beginning (docs/search.md): slow, with the same results",
	 ARGUMENT(options.limits.no_tree)},
	{"events", "N",
	 "how often something happens to one of several servers in one run (=): with 2, to one "
	 "while the other ones cope with it",
	 ARGUMENT(options.events), 1, 2},
	{"only", "WHAT",
	 "what happens, instead of all there is: all, whose power fails at once; death, of a "
	 "process; and power, lost, cut, of one of several servers. May be repeated",
	 OPTION_CALL(take_only)},
	{.help = "everything within bounds"},
	{"exhaustive", NULL,
	 "no random schedules: all there are within the bounds (docs/search.md). Without "
	 "--workload: the smallest workloads. --runs and --states are unlimited then, unless they "
	 "are given",
	 ARGUMENT(options.exhaustive)},
	{"preemptions", "N",
	 "how often tasks and packets are delayed in one run (=; where no workload is named, 0 for "
	 "stores of several servers)",
	 ARGUMENT_GIVEN(options.preemptions, 0, SYSTEMATIC_BOUND, preemptions_given)},
	{"faults", "N",
	 "packets lost or duplicated, clients dead, servers failing alone, calls failed in one run "
	 "(=; where no workload is named, 1 with two writers or several servers)",
	 ARGUMENT_GIVEN(options.faults, 0, SYSTEMATIC_BOUND, faults_given)},
	{.help = "what is accepted"},
	{"baseline", "FILE",
	 "breaks that are accepted for now, each for its causes (docs/ci.md); all else that is not "
	 "as expected needs attention",
	 ARGUMENT(baseline)},
	{"write-baseline", "FILE",
	 "write a baseline that accepts what breaks now and needs attention",
	 ARGUMENT(write_baseline)},
	{.help = "what is written"},
	ROW_OUT,
	ROW_NO_TRACES,
	{"causes", "FILE",
	 "record instead of compare: add the causes of the expected breaks to FILE, which has rows "
	 "of a store's causes.txt (docs/contributing.md); needs one STORE",
	 ARGUMENT(causes)},
	{"shares", "FILE",
	 "record instead of compare: raise the numbers of a store's causes.txt to how often each "
	 "known cause occurs (docs/contributing.md); needs one STORE, all workloads and "
	 "--budget whole",
	 ARGUMENT(shares)},
	{"coverage", "[=DIR]",
	 "say which lines of the stores ran, and where power was never cut (docs/coverage.md); "
	 "into DIR, too: a tracefile of lcov, and its pages. For stores of tidemark cc --coverage; "
	 "implies --no-tree",
	 OPTION_CALL(take_coverage)},
	ROWS_FILES,
	ROW_RESULT("sarif", "what needs attention as SARIF 2.1.0, each at its line of source, for "
			    "code scanning (docs/ci.md)"),
	{"annotations", NULL,
	 "the same as annotations of a GitHub workflow, printed after all else",
	 ARGUMENT(annotations), .use = OPTION_SHOWS},
	{"html", "DIR",
	 "the results as pages: index.html with the matrix, and a page of each trace; DIR is made "
	 "if it does not exist",
	 ARGUMENT(html), .use = OPTION_SHOWS},
	{"verbose", NULL,
	 "a table for each configuration and a line for each shape, not the matrix, also where "
	 "there are more than two",
	 ARGUMENT(verbose), .letter = 'v', .use = OPTION_SHOWS},
	OPTION_QUIET(struct arguments, leave_off.quiet),
	ROWS_SHARD(struct arguments, leave_off.shard),
	OPTION_END};

static const struct options options = {
	"crashtest", "[STORE...] [OPTION...]",
	"Runs stores under power failures and prints which promise holds and which breaks.\n"
	"Without a STORE: those of the default campaign (tidemark list) that have the knobs that "
	"are named; with --variant, all stores that have it.",
	rows,
	"0 all as expected, 1 a promise broken or a cell not as expected, 2 usage or bad input, 3 "
	"could not tell (--time, or --exhaustive, left something out), 70 internal "
	"error, " STATUS_LEFT_OFF};

int crashtest_main(int argc, char **argv)
{
	struct arguments a = {.out = "traces", .options = campaign_default};
	a.options.runs = budget_usual->runs;
	a.options.states = budget_usual->states;
	struct campaign c = {0};
	struct baseline baseline = {0};
	a.options.jobs = arguments_jobs();
	int status = arguments_read(&options, &a, argc, argv);
	if (status >= 0)
		return status;
	status = apply_budget(&a);
	if (status)
		return status;
	if (a.all_stores && a.store.n)
		return fail(EXIT_USAGE, "--all: expected no STORE beside it, not %s",
			    a.store.name[0]);
	if (expect_mistake())
		return fail(EXIT_INTERNAL, "%s", expect_mistake());
	if (known_mistake())
		return fail(EXIT_INTERNAL, "%s", known_mistake());
	if (a.causes && (a.store.n != 1 || a.options.exhaustive))
		return fail(EXIT_USAGE, "--causes needs one STORE, and random schedules");
	if (a.shares && (a.store.n != 1 || a.causes || !has_shares(&a) || !is_whole(&a)))
		return fail(EXIT_USAGE, "--shares needs one STORE, all workloads and --budget "
					"whole, and is not used with --causes");
	if (a.html && a.no_traces)
		return fail(EXIT_USAGE,
			    "--html writes a page of each trace; expected no --no-traces");
	if ((result_asked(OUTPUT_SARIF) || a.annotations) && a.no_traces)
		return fail(EXIT_USAGE,
			    "%s: a line of source is found with a trace; expected no --no-traces",
			    a.annotations ? "--annotations" : "--sarif");
	a.options.limits.no_crash = a.options.only && !(a.options.only & HAPPENS_ALL);
	if (a.options.only && a.options.exhaustive)
		return fail(EXIT_USAGE, "--only: of random schedules; expected no --exhaustive");
	if ((a.baseline || a.write_baseline) && (a.options.exhaustive || a.causes || a.shares))
		return fail(EXIT_USAGE,
			    "%s needs random schedules; expected no --exhaustive, --causes or "
			    "--shares beside it",
			    a.baseline ? "--baseline" : "--write-baseline");
	a.options.all_causes = a.causes != NULL;
	a.options.shares = has_shares(&a) && !a.causes && !a.shares;
	a.options.blames = a.write_baseline != NULL;
	status = a.baseline ? read_baseline(a.baseline, &baseline) : 0;
	if (a.baseline)
		a.options.baseline = &baseline;
	if (!status)
		status = arguments_apply(&a, &c);
	if (!status && !shard_is_part(&a.leave_off.shard))
		status = arguments_check_outputs(&a);
	if (!status && a.html && !shard_is_part(&a.leave_off.shard))
		status = check_pages(a.html);
	if (!status && result_asked(OUTPUT_JSON) && !a.no_traces)
		status = check_json_name("--out", a.out);
	if (!status) {
		if (!a.leave_off.quiet)
			c.options.progress = show_units;
		status = run_campaign(&c, &a);
	}
	campaign_free(&c);
	baseline_free(&baseline);
	return status;
}
