/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_ENGINE_H
#define TM_PROVIDER_BASE_ENGINE_H
/*
 * The soft RNIC in real time: the same core/rnic as in the sim world, on other ground.
 *
 * core/rnic asks its simulation for the time, for memory, and to be called later. engine.c
 * answers these calls of core/rt/sim.h in a process of the live world: time is the system's,
 * what is due is run by whoever drives the NIC (nic.h), nothing is chosen, told or counted. Events
 * less than ENGINE_SOON_NS ahead, a card's own latencies, are due at once, in order.
 *
 * One engine a process; all calls under the NIC's lock.
 */
#include "core/rt/sim.h"

#define ENGINE_SOON_NS 2000

/* NULL: out of memory. */
struct sim *engine_new(void);
/* Take the time anew, or leave it if that was a moment ago. */
void engine_tick(struct sim *sim);
/* Run what is due soon, and so at once. Was there anything? */
bool engine_run_soon(struct sim *sim);
/* Run what is due. Was there anything? */
bool engine_run(struct sim *sim);
/* When something is due next, ns of sim_now(); UINT64_MAX: nothing. */
uint64_t engine_next(const struct sim *sim);
/* How sim_yield() lets others in, and takes its turn again. */
void engine_set_yield(struct sim *sim, void (*fn)(void));

#endif
