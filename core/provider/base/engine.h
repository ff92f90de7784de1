/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_ENGINE_H
#define TM_PROVIDER_BASE_ENGINE_H
/*
 * The ground of the soft RNIC in a process of the provider (core/rnic/ground.h): the system's
 * clock, an allocator that never gives back, and timers.
 *
 * What is due is run by whichever thread drives the NIC (nic.h). Events less than ENGINE_SOON_NS
 * ahead, which is a card's own latencies, are due at once, in order. There is no explorer: nothing
 * is chosen, traced or counted.
 *
 * One engine a process; all calls under the NIC's lock.
 */
#include "core/rnic/ground.h"

#define ENGINE_SOON_NS 2000

struct engine;

/* NULL: out of memory. */
struct engine *engine_new(void);
/* As long as the engine lives. */
const struct rnic_ground *engine_ground(const struct engine *engine);
/* Read the system's clock, unless that was done a moment ago. */
void engine_tick(struct engine *engine);
/* The time of the last tick or of what has been run since, ns. */
uint64_t engine_now(const struct engine *engine);
/* Call fn(arg) after delay_ns. */
void engine_later(struct engine *engine, uint64_t delay_ns, rnic_event_fn *fn, void *arg);
/* Run what is due soon, and so at once. Was there anything? */
bool engine_run_soon(struct engine *engine);
/* Run what is due. Was there anything? */
bool engine_run(struct engine *engine);
/* When something is due next, ns of engine_now(); UINT64_MAX: nothing. */
uint64_t engine_next(const struct engine *engine);
/* The ground's yield(): let other threads have the NIC's lock, and take it again. */
void engine_set_yield(struct engine *engine, void (*fn)(void));

#endif
