/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIBC_PROCESS_H
#define TM_LIBC_PROCESS_H
/* What libc keeps for a process of a host, in the simulation's memory. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include "core/rt/sim.h"

struct process {
	unsigned life; /* of which process it is */
	struct random_data random;
	char random_state[128]; /* as large as rand()'s */
	struct drand48_data real;
	uint64_t entropy; /* how many words of it have been taken */
	const char *pool_error;
};

/* The process of the current task's host. */
struct process *process(void);

#endif
