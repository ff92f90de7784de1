/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_TRACE_FINGERPRINT_H
#define TM_CHECKER_TRACE_FINGERPRINT_H
/*
 * What a shrunk case is about, so that two cases of one bug can be told from two bugs:
 * the store, the contract, and what has to happen, without whose key or which client's
 * which operation it was.
 */
#include "checker/explore/explore.h"

#define FINGERPRINT_PARTS 24 /* of more, the last are left out */
#define FINGERPRINT_PART  80

struct fingerprint {
	char store[32], variant[48];
	unsigned contract;
	bool cleans;  /* a log is cleaned; the shrinker found that it takes that */
	bool nothing; /* the GET that proves it found nothing; not compared */
	char part[FINGERPRINT_PARTS][FINGERPRINT_PART]; /* sorted, each once */
	unsigned parts;
};

/* Replays the case: `s` (finished) with `path` breaks `contract`. 0, -ENOMEM, or -EIO: the store
 * cannot
 * run. */
int fingerprint_find(struct setup *s, const struct deviations *path, unsigned contract,
		     struct fingerprint *out);
/* Is all of `known` in `c`, and is a log cleaned in both or neither? Then `c` is most likely a case
 * of it, with something added. */
bool fingerprint_contains(const struct fingerprint *c, const struct fingerprint *known);

#endif
