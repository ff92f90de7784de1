/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAMPAIGN_BUDGET_H
#define TM_CHECKER_CAMPAIGN_BUDGET_H
/*
 * How much a campaign tries. `whole` is what expectations and the shares of known causes are
 * recorded with; the others are part of its runs of each workload, with as many fewer states. So
 * there is one set of tables for all of them: an expected break that a smaller budget does not
 * show is no surprise, and what counts runs that show something is scaled (budget_expected()).
 *
 * Fewer runs of everything, not everything of less: docs/performance.md says what was measured.
 */
#include <stdbool.h>
#include <stdint.h>

#define BUDGET_NAMES	    "quick usual whole"
#define BUDGET_WHOLE_RUNS   2000
#define BUDGET_WHOLE_STATES 20000

struct budget {
	const char *name;
	uint64_t runs, states; /* of each workload */
};

/* NULL: there is none of that name. */
const struct budget *budget_find(const char *name);
/* With which so much is tried; NULL: none. */
const struct budget *budget_of(uint64_t runs, uint64_t states);
extern const struct budget *const budget_usual, *const budget_whole;
/* Of `recorded` runs of `whole` that show something, this many are expected of a campaign with so
 * many runs of each workload; at least 1 of 1. */
uint64_t budget_expected(uint64_t recorded, uint64_t runs);

#endif
