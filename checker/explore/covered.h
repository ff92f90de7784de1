/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_COVERED_H
#define TM_CHECKER_EXPLORE_COVERED_H
/*
 * What a campaign has covered of its stores: what of their code ran, by phase
 * (checker/world/coverage.h), and where power was cut (cuts.h). The processes of a campaign add to
 * it, in memory that they share, unit by unit; sums do not depend on which one did what.
 */
#include "checker/explore/cuts.h"
#include "checker/world/coverage.h"

#define COVERED_STORES 64
#define COVERED_PLACES 4096 /* of one store */

struct covered_shared; /* the memory that the processes share */

struct covered_store {
	const struct tm_store *store;
	struct source_lines lines;
	struct coverage_counts count; /* units in which it ran; shared */
	struct cut_place *place;      /* shared */
	unsigned *places;
};

struct covered {
	struct covered_store store[COVERED_STORES];
	unsigned stores;
	struct covered_shared *shared;
	size_t bytes;
};

/* For these stores, each once. 0; -ENOMEM; -ENOSYS: not on this machine; -ENOENT: that store, the
 * last one in *c, has no debug information. covered_close() in any case. */
int covered_open(struct covered *c, const struct tm_store *const *store, unsigned stores);
void covered_close(struct covered *c);
/* A unit of this store begins. 0, or -errno as coverage_start(). */
int covered_begin(struct covered *c, const struct tm_store *store, struct cuts **cuts);
/* It ends. -ENOSPC: it has more places than COVERED_PLACES. */
int covered_end(struct covered *c, const struct tm_store *store, struct cuts *cuts);

#endif
