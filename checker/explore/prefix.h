/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_PREFIX_H
#define TM_CHECKER_EXPLORE_PREFIX_H
/*
 * What runs have in common with some that were made before need not be made again.
 *
 * Schedules form a tree. A node is a stretch of a run, from one deviation to the next, with all
 * that was asked in it; an edge is the question that was answered with a deviation, and the answer.
 * The root is the plain run, along which there are marks. A source whose run is to come is asked
 * along the tree, without any world, until its run leaves what is known; then the world goes on
 * from the last mark before the first deviation, and asks again only what comes between the mark
 * and that place. A run that ends within the tree is one that was made before, and what it came to
 * is known.
 */
#include "checker/explore/marks.h"
#include "core/rt/choose.h"

/* What a whole run came to. */
struct known_run {
	uint64_t hash;	 /* of its course and its points */
	uint64_t points; /* where the power could fail; each of them was looked at */
	uint64_t events;
	int32_t lower_bound[HISTORY_KEYS]; /* at its end */
};

struct prefix;
/* `bytes`: what the tree takes at most, besides the plain run. NULL: out of memory. */
struct prefix *prefix_new(size_t bytes);
void prefix_free(struct prefix *p);
/* Forget everything and begin with the plain run: the source under which it is to be made. */
struct source *prefix_record(struct prefix *p);
/* Where to mark it while it is at rest. *position: how many questions were asked until then. */
struct marks *prefix_marks(struct prefix *p, const uint32_t **position);
/*
 * Let the source, whose run is about to begin, answer. The mark from which the run is to go on, and
 * *rest, the source that it then has; it belongs to `p`, and is used until the next call. NULL: the
 * run is to be made from its beginning, and the source is as it was.
 */
struct mark *prefix_ask(struct prefix *p, struct source *source, struct source **rest,
			enum checkpoint_mutant mutant);
/* What the run of the source that was asked last comes to; NULL: that is not known. */
const struct known_run *prefix_known(const struct prefix *p);
/* The run that began last, the plain one or one that went on from a mark, is over. `whole`: it came
 * to its end and looked at all of its points; with so many deviations. `run`: what it came to;
 * NULL: it has to be made again if it is met again. */
void prefix_made(struct prefix *p, bool whole, unsigned taken, const struct known_run *run);

#endif
