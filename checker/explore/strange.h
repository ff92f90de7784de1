/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_STRANGE_H
#define TM_CHECKER_EXPLORE_STRANGE_H
/*
 * The breaks of a contract whose cause is not known: the least ones, that are not others with
 * something added.
 */
#include "checker/judge/blame.h"

#define STRANGE 8 /* so many are kept */
/* A contract is broken for another cause if so many runs of a campaign show it. A bug breaks many.
 * A cause that is so rare that no recording has met it is hardly met ten times by one campaign.
 */
#define STRANGE_RUNS 10

struct strange {
	uint64_t states;    /* with an unknown cause */
	uint64_t runs, run; /* that have such states, and the last of them */
	bool more;	    /* least ones that are not kept */
	unsigned n;
	struct {
		uint64_t run; /* the first with it */
		struct blame blame;
	} one[STRANGE];
};

/* Add what a state of run number `run` is blamed on. Those that are it with something added go. */
void strange_add(struct strange *s, const struct blame *blame, uint64_t run);

#endif
