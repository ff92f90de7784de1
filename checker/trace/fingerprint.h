/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_TRACE_FINGERPRINT_H
#define TM_CHECKER_TRACE_FINGERPRINT_H
/*
 * The fingerprint of a minimized failure, so that two failures of one bug can be told from two
 * bugs: the store, the contract, and what has to happen, but not on which key, in which client, or
 * in which of its operations.
 */
#include "checker/explore/explore.h"

#define FINGERPRINT_PARTS 24 /* beyond, the last ones are left out */
#define FINGERPRINT_PART  80

struct fingerprint {
	char store[32], variant[48];
	unsigned contract;
	bool cleans;  /* a log is cleaned, and the contract does not break without that */
	bool nothing; /* the GET that shows the failure found nothing; not compared */
	char part[FINGERPRINT_PARTS][FINGERPRINT_PART]; /* sorted, each once */
	unsigned parts;
};

/* Replays the failure: `s` (finished) with `path` breaks `contract`. 0, -ENOMEM, or -EIO: the store
 * cannot run. */
int fingerprint_find(struct setup *s, const struct deviations *path, unsigned contract,
		     struct fingerprint *out);
/* Is all of `known` in `c`, and is a log cleaned in both or neither? Then `c` most likely is the
 * same failure with something added. */
bool fingerprint_contains(const struct fingerprint *c, const struct fingerprint *known);

#endif
