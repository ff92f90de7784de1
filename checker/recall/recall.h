/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_RECALL_RECALL_H
#define TM_CHECKER_RECALL_RECALL_H
/*
 * Images that need not be run: the explorer's use of the tree of recoveries (tree.h). An image is
 * walked through the tree by the decisions that the search prescribes, and makes those that follow
 * in the order in which a run would. Depth-first search changes the last decision, so that a walk
 * begins at the node where that was made.
 */
#include "checker/recall/image_source.h"
#include "checker/recall/rest.h"
#include "checker/recall/tree.h"

struct recall_path {
	struct tree_path walk; /* the last one */
	uint32_t age;	       /* of the tree then; 0: the walk was given up */
};

/* A machine on its way along a known course. */
struct recall_lead {
	struct observed *known; /* its own copy: the tree may forget it meanwhile */
	struct pmem_follow follow;
	unsigned told, first_op; /* events of the history so far; the first operation of it */
	unsigned failures;	 /* tests: places where the power could have failed until now */
	bool notes;		 /* it is run, and its course is noted */
};

struct recall {
	struct tree *tree; /* NULL: every image is run */
	enum tree_mutant mutant;
	struct rest rest;
	struct recall_path path[WORLDS];
	uint64_t recalled, learnt, differed; /* images */
	uint64_t points;		     /* the images of so many points were begun */
	/* A tree of its own for images in which the power fails on the way, or that live on: they
	 * are not proved to live, and their leaves have a course (core/pmem/course.h). */
	struct tree *cuts;
	struct tree_path cut_path;
	struct actors *actors;
	struct pmem_course course[WORLDS]; /* of the image that is run */
	struct recall_lead lead[WORLDS];
	uint64_t led, cuts_learnt;
};

/* A tree that takes up to so many bytes. 0 or -ENOMEM. */
int recall_open(struct recall *r, size_t bytes, enum tree_mutant mutant);
void recall_close(struct recall *r);
/* All trees together. */
void recall_count(const struct recall *r, struct tree_counts *out);
/* After image_start(): what is known to come of the image; its decisions are made. NULL: it is to
 * be run, with the decisions that have been made by now. */
struct tree_leaf *recall_walk(struct recall *r, struct image_source *is);
/* Apply the known outcome to the world. */
void recall_again(const struct recall *r, const struct tree_leaf *leaf, struct world *w);
/* Before an image is run that is to be learnt; `whole`: to its end, whatever is known. */
void recall_begin(struct recall *r, struct image_source *is, bool whole);
/* After it. In the run this many events happened, and the first of its GETs is that operation. What
 * is known to come after recovery, and was not run, happens to the world. */
struct tree_leaf *recall_learn(struct recall *r, struct image_source *is, uint64_t events,
			       unsigned first_op);

/* The same for images in which the power fails on the way, or that live on. What is known of it, or
 * NULL. */
struct tree_leaf *recall_walk_cut(struct recall *r, struct image_source *is);
void recall_begin_cut(struct recall *r, struct image_source *is);
/* The power could fail at this place of a world; noted if its image is run to be learnt. */
void recall_note_failure(struct recall *r, const struct image_source *is,
			 const struct choice_point *at);
/* After the run; not if it was stopped on the way. */
struct tree_leaf *recall_learn_cut(struct recall *r, struct image_source *is, uint64_t events);
/* In any case. */
void recall_end_cut(struct recall *r, struct image_source *is);
/* After image_start() and world_stand(): the machine is led along its known course. */
void recall_lead(struct recall *r, const struct tree_leaf *leaf, struct world *w);
/* To the next place where the power could have failed, with its history; NULL: to its end, and what
 * is known of that has happened to the world. Good until the next call. */
const struct choice_point *recall_lead_on(struct recall *r, struct image_source *is);

#endif
