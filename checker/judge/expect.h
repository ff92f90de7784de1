/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_EXPECT_H
#define TM_CHECKER_JUDGE_EXPECT_H
/* What is expected of each cell of the default campaign: scenarios/expected.txt, compiled in. */
#include <stdbool.h>
#include "core/tidemark.h"

struct expectation {
	const char *store, *config;
	int contract;
	bool broken;
	bool open; /* "may-break": it does break, but the campaign's budget does not find it every
		      time */
	const char *why; /* one sentence */
};

/* NULL: nothing is said of this cell. The table is read at the first call. */
const struct expectation *expect_find(const char *store, const char *config, int contract);
/* TM_BIT()s of the contracts whose breaking is news under a configuration of a store or of one of
 * its variants: what the store breaks by design, or does not promise, its variants may break,
 * too. */
unsigned expect_watched(const struct tm_store *store, const char *config);
/* Is the contract expected to hold in every configuration of the store that the table names? */
bool expect_holds(const char *store, int contract);
/* The file has a mistake: its line number, and what; 0: none. */
unsigned expect_mistake(const char **what);

#endif
