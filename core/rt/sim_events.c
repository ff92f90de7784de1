/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event queue: a binary heap ordered by (due, order of scheduling).
 */
#include <stdlib.h>
#include "core/rt/sim_state.h"

static bool earlier(const struct event *a, const struct event *b)
{
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

void sim_push_event(struct sim *sim, uint64_t chain, uint64_t due, sim_fn *fn, void *arg,
		    uint32_t sleep)
{
	if (sim->scheduler)
		sim->scheduler->enables(sim->scheduler, chain);
	if (sim->heap_len == sim->heap_cap) {
		unsigned cap = sim->heap_cap ? 2 * sim->heap_cap : 64;
		struct event *heap = realloc(sim->heap, cap * sizeof(*heap));
		if (!heap)
			arena_exhausted();
		sim->heap = heap;
		sim->heap_cap = cap;
	}
	unsigned i = sim->heap_len++;
	/* A new event is the last of those due at its time. */
	while (i && due < sim->heap[(i - 1) / 2].due) {
		sim->heap[i] = sim->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	struct event *event = &sim->heap[i];
	event->due = due;
	event->chain = chain;
	event->seq = sim->seq++;
	event->sleep = sleep;
	event->fn = fn;
	event->arg = arg;
}

static void pop(struct sim *sim)
{
	const struct event last = sim->heap[--sim->heap_len];
	unsigned i = 0, child;
	while ((child = 2 * i + 1) < sim->heap_len) {
		if (child + 1 < sim->heap_len && earlier(&sim->heap[child + 1], &sim->heap[child]))
			child++;
		if (!earlier(&sim->heap[child], &last))
			break;
		sim->heap[i] = sim->heap[child];
		i = child;
	}
	sim->heap[i] = last;
}

void sim_at(struct sim *sim, uint64_t delay_ns, sim_fn *fn, void *arg)
{
	sim_push_event(sim, CHAIN_OTHER, sim->run.now + delay_ns, fn, arg, 0);
}

void sim_in_chain(struct sim *sim, uint64_t chain, uint64_t delay_ns, sim_fn *fn, void *arg)
{
	sim_push_event(sim, chain, sim->run.now + delay_ns, fn, arg, 0);
}

void sim_run_event(struct sim *sim, struct event event)
{
	struct task *running = sim->running;
	if (event.due > sim->run.now)
		sim->run.now = event.due;
	if (!event.fn) {
		struct task *task = event.arg;
		if (task->asleep && task->sleep == event.sleep)
			sim_make_ready(sim, task);
		return;
	}
	sim->events++;
	sim_commit_pending(sim);
	sim->running = NULL;
	event.fn(sim, event.arg);
	if (sim->anywhere && !sim->stopping)
		sim_power_fails_here(sim, CRASH_ANYWHERE);
	sim->running = running;
}

void sim_run_first_event(struct sim *sim)
{
	struct event event = sim->heap[0];
	pop(sim);
	sim_run_event(sim, event);
}

struct event sim_take_event(struct sim *sim, unsigned i)
{
	struct event event = sim->heap[i];
	memmove(&sim->heap[i], &sim->heap[i + 1], (--sim->heap_len - i) * sizeof(event));
	return event;
}
