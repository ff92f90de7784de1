/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark crashtest: run the campaign, shrink and write a trace for each broken
 * cell, print the matrix, compare it with what is expected.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "checker/trace/trace.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "report/output.h"
#include "report/report.h"

/* --- traces --- */

/* Write one case down; `number` of its cell. 0, or the status behind a message. */
static int write_case(const struct campaign_config *cfg, const struct minimized_failure *found,
		      unsigned contract, unsigned number, const char *dir, struct report_case *one)
{
	char tail[16] = "";
	if (number)
		snprintf(tail, sizeof(tail), "-%u", number + 1);
	int error = trace_path(cfg, contract, dir, tail, &one->trace);
	if (!error)
		error = save_trace(one->trace, &found->setup, &found->path, (int)contract,
				   found->text);
	if (!error)
		return 0;
	fail(EXIT_USAGE, "%s: %s", one->trace ? one->trace : dir, strerror(-error));
	free(one->trace);
	one->trace = NULL;
	return error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE;
}

static int not_again(const struct campaign *c, unsigned config, unsigned contract)
{
	const struct campaign_cell *cell = &c->cell[config][contract];
	return fail(EXIT_INTERNAL,
		    "%s %s: run %" PRIu64 " of workload %s does not break it a second time",
		    c->config[config].store->name, contract_name(contract), cell->way.run,
		    c->workload[cell->unit % c->workloads].name);
}

/* The smallest cases of one broken cell: one that was expected has one, others one for each cause.
 * 0, or the status behind a message. */
static int write_cell(const struct campaign *c, unsigned config, unsigned contract, const char *dir,
		      struct report_cell *cell)
{
	struct minimized *cases = malloc(sizeof(*cases));
	int status = 0;
	int error = !cases ? -ENOMEM
		    : cell->why || c->options.exhaustive
			    ? minimized_first(c, config, contract, cases)
			    : minimized_find(c, config, contract, cases);
	if (error)
		status = not_again(c, config, contract);
	for (unsigned i = 0; !error && i < cases->n && !status; i++) {
		const struct minimized_failure *found = &cases->found[i];
		struct report_case *one = &cell->one[i];
		snprintf(one->text, sizeof(one->text), "%s", found->text);
		one->operations = workload_ops(&found->setup.w);
		one->deviations = found->path.n;
		one->whole = found->whole;
		one->takes = found->takes;
		cell->cases++;
		status = write_case(&c->config[config], found, contract, i, dir, one);
	}
	if (!error) {
		cell->left = cases->left;
		minimized_free(cases);
	}
	free(cases);
	return status;
}

/* How one cell breaks, of the first run that broke it. 0, or the status behind a message. */
static int tell_cell(const struct campaign *c, unsigned config, unsigned contract,
		     struct report_cell *more)
{
	const struct campaign_cell *cell = &c->cell[config][contract];
	struct report_case *one = &more->one[0];
	struct deviations path = {0};
	struct setup s = {0};
	int error = campaign_again(c, cell->unit, cell->way, contract, &s, &path, one->text,
				   sizeof(one->text));
	deviations_free(&path);
	setup_free(&s);
	more->cases = !error;
	return error ? not_again(c, config, contract) : 0;
}

static int write_traces(struct report *r, const struct arguments *a)
{
	const struct campaign *c = r->campaign;
	unsigned broken = 0, done = 0;
	int status = 0;
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++)
		broken += c->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].broken;
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS && !status; i++) {
		unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		struct report_cell *cell = &r->cell[config][k];
		if (!c->cell[config][k].broken)
			continue;
		if (!a->quiet)
			progress_line(a->no_traces ? "looking again at break %u of %u"
						   : "shrinking what breaks: %u of %u",
				      ++done, broken);
		status = a->no_traces ? tell_cell(c, config, k, cell)
				      : write_cell(c, config, k, a->out, cell);
		for (unsigned n = 0; n < cell->cases; n++)
			r->traces += cell->one[n].trace != NULL;
	}
	progress_line(NULL);
	return status;
}

static int check_outputs(const struct arguments *a, bool *made)
{
	int status = a->json ? check_output("--json", a->json) : 0;
	if (!status && a->junit)
		status = check_output("--junit", a->junit);
	if (!status && a->json && !a->no_traces) {
		json_t *name = json_string(a->out);
		if (!name)
			status = fail(
				EXIT_USAGE,
				"--out: a name that is not UTF-8 cannot be written to a JSON file");
		json_decref(name);
	}
	if (!status && !a->no_traces)
		status = check_folder("--out", a->out, made);
	return status;
}

static void progress(void *arg, unsigned done, unsigned units, uint64_t states, double seconds)
{
	(void)arg;
	progress_line("%u of %u workloads, %" PRIu64 " states, %.0f states/s, about %.0f s left",
		      done, units, states, (double)states / (seconds > 0 ? seconds : 1),
		      done ? seconds / done * (units - done) : 0);
}

/* --- the verdict --- */

static bool judge_cell(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign_config *cfg = &r->campaign->config[config];
	bool broken = r->campaign->cell[config][k].broken,
	     promised = cfg->store->promises & TM_BIT(k);
	struct report_cell *more = &r->cell[config][k];
	const struct expectation *e = strcmp(cfg->variant, "default")
					      ? NULL
					      : expect_find(cfg->store->name, cfg->name, (int)k);
	more->why = e ? e->why : NULL;
	/* Part of a campaign need not find everything. */
	more->surprise = e ? e->broken != broken && (broken || (r->whole && !e->open))
			   : broken && promised;
	return more->surprise;
}

/* Did the campaign itself go well? 0, or the status behind a message. */
static int check_campaign(const struct campaign *c, int error)
{
	uint64_t diverged = 0;
	unsigned first = 0;
	for (unsigned u = c->unit ? c->configs * c->workloads : 0; u-- > 0;) {
		const struct campaign_unit *unit = &c->unit[u];
		if (unit->error)
			return fail(unit->error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE,
				    "%s cannot run workload %s: %s",
				    c->config[u / c->workloads].store->name,
				    c->workload[u % c->workloads].name, unit->why);
		diverged += unit->diverged;
		first = unit->diverged ? u : first;
	}
	if (error == -ECHILD)
		return fail(EXIT_INTERNAL, "a worker process died before its work was done "
					   "(killed, or no memory left?)");
	if (error)
		return fail(EXIT_INTERNAL, "the worker processes could not be started: %s",
			    strerror(-error));
	if (diverged)
		return fail(EXIT_INTERNAL,
			    "%" PRIu64
			    " runs differ when run again, the first with %s and workload %s",
			    diverged, c->config[first / c->workloads].store->name,
			    c->workload[first % c->workloads].name);
	return 0;
}

static int write_junit(const struct report *r, const char *path)
{
	struct junit j = {0};
	report_junit(r, &j);
	int error = junit_save(&j, path);
	junit_free(&j);
	return error ? fail(EXIT_USAGE, "%s: %s", path, strerror(-error)) : 0;
}

static int run(struct campaign *c, const struct arguments *a)
{
	bool all = !a->variants && !a->knobs && !a->workloads && !a->ops && !a->options.exhaustive;
	struct report r = {.campaign = c,
			   .whole = all && a->options.runs >= campaign_default.runs &&
				    a->options.states >= campaign_default.states};
	int error = campaign_run(c), status;
	progress_line(NULL);
	status = check_campaign(c, error);
	if (status)
		return status;
	r.cell = calloc(c->configs, sizeof(*r.cell));
	if (!r.cell)
		return fail(EXIT_INTERNAL, "out of memory");
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++)
		r.surprises += judge_cell(&r, i / TM_CONTRACTS, i % TM_CONTRACTS);
	for (unsigned i = 0; i < c->configs; i++)
		r.open += a->options.exhaustive && campaign_left_out(c, i);
	/* Even if traces cannot be written, the matrix has cost too much to be thrown away. */
	status = write_traces(&r, a);
	r.out = a->no_traces ? NULL : a->out;
	report_print(&r);
	error = a->json && !status ? report_json(&r, a->json) : 0;
	if (error)
		status = fail(EXIT_USAGE, "%s: %s", a->json, strerror(-error));
	if (a->junit && !status)
		status = write_junit(&r, a->junit);
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++)
		for (unsigned n = 0; n < MINIMIZED_MAX; n++)
			free(r.cell[i / TM_CONTRACTS][i % TM_CONTRACTS].one[n].trace);
	free(r.cell);
	if (status)
		return status;
	return r.surprises ? EXIT_BROKEN : r.open ? EXIT_UNSURE : EXIT_HELD;
}

int crashtest_main(int argc, char **argv)
{
	struct arguments a = {.out = "traces", .options = campaign_default};
	struct campaign c = {0};
	const char *mistake;
	bool made = false;
	a.options.jobs = arguments_jobs();
	int status = arguments_parse(&a, &crashtest_command, argc, argv);
	if (status >= 0)
		return status;
	unsigned line = expect_mistake(&mistake);
	if (line)
		return fail(EXIT_INTERNAL, "scenarios/expected.txt:%u: %s", line, mistake);
	c.config = calloc(MAX_CONFIGS, sizeof(*c.config));
	if (!c.config)
		return fail(EXIT_INTERNAL, "out of memory");
	status = arguments_apply(&a, &c);
	if (!status)
		status = check_outputs(&a, &made);
	if (!status) {
		c.options = a.options;
		if (isatty(STDERR_FILENO) && !a.quiet)
			c.options.progress = progress;
		status = run(&c, &a);
	}
	if (made)
		rmdir(a.out); /* unless there is a trace in it */
	campaign_free(&c);
	return status;
}
