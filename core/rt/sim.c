/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduler of the sim world. See sim.h for what it promises.
 *
 * Events are ordered by (due, order of scheduling). Waking a task
 * is an event too, but it only moves the task to the ready queue: NIC events that
 * are due run at a task's next step, other tasks wait until it lets go. So a plain
 * run switches tasks only where the store itself waits, and every other switch is a
 * deviation with a name.
 *
 * A sleep has two ends (a completion comes; the fallback poll is due). The one that comes first
 * takes the other one away: the queue holds no wake-up of a task that does not sleep.
 *
 * Store code that crashes (a bad pointer after recovery from a torn image) must not
 * take the explorer with it: the signal handler sends the task to sim_abandon(), the
 * run ends with SIM_FAULT, and the world is reset like after any other run.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <xxhash.h>
#include "core/rt/sim_state.h"

#define DEFAULT_BUDGET 50000000u
#define FIRST_BOOT     1704067200u /* 2024-01-01, s */
#define BOOT_LASTS     (365u * 24 * 3600)
#define STATE_MAX      ((size_t)1 << 20) /* bytes of memory that have a name */

_Thread_local struct sim *sim_of_thread;
_Thread_local uint64_t sim_runs;
_Thread_local void *sim_memory;

struct sim *sim_current(void)
{
	return sim_of_thread;
}

struct sim *sim_new(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct sim *sim = calloc(1, sizeof(*sim));
	if (!sim)
		return NULL;
	pthread_once(&once, sim_catch_faults);
	arena_init(&sim->arena);
	sim_reset(sim, NULL);
	return sim;
}

void sim_free(struct sim *sim)
{
	if (!sim)
		return;
	assert(!sim->running && sim_of_thread != sim); /* its stacks are about to go */
	sim_forget_statics(sim);
	for (unsigned i = 0; i < (sim->more ? SIM_TASKS : FEW_TASKS); i++)
		fiber_free(&task_at(sim, i)->fiber);
	free(sim->more);
	arena_free(&sim->arena);
	free(sim->event);
	free(sim);
}

void sim_reset(struct sim *sim, struct source *source)
{
	assert(!sim->running && sim_of_thread != sim);
	assert(sim->tasks <= SIM_TASKS);
	for (unsigned i = 0; i < sim->tasks; i++)
		task_at(sim, i)->used = false;
	sim->tasks = 0;
	sim->actors = 0;
	sim->source = source;
	sim->scheduler = NULL;
	sim->cpus = NULL;
	sim->run = (struct run_state){.plain = !source, .cost = &profile_default};
	sim->step_budget = sim->all_steps = DEFAULT_BUDGET;
	sim->repeat.pending_until = 0;
	sim->repeat.off = false;
	sim_repeat_news(sim);
	sim->event_count = 0;
	sim->seq = 0;
	sim->ready_first = sim->ready_len = 0;
	sim->delays = 0;
	sim->quiescent_at = 0;
	sim->stopping = sim->anywhere = sim->alone = false;
	sim->servers = sim->losses = 1;
	sim->readmitted = 0;
	sim->reaches = NULL;
	sim->durations = (struct durations){0};
	sim->clocks_ns = 0;
	memset(sim->server, 0, sizeof(sim->server));
	sim->anywhere_events = 0;
	sim->commit_pending = NULL;
	sim->locked = NULL;
	sim->threads = NULL;
	sim->memory = NULL;
	sim_forget_statics(sim);
	sim->net = NULL;
	sim->death = NULL;
	sim->observer = NULL;
	sim->tracer = NULL;
	sim->without = NULL;
	sim->reached = NULL;
	sim->fault[0] = '\0';
	sim->fault_said = false;
	sim->disturbed = false;
	memset(sim->host, 0, sim->hosts * sizeof(sim->host[0]));
	arena_reset(&sim->arena);
	memset(sim->free_list, 0, sizeof(sim->free_list));
	sim->boot = 0;
	sim->began = sim->events;
	sim->at_rest = NULL;
}

void sim_source(struct sim *sim, struct source *source)
{
	sim->source = source;
	sim->run.plain = !source;
}

struct source *sim_get_source(const struct sim *sim)
{
	return sim->source;
}

void sim_set_step_budget(struct sim *sim, uint64_t steps)
{
	sim->step_budget = sim->all_steps = steps;
	sim_repeat_news(sim);
}

bool sim_is_early(const struct sim *sim)
{
	return sim->step_budget > sim->all_steps / 2 && sim->step_budget <= sim->all_steps;
}

struct run_state *sim_run_state(struct sim *sim)
{
	return &sim->run;
}

uint64_t sim_now(const struct sim *sim)
{
	return sim->run.now;
}

uint64_t sim_events(const struct sim *sim)
{
	return sim->events;
}

uint64_t sim_state_hash(const struct sim *sim)
{
	assert(sim->running && sim_of_thread == sim);
	if (sim->tasks != 1 || sim->ready_len || sim->delays)
		return 0;
	sim_save_statics(sim);
	uint64_t hash = arena_hash(&sim->arena, STATE_MAX);
	if (!hash)
		return 0;
	for (unsigned i = 0; i < sim->event_count; i++) {
		const struct event *e = &sim->event[i];
		const uint64_t what[] = {hash, e->due, e->chain, (uintptr_t)e->fn,
					 (uintptr_t)e->arg};
		hash = XXH3_64bits(what, sizeof(what));
	}
	hash = XXH3_64bits_withSeed(sim->free_list, sizeof(sim->free_list),
				    hash ^ sim->run.now ^ (uint64_t)errno << 32);
	return hash ? hash : 1;
}

void *sim_alloc(struct sim *sim, size_t bytes)
{
	return arena_alloc(&sim->arena, bytes);
}

void sim_set_boot(struct sim *sim, unsigned boot)
{
	sim->boot = boot;
}

uint64_t sim_epoch(const struct sim *sim)
{
	return FIRST_BOOT + (uint64_t)sim->boot * BOOT_LASTS;
}

struct sim_process_number sim_process_number(const struct sim *sim)
{
	return (struct sim_process_number){sim->boot, sim_process_life(sim, sim_host(sim))};
}

void **sim_process(struct sim *sim)
{
	return &sim_host_of(sim, sim_host(sim))->process;
}

struct block **sim_free_lists(struct sim *sim)
{
	return sim->free_list;
}

void sim_set_commit(struct sim *sim, void (*commit_pending)(void *), void *arg)
{
	sim->commit_pending = commit_pending;
	sim->commit_arg = arg;
}

void sim_commit_pending(struct sim *sim)
{
	if (sim->commit_pending)
		sim->commit_pending(sim->commit_arg);
}

void sim_set_locked(struct sim *sim, bool (*locked)(void *, const void *, uintptr_t), void *arg)
{
	sim->locked = locked;
	sim->locked_arg = arg;
}

void sim_set_death(struct sim *sim, void (*death)(void *, unsigned, unsigned), void *arg)
{
	sim->death = death;
	sim->death_arg = arg;
}

void sim_set_memory(struct sim *sim, void *memory)
{
	sim->memory = memory;
	if (sim_of_thread == sim)
		sim_memory = memory;
}

void sim_set_net(struct sim *sim, void *net)
{
	sim->net = net;
}

void *sim_net(const struct sim *sim)
{
	return sim->net;
}

void sim_set_observer(struct sim *sim, void (*crash_point)(void *, const struct choice_point *),
		      void *arg)
{
	sim->observer = crash_point;
	sim->observer_arg = arg;
}

void sim_set_alone(struct sim *sim, bool on)
{
	assert(sim->running && sim->alone != on);
	sim->alone = on;
	if (!sim->source)
		return;
	/* Its steps are no questions to the source, and count for none. */
	uint32_t *skip = &sim->source->skip[CHOICE_STEP];
	if (on)
		sim->step_skip = *skip;
	*skip = on ? UINT32_MAX : sim->step_skip;
}

void sim_set_anywhere(struct sim *sim, bool on)
{
	sim->anywhere = on;
}

void sim_stop(struct sim *sim, enum sim_end end)
{
	assert(sim_of_thread == sim); /* else sim_run() would forget it when it starts */
	assert(end <= SIM_POWER);
	if (!sim->stopping)
		sim->end = end;
	sim->stopping = true;
}

void sim_abandon(struct sim *sim, enum sim_end end)
{
	struct task *task = sim->running;
	assert(task && task->used);
	assert(!task->asleep); /* or a wake-up would make it ready once more */
	if (sim->stopping)
		sim->stopping = false; /* a fault while stopping is the stronger end */
	sim_stop(sim, end);
	task->used = false;
	fiber_exit(&task->fiber, &sim->main_fiber);
}

enum sim_end sim_run(struct sim *sim)
{
	struct sim *outer = sim_of_thread;
	void *outer_memory = sim_memory;
	uint8_t *owner = outer && outer->statics ? outer->statics->owner : NULL;
	int outer_error = errno;
	assert(!sim->running && outer != sim);
	sim_runs++;
	if (!outer) {
		sim_give_signal_stack();
		sim_watch_for_loops();
	}
	sim_of_thread = sim;
	sim_memory = sim->memory;
	sim->stopping = false;
	/* A simulation may run on another stack than last time. */
	sim->main_fiber = (struct fiber){0};
	while (!sim->stopping) {
		if (sim->at_rest)
			sim->at_rest(sim->rest_arg);
		if (sim->scheduler) {
			sim_run_picked(sim);
		} else if (sim->ready_len) {
			sim_run_task(sim, 0);
		} else if (sim->event_count) {
			if (sim->event[sim->event_count - 1].due >= UINT64_MAX / 8)
				sim_stop(sim, SIM_IDLE); /* only what is delayed for ever is left */
			else if (sim->step_budget-- == 0)
				sim_stop(sim, SIM_BUDGET);
			else
				sim_run_first_event(sim);
		} else {
			sim_stop(sim, SIM_IDLE);
		}
	}
	/* A simulation that ran inside of this one has left everything as it was. */
	assert(sim_of_thread == sim && !sim->running);
	sim_of_thread = outer;
	sim_memory = outer_memory;
	if (owner)
		sim_static_owner(outer->statics, owner);
	errno = outer_error;
	return sim->end;
}
