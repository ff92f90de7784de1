/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_FREQUENCY_H
#define TM_CHECKER_EXPLORE_FREQUENCY_H
/* Counts the runs that show each known cause; what is made of it: checker/judge/known.h. */
#include "checker/judge/known.h"

struct frequency {
	struct known_set shown;		 /* by the run that is on */
	uint32_t runs[KNOWN_STORE_ROWS]; /* by row, from the store's first one */
	uint32_t run[KNOWN_STORE_ROWS];	 /* the first of them */
	uint64_t accepted;		 /* as in struct known_set, by all runs */
};

/* The run of that number is over. `first`: the store's first row. */
void frequency_run(struct frequency *f, unsigned first, uint64_t run);

#endif
