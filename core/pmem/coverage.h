/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PMEM_COVERAGE_H
#define TM_PMEM_COVERAGE_H
/*
 * Which parts of a store's code run, and in which part of a machine's life.
 *
 * A store that `tidemark cc --coverage` has compiled calls tidemark_ran() at the beginning of each
 * basic block. In one process one store at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum coverage_phase {
	COVERAGE_OUTSIDE,  /* no machine runs: the store's own judge, its sizes */
	COVERAGE_RUN,	   /* the load phase, and the machine that runs the workload */
	COVERAGE_RECOVERY, /* recovery after the first power failure, and the check after it */
	COVERAGE_AFTER,	   /* what that machine does then; all machines after it */
	COVERAGE_PHASES
};

/* For each byte of the store's code the phases, as bits, in which a block was entered there: at the
 * address to which its call returns. */
struct coverage {
	uint8_t *ran; /* the caller's; NULL: coverage is not wanted */
	uintptr_t begin;
	size_t bytes;
	enum coverage_phase phase;
};
extern struct coverage coverage;

/* A block of the store begins. */
void tidemark_ran(const void *pc);

/* What runs from now on is of this phase. The one before, for when it ends. */
static inline enum coverage_phase coverage_enter(enum coverage_phase phase)
{
	enum coverage_phase before = coverage.phase;

	coverage.phase = phase;
	return before;
}

#endif
