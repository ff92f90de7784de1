/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_VERBS_PROGRAMS_H
#define TM_SCENARIOS_VERBS_PROGRAMS_H
/* The groups of verbs programs, a file each. */
#include "scenarios/verbs/lab.h"

extern const struct verbs_program verbs_basic[], verbs_ready[], verbs_rights[], verbs_states[],
	verbs_limits[], verbs_place[], verbs_later[];

/* A program with either API for posting requests. */
#define BOTH_APIS(name, run, what)           \
	{name, what, run, 0},                \
	{                                    \
		name "/wr", what, run, BY_WR \
	}

#endif
