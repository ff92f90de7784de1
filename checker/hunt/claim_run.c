/* SPDX-License-Identifier: BSD-3-Clause */
/* Running cases: each is a small campaign of one configuration. See claims.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/hunt/claims.h"
#include "checker/trace/shrink.h"

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

/* Systematic: an explorer and a search over all runs within the bounds. */
struct searching {
	struct setup setup;
	struct explorer ex;
	struct search search;
};

static int search_workload(struct searching *se, const struct campaign *c,
			   const struct claim_case *test, unsigned workload, unsigned stop_at)
{
	struct explore_limits limits = c->options.limits;
	struct search_limits bounds = search_default;
	int error = campaign_setup(c, workload, &se->setup);
	limits.states = c->options.states;
	bounds.preemptions = test->preemptions;
	bounds.faults = test->faults;
	bounds.runs = test->runs;
	if (!error)
		error = explore_open(&se->ex, &se->setup, &limits);
	if (error)
		return error;
	se->ex.stop_at = stop_at;
	return search_run(&se->search, &se->ex, &bounds);
}

static void end_search(struct searching *se)
{
	search_close(&se->search);
	if (se->ex.setup)
		explore_close(&se->ex);
	setup_free(&se->setup);
	free(se);
}

/* Fill *unit as campaign_explore() does. True: all runs within the bounds were tried. */
static bool search_unit(const struct campaign *c, const struct claim_case *test, unsigned workload,
			unsigned stop_at, struct campaign_unit *unit)
{
	struct searching *se = calloc(1, sizeof(*se));
	if (!se) {
		unit->error = -ENOMEM;
		return false;
	}
	unit->error = search_workload(se, c, test, workload, stop_at);
	if (unit->error)
		snprintf(unit->why, sizeof(unit->why), "%s",
			 unit->error == -EIO ? se->ex.why : strerror(-unit->error));
	unit->counts = se->ex.counts;
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		unit->contract[k].found = se->ex.failure[k].found;
		unit->contract[k].run = se->ex.failure[k].run;
		unit->contract[k].broken = se->ex.broken[k];
	}
	bool complete = se->search.complete;
	end_search(se);
	return complete;
}

/* The run that broke `contract`, found by the same search again. */
static int search_again(const struct campaign *c, const struct claim_case *test,
			const struct claim_result *result, struct setup *s, struct deviations *path,
			char *text, size_t n)
{
	struct searching *se = calloc(1, sizeof(*se));
	int error = se ? campaign_setup(c, result->workload, s) : -ENOMEM;
	if (!error)
		error = search_workload(se, c, test, result->workload, TM_BIT(result->contract));
	if (!error) {
		const struct failure *f = &se->ex.failure[result->contract];
		error = f->found ? deviations_append(path, &f->deviations) : -ENOENT;
		snprintf(text, n, "%s", f->text);
	}
	if (se)
		end_search(se);
	return error;
}

static void run_workload(const struct claim_case *test, unsigned workload,
			 const struct claim_budget *budget, struct claim_result *result)
{
	struct campaign c = campaign_of(test, budget);
	struct campaign_unit unit = {0};
	unsigned stop_at = test->kind == CLAIM_COUNT ? 0 : test->contracts;
	bool complete;
	if (test->search) {
		complete = search_unit(&c, test, workload, stop_at, &unit);
	} else {
		campaign_explore(&c, workload, stop_at, &unit);
		complete = unit.complete;
	}
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
	/* What must break and did not is told by its bound; what must hold wants all of it. */
	result->part = !result->broken &&
		       ((!complete && !(test->search && test->kind == CLAIM_FAIL)) ||
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
		return result->error ? CLAIM_UNSURE : CLAIM_AS_EXPECTED;
	if (result->broken)
		return test->kind == CLAIM_FAIL ? CLAIM_AS_EXPECTED : CLAIM_DIFFERS;
	if (result->error || result->part)
		return CLAIM_UNSURE;
	return test->kind == CLAIM_PASS ? CLAIM_AS_EXPECTED : CLAIM_DIFFERS;
}

int claim_smallest(const struct claim_case *test, const struct claim_result *result,
		   const struct claim_budget *budget, struct setup *s, struct deviations *path,
		   char *text, size_t n)
{
	struct campaign c = campaign_of(test, budget);
	int error = test->search ? search_again(&c, test, result, s, path, text, n)
				 : campaign_again(&c, result->workload,
						  (struct failure_mode){result->run,
									FAILURE_MODE_ANYTHING},
						  result->contract, s, path, text, n);
	return error ? error : shrink(s, path, result->contract, text, n, NULL, NULL);
}
