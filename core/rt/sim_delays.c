/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delays of tasks and events. Most are a time; two kinds end when all others rest, or when another
 * such delay begins (DELAY_QUIESCENCE, DELAY_SWITCH in choose.h).
 */
#include "core/rt/sim_state.h"

#define QUIESCENCE_NS \
	5000000 /* by then all others rest; far below a retransmission and a writer's timeout */

static void fire_delayed(struct sim *sim, void *arg)
{
	struct delayed *delayed = arg;
	assert(delayed < sim->delayed + sim->delays); /* of this run */
	assert(delayed->fn && !delayed->task);
	if (delayed->over)
		return;
	delayed->let_go = delayed->over = true;
	delayed->fn(sim, delayed->arg);
}

static void let_go(struct sim *sim, struct delayed *delayed)
{
	if (delayed->let_go)
		return;
	assert(!delayed->over);			/* it could not go on before */
	assert(!delayed->task != !delayed->fn); /* either a task or an event */
	delayed->let_go = true;
	if (!delayed->task)
		sim_push_event(sim, 0, sim->run.now, fire_delayed, delayed);
	else if (delayed->task->asleep && delayed->task->sleep == delayed->sleep)
		sim_make_ready(sim, delayed->task);
}

/* A record of the delay k; *due: when it ends at the latest. NULL: there is no room for one, and
 * the delay ends just then. */
static struct delayed *new_delayed(struct sim *sim, unsigned k, uint64_t *due)
{
	assert(k == DELAY_QUIESCENCE || k == DELAY_SWITCH);
	if (k == DELAY_SWITCH)
		for (unsigned i = 0; i < sim->delays; i++)
			let_go(sim, &sim->delayed[i]);
	*due = (sim->quiescent_at > sim->run.now ? sim->quiescent_at : sim->run.now) +
	       QUIESCENCE_NS;
	assert(*due > sim->run.now && *due > sim->quiescent_at); /* one after the other */
	sim->quiescent_at = *due;
	if (sim->delays == SIM_DELAYS)
		return NULL;
	struct delayed *delayed = &sim->delayed[sim->delays++];
	*delayed = (struct delayed){0};
	return delayed;
}

uint64_t sim_delay(struct sim *sim, uint64_t chain, unsigned k, uint64_t delay_ns, sim_fn *fn,
		   void *arg)
{
	uint64_t due = sim->run.now + delay_ns + (delay_is_timed(k) ? choice_delay_ns(k) : 0);
	struct delayed *delayed = delay_is_timed(k) ? NULL : new_delayed(sim, k, &due);
	assert(fn && due >= sim->run.now);
	assert(!k || !sim->scheduler); /* with one, nothing is delayed */
	if (k)
		sim_repeat_pending(sim, due);
	if (!delayed) {
		sim_push_event(sim, chain, due, fn, arg);
		return due;
	}
	delayed->fn = fn;
	delayed->arg = arg;
	sim_push_event(sim, chain, due, fire_delayed, delayed);
	return due;
}

/* The current task stands still. */
void sim_delay_task(struct sim *sim, unsigned k)
{
	struct task *task = sim->running;
	uint64_t due;
	assert(task && !task->asleep);
	assert(k && !sim->scheduler);
	if (delay_is_timed(k)) {
		sim_repeat_pending(sim, sim->run.now + choice_delay_ns(k));
		sim_sleep(sim, choice_delay_ns(k));
		return;
	}
	struct delayed *delayed = new_delayed(sim, k, &due);
	sim_repeat_pending(sim, due);
	if (delayed) {
		delayed->task = task;
		delayed->sleep = task->sleep;
	}
	sim_sleep(sim, due - sim->run.now);
	assert(!delayed || delayed->task == task);
	if (delayed)
		delayed->let_go = delayed->over = true;
}

bool sim_let_go(struct sim *sim)
{
	assert(sim->delays <= SIM_DELAYS);
	for (unsigned i = 0; i < sim->delays; i++) {
		if (sim->delayed[i].let_go)
			continue;
		let_go(sim, &sim->delayed[i]);
		assert(sim->delayed[i].let_go); /* or its caller would ask for it without end */
		return true;
	}
	return false;
}

uint32_t sim_delayed(const struct sim *sim, bool *any)
{
	_Static_assert(SIM_DELAYS <= 32, "each has its bit");
	uint32_t delayed = 0;
	*any = false;
	for (unsigned i = 0; i < sim->delays; i++) {
		delayed |= (uint32_t)!sim->delayed[i].over << i;
		*any |= !sim->delayed[i].let_go;
	}
	return delayed;
}
