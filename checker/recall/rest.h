/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_RECALL_REST_H
#define TM_CHECKER_RECALL_REST_H
/*
 * What comes after recovery: the server starts, a client connects, keys are read, life is proved.
 * It depends on what recovery has left, which is much the same whatever it had to repair. So there
 * is a second tree (tree.h): its first node is what recovery left outside of PM, the memory that
 * was handed out, the clock and the events to come; the others are the lines of PM that are touched
 * from then on, by what is on them after recovery. An image that the tree of recoveries does not
 * know is run until it has recovered; if the second tree knows the rest, the run ends there.
 */
#include "checker/recall/image_source.h"
#include "checker/recall/tree.h"

/* So far an image's run had come when it touched a line. */
struct rest_place {
	uint32_t decisions, lines; /* made; touched */
};

struct rest {
	struct tree *tree;
	enum tree_mutant mutant;
	struct image_source *is; /* of the image that is run */
	bool whole;		 /* it is run to its end whatever is known */
	bool learns;		 /* it is run to its end, and the rest of it is noted */
	uint64_t key;		 /* what recovery left outside of PM */
	uint64_t events;	 /* of the simulation by then */
	struct tree_leaf *leaf;	 /* what is known of the rest; NULL: the image was run to its end */
	struct tree_path path;
	struct rest_place *place; /* by lines touched since recovery */
	uint32_t places, room;
	uint64_t asked, recalled;
	bool differed;
};

/* A tree that takes up to so many bytes. 0 or -ENOMEM. */
int rest_open(struct rest *rest, size_t bytes, enum tree_mutant mutant);
void rest_close(struct rest *rest);
/* Before an image is run, whose touched lines are noted: its world asks when it has recovered. */
void rest_begin(struct rest *rest, struct image_source *is, bool whole);
/* After it. What was observed of the image, or NULL: what the world says itself, for it was run to
 * its end. Then the rest of it is learnt; `first_op`: the first of its GETs. */
struct observed *rest_end(struct rest *rest, unsigned first_op, uint64_t events);

#endif
