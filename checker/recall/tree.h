/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_RECALL_TREE_H
#define TM_CHECKER_RECALL_TREE_H
/*
 * Recovery and reading back are a deterministic function of what they read. So they are a decision
 * tree: a node names the line of PM that is touched next, an edge is that line's content, and a
 * leaf holds what was observed. Lines that are as they were loaded, one after the other, are one
 * node. Real runs teach it. An image whose lines lead to a leaf need not be run; one that leaves
 * the tree is run, and its run adds a branch.
 *
 * The tree knows contents by 64-bit hashes. It forgets the branches that have been of no use for
 * the longest time when it has no room left.
 */
#include <stddef.h>
#include <stdint.h>
#include "checker/recall/observed.h"

/* Mutants of the tree, for its tests: each takes an image for one that it is not. */
enum tree_mutant {
	TREE_MUTANT_NONE,
	TREE_LINE_LEFT_OUT, /* every second line's content is ignored */
	TREE_SHORT_HASH,    /* only four bits of each content are known */
	TREE_NEAREST,	    /* a content that is not known counts as one that is */
	TREE_FIRST_LOADED,  /* only the first of several lines as loaded is looked at */
	TREE_WRONG_LEAF,    /* when branches are forgotten, leaves are mixed up */
	TREE_NEWEST,	    /* lines survive as their newest version, whatever is decided */
	TREE_NO_READ,	    /* what had been touched when all keys were read is forgotten */
	TREE_DRAWN_TWICE,   /* what a walk has drawn is drawn again by the run */
	TREE_CLEAN_EVER,    /* an outcome that is right at one point counts as right at all */
	TREE_NO_RESULT,	    /* LIVE, OK and FSCK are not reported again */
	TREE_NO_STEPS,	    /* nor how many steps recovery took */
	TREE_REST_STALE,    /* the lines' content after recovery is not part of what is known */
	TREE_CUT_NOT_THERE, /* the power fails at some places of a recovery only */
	TREE_CUT_NO_FLIGHT, /* what recovery has stored is not in flight there */
	TREE_CUT_REDECIDED, /* what the first failure left is decided anew there */
	TREE_CUT_UNREAD,    /* what has been read until then is not in the history */
	TREE_LIFE_ANY,	    /* whatever is done in a life, it is the same */
	TREE_LIFE_MACHINE,  /* likewise, on whichever machine */
	/* Trees are shared whatever these are: */
	TREE_OTHER_HARDWARE,
	TREE_OTHER_KNOBS, /* and store and sizes */
	TREE_OTHER_POOL,  /* that the load phase left */
	TREE_MUTANTS
};

struct tree;
struct tree_leaf {
	struct observed *observed; /* the tree's */
	uint64_t hash;
	uint64_t clean_at;	/* the caller's: 0 at first */
	struct tree_leaf *next; /* with the same hash, cut short */
	uint32_t number;
};

struct tree_counts {
	uint64_t nodes, leaves, bytes; /* now */
	uint64_t forgotten;	       /* times that it had no room left */
};

#define TREE_NONE  0		      /* no node */
#define TREE_MARKS 0xf0000000u	      /* lines from here on are in no pool, and are marks */
#define TREE_BYTES ((size_t)64 << 20) /* that a tree takes, if nothing else is said */

/* A tree that takes up to so many bytes. NULL: out of memory. */
struct tree *tree_new(size_t bytes, enum tree_mutant mutant);
void tree_free(struct tree *t);
/* As new. */
void tree_clear(struct tree *t);
/* Changes when nodes that were known before are gone, or have other names. */
uint32_t tree_age(const struct tree *t);
/* Where every walk begins; TREE_NONE: the tree is empty. */
uint32_t tree_root(const struct tree *t);
/* The lines that are touched at a node, from *line on; 0: it is a leaf. More than one: its only
 * child is where they are as loaded. */
uint32_t tree_lines(const struct tree *t, uint32_t node, uint32_t *line);
struct tree_leaf *tree_leaf(struct tree *t, uint32_t node);
/* Where this content of the node's line leads, or PMEM_AS_LOADED of all its lines; TREE_NONE: not
 * known. */
uint32_t tree_next(struct tree *t, uint32_t node, uint64_t content);

/* The nodes of a walk. */
struct tree_path {
	uint32_t *node;
	uint32_t n, room;
};
void tree_path_add(struct tree_path *path, uint32_t node);
/*
 * A real run has touched these lines, and `o` was observed, which becomes the tree's. The leaf;
 * NULL: out of memory, or other lines are touched next than before (*differs): recovery is not what
 * the tree takes it for.
 */
struct tree_leaf *tree_add(struct tree *t, const struct pmem_touched *touched, struct observed *o,
			   struct tree_path *path, bool *differs);
/* Likewise, where the first node stands for something else that all depends on. */
struct tree_leaf *tree_add_under(struct tree *t, uint64_t what, const struct pmem_touched *touched,
				 struct observed *o, struct tree_path *path, bool *differs);
void tree_count(const struct tree *t, struct tree_counts *out);

#endif
