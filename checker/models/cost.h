/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_COST_H
#define TM_CHECKER_MODELS_COST_H
/* What the simulator costs in this process: wall-clock times, which nothing compares or asserts. */
#include "checker/explore/explore.h"

/* Runs of a workload with all their power failures. */
struct state_cost {
	struct explore_counts counts;
	double seconds;		      /* in all */
	double no_tree;		      /* likewise, with every image run */
	uint64_t recalled, learnt;    /* images that were only read: known, run */
	uint64_t rests;		      /* of those run, the ones run only until they had recovered */
	uint64_t led, cuts;	      /* images in which the power failed again: known, run */
	struct tree_counts tree;      /* all trees together */
	struct explore_phases phases; /* of the same runs once more, under the clock */
};
/* 0; -EIO: the store cannot run the workload; or explore_run(). */
int cost_of_states(const struct tm_store *store, const char *workload, unsigned runs,
		   struct state_cost *out);

#endif
