/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_MARKS_H
#define TM_CHECKER_EXPLORE_MARKS_H
/* Checkpoints along a run, with what the explorer had found until then. */
#include "checker/judge/history.h"
#include "checker/world/checkpoint.h"

#define MARKS 32 /* along one run; when there are so many, every other one is dropped */

#define NO_POSITION UINT32_MAX
struct mark {
	struct snapshot at; /* a checkpoint of world 0 */
	uint32_t position;  /* in its run, as the code that marks counts */
	uint64_t points;    /* where the power could have failed before */
	int32_t lower_bound[HISTORY_KEYS];
};

struct marks {
	struct mark mark[MARKS];
	unsigned n;
	uint32_t spacing; /* positions between two marks, at least */
};
void marks_clear(struct marks *m);
void marks_free(struct marks *m);
/* A mark to be filled, as the run is at this position and at rest; NULL: the last one is near. One
 * that is still at position 0 takes the place of the one before it. */
struct mark *marks_next(struct marks *m, uint32_t position);
/* The last mark at this position or before it; NULL: there is none. */
struct mark *marks_before(struct marks *m, uint32_t position);

#endif
