/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_SURPRISE_H
#define TM_CHECKER_JUDGE_SURPRISE_H
/*
 * When is it a surprise that a contract breaks? The rule, for every campaign: what the store's
 * expectations say of the contract under this configuration; where they say nothing, a promise of
 * the store. The callers differ in what they know of the configuration.
 */
#include "checker/judge/expect.h"

/* A cell of the matrix. */
struct surprise_cell {
	const struct tm_store *store;
	const char *variant, *config;
	unsigned contract;
	bool broken;
	bool strange; /* for a cause that is not known (checker/judge/known.h), or far too often */
	bool whole; /* the default campaign in full: a break that is expected must be found, too */
};

/* What is expected of it, whatever it is; NULL: nothing. Expectations are of the variant "default",
 * of variants that are shapes (tm_store.shapes), and of those that a row names. */
const struct expectation *surprise_expected(const struct surprise_cell *cell);
/* Is the cell not as expected? *why: the expectation's sentence; NULL: there is none. */
bool surprise_in_cell(const struct surprise_cell *cell, const char **why);
/* TM_BIT()s of the contracts whose breaking is a surprise under any hardware. `visible`: data is
 * visible when it is acknowledged. */
unsigned surprise_at_any_hardware(const struct tm_store *store, bool visible);

#endif
