/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_COVERAGE_H
#define TM_CHECKER_WORLD_COVERAGE_H
/*
 * Which parts of a store's code run, and in which part of a machine's life.
 *
 * Where a line, or a part of it, begins stands a breakpoint until it has run; so nothing is
 * compiled otherwise for it, code that has run once runs as always, and without coverage nothing is
 * changed at all. What has run is kept for each phase of its own, and where the phase changes the
 * breakpoints do.
 *
 * In recovery there is also one at each conditional jump whose ways do not show in what runs, until
 * it has gone both: the jump is then made here, in its place.
 *
 * In one process one store at a time, and one thread.
 */
#include <stdbool.h>
#include "checker/world/source_lines.h"

enum coverage_phase {
	COVERAGE_OUTSIDE,  /* no machine runs: the store's own judge, its sizes */
	COVERAGE_RUN,	   /* the load phase, and the machine that runs the workload */
	COVERAGE_RECOVERY, /* recovery after the first power failure, and the check after it */
	COVERAGE_AFTER,	   /* what that machine does then; all machines after it */
	COVERAGE_PHASES
};

extern bool coverage_on;

#if defined(__x86_64__)
#define COVERAGE_POSSIBLE true
#else
#define COVERAGE_POSSIBLE false
#endif

/* Begin: nothing has run. `lines` stays the caller's until coverage_stop(). 0; -ENOMEM; or why code
 * cannot be changed, such as -EACCES. */
int coverage_start(const struct source_lines *lines);
/* What has run, a bit for each: of the sites, by phase; of each branch the ways that it has gone in
 * recovery, on or to its target. Number i is bit i % 8 of byte i / 8. */
struct coverage_sets {
	uint8_t *site[COVERAGE_PHASES], *branch[2];
};
/* End. Sets the bits of what has run. */
void coverage_stop(const struct coverage_sets *sets);
enum coverage_phase coverage_change(enum coverage_phase phase);

/* What runs from now on is of this phase. The one before, for when it ends. */
static inline enum coverage_phase coverage_enter(enum coverage_phase phase)
{
	return coverage_on ? coverage_change(phase) : COVERAGE_OUTSIDE;
}

#endif
