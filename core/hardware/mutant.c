/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the machine's mutants. */
#include "core/hardware/mutant.h"

#define X(enumerator, name, part, what) [MUTANT_##enumerator] = {name, part, what, MUTANT_OF_MODEL},
#define Y(enumerator, name, part, what) \
	[MUTANT_##enumerator] = {name, part, what, MUTANT_OF_CHECKER},
#define Z(enumerator, name, part, what) \
	[MUTANT_##enumerator] = {name, part, what, MUTANT_OF_HARDWARE},
const struct mutant_info hardware_mutants[HARDWARE_MUTANTS] = {
	[MUTANT_NONE] = {"none", "", "", MUTANT_OF_MODEL},
	MODEL_MUTANTS(X) LENIENT_MUTANTS(Y) MACHINE_MUTANTS(Z)};
#undef X
#undef Y
#undef Z

#define X(enumerator, name, part, what) " " name
const char hardware_mutant_names[] = "none" MODEL_MUTANTS(X) LENIENT_MUTANTS(X) MACHINE_MUTANTS(X);
#undef X
