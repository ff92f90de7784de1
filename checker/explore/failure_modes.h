/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_FAILURE_MODES_H
#define TM_CHECKER_EXPLORE_FAILURE_MODES_H
/*
 * The failure modes of a contract. Many runs of a workload break a contract, most of them for the
 * same cause, and the first of them tells nothing about other causes. A run's failure mode is a
 * coarse description of what the run needed: the kinds of its deviations, such as a client that
 * stopped, a line that landed late, or a power failure. If the kinds of a run include those of
 * another run, and both readers saw the same sort of result, then the run is probably the other one
 * with something added, and it is not a mode of its own.
 */
#include <stdbool.h>
#include "faultinject/deviation.h"

#define FAILURE_MODES 8 /* of one contract; beyond, those with the most kinds are dropped */

struct failure_mode {
	uint64_t run;	/* number of the run */
	unsigned kinds; /* FAILURE_MODE_... */
};

struct failure_modes {
	struct failure_mode mode[FAILURE_MODES]; /* the kinds of none include those of another */
	unsigned n;
};

#define FAILURE_MODE_CRASH   (1u << CHOICE_CRASH) /* the power failed */
#define FAILURE_MODE_CRASHES (1u << CHOICE_LINE)  /* and again in recovery */
#define FAILURE_MODE_LIFE    (1u << CHOICE_LIFE)  /* the store went on after recovery */
/* Where a client stopped: 1 << CHOICE_STEP. Where the server stopped: in a request, or in
 * background work. */
#define FAILURE_MODE_SERVER	(1u << CHOICE_KINDS)
#define FAILURE_MODE_BACKGROUND (1u << (CHOICE_KINDS + 1))
#define FAILURE_MODE_DEATH	(1u << (CHOICE_KINDS + 2)) /* a process or a machine died */
#define FAILURE_MODE_NOTHING \
	(1u << (CHOICE_KINDS + 3)) /* the GET that shows the failure found nothing */
#define FAILURE_MODE_ANYTHING (FAILURE_MODE_NOTHING - 1)

/* The kinds of a run's deviations, which do not include its power failures. */
unsigned failure_mode_kinds(const struct deviations *taken);
/* Is a run with the kinds `all` one with the kinds `some`, perhaps with something added? */
bool failure_mode_includes(unsigned all, unsigned some);
/* Add the mode of run number `run`, unless it is an old one with something added; modes that are
 * the new one with something added go. */
void failure_modes_add(struct failure_modes *modes, unsigned kinds, uint64_t run);

#endif
