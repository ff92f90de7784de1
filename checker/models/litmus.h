/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_LITMUS_H
#define TM_CHECKER_MODELS_LITMUS_H
/*
 * All that can come out of a litmus test, on the soft RNIC and the persistence model.
 * litmus.c opens with how.
 */
#include "scenarios/litmus.h"

struct litmus_outcome {
	uint64_t value[LITMUS_OBSERVED]; /* as in litmus_test.observed; 0 of a place that this kind
					    of outcome has not */
	uint64_t count;			 /* runs, or crash states, that end so */
};

struct litmus_outcomes {
	struct litmus_outcome *outcome; /* sorted by value */
	unsigned n, room;
};

struct litmus_limits {
	uint64_t runs; /* give up after so many */
	bool whole; /* tests: every interleaving, also those that only reorder independent steps */
};
extern const struct litmus_limits litmus_default; /* no limit that small tests meet */

struct litmus_result {
	struct litmus_outcomes final,
		crash;		/* crash: empty if no condition and no `observe` wants it */
	uint64_t runs, blocked; /* blocked: of the runs, those in which a thread waits for ever */
	bool complete;		/* false: the limit ended the search */
	struct {
		bool satisfied; /* does some outcome satisfy the formula? */
		bool violated;	/* does some outcome not? */
		bool holds; /* does the condition hold? Only certain where complete, or where one
			       outcome decides */
	} condition[LITMUS_CONDITIONS];
};

/* Search. 0 or -ENOMEM. To be freed with litmus_result_free() in any case. */
int litmus_run(const struct litmus_test *test, const struct litmus_limits *limits,
	       struct litmus_result *out);
void litmus_result_free(struct litmus_result *result);

/*
 * Tell the shortest run found whose outcome decides condition c: one that satisfies an `exists`,
 * one that violates a `never` or `forall`. `say` gets a line at a time. -ENOENT: there is none.
 */
int litmus_witness(const struct litmus_test *test, const struct litmus_limits *limits, unsigned c,
		   void (*say)(void *arg, const char *line), void *arg);

#endif
