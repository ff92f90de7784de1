/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_EXAMINE_H
#define TM_CHECKER_LIVE_EXAMINE_H
/*
 * Judging what a power cut left of a live store.
 *
 * Each line that was in flight either reached the media or did not. One subset of the lines is what
 * happened (live_pm.h, pm_cut() with the same seed); other subsets could have happened. Each subset
 * is laid over a copy of the media, the image is booted in the sim world (reboot.h), and what its
 * keys read is judged against what the clients recorded (recorded_history.h).
 *
 * KEEP's durable lower bound: if a key reads the same value with none of the lines in flight and
 * with all of them, that value was durable and current before the cut. Otherwise the bound is the
 * state of the key at the start.
 *
 * OK is judged from the recordings alone: each operation that failed comes with what had been
 * injected until then. A recording of an older Tidemark does not say that, and OK is not judged.
 *
 * BUF compares keys with each other, and is not judged.
 */
#include <stdio.h>
#include "checker/live/cut.h"

#define EXAM_TEXT 640
#define EXAM_CUTS 4096 /* at most */

struct exam_options {
	uint64_t seed; /* of the subset that happened; 0: the media as they are */
	unsigned cuts; /* so many other subsets are tried, besides none of the lines and all: half
			* of them by seed, half of them one line alone or missing */
};

/* Which of the lines in flight reached the media. */
enum exam_kind {
	EXAM_SEED,   /* as cut_survives() says. number: the seed */
	EXAM_ALONE,  /* one line. number: its own */
	EXAM_MISSING /* all but one */
};
struct exam_subset {
	enum exam_kind kind;
	uint64_t number;
};

/* A broken contract, in what happened or in what could have happened. */
struct exam_break {
	unsigned keys;		   /* that break it; LIVE and FSCK: 1 */
	struct exam_subset subset; /* of the first one */
	char text[EXAM_TEXT];
};

struct exam_cell {
	bool judged;
	struct exam_break happened, possible; /* possible: of keys for which it has not happened */
	unsigned unsure;		      /* keys for which the search ran out of room */
};

struct exam_torn {
	unsigned whole, torn; /* values in the pool: all of their bytes, the first ones only */
	char text[EXAM_TEXT]; /* the first torn one */
};

struct exam {
	struct exam_cell cell[TM_CONTRACTS];
	uint32_t first, last; /* boots that were judged */
	unsigned keys, operations;
	unsigned left_out, trimmed; /* so many operations were left out, of so many keys */
	unsigned lines, survived;   /* in flight; of these, on the media in what happened */
	unsigned images;	    /* subsets that were tried */
	unsigned not_judged;	    /* keys */
	char why_not[EXAM_TEXT];    /* of the first of them */
	bool full;		    /* no room for the PUT that proves life */
	struct exam_torn torn;
	struct cut_start *shown; /* the states of the keys after what happened, sorted */
};

/* 0, -ENOMEM, or -EINVAL with *why. To be freed in any case. */
int examine(const struct cut *c, const struct exam_options *options, struct exam *out, char *why,
	    size_t n);
void exam_free(struct exam *e);
/* TM_BIT()s of the contracts that the store is expected to keep in the live world, where a NIC
 * acknowledges only what is visible. */
unsigned exam_watched(const struct tm_store *store);

/* The break that counts most: a watched one that happened, a watched one that could have, any that
 * happened, any. -1: none. */
int exam_worst(const struct cut *c, const struct exam *e, bool *happened);

/* The text of cut.h. 0 or -errno. */
int exam_print_start(FILE *out, const struct exam *e);

#endif
