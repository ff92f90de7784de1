/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of store code: each function, what excludes what under delays at steps, and deadlocks
 * that are told by name.
 */
#include <limits.h>
#include <stdarg.h>
#include "core/rt/rt.h"
#include "core/rt/sim.h"
#include "core/rt/threads/threads.h"
#include "checker/models/dpor.h"
#include "core/libc/time.h"
#include "faultinject/random_source.h"
#include "tests/suite.h"

static struct sim *sim;
static char notes[16384];

static __attribute__((format(printf, 1, 2))) void note(const char *fmt, ...)
{
	size_t at = strlen(notes);
	va_list ap;
	va_start(ap, fmt);
	at += (size_t)vsnprintf(notes + at, sizeof(notes) - at, fmt, ap);
	va_end(ap);
	ck_assert_uint_lt(at + 2, sizeof(notes));
	strcpy(notes + at, " ");
}

static void setup(void)
{
	notes[0] = '\0';
	sim = sim_new();
	ck_assert_ptr_nonnull(sim);
}

static void teardown(void)
{
	sim_free(sim);
}

static pthread_mutex_t mutex, second;
static pthread_cond_t cond;
static pthread_rwlock_t rwlock;
static pthread_spinlock_t spin;
static pthread_once_t once;
static sem_t sem, back;
static unsigned inside, most_inside, total; /* work() */
static unsigned queue, taken, initialised, readers, writers;
static bool mixed;	      /* a reader beside a writer */
static unsigned most_readers; /* of all runs */

static void dies(void *arg, unsigned host, unsigned how)
{
}

static void reset(struct source *source)
{
	notes[0] = '\0';
	mutex = second = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	once = PTHREAD_ONCE_INIT;
	inside = most_inside = total = queue = taken = initialised = 0;
	readers = writers = 0;
	mixed = false;
	sim_reset(sim, source);
	sim_set_death(sim, dies, NULL);
}

typedef void program(void);

static void main_task(void *arg)
{
	(*(program *const *)arg)();
}

/* The first task of the server, as the world starts it, and a client's. */
static enum sim_end run_hosts(program *server, program *client, struct source *source)
{
	reset(source);
	if (server)
		ck_assert_int_eq(sim_spawn(sim, HOST_SERVER, NULL, main_task, &server), 0);
	if (client)
		ck_assert_int_eq(sim_spawn(sim, 1, NULL, main_task, &client), 0);
	return sim_run(sim);
}

static enum sim_end run_with(program *main, struct source *source)
{
	return run_hosts(main, NULL, source);
}

static pthread_t start(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	ck_assert_int_eq(sim_pthread_create(&thread, NULL, fn, arg), 0);
	return thread;
}

static void *end_of(pthread_t thread)
{
	void *result;
	ck_assert_int_eq(sim_pthread_join(thread, &result), 0);
	return result;
}

struct thread {
	void *(*fn)(void *);
	void *arg;
};

/* Start them all, and wait for their ends. */
static void together(unsigned n, const struct thread *thread)
{
	pthread_t handle[SIM_TASKS];
	for (unsigned i = 0; i < n; i++)
		handle[i] = start(thread[i].fn, thread[i].arg);
	for (unsigned i = 0; i < n; i++)
		end_of(handle[i]);
}

/* As a store does it. */
static struct timespec in_ns(clockid_t clock, uint64_t ns)
{
	struct timespec at;
	ck_assert_int_eq(sim_clock_gettime(clock, &at), 0);
	ns += (uint64_t)at.tv_nsec;
	at.tv_sec += (time_t)(ns / 1000000000);
	at.tv_nsec = (long)(ns % 1000000000);
	return at;
}

/* --- many runs, with random delays at steps --- */

#define SEEDS 400

/* Half of the steps are followed by a delay, of random length. */
struct jumpy {
	struct source source;
	uint64_t state;
};

static unsigned jumpy_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct jumpy *jumpy = (struct jumpy *)source;
	if (at->kind != CHOICE_STEP || random_next(&jumpy->state) % 2)
		return 0;
	return 1 + (unsigned)(random_next(&jumpy->state) % 4);
}

/* None for seed 0; for the next SEEDS, few, as campaigns have them: every second step or so is
 * asked about, as these programs have few of them. Then many. */
static struct source *delays(uint64_t seed)
{
	static struct random_source few;
	static struct jumpy many;
	if (!seed)
		return NULL;
	if (seed > SEEDS) {
		many = (struct jumpy){{.answer = jumpy_answer}, seed - SEEDS};
		return &many.source;
	}
	random_start(&few, seed, 24);
	few.source.skip[CHOICE_STEP] = seed % 7;
	return &few.source;
}

/* --- threads --- */

static void *twice(void *arg)
{
	note("%s", sim_actor(sim)->name);
	return (void *)(2 * (uintptr_t)arg);
}

static void joins(void)
{
	pthread_t a = start(twice, (void *)4), b = start(twice, (void *)5);
	ck_assert(!sim_pthread_equal(a, b));
	ck_assert(!sim_pthread_equal(a, sim_pthread_self()));
	ck_assert_int_eq(sim_pthread_tryjoin_np(a, NULL), EBUSY);
	ck_assert_uint_eq((uintptr_t)end_of(b), 10);
	ck_assert_uint_eq((uintptr_t)end_of(a), 8);
	ck_assert_int_eq(sim_pthread_join(a, NULL), ESRCH);
	ck_assert_int_eq(sim_pthread_join(sim_pthread_self(), NULL), EDEADLK);
	ck_assert_int_eq(sim_pthread_detach(a), ESRCH);
}

static void *exits(void *arg)
{
	sim_pthread_exit(arg);
}

static void *slow(void *arg)
{
	rt_sleep(1000);
	note("slow");
	return arg;
}

static void detaches(void)
{
	pthread_attr_t attr;
	pthread_t thread, early = start(exits, &thread);
	struct timespec soon = in_ns(CLOCK_REALTIME, 10);
	int state;
	size_t bytes;
	ck_assert_ptr_eq(end_of(early), &thread);
	ck_assert_int_eq(sim_pthread_attr_init(&attr), 0);
	ck_assert_int_eq(sim_pthread_attr_setdetachstate(&attr, 77), EINVAL);
	ck_assert_int_eq(sim_pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED), 0);
	ck_assert_int_eq(sim_pthread_attr_getdetachstate(&attr, &state), 0);
	ck_assert_int_eq(state, PTHREAD_CREATE_DETACHED);
	ck_assert_int_eq(sim_pthread_attr_setstacksize(&attr, 1), EINVAL);
	ck_assert_int_eq(sim_pthread_attr_setstacksize(&attr, 1 << 20), 0);
	ck_assert_int_eq(sim_pthread_attr_getstacksize(&attr, &bytes), 0);
	ck_assert_uint_eq(bytes, 1 << 20);
	ck_assert_int_eq(sim_pthread_create(&thread, &attr, slow, NULL), 0);
	ck_assert_int_eq(sim_pthread_attr_destroy(&attr), 0);
	ck_assert_int_eq(sim_pthread_join(thread, NULL), EINVAL);
	ck_assert_int_eq(sim_pthread_detach(thread), EINVAL);
	thread = start(slow, NULL);
	ck_assert_int_eq(sim_pthread_timedjoin_np(thread, NULL, &soon), ETIMEDOUT);
	ck_assert_int_eq(sim_pthread_detach(thread), 0);
	note("first");
	sim_pthread_exit(NULL); /* this task only */
}

static void *says_name(void *arg)
{
	char name[16];
	ck_assert_int_eq(sim_pthread_getname_np(sim_pthread_self(), name, 15), ERANGE);
	ck_assert_int_eq(sim_pthread_getname_np(sim_pthread_self(), name, 16), 0);
	note("%s=%s", sim_actor(sim)->name, name);
	ck_assert_int_eq(sim_pthread_setname_np(sim_pthread_self(), "late"), 0);
	ck_assert_int_eq(sim_pthread_getname_np(sim_pthread_self(), name, 16), 0);
	ck_assert_str_eq(name, "late");
	return NULL;
}

static void named(void)
{
	pthread_t thread[4];
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	for (unsigned i = 0; i < 4; i++)
		thread[i] = start(says_name, NULL);
	ck_assert_int_eq(sim_pthread_setname_np(thread[0], "log cleaner"), 0);
	ck_assert_int_eq(sim_pthread_setname_np(thread[1], "log cleaner"), 0);
	ck_assert_int_eq(sim_pthread_setname_np(thread[2], "sixteen letters!"), ERANGE);
	ck_assert_int_eq(sim_pthread_setname_np(12345, "x"), ESRCH);
	ck_assert_int_eq(sim_pthread_setname_np(thread[3], "thread5"), 0);
	ck_assert_int_eq(sim_pthread_setaffinity_np(thread[0], sizeof(cpus), &cpus), 0);
	start(says_name, NULL);
	sim_pthread_yield();
	sim_sched_yield();
}

static void many_threads(void)
{
	pthread_t thread[SIM_TASKS];
	unsigned n = 0;
	while (sim_pthread_create(&thread[n], NULL, twice, (void *)1) == 0)
		n++;
	ck_assert_uint_eq(n, SIM_TASKS - 1);
	while (n)
		end_of(thread[--n]);
	/* Each has the place of one that has ended. */
	for (unsigned i = 0; i < 5 * SIM_TASKS; i++)
		end_of(start(exits, NULL));
	rt_sleep(2000000000);
	ck_assert_ptr_nonnull(strstr(notes, "server/thread63 "));
	notes[0] = '\0';
	ck_assert_str_eq(sim_actor(sim)->name, "server");
}

static void *is_woken_early(void *arg)
{
	struct timespec late = in_ns(CLOCK_REALTIME, 500000);
	ck_assert_int_eq(sim_sem_timedwait(&sem, &late), 0);
	return NULL;
}

static void *sleeps_long(void *arg)
{
	uint64_t now = sim_now(sim);
	rt_sleep(1000000);
	ck_assert_uint_ge(sim_now(sim), now + 1000000);
	return NULL;
}

static void leaves_event(void)
{
	pthread_t thread[SIM_TASKS];
	unsigned n = 0;
	sim_sem_init(&sem, 0, 0);
	while (sim_pthread_create(&thread[n], NULL, is_woken_early, NULL) == 0)
		n++;
	sim_pthread_yield();
	for (unsigned i = 0; i < n; i++)
		sim_sem_post(&sem);
	for (unsigned i = 0; i < n; i++)
		end_of(thread[i]);
	for (unsigned i = 0; i < n; i++)
		thread[i] = start(sleeps_long, NULL);
	for (unsigned i = 0; i < n; i++)
		end_of(thread[i]);
	note("all");
}

static unsigned fails_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	return n > 1 && at->kind == CHOICE_FAIL && at->a == FAIL_SPAWN;
}

static void cannot_start(void)
{
	pthread_t thread;
	sim_let_calls_fail(sim, true);
	ck_assert_int_eq(sim_pthread_create(&thread, NULL, twice, NULL), EAGAIN);
	note("told");
}

TEST(create_can_fail)
{
	struct source source = {.answer = fails_answer};
	ck_assert_int_eq(run_with(cannot_start, &source), SIM_IDLE);
	ck_assert_str_eq(notes, "told ");
}

/* --- data of threads --- */

static pthread_key_t key, other_key;

static void forget(void *value)
{
	note("%s", (char *)value);
	ck_assert_ptr_null(sim_pthread_getspecific(key));
	if (!strcmp(value, "a"))
		sim_pthread_setspecific(other_key, "again");
}

static void bury(void *object)
{
	note("object %s", (char *)object);
}

static void *has_data(void *arg)
{
	ck_assert_ptr_null(sim_pthread_getspecific(key));
	ck_assert_int_eq(sim_pthread_setspecific(key, arg), 0);
	ck_assert_int_eq(sim_cxa_thread_atexit(bury, "1", NULL), 0);
	ck_assert_int_eq(sim_cxa_thread_atexit(bury, "2", NULL), 0);
	rt_yield();
	ck_assert_ptr_eq(sim_pthread_getspecific(key), arg);
	return NULL;
}

static void spawned(void *arg)
{
	has_data(arg);
}

static void data(void)
{
	pthread_key_t more[40];
	ck_assert_int_eq(sim_pthread_key_create(&other_key, forget), 0);
	ck_assert_int_eq(sim_pthread_key_create(&key, forget), 0);
	ck_assert_int_eq(sim_pthread_setspecific(key, "mine"), 0);
	pthread_t a = start(has_data, "a"), b = start(has_data, "b");
	end_of(a);
	end_of(b);
	ck_assert_int_eq(rt_spawn("task", spawned, "task"), 0);
	rt_sleep(10000);
	ck_assert_str_eq(sim_pthread_getspecific(key), "mine");
	for (unsigned i = 0; i < 40; i++)
		ck_assert_int_eq(sim_pthread_key_create(&more[i], NULL), 0);
	ck_assert_int_eq(sim_pthread_setspecific(more[39], "x"), 0);
	ck_assert_str_eq(sim_pthread_getspecific(more[39]), "x");
	ck_assert_str_eq(sim_pthread_getspecific(key), "mine");
	ck_assert_int_eq(sim_pthread_key_delete(more[39]), 0);
	ck_assert_int_eq(sim_pthread_key_delete(more[39]), EINVAL);
	ck_assert_int_eq(sim_pthread_setspecific(more[39], "x"), EINVAL);
	ck_assert_int_eq(sim_pthread_key_create(&more[39], NULL), 0);
	ck_assert_ptr_null(sim_pthread_getspecific(more[39]));
}

/* --- mutexes --- */

/* Something is done that takes several steps. */
static void work(void)
{
	if (++inside > most_inside)
		most_inside = inside;
	unsigned read = total;
	sim_step(sim, STEP_LOAD, 5);
	sim_step(sim, STEP_STORE, 5);
	total = read + 1;
	inside--;
}

static void *locks(void *arg)
{
	for (unsigned i = 0; i < 3; i++) {
		sim_pthread_mutex_lock(arg);
		work();
		sim_pthread_mutex_unlock(arg);
	}
	return NULL;
}

static void one_was_inside(void)
{
	ck_assert_uint_eq(most_inside, 1);
	ck_assert_uint_eq(total, 9);
	note("all");
}

static void three_lock(void)
{
	together(3, (struct thread[]){{locks, &mutex}, {locks, &mutex}, {locks, &mutex}});
	one_was_inside();
}

static void three_without(void)
{
	static pthread_mutex_t own[3];
	memset(own, 0, sizeof(own)); /* PTHREAD_MUTEX_INITIALIZER */
	together(3, (struct thread[]){{locks, &own[0]}, {locks, &own[1]}, {locks, &own[2]}});
}

static void *other_thread(void *arg)
{
	pthread_mutex_t *m = arg;
	struct timespec soon = in_ns(CLOCK_REALTIME, 500);
	uint64_t before = sim_now(sim);
	ck_assert_int_eq(sim_pthread_mutex_trylock(m), EBUSY);
	ck_assert_int_eq(sim_pthread_mutex_timedlock(m, &soon), ETIMEDOUT);
	ck_assert_uint_ge(sim_now(sim), before + 500);
	soon.tv_nsec = 1000000000;
	ck_assert_int_eq(sim_pthread_mutex_timedlock(m, &soon), EINVAL);
	soon = in_ns(CLOCK_MONOTONIC, 1000000);
	ck_assert_int_eq(sim_pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &soon), 0);
	ck_assert_uint_lt(sim_now(sim), before + 3000);
	ck_assert_int_eq(sim_pthread_mutex_unlock(m), 0);
	return NULL;
}

static void kinds(void)
{
	static const int kind[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				   PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	pthread_mutexattr_t attr;
	pthread_mutex_t m, fixed = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	int got;
	for (unsigned k = 0; k < 4; k++) {
		ck_assert_int_eq(sim_pthread_mutexattr_init(&attr), 0);
		ck_assert_int_eq(sim_pthread_mutexattr_settype(&attr, 9), EINVAL);
		ck_assert_int_eq(sim_pthread_mutexattr_settype(&attr, kind[k]), 0);
		ck_assert_int_eq(sim_pthread_mutexattr_gettype(&attr, &got), 0);
		ck_assert_int_eq(got, kind[k]);
		memset(&m, 0xa5, sizeof(m));
		ck_assert_int_eq(sim_pthread_mutex_lock(&m), EINVAL);
		ck_assert_int_eq(sim_pthread_mutex_init(&m, &attr), 0);
		ck_assert_int_eq(sim_pthread_mutexattr_destroy(&attr), 0);
		if (kind[k] == PTHREAD_MUTEX_ERRORCHECK || kind[k] == PTHREAD_MUTEX_RECURSIVE)
			ck_assert_int_eq(sim_pthread_mutex_unlock(&m), EPERM);
		ck_assert_int_eq(sim_pthread_mutex_lock(&m), 0);
		ck_assert_int_eq(sim_pthread_mutex_destroy(&m), EBUSY);
		if (kind[k] == PTHREAD_MUTEX_ERRORCHECK)
			ck_assert_int_eq(sim_pthread_mutex_lock(&m), EDEADLK);
		if (kind[k] == PTHREAD_MUTEX_RECURSIVE) {
			ck_assert_int_eq(sim_pthread_mutex_lock(&m), 0);
			ck_assert_int_eq(sim_pthread_mutex_trylock(&m), 0);
			ck_assert_int_eq(sim_pthread_mutex_unlock(&m), 0);
			ck_assert_int_eq(sim_pthread_mutex_unlock(&m), 0);
		} else {
			ck_assert_int_eq(sim_pthread_mutex_trylock(&m), EBUSY);
		}
		pthread_t thread = start(other_thread, &m);
		rt_sleep(2000);
		ck_assert_int_eq(sim_pthread_mutex_unlock(&m), 0);
		end_of(thread);
		ck_assert_int_eq(sim_pthread_mutex_trylock(&m), 0);
		ck_assert_int_eq(sim_pthread_mutex_unlock(&m), 0);
		ck_assert_int_eq(sim_pthread_mutex_destroy(&m), 0);
	}
	ck_assert_int_eq(sim_pthread_mutex_lock(&fixed), 0);
	ck_assert_int_eq(sim_pthread_mutex_lock(&fixed), 0);
	note("all");
}

static void *locks_for_ever(void *arg)
{
	for (total = 0; !inside; total++) {
		sim_pthread_mutex_lock(arg);
		sim_step(sim, STEP_LOAD, 5);
		sim_pthread_mutex_unlock(arg);
	}
	return NULL;
}

static void *locks_once(void *arg)
{
	sim_pthread_mutex_lock(arg);
	inside = 1;
	sim_pthread_mutex_unlock(arg);
	return NULL;
}

static void one_holds_on(void)
{
	sim_pthread_mutex_lock(&mutex);
	pthread_t a = start(locks_for_ever, &mutex), b = start(locks_once, &mutex);
	rt_sleep(100);
	sim_pthread_mutex_unlock(&mutex);
	end_of(a);
	end_of(b);
	ck_assert_uint_lt(total, 4); /* before the watch for livelocks holds it up */
}

static void *unlocks(void *arg)
{
	sim_pthread_mutex_unlock(arg);
	return NULL;
}

static void of_another(void)
{
	sim_pthread_mutex_lock(&mutex);
	end_of(start(unlocks, &mutex));
}

static void of_nobody(void)
{
	sim_pthread_mutex_init(&second, NULL);
	sim_pthread_mutex_init(&mutex, NULL);
	unlocks(&mutex);
}

/* --- deadlocks --- */

static void *locks_both(void *arg)
{
	bool turned = arg;
	sim_pthread_mutex_lock(turned ? &second : &mutex);
	sim_pthread_mutex_lock(turned ? &mutex : &second);
	sim_pthread_mutex_unlock(&mutex);
	sim_pthread_mutex_unlock(&second);
	return NULL;
}

static void crossing(void)
{
	sim_pthread_mutex_init(&mutex, NULL);
	sim_pthread_mutex_init(&second, NULL);
	pthread_t a = start(locks_both, NULL), b = start(locks_both, &mutex);
	sim_pthread_setname_np(a, "a");
	sim_pthread_setname_np(b, "b");
	end_of(a);
	end_of(b);
}

static void in_order(void)
{
	together(2, (struct thread[]){{locks_both, NULL}, {locks_both, NULL}});
}

static void locks_itself(void)
{
	sim_pthread_mutex_lock(&mutex);
	sim_pthread_mutex_lock(&mutex);
}

static void *keeps(void *arg)
{
	sim_pthread_mutex_lock(arg);
	return NULL;
}

static void after_its_end(void)
{
	end_of(start(keeps, &mutex));
	sim_pthread_mutex_lock(&mutex);
}

static void at_its_end(void)
{
	start(keeps, &mutex);
	sim_pthread_yield();
	struct timespec soon = in_ns(CLOCK_REALTIME, 100);
	const uint64_t before = sim_now(sim);
	ck_assert_int_eq(sim_pthread_mutex_timedlock(&mutex, &soon), ETIMEDOUT);
	ck_assert_uint_lt(sim_now(sim) - before, 10000);
	note("timed");
	sim_pthread_mutex_lock(&mutex);
}

static void *keeps_long(void *arg)
{
	sim_pthread_mutex_lock(arg);
	rt_sleep(100000);
	return NULL;
}

static void while_it_lives(void)
{
	start(keeps_long, &mutex);
	sim_pthread_yield();
	sim_pthread_mutex_lock(&mutex);
}

static void *joins_back(void *thread)
{
	ck_assert_int_eq(sim_pthread_join(*(pthread_t *)thread, NULL), 0);
	note("joined");
	return NULL;
}

/* Each waits for the other's end, but one of them not for ever. */
static void *joins_for_a_while(void *arg)
{
	pthread_t self = sim_pthread_self(), other = start(joins_back, &self);
	struct timespec soon = in_ns(CLOCK_REALTIME, 5000);
	ck_assert_int_eq(sim_pthread_timedjoin_np(other, NULL, &soon), ETIMEDOUT);
	note("timed");
	return arg;
}

static void join_each_other(void)
{
	start(joins_for_a_while, NULL);
}

static void waits_for_waiter(void)
{
	sim_pthread_mutex_lock(&mutex);
	end_of(start(keeps, &mutex));
}

static void *reads_then_writes(void *arg)
{
	sim_pthread_rwlock_rdlock(&rwlock);
	sim_pthread_yield();
	sim_pthread_rwlock_wrlock(&rwlock);
	return NULL;
}

static void upgrade(void)
{
	reads_then_writes(NULL);
}

static void two_upgrades(void)
{
	pthread_t a = start(reads_then_writes, NULL);
	start(reads_then_writes, NULL);
	end_of(a);
}

static void *holds_spin(void *arg)
{
	sim_pthread_spin_lock(&spin);
	sim_pthread_yield();
	sim_pthread_mutex_lock(arg);
	return NULL;
}

static void *holds_write(void *arg)
{
	sim_pthread_rwlock_wrlock(&rwlock);
	sim_pthread_yield();
	sim_pthread_spin_lock(&spin);
	return NULL;
}

static void three_kinds(void)
{
	sim_pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	sim_pthread_mutex_lock(&mutex);
	start(holds_spin, &mutex);
	start(holds_write, NULL);
	rt_sleep(1000);
	sim_pthread_rwlock_rdlock(&rwlock);
}

static void calls_itself(void)
{
	sim_pthread_once(&once, calls_itself);
}

static void once_in_once(void)
{
	calls_itself();
}

/* --- condition variables --- */

static void *produces(void *arg)
{
	for (unsigned i = 0; i < 4; i++) {
		sim_pthread_mutex_lock(&mutex);
		queue++;
		sim_pthread_mutex_unlock(&mutex);
		sim_pthread_cond_signal(&cond);
	}
	return NULL;
}

static void *consumes(void *arg)
{
	for (unsigned i = 0; i < 2; i++) {
		sim_pthread_mutex_lock(&mutex);
		while (!queue)
			sim_pthread_cond_wait(&cond, &mutex);
		queue--;
		work();
		taken++;
		sim_pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void queues(void)
{
	together(3, (struct thread[]){{consumes, NULL}, {consumes, NULL}, {produces, NULL}});
	ck_assert_uint_eq(taken, 4);
	ck_assert_uint_eq(most_inside, 1);
	note("all");
}

/* A waiter that looks before it holds the mutex does lose one. */
static void *looks_first(void *arg)
{
	if (queue)
		return NULL;
	sim_step(sim, STEP_LOAD, 5);
	sim_pthread_mutex_lock(&mutex);
	sim_pthread_cond_wait(&cond, &mutex);
	sim_pthread_mutex_unlock(&mutex);
	return NULL;
}

static void loses(void)
{
	pthread_t a = start(looks_first, NULL), b = start(produces, NULL);
	end_of(b);
	end_of(a);
	note("all");
}

static void *waits_turn(void *arg)
{
	sim_pthread_mutex_lock(&mutex);
	sim_pthread_cond_wait(&cond, &mutex);
	note("%s", (char *)arg);
	sim_pthread_mutex_unlock(&mutex);
	return NULL;
}

static void conds(void)
{
	pthread_condattr_t attr;
	pthread_cond_t timed;
	clockid_t clock;
	struct timespec soon;
	sim_pthread_cond_init(&cond, NULL);
	sim_pthread_cond_signal(&cond); /* no thread waits: it is forgotten */
	start(waits_turn, "a");
	start(waits_turn, "b");
	start(waits_turn, "c");
	rt_sleep(1000);
	ck_assert_int_eq(sim_pthread_cond_destroy(&cond), EBUSY);
	sim_pthread_cond_signal(&cond);
	rt_sleep(1000);
	note("|");
	sim_pthread_cond_broadcast(&cond);
	rt_sleep(1000);
	ck_assert_int_eq(sim_pthread_cond_destroy(&cond), 0);

	ck_assert_int_eq(sim_pthread_condattr_init(&attr), 0);
	ck_assert_int_eq(sim_pthread_condattr_setclock(&attr, CLOCK_PROCESS_CPUTIME_ID), EINVAL);
	ck_assert_int_eq(sim_pthread_condattr_setclock(&attr, CLOCK_MONOTONIC), 0);
	ck_assert_int_eq(sim_pthread_condattr_getclock(&attr, &clock), 0);
	ck_assert_int_eq(clock, CLOCK_MONOTONIC);
	ck_assert_int_eq(sim_pthread_cond_init(&timed, &attr), 0);
	ck_assert_int_eq(sim_pthread_condattr_destroy(&attr), 0);
	sim_pthread_mutex_lock(&mutex);
	soon = in_ns(CLOCK_MONOTONIC, 5000);
	ck_assert_int_eq(sim_pthread_cond_timedwait(&timed, &mutex, &soon), ETIMEDOUT);
	ck_assert_uint_ge(sim_now(sim), (uint64_t)soon.tv_nsec);
	ck_assert_int_eq(sim_pthread_cond_timedwait(&timed, &mutex, &soon), ETIMEDOUT);
	ck_assert_int_eq(sim_pthread_cond_clockwait(&timed, &mutex, CLOCK_REALTIME, &soon),
			 ETIMEDOUT);
	ck_assert_int_eq(sim_pthread_mutex_trylock(&mutex), EBUSY); /* it holds it again */
	sim_pthread_mutex_unlock(&mutex);
}

static void without_mutex(void)
{
	sim_pthread_cond_wait(&cond, &mutex);
}

/* --- barriers, read-write locks, spin locks, once, semaphores --- */

static pthread_barrier_t barrier;
static unsigned arrived[3], serial;

static void *meets(void *arg)
{
	unsigned *own = arg;
	for (unsigned round = 1; round <= 3; round++) {
		sim_step(sim, STEP_LOAD, 5);
		*own = round;
		int rc = sim_pthread_barrier_wait(&barrier);
		serial += rc == PTHREAD_BARRIER_SERIAL_THREAD;
		for (unsigned i = 0; i < 3; i++)
			ck_assert(arrived[i] == round || arrived[i] == round + 1);
	}
	return NULL;
}

static void at_barrier(void)
{
	memset(arrived, 0, sizeof(arrived));
	serial = 0;
	memset(&barrier, 0, sizeof(barrier));
	ck_assert_int_eq(sim_pthread_barrier_wait(&barrier), EINVAL);
	ck_assert_int_eq(sim_pthread_barrier_init(&barrier, NULL, 0), EINVAL);
	ck_assert_int_eq(sim_pthread_barrier_init(&barrier, NULL, 3), 0);
	together(3, (struct thread[]){
			    {meets, &arrived[0]}, {meets, &arrived[1]}, {meets, &arrived[2]}});
	ck_assert_int_eq(sim_pthread_barrier_destroy(&barrier), 0);
	ck_assert_uint_eq(serial, 3);
	note("all");
}

static void *reads(void *arg)
{
	for (unsigned i = 0; i < 2; i++) {
		sim_pthread_rwlock_rdlock(&rwlock);
		readers++;
		most_readers = readers > most_readers ? readers : most_readers;
		sim_step(sim, STEP_LOAD, 5);
		mixed |= writers;
		sim_step(sim, STEP_LOAD, 5);
		readers--;
		sim_pthread_rwlock_unlock(&rwlock);
	}
	return NULL;
}

static void *writes(void *arg)
{
	for (unsigned i = 0; i < 2; i++) {
		sim_pthread_rwlock_wrlock(&rwlock);
		writers++;
		sim_step(sim, STEP_STORE, 5);
		mixed |= readers || writers != 1;
		sim_step(sim, STEP_STORE, 5);
		writers--;
		sim_pthread_rwlock_unlock(&rwlock);
	}
	return NULL;
}

static void reads_and_writes(void)
{
	together(4,
		 (struct thread[]){{reads, NULL}, {reads, NULL}, {writes, NULL}, {writes, NULL}});
	ck_assert(!mixed);
	note("all");
}

static void rwlocks(void)
{
	struct timespec soon = in_ns(CLOCK_REALTIME, 500);
	pthread_rwlock_t l;
	ck_assert_int_eq(sim_pthread_rwlock_init(&l, NULL), 0);
	ck_assert_int_eq(sim_pthread_rwlock_rdlock(&l), 0);
	ck_assert_int_eq(sim_pthread_rwlock_tryrdlock(&l), 0);
	ck_assert_int_eq(sim_pthread_rwlock_trywrlock(&l), EBUSY);
	ck_assert_int_eq(sim_pthread_rwlock_timedwrlock(&l, &soon), ETIMEDOUT);
	ck_assert_int_eq(sim_pthread_rwlock_unlock(&l), 0);
	ck_assert_int_eq(sim_pthread_rwlock_destroy(&l), EBUSY);
	ck_assert_int_eq(sim_pthread_rwlock_unlock(&l), 0);
	ck_assert_int_eq(sim_pthread_rwlock_wrlock(&l), 0);
	ck_assert_int_eq(sim_pthread_rwlock_wrlock(&l), EDEADLK);
	ck_assert_int_eq(sim_pthread_rwlock_rdlock(&l), EDEADLK);
	ck_assert_int_eq(sim_pthread_rwlock_tryrdlock(&l), EBUSY);
	ck_assert_int_eq(sim_pthread_rwlock_unlock(&l), 0);
	ck_assert_int_eq(sim_pthread_rwlock_timedrdlock(&l, &soon), 0);
	ck_assert_int_eq(sim_pthread_rwlock_unlock(&l), 0);
	ck_assert_int_eq(sim_pthread_rwlock_destroy(&l), 0);
	sim_pthread_rwlock_unlock(&l);
}

static void *spins(void *arg)
{
	for (unsigned i = 0; i < 3; i++) {
		sim_pthread_spin_lock(&spin);
		work();
		sim_pthread_spin_unlock(&spin);
	}
	return NULL;
}

static void three_spin(void)
{
	ck_assert_int_eq(sim_pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
	together(3, (struct thread[]){{spins, NULL}, {spins, NULL}, {spins, NULL}});
	one_was_inside();
	ck_assert_int_eq(sim_pthread_spin_trylock(&spin), 0);
	ck_assert_int_eq(sim_pthread_spin_trylock(&spin), EBUSY);
	ck_assert_int_eq(sim_pthread_spin_destroy(&spin), EBUSY);
	ck_assert_int_eq(sim_pthread_spin_unlock(&spin), 0);
	ck_assert_int_eq(sim_pthread_spin_destroy(&spin), 0);
}

static void initialise(void)
{
	sim_step(sim, STEP_STORE, 5);
	sim_step(sim, STEP_STORE, 5);
	initialised++;
}

static void *needs_it(void *arg)
{
	ck_assert_int_eq(sim_pthread_once(&once, initialise), 0);
	ck_assert_uint_eq(initialised, 1);
	return NULL;
}

static void three_need_it(void)
{
	together(3, (struct thread[]){{needs_it, NULL}, {needs_it, NULL}, {needs_it, NULL}});
	note("all");
}

static void *answers(void *arg)
{
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(sim_sem_wait(&sem), 0);
		note("%u", i);
		ck_assert_int_eq(sim_sem_post(&back), 0);
	}
	return NULL;
}

static void semaphores(void)
{
	struct timespec soon;
	int value;
	errno = 0;
	ck_assert_int_eq(sim_sem_init(&sem, 0, (unsigned)SEM_VALUE_MAX + 1), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(sim_sem_init(&sem, 0, SEM_VALUE_MAX), 0);
	ck_assert_int_eq(sim_sem_post(&sem), -1);
	ck_assert_int_eq(errno, EOVERFLOW);
	ck_assert_int_eq(sim_sem_init(&sem, 0, 1), 0);
	ck_assert_int_eq(sim_sem_init(&back, 0, 0), 0);
	ck_assert_int_eq(sim_sem_getvalue(&sem, &value), 0);
	ck_assert_int_eq(value, 1);
	ck_assert_int_eq(sim_sem_trywait(&sem), 0);
	ck_assert_int_eq(sim_sem_trywait(&sem), -1);
	ck_assert_int_eq(errno, EAGAIN);
	soon = in_ns(CLOCK_REALTIME, 500);
	ck_assert_int_eq(sim_sem_timedwait(&sem, &soon), -1);
	ck_assert_int_eq(errno, ETIMEDOUT);
	ck_assert_uint_ge(sim_now(sim), (uint64_t)soon.tv_nsec);
	pthread_t thread = start(answers, NULL);
	for (unsigned i = 0; i < 3; i++) {
		note("ask");
		ck_assert_int_eq(sim_sem_post(&sem), 0);
		ck_assert_int_eq(sim_sem_wait(&back), 0);
	}
	end_of(thread);
	ck_assert_int_eq(sim_sem_destroy(&sem), 0);
	note("all");
}

/* --- <threads.h> --- */

static mtx_t mtx;
static cnd_t cnd;
static tss_t tss;
static once_flag flag;

static void at_c11_end(void *value)
{
	note("%s", (char *)value);
}

static int c11_thread(void *arg)
{
	sim_tss_set(tss, arg);
	ck_assert_ptr_eq(sim_tss_get(tss), arg);
	sim_call_once(&flag, initialise);
	ck_assert_int_eq(sim_mtx_lock(&mtx), thrd_success);
	while (!queue)
		ck_assert_int_eq(sim_cnd_wait(&cnd, &mtx), thrd_success);
	ck_assert_int_eq(sim_mtx_unlock(&mtx), thrd_success);
	if (*(char *)arg == 'b')
		sim_thrd_exit(8);
	return 7;
}

static void c11(void)
{
	thrd_t a, b;
	int result;
	struct timespec soon = in_ns(CLOCK_REALTIME, 500), a_while = {0, 300};
	memset(&flag, 0, sizeof(flag));
	ck_assert_int_eq(sim_mtx_init(&mtx, 77), thrd_error);
	ck_assert_int_eq(sim_mtx_init(&mtx, mtx_recursive | mtx_timed), thrd_success);
	ck_assert_int_eq(sim_cnd_init(&cnd), thrd_success);
	ck_assert_int_eq(sim_tss_create(&tss, at_c11_end), thrd_success);
	ck_assert_int_eq(sim_thrd_create(&a, c11_thread, "a"), thrd_success);
	ck_assert_int_eq(sim_thrd_create(&b, c11_thread, "b"), thrd_success);
	ck_assert(!sim_thrd_equal(a, sim_thrd_current()));
	uint64_t before = sim_now(sim);
	ck_assert_int_eq(sim_thrd_sleep(&a_while, NULL), 0);
	ck_assert_uint_ge(sim_now(sim), before + 300);
	ck_assert_int_eq(sim_mtx_lock(&mtx), thrd_success);
	ck_assert_int_eq(sim_mtx_trylock(&mtx), thrd_success);
	ck_assert_int_eq(sim_mtx_timedlock(&mtx, &soon), thrd_success);
	ck_assert_int_eq(sim_cnd_timedwait(&cnd, &mtx, &soon), thrd_timedout);
	queue = 1;
	ck_assert_int_eq(sim_cnd_signal(&cnd), thrd_success);
	ck_assert_int_eq(sim_cnd_broadcast(&cnd), thrd_success);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(sim_mtx_unlock(&mtx), thrd_success);
	ck_assert_int_eq(sim_mtx_unlock(&mtx), thrd_error);
	ck_assert_int_eq(sim_thrd_join(a, &result), thrd_success);
	ck_assert_int_eq(result, 7);
	ck_assert_int_eq(sim_thrd_join(b, &result), thrd_success);
	ck_assert_int_eq(result, 8);
	ck_assert_int_eq(sim_thrd_join(b, &result), thrd_error);
	ck_assert_uint_eq(initialised, 1);
	sim_thrd_yield();
	sim_tss_delete(tss);
	sim_cnd_destroy(&cnd);
	sim_mtx_destroy(&mtx);
}

/* --- each alone, and under delays --- */

static const struct {
	program *main;
	const char *notes, *fault; /* NULL: it ends as it should */
} alone[] = {
	/* Threads, their names, data and ends. */
	{joins, "server/thread1 server/thread2 ", NULL},
	{detaches, "first slow slow ", NULL},
	{named,
	 "server/log_cleaner=log cleaner server/log_cleaner2=log cleaner "
	 "server/thread3=server/thread3 server/thread5=thread5 server/thread6=server/thread6 ",
	 NULL},
	{many_threads, "", NULL},
	{leaves_event, "all ", NULL},
	{data, "object 2 object 1 a again object 2 object 1 b object 2 object 1 task ", NULL},
	{c11, "a b ", NULL},
	/* Mutexes. */
	{kinds, "all ", NULL},
	{one_holds_on, "", NULL},
	{of_another, "", "server/thread1 unlocks mutex #1, which server holds"},
	{of_nobody, "", "server unlocks mutex #2, which nobody holds"},
	/* Deadlocks, and what is none. */
	{crossing, "", NULL},
	{join_each_other, "timed joined ", NULL},
	{locks_itself, "", "deadlock: server holds mutex #1 and waits for it"},
	{after_its_end, "",
	 "deadlock: server waits for mutex #1, which server/thread1 held when it ended"},
	{at_its_end, "timed ",
	 "deadlock: server waits for mutex #1, which server/thread1 held when it ended"},
	{while_it_lives, "",
	 "deadlock: server waits for mutex #1, which server/thread1 held when it ended"},
	{waits_for_waiter, "",
	 "deadlock: server holds mutex #1 and waits for the end of server/thread1; "
	 "server/thread1 waits for mutex #1"},
	{upgrade, "", "deadlock: server holds read-write lock #1 and waits for it"},
	{two_upgrades, "", "deadlock: server/thread1 holds read-write lock #1 and waits for it"},
	{three_kinds, "",
	 "deadlock: server holds mutex #1 and waits for read-write lock #1; "
	 "server/thread2 holds read-write lock #1 and waits for spin lock #1; "
	 "server/thread1 holds spin lock #1 and waits for mutex #1"},
	{once_in_once, "", "deadlock: server holds once #1 and waits for it"},
	/* The others. */
	{loses, "all ", NULL},
	{conds, "a | b c ", NULL},
	{without_mutex, "", "server waits for condition variable #1 and does not hold the mutex"},
	{rwlocks, "", "server unlocks read-write lock #2, which it does not hold"},
};

/* Twice: a reset takes all of it away. */
TESTS(without_delays, ROWS_OF(alone))
{
	for (unsigned i = 0; i < 2; i++) {
		enum sim_end end = run_with(alone[_i].main, NULL);
		ck_assert_str_eq(sim_fault(sim, NULL), alone[_i].fault ? alone[_i].fault : "");
		ck_assert_int_eq(end, alone[_i].fault ? SIM_FAULT : SIM_IDLE);
		ck_assert_str_eq(notes, alone[_i].notes);
	}
}

static const struct {
	program *main;
	const char *notes;
} delayed[] = {
	{three_lock, "all "},	 {three_spin, "all "},
	{in_order, ""},		 {queues, "all "},
	{at_barrier, "all "},	 {reads_and_writes, "all "},
	{three_need_it, "all "}, {semaphores, "ask 0 ask 1 ask 2 all "},
};

TESTS(whatever_the_delays, ROWS_OF(delayed))
{
	for (uint64_t seed = 0; seed <= 2 * SEEDS; seed++) {
		enum sim_end end = run_with(delayed[_i].main, delays(seed));
		ck_assert_msg(end == SIM_IDLE, "ended with %d: %s", (int)end, sim_fault(sim, NULL));
		ck_assert_str_eq(notes, delayed[_i].notes);
	}
}

/* Where nothing keeps threads apart, delays do bring them together. */
TEST(delays_do_harm)
{
	unsigned raced = 0, lost = 0, deadlocks = 0;
	for (uint64_t seed = SEEDS + 1; seed <= 2 * SEEDS; seed++) {
		run_with(three_without, delays(seed));
		raced += most_inside > 1;
		run_with(reads_and_writes, delays(seed));
		lost += run_with(loses, delays(seed)) == SIM_IDLE && !*notes;
	}
	ck_assert_uint_gt(raced, SEEDS / 2);
	ck_assert_uint_eq(most_readers, 2);
	ck_assert_uint_gt(lost, 0);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		deadlocks += run_with(crossing, delays(seed)) == SIM_FAULT &&
			     !strcmp(sim_fault(sim, NULL),
				     "deadlock: server/a holds mutex #1 and waits for mutex #2; "
				     "server/b holds mutex #2 and waits for mutex #1");
	ck_assert_uint_gt(deadlocks, SEEDS / 50);
}

/* --- processes --- */

static void *holds_on(void *arg)
{
	sim_pthread_mutex_lock(arg);
	rt_sleep(1000000);
	note("never");
	return NULL;
}

static void client(void)
{
	start(holds_on, &mutex);
	rt_sleep(1000);
	note("%s", sim_actor(sim)->name);
	sim_end_others(sim);
	sim_connects_again(sim, 1);
	/* A new process, with new memory. */
	end_of(start(twice, NULL));
	sim_pthread_mutex_lock(&second);
	sim_pthread_mutex_lock(&second);
}

TEST(new_process)
{
	ck_assert_int_eq(run_hosts(NULL, client, NULL), SIM_FAULT);
	ck_assert_str_eq(notes, "c1 c1/thread1.2 ");
	ck_assert_str_eq(sim_fault(sim, NULL), "deadlock: c1 holds mutex #1 and waits for it");
}

/* The server's function runs on a client's task when it connects. */
static int accepts(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	sim_pthread_mutex_lock(arg);
	sim_step(sim, STEP_POST, 5);
	sim_pthread_mutex_unlock(arg);
	return 0;
}

static void server_with_lock(void)
{
	ck_assert_int_eq(rt_listen(accepts, &mutex), 0);
	rt_sleep(5000);
	sim_pthread_mutex_lock(&mutex);
	note("goes on");
}

static void connects(void)
{
	rt_sleep(1000);
	rt_connect(NULL, 0, NULL, 0);
	note("connected");
}

static unsigned dies_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	return n > DELAY_FOREVER && at->kind == CHOICE_STEP && at->a == STEP_POST ? DELAY_FOREVER
										  : 0;
}

TEST(client_dies_in_accept)
{
	struct source source = {.answer = dies_answer};
	ck_assert_int_eq(run_hosts(server_with_lock, connects, &source), SIM_IDLE);
	ck_assert_str_eq(notes, "goes on ");
}

/* The server dies while its function waits on a client's task. */
static void listens_and_holds(void)
{
	server_with_lock();
	rt_sleep(3000);
	sim_step(sim, STEP_POST, 5);
	note("never");
}

static void is_refused(void)
{
	rt_sleep(6000);
	note("%d", rt_connect(NULL, 0, NULL, 0));
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	sim_pthread_mutex_lock(&mutex);
}

static unsigned server_dies_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	return at->kind == CHOICE_STEP && at->a == STEP_POST && at->who->name[0] == 's'
		       ? DEATH_SERVER
		       : 0;
}

TEST(server_dies_in_accept)
{
	struct source source = {.answer = server_dies_answer};
	ck_assert_int_eq(run_hosts(listens_and_holds, is_refused, &source), SIM_IDLE);
	ck_assert_str_eq(notes, "goes on -111 ");
}

/* What the server's function makes is the server's, and so is what it locks: two processes may have
 * their static data at one address. */
static int makes_thread(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	start(twice, arg);
	return 0;
}

static void listens(void)
{
	ck_assert_int_eq(rt_listen(makes_thread, NULL), 0);
	sim_pthread_mutex_lock(&mutex);
	pthread_mutex_t of_server = mutex;
	rt_sleep(2000);
	note("server");
	mutex = of_server; /* as when the host's data are put in place */
	sim_pthread_mutex_unlock(&mutex);
}

static void has_its_own(void)
{
	rt_sleep(1000);
	rt_connect(NULL, 0, NULL, 0);
	start(twice, NULL);
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	sim_pthread_mutex_lock(&mutex);
	pthread_t other = start(locks_once, &mutex);
	rt_sleep(100);
	pthread_mutex_t of_client = mutex;
	rt_sleep(5000); /* the server unlocks its own: that wakes no thread here */
	mutex = of_client;
	inside = 0;
	rt_sleep(5000);
	ck_assert_uint_eq(inside, 0);
	sim_pthread_mutex_unlock(&mutex);
	end_of(other);
	ck_assert_uint_eq(inside, 1);
}

TEST(hosts_are_apart)
{
	ck_assert_int_eq(run_hosts(listens, has_its_own, NULL), SIM_IDLE);
	ck_assert_str_eq(notes, "server/thread1 c1/thread1 server ");
}

/* --- steps --- */

static unsigned lock_steps;

static unsigned count_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	if (at->kind == CHOICE_STEP && at->a == STEP_LOCK)
		ck_assert_uint_eq(at->b, ++lock_steps);
	return 0;
}

static bool in_pm;
static unsigned locked_calls;

static bool is_locked(void *arg, const void *at, uintptr_t pc)
{
	ck_assert_ptr_eq(arg, &locked_calls);
	locked_calls++;
	return !in_pm || at != &mutex;
}

static void some_steps(void)
{
	sim_set_locked(sim, is_locked, &locked_calls);
	sim_pthread_mutex_lock(&mutex);
	sim_pthread_mutex_trylock(&mutex);
	sim_pthread_mutex_unlock(&mutex);
	sim_sem_init(&sem, 0, 1);
	sim_sem_wait(&sem);
	sim_sem_post(&sem);
}

TEST(each_is_a_step)
{
	struct source source = {.answer = count_answer};
	lock_steps = locked_calls = 0;
	in_pm = false;
	ck_assert_int_eq(run_with(some_steps, &source), SIM_IDLE);
	ck_assert_uint_eq(lock_steps, 7); /* the last is the thread's end */
	ck_assert_uint_eq(locked_calls, 7);
	in_pm = true;
	ck_assert_int_eq(run_with(some_steps, NULL), SIM_FAULT);
	ck_assert_str_eq(sim_fault(sim, NULL),
			 "a mutex in persistent memory, which would survive its process");
}

/* --- all orders, with a scheduler in the clock's place --- */

static uint64_t outcome[8];
static unsigned outcomes;
static unsigned value;

static void adds(void *arg)
{
	sim_pthread_mutex_lock(&mutex);
	value = 3 * value + (unsigned)(uintptr_t)arg;
	sim_touch_state(sim, TOUCH_DRAM_WRITE, &value, sizeof(value));
	sim_pthread_cond_signal(&cond);
	sim_pthread_mutex_unlock(&mutex);
}

static void multiplies(void *arg)
{
	sim_pthread_mutex_lock(&mutex);
	while (!value)
		sim_pthread_cond_wait(&cond, &mutex);
	value *= 5;
	sim_touch_state(sim, TOUCH_DRAM_WRITE, &value, sizeof(value));
	sim_pthread_mutex_unlock(&mutex);
}

static void crosses(void *arg)
{
	locks_both(arg);
	value++;
}

static struct dpor search;
static void (*searched)(void);

static void three_tasks(void)
{
	sim_spawn(sim, HOST_SERVER, "a", adds, (void *)1);
	sim_spawn(sim, HOST_SERVER, "b", adds, (void *)2);
	sim_spawn(sim, HOST_SERVER, "c", multiplies, NULL);
}

static void two_crossing(void)
{
	sim_spawn(sim, HOST_SERVER, "a", crosses, NULL);
	sim_spawn(sim, HOST_SERVER, "b", crosses, &mutex);
}

static void no_touch(void *arg, enum touch what, uint64_t where, uint64_t len)
{
}

static void nothing(void *arg)
{
}

static void run_searched(void *arg)
{
	unsigned i = 0;
	reset(&search.source);
	value = 0;
	sim_set_scheduler(sim, &search.scheduler);
	searched();
	enum sim_end end = sim_run(sim);
	dpor_end_event(&search);
	if (search.redundant)
		return;
	ck_assert(end == SIM_IDLE || end == SIM_FAULT);
	uint64_t result = end == SIM_FAULT ? 1000 : value;
	while (i < outcomes && outcome[i] != result)
		i++;
	ck_assert_uint_lt(i, 8);
	outcome[i] = result;
	outcomes += i == outcomes;
}

static uint64_t search_all(void (*program)(void), bool whole)
{
	memset(&search, 0, sizeof(search));
	search.sim = sim;
	search.whole = whole;
	search.max_runs = 2000000;
	search.touched = no_touch;
	search.after = nothing;
	searched = program;
	outcomes = 0;
	ck_assert_int_eq(dpor_open(&search), 0);
	dpor_search(&search, run_searched);
	ck_assert(search.complete && !search.failed);
	uint64_t runs = search.runs, sum = 0;
	dpor_close(&search);
	for (unsigned i = 0; i < outcomes; i++)
		sum += outcome[i] * outcome[i];
	ck_assert_uint_gt(runs, 1);
	return sum;
}

TEST(all_orders)
{
	/* (1, 2) and (2, 1), multiplied after the first or the second: 5, 7, 10, 17 ... */
	uint64_t few = search_all(three_tasks, false);
	ck_assert_uint_eq(outcomes, 4);
	ck_assert_uint_eq(few, 25 * 25 + 35 * 35 + 17 * 17 + 31 * 31);
	few = search_all(two_crossing, false);
	ck_assert_uint_eq(outcomes, 2);
	ck_assert_uint_eq(few, 1000 * 1000 + 2 * 2);
	ck_assert_uint_eq(search_all(two_crossing, true), few);
}

static uint64_t hash_of(program *main, uint64_t seed)
{
	run_with(main, delays(SEEDS + seed));
	sim_mix_bytes(sim, notes, strlen(notes));
	sim_mix(sim, sim_now(sim), total);
	return sim_hash(sim);
}

TEST(determinism)
{
	static program *const programs[] = {three_lock, crossing, queues, reads_and_writes,
					    at_barrier, data,	  c11};
	unsigned different = 0;
	for (unsigned p = 0; p < ROWS_OF(programs); p++)
		for (uint64_t seed = 1; seed <= 50; seed++) {
			uint64_t hash = hash_of(programs[p], seed);
			struct sim *old = sim;
			ck_assert_uint_eq(hash_of(programs[p], seed), hash);
			sim = sim_new(); /* other addresses */
			ck_assert_uint_eq(hash_of(programs[p], seed), hash);
			different += hash_of(programs[p], seed + 1) != hash;
			sim_free(sim);
			sim = old;
		}
	ck_assert_uint_gt(different, 300);
}

RUN_TESTS(setup, teardown)
