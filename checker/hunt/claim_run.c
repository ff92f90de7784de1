/* SPDX-License-Identifier: BSD-3-Clause */
/* Running cases: each is a small campaign of one configuration. See claims.h. */
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
	c.options.no_deaths = test->no_deaths;
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
