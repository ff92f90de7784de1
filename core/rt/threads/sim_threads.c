/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads of a simulation: records, steps, waiting. See sim_threads.h.
 *
 * A thread that has to wait says so in its record and sleeps without an event of its own; the
 * thread that makes free what it waits for wakes it. Nothing comes between the two, so that no
 * wake-up is lost. Once woken it takes another step, at which it may be delayed, and looks again:
 * what it was woken for may be gone.
 *
 * Threads that wait for each other in a circle are found when the last of them begins to wait. A
 * wait with a deadline closes no circle.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "core/rt/threads/sim_threads.h"

struct threads *threads_of(struct sim *sim)
{
	if (!sim->threads)
		sim->threads = sim_alloc(sim, sizeof(*sim->threads));
	return sim->threads;
}

struct thread *thread_new(struct sim *sim)
{
	struct threads *threads = threads_of(sim);
	struct thread *thread = threads->spare;
	if (threads->serials == SERIAL_MAX)
		return NULL;
	if (thread) {
		threads->spare = thread->next;
		*thread = (struct thread){.hold = thread->hold,
					  .hold_room = thread->hold_room,
					  .value = thread->value,
					  .values = thread->values};
		if (thread->values)
			memset(thread->value, 0, thread->values * sizeof(*thread->value));
	} else {
		thread = sim_alloc(sim, sizeof(*thread));
	}
	thread->serial = ++threads->serials;
	thread->next = threads->first;
	threads->first = thread;
	return thread;
}

static void unlink_thread(struct threads *threads, const struct thread *thread)
{
	struct thread **link = &threads->first;
	while (*link != thread)
		link = &(*link)->next;
	*link = thread->next;
}

void thread_forget(struct sim *sim, struct thread *thread)
{
	struct threads *threads = threads_of(sim);
	assert(thread->ended && !thread->task);
	if (thread->holds)
		return; /* to be named when someone waits for that */
	unlink_thread(threads, thread);
	thread->next = threads->spare;
	threads->spare = thread;
}

struct thread *thread_self(struct sim *sim)
{
	struct task *task = sim->running;
	assert(task);
	if (task->thread)
		return task->thread;
	struct thread *thread = thread_new(sim);
	if (!thread)
		sync_fault(sim, 0, "more than %u threads", SERIAL_MAX);
	thread->task = task;
	thread->host = task->host;
	thread->begun = thread->detached = true;
	task->thread = thread;
	return thread;
}

struct thread *thread_find(struct sim *sim, pthread_t serial)
{
	struct thread *thread = threads_of(sim)->first;
	while (thread && thread->serial != serial)
		thread = thread->next;
	return thread;
}

const char *thread_actor(const struct thread *thread)
{
	return thread->task ? thread->task->actor.name : thread->actor;
}

/* --- messages --- */

const char *sync_name(struct sync what, char name[SYNC_NAME])
{
	static const char *const words[SYNC_KINDS] = {
		"mutex",   "spin lock", "read-write lock", "once", "condition variable",
		"barrier", "semaphore", "end of"};
	if (what.kind == SYNC_END)
		snprintf(name, SYNC_NAME, "end of %s", thread_actor(what.at));
	else
		snprintf(name, SYNC_NAME, "%s #%u", words[what.kind], what.number);
	return name;
}

void sync_fault(struct sim *sim, uintptr_t pc, const char *fmt, ...)
{
	char text[sizeof(sim->fault)];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sim_set_fault(sim, pc, text);
	sim->fault_said = true;
	sim_abandon(sim, SIM_FAULT);
}

void sync_trace(struct sim *sim, uintptr_t pc, const char *does, struct sync what)
{
	char name[SYNC_NAME];
	if (sim_tracing(sim))
		sim_trace(sim, sim_actor(sim), pc, "%s %s", does, sync_name(what, name));
}

struct sync sync_named(struct sim *sim, const void *at, uint32_t *number, enum sync_kind kind)
{
	unsigned host = sim->running->code_host;
	assert(host < SIM_HOSTS && kind < SYNC_END);
	if (!*number)
		*number = ++threads_of(sim)->process[host].numbers[kind];
	return (struct sync){at, *number, (uint8_t)host, (uint8_t)kind};
}

/* --- steps --- */

static void step(struct sim *sim, const void *at, const char *type, uintptr_t pc)
{
	assert(sim && sim->running);
	sim_commit_pending(sim);
	if (sim->scheduler)
		sim_turn(sim);
	sim_step(sim, STEP_LOCK, sim->run.cost->lock);
	if (sim->locked && !sim->locked(sim->locked_arg, at, pc))
		sync_fault(sim, pc, "a %s in persistent memory, which would survive its process",
			   type);
}

struct thread *sync_step(struct sim *sim, const void *at, size_t len, const char *type,
			 uintptr_t pc)
{
	step(sim, at, type, pc);
	sim_saw(sim, TOUCH_DRAM_WRITE, (uintptr_t)at, at, len);
	sim_touch_state(sim, TOUCH_DRAM_WRITE, at, len);
	return thread_self(sim);
}

struct thread *sync_new(struct sim *sim, void *at, size_t len, const char *type, uintptr_t pc)
{
	step(sim, at, type, pc);
	memset(at, 0, len);
	sim_touch_state(sim, TOUCH_DRAM_WRITE, at, len);
	return thread_self(sim);
}

/* --- locks that threads hold --- */

static struct hold *find_hold(const struct thread *thread, struct sync what)
{
	for (unsigned i = thread->holds; i-- > 0;)
		if (sync_is(&thread->hold[i].what, &what))
			return &thread->hold[i];
	return NULL;
}

void sync_hold(struct sim *sim, struct thread *thread, struct sync what)
{
	struct hold *hold = find_hold(thread, what);
	if (hold && hold->what.kind == SYNC_RWLOCK && what.kind == SYNC_RWLOCK) {
		hold->times++;
		return;
	}
	if (hold) { /* what was there before has been freed while it was held */
		*hold = (struct hold){what, 1};
		return;
	}
	if (thread->holds == thread->hold_room) {
		unsigned room = thread->hold_room ? 2 * thread->hold_room : 8;
		struct hold *grown = sim_alloc(sim, room * sizeof(*grown));
		if (thread->holds)
			memcpy(grown, thread->hold, thread->holds * sizeof(*grown));
		thread->hold = grown;
		thread->hold_room = room;
	}
	thread->hold[thread->holds++] = (struct hold){what, 1};
}

void sync_release(struct thread *thread, struct sync what)
{
	struct hold *hold = find_hold(thread, what);
	if (!hold || --hold->times)
		return;
	unsigned after = (unsigned)(thread->hold + --thread->holds - hold);
	memmove(hold, hold + 1, after * sizeof(*hold));
}

uint32_t sync_holds(const struct sim *sim, const struct thread *thread, struct sync what)
{
	const struct hold *hold = find_hold(thread, what);
	if (!hold)
		return 0;
	/* Only this host's memory can be looked at. */
	if (what.host == sim->running->code_host && !lock_held_by(&hold->what, thread->serial))
		return 0;
	return hold->times;
}

uint32_t sync_held(const struct sim *sim, struct sync what)
{
	uint32_t times = 0;
	for (const struct thread *thread = sim->threads->first; thread; thread = thread->next)
		times += sync_holds(sim, thread, what);
	return times;
}

bool sync_is_gone(struct sim *sim, uint32_t serial)
{
	return !thread_find(sim, serial);
}

/* Does the one wait for something that only the other can give? */
static bool waits_for(const struct sim *sim, const struct thread *one, const struct thread *other)
{
	if (!one->waits.at || one->timed)
		return false;
	return one->waits.kind == SYNC_END ? one->waits.at == other
					   : sync_holds(sim, other, one->waits) > 0;
}

/* --- deadlocks --- */

/* "c1/a holds mutex #1 and waits for mutex #2", where the one before it in the circle waits for
 * what it holds. */
static size_t say_link(char *text, size_t size, const struct thread *before,
		       const struct thread *thread)
{
	char held[SYNC_NAME], wanted[SYNC_NAME];
	const char *who = thread_actor(thread);
	const char *to = sync_name(thread->waits, wanted);
	const char *the = thread->waits.kind == SYNC_END ? "the " : "";
	int len;
	if (sync_is(&before->waits, &thread->waits))
		len = snprintf(text, size, "%s holds %s and waits for it", who, to);
	else if (before->waits.kind == SYNC_END)
		len = snprintf(text, size, "%s waits for %s%s", who, the, to);
	else
		len = snprintf(text, size, "%s holds %s and waits for %s%s", who,
			       sync_name(before->waits, held), the, to);
	return len < 0 ? 0 : (size_t)len < size ? (size_t)len : size - 1;
}

static _Noreturn void say_circle(struct sim *sim, struct thread *const *circle, unsigned n,
				 uintptr_t pc)
{
	char text[sizeof(sim->fault)];
	unsigned first = 0;
	size_t len = (size_t)snprintf(text, sizeof(text), "deadlock: ");
	/* A circle is told in the same words, whichever thread closes it. */
	for (unsigned i = 1; i < n; i++)
		if (strcmp(thread_actor(circle[i]), thread_actor(circle[first])) < 0)
			first = i;
	for (unsigned i = 0; i < n; i++) {
		const struct thread *thread = circle[(first + i) % n];
		const struct thread *before = circle[(first + i + n - 1) % n];
		if (i)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "; ");
		if (len >= sizeof(text) - 1)
			break;
		len += say_link(text + len, sizeof(text) - len, before, thread);
	}
	sync_fault(sim, pc, "%s", text);
}

/* Is there a way from the last of these n threads, each waiting for the next, to the first? */
static void follow(struct sim *sim, struct thread **circle, unsigned n, uintptr_t pc)
{
	struct thread *last = circle[n - 1];
	for (struct thread *other = sim->threads->first; other; other = other->next) {
		unsigned i = 0;
		if (!waits_for(sim, last, other))
			continue;
		if (other == circle[0])
			say_circle(sim, circle, n, pc);
		while (i < n && circle[i] != other)
			i++;
		if (i < n || n == SIM_TASKS)
			continue;
		circle[n] = other;
		follow(sim, circle, n + 1, pc);
	}
}

/* The current thread waits for something without a deadline. */
static void find_deadlock(struct sim *sim, struct thread *thread, uintptr_t pc)
{
	struct thread *circle[SIM_TASKS] = {thread};
	char name[SYNC_NAME];
	for (const struct thread *other = sim->threads->first; other; other = other->next)
		if (other->ended && thread->waits.kind != SYNC_END && waits_for(sim, thread, other))
			sync_fault(sim, pc,
				   "deadlock: %s waits for %s, which %s held when it ended",
				   thread_actor(thread), sync_name(thread->waits, name),
				   thread_actor(other));
	follow(sim, circle, 1, pc);
}

void sync_leave(struct sim *sim, struct thread *thread, uintptr_t pc)
{
	char name[SYNC_NAME];
	for (const struct thread *other = sim->threads->first; other; other = other->next)
		if (other->waits.kind != SYNC_END && waits_for(sim, other, thread))
			sync_fault(sim, pc,
				   "deadlock: %s waits for %s, which %s held when it ended",
				   thread_actor(other), sync_name(other->waits, name),
				   thread_actor(thread));
}

/* --- waiting --- */

bool sync_wait(struct sim *sim, struct thread *thread, struct sync what, uint64_t deadline,
	       uintptr_t pc)
{
	assert(thread->task == sim->running && !thread->waits.at && what.at);
	thread->waits = what;
	thread->timed = deadline != NEVER;
	thread->woken.at = NULL;
	if (!thread->turn)
		thread->turn = ++threads_of(sim)->turns;
	if (!thread->timed)
		find_deadlock(sim, thread, pc);
	sync_trace(sim, pc, "waits for", what);
	thread->task->idles = 0; /* a completion does not end it */
	if (!thread->timed || sim->scheduler)
		sim_sleep_for_waker(sim);
	else
		sim_sleep_until_woken(sim, deadline > sim->run.now ? deadline - sim->run.now : 0);
	bool woken = !thread->waits.at;
	thread->waits.at = NULL;
	if (thread->bereft) {
		thread->bereft = false;
		sync_waited(thread);
		longjmp(*thread->task->refused, 1);
	}
	return woken;
}

static void wake(struct sim *sim, struct thread *thread)
{
	assert(thread->task->asleep || thread->task->dead);
	thread->woken = thread->waits;
	thread->waits.at = NULL;
	sim_make_ready(sim, thread->task);
}

/* The first to wait among the threads that wait for it. */
static struct thread *first_waiting(struct sim *sim, struct sync what)
{
	struct thread *first = NULL;
	for (struct thread *thread = threads_of(sim)->first; thread; thread = thread->next)
		if (sync_is(&thread->waits, &what) && thread->task->asleep &&
		    (!first || thread->turn < first->turn))
			first = thread;
	return first;
}

void sync_wake(struct sim *sim, struct sync what)
{
	struct thread *first = first_waiting(sim, what);
	if (first)
		wake(sim, first);
}

void sync_wake_all(struct sim *sim, struct sync what)
{
	struct thread *first;
	while ((first = first_waiting(sim, what)))
		wake(sim, first);
}

bool sync_waited_for(struct sim *sim, struct sync what)
{
	return first_waiting(sim, what);
}

void sync_gives_way(struct sim *sim, const struct thread *thread, struct sync what)
{
	const struct thread *other = threads_of(sim)->first;
	if (sync_is(&thread->woken, &what) || sim->scheduler)
		return;
	while (other && !sync_is(&other->woken, &what))
		other = other->next;
	if (other)
		sim_sleep(sim, 0);
}

void sync_waited(struct thread *thread)
{
	thread->woken.at = NULL;
	thread->turn = 0;
}

int sync_deadline(clockid_t clock, const struct timespec *at, uint64_t *deadline)
{
	int64_t seconds = at->tv_sec;
	if ((clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) || at->tv_nsec < 0 ||
	    at->tv_nsec >= 1000000000)
		return EINVAL;
	if (clock == CLOCK_REALTIME && seconds >= 0)
		seconds -= (int64_t)sim_epoch(sim_of_thread);
	*deadline = 0;
	if (seconds >= 0 && (uint64_t)seconds < UINT64_MAX / 8 / 1000000000)
		*deadline = (uint64_t)seconds * 1000000000 + (uint64_t)at->tv_nsec;
	else if (seconds > 0)
		*deadline = UINT64_MAX / 8;
	return 0;
}

/* --- the ends of processes --- */

/* A thread of another host, in the code of the process that has ended. */
static void bereave(struct sim *sim, struct thread *thread, unsigned host)
{
	unsigned left = 0;
	for (unsigned i = 0; i < thread->holds; i++)
		if (thread->hold[i].what.host != host)
			thread->hold[left++] = thread->hold[i];
	thread->holds = left;
	if (!thread->waits.at || thread->waits.host != host || !thread->task->refused)
		return;
	thread->bereft = true;
	wake(sim, thread);
}

void sim_threads_ended(struct sim *sim, unsigned host)
{
	struct threads *threads = sim->threads;
	struct thread *dead = NULL;
	if (!threads)
		return;
	for (struct thread **link = &threads->first, *thread; (thread = *link);) {
		if (thread->host != host) {
			bereave(sim, thread, host);
			link = &thread->next;
			continue;
		}
		*link = thread->next;
		thread->next = dead;
		dead = thread;
		/* The task that goes on is the first thread of a new process. */
		if (thread->task)
			thread->task->thread = NULL;
	}
	/* A task of a client runs the server's function when it connects, and may have met the
	 * server's locks there: they are free now. */
	for (; dead; dead = dead->next) {
		for (unsigned i = 0; i < dead->holds; i++)
			if (dead->hold[i].what.host != host)
				sync_wake_all(sim, dead->hold[i].what);
		if (dead->woken.at && dead->woken.host != host)
			sync_wake_all(sim, dead->woken);
	}
	if (host < SIM_HOSTS)
		memset(&threads->process[host], 0, sizeof(threads->process[host]));
}
