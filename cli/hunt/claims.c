/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark claims: run the claims that were asked for, and write a trace for each break. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "checker/trace/wrong.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "core/clock.h"
#include "report/hunt/hunt_report.h"
#include "core/text/text.h"

struct request {
	struct claim_budget budget;
	const char *out;
	bool no_traces, list, knobs;
	struct leave_off leave_off;
};

/* --- traces --- */

/* 0, or the status after a message. */
static int write_trace(const struct request *o, const struct run_case *c, struct report_case *one)
{
	const char *contract = contract_name(c->result.contract);
	char why[WORLDS_WHY];
	struct broken_run run;
	int status = 0;
	/* After SIGINT what is finished is printed, and nothing is made smaller. */
	bool small = !signals_stopped();
	int error = claim_smallest(c->test, &c->result, &o->budget, small, &run);
	one->whole = error || !small;
	memcpy(one->text, run.text, sizeof(one->text));
	if (error == -ENOTRECOVERABLE) {
		wrong_save(&run.setup, &run.path, run.text, why, sizeof(why));
		status = fail(EXIT_INTERNAL, "%s, case %u: %s", c->claim->id, c->number, why);
	} else if (error == -ENOENT && !run.path.n)
		status = fail(EXIT_INTERNAL,
			      "%s, case %u: run %" PRIu64 " does not break %s a second time",
			      c->claim->id, c->number, c->result.run, contract);
	else if (!o->no_traces && asprintf(&one->trace, "%s/claims-%s-%u-%s.trace", o->out,
					   c->claim->id, c->number, contract) < 0)
		status = fail(EXIT_INTERNAL, "out of memory");
	if (!status) {
		error = report_case_save(one, &run.setup, &run.path, c->result.contract);
		status = one->trace ? saved(one->trace, error) : 0;
	}
	if (status) {
		free(one->trace);
		one->trace = NULL;
	}
	broken_run_free(&run);
	return status;
}

static int write_traces(const struct request *o, struct claims_report *report)
{
	const struct claims_run *r = report->run;
	unsigned broken = 0, done = 0;
	int status = 0;
	for (unsigned i = 0; i < r->n; i++)
		broken += r->cases[i].result.broken && r->cases[i].test->kind != CLAIM_COUNT;
	for (unsigned i = 0; i < r->n && !status; i++) {
		const struct run_case *c = &r->cases[i];
		if (!c->result.broken || c->test->kind == CLAIM_COUNT)
			continue;
		if (!o->leave_off.quiet)
			progress_line("shrinking and writing trace %u of %u", ++done, broken);
		status = write_trace(o, c, &report->one[i]);
	}
	progress_line(NULL);
	return status;
}

/* --- the whole --- */

static int report(struct request *o, const struct claims_run *r, double started)
{
	struct claims_report report = {.run = r, .one = calloc(r->n + 1, sizeof(*report.one))};
	if (!report.one)
		return fail(EXIT_INTERNAL, "out of memory");
	/* Even if traces cannot be written, the results have cost too much to be thrown away. */
	int status = write_traces(o, &report);
	report.seconds = clock_seconds() - started;
	struct conclusion end;
	claims_conclude(&report, &end);
	leave_off_conclude(&o->leave_off, &end, r->done, r->units, "workloads are done");
	status = leave_off_tell(&o->leave_off, &end, claims_tree(&report), "claims", status);
	for (unsigned i = 0; i < r->n; i++)
		free(report.one[i].trace);
	free(report.one);
	return status;
}

static int run_claims(struct request *o, const struct claim *const *claim, unsigned claims)
{
	struct claims_run r = {.claim = claim, .claims = claims, .budget = o->budget};
	double started = clock_seconds();
	int status = leave_off_begin(&o->leave_off);
	if (status)
		return status;
	r.how = o->leave_off.how;
	int error = claims_run(&r);
	status = leave_off_end(&o->leave_off, &error);
	if (status < 0)
		status = error ? fail(EXIT_INTERNAL, "%s", r.why[0] ? r.why : driver_error(error))
			       : report(o, &r, started);
	claims_run_free(&r);
	return status;
}

/* What values of knobs change, and whether it is so. */
static int run_knobs(const struct request *o, const struct claims *all)
{
	struct sensitivity f = {.claims = all, .seed = o->budget.seed, .how = o->leave_off.how};
	f.how.progress = o->leave_off.quiet ? NULL : show_units;
	int error = sensitivity_run(&f), status;
	progress_line(NULL);
	if (error)
		status = fail(EXIT_INTERNAL, "the knobs could not be tested: %s",
			      f.why[0] ? f.why : driver_error(error));
	else
		status = sensitivity_print(&f) ? EXIT_BROKEN : EXIT_HELD;
	free(f.result);
	return status;
}

/* The claims that are named, or all. 0, or the status after a message. */
static int choose_claims(const struct claims *all, char **names, int n, const struct claim **claim,
			 unsigned *claims)
{
	*claims = 0;
	for (int i = 0; i < n; i++) {
		const struct claim *found = claim_find(all, names[i]);
		struct nearest near;
		nearest_init(&near, names[i]);
		for (unsigned k = 0; k < all->claims; k++)
			nearest_try(&near, all->claim[k].id);
		if (!found)
			return fail(EXIT_USAGE, "no claim \"%.40s\"%s (tidemark claims --list)",
				    names[i], near.hint);
		for (unsigned k = 0; k < *claims; k++)
			if (claim[k] == found)
				return fail(EXIT_USAGE, "claim %.40s twice; expected once",
					    names[i]);
		claim[(*claims)++] = found;
	}
	for (unsigned k = 0; !n && k < all->claims; k++)
		claim[(*claims)++] = &all->claim[k];
	return 0;
}

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"list", NULL, "what would be tested", REQUEST(list)},
	{"knobs", NULL, "instead: what do values of knobs change?", REQUEST(knobs)},
	{"states", "N", "crash states of each workload at most (=)", REQUEST(budget.states), 1,
	 UINT64_MAX / 2},
	{"seed", "N", "of the schedules (=)", REQUEST(budget.seed), 0, UINT32_MAX},
	OPTION_JOBS(struct request, leave_off.how.jobs),
	ROW_TIME(struct request, leave_off),
	ROW_FAIL_FAST(struct request, leave_off, "leave off at the first case that differs"),
	{"out", "DIR", "where traces go (=); it is made if it does not exist", REQUEST(out),
	 .use = OPTION_SHOWS},
	{"no-traces", NULL, "write none", REQUEST(no_traces), .use = OPTION_SHOWS},
	ROWS_RESULTS,
	OPTION_QUIET(struct request, leave_off.quiet),
	ROWS_SHARD(struct request, leave_off.shard),
	OPTION_END};

static const struct options options = {
	"claims", "[ID...] [OPTION...]",
	"Tests what the papers claim of the stores, and hazards that they do not mention: says "
	"what is expected of each, what was measured, and how to replay what broke. Without an ID: "
	"all of them.",
	rows,
	"0 all as expected, 1 something turned out otherwise, 2 usage or bad input, 3 could not "
	"tell (--time, or --states was too small), 70 internal error, " STATUS_LEFT_OFF};

/* -1: go on; else the exit status. */
static int parse(struct request *o, int argc, char **argv)
{
	int status = options_read(&options, o, argc, argv);
	if (status >= 0)
		return status;
	if ((o->knobs || o->list) && (results_asked() || (o->knobs && (o->list || optind < argc))))
		return fail(EXIT_USAGE, "claims: expected one of --list, --knobs and --json; "
					"--knobs goes with no ID");
	if ((o->knobs || o->list) && shard_is_asked(&o->leave_off.shard))
		return fail(EXIT_USAGE,
			    "claims: --list and --knobs go without --shard and --results");
	return -1;
}

int claims_main(int argc, char **argv)
{
	struct request o = {
		.out = "traces",
		.leave_off.how.jobs = arguments_jobs(),
		.budget = {.seed = 1, .states = UINT64_MAX},
	};
	struct claims_error where;
	struct claims all;
	unsigned claims = 0;
	int status = parse(&o, argc, argv);
	if (status >= 0)
		return status;
	if (claims_read(&all, NULL, &where))
		return fail(EXIT_INTERNAL, "%s:%u: %s", where.file, where.text.line,
			    where.text.message);
	const struct claim **claim = calloc(all.claims, sizeof(*claim));
	status = claim ? choose_claims(&all, argv + optind, argc - optind, claim, &claims)
		       : fail(EXIT_INTERNAL, "out of memory");
	if (!status)
		status = leave_off_check(&o.leave_off,
					 o.no_traces || o.list || o.knobs ? NULL : o.out);
	if (!status && o.list)
		claims_list_print(claim, claims);
	else if (!status)
		status = o.knobs ? run_knobs(&o, &all) : run_claims(&o, claim, claims);
	free(claim);
	claims_free(&all);
	return status;
}
