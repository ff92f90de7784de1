/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_PREFIX_H
#define TM_CHECKER_EXPLORE_PREFIX_H
/*
 * What runs have in common with one that was made before need not be made again.
 *
 * Marks are checkpoints along a run, with what the explorer had found until then. The plain run is
 * recorded with marks and with all that it asked. A source whose run is to come answers these
 * questions first, without any world, until it deviates; then the world goes on from the last mark
 * before that question, and asks again only what comes between the two.
 */
#include "checker/judge/history.h"
#include "checker/world/checkpoint.h"
#include "core/rt/choose.h"

#define MARKS 32 /* along one run; when there are so many, every other one is dropped */

#define NO_POSITION UINT32_MAX
struct mark {
	struct snapshot at; /* a checkpoint of world 0 */
	uint32_t position;  /* in the run that it is of: what that is is said by who marks */
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

/* The plain run. */
struct prefix;
struct prefix *prefix_new(void); /* NULL: out of memory */
void prefix_free(struct prefix *p);
/* Begin to record: the source under which the plain run is to be made. */
struct source *prefix_record(struct prefix *p);
/* Where to mark it while it is at rest. *position: how many questions were asked until then. */
struct marks *prefix_marks(struct prefix *p, const uint32_t **position);
/* The run is over, or it was left off after its last question. Until then nothing is known of it.
 */
void prefix_recorded(struct prefix *p);
/*
 * Let the source, whose run is about to begin, answer. The mark from which the run is to go on, and
 * *rest, the source that it then has; it belongs to `p`, and is used until the next call. NULL: the
 * run is to be made from its beginning, and the source is as it was.
 */
struct mark *prefix_ask(struct prefix *p, struct source *source, struct source **rest,
			enum checkpoint_mutant mutant);

#endif
