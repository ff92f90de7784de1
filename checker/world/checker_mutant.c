/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the checker's mutants, and all mutants in one order. */
#include "checker/world/checker_mutant.h"
#include <stddef.h>

#define X(enumerator, name, part, what) \
	[CHECKER_##enumerator] = {name, part, what, MUTANT_OF_CHECKER},
#define Y(enumerator, name, part, what) [CHECKER_##enumerator] = {name, part, what, MUTANT_NOTICED},
const struct mutant_info checker_mutants[CHECKER_MUTANT_COUNT] = {
	[CHECKER_MUTANT_NONE] = {"none", "", "", MUTANT_OF_CHECKER},
	CHECKER_MUTANTS(X) NOTICED_MUTANTS(Y)};
#undef X
#undef Y

#define X(enumerator, name, part, what) " " name
const char mutant_names[] = "none" MODEL_MUTANTS(X) LENIENT_MUTANTS(X) CHECKER_MUTANTS(X)
	NOTICED_MUTANTS(X) MACHINE_MUTANTS(X);
#undef X

const struct mutant_info *mutant_nth(unsigned i)
{
	for (unsigned effect = MUTANT_OF_MODEL; effect <= MUTANT_OF_HARDWARE; effect++) {
		for (unsigned m = MUTANT_NONE + 1; m < HARDWARE_MUTANTS; m++)
			if (hardware_mutants[m].effect == effect && !i--)
				return &hardware_mutants[m];
		for (unsigned m = CHECKER_MUTANT_NONE + 1; m < CHECKER_MUTANT_COUNT; m++)
			if (checker_mutants[m].effect == effect && !i--)
				return &checker_mutants[m];
	}
	return NULL;
}
