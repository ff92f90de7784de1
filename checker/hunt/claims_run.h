/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_CLAIMS_RUN_H
#define TM_CHECKER_HUNT_CLAIMS_RUN_H
/*
 * Running several claims. A unit of work is one workload of a case, or a whole case that must
 * fail, whose workloads are tried in turn. Results are put together in the order of the file, so
 * the number of processes changes no figure.
 */
#include "checker/explore/driver.h"
#include "checker/hunt/claims.h"

/* A case of a claim that was asked for. */
struct run_case {
	const struct claim *claim;
	const struct claim_case *test;
	unsigned number; /* within the claim, from 1 */
	struct claim_result result;
};

struct claims_run {
	const struct claim *const *claim; /* asked for */
	unsigned claims;
	struct claim_budget budget;
	unsigned jobs;
	const struct driver_bounds *bounds; /* NULL: none */
	driver_shows *progress;		    /* NULL: not wanted */
	/* NULL, or: a unit has come of which the case differs from what is expected. */
	void (*differs)(void *differs_arg);
	void *differs_arg;
	/* results: the cases of all these claims, in their order */
	struct run_case *cases;
	unsigned n;
	uint64_t states;
	unsigned done;	      /* of `units`; while a case has others, its result.part is true */
	unsigned units;	      /* of work */
	char why[WORLDS_WHY]; /* after -ENOTRECOVERABLE */
	/* private */
	struct claim_unit *unit;
};

/* 0 or -errno, as driver_run(); -EINTR: stopped early; the results are those of what is done. A
 * case that could not be run says so itself; -ENOTRECOVERABLE: explore_run(). claims_run_free() in
 * any case. */
int claims_run(struct claims_run *r);
void claims_run_free(struct claims_run *r);

#endif
