/* SPDX-License-Identifier: BSD-3-Clause */
/* See budget.h. */
#include "checker/campaign/budget.h"
#include <string.h>

/* The early runs show more than their share: they have a quarter of the states for themselves, and
 * meet more that is new. So a budget gets its part, and a fifth of the rest. */
#define EARLY_SHARE 5

static const struct budget budgets[] = {
	{"quick", 50, 500},
	{"usual", 450, 4500},
	{"whole", BUDGET_WHOLE_RUNS, BUDGET_WHOLE_STATES},
};
#define BUDGETS (sizeof(budgets) / sizeof(budgets[0]))

const struct budget *const budget_usual = &budgets[1], *const budget_whole = &budgets[2];

const struct budget *budget_find(const char *name)
{
	for (unsigned i = 0; i < BUDGETS; i++)
		if (!strcmp(budgets[i].name, name))
			return &budgets[i];
	return NULL;
}

const struct budget *budget_of(uint64_t runs, uint64_t states)
{
	for (unsigned i = 0; i < BUDGETS; i++)
		if (budgets[i].runs == runs && budgets[i].states == states)
			return &budgets[i];
	return NULL;
}

uint64_t budget_expected(uint64_t recorded, uint64_t runs)
{
	const uint64_t whole = budget_whole->runs;
	if (runs >= whole)
		return recorded;
	const uint64_t parts = runs * (EARLY_SHARE - 1) + whole;
	return (recorded * parts + whole * EARLY_SHARE - 1) / (whole * EARLY_SHARE);
}
