/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event queue: an array ordered by (due, order of scheduling), the first event last. Most new
 * events are due soon, so few others have to move; taking the first one moves none.
 */
#include <errno.h>
#include "core/rt/sim_state.h"

void sim_push_event(struct sim *sim, uint64_t chain, uint64_t due, sim_fn *fn, void *arg)
{
	unsigned i = sim->event_count;
	if (i == sim->event_room)
		sim->event = array_grow(sim->event, &sim->event_room, sizeof(*sim->event));
	sim->event_count++;
	if (sim->scheduler) /* it looks for itself, and the order of scheduling is kept */
		sim->scheduler->enables(sim->scheduler, chain);
	else /* a new event is the last of those due at its time */
		for (; i && sim->event[i - 1].due <= due; i--)
			sim->event[i] = sim->event[i - 1];
	sim->event[i] = (struct event){
		.due = due, .chain = chain, .seq = sim->seq++, .fn = fn, .arg = arg};
	assert(due >= sim->run.now); /* nothing happens in the past */
	assert(fn || ((struct task *)arg)->asleep);
	assert(sim->event_count <= sim->event_room);
	assert(sim->scheduler || !i || sim->event[i - 1].due > due);
}

void sim_take_wake_up(struct sim *sim, struct task *task)
{
	unsigned i = sim->event_count;
	assert(task->timed && !sim->scheduler);
	do
		assert(i);
	while (sim->event[--i].fn || sim->event[i].arg != task);
	memmove(&sim->event[i], &sim->event[i + 1], (--sim->event_count - i) * sizeof(*sim->event));
	task->timed = false;
}

void sim_at(struct sim *sim, uint64_t delay_ns, sim_fn *fn, void *arg)
{
	sim_push_event(sim, CHAIN_OTHER, sim->run.now + delay_ns, fn, arg);
}

void sim_in_chain(struct sim *sim, uint64_t chain, uint64_t delay_ns, sim_fn *fn, void *arg)
{
	sim_push_event(sim, chain, sim->run.now + delay_ns, fn, arg);
}

void sim_run_event(struct sim *sim, struct event event)
{
	struct task *running = sim->running;
	assert(!running || !running->asleep);
	if (event.due > sim->run.now)
		sim->run.now = event.due;
	if (!event.fn) {
		struct task *task = event.arg;
		assert(task->timed && task->asleep);
		task->timed = false;
		sim_make_ready(sim, task);
		return;
	}
	sim->events++;
	sim_commit_pending(sim);
	sim->running = NULL;
	int error = errno; /* of the task at whose step it happens */
	event.fn(sim, event.arg);
	if (sim->anywhere && !sim->stopping)
		sim_power_fails_here(sim, CRASH_ANYWHERE);
	assert(!sim->running); /* an event switches to no task */
	errno = error;
	sim->running = running;
}

void sim_run_first_event(struct sim *sim)
{
	assert(sim->event_count && !sim->scheduler);
	struct event event = sim->event[--sim->event_count];
	assert(!sim->event_count || event.due <= sim->event[sim->event_count - 1].due);
	sim_run_event(sim, event);
}

struct event sim_take_event(struct sim *sim, unsigned i)
{
	struct event event = sim->event[i];
	assert(sim->scheduler && i < sim->event_count);
	assert(event.fn); /* with a scheduler no task sleeps for a time */
	memmove(&sim->event[i], &sim->event[i + 1], (--sim->event_count - i) * sizeof(event));
	return event;
}
