/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_FAILURE_MODES_H
#define TM_CHECKER_EXPLORE_FAILURE_MODES_H
/*
 * Ways in which a contract was broken. Many runs of a workload break it, most of them for one
 * cause, and the first to do so says nothing of the others. What a run needed is told coarsely
 * by the kinds of its deviations: a client that stopped, a line that landed late, a power
 * failure. A run whose kinds include those of another, and whose reader saw the like, is likely
 * to be that one with something added, and is not kept.
 */
#include <stdbool.h>
#include "faultinject/deviation.h"

#define FAILURE_MODES 8 /* of one contract; of more, those with the most kinds are forgotten */

struct failure_mode {
	uint64_t run;	/* number of the run */
	unsigned kinds; /* FAILURE_MODE_... */
};

struct failure_modes {
	struct failure_mode way[FAILURE_MODES]; /* no one's kinds include another's */
	unsigned n;
};

#define FAILURE_MODE_CRASH   (1u << CHOICE_CRASH) /* the power failed */
#define FAILURE_MODE_CRASHES (1u << CHOICE_LINE)  /* and again in recovery */
/* A client stopped: 1 << CHOICE_STEP; the server did, at a request, or at what it does unasked. */
#define FAILURE_MODE_SERVER	(1u << CHOICE_KINDS)
#define FAILURE_MODE_BACKGROUND (1u << (CHOICE_KINDS + 1))
#define FAILURE_MODE_NOTHING	(1u << (CHOICE_KINDS + 2)) /* the GET that proves it found nothing */
#define FAILURE_MODE_ANYTHING	(FAILURE_MODE_NOTHING - 1)

/* Of the deviations of a run, with none of its power failures. */
unsigned failure_mode_kinds(const struct deviations *taken);
/* Is a run with the kinds `all` one with the kinds `some`, perhaps with something added? */
bool failure_mode_includes(unsigned all, unsigned some);
void failure_modes_add(struct failure_modes *ways, unsigned kinds, uint64_t run);

#endif
