/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_PLAIN_RUN_H
#define TM_CHECKER_MODELS_PLAIN_RUN_H
/* What a store does if nothing goes wrong: one run in which every choice is answered plainly. */
#include "checker/world/world.h"

struct plain_run {
	world_between *between;
	sim_tracer *tracer; /* or NULL */
	void *arg;	    /* of both */
};

/* *world is set before the run begins, and gone when this returns. 0; -EIO: it could not be begun,
 * or an operation does not end: `why`; -ENOMEM. */
int plain_run(struct setup *s, const struct plain_run *how, struct world **world,
	      char why[WORLDS_WHY]);

#endif
