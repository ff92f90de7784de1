/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PMEM_COURSE_H
#define TM_PMEM_COURSE_H
/*
 * The course of a machine: what it did to what a power failure leaves of it, one thing after the
 * other, and where the power could have failed on the way. A machine that boots and finds the same
 * on the lines that it touches takes the same course. So one can be led along it without its
 * program: lines are touched, and decided, stored to and made durable, and at each of those places
 * another machine can boot from what is left, as if the program had run.
 *
 * A course is bytes: it can be kept, moved and compared. It has actors as numbers; the caller keeps
 * one table of their names for all courses.
 */
#include "core/pmem/crash.h"
#include "core/rt/actors.h"

struct pmem_course {
	struct actors *actors;
	uint8_t *byte; /* to be freed with free() */
	uint32_t bytes, room;
	uint32_t length; /* of them, up to the last place where the power could have failed */
};

/* The machine's course is noted from here on, after what is there already; NULL: no more. */
void pmem_note_course(struct pmem *pm, struct pmem_course *course);
/* Here the power could have failed. `mark`: the caller's. */
void pmem_course_failure(struct pmem_course *course, const struct choice_point *at, uint32_t mark);

/* A machine on its way along a course. */
struct pmem_follow {
	struct actors *actors;
	const uint8_t *byte;
	uint32_t bytes, done;
	bool no_flight; /* tests: what becomes visible on the way is left out */
	/* Where it has come to. */
	struct choice_point at;
	uint32_t mark;
};
/* Lead a machine that runs, and touches nothing else, on to the next place where the power could
 * have failed. False: there is none. */
bool pmem_follow(struct pmem *pm, struct pmem_follow *follow);

#endif
