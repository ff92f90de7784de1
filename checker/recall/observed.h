/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_RECALL_OBSERVED_H
#define TM_CHECKER_RECALL_OBSERVED_H
/*
 * What is observed of a machine that boots, recovers and is read: apart from the machine's number
 * and from which PUTs have been begun it depends on the lines of PM that are touched, and on
 * nothing else. So it can be kept, and told again of another run, to another history.
 */
#include "checker/world/world.h"
#include "core/pmem/course.h"

/* One block of memory; equal if all of its bytes are. */
struct observed {
	uint64_t events; /* of the simulation */
	uint32_t size;	 /* of all, in bytes */
	uint32_t lines;	 /* lines that had been touched when all keys were read; OBSERVED_NEVER */
	int32_t live_op; /* as struct world_result has it, counted from the first GET */
	uint32_t recovery[STEP_KINDS];
	uint8_t end, live_broken, fsck_broken, ok_broken, agree_broken;
	uint16_t gets, why; /* operations; bytes of the text that says why, 0: nothing is broken */
	uint16_t ok_why, fsck_why, agree_why; /* bytes of the other texts, likewise */
	uint16_t history;		      /* events: operations begin and return */
	uint32_t bytes;			      /* that they returned */
	uint32_t course; /* bytes of the machine's course, where the power fails on the way */
	/* then the operations, the events, the texts, the bytes, the course */
	struct world_get get[];
};
#define OBSERVED_NEVER UINT32_MAX

/* What `w` has seen since world_recover(), in a block that is to be freed; NULL: out of memory.
 * `course`: or NULL. */
struct observed *observed_new(const struct world *w, uint64_t events, uint32_t lines,
			      unsigned first_op, const struct pmem_course *course);
/* The steps of recovery, which are a part of the result. */
void observed_steps(const struct observed *o, struct world *w);
/* The same happens to `w`, which does not run: its result, and the operations of its history. */
void observed_again(const struct observed *o, struct world *w);
/* Likewise, but in parts: the history, of whose events *told have happened, is led on until so many
 * have; and then, when all have, the result. `first_op`: of the history. */
void observed_until(const struct observed *o, struct world *w, unsigned first_op, unsigned *told,
		    unsigned events);
void observed_result(const struct observed *o, struct world *w, unsigned first_op);
const uint8_t *observed_course(const struct observed *o);

#endif
