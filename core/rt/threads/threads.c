/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads: how they begin and end, their attributes, their own data. See threads.h. */
#include "core/rt/threads/threads.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include "core/rt/threads/sim_threads.h"

/* --- attributes --- */

struct attr {
	int detached;
	size_t stack, guard;
};
_Static_assert(sizeof(struct attr) <= sizeof(pthread_attr_t), "fits into glibc's");

int sim_pthread_attr_init(pthread_attr_t *attr)
{
	struct attr *a = (struct attr *)attr;
	memset(attr, 0, sizeof(*attr));
	a->detached = PTHREAD_CREATE_JOINABLE;
	a->stack = FIBER_STACK_BYTES;
	return 0;
}

int sim_pthread_attr_destroy(pthread_attr_t *attr)
{
	memset(attr, 0, sizeof(*attr));
	return 0;
}

int sim_pthread_attr_setdetachstate(pthread_attr_t *attr, int state)
{
	if (state != PTHREAD_CREATE_JOINABLE && state != PTHREAD_CREATE_DETACHED)
		return EINVAL;
	((struct attr *)attr)->detached = state;
	return 0;
}

int sim_pthread_attr_getdetachstate(const pthread_attr_t *attr, int *state)
{
	*state = ((const struct attr *)attr)->detached;
	return 0;
}

int sim_pthread_attr_setstacksize(pthread_attr_t *attr, size_t bytes)
{
	if (bytes < (size_t)PTHREAD_STACK_MIN)
		return EINVAL;
	((struct attr *)attr)->stack = bytes;
	return 0;
}

int sim_pthread_attr_getstacksize(const pthread_attr_t *attr, size_t *bytes)
{
	*bytes = ((const struct attr *)attr)->stack;
	return 0;
}

int sim_pthread_attr_setguardsize(pthread_attr_t *attr, size_t bytes)
{
	((struct attr *)attr)->guard = bytes;
	return 0;
}

int sim_pthread_attr_setaffinity_np(pthread_attr_t *attr, size_t bytes, const cpu_set_t *set)
{
	(void)attr, (void)bytes, (void)set;
	return 0;
}

/* --- beginning --- */

static void thread_main(void *arg)
{
	struct thread *thread = arg;
	thread->begun = true;
	thread->result = thread->fn(thread->arg);
}

static bool is_taken(const struct sim *sim, const struct task *task)
{
	for (unsigned t = 0; t < sim->tasks; t++)
		if (task_at(sim, t) != task && task_at(sim, t)->host == task->host &&
		    !strcmp(task_at(sim, t)->actor.name, task->actor.name))
			return true;
	return false;
}

int sim_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	struct sim *sim = sim_of_thread;
	unsigned host = sim->running->code_host;
	uint32_t *made = &threads_of(sim)->process[host].threads;
	struct task *task;
	if (sim_fails(FAIL_SPAWN))
		return EAGAIN;
	struct thread *thread = thread_new(sim);
	if (!thread)
		return EAGAIN;
	thread->created = true;
	thread->detached = attr && ((const struct attr *)attr)->detached == PTHREAD_CREATE_DETACHED;
	thread->fn = fn;
	thread->arg = arg;
	if (sim_new_task(sim, host, "thread", *made + 1, thread_main, thread, &task)) {
		thread->ended = true;
		thread_forget(sim, thread);
		return EAGAIN;
	}
	++*made;
	/* Another one was given this name. */
	while (!sim->scheduler && is_taken(sim, task))
		sim_name_actor(sim, &task->actor, host, "thread", ++*made);
	thread->task = task;
	thread->host = host;
	task->thread = thread;
	task->of_store = true;
	*out = thread->serial;
	if (sim_tracing(sim))
		sim_trace(sim, sim_actor(sim), PC, "creates %s", task->actor.name);
	/* The new one may come before what its creator does next. */
	sync_step(sim, &thread->serial, sizeof(thread->serial), "thread", PC);
	return 0;
}

/* --- data of its own --- */

int sim_pthread_key_create(pthread_key_t *out, void (*destructor)(void *))
{
	struct sim *sim = sim_of_thread;
	struct threads *threads = threads_of(sim);
	unsigned key = 0;
	while (key < threads->keys && threads->key[key].used)
		key++;
	if (key == PTHREAD_KEYS_MAX)
		return EAGAIN;
	if (key == threads->key_room) {
		unsigned room = key ? 2 * key : 16;
		struct key *grown = sim_alloc(sim, room * sizeof(*grown));
		if (key)
			memcpy(grown, threads->key, key * sizeof(*grown));
		threads->key = grown;
		threads->key_room = room;
	}
	/* A new key has no value in any thread. */
	for (struct thread *thread = threads->first; thread; thread = thread->next)
		if (key < thread->values)
			thread->value[key] = NULL;
	threads->key[key] = (struct key){true, destructor};
	if (key == threads->keys)
		threads->keys++;
	*out = key;
	return 0;
}

static bool is_key(const struct threads *threads, pthread_key_t key)
{
	return key < threads->keys && threads->key[key].used;
}

int sim_pthread_key_delete(pthread_key_t key)
{
	struct threads *threads = threads_of(sim_of_thread);
	if (!is_key(threads, key))
		return EINVAL;
	threads->key[key].used = false;
	return 0;
}

int sim_pthread_setspecific(pthread_key_t key, const void *value)
{
	struct sim *sim = sim_of_thread;
	struct threads *threads = threads_of(sim);
	struct thread *thread = thread_self(sim);
	if (!is_key(threads, key))
		return EINVAL;
	if (key >= thread->values) {
		void **grown = sim_alloc(sim, threads->key_room * sizeof(*grown));
		if (thread->values)
			memcpy(grown, thread->value, thread->values * sizeof(*grown));
		thread->value = grown;
		thread->values = threads->key_room;
	}
	thread->value[key] = (void *)(uintptr_t)value;
	return 0;
}

void *sim_pthread_getspecific(pthread_key_t key)
{
	struct sim *sim = sim_of_thread;
	const struct thread *thread = thread_self(sim);
	return is_key(threads_of(sim), key) && key < thread->values ? thread->value[key] : NULL;
}

int sim_cxa_thread_atexit(void (*destructor)(void *), void *object, void *dso)
{
	struct sim *sim = sim_of_thread;
	struct thread *thread = thread_self(sim);
	struct at_exit *at_exit = sim_alloc(sim, sizeof(*at_exit));
	*at_exit = (struct at_exit){thread->at_exit, destructor, object};
	thread->at_exit = at_exit;
	return 0;
}

static void run_destructors(const struct threads *threads, struct thread *thread)
{
	for (struct at_exit *at_exit; (at_exit = thread->at_exit);) {
		thread->at_exit = at_exit->next;
		at_exit->fn(at_exit->arg);
	}
	bool again = true;
	for (unsigned round = 0; again && round < PTHREAD_DESTRUCTOR_ITERATIONS; round++) {
		again = false;
		for (unsigned key = 0; key < thread->values; key++) {
			void *value = thread->value[key];
			if (!value || !is_key(threads, key) || !threads->key[key].destructor)
				continue;
			thread->value[key] = NULL;
			threads->key[key].destructor(value);
			again = true;
		}
	}
}

/* --- ending --- */

static struct sync end_of(const struct thread *thread)
{
	return (struct sync){.at = thread, .host = (uint8_t)thread->host, .kind = SYNC_END};
}

void sim_thread_returns(struct sim *sim)
{
	struct thread *thread = sim->running->thread;
	struct task *task = thread->task;
	assert(task == sim->running);
	if (task->of_store)
		run_destructors(threads_of(sim), thread);
	sync_step(sim, &thread->serial, sizeof(thread->serial), "thread", 0);
	sync_leave(sim, thread, 0);
	memcpy(thread->actor, task->actor.name, sizeof(thread->actor));
	thread->task = NULL;
	thread->ended = true;
	task->thread = NULL;
	task->again = thread->created;
	sync_wake_all(sim, end_of(thread));
	if (thread->detached)
		thread_forget(sim, thread);
}

void sim_pthread_exit(void *result)
{
	struct sim *sim = sim_of_thread;
	thread_self(sim)->result = result;
	sim->running->of_store = true; /* it is the store that ends it */
	sim_thread_returns(sim);
	sim_end_task(sim);
}

int thread_join(pthread_t serial, void **result, uint64_t deadline, uintptr_t pc)
{
	struct sim *sim = sim_of_thread;
	struct thread *self = thread_self(sim), *thread = thread_find(sim, serial);
	if (!thread)
		return ESRCH;
	if (thread == self)
		return EDEADLK;
	sync_step(sim, &thread->serial, sizeof(thread->serial), "thread", pc);
	/* During the step another thread may have waited for it. */
	if (thread->serial != serial || (thread->ended && thread->joined))
		return ESRCH;
	if (thread->detached || thread->joined)
		return EINVAL;
	if (!thread->ended && !deadline)
		return EBUSY;
	thread->joined = true;
	while (!thread->ended) {
		if (!sync_wait(sim, self, end_of(thread), deadline, pc) && !thread->ended) {
			sync_waited(self);
			thread->joined = false;
			return ETIMEDOUT;
		}
		sync_step(sim, &thread->serial, sizeof(thread->serial), "thread", pc);
	}
	sync_waited(self);
	if (result)
		*result = thread->result;
	thread_forget(sim, thread);
	return 0;
}

int sim_pthread_join(pthread_t thread, void **result)
{
	return thread_join(thread, result, NEVER, PC);
}

int sim_pthread_tryjoin_np(pthread_t thread, void **result)
{
	return thread_join(thread, result, 0, PC);
}

int sim_pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
			     const struct timespec *at)
{
	return UNTIL(clock, at, thread_join(thread, result, deadline ? deadline : 1, PC));
}

int sim_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *at)
{
	return UNTIL(CLOCK_REALTIME, at, thread_join(thread, result, deadline ? deadline : 1, PC));
}

int sim_pthread_detach(pthread_t serial)
{
	struct sim *sim = sim_of_thread;
	struct thread *thread = thread_find(sim, serial);
	if (!thread || (thread->ended && thread->joined))
		return ESRCH;
	if (thread->detached)
		return EINVAL;
	thread->detached = true;
	if (thread->ended)
		thread_forget(sim, thread);
	return 0;
}

/* --- identity --- */

pthread_t sim_pthread_self(void)
{
	return thread_self(sim_of_thread)->serial;
}

int sim_pthread_equal(pthread_t a, pthread_t b)
{
	return a == b;
}

/* Choice points are named by their task: no two tasks of a host have the same name. */
static void name_task(struct sim *sim, struct task *task, const char *name)
{
	char what[THREAD_NAME];
	unsigned number = 0;
	snprintf(what, sizeof(what), "%s", name);
	for (char *c = what; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_' && *c != '.')
			*c = '_';
	do {
		sim_name_actor(sim, &task->actor, task->host, what, number);
		number = number ? number + 1 : 2;
	} while (is_taken(sim, task) && number < SIM_TASKS + 2);
}

int sim_pthread_setname_np(pthread_t serial, const char *name)
{
	struct sim *sim = sim_of_thread;
	struct thread *thread = thread_find(sim, serial);
	size_t len = 0;
	while (len < THREAD_NAME && name[len])
		len++;
	if (len == THREAD_NAME)
		return ERANGE;
	if (!thread || thread->ended)
		return ESRCH;
	memcpy(thread->name, name, len + 1);
	/* A scheduler knows the task by its name already. */
	if (!thread->begun && len && !sim->scheduler)
		name_task(sim, thread->task, name);
	return 0;
}

int sim_pthread_getname_np(pthread_t serial, char *name, size_t size)
{
	struct thread *thread = thread_find(sim_of_thread, serial);
	if (!thread || thread->ended)
		return ESRCH;
	const char *is = *thread->name ? thread->name : thread_actor(thread);
	if (size < THREAD_NAME)
		return ERANGE;
	snprintf(name, THREAD_NAME, "%.*s", THREAD_NAME - 1, is);
	return 0;
}

int sim_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set)
{
	(void)thread, (void)bytes, (void)set;
	return 0;
}

/* --- letting others go --- */

int sim_sched_yield(void)
{
	struct sim *sim = sim_of_thread;
	if (sim->scheduler && !sim->running->idles)
		sim_turn(sim);
	else
		sim_yield(sim);
	return 0;
}

int sim_pthread_yield(void)
{
	return sim_sched_yield();
}
