/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_RECALL_IMAGE_SOURCE_H
#define TM_CHECKER_RECALL_IMAGE_SOURCE_H
/*
 * The source of a world that boots after a power failure: which version of each line in flight
 * survived, one image after the other, and what clients do when the store lives on. explore.c opens
 * with the order in which images are tried.
 */
#include "checker/world/world.h"
#include "faultinject/life.h"
#include "core/rt/source.h"
#include "faultinject/deviation.h"

#define MAX_DECISIONS 512
#define MAX_DRAWS     1024

struct decision {
	uint32_t line;
	unsigned answer, answers;
	const struct pmem *failed; /* the machine whose versions are asked about */
	unsigned at;	/* of images that were read: where in the tree's path it was made, */
	unsigned lines; /* and how many lines had been touched before */
};

/* What is done with an image. */
enum visit {
	VISIT_READ,   /* all keys are read, life is proved */
	VISIT_CUT,    /* likewise, and the power fails at each place on the way */
	VISIT_LIFE,   /* after reading it lives on; the power fails at some places of that life */
	VISIT_PLANNED /* as the explorer's plan says */
};

struct image_source {
	struct source source;
	const struct life_plan *plan; /* [machine] */
	struct world *world;	      /* that boots */
	/* Of several servers: the configuration that the failed machine left, and who is gone. Else
	 * 0. */
	uint64_t inherited;
	enum visit visit;
	uint64_t life; /* random state of this life */
	struct deviation lived[LIFE_OPS];
	unsigned lives; /* of them */
	/* Where a life was walked through: whether the power fails at each place of it. The number
	 * drawn, and that of those asked for. */
	unsigned draws, drawn;
	uint64_t draw[MAX_DRAWS / 64];
	unsigned used, depth; /* decisions made in this run; of them, prescribed by the search */
	unsigned read; /* of them, made by recovery and by reading all keys; more: not all were read
			*/
	uint32_t read_lines; /* lines that had been touched by then */
	uint32_t read_rest;  /* since recovery, where that is noted (pmem_note_touched_again()) */
	bool strayed;	     /* other lines were touched than the search prescribes */
	bool sampling;	     /* images are drawn; else depth first */
	uint64_t random;     /* state of that */
	/* The last member, because image_reset() does not clear it. */
	struct decision decision[MAX_DECISIONS];
};

/* As new: another point begins. */
void image_reset(struct image_source *is);
/* Another run begins: the same decisions as before, up to `depth`. */
void image_start(struct image_source *is);
/* What the failed machine left of a line, of which there are `answers` possibilities. */
unsigned image_decide(struct image_source *is, uint32_t line, unsigned answers);
/* The power could fail at this place of a life that was drawn. Does it? `led`: the life is known,
 * and was walked through. */
bool image_draws_failure(struct image_source *is, bool led);
/* What a known way depends on besides lines: how the image is visited, ... */
uint64_t image_ways(const struct image_source *is);
/* ... and what is drawn or planned on the way, which is among the lines that are touched as lines
 * from TREE_MARKS on. It comes next; as a line's content. */
uint64_t image_mark(struct image_source *is, uint32_t line);
/* The next combination in depth-first order; false: that was the last. */
bool image_next(struct image_source *is);

#endif
