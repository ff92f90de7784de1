/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_CHECKPOINT_H
#define TM_CHECKER_WORLD_CHECKPOINT_H
/*
 * World 0 at one moment of its run: its simulation, its memory, its clients and the history. Runs
 * that are alike until then need not be made from their beginning.
 */
#include "checker/world/world.h"
#include "core/rt/snapshot.h"

/* Seeded bugs of checkpoints and of what is made of them, for tests: each takes one run for
 * another. */
enum checkpoint_mutant {
	CHECKPOINT_MUTANT_NONE,
	CHECKPOINT_NO_MEMORY,	   /* persistent memory is as at boot */
	CHECKPOINT_NO_CLOCK,	   /* it is as late as it was when the last run ended */
	CHECKPOINT_NO_VALUES,	   /* whose operation wrote a value is as in the last run */
	CHECKPOINT_NO_CLIENTS,	   /* clients are where they were in the last run */
	CHECKPOINT_NO_POINTS,	   /* the points before it are not counted */
	CHECKPOINT_NO_LOWER_BOUND, /* it is forgotten which versions were durable */
	CHECKPOINT_LATE,	   /* a run goes on from the one after its first deviation */
	CHECKPOINT_MISCOUNTED,	   /* the deviation comes a question too early */
	CHECKPOINT_OTHER_BRANCH,   /* a run goes on from one of the plain run that comes after what
				    * they have in common */
	PREFIX_NO_ANSWER,	   /* a run goes on as one that gave another answer there */
	PREFIX_NO_QUESTION,	   /* or as one that gave it to another question */
	PREFIX_STALE,	  /* or as one that was noted in place of it, when there was no room */
	PREFIX_WRONG_RUN, /* a run that was not made before counts as the plain one */
	PREFIX_CUT_SHORT, /* a run that did not look at all of its points counts as made */
	PREFIX_BROKEN,	  /* or one that broke something, and breaks it again */
	CHECKPOINT_MUTANTS
};

/* Can it be kept now? To be asked, and done, in what sim_set_at_rest() calls. */
bool world_has_checkpoint(const struct worlds *ws);
/* Replaces what `c` held. */
void world_checkpoint(struct worlds *ws, struct snapshot *c);
/* World 0 is as it was then; for world_resume(). */
void checkpoint_return(struct worlds *ws, struct snapshot *c, struct source *source,
		       enum checkpoint_mutant mutant);

#endif
