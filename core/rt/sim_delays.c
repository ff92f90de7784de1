/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delays of tasks and events. Most are a time; two kinds end when all others rest, or when another
 * such delay begins (HOLD_REST, HOLD_SWITCH in choose.h).
 */
#include "core/rt/sim_state.h"

#define REST_NS \
	5000000 /* by then all others rest; far below a retransmission and a writer's timeout */

static void fire_held(struct sim *sim, void *arg)
{
	struct held *held = arg;
	if (held->over)
		return;
	held->let_go = held->over = true;
	held->fn(sim, held->arg);
}

static void let_go(struct sim *sim, struct held *held)
{
	if (held->let_go)
		return;
	held->let_go = true;
	if (!held->task)
		sim_push_event(sim, 0, sim->now, fire_held, held, 0);
	else if (held->task->asleep && held->task->sleep == held->sleep)
		sim_make_ready(sim, held->task);
}

/* A record of the hold k; *due: when it ends at the latest. NULL: there is no room for one, and the
 * hold ends just then. */
static struct held *new_held(struct sim *sim, unsigned k, uint64_t *due)
{
	if (k == HOLD_SWITCH)
		for (unsigned i = 0; i < sim->holds; i++)
			let_go(sim, &sim->held[i]);
	*due = (sim->rest_at > sim->now ? sim->rest_at : sim->now) + REST_NS;
	sim->rest_at = *due;
	if (sim->holds == SIM_HOLDS)
		return NULL;
	struct held *held = &sim->held[sim->holds++];
	*held = (struct held){0};
	return held;
}

uint64_t sim_hold(struct sim *sim, uint64_t chain, unsigned k, uint64_t delay_ns, sim_fn *fn,
		  void *arg)
{
	uint64_t due = sim->now + delay_ns + (k < HOLD_REST ? hold_ns(k) : 0);
	struct held *held = k < HOLD_REST ? NULL : new_held(sim, k, &due);
	if (!held) {
		sim_push_event(sim, chain, due, fn, arg, 0);
		return due;
	}
	held->fn = fn;
	held->arg = arg;
	sim_push_event(sim, chain, due, fire_held, held, 0);
	return due;
}

/* The current task stands still. */
void sim_hold_task(struct sim *sim, unsigned k)
{
	struct task *task = sim->running;
	uint64_t due;
	if (k < HOLD_REST) {
		sim_sleep(sim, hold_ns(k));
		return;
	}
	struct held *held = new_held(sim, k, &due);
	if (held) {
		held->task = task;
		held->sleep = task->sleep;
	}
	sim_sleep(sim, due - sim->now);
	if (held)
		held->let_go = held->over = true;
}

bool sim_let_go(struct sim *sim)
{
	for (unsigned i = 0; i < sim->holds; i++) {
		if (sim->held[i].let_go)
			continue;
		let_go(sim, &sim->held[i]);
		return true;
	}
	return false;
}

uint32_t sim_held(const struct sim *sim, bool *any)
{
	uint32_t held = 0;
	*any = false;
	for (unsigned i = 0; i < sim->holds; i++) {
		held |= (uint32_t)!sim->held[i].over << i;
		*any |= !sim->held[i].let_go;
	}
	return held;
}
