/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_SIM_LIBC_H
#define TM_RT_SIM_LIBC_H
/* The scheduler's side of libc.c: what the replaced libc functions need of a simulation. */
#include "core/rt/sim.h"

struct block;
struct block **sim_free_lists(struct sim *sim); /* one per size class, empty after a reset */
void sim_set_fault(struct sim *sim, uintptr_t pc, const char *what);

#endif
