/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_CUTS_H
#define TM_CHECKER_EXPLORE_CUTS_H
/*
 * At which flush, fence and landing of a store was power cut?
 *
 * Each flush, fence and landing that happens is looked at from when it could make a difference
 * until it no longer does:
 *
 *	a fence	  right before it, while what was flushed can still be lost
 *	a flush	  until its CPU's next fence, while the flushed lines can still be lost
 *	a landing right before it if it makes something durable, and while what landed can be lost
 *
 * If the explorer cut the power there, and looked at what that leaves, it was cut; else the best of
 * what else came of it is noted (enum cut_fate).
 */
#include <stdbool.h>
#include "checker/world/source_lines.h"
#include "checker/world/world.h"

enum cut_kind { CUT_FLUSH, CUT_FENCE, CUT_LANDING, CUT_KINDS };

enum cut_fate {
	CUT_DONE,    /* the power was cut */
	CUT_KNOWN,   /* that could leave what had been looked at before */
	CUT_BUDGET,  /* the budget of states, or this run's share of it, was used up */
	CUT_APART,   /* not in this part: booting, or a recovery that is not cut once more */
	CUT_NOTHING, /* it changes nothing that can survive */
	CUT_FATES
};

/* A place in the store's source, and what came of it. */
struct cut_place {
	uintptr_t pc; /* 0: not known */
	uint8_t kind; /* enum cut_kind */
	uint8_t code; /* of a landing: the number of the request's operation (core/rnic/opcode.h) */
	uint64_t fate[CUT_FATES]; /* how often */
};

struct cuts;
/* NULL without memory. `lines` stays the caller's. */
struct cuts *cuts_new(const struct source_lines *lines);
void cuts_free(struct cuts *cuts);
/* Watch these worlds, until they are closed. */
void cuts_watch(struct cuts *cuts, struct worlds *worlds);
/* A machine begins anew. `spent`: as the budget of states is used up, its power is not cut. */
void cuts_begin(struct cuts *cuts, unsigned machine, bool spent);
/* At this point of a machine the explorer did that. */
void cuts_point(struct cuts *cuts, const struct world *world, const struct choice_point *at,
		enum cut_fate fate);
/* All that has happened, once nothing is on any more. *n: how many; good until cuts_free(). */
const struct cut_place *cuts_places(struct cuts *cuts, unsigned *n);

#endif
