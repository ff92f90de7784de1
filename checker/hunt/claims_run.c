/* SPDX-License-Identifier: BSD-3-Clause */
/* See claims_run.h. */
#include "checker/hunt/claims_run.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	if (r->differs && claim_judge(r->cases[r->unit[unit].at].test, result) == CLAIM_DIFFERS)
		r->differs(r->differs_arg);
}

int claims_run(struct claims_run *r)
{
	struct driver driver = {.jobs = r->jobs,
				.bounds = r->bounds,
				.result_bytes = sizeof(struct claim_result),
				.work = work,
				.take = take_result,
				.cost = cost,
				.states_at = DRIVER_FIELD(struct claim_result, states),
				.error_at = DRIVER_FIELD(struct claim_result, error),
				.progress = r->progress,
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
