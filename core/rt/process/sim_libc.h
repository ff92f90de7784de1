/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_PROCESS_SIM_LIBC_H
#define TM_RT_PROCESS_SIM_LIBC_H
/* The scheduler's side of libc.c: what the replaced libc functions need of a simulation. */
#include "core/rt/sim.h"

struct block;
#define SIM_FREE_LISTS 64
struct block **sim_free_lists(struct sim *sim); /* one per size class, empty after a reset */
void sim_set_fault(struct sim *sim, uintptr_t pc, const char *what);
/* What libc keeps for the current task's process; NULL at first. */
void **sim_process(struct sim *sim);
/* A number of that process among all of its host's: how often the machine has booted, and which
 * process since then it is. */
struct sim_process_number {
	unsigned boot, life;
};
struct sim_process_number sim_process_number(const struct sim *sim);
/* When the machine has booted: seconds since 1970. CLOCK_REALTIME goes on from there,
 * CLOCK_MONOTONIC begins at 0. */
uint64_t sim_epoch(const struct sim *sim);

#endif
