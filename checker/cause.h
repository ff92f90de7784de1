/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CAUSE_H
#define TM_CAUSE_H
/*
 * What a shrunk case is about, so that two cases of one bug can be told from two bugs:
 * the store, the contract, and what has to happen, without whose key or which client's
 * which operation it was.
 */
#include "checker/explore.h"

#define CAUSE_PARTS 24 /* of more, the last are left out */
#define CAUSE_PART  80

struct cause {
	char store[32], variant[48];
	unsigned contract;
	char part[CAUSE_PARTS][CAUSE_PART]; /* sorted, each once */
	unsigned parts;
};

/* Replays the case: `s` (finished) with `path` breaks `contract`. 0, -ENOMEM, or -EIO: the store cannot run.
 */
int cause_find(struct setup *s, const struct deviations *path, unsigned contract, struct cause *out);
/* Is all of `known` in `c`? Then `c` is most likely a case of it, with something added. */
bool cause_contains(const struct cause *c, const struct cause *known);

#endif
