/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAMPAIGN_COVERED_H
#define TM_CHECKER_CAMPAIGN_COVERED_H
/*
 * What a campaign has covered of its stores: what of their code ran, by phase
 * (core/pmem/coverage.h), and where power was cut (cuts.h). Each unit covers something by itself,
 * which is a part of its result; a campaign's is the sum.
 */
#include "checker/explore/cuts.h"
#include "core/pmem/coverage.h"

#define COVERED_STORES 64
#define COVERED_PLACES 4096 /* of one store */
#define COVERED_BLOCKS 16384

#define COVERED_UNIT_PLACES 256

/* What one unit has covered of its store, without addresses: the same in every process. */
struct covered_unit {
	uint8_t ran[COVERED_BLOCKS]; /* as struct coverage has it, of each block */
	uint32_t places;
	struct covered_place {
		int64_t off; /* of the call, from the store's first block; INT64_MIN: not known */
		uint8_t kind, code; /* as struct cut_place has them */
		uint64_t fate[CUT_FATES];
	} place[COVERED_UNIT_PLACES];
};

struct covered_store {
	const struct tm_store *store;
	struct source_lines lines;
	uint32_t (*count)[COVERAGE_PHASES]; /* of each block: in how many units it ran */
	struct cut_place *place;
	unsigned places;
	uint8_t *ran; /* of the unit that is on */
};

struct covered {
	struct covered_store store[COVERED_STORES];
	unsigned stores;
};

/* For these stores, each once. 0; -ENOMEM; about the last store in *c: -ENOENT: it has no debug
 * information; -ENOEXEC: it was not compiled for coverage; -EFBIG: it has more code than there is
 * room for. covered_close() in any case. */
int covered_open(struct covered *c, const struct tm_store *const *store, unsigned stores);
void covered_close(struct covered *c);
/* A unit of this store begins. 0 or -ENOMEM. */
int covered_begin(const struct covered *c, const struct tm_store *store, struct cuts **cuts);
/* It ends; *out is zeroed. -ENOSPC: it has more places than COVERED_UNIT_PLACES. */
int covered_end(const struct covered *c, const struct tm_store *store, struct cuts *cuts,
		struct covered_unit *out);
/* What a unit of this store has covered counts. -ENOSPC: there are more than COVERED_PLACES. */
int covered_add(struct covered *c, const struct tm_store *store, const struct covered_unit *unit);

#endif
