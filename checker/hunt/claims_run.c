/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running cases: each is a small campaign of one configuration. A unit of work is one workload of a
 * case, or a whole case that must fail, whose workloads are tried in turn. Results are put together
 * in the order of the file, so the number of processes changes no figure.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/hunt/claims.h"
#include "checker/trace/shrink.h"
#include "checker/trace/wrong.h"

static struct campaign campaign_of(const struct claim_case *test, const struct claim_budget *budget)
{
	struct campaign c = {
		.config = (struct campaign_config *)&test->config, /* only read */
		.configs = 1,
		.workload = test->workload,
		.workloads = test->workloads,
		.options = campaign_default,
	};
	c.options.seed = budget->seed;
	c.options.states = budget->states;
	c.options.runs = test->runs;
	c.options.limits.no_crash = test->no_crash;
	if (budget->no_lives || test->no_lives)
		c.options.limits.life_every = 0;
	c.options.only = test->no_deaths ? HAPPENS_ALL : 0;
	c.options.events = test->two_events ? 2 : 1;
	/* What breaks by design may break that, too. */
	c.options.unfilled = test->kind == CLAIM_FAIL;
	c.options.exhaustive = test->search;
	c.options.preemptions = test->preemptions;
	c.options.faults = test->faults;
	return c;
}

static void run_workload(const struct claim_case *test, unsigned workload,
			 const struct claim_budget *budget, struct claim_result *result)
{
	struct campaign c = campaign_of(test, budget);
	struct campaign_unit unit = {0};
	unsigned stop_at = test->kind == CLAIM_COUNT ? 0 : test->contracts;
	wrong_explore(&c, workload, stop_at, &unit, NULL);
	/* No claim can be judged on a store that does not start. */
	result->error = unit.unstarted ? -EIO : unit.error;
	memcpy(result->why, unit.why, sizeof(result->why));
	result->states = unit.counts.states;
	result->runs = unit.counts.runs;
	result->workload = workload;
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		if (!(test->contracts & TM_BIT(k)) || !unit.contract[k].found)
			continue;
		if (!result->broken || unit.contract[k].run < result->run) {
			result->contract = k;
			result->run = unit.contract[k].run;
		}
		result->broken = true;
		if (unit.contract[k].broken > result->broken_states)
			result->broken_states = unit.contract[k].broken;
	}
	/* A search that must find a break and did not is complete at its bound; what must hold
	 * needs all of it. */
	result->part = !result->broken &&
		       ((!unit.complete && !(test->search && test->kind == CLAIM_FAIL)) ||
			unit.counts.unsure);
}

void claim_add(struct claim_result *sum, const struct claim_result *one)
{
	if (one->broken && (!sum->broken || one->workload < sum->workload)) {
		sum->broken = true;
		sum->contract = one->contract;
		sum->workload = one->workload;
		sum->run = one->run;
	}
	sum->states += one->states;
	sum->runs += one->runs;
	sum->broken_states += one->broken_states;
	sum->part |= one->part;
	if (one->error && !sum->error) {
		sum->error = one->error;
		memcpy(sum->why, one->why, sizeof(sum->why));
	}
}

void claim_run(const struct claim_case *test, unsigned workload, const struct claim_budget *budget,
	       struct claim_result *result)
{
	if (test->kind != CLAIM_FAIL) {
		run_workload(test, workload, budget, result);
		return;
	}
	for (; workload < test->workloads && !result->broken && !result->error; workload++) {
		struct claim_result one = {0};
		run_workload(test, workload, budget, &one);
		claim_add(result, &one);
	}
}

enum claim_verdict claim_judge(const struct claim_case *test, const struct claim_result *result)
{
	if (test->kind == CLAIM_COUNT)
		return result->error || result->part ? CLAIM_UNSURE : CLAIM_AS_EXPECTED;
	if (result->broken)
		return test->kind == CLAIM_FAIL ? CLAIM_AS_EXPECTED : CLAIM_DIFFERS;
	if (result->error || result->part)
		return CLAIM_UNSURE;
	return test->kind == CLAIM_PASS ? CLAIM_AS_EXPECTED : CLAIM_DIFFERS;
}

int claim_smallest(const struct claim_case *test, const struct claim_result *result,
		   const struct claim_budget *budget, bool small, struct broken_run *out)
{
	struct campaign c = campaign_of(test, budget);
	const struct campaign_break which = {result->workload,
					     result->contract,
					     {result->run, FAILURE_MODE_ANYTHING},
					     BREAK_ANY,
					     0};
	int error = 0;
	assert(result->broken && test->contracts & TM_BIT(result->contract));
	memset(out, 0, sizeof(*out));
	if (test->search) {
		/* The search once more: its result has no room for the run's deviations. */
		c.unit = calloc(c.workloads, sizeof(*c.unit));
		if (!c.unit)
			return -ENOMEM;
		campaign_explore(&c, which.unit, TM_BIT(which.contract), &c.unit[which.unit], out);
		error = c.unit[which.unit].error;
		if (error != -ENOTRECOVERABLE)
			broken_run_free(out);
	}
	if (!error)
		error = campaign_again(&c, &which, out);
	free(c.unit);
	return error || !small ? error
			       : shrink(&out->setup, &out->path, which.contract, out->text,
					sizeof(out->text), NULL, NULL);
}

/* --- several claims --- */

struct claim_unit {
	unsigned at; /* index into the cases */
	unsigned workload;
};

static unsigned units_of(const struct claim_case *test)
{
	return test->kind == CLAIM_FAIL ? 1 : test->workloads;
}

static int make_cases(struct claims_run *r)
{
	unsigned cases = 0, units = 0;
	for (unsigned i = 0; i < r->claims; i++)
		cases += r->claim[i]->tests;
	r->cases = calloc(cases + 1, sizeof(*r->cases));
	if (!r->cases)
		return -ENOMEM;
	for (unsigned i = 0; i < r->claims; i++)
		for (unsigned k = 0; k < r->claim[i]->tests; k++) {
			const struct claim_case *test = &r->claim[i]->test[k];
			r->cases[r->n++] = (struct run_case){
				.claim = r->claim[i], .test = test, .number = k + 1};
			units += units_of(test);
		}
	r->unit = calloc(units + 1, sizeof(*r->unit));
	if (!r->unit)
		return -ENOMEM;
	for (unsigned i = 0; i < r->n; i++)
		for (unsigned w = 0; w < units_of(r->cases[i].test); w++)
			r->unit[r->units++] = (struct claim_unit){i, w};
	return 0;
}

/* What must break breaks soon. */
static uint64_t cost(const void *arg, unsigned unit)
{
	const struct claims_run *r = arg;
	const struct claim_case *test = r->cases[r->unit[unit].at].test;
	if (test->kind == CLAIM_FAIL)
		return 0;
	return (uint64_t)test->runs * workload_ops(&test->workload[r->unit[unit].workload]);
}

static void work(void *arg, unsigned unit, void *result)
{
	const struct claims_run *r = arg;
	const struct claim_unit *u = &r->unit[unit];
	claim_run(r->cases[u->at].test, u->workload, &r->budget, result);
}

static void take_result(void *arg, unsigned unit, const void *result)
{
	const struct claims_run *r = arg;
	if (r->how.attention &&
	    claim_judge(r->cases[r->unit[unit].at].test, result) == CLAIM_DIFFERS)
		r->how.attention(r->how.attention_arg);
}

int claims_run(struct claims_run *r)
{
	struct driver driver = {.how = r->how,
				.result_bytes = sizeof(struct claim_result),
				.work = work,
				.take = take_result,
				.cost = cost,
				.states_at = DRIVER_FIELD(struct claim_result, states),
				.error_at = DRIVER_FIELD(struct claim_result, error),
				.arg = r,
				.progress_arg = "workload"};
	_Static_assert(sizeof(struct claim_result) <= DRIVER_RESULT_MAX, "a result is one message");
	int error = make_cases(r);
	struct claim_result *result = error ? NULL : calloc(r->units + 1, sizeof(*result));
	driver.done = error ? NULL : calloc(r->units + 1, sizeof(*driver.done));
	if (!result || !driver.done) {
		free(result);
		free(driver.done);
		return -ENOMEM;
	}
	driver.units = r->units;
	driver.results = result;
	error = r->units ? driver_run(&driver) : 0;
	r->states = driver.at.states;
	r->done = driver.at.done;
	for (unsigned u = 0; u < r->units && (!error || error == -EINTR); u++) {
		struct claim_result *sum = &r->cases[r->unit[u].at].result;
		if (driver.done[u])
			claim_add(sum, &result[u]);
		else
			sum->part = true;
		if (result[u].error == -ENOTRECOVERABLE) {
			error = result[u].error;
			memcpy(r->why, result[u].why, sizeof(r->why));
		}
	}
	free(driver.done);
	free(result);
	return error;
}

void claims_run_free(struct claims_run *r)
{
	free(r->cases);
	free(r->unit);
}

/* --- sensitivity --- */

#define LONGER 8 /* the side that holds runs so many times as often as the other one took */

/* A test's side with the knob, or without it. The workloads stay the line's. */
static struct claim_case side_of(const struct claim_knob *line, bool with)
{
	struct claim_case test = line->test;
	if (!with)
		test.config.setup = line->test.without;
	return test;
}

/* A line: one case that must fail and one that must pass. */
static void test_line(void *arg, unsigned unit, void *into)
{
	const struct sensitivity *f = arg;
	const struct claim_knob *line = &f->claims->knob[unit];
	struct knob_result *result = into;
	const struct claim_budget budget = {
		.seed = f->seed, .states = UINT64_MAX, .no_lives = true};
	struct claim_case test = side_of(line, line->kind == KNOB_BREAKS);
	struct claim_result broken = {0}, held = {0};
	if (!test.search)
		test.runs = CLAIM_FAIL_RUNS;
	claim_run(&test, 0, &budget, &broken);
	result->error = broken.error;
	snprintf(result->why, sizeof(result->why), "%s", broken.why);
	result->broke = broken.broken;
	if (result->error || !result->broke)
		return;
	result->contract = broken.contract;
	result->run = broken.run;
	snprintf(result->workload, sizeof(result->workload), "%s",
		 test.workload[broken.workload].name);
	test = side_of(line, line->kind != KNOB_BREAKS);
	test.kind = CLAIM_PASS;
	test.contracts = TM_BIT(broken.contract);
	if (!test.search && test.runs < LONGER * (broken.run + 1))
		test.runs = (unsigned)(LONGER * (broken.run + 1));
	claim_run(&test, broken.workload, &budget, &held);
	result->error = held.error;
	snprintf(result->why, sizeof(result->why), "%s", held.why);
	result->held = !held.broken;
	result->held_runs = held.runs;
}

int sensitivity_run(struct sensitivity *f)
{
	unsigned lines = f->claims->knobs;
	struct driver driver = {.units = lines,
				.how = f->how,
				.result_bytes = sizeof(struct knob_result),
				.work = test_line,
				.progress_arg = "knob",
				.arg = f};
	_Static_assert(sizeof(struct knob_result) <= DRIVER_RESULT_MAX, "a result is one message");
	f->result = calloc(lines + 1, sizeof(*f->result));
	if (!f->result)
		return -ENOMEM;
	driver.results = f->result;
	int error = driver_run(&driver);
	for (unsigned i = 0; i < lines && !error; i++) {
		error = f->result[i].error;
		if (error)
			snprintf(f->why, sizeof(f->why), "with %s, %s", f->claims->knob[i].knob,
				 f->result[i].why[0] ? f->result[i].why : driver_error(error));
	}
	return error;
}
