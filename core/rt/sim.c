/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduler of the sim world. See sim.h for what it promises.
 *
 * Events sit in a binary heap ordered by (due, order of scheduling). Waking a task
 * is an event too, but it only moves the task to the ready queue: NIC events that
 * are due run at a task's next step, other tasks wait until it lets go. So a plain
 * run switches tasks only where the store itself waits, and every other switch is a
 * deviation with a name.
 *
 * A wake-up carries the number of the sleep it ends, so that the later of two
 * wake-ups of one sleep (a completion came; the fallback poll came due) finds that
 * it is stale and does nothing.
 *
 * Store code that crashes (a bad pointer after recovery from a torn image) must not
 * take the explorer with it: the signal handler sends the task to sim_abandon(), the
 * run ends with SIM_FAULT, and the world is reset like after any other run.
 */
#include "core/rt/sim.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <xxhash.h>
#include "core/rt/arena.h"
#include "core/rt/fiber.h"
#include "core/rt/sim_libc.h"

#define STACK_BYTES  (256 * 1024) /* committed page by page as used */
#define IDLE_KEYS    8
#define SIM_TURNS    128 /* tasks and chains among which a scheduler chooses */
#define ACTORS_KNOWN 32
#define POLL_NS	     10000 /* first fallback wake-up of a task that waits for a completion queue */
#define POLL_MAX_NS  1000000000 /* the longest one */
#define DEFAULT_FUEL 50000000u
#define REST_NS \
	5000000 /* by then all others rest; far below a retransmission and a writer's timeout */

struct event {
	uint64_t due, chain;
	uint32_t seq, sleep;
	sim_fn *fn; /* NULL: wake the task `arg` from its `sleep`th sleep */
	void *arg;
};

/* Who is held until the others rest: a task, or an event that is not due yet. */
struct held {
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
	uint32_t sleep; /* number of its current sleep */
	bool used, asleep, dead;
	uint8_t idles;
	const void *idle[IDLE_KEYS]; /* what it found empty since it last ran */
	uint64_t backoff_ns;
	void (*fn)(void *);
	void *arg;
};

/* An actor as an earlier run made it: worlds that live for a microsecond notice what names and
 * their hashes cost. */
struct named {
	unsigned host, number;
	char what[ACTOR_NAME];
	struct actor actor;
};

struct sim {
	struct source *source;
	struct scheduler *scheduler; /* NULL: time decides */
	uint64_t now, step_budget, hash, events;
	struct event *heap;
	unsigned heap_len, heap_cap;
	uint32_t seq;
	struct task *running; /* NULL in the scheduler and in events */
	struct task *ready[SIM_TASKS];
	unsigned ready_first, ready_len;
	struct held held[SIM_DELAYS];
	unsigned holds;
	uint64_t rest_at; /* when the latest of them goes on, at the latest */
	bool stopping, anywhere, calls_fail;
	uint32_t anywhere_events; /* CRASH_ANYWHERE points of events so far */
	enum sim_end end;
	struct fiber main_fiber;
	struct arena arena;
	struct block *free_list[40]; /* of libc.c, by size class */
	rt_accept_fn *accept;
	void *accept_arg;
	void (*settle)(void *);
	void *settle_arg;
	void *memory;
	void (*death)(void *, unsigned);
	void *death_arg;
	void (*observer)(void *, const struct choice_point *);
	void *observer_arg;
	sim_tracer *tracer;
	void *tracer_arg;
	char fault[96];
	uintptr_t fault_pc;
	struct named
		named[ACTORS_KNOWN]; /* in the order in which runs make them, mostly the same */
	unsigned actors;	     /* made in this run */
	unsigned tasks;		     /* used so far; their stacks are kept across resets */
	struct task task[SIM_TASKS];
};

static _Thread_local struct sim *current;
_Thread_local void *sim_memory;

struct sim *sim_current(void)
{
	return current;
}

/* --- faults of store code --- */

static void fault_landing(void)
{
	sim_abandon(current, SIM_FAULT);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	(void)info;
	if (!current || !current->running) {
		/* Our own fault: let it kill the process as it would have. */
		signal(sig, SIG_DFL);
		return;
	}
#if defined(__x86_64__)
	current->fault_pc = uc->uc_mcontext.gregs[REG_RIP];
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)fault_landing;
	/* The task never comes back: its stack is used from the top, aligned as after a call, even
	 * if it was too short. */
	uc->uc_mcontext.gregs[REG_RSP] = (greg_t)(fiber_top(&current->running->fiber) - 8);
#elif defined(__aarch64__)
	current->fault_pc = uc->uc_mcontext.pc;
	uc->uc_mcontext.pc = (uintptr_t)fault_landing;
	uc->uc_mcontext.sp = fiber_top(&current->running->fiber);
#else
#error "on_fault: say how to continue elsewhere on this machine"
#endif
	snprintf(current->fault, sizeof(current->fault), "%s",
		 sig == SIGSEGV	 ? "segmentation fault"
		 : sig == SIGBUS ? "bus error"
				 : "arithmetic fault");
}

static void catch_faults(void)
{
	static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE};
	struct sigaction action = {.sa_sigaction = on_fault,
				   .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	sigemptyset(&action.sa_mask);
	for (unsigned i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaction(caught[i], &action, NULL);
}

/* A stack for the handler, once per thread: the task's own may be what ran out. */
static void give_signal_stack(void)
{
	static _Thread_local _Alignas(64) char stack[64 * 1024];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)}, there;
	/* Not in place of one that is there: a sanitizer takes its own back when the thread
	 * ends. */
	if (!sigaltstack(NULL, &there) && there.ss_flags & SS_DISABLE)
		sigaltstack(&alternate, NULL);
}

const char *sim_fault(const struct sim *sim, uintptr_t *pc)
{
	if (pc)
		*pc = sim->fault_pc;
	return sim->fault;
}

void sim_set_fault(struct sim *sim, uintptr_t pc, const char *what)
{
	sim->fault_pc = pc;
	snprintf(sim->fault, sizeof(sim->fault), "%s", what);
}

/* --- life --- */

struct sim *sim_new(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct sim *sim = calloc(1, sizeof(*sim));
	if (!sim)
		return NULL;
	pthread_once(&once, catch_faults);
	arena_init(&sim->arena);
	sim_reset(sim, NULL);
	return sim;
}

void sim_free(struct sim *sim)
{
	if (!sim)
		return;
	for (unsigned i = 0; i < SIM_TASKS; i++)
		fiber_free(&sim->task[i].fiber);
	arena_free(&sim->arena);
	free(sim->heap);
	free(sim);
}

void sim_reset(struct sim *sim, struct source *source)
{
	assert(!sim->running);
	for (unsigned i = 0; i < sim->tasks; i++)
		sim->task[i].used = false;
	sim->tasks = 0;
	sim->actors = 0;
	sim->source = source;
	sim->scheduler = NULL;
	sim->now = 0;
	sim->step_budget = DEFAULT_FUEL;
	sim->hash = 0;
	sim->heap_len = 0;
	sim->seq = 0;
	sim->ready_first = sim->ready_len = 0;
	sim->holds = 0;
	sim->rest_at = 0;
	sim->stopping = sim->anywhere = sim->calls_fail = false;
	sim->anywhere_events = 0;
	sim->accept = NULL;
	sim->settle = NULL;
	sim->memory = NULL;
	sim->death = NULL;
	sim->observer = NULL;
	sim->tracer = NULL;
	sim->fault[0] = '\0';
	arena_reset(&sim->arena);
	memset(sim->free_list, 0, sizeof(sim->free_list));
}

void sim_source(struct sim *sim, struct source *source)
{
	sim->source = source;
}

struct source *sim_get_source(const struct sim *sim)
{
	return sim->source;
}

void sim_set_step_budget(struct sim *sim, uint64_t steps)
{
	sim->step_budget = steps;
}

uint64_t sim_now(const struct sim *sim)
{
	return sim->now;
}

uint64_t sim_events(const struct sim *sim)
{
	return sim->events;
}

void *sim_alloc(struct sim *sim, size_t bytes)
{
	return arena_alloc(&sim->arena, bytes);
}

struct block **sim_free_lists(struct sim *sim)
{
	return sim->free_list;
}

void sim_set_settle(struct sim *sim, void (*settle)(void *), void *arg)
{
	sim->settle = settle;
	sim->settle_arg = arg;
}

void sim_settle(struct sim *sim)
{
	if (sim->settle)
		sim->settle(sim->settle_arg);
}

void sim_set_death(struct sim *sim, void (*death)(void *, unsigned), void *arg)
{
	sim->death = death;
	sim->death_arg = arg;
}

void sim_set_memory(struct sim *sim, void *memory)
{
	sim->memory = memory;
	if (current == sim)
		sim_memory = memory;
}

void sim_set_observer(struct sim *sim, void (*crash_point)(void *, const struct choice_point *),
		      void *arg)
{
	sim->observer = crash_point;
	sim->observer_arg = arg;
}

void sim_set_anywhere(struct sim *sim, bool on)
{
	sim->anywhere = on;
}

/* --- the event queue --- */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void push(struct sim *sim, uint64_t chain, uint64_t due, sim_fn *fn, void *arg,
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
	push(sim, CHAIN_OTHER, sim->now + delay_ns, fn, arg, 0);
}

void sim_in_chain(struct sim *sim, uint64_t chain, uint64_t delay_ns, sim_fn *fn, void *arg)
{
	push(sim, chain, sim->now + delay_ns, fn, arg, 0);
}

static void make_ready(struct sim *sim, struct task *task)
{
	assert(task->asleep && sim->ready_len < SIM_TASKS);
	if (task->dead)
		return;
	task->asleep = false;
	task->sleep++;
	if (sim->scheduler)
		sim->scheduler->enables(sim->scheduler,
					chain_name(task->actor.name_hash, CHAIN_TASK));
	sim->ready[(sim->ready_first + sim->ready_len++) % SIM_TASKS] = task;
}

/* Run an event that was taken out of the queue. Nobody is the current task meanwhile. */
static void run_event(struct sim *sim, struct event event)
{
	struct task *running = sim->running;
	if (event.due > sim->now)
		sim->now = event.due;
	if (!event.fn) {
		struct task *task = event.arg;
		if (task->asleep && task->sleep == event.sleep)
			make_ready(sim, task);
		return;
	}
	sim->events++;
	if (sim->settle)
		sim->settle(sim->settle_arg);
	sim->running = NULL;
	event.fn(sim, event.arg);
	if (sim->anywhere && !sim->stopping)
		sim_power_fails_here(sim, CRASH_ANYWHERE);
	sim->running = running;
}

/* Run the first event. */
static void dispatch(struct sim *sim)
{
	struct event event = sim->heap[0];
	pop(sim);
	run_event(sim, event);
}

/* --- tasks --- */

void sim_name_actor(struct sim *sim, struct actor *actor, unsigned host, const char *what,
		    unsigned number)
{
	struct named *named = &sim->named[sim->actors++ % ACTORS_KNOWN];
	if (!*named->actor.name || named->host != host || named->number != number ||
	    strncmp(named->what, what, sizeof(named->what))) {
		char name[ACTOR_NAME];
		int len = snprintf(name, sizeof(name), host == HOST_SERVER ? "server" : "c%u",
				   host);
		if (*what)
			len += snprintf(name + len, sizeof(name) - (size_t)len, "/%s", what);
		if (number && len < ACTOR_NAME)
			snprintf(name + len, sizeof(name) - (size_t)len, "%u", number);
		named->host = host;
		named->number = number;
		strncpy(named->what, what, sizeof(named->what));
		actor_init(&named->actor, name);
	}
	*actor = named->actor;
}

int sim_task(const struct sim *sim)
{
	return sim->running ? (int)(sim->running - sim->task) : -1;
}

struct actor *sim_actor(struct sim *sim)
{
	return sim->running ? &sim->running->actor : NULL;
}

unsigned sim_host(const struct sim *sim)
{
	return sim->running ? sim->running->host : HOST_SERVER;
}

static void task_main(void *arg)
{
	struct sim *sim = current;
	struct task *task = arg;
	task->fn(task->arg);
	if (sim->settle)
		sim->settle(sim->settle_arg);
	task->used = false;
	fiber_exit(&task->fiber, &sim->main_fiber);
}

int sim_spawn(struct sim *sim, unsigned host, const char *name, void (*fn)(void *), void *arg)
{
	if (sim->tasks == SIM_TASKS)
		return -EAGAIN;
	struct task *task = &sim->task[sim->tasks];
	if (fiber_alloc(&task->fiber, STACK_BYTES))
		return -ENOMEM;
	sim->tasks++;
	sim_name_actor(sim, &task->actor, host, name ? name : "", 0);
	task->host = host;
	task->used = task->asleep = true;
	task->dead = false;
	task->sleep = 0;
	task->idles = 0;
	task->backoff_ns = POLL_NS;
	task->fn = fn;
	task->arg = arg;
	fiber_make(&task->fiber, task_main, task);
	make_ready(sim, task);
	return 0;
}

/* A host's tasks never run again. The current one goes on until it sleeps. */
static void kill_tasks(struct sim *sim, unsigned host)
{
	unsigned left = 0;
	for (unsigned t = 0; t < sim->tasks; t++)
		if (sim->task[t].host == host)
			sim->task[t].dead = true;
	for (unsigned i = 0; i < sim->ready_len; i++) {
		struct task *task = sim->ready[(sim->ready_first + i) % SIM_TASKS];
		if (!task->dead)
			sim->ready[(sim->ready_first + left++) % SIM_TASKS] = task;
	}
	sim->ready_len = left;
}

static void leave(struct sim *sim)
{
	struct task *task = sim->running;
	if (sim->settle)
		sim->settle(sim->settle_arg);
	fiber_switch(&task->fiber, &sim->main_fiber);
}

/* The run stops in mid-step. If it is run again, this task is the first to go on. */
static void leave_first(struct sim *sim)
{
	struct task *task = sim->running;
	if (sim->settle)
		sim->settle(sim->settle_arg);
	assert(sim->ready_len < SIM_TASKS);
	sim->ready_first = (sim->ready_first + SIM_TASKS - 1) % SIM_TASKS;
	sim->ready[sim->ready_first] = task;
	sim->ready_len++;
	fiber_switch(&task->fiber, &sim->main_fiber);
}

/* Is the answer 0 without asking the source? */
static bool skips(struct source *source, unsigned kind)
{
	if (source && source->skip[kind]) {
		source->skip[kind]--;
		return true;
	}
	return !source;
}

static void sleep_until_woken(struct sim *sim, uint64_t fallback_ns)
{
	struct task *task = sim->running;
	assert(task);
	if (sim->step_budget-- == 0)
		sim_abandon(sim, SIM_FUEL);
	task->asleep = true;
	/* With a scheduler somebody wakes it, or it sleeps for ever: a poll that finds nothing says
	 * nothing. */
	if (!sim->scheduler)
		push(sim, 0, sim->now + fallback_ns, NULL, task, task->sleep);
	leave(sim);
	task->idles = 0;
}

/* --- holds that no clock ends --- */

static void let_go(struct sim *sim, struct held *held);

static void fire_delayed(struct sim *sim, void *arg)
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
		push(sim, 0, sim->now, fire_delayed, held, 0);
	else if (held->task->asleep && held->task->sleep == held->sleep)
		make_ready(sim, held->task);
}

/* A record of the hold k; *due: when it ends at the latest. NULL: no room, it ends then and not
 * before. */
static struct held *new_delayed(struct sim *sim, unsigned k, uint64_t *due)
{
	if (k == DELAY_SWITCH)
		for (unsigned i = 0; i < sim->holds; i++)
			let_go(sim, &sim->held[i]);
	*due = (sim->rest_at > sim->now ? sim->rest_at : sim->now) + REST_NS;
	sim->rest_at = *due;
	if (sim->holds == SIM_DELAYS)
		return NULL;
	struct held *held = &sim->held[sim->holds++];
	*held = (struct held){0};
	return held;
}

uint64_t sim_delay(struct sim *sim, uint64_t chain, unsigned k, uint64_t delay_ns, sim_fn *fn,
		   void *arg)
{
	uint64_t due = sim->now + delay_ns + (k < DELAY_QUIESCENCE ? choice_delay_ns(k) : 0);
	struct held *held = k < DELAY_QUIESCENCE ? NULL : new_delayed(sim, k, &due);
	if (!held) {
		push(sim, chain, due, fn, arg, 0);
		return due;
	}
	held->fn = fn;
	held->arg = arg;
	push(sim, chain, due, fire_delayed, held, 0);
	return due;
}

/* The current task stands still. */
static void delay_task(struct sim *sim, unsigned k)
{
	struct task *task = sim->running;
	uint64_t due;
	if (k < DELAY_QUIESCENCE) {
		sim_sleep(sim, choice_delay_ns(k));
		return;
	}
	struct held *held = new_delayed(sim, k, &due);
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

uint32_t sim_delayed(const struct sim *sim, bool *any)
{
	uint32_t held = 0;
	*any = false;
	for (unsigned i = 0; i < sim->holds; i++) {
		held |= (uint32_t)!sim->held[i].over << i;
		*any |= !sim->held[i].let_go;
	}
	return held;
}

/* --- sleeping --- */

void sim_sleep(struct sim *sim, uint64_t ns)
{
	sim->running->idles = 0; /* a completion does not end a sleep */
	sleep_until_woken(
		sim, ns < choice_delay_ns(DELAY_FOREVER) ? ns : choice_delay_ns(DELAY_FOREVER));
}

void sim_idle_on(struct sim *sim, const void *key)
{
	struct task *task = sim->running;
	if (!task)
		return;
	for (unsigned i = 0; i < task->idles; i++)
		if (task->idle[i] == key)
			return;
	if (task->idles < IDLE_KEYS)
		task->idle[task->idles++] = key;
}

void sim_wake(struct sim *sim, const void *key)
{
	for (unsigned t = 0; t < sim->tasks; t++) {
		struct task *task = &sim->task[t];
		for (unsigned i = 0; i < task->idles; i++) {
			if (task->idle[i] != key)
				continue;
			task->backoff_ns = POLL_NS;
			task->idles = 0;
			if (task->asleep)
				make_ready(sim, task);
			break;
		}
	}
}

void sim_yield(struct sim *sim)
{
	struct task *task = sim->running;
	if (!task)
		return;
	uint64_t wait = task->backoff_ns;
	task->backoff_ns = wait < POLL_MAX_NS / 2 ? 2 * wait : POLL_MAX_NS;
	/* A task that waits for nothing in particular polls memory: soon again. */
	sleep_until_woken(sim, task->idles ? wait : 200);
}

void sim_spend_step(struct sim *sim)
{
	if (sim->step_budget-- == 0)
		sim_abandon(sim, SIM_FUEL);
}

/* What is due at the current task's step happens before it. */
static void run_due(struct sim *sim)
{
	while (sim->stopping || (sim->heap_len && sim->heap[0].due <= sim->now)) {
		if (sim->stopping)
			leave_first(sim);
		else
			dispatch(sim);
	}
	if (sim->anywhere)
		sim_power_fails_here(sim, CRASH_ANYWHERE);
}

/* May the current task be held at its nth step of that kind? */
static void hold_at_step(struct sim *sim, enum step_kind kind, uint32_t nth)
{
	struct task *task = sim->running;
	struct choice_point at = {.kind = CHOICE_STEP,
				  .who = &task->actor,
				  .op = task->actor.op,
				  .occurrence = task->actor.occurrence,
				  .a = kind,
				  .b = nth};
	unsigned k = sim_choose(sim, &at, task->host == HOST_SERVER ? DELAYS : DELAYS + 1);
	if (k == DELAY_FOREVER) {
		kill_tasks(sim, task->host);
		if (sim->death)
			sim->death(sim->death_arg, task->host);
	}
	if (k)
		delay_task(sim, k);
}

/* Stores take thousands of steps at which nothing is due and nobody is asked. */
void sim_step(struct sim *sim, enum step_kind kind, unsigned cost_ns)
{
	struct task *task = sim->running;
	if (!task)
		return;
	sim->now += cost_ns;
	uint32_t nth = ++task->actor.count[COUNT_STEP + kind];
	if (sim->step_budget-- == 0)
		sim_abandon(sim, SIM_FUEL);
	if (sim->scheduler)
		return;
	if (sim->stopping || sim->anywhere || (sim->heap_len && sim->heap[0].due <= sim->now))
		run_due(sim);
	if (!skips(sim->source, CHOICE_STEP))
		hold_at_step(sim, kind, nth);
}

void sim_begin(struct sim *sim)
{
	struct task *task = sim->running;
	if (!sim->source || !sim->source->begins)
		return;
	struct choice_point at = {.kind = CHOICE_STEP,
				  .who = &task->actor,
				  .op = task->actor.op,
				  .occurrence = task->actor.occurrence,
				  .a = STEP_BEGIN,
				  .b = ++task->actor.count[COUNT_STEP + STEP_BEGIN]};
	unsigned k = sim_choose(sim, &at, 1);
	if (k)
		delay_task(sim, k);
}

/* --- a scheduler in the clock's place --- */

void sim_set_scheduler(struct sim *sim, struct scheduler *scheduler)
{
	sim->scheduler = scheduler;
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
	make_ready(sim, task);
	leave(sim);
}

/* A thing that is the nth of several, as one number. */
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

/* Take the event at heap[i] out: the queue is looked through by the scheduler only, its order may
 * go. */
static struct event take_event(struct sim *sim, unsigned i)
{
	struct event event = sim->heap[i];
	memmove(&sim->heap[i], &sim->heap[i + 1], (--sim->heap_len - i) * sizeof(event));
	return event;
}

static void run_task(struct sim *sim, unsigned nth)
{
	struct task *task = sim->ready[(sim->ready_first + nth) % SIM_TASKS];
	for (; nth; nth--)
		sim->ready[(sim->ready_first + nth) % SIM_TASKS] =
			sim->ready[(sim->ready_first + nth - 1) % SIM_TASKS];
	sim->ready_first = (sim->ready_first + 1) % SIM_TASKS;
	sim->ready_len--;
	sim->events++;
	sim->running = task;
	fiber_switch(&sim->main_fiber, &task->fiber);
	sim->running = NULL;
}

/* What could come next: the ready tasks, then each chain's oldest event, in the order of their
 * asking. */
static unsigned list_turns(const struct sim *sim, uint64_t chain[SIM_TURNS],
			   unsigned event[SIM_TURNS])
{
	unsigned n = 0;
	for (unsigned i = 0; i < sim->ready_len; i++)
		chain[n++] = chain_name(
			sim->ready[(sim->ready_first + i) % SIM_TASKS]->actor.name_hash,
			CHAIN_TASK);
	for (unsigned i = 0; i < sim->heap_len; i++) {
		const struct event *e = &sim->heap[i];
		unsigned k = sim->ready_len;
		while (k < n && chain[k] != e->chain)
			k++;
		assert(k < SIM_TURNS);
		if (k == n)
			event[n++] = i;
		else if (e->seq < sim->heap[event[k]].seq)
			event[k] = i;
		chain[k] = e->chain;
	}
	return n;
}

/* The turn of a chain that has one. */
static void run_known(struct sim *sim, uint64_t chain)
{
	unsigned oldest = sim->heap_len;
	for (unsigned i = 0; i < sim->ready_len && chain_kind(chain) == CHAIN_TASK; i++) {
		const struct task *task = sim->ready[(sim->ready_first + i) % SIM_TASKS];
		if (chain_name(task->actor.name_hash, CHAIN_TASK) == chain) {
			run_task(sim, i);
			return;
		}
	}
	for (unsigned i = 0; i < sim->heap_len; i++)
		if (sim->heap[i].chain == chain &&
		    (oldest == sim->heap_len || sim->heap[i].seq < sim->heap[oldest].seq))
			oldest = i;
	assert(oldest < sim->heap_len); /* the same program does the same */
	run_event(sim, take_event(sim, oldest));
}

static void run_picked(struct sim *sim)
{
	uint64_t chain[SIM_TURNS];
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
		run_task(sim, k);
	else
		run_event(sim, take_event(sim, event[k]));
}

/* --- running --- */

void sim_stop(struct sim *sim, enum sim_end end)
{
	if (!sim->stopping)
		sim->end = end;
	sim->stopping = true;
}

void sim_abandon(struct sim *sim, enum sim_end end)
{
	struct task *task = sim->running;
	assert(task);
	if (sim->stopping)
		sim->stopping = false; /* a fault while stopping is the stronger end */
	sim_stop(sim, end);
	task->used = false;
	fiber_exit(&task->fiber, &sim->main_fiber);
}

enum sim_end sim_run(struct sim *sim)
{
	struct sim *outer = current;
	void *outer_memory = sim_memory;
	if (!outer)
		give_signal_stack();
	current = sim;
	sim_memory = sim->memory;
	assert(!sim->running);
	sim->stopping = false;
	sim->main_fiber = (struct fiber){
		0}; /* a simulation may run on another stack than last time */
	while (!sim->stopping) {
		if (sim->scheduler) {
			run_picked(sim);
		} else if (sim->ready_len) {
			run_task(sim, 0);
		} else if (sim->heap_len) {
			if (sim->heap[0].due >= UINT64_MAX / 8)
				sim_stop(sim, SIM_IDLE); /* only what is held for ever is left */
			else if (sim->step_budget-- == 0)
				sim_stop(sim, SIM_FUEL);
			else
				dispatch(sim);
		} else {
			sim_stop(sim, SIM_IDLE);
		}
	}
	current = outer;
	sim_memory = outer_memory;
	return sim->end;
}

/* --- choices, hash, story --- */

bool sim_plain(const struct sim *sim)
{
	return !sim->source;
}

void sim_let_calls_fail(struct sim *sim, bool on)
{
	sim->calls_fail = on;
}

bool sim_calls_fail(const struct sim *sim)
{
	return sim->calls_fail;
}

unsigned sim_choose(struct sim *sim, const struct choice_point *at, unsigned n)
{
	assert(n >= 1);
	if (skips(sim->source, at->kind))
		return 0;
	unsigned answer = sim->source->answer(sim->source, at, n);
	assert(choice_allows(at->kind, n, answer));
	if (answer)
		sim_mix(sim, choice_key(at), answer);
	return answer;
}

bool sim_power_fails(struct sim *sim, const struct choice_point *at)
{
	/* Several lines land in one event: after the power failed no further one does. */
	if (sim->stopping && sim->end == SIM_POWER)
		return true;
	if (sim->settle)
		sim->settle(sim->settle_arg);
	if (sim_choose(sim, at, 2)) {
		if (sim->running)
			sim_abandon(sim, SIM_POWER);
		sim_stop(sim, SIM_POWER);
		return true;
	}
	if (sim->observer)
		sim->observer(sim->observer_arg, at);
	return false;
}

bool sim_power_fails_here(struct sim *sim, enum crash_place place)
{
	struct actor *actor = sim_actor(sim);
	struct choice_point at = {.kind = CHOICE_CRASH, .a = place};
	if (!sim->source && !sim->observer)
		return false;
	if (actor) {
		at.who = actor;
		at.op = actor->op;
		at.occurrence = actor->occurrence;
		at.b = ++actor->count[COUNT_CRASH + place];
	} else if (place == CRASH_ANYWHERE) {
		at.b = ++sim->anywhere_events;
	}
	return sim_power_fails(sim, &at);
}

bool sim_on_stack(const struct sim *sim, const void *addr)
{
	return sim->running && (uintptr_t)addr - (uintptr_t)sim->running->fiber.stack <
				       sim->running->fiber.stack_bytes;
}

void sim_touch(struct sim *sim, enum touch what, uint64_t where, uint64_t len)
{
	struct source *source = sim->source;
	if (sim->scheduler)
		sim->scheduler->touched(sim->scheduler, what, where, len);
	else if (source && source->touched)
		source->touched(source, sim_actor(sim), what, where, len);
}

void sim_mix(struct sim *sim, uint64_t a, uint64_t b)
{
	sim->hash = (sim->hash ^ (a * 0x9e3779b97f4a7c15u + b)) * 0xd6e8feb86659fd93u;
	sim->hash ^= sim->hash >> 29;
}

void sim_mix_bytes(struct sim *sim, const void *bytes, size_t len)
{
	sim_mix(sim, XXH3_64bits(bytes, len), len);
}

uint64_t sim_hash(const struct sim *sim)
{
	return sim->hash;
}

void sim_set_tracer(struct sim *sim, sim_tracer *tracer, void *arg)
{
	sim->tracer = tracer;
	sim->tracer_arg = arg;
}

bool sim_tracing(const struct sim *sim)
{
	return sim->tracer;
}

static void tell(struct sim *sim, const struct actor *who, uintptr_t pc, const struct traced *about,
		 const char *fmt, va_list ap)
{
	char text[512];
	vsnprintf(text, sizeof(text), fmt, ap);
	sim->tracer(sim->tracer_arg, sim, who, pc, about, text);
}

void sim_trace(struct sim *sim, const struct actor *who, uintptr_t pc, const char *fmt, ...)
{
	static const struct traced words;
	va_list ap;
	if (!sim->tracer)
		return;
	va_start(ap, fmt);
	tell(sim, who, pc, &words, fmt, ap);
	va_end(ap);
}

void sim_trace_event(struct sim *sim, const struct actor *who, uintptr_t pc,
		     const struct traced *about, const char *fmt, ...)
{
	va_list ap;
	if (!sim->tracer)
		return;
	va_start(ap, fmt);
	tell(sim, who, pc, about, fmt, ap);
	va_end(ap);
}

/* --- rt.h for tasks of the sim world --- */

int rt_spawn(const char *name, void (*fn)(void *), void *arg)
{
	return sim_fails(FAIL_SPAWN) ? -EAGAIN
				     : sim_spawn(current, sim_host(current), name, fn, arg);
}

void rt_yield(void)
{
	sim_yield(current);
}

void rt_sleep(uint64_t ns)
{
	sim_sleep(current, ns);
}

uint64_t rt_now(void)
{
	return current->now;
}

int rt_listen(rt_accept_fn *fn, void *arg)
{
	if (current->accept || sim_fails(FAIL_LISTEN))
		return -EADDRINUSE;
	current->accept = fn;
	current->accept_arg = arg;
	return 0;
}

int rt_connect(const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	if (!current->accept || sim_fails(FAIL_CONNECT))
		return -ECONNREFUSED;
	if (sim_fails(FAIL_ACCEPT))
		return -EUSERS;
	return current->accept(current->accept_arg, req, req_len, rsp, rsp_len);
}
