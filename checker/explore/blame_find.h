/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_BLAME_FIND_H
#define TM_CHECKER_EXPLORE_BLAME_FIND_H
/* What a broken state is blamed on (struct blame): found while its machines still stand. */
#include "checker/judge/blame.h"
#include "checker/world/world.h"
#include "faultinject/deviation.h"

/* A state that breaks a contract. */
struct broken_state {
	const struct setup *setup;
	const struct worlds *worlds;
	unsigned machine; /* the one that runs: so many power failures came before */
	unsigned contract;
	const struct verdict *verdict; /* NULL: it is not judged from the history */
	const struct deviations *run;  /* of machine 0; power failures among them do not matter */
	/* By machine: the lines that its predecessor's failure left, and how it lived; others among
	 * them do not matter. */
	const struct deviations *path;
};

void blame_find(const struct broken_state *state, struct blame *out);

#endif
