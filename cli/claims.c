/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark claims: run the claims that were asked for, and write a trace for each break. Units
 * of work are single workloads of cases, the costly ones first; what they find is put together in
 * the order of the file, so the number of jobs changes no figure. claims_report.c prints it.
 */
#include "checker/hunt/claims.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "checker/explore/clock.h"
#include "checker/judge/names.h"
#include "checker/explore/pool.h"
#include "checker/trace/trace.h"
#include "report/claims_report.h"
#include "report/output.h"
#include "cli/arguments.h"
#include "cli/cli.h"

/* What one process does at a time: a workload of a case; of a case that must fail, all of them. */
struct unit {
	unsigned at; /* index into claims_report.cases */
	unsigned workload;
	uint64_t cost;
	struct claim_result result;
};

struct claims_run {
	struct claims_report report;
	unsigned room; /* for cases */
	struct unit *unit;
	unsigned units, done;
	double started;
};

/* --- which --- */

static int add_claim(struct claims_run *r, const struct claim *claim)
{
	for (unsigned k = 0; k < claim->tests; k++) {
		if (r->report.n == r->room) {
			unsigned room = 2 * r->room + 64;
			struct run_case *grown = realloc(r->report.cases, room * sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			r->report.cases = grown;
			r->room = room;
		}
		r->report.cases[r->report.n++] = (struct run_case){
			claim, &claim->test[k], k + 1, {0}, NULL, "", 0, 0, false};
		r->units += claim->test[k].kind == CLAIM_FAIL ? 1 : claim->test[k].workloads;
	}
	return 0;
}

static int dearer(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->workload < y->workload ? -1 : x->workload > y->workload;
}

static int make_units(struct claims_run *r)
{
	unsigned n = 0;
	r->unit = calloc(r->units + 1, sizeof(*r->unit));
	if (!r->unit)
		return -ENOMEM;
	for (unsigned i = 0; i < r->report.n; i++) {
		const struct claim_case *test = r->report.cases[i].test;
		for (unsigned w = 0; w < (test->kind == CLAIM_FAIL ? 1 : test->workloads);
		     w++, n++) {
			struct unit *unit = &r->unit[n];
			unit->at = i;
			unit->workload = w;
			/* What must break breaks soon. */
			if (test->kind != CLAIM_FAIL)
				unit->cost = (uint64_t)test->runs *
					     workload_ops(&test->workload[w]);
		}
	}
	qsort(r->unit, r->units, sizeof(*r->unit), dearer);
	return 0;
}

/* --- running --- */

static void work(void *arg, unsigned unit, void *result)
{
	const struct claims_run *r = arg;
	const struct unit *u = &r->unit[unit];
	claim_run(r->report.cases[u->at].test, u->workload, &r->report.options->budget, result);
}

static void take(void *arg, unsigned unit, const void *result)
{
	struct claims_run *r = arg;
	memcpy(&r->unit[unit].result, result, sizeof(struct claim_result));
	r->report.states += r->unit[unit].result.states;
	r->done++;
	double seconds = clock_seconds() - r->started;
	if (!r->report.options->quiet)
		progress_line("%u of %u workloads of %u cases, %" PRIu64 " states, %.0f states/s",
			      r->done, r->units, r->report.n, r->report.states,
			      (double)r->report.states / (seconds > 0 ? seconds : 1));
}

static int run_units(struct claims_run *r)
{
	struct pool pool = {
		r->units, r->report.options->jobs, sizeof(struct claim_result), work, take, NULL,
		r};
	_Static_assert(sizeof(struct claim_result) <= POOL_RESULT_MAX, "a result is one message");
	int error = make_units(r);
	if (!error && r->units)
		error = pool_run(&pool);
	progress_line(NULL);
	for (unsigned u = 0; u < r->units && !error; u++)
		claim_add(&r->report.cases[r->unit[u].at].result, &r->unit[u].result);
	if (error == -ECHILD)
		return fail(EXIT_INTERNAL, "a worker process died before its work was done "
					   "(killed, or no memory left?)");
	return error ? fail(EXIT_INTERNAL, "%s", strerror(-error)) : 0;
}

/* --- traces --- */

/* 0, or the status behind a message. */
static int write_trace(struct claims_run *r, struct run_case *c)
{
	const char *contract = contract_name(c->result.contract), *dir = r->report.options->out;
	struct deviations path = {0};
	struct setup s = {0};
	char *name = NULL;
	int status = 0;
	int error = claim_smallest(c->test, &c->result, &r->report.options->budget, &s, &path,
				   c->text, sizeof(c->text));
	c->whole = error;
	c->operations = workload_ops(&s.w);
	c->deviations = path.n;
	if (error == -ENOENT && !path.n)
		status = fail(EXIT_INTERNAL,
			      "%s, case %u: run %" PRIu64 " does not break %s a second time",
			      c->claim->id, c->number, c->result.run, contract);
	else if (asprintf(&name, "%s/claims-%s-%u-%s.trace", dir, c->claim->id, c->number,
			  contract) < 0)
		status = fail(EXIT_INTERNAL, "out of memory");
	if (!status && !r->report.options->no_traces) {
		error = save_trace(name, &s, &path, (int)c->result.contract, c->text);
		if (error)
			status = fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s: %s", name,
				      strerror(-error));
		else
			c->trace = name;
	}
	if (!c->trace)
		free(name);
	deviations_free(&path);
	setup_free(&s);
	return status;
}

static int write_traces(struct claims_run *r)
{
	unsigned broken = 0, done = 0;
	int status = 0;
	for (unsigned i = 0; i < r->report.n; i++)
		broken += r->report.cases[i].result.broken &&
			  r->report.cases[i].test->kind != CLAIM_COUNT;
	for (unsigned i = 0; i < r->report.n && !status; i++) {
		struct run_case *c = &r->report.cases[i];
		if (!c->result.broken || c->test->kind == CLAIM_COUNT)
			continue;
		if (!r->report.options->quiet)
			progress_line("shrinking and writing trace %u of %u", ++done, broken);
		status = write_trace(r, c);
	}
	progress_line(NULL);
	return status;
}

/* --- the whole --- */

static int run_claims(const struct claims_options *o, const struct claim *const *claim,
		      unsigned claims)
{
	struct claims_run r = {.report = {.options = o, .claim = claim, .claims = claims},
			       .started = clock_seconds()};
	enum claim_verdict worst = CLAIM_AS_EXPECTED;
	int status = 0;
	for (unsigned i = 0; i < claims && !status; i++)
		if (add_claim(&r, claim[i]))
			status = fail(EXIT_INTERNAL, "out of memory");
	if (!status)
		status = run_units(&r);
	if (!status) {
		/* Even if traces cannot be written, the results have cost too much to be thrown
		 * away. */
		status = write_traces(&r);
		r.report.seconds = clock_seconds() - r.started;
		claims_print(&r.report);
		if (o->json && !status)
			status = saved(o->json, claims_json(&r.report, o->json));
	}
	for (unsigned i = 0; i < r.report.n; i++) {
		enum claim_verdict v = claim_judge(r.report.cases[i].test,
						   &r.report.cases[i].result);
		if (v == CLAIM_DIFFERS || (v == CLAIM_UNSURE && worst == CLAIM_AS_EXPECTED))
			worst = v;
		free(r.report.cases[i].trace);
	}
	free(r.report.cases);
	free(r.unit);
	if (status)
		return status;
	return worst == CLAIM_DIFFERS  ? EXIT_BROKEN
	       : worst == CLAIM_UNSURE ? EXIT_UNSURE
				       : EXIT_HELD;
}

/* The claims that are named, or all. 0, or the status behind a message. */
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

#define CLAIMS(member) OPTION_FIELD(struct claims_options, member)

static const struct option_row rows[] = {
	{"list", NULL, "what would be tested", CLAIMS(list)},
	{"knobs", NULL, "instead: what does each value of each knob change?", CLAIMS(knobs)},
	{"states", "N", "crash states of each workload at most (no bound)", CLAIMS(budget.states),
	 1, UINT64_MAX / 2},
	{"seed", "N", "of the schedules (1)", CLAIMS(budget.seed), 0, UINT32_MAX},
	OPTION_JOBS(struct claims_options, jobs),
	{"out", "DIR", "where traces go (traces); it is made if it does not exist", CLAIMS(out)},
	{"no-traces", NULL, "write none", CLAIMS(no_traces)},
	{"json", "FILE", "the results for machines", CLAIMS(json)},
	OPTION_QUIET(struct claims_options, quiet),
	OPTION_END};

static const struct options options = {
	"claims", "[ID...] [OPTION...]",
	"Tests what the papers claim of the stores, and hazards that they do not mention: says "
	"what is expected of each, what was measured, and how to replay what broke. Without an ID: "
	"all of them.",
	rows,
	"0 all as expected, 1 something turned out otherwise, 2 usage or bad input, 3 the budget "
	"was too small to tell, 70 internal error"};

/* -1: go on; else the exit status. */
static int parse(struct claims_options *o, int argc, char **argv)
{
	int status = options_read(&options, o, argc, argv);
	if (status >= 0)
		return status;
	if ((o->knobs || o->list) && (o->json || (o->knobs && (o->list || optind < argc))))
		return fail(EXIT_USAGE,
			    "claims: --list and --knobs go with no other; --knobs with no ID");
	return -1;
}

int claims_main(int argc, char **argv)
{
	struct claims_options o = {
		.out = "traces",
		.jobs = arguments_jobs(),
		.budget = {.seed = 1, .states = UINT64_MAX},
	};
	struct claims_error where;
	struct claims all;
	unsigned claims = 0;
	bool made = false;
	int status = parse(&o, argc, argv);
	if (status >= 0)
		return status;
	if (claims_read(&all, NULL, &where))
		return fail(EXIT_INTERNAL, "%s:%u: %s", where.file, where.text.line,
			    where.text.message);
	const struct claim **claim = calloc(all.claims, sizeof(*claim));
	status = claim ? choose_claims(&all, argv + optind, argc - optind, claim, &claims)
		       : fail(EXIT_INTERNAL, "out of memory");
	if (!status && o.json)
		status = check_output("--json", o.json);
	if (!status && !o.no_traces && !o.list && !o.knobs)
		status = check_folder("--out", o.out, &made);
	if (!status && o.list)
		claims_print_list(claim, claims);
	else if (!status)
		status = o.knobs ? claims_knobs(&o, &all) : run_claims(&o, claim, claims);
	if (made)
		rmdir(o.out); /* unless there is a trace in it */
	free(claim);
	claims_free(&all);
	return status;
}
