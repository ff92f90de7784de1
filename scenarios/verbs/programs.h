/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_VERBS_PROGRAMS_H
#define TM_SCENARIOS_VERBS_PROGRAMS_H
/* The groups of verbs programs, a file each. */
#include "scenarios/verbs/lab.h"

extern const struct verbs_program verbs_basic[], verbs_rights[], verbs_states[], verbs_limits[];

#endif
