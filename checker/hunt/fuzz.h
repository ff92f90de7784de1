/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_FUZZ_H
#define TM_CHECKER_HUNT_FUZZ_H
/*
 * Fuzzing of one store in one configuration. An input is a string of bytes: the first
 * WORKLOAD_BYTES are the workload (scenarios/workload/bytes.c), the rest are records that say
 * what goes differently (faultinject/bytes.h). One of more than FUZZ_SHORT_MAX bytes is of the
 * longer form: all its records, then GOING_BYTES, which clients come and go in the workload, then
 * LIFE_BYTES, what clients do with a store that has recovered. A short input means what it meant
 * before there was the longer form. All power failures of each run, and all that they can leave,
 * are explored. fuzz.c opens with how inputs are made.
 *
 *	fuzz_open(&f, &base, &options);
 *	fuzz_seed(&f, ...);			from an earlier session
 *	while (fuzz_more(&f) && !fuzz_round(&f))
 *		... f.corpus has grown; f.broken are the new cases ...
 *	fuzz_close(&f);
 */
#include "checker/campaign/campaign.h"
#include "faultinject/bytes.h"

#define FUZZ_SHORT_MAX (WORKLOAD_BYTES + RECORD_BYTES * MAX_RECORDS)
#define FUZZ_INPUT_MAX (FUZZ_SHORT_MAX + GOING_BYTES + LIFE_BYTES)

struct fuzz_input {
	uint8_t n;		       /* bytes */
	uint8_t bytes[FUZZ_INPUT_MAX]; /* of the longer form: zeros after the first n */
};

/* An input that breaks a contract of those that are looked for. */
struct fuzz_break {
	unsigned contract;
	uint64_t sort; /* of contract, deviations and lost lines: equal ones have most likely one
			  cause */
	struct fuzz_input input;
};

struct fuzz_options {
	uint64_t seed;
	uint64_t runs; /* at most; the results then depend on nothing but the seed and the seeds'
			  inputs */
	struct driver_how how; /* bounds: until then items are begun; results are not kept */
	unsigned wanted;       /* TM_BIT()s of contracts whose breaks are reported */
};

struct fuzz {
	const struct setup *base; /* no workload; stays the caller's */
	struct fuzz_options options;
	struct fuzz_input *corpus; /* only grows */
	unsigned inputs;
	uint64_t features;
	struct explore_counts counts;
	uint64_t broken[TM_CONTRACTS]; /* states */
	struct fuzz_break *found;      /* by the last round */
	unsigned founds;
	char why[WORLDS_WHY]; /* after -EIO and -ENOTRECOVERABLE */
	/* private */
	struct fuzz_input *seed; /* inputs that have not been run yet */
	unsigned seeds, seeds_done;
	size_t seeds_room, corpus_room, founds_room;
	struct visited *known_features, *known_sorts;
	struct fuzz_shared *shared;
	struct fuzz_item *item;
	uint64_t items;
};

/* 0, -ENOMEM, or -EINVAL: the variant or knobs do not fit. */
int fuzz_open(struct fuzz *f, const struct setup *base, const struct fuzz_options *options);
void fuzz_close(struct fuzz *f);
/* An input to start from; what is longer than FUZZ_INPUT_MAX is cut. 0 or -ENOMEM. */
int fuzz_seed(struct fuzz *f, const uint8_t *bytes, size_t n);
/* Is there time, or a run, left, and was it not told to stop? */
bool fuzz_more(const struct fuzz *f);
/* Some thousand runs. 0; -ENOMEM; -EIO: the store cannot run, or -ENOTRECOVERABLE: explore_run(),
 * both with f->why; -ECHILD: a process died. */
int fuzz_round(struct fuzz *f);

/* The setup of an input, finished; to be freed in any case. As setup_like(). */
int fuzz_setup(const struct setup *base, const struct fuzz_input *input, struct setup *s);
/* Start a run of the input; see bytes_start(). */
void fuzz_start(struct byte_source *b, const struct fuzz_input *input, bool power);
/* Have they the same workload? */
bool fuzz_same_workload(const struct fuzz_input *a, const struct fuzz_input *b);
/* Run a case that breaks a contract again, as campaign_again(). */
int fuzz_again(const struct fuzz *f, const struct fuzz_break *broken, struct broken_run *out);
/* The same, and make it as small as can be. */
int fuzz_shrink(const struct fuzz *f, const struct fuzz_break *broken, struct broken_run *out);

#endif
