/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps a simulation at a moment at which no task runs, and lets it go on from there again. All
 * that a run has is in its struct sim, its queue of events, its arena, and the stacks of its tasks,
 * which are kept from where each left off. The stacks and the arena's chunks belong to the
 * simulation for as long as it lives, so that they are where they were.
 */
#include "core/rt/asan.h"
#include "core/rt/sim_state.h"

/* The part of struct sim that is kept as it is. */
#define KEPT offsetof(struct sim, source)

void sim_set_at_rest(struct sim *sim, void (*at_rest)(void *), void *arg)
{
	sim->at_rest = at_rest;
	sim->rest_arg = arg;
}

bool sim_has_snapshot(const struct sim *sim)
{
	return !TM_ASAN && !sim->scheduler && !sim->tracer && !sim->repeat.watching;
}

/* The stack of a task that does not run: from where it left off. */
static size_t stack_used(const struct task *task)
{
	const uint8_t *end = (const uint8_t *)task->fiber.stack + task->fiber.stack_bytes;
	const uint8_t *from = task->fiber.context;
	assert(from >= (const uint8_t *)task->fiber.stack && from < end);
	return (size_t)(end - from);
}

/* All but what snapshot and simulation have in forms of their own. */
static void exchange(struct sim *sim, struct snapshot *s)
{
	const unsigned hosts = sim->hosts;
	snapshot_exchange(s, sim, KEPT);
	snapshot_exchange(s, sim->host, sim->hosts * sizeof(sim->host[0]));
	if (hosts > sim->hosts)
		memset(&sim->host[sim->hosts], 0, (hosts - sim->hosts) * sizeof(sim->host[0]));
	assert(sim->event_count <= sim->event_room); /* there were so many before */
	snapshot_exchange(s, sim->event, sim->event_count * sizeof(*sim->event));
	const unsigned few = sim->tasks < FEW_TASKS ? sim->tasks : FEW_TASKS;
	snapshot_exchange(s, sim->task, few * sizeof(*sim->task));
	snapshot_exchange(s, sim->more, (sim->tasks - few) * sizeof(*sim->more));
	for (unsigned i = 0; i < sim->tasks; i++)
		if (task_at(sim, i)->used)
			snapshot_exchange(s, task_at(sim, i)->fiber.context,
					  stack_used(task_at(sim, i)));
	arena_exchange(&sim->arena, s);
}

void sim_snapshot(struct sim *sim, struct snapshot *s)
{
	uint64_t events = sim->events - sim->began;
	bool asked = sim->source;
	assert(!sim->running && !sim->stopping && sim_has_snapshot(sim));
	sim_save_statics(sim);
	SNAPSHOT_EXCHANGE(s, asked);
	SNAPSHOT_EXCHANGE(s, events);
	exchange(sim, s);
}

void sim_resume(struct sim *sim, struct snapshot *s, struct source *source)
{
	uint64_t events = 0;
	bool asked = false;
	assert(!sim->running && sim_of_thread != sim);
	SNAPSHOT_EXCHANGE(s, asked);
	SNAPSHOT_EXCHANGE(s, events);
	sim_forget_statics(sim); /* none of the copies is live */
	for (unsigned i = 0; i < sim->tasks; i++)
		task_at(sim, i)->used = false;
	exchange(sim, s);
	sim->source = asked ? source : NULL;
	sim->began = sim->events;
	sim->events += events;
	sim->at_rest = NULL;
}
