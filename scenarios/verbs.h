/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_VERBS_H
#define TM_SCENARIOS_VERBS_H
/*
 * The verbs programs (scenarios/verbs/) in the two worlds. docs/nic/reference.md is the manual.
 */
#include "scenarios/verbs/lab.h"

/* One object, linked twice: its verbs are the soft RNIC's, the system's. */
extern const struct verbs_table verbs_sim, verbs_live;

/* Where lines go to. */
struct verbs_out {
	void (*line)(void *arg, const char *text);
	void *arg;
};

/* Run a program of verbs_sim on the soft RNIC. 0; -ETIME: it does not end; -EFAULT: it crashed,
 * `why` (of `size` bytes) says how. */
int verbs_run_sim(const struct verbs_program *program, const struct verbs_out *out, char *why,
		  size_t size);
/* Run one of verbs_live on a device of the system. `device` NULL: the first. 0 or -errno; -ENODEV:
 * there is no such device. */
int verbs_run_live(const struct verbs_program *program, const char *device,
		   const struct verbs_out *out);

#endif
