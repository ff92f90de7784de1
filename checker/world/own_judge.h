/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_OWN_JUDGE_H
#define TM_CHECKER_WORLD_OWN_JUDGE_H
/*
 * Judging by what the store itself says: its model of its operations (LIN, DUR, BUF), and its judge
 * (OWN). Both are code of the store; each time they run they have a simulation of their own, in
 * which nothing else happens: their memory is gone afterwards, and if they crash, that is told.
 */
#include "checker/judge/contracts.h"
#include "checker/world/setup.h"

struct own_judge;

/* For histories with details. NULL: out of memory. */
struct own_judge *own_judge_new(const struct setup *s);
void own_judge_free(struct own_judge *j);
/* As judge_prepare(), with a judge of its own for each number of power failures, from which it
 * learns by the store's model. */
void own_judge_prepare(struct own_judge *j, struct judge *judge, const struct history *h);
/* As judge_recovered(). `want`: TM_BIT()s; of these OK, LIN, DUR, BUF and OWN are judged if the
 * store can say so, the others are left untouched. */
void own_judge_recovered(struct own_judge *j, struct judge *judge, const struct history *h,
			 unsigned want, struct verdict out[TM_CONTRACTS]);
/* What OWN's verdict was about, one line. */
const char *own_judge_why(const struct own_judge *j);

#endif
