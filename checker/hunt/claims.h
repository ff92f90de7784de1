/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_CLAIMS_H
#define TM_CHECKER_HUNT_CLAIMS_H
/*
 * What the papers claim, and hazards that they do not mention, as scenarios with an
 * expected outcome. Each store's folder has its own, and core/stores/claims.txt has the grammar
 * and the claims about several stores, to which a store's file adds its cases. All are compiled
 * in.
 *
 * A claim has cases. A case is a store with its knobs, workloads, contracts, and what
 * is expected:
 *
 *	pass	none of the contracts breaks in any of the workloads, within the budget
 *	fail	one of them breaks; the workloads are tried in turn until one does
 *	count	nothing is expected; in how many crash states it breaks is reported
 */
#include <stdbool.h>
#include "checker/campaign/campaign.h"
#include "checker/campaign/search.h"

#define CLAIM_FAIL_RUNS 20000 /* of each workload in which something must break, at most */

enum claim_kind { CLAIM_PASS, CLAIM_FAIL, CLAIM_COUNT };

struct claim_case {
	enum claim_kind kind;
	const char *file; /* where it is */
	unsigned line;
	unsigned contracts;	      /* TM_BIT()s */
	unsigned runs;		      /* of each workload */
	bool no_crash;		      /* the power never fails */
	bool no_lives;		      /* no machine lives on after recovery */
	bool no_deaths;		      /* no process dies */
	bool two_events;	      /* that befall servers, in one run */
	bool search;		      /* systematically, instead of at random: */
	unsigned preemptions, faults; /* all runs with at most so many */
	struct campaign_config config;
	char last[64];	      /* of the knobs of the store or of the hardware; "": there is none */
	struct setup without; /* the setup without that one */
	struct workload *workload;
	unsigned workloads;
};

struct claim {
	const char *id, *source, *says;
	const char
		*note; /* why we expect something else than the paper, or what to know; or NULL */
	const char *open; /* what of it is not tested, and why; or NULL */
	struct claim_case *test;
	unsigned tests;
	const char *file;
	unsigned line;
};

/*
 * What one knob does, all else being equal. Sensitivity, below, runs these.
 *
 *	breaks	with it, one of the test's contracts breaks; without it, that one holds
 *	cures	the other way round
 */
enum knob_kind { KNOB_BREAKS, KNOB_CURES };

struct claim_knob {
	const struct tm_store *store; /* NULL: of the hardware */
	char knob[64];		      /* "name=value" */
	enum knob_kind kind;
	struct claim_case test; /* the knob is the last one; runs: of the side that holds, at
				   least */
	const char *file;
	unsigned line;
};

struct claims {
	struct claim *claim;
	unsigned claims;
	struct claim_knob *knob;
	unsigned knobs;
	struct workload *workload; /* the files' own */
	unsigned workloads;
	char **text; /* private */
	unsigned texts;
};

/* What came of a case. */
struct claim_result {
	bool broken;
	unsigned contract, workload; /* the first that broke */
	uint64_t run;
	uint64_t states, runs;
	uint64_t broken_states; /* in which any of the contracts broke, the most of one contract */
	bool part;		/* not all of the budget was used up */
	int error;		/* -errno: could not be run */
	char why[WORLDS_WHY];
};

enum claim_verdict {
	CLAIM_AS_EXPECTED,
	CLAIM_DIFFERS,
	CLAIM_UNSURE, /* a case that must pass was not run in full */
};

struct claims_error {
	struct input_error text;
	const char *file;
};

/*
 * Read `text`, a file like core/stores/claims.txt; NULL: all files that are compiled in. 0 and
 * *c is then for claims_free(); -EINVAL with *where, or -ENOMEM.
 */
int claims_read(struct claims *c, const char *text, struct claims_error *where);
void claims_free(struct claims *c);
/* NULL: no such claim. */
const struct claim *claim_find(const struct claims *c, const char *id);

struct claim_budget {
	uint64_t seed;
	uint64_t states; /* of each workload at most */
	bool no_lives;	 /* no machine lives on after recovery */
};

/*
 * Run one workload of a case into a zeroed *result; of a case that must fail, this workload
 * and those after it until one breaks.
 */
void claim_run(const struct claim_case *test, unsigned workload, const struct claim_budget *budget,
	       struct claim_result *result);
/* Add what came of one workload to what came of those before it. */
void claim_add(struct claim_result *sum, const struct claim_result *one);
enum claim_verdict claim_judge(const struct claim_case *test, const struct claim_result *result);
/*
 * The smallest way to break it that was found from what `result` names, or not `small`: as it was
 * found; to be freed in any case. 0 or -errno; -ENOENT: it could not be shrunk, or, with an empty
 * out->path, does not break again; -ENOTRECOVERABLE: as shrink().
 */
int claim_smallest(const struct claim_case *test, const struct claim_result *result,
		   const struct claim_budget *budget, bool small, struct broken_run *out);

/* --- several claims --- */

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
	struct driver_how how; /* attention: a case differs from what is expected */
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

/* --- sensitivity --- */

/*
 * Does a knob matter? The `knob` lines of the files of claims say of values of knobs what they
 * change, and where; this is tested here.
 *
 * A line names a store, its other knobs, and workloads. The side on
 * which something must break is explored until it does; the other side must then hold, in the same
 * workload, for several times as many runs: exploring is random, and a rare break may be met on one
 * side by chance.
 *
 * No machine lives on after recovery: what is drawn for such a life may break what the workload
 * itself cannot, by chance on one side only.
 */

/* What came of a line. */
struct knob_result {
	int error;	      /* -errno: could not be tested */
	char why[WORLDS_WHY]; /* or "" */
	bool broke;	      /* a contract broke on the side that must, */
	bool held;	      /* and the other side held: it is as the line says */
	unsigned contract;
	char workload[64];
	uint64_t run;	    /* the first that broke */
	uint64_t held_runs; /* of the other side */
};

struct sensitivity {
	const struct claims *claims;
	struct driver_how how;
	uint64_t seed;
	struct knob_result *result; /* by knob line */
	char why[WORLDS_WHY + 80];  /* after an error: why, or "" */
};

/* Test all knob lines. 0 or -errno, as campaign_run(). */
int sensitivity_run(struct sensitivity *f);

#endif
