/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scheduler in the clock's place: it picks what comes next among the ready tasks and each chain's
 * oldest event (struct scheduler in choose.h).
 */
#include "core/rt/sim_state.h"

#define SIM_TURNS 320 /* tasks and chains among which a scheduler chooses */

void sim_set_scheduler(struct sim *sim, struct scheduler *scheduler)
{
	assert(!sim->delays);		       /* with a scheduler no clock ends them */
	assert(!scheduler || !sim->scheduler); /* until a reset */
	sim->scheduler = scheduler;
	sim->run.scheduled = scheduler;
}

bool sim_picks(const struct sim *sim)
{
	return sim->scheduler;
}

void sim_turn(struct sim *sim)
{
	struct task *task = sim->running;
	assert(task && sim->scheduler);
	task->asleep = true;
	sim_make_ready(sim, task);
	assert(!task->asleep || task->dead);
	sim_leave(sim);
}

/* One number for the nth of several things. */
static uint64_t thing_number(const void *thing, uint64_t nth)
{
	return (uintptr_t)thing ^ nth * 0x9e3779b97f4a7c15u;
}

void sim_touch_state(struct sim *sim, enum touch what, const void *at, size_t len)
{
	if (sim->scheduler)
		sim->scheduler->touched(sim->scheduler, what, (uintptr_t)at, len);
}

void sim_gives(struct sim *sim, const void *thing, uint64_t nth)
{
	if (sim->scheduler)
		sim->scheduler->gives(sim->scheduler, thing_number(thing, nth));
}

void sim_takes(struct sim *sim, const void *thing, uint64_t nth)
{
	if (sim->scheduler)
		sim->scheduler->takes(sim->scheduler, thing_number(thing, nth));
}

/* What could come next: the ready tasks, then each chain's oldest event, in the order in which they
 * were scheduled. */
static unsigned list_turns(const struct sim *sim, uint64_t chain[SIM_TURNS],
			   unsigned event[SIM_TURNS])
{
	unsigned n = 0;
	_Static_assert(SIM_TASKS <= SIM_TURNS, "each task can be ready");
	for (unsigned i = 0; i < sim->ready_len; i++)
		chain[n++] = chain_name(ready_task(sim, i)->actor.name_hash, CHAIN_TASK);
	for (unsigned i = 0; i < sim->event_count; i++) {
		const struct event *e = &sim->event[i];
		unsigned k = sim->ready_len;
		while (k < n && chain[k] != e->chain)
			k++;
		assert(k < SIM_TURNS);
		if (k == n)
			event[n++] = i;
		else if (e->seq < sim->event[event[k]].seq)
			event[k] = i;
		chain[k] = e->chain;
	}
	return n;
}

/* The chain that goes on is known. */
static void run_known(struct sim *sim, uint64_t chain)
{
	unsigned oldest = sim->event_count;
	for (unsigned i = 0; i < sim->ready_len && chain_kind(chain) == CHAIN_TASK; i++) {
		const struct task *task = ready_task(sim, i);
		if (chain_name(task->actor.name_hash, CHAIN_TASK) == chain) {
			sim_run_task(sim, i);
			return;
		}
	}
	assert(chain_kind(chain) != CHAIN_TASK); /* a task that goes on is ready */
	for (unsigned i = 0; i < sim->event_count; i++)
		if (sim->event[i].chain == chain &&
		    (oldest == sim->event_count || sim->event[i].seq < sim->event[oldest].seq))
			oldest = i;
	assert(oldest < sim->event_count); /* the same program does the same */
	sim_run_event(sim, sim_take_event(sim, oldest));
}

void sim_run_picked(struct sim *sim)
{
	uint64_t chain[SIM_TURNS];
	assert(!sim->running && !sim->stopping);
	if (sim->scheduler->knows(sim->scheduler, chain)) {
		run_known(sim, chain[0]);
		return;
	}
	unsigned event[SIM_TURNS], n = list_turns(sim, chain, event);
	if (!n) {
		sim_stop(sim, SIM_IDLE);
		return;
	}
	unsigned k = sim->scheduler->pick(sim->scheduler, chain, n);
	if (sim->stopping)
		return;
	assert(k < n);
	if (k < sim->ready_len)
		sim_run_task(sim, k);
	else
		sim_run_event(sim, sim_take_event(sim, event[k]));
}
