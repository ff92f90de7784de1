/* SPDX-License-Identifier: BSD-3-Clause */
/* All groups of verbs programs: the one name that their object shows to the outside
 * (cmake/Verbs.cmake). */
#include "scenarios/verbs/programs.h"

extern const struct verbs_table verbs_table;
const struct verbs_table verbs_table = {
	.run = lab_run,
	.groups = {verbs_basic, verbs_rights, verbs_states, verbs_limits, NULL},
};
