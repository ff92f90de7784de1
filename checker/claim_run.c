/* SPDX-License-Identifier: BSD-3-Clause */
/* Running cases: each is a small campaign of one configuration. See claims.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "checker/claims.h"
#include "checker/shrink.h"

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
	return c;
}

static void run_workload(const struct claim_case *test, unsigned workload, const struct claim_budget *budget,
			 struct claim_result *result)
{
	struct campaign c = campaign_of(test, budget);
	struct campaign_unit unit = {0};
	campaign_explore(&c, workload, test->kind == CLAIM_COUNT ? 0 : test->contracts, &unit);
	result->error = unit.error;
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
	result->part = !result->broken && (unit.counts.runs < test->runs || unit.counts.unsure);
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
		return result->error ? CLAIM_UNSURE : CLAIM_AS_EXPECTED;
	if (result->broken)
		return test->kind == CLAIM_FAIL ? CLAIM_AS_EXPECTED : CLAIM_DIFFERS;
	if (result->error || result->part)
		return CLAIM_UNSURE;
	return test->kind == CLAIM_PASS ? CLAIM_AS_EXPECTED : CLAIM_DIFFERS;
}

int claim_smallest(const struct claim_case *test, const struct claim_result *result,
		   const struct claim_budget *budget, struct setup *s, struct deviations *path, char *text,
		   size_t n)
{
	struct campaign c = campaign_of(test, budget);
	int error = campaign_again(&c, result->workload, result->run, result->contract, s, path, text, n);
	return error ? error : shrink(s, path, result->contract, text, n, NULL, NULL);
}
