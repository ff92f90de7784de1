/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_SIM_STATE_H
#define TM_RT_SIM_STATE_H
/*
 * What the files of the simulation share, and no other file sees. sim.c opens with how the
 * scheduling works.
 *
 *	sim.c		a simulation's life, and its main loop
 *	sim_events.c	the event queue
 *	sim_tasks.c	tasks: their steps, their sleeps
 *	sim_delays.c	tasks and events that are delayed until the others rest
 *	sim_cpus.c	hosts that compute at the same time
 *	sim_scheduler.c	a scheduler in the clock's place
 *	sim_choices.c	choices, power failures, the event hash
 *	sim_injected.c	what was injected, host by host
 *	sim_repeat.c	livelocks
 *	sim_fault.c	store code that crashes
 *	sim_calls.c	calls of store code that returned an error
 *	sim_threads.c	threads of store code, and what they wait for (sim_threads.h)
 *	sim_trace.c	the event trace
 *	sim_snapshot.c	all of it at one moment, to go on from there again
 *	places.c	what a run does without
 *	statics.c	static data of stores that were loaded
 *	descriptors.c	what poll(2) and its kin work on
 *	rt_sim.c	rt.h for the tasks of a simulation
 */
#include <assert.h>
#include <setjmp.h>
#include <string.h>
#include "core/rt/arena.h"
#include "core/rt/process/descriptors.h"
#include "core/rt/fiber.h"
#include "core/rt/process/sim_libc.h"
#include "core/rt/snapshot.h"
#include "core/rt/process/statics.h"

#define IDLE_KEYS    8
#define ACTORS_KNOWN 32
#define FEW_TASKS    32 /* most worlds have no more, and are made often */

struct event {
	uint64_t due, chain;
	uint32_t seq;
	sim_fn *fn; /* NULL: wake the task `arg` */
	void *arg;
};

/* What is delayed until the others rest: a task, or an event that is not due yet. */
struct delayed {
	struct task *task; /* NULL: the event */
	uint32_t sleep;	   /* of the task */
	sim_fn *fn;
	void *arg;
	bool let_go; /* it may go on */
	bool over;   /* it has gone on */
};

struct task {
	struct fiber fiber;
	struct actor actor;
	unsigned host;
	int error;		       /* its errno, while it does not run */
	struct sim_failed_call failed; /* sim_failed_call() */
	jmp_buf *refused; /* rt_connect() fails there, when the server dies while its code waits */
	unsigned code_host; /* whose code it runs: its own host's, or the server's in rt_connect()
			     */
	uint32_t sleep;	    /* number of its current sleep */
	uint8_t number;
	bool used, asleep, dead;
	bool timed;	       /* its wake-up is in the event queue */
	bool of_store;	       /* rt_spawn() or pthread_create() made it */
	bool again;	       /* it has ended, and another task may have its place */
	struct thread *thread; /* NULL: it has called nothing of threads.h */
	uint8_t idles;
	const void *idle[IDLE_KEYS]; /* what it found empty since it last ran */
	uint64_t backoff_ns;
	uint64_t look_ns; /* what it owed when it last found nothing */
	uint64_t owed;	  /* ns: what it has done and not paid (sim_cpus.c) */
	uint8_t *tls;	  /* thread-local data of the store; NULL: not used yet */
	void (*fn)(void *);
	void *arg;
};

/* An actor as an earlier run made it: in worlds that live for a microsecond, names and their hashes
 * are a noticeable cost. */
struct named {
	unsigned host, number, life;
	char what[ACTOR_NAME];
	struct actor actor;
};

#define REPEAT_SLOTS 8192

/* sim_repeat.c. Steps are counted by what is left of the budget. */
struct repeat {
	bool off; /* what runs may look at the same things as often as it likes */
	bool watching;
	bool pending;	  /* when something was looked at last, a chosen delay was still to end */
	uint64_t look_at; /* the step at which something is to be looked at, or 0 */
	uint64_t news_at;
	uint64_t pause_ns;	/* the next one */
	uint64_t pending_until; /* ns: until then a delay goes on that the source has chosen */
};

/* The accesses since it watches. */
struct repeat_seen {
	unsigned entries;
	uint64_t seen[REPEAT_SLOTS];	 /* accesses, hashed; 0: free */
	uint16_t slot[REPEAT_SLOTS / 2]; /* where the entries are */
};

struct one_host {
	void *process;			 /* sim_process() */
	uint8_t *statics;		 /* a copy; NULL: none yet */
	struct descriptors *descriptors; /* of its process; NULL: none yet */
	uint64_t power_off_at;
	uint32_t lost;	   /* packets of its links */
	uint16_t connects; /* how often a client has begun to connect, but for the first time */
	uint8_t injected;  /* bits, enum sim_injected */
	bool died;	   /* its machine */
	bool powerless;
	bool refused; /* sim_take_refused() */
	bool clock_known, clock_ahead;
};

struct sim {
	struct run_state run;
	struct scheduler *scheduler; /* NULL: time decides */
	struct cpus *cpus;	     /* NULL: one clock counts all work */
	uint64_t step_budget, all_steps;
	unsigned event_count;
	uint32_t seq;
	struct task *running;	  /* NULL in the scheduler and in events */
	uint8_t ready[SIM_TASKS]; /* their numbers */
	unsigned ready_first, ready_len;
	struct delayed delayed[SIM_DELAYS];
	unsigned delays;
	uint64_t quiescent_at; /* when the latest of them goes on, at the latest */
	bool stopping, anywhere, alone;
	uint32_t step_skip; /* of the source, before it was alone */
	unsigned servers, losses;
	struct one_server {
		bool down;     /* its process has died, and the next one has not begun */
		unsigned life; /* processes before this one */
		bool cut;      /* the configuration service does not hear it, ... */
		uint64_t cut_at;
		struct rt_config heard; /* ... and this was the last that it heard */
		uint32_t lease;		/* how many have ended */
		bool for_ever;		/* it is gone, or cut off, for ever */
		bool failed; /* it has lost its power, and is in no configuration since */
		rt_accept_fn *accept;
		void *accept_arg;
	} server[SIM_SERVERS];
	struct rt_config config;
	uint32_t readmitted; /* bits, by server */
	void (*reaches)(void *, struct op_label, unsigned);
	void *reaches_arg;
	struct durations durations;
	uint64_t clocks_ns;	  /* sim_set_clocks() */
	uint32_t anywhere_events; /* CRASH_ANYWHERE points of events so far */
	enum sim_end end;
	struct block *free_list[SIM_FREE_LISTS]; /* of libc.c, by size class */
	unsigned boot;
	void (*commit_pending)(void *);
	void *commit_arg;
	bool (*locked)(void *, const void *, uintptr_t);
	void *locked_arg;
	struct threads *threads; /* of threads.h; NULL: there are none */
	void *memory;
	struct statics *statics; /* NULL: none */
	void (*death)(void *, unsigned, unsigned);
	void *death_arg;
	void *net; /* sim_net() */
	void (*observer)(void *, const struct choice_point *);
	void *observer_arg;
	const struct places_without *without; /* NULL: nothing */
	struct places_reached *reached;	      /* NULL: not wanted */
	sim_tracer *tracer;
	void *tracer_arg;
	bool wordless;
	struct repeat repeat;
	bool disturbed; /* a choice was not answered plainly */
	unsigned hosts; /* of host[], in use */
	char fault[192];
	bool fault_said; /* it is a sentence of its own */
	uintptr_t fault_pc;
	unsigned actors; /* made in this run */
	unsigned tasks;	 /* used so far; their stacks are kept across resets */

	/* What follows is not in a snapshot, or by itself. */
	struct source *source;
	uint64_t events, began; /* events until now; at the last reset */
	struct event *event;	/* sim_events.c has their order */
	uint32_t event_room;
	struct fiber main_fiber;
	struct arena arena;
	struct one_host host[SIM_HOSTS]; /* see sim_host_of() */
	void (*at_rest)(void *);	 /* NULL: none */
	void *rest_arg;
	struct repeat_seen seen;
	/* In the order in which runs make them, which is mostly the same. */
	struct named named[ACTORS_KNOWN];
	struct task task[FEW_TASKS];
	struct task *more; /* the others; NULL: none was needed yet */
};

extern _Thread_local struct sim *sim_of_thread; /* sim_current() */
extern _Thread_local uint64_t sim_runs;		/* of simulations on this thread */

/* --- sim_events.c --- */

void sim_push_event(struct sim *sim, uint64_t chain, uint64_t due, sim_fn *fn, void *arg);
/* The task does not sleep any more, or is dead: its wake-up is taken out of the queue. */
void sim_take_wake_up(struct sim *sim, struct task *task);
void sim_run_first_event(struct sim *sim);
/* Run an event that was taken out of the queue. No task is the current one meanwhile. */
void sim_run_event(struct sim *sim, struct event event);
/* Is an event due by now, so that it comes before the current task's next step? */
static inline bool sim_event_due(const struct sim *sim)
{
	return sim->event_count && sim->event[sim->event_count - 1].due <= sim->run.now;
}
/* Take the event at event[i] out: a scheduler, which looks through the whole queue, takes events
 * so. */
struct event sim_take_event(struct sim *sim, unsigned i);

/* --- sim_tasks.c --- */

/* A task as sim_spawn() starts it; its name may have a number. */
int sim_new_task(struct sim *sim, unsigned host, const char *what, unsigned number,
		 void (*fn)(void *), void *arg, struct task **task);
/* The current task has ended. */
_Noreturn void sim_end_task(struct sim *sim);
/* A host's tasks never run again. The current one, if it is the host's, goes on until it sleeps. */
void sim_kill_tasks(struct sim *sim, unsigned host);
void sim_make_ready(struct sim *sim, struct task *task);
/* Run the nth ready task until it lets others go. */
void sim_run_task(struct sim *sim, unsigned nth);
/* The current task lets others go. */
void sim_leave(struct sim *sim);
/* The same until it is woken, or so much time has passed. */
void sim_sleep_until_woken(struct sim *sim, uint64_t fallback_ns);
/* The same until someone calls sim_make_ready(). */
void sim_sleep_for_waker(struct sim *sim);

/* --- sim_threads.c, threads.c --- */

/* The process of a host has ended, but for the current task, if that is the host's and not dead. */
void sim_threads_ended(struct sim *sim, unsigned host);
/* The current task, which has a thread, is about to end. */
void sim_thread_returns(struct sim *sim);
/* sim_yield(), but no longer than until then. */
void sim_yield_until(struct sim *sim, uint64_t until);

/* --- sim_cpus.c --- */

/* The current task does a step that costs so much; pays what it owes. */
__attribute__((cold)) void sim_owe(struct sim *sim, enum step_kind kind, uint64_t ns);
void sim_pay(struct sim *sim);

/* --- sim_delays.c, sim_scheduler.c, sim_fault.c --- */

void sim_delay_task(struct sim *sim, unsigned k);
/* The scheduler picks what comes next, and it runs. */
void sim_run_picked(struct sim *sim);
void sim_catch_faults(void);
/* Before a simulation runs. */
void sim_watch_for_loops(void);
/* A stack for the handler, once per thread: the task's own may be what ran out. */
void sim_give_signal_stack(void);

/* --- hosts --- */

/* Servers come first, so that those in use are a few at the array's start. */
static inline unsigned sim_host_index(unsigned host)
{
	assert(host < SIM_HOSTS);
	return host_serves(host) ? host_server(host) : host + SIM_SERVERS - 1;
}
/* To be read. */
static inline const struct one_host *sim_host_at(const struct sim *sim, unsigned host)
{
	return &sim->host[sim_host_index(host)];
}
/* To be changed: from now on it is in use. */
static inline struct one_host *sim_host_of(struct sim *sim, unsigned host)
{
	const unsigned i = sim_host_index(host);
	if (i >= sim->hosts)
		sim->hosts = i + 1;
	return &sim->host[i];
}

/* --- sim_tasks.c --- */

/* Number of the host's processes that came before the one that is there. */
static inline unsigned sim_process_life(const struct sim *sim, unsigned host)
{
	if (host_serves(host))
		return sim->server[host_server(host)].life;
	return host < SIM_HOSTS ? sim_host_at(sim, host)->connects : 0;
}

/* --- statics.c --- */

/* A task of the host is about to run: from now on its copy is live. */
void sim_exchange_statics(struct sim *sim, unsigned host);
/* The copy that was live before another simulation ran. */
void sim_static_owner(struct statics *statics, uint8_t *owner);
/* What is live is also in its host's copy. */
void sim_save_statics(const struct sim *sim);
static inline void sim_enter_host(struct sim *sim, unsigned host)
{
	if (sim->statics)
		sim_exchange_statics(sim, host);
}
/* A reset. */
void sim_forget_statics(struct sim *sim);

/* --- sim_repeat.c --- */

/* repeat.look_at has come. For how many ns to hold up the current task; 0: not. */
uint64_t sim_repeat_pause(struct sim *sim);

/* --- on each step and choice --- */

/* Take a step from the budget. True: sim_repeat_pause() is to be asked. */
static inline bool spend(struct sim *sim)
{
	if (sim->step_budget-- == 0)
		sim_abandon(sim, SIM_BUDGET);
	return sim->step_budget <= sim->repeat.look_at;
}

/* Is the answer 0 without asking the source? */
static inline bool answered_plainly(struct source *source, unsigned kind)
{
	if (source && source->skip[kind]) {
		source->skip[kind]--;
		return true;
	}
	return !source;
}

/* The nth ready task. */
static inline struct task *task_at(const struct sim *sim, unsigned number)
{
	assert(number < SIM_TASKS);
	return (struct task *)(number < FEW_TASKS ? &sim->task[number]
						  : &sim->more[number - FEW_TASKS]);
}

static inline struct task *ready_task(const struct sim *sim, unsigned nth)
{
	assert(nth < sim->ready_len);
	return task_at(sim, sim->ready[(sim->ready_first + nth) % SIM_TASKS]);
}

#endif
