/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_GROUND_H
#define TM_RNIC_GROUND_H
/*
 * The interface through which the soft RNIC reaches everything outside of it: time, memory for its
 * own objects, the events that it asks for, the tasks that call it, and an explorer where there is
 * one. A host's memory, PM included, is the second such interface: struct rnic_memory.
 *
 * There are two implementations. A simulation is built on core/rt and core/pmem (sim_ground.c):
 * virtual time, fibers, and an explorer that makes every choice. The provider is built on the
 * system's clock and allocator (core/provider/base/engine.c), and has no explorer. Nothing else in
 * core/rnic, links aside, depends on which of the two it is.
 */
#include <stdarg.h>
#include <stddef.h>
#include "core/hardware/profile.h"
#include "core/rt/run.h"
#include "core/rt/scheduler.h"

struct sim;

typedef void rnic_event_fn(void *arg);
/* What is to be called when an event comes. fn NULL: nothing any more. */
struct rnic_event {
	rnic_event_fn *fn;
	void *arg;
};

/*
 * What decides about and watches a run of the RNIC in a simulation: how the choices are answered
 * (core/rt/choose.h), what a task's steps cost, and what has happened, for traces, the event hash
 * and partial-order reduction.
 */
struct rnic_explorer {
	unsigned (*choose)(struct sim *sim, const struct choice_point *at, unsigned n);
	/* A choice was answered with "delayed, k": when it ends, at the latest. A delay that the
	 * clock does not end calls the event when it is over. */
	uint64_t (*delay)(struct sim *sim, unsigned k, const struct rnic_event *event);
	/* Is the task's call at this point to fail? */
	bool (*fails)(enum fail_point point);
	/* A packet to `peer` was sent `tries` times in vain: the connection is given up. */
	void (*given_up)(struct sim *sim, unsigned host, unsigned peer, unsigned tries);
	/* The task that runs; NULL: an event does. `serves`: it is one of the server's. */
	struct actor *(*task)(struct sim *sim);
	bool (*serves)(struct sim *sim);
	/* A step of the task. Its last store comes before what it does next. */
	void (*step)(struct sim *sim, enum step_kind kind, unsigned cost_ns);
	/* The task works for so long; nothing else happens meanwhile. */
	void (*work)(struct sim *sim, uint64_t ns);
	void (*commit_pending)(struct sim *sim);
	/* The task has found the thing empty, and may sleep until it is woken for it. */
	void (*idle)(struct sim *sim, const void *key);
	void (*wake)(struct sim *sim, const void *key);
	/* Names of actors, and the operation that one works for. */
	void (*name)(struct sim *sim, struct actor *actor, unsigned host, const char *what,
		     unsigned number);
	void (*label)(struct actor *actor, struct op_label op);
	/* For struct scheduler: the RNIC's own state is touched, a thing handed over, taken. */
	void (*touch)(struct sim *sim, enum touch what, const void *at, size_t len);
	void (*gives)(struct sim *sim, const void *thing, uint64_t nth);
	void (*takes)(struct sim *sim, const void *thing, uint64_t nth);
	/* Into the event hash. */
	void (*mix_bytes)(struct sim *sim, const void *bytes, size_t len);
	/* Into the event trace. */
	void (*trace)(struct sim *sim, const struct actor *who, const struct traced *about,
		      const char *text);
};

struct rnic_ground {
	void *world; /* the first argument of all that follows */
	struct run_state *run;
	/* Zeroed memory, which stays until the world goes; never NULL. */
	void *(*alloc)(void *world, size_t bytes);
	/* Call the event after `delay_ns`. Events of one chain come in the order in which they were
	 * asked for, and those due at the same time too. *event stays where it is. */
	void (*later)(void *world, uint64_t chain, uint64_t delay_ns,
		      const struct rnic_event *event);
	/* Which task, or thread, calls: the same pointer for the same one. */
	const void *(*caller)(void *world);
	/* Let other tasks run: the caller waits for one of them. */
	void (*yield)(void *world);
	const struct rnic_explorer *explorer; /* NULL: run->plain, and no one watches */
};

static inline uint64_t ground_now(const struct rnic_ground *ground)
{
	return ground->run->now;
}
static inline const struct profile *ground_cost(const struct rnic_ground *ground)
{
	return ground->run->cost;
}
static inline bool ground_plain(const struct rnic_ground *ground)
{
	return ground->run->plain;
}
static inline bool ground_scheduled(const struct rnic_ground *ground)
{
	return ground->run->scheduled;
}
static inline bool ground_traced(const struct rnic_ground *ground)
{
	return ground->run->traced;
}
static inline void *ground_alloc(const struct rnic_ground *ground, size_t bytes)
{
	return ground->alloc(ground->world, bytes);
}
static inline const void *ground_caller(const struct rnic_ground *ground)
{
	return ground->caller(ground->world);
}
static inline void ground_yield(const struct rnic_ground *ground)
{
	ground->yield(ground->world);
}

/* --- the explorer, if there is one --- */

static inline unsigned ground_choose(const struct rnic_ground *ground,
				     const struct choice_point *at, unsigned n)
{
	return ground->run->plain ? 0 : ground->explorer->choose(ground->world, at, n);
}
static inline bool ground_fails(const struct rnic_ground *ground, enum fail_point point)
{
	return ground->run->calls_fail && ground->explorer->fails(point);
}
static inline void ground_given_up(const struct rnic_ground *ground, unsigned host, unsigned peer,
				   unsigned tries)
{
	if (ground->explorer)
		ground->explorer->given_up(ground->world, host, peer, tries);
}
static inline struct actor *ground_task(const struct rnic_ground *ground)
{
	return ground->explorer ? ground->explorer->task(ground->world) : NULL;
}
static inline bool ground_serves(const struct rnic_ground *ground)
{
	return ground->explorer && ground->explorer->serves(ground->world);
}
static inline void ground_step(const struct rnic_ground *ground, enum step_kind kind,
			       unsigned cost_ns)
{
	if (ground->explorer)
		ground->explorer->step(ground->world, kind, cost_ns);
}
static inline void ground_work(const struct rnic_ground *ground, uint64_t ns)
{
	if (ground->explorer)
		ground->explorer->work(ground->world, ns);
}
static inline void ground_commit_pending(const struct rnic_ground *ground)
{
	if (ground->explorer)
		ground->explorer->commit_pending(ground->world);
}
static inline void ground_idle(const struct rnic_ground *ground, const void *key)
{
	if (ground->explorer)
		ground->explorer->idle(ground->world, key);
}
static inline void ground_wake(const struct rnic_ground *ground, const void *key)
{
	if (ground->explorer)
		ground->explorer->wake(ground->world, key);
}
static inline void ground_name(const struct rnic_ground *ground, struct actor *actor, unsigned host,
			       const char *what, unsigned number)
{
	if (ground->explorer)
		ground->explorer->name(ground->world, actor, host, what, number);
}
static inline void ground_label(const struct rnic_ground *ground, struct actor *actor,
				struct op_label op)
{
	if (ground->explorer)
		ground->explorer->label(actor, op);
}
static inline void ground_touch(const struct rnic_ground *ground, enum touch what, const void *at,
				size_t len)
{
	if (ground->run->scheduled)
		ground->explorer->touch(ground->world, what, at, len);
}
static inline void ground_gives(const struct rnic_ground *ground, const void *thing, uint64_t nth)
{
	if (ground->run->scheduled)
		ground->explorer->gives(ground->world, thing, nth);
}
static inline void ground_takes(const struct rnic_ground *ground, const void *thing, uint64_t nth)
{
	if (ground->run->scheduled)
		ground->explorer->takes(ground->world, thing, nth);
}
static inline void ground_mix(const struct rnic_ground *ground, uint64_t a, uint64_t b)
{
	if (ground->explorer)
		run_mix(ground->run, a, b);
}
static inline void ground_mix_bytes(const struct rnic_ground *ground, const void *bytes, size_t len)
{
	if (ground->explorer)
		ground->explorer->mix_bytes(ground->world, bytes, len);
}
/* `about`: NULL, or what there is besides the words. Only where the run is traced. */
void ground_trace(const struct rnic_ground *ground, const struct actor *who,
		  const struct traced *about, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* --- alarms --- */

/*
 * A moment at which something is due, at most one at a time. Events cannot be taken back, so an
 * alarm that was moved or cancelled leaves a stale event, which alarm_fired() tells from the real
 * one.
 */
struct alarm {
	uint64_t at; /* ns + 1; 0: none */
	struct rnic_event event;
};
static inline void alarm_set(const struct rnic_ground *ground, struct alarm *alarm, uint64_t chain,
			     uint64_t delay_ns, rnic_event_fn *fn, void *arg)
{
	uint64_t at = ground_now(ground) + delay_ns + 1;
	if (alarm->at && alarm->at <= at)
		return;
	alarm->at = at;
	alarm->event = (struct rnic_event){fn, arg};
	ground->later(ground->world, chain, delay_ns, &alarm->event);
}
static inline bool alarm_fired(const struct rnic_ground *ground, struct alarm *alarm)
{
	if (!alarm->at || alarm->at > ground_now(ground) + 1)
		return false;
	alarm->at = 0;
	return true;
}

#endif
