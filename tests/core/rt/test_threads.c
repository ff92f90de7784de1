/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of store code: each function, what excludes what under delays at steps, and deadlocks
 * that are told by name.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/rt/sim.h"
#include "core/rt/threads.h"
#include "checker/models/dpor.h"
#include "core/libc/time.h"
#include "faultinject/sources.h"
#include "tests/suite.h"

static struct sim *sim;
static char notes[4096];

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

/* The first task of the server, as the world starts it. */
static enum sim_end run_with(void (*main)(void *), struct source *source)
{
	notes[0] = '\0';
	sim_reset(sim, source);
	ck_assert_int_eq(sim_spawn(sim, HOST_SERVER, NULL, main, NULL), 0);
	return sim_run(sim);
}

static void run(void (*main)(void *))
{
	enum sim_end end = run_with(main, NULL);
	ck_assert_msg(end == SIM_IDLE, "ended with %d: %s", (int)end, sim_fault(sim, NULL));
}

static void ends_with(void (*main)(void *), const char *fault)
{
	ck_assert_int_eq(run_with(main, NULL), SIM_FAULT);
	ck_assert_str_eq(sim_fault(sim, NULL), fault);
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

struct outcomes {
	unsigned idle, fault, other;
	char fault_text[200];
};

static struct outcomes many_runs(void (*main)(void *), void (*check)(void))
{
	static struct random_source source;
	struct outcomes all = {0};
	memset(&source, 0, sizeof(source));
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		random_start(&source, seed, 24);
		/* Every second step is asked about: these programs have few of them. */
		source.source.skip[CHOICE_STEP] = seed % 7;
		enum sim_end end = run_with(main, &source.source);
		all.idle += end == SIM_IDLE;
		all.fault += end == SIM_FAULT;
		all.other += end != SIM_IDLE && end != SIM_FAULT;
		if (end == SIM_FAULT)
			snprintf(all.fault_text, sizeof(all.fault_text), "%s",
				 sim_fault(sim, NULL));
		if (check && end == SIM_IDLE)
			check();
	}
	deviations_free(&source.taken);
	return all;
}

/* Half of the steps are followed by a delay, of random length. */
struct jumpy {
	struct source source;
	uint64_t state;
};

static unsigned jumpy_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct jumpy *jumpy = (struct jumpy *)source;
	(void)n;
	if (at->kind != CHOICE_STEP || random_next(&jumpy->state) % 2)
		return 0;
	return 1 + (unsigned)(random_next(&jumpy->state) % 4);
}

static struct outcomes jumpy_runs(void (*main)(void *), void (*check)(void))
{
	struct outcomes all = {0};
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct jumpy jumpy = {{.answer = jumpy_answer}, seed};
		enum sim_end end = run_with(main, &jumpy.source);
		all.idle += end == SIM_IDLE;
		all.fault += end == SIM_FAULT;
		all.other += end != SIM_IDLE && end != SIM_FAULT;
		if (end == SIM_FAULT)
			snprintf(all.fault_text, sizeof(all.fault_text), "%s",
				 sim_fault(sim, NULL));
		if (check && end == SIM_IDLE)
			check();
	}
	return all;
}

/* --- threads --- */

static void *twice(void *arg)
{
	note("%s", sim_actor(sim)->name);
	return (void *)(2 * (uintptr_t)arg);
}

static void joins(void *arg)
{
	pthread_t a = start(twice, (void *)4), b = start(twice, (void *)5);
	(void)arg;
	ck_assert(!sim_pthread_equal(a, b));
	ck_assert(!sim_pthread_equal(a, sim_pthread_self()));
	ck_assert_int_eq(sim_pthread_tryjoin_np(a, NULL), EBUSY);
	ck_assert_uint_eq((uintptr_t)end_of(b), 10);
	ck_assert_uint_eq((uintptr_t)end_of(a), 8);
	ck_assert_int_eq(sim_pthread_join(a, NULL), ESRCH);
	ck_assert_int_eq(sim_pthread_join(sim_pthread_self(), NULL), EDEADLK);
	ck_assert_int_eq(sim_pthread_detach(a), ESRCH);
}

TEST(join)
{
	run(joins);
	ck_assert_str_eq(notes, "server/thread1 server/thread2 ");
	run(joins); /* a reset takes all of it away */
	ck_assert_str_eq(notes, "server/thread1 server/thread2 ");
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

static void detaches(void *arg)
{
	pthread_attr_t attr;
	pthread_t thread, early = start(exits, &thread);
	struct timespec soon = in_ns(CLOCK_REALTIME, 10);
	int state;
	size_t bytes;
	(void)arg;
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

TEST(detach_and_exit)
{
	run(detaches);
	ck_assert_str_eq(notes, "first slow slow ");
}

static void *says_name(void *arg)
{
	char name[16];
	(void)arg;
	ck_assert_int_eq(sim_pthread_getname_np(sim_pthread_self(), name, 15), ERANGE);
	ck_assert_int_eq(sim_pthread_getname_np(sim_pthread_self(), name, 16), 0);
	note("%s=%s", sim_actor(sim)->name, name);
	ck_assert_int_eq(sim_pthread_setname_np(sim_pthread_self(), "late"), 0);
	ck_assert_int_eq(sim_pthread_getname_np(sim_pthread_self(), name, 16), 0);
	ck_assert_str_eq(name, "late");
	return NULL;
}

static void named(void *arg)
{
	pthread_t thread[4];
	cpu_set_t cpus;
	(void)arg;
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

TEST(names)
{
	run(named);
	ck_assert_str_eq(notes, "server/log_cleaner=log cleaner server/log_cleaner2=log cleaner "
				"server/thread3=server/thread3 server/thread5=thread5 "
				"server/thread6=server/thread6 ");
}

static void many_threads(void *arg)
{
	pthread_t thread[SIM_TASKS];
	unsigned n = 0;
	(void)arg;
	while (sim_pthread_create(&thread[n], NULL, twice, (void *)1) == 0)
		n++;
	ck_assert_uint_eq(n, SIM_TASKS - 1);
	while (n)
		end_of(thread[--n]);
	/* Each has the place of one that has ended. */
	for (unsigned i = 0; i < 5 * SIM_TASKS; i++)
		end_of(start(exits, NULL));
	rt_sleep(2000000000);
	note("end");
	ck_assert_str_eq(sim_actor(sim)->name, "server");
}

TEST(as_many_as_tasks)
{
	run(many_threads);
	ck_assert_ptr_nonnull(strstr(notes, "server/thread63 "));
	ck_assert_ptr_nonnull(strstr(notes, " end "));
}

static sem_t sem, back;

static void *is_woken_early(void *arg)
{
	struct timespec late = in_ns(CLOCK_REALTIME, 500000);
	(void)arg;
	ck_assert_int_eq(sim_sem_timedwait(&sem, &late), 0);
	return NULL;
}

static void *sleeps_long(void *arg)
{
	uint64_t now = sim_now(sim);
	(void)arg;
	rt_sleep(1000000);
	ck_assert_uint_ge(sim_now(sim), now + 1000000);
	return NULL;
}

static void leaves_event(void *arg)
{
	pthread_t thread[SIM_TASKS];
	unsigned n = 0;
	(void)arg;
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

/* A wake-up of the thread that had the place before comes too late. */
TEST(wakeup_of_another)
{
	run(leaves_event);
	ck_assert_str_eq(notes, "all ");
}

static unsigned fails_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	(void)source;
	return n > 1 && at->kind == CHOICE_FAIL && at->a == FAIL_SPAWN;
}

static void cannot_start(void *arg)
{
	pthread_t thread;
	(void)arg;
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

static void data(void *arg)
{
	pthread_key_t more[40];
	(void)arg;
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

TEST(keys)
{
	run(data);
	ck_assert_str_eq(notes, "object 2 object 1 a again object 2 object 1 b "
				"object 2 object 1 task ");
}

/* --- mutexes --- */

static pthread_mutex_t mutex, second;
static pthread_cond_t cond;
static unsigned inside, most_inside, total;

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

static void three_lock(void *arg)
{
	pthread_t thread[3];
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	inside = most_inside = total = 0;
	for (unsigned i = 0; i < 3; i++)
		thread[i] = start(locks, &mutex);
	for (unsigned i = 0; i < 3; i++)
		end_of(thread[i]);
}

static void one_inside(void)
{
	ck_assert_uint_eq(most_inside, 1);
	ck_assert_uint_eq(total, 9);
}

static void three_without(void *arg)
{
	pthread_t thread[3];
	static pthread_mutex_t own[3];
	(void)arg;
	inside = most_inside = total = 0;
	for (unsigned i = 0; i < 3; i++) {
		own[i] = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
		thread[i] = start(locks, &own[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		end_of(thread[i]);
}

static unsigned raced;

static void count_races(void)
{
	raced += most_inside > 1;
}

TEST(exclusion)
{
	struct outcomes all = jumpy_runs(three_lock, one_inside);
	ck_assert_uint_eq(all.idle, SEEDS);
	all = many_runs(three_lock, one_inside);
	ck_assert_uint_eq(all.idle, SEEDS);
	/* Delays do bring them together where nothing keeps them apart. */
	raced = 0;
	jumpy_runs(three_without, count_races);
	ck_assert_uint_gt(raced, SEEDS / 2);
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

static void kinds(void *arg)
{
	static const int kind[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				   PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	pthread_mutexattr_t attr;
	pthread_mutex_t m, fixed = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	int got;
	(void)arg;
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

TEST(mutex_kinds)
{
	run(kinds);
	ck_assert_str_eq(notes, "all ");
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

static void one_holds_on(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	inside = 0;
	sim_pthread_mutex_lock(&mutex);
	pthread_t a = start(locks_for_ever, &mutex), b = start(locks_once, &mutex);
	rt_sleep(100);
	sim_pthread_mutex_unlock(&mutex);
	end_of(a);
	end_of(b);
	note("all");
}

TEST(nobody_is_kept_out)
{
	run(one_holds_on);
	ck_assert_str_eq(notes, "all ");
	ck_assert_uint_lt(total, 4); /* before the watch for livelocks holds it up */
}

static void *unlocks(void *arg)
{
	sim_pthread_mutex_unlock(arg);
	return NULL;
}

static void of_another(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	sim_pthread_mutex_lock(&mutex);
	end_of(start(unlocks, &mutex));
}

static void of_nobody(void *arg)
{
	(void)arg;
	sim_pthread_mutex_init(&second, NULL);
	sim_pthread_mutex_init(&mutex, NULL);
	unlocks(&mutex);
}

TEST(wrong_unlock)
{
	ends_with(of_another, "server/thread1 unlocks mutex #1, which server holds");
	ends_with(of_nobody, "server unlocks mutex #2, which nobody holds");
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

static void two_locks(bool turned)
{
	mutex = second = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	pthread_t a = start(locks_both, NULL), b = start(locks_both, turned ? &mutex : NULL);
	sim_pthread_setname_np(a, "a");
	sim_pthread_setname_np(b, "b");
	end_of(a);
	end_of(b);
}

static void crossing(void *arg)
{
	(void)arg;
	sim_pthread_mutex_init(&mutex, NULL);
	sim_pthread_mutex_init(&second, NULL);
	pthread_mutex_t numbered = mutex, other = second;
	pthread_t a = start(locks_both, NULL), b = start(locks_both, &mutex);
	mutex = numbered;
	second = other;
	sim_pthread_setname_np(a, "a");
	sim_pthread_setname_np(b, "b");
	end_of(a);
	end_of(b);
}

static void in_order(void *arg)
{
	(void)arg;
	two_locks(false);
}

TEST(two_mutexes)
{
	/* Without a delay nothing happens; random delays find it, and never where there is an
	 * order. */
	run(crossing);
	struct outcomes all = many_runs(crossing, NULL);
	ck_assert_uint_gt(all.fault, SEEDS / 50);
	ck_assert_uint_eq(all.fault + all.idle, SEEDS);
	ck_assert_str_eq(all.fault_text,
			 "deadlock: server/a holds mutex #1 and waits for mutex #2; "
			 "server/b holds mutex #2 and waits for mutex #1");
	all = many_runs(in_order, NULL);
	ck_assert_uint_eq(all.idle, SEEDS);
	all = jumpy_runs(in_order, NULL);
	ck_assert_uint_eq(all.idle, SEEDS);
}

static void locks_itself(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	sim_pthread_mutex_lock(&mutex);
	sim_pthread_mutex_lock(&mutex);
}

static void *keeps(void *arg)
{
	sim_pthread_mutex_lock(arg);
	return NULL;
}

static void after_its_end(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	end_of(start(keeps, &mutex));
	sim_pthread_mutex_lock(&mutex);
}

static void at_its_end(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
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

static void while_it_lives(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
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

static void join_each_other(void *arg)
{
	start(joins_for_a_while, arg);
}

static void waits_for_waiter(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	sim_pthread_mutex_lock(&mutex);
	end_of(start(keeps, &mutex));
}

static pthread_rwlock_t rwlock;
static pthread_spinlock_t spin;

static void *reads_then_writes(void *arg)
{
	(void)arg;
	sim_pthread_rwlock_rdlock(&rwlock);
	sim_pthread_yield();
	sim_pthread_rwlock_wrlock(&rwlock);
	return NULL;
}

static void upgrade(void *arg)
{
	(void)arg;
	rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	reads_then_writes(NULL);
}

static void two_upgrades(void *arg)
{
	(void)arg;
	rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
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
	(void)arg;
	sim_pthread_rwlock_wrlock(&rwlock);
	sim_pthread_yield();
	sim_pthread_spin_lock(&spin);
	return NULL;
}

static void three_kinds(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	sim_pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	sim_pthread_mutex_lock(&mutex);
	start(holds_spin, &mutex);
	start(holds_write, NULL);
	rt_sleep(1000);
	sim_pthread_rwlock_rdlock(&rwlock);
}

static pthread_once_t once;

static void calls_itself(void)
{
	sim_pthread_once(&once, calls_itself);
}

static void once_in_once(void *arg)
{
	(void)arg;
	once = PTHREAD_ONCE_INIT;
	calls_itself();
}

TEST(other_deadlocks)
{
	ends_with(locks_itself, "deadlock: server holds mutex #1 and waits for it");
	ends_with(after_its_end,
		  "deadlock: server waits for mutex #1, which server/thread1 held when it ended");
	ends_with(at_its_end,
		  "deadlock: server waits for mutex #1, which server/thread1 held when it ended");
	ck_assert_str_eq(notes, "timed ");
	run(join_each_other);
	ck_assert_str_eq(notes, "timed joined ");
	ends_with(while_it_lives,
		  "deadlock: server waits for mutex #1, which server/thread1 held when it ended");
	ends_with(waits_for_waiter,
		  "deadlock: server holds mutex #1 and waits for the end of server/thread1; "
		  "server/thread1 waits for mutex #1");
	ends_with(upgrade, "deadlock: server holds read-write lock #1 and waits for it");
	ends_with(two_upgrades,
		  "deadlock: server/thread1 holds read-write lock #1 and waits for it");
	ends_with(three_kinds,
		  "deadlock: server holds mutex #1 and waits for read-write lock #1; "
		  "server/thread2 holds read-write lock #1 and waits for spin lock #1; "
		  "server/thread1 holds spin lock #1 and waits for mutex #1");
	ends_with(once_in_once, "deadlock: server holds once #1 and waits for it");
}

/* --- condition variables --- */

static unsigned queue, taken;

static void *produces(void *arg)
{
	(void)arg;
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
	(void)arg;
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

static void queues(void *arg)
{
	pthread_t thread[3];
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	queue = taken = inside = most_inside = total = 0;
	thread[0] = start(consumes, NULL);
	thread[1] = start(consumes, NULL);
	thread[2] = start(produces, NULL);
	for (unsigned i = 0; i < 3; i++)
		end_of(thread[i]);
	note("all");
}

static void all_taken(void)
{
	ck_assert_str_eq(notes, "all ");
	ck_assert_uint_eq(taken, 4);
	ck_assert_uint_eq(most_inside, 1);
}

TEST(no_wakeup_is_lost)
{
	ck_assert_uint_eq(jumpy_runs(queues, all_taken).idle, SEEDS);
	ck_assert_uint_eq(many_runs(queues, all_taken).idle, SEEDS);
}

/* A waiter that looks before it holds the mutex does lose one. */
static void *looks_first(void *arg)
{
	(void)arg;
	if (queue)
		return NULL;
	sim_step(sim, STEP_LOAD, 5);
	sim_pthread_mutex_lock(&mutex);
	sim_pthread_cond_wait(&cond, &mutex);
	sim_pthread_mutex_unlock(&mutex);
	return NULL;
}

static void loses(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	queue = 0;
	pthread_t a = start(looks_first, NULL), b = start(produces, NULL);
	end_of(b);
	end_of(a);
	note("all");
}

static unsigned lost;

static void count_lost(void)
{
	lost += !*notes;
}

TEST(a_wakeup_is_lost)
{
	run(loses);
	ck_assert_str_eq(notes, "all ");
	lost = 0;
	jumpy_runs(loses, count_lost);
	ck_assert_uint_gt(lost, 0);
}

static void *waits_turn(void *arg)
{
	sim_pthread_mutex_lock(&mutex);
	sim_pthread_cond_wait(&cond, &mutex);
	note("%s", (char *)arg);
	sim_pthread_mutex_unlock(&mutex);
	return NULL;
}

static void conds(void *arg)
{
	pthread_condattr_t attr;
	pthread_cond_t timed;
	clockid_t clock;
	struct timespec soon;
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
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

static void without_mutex(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	sim_pthread_cond_wait(&cond, &mutex);
}

TEST(condition_variables)
{
	run(conds);
	ck_assert_str_eq(notes, "a | b c ");
	ends_with(without_mutex,
		  "server waits for condition variable #1 and does not hold the mutex");
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

static void at_barrier(void *arg)
{
	pthread_t thread[3];
	(void)arg;
	memset(arrived, 0, sizeof(arrived));
	serial = 0;
	memset(&barrier, 0, sizeof(barrier));
	ck_assert_int_eq(sim_pthread_barrier_wait(&barrier), EINVAL);
	ck_assert_int_eq(sim_pthread_barrier_init(&barrier, NULL, 0), EINVAL);
	ck_assert_int_eq(sim_pthread_barrier_init(&barrier, NULL, 3), 0);
	for (unsigned i = 0; i < 3; i++)
		thread[i] = start(meets, &arrived[i]);
	for (unsigned i = 0; i < 3; i++)
		end_of(thread[i]);
	ck_assert_int_eq(sim_pthread_barrier_destroy(&barrier), 0);
	note("all");
}

static void met(void)
{
	ck_assert_str_eq(notes, "all ");
	ck_assert_uint_eq(serial, 3);
}

TEST(barriers)
{
	run(at_barrier);
	met();
	ck_assert_uint_eq(jumpy_runs(at_barrier, met).idle, SEEDS);
}

static unsigned readers, writers, most_readers;
static bool mixed;

static void *reads(void *arg)
{
	(void)arg;
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
	(void)arg;
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

static void reads_and_writes(void *arg)
{
	pthread_t thread[4];
	(void)arg;
	rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	readers = writers = 0;
	for (unsigned i = 0; i < 4; i++)
		thread[i] = start(i < 2 ? reads : writes, NULL);
	for (unsigned i = 0; i < 4; i++)
		end_of(thread[i]);
	note("all");
}

static void apart(void)
{
	ck_assert_str_eq(notes, "all ");
	ck_assert(!mixed);
}

static void rwlocks(void *arg)
{
	struct timespec soon = in_ns(CLOCK_REALTIME, 500);
	pthread_rwlock_t l;
	(void)arg;
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

TEST(readers_and_writers)
{
	mixed = false;
	most_readers = 0;
	ck_assert_uint_eq(jumpy_runs(reads_and_writes, apart).idle, SEEDS);
	ck_assert_uint_eq(most_readers, 2);
	ck_assert_uint_eq(many_runs(reads_and_writes, apart).idle, SEEDS);
	ends_with(rwlocks, "server unlocks read-write lock #2, which it does not hold");
}

static void *spins(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		sim_pthread_spin_lock(&spin);
		work();
		sim_pthread_spin_unlock(&spin);
	}
	return NULL;
}

static void three_spin(void *arg)
{
	pthread_t thread[3];
	(void)arg;
	inside = most_inside = total = 0;
	ck_assert_int_eq(sim_pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
	for (unsigned i = 0; i < 3; i++)
		thread[i] = start(spins, NULL);
	for (unsigned i = 0; i < 3; i++)
		end_of(thread[i]);
	ck_assert_int_eq(sim_pthread_spin_trylock(&spin), 0);
	ck_assert_int_eq(sim_pthread_spin_trylock(&spin), EBUSY);
	ck_assert_int_eq(sim_pthread_spin_destroy(&spin), EBUSY);
	ck_assert_int_eq(sim_pthread_spin_unlock(&spin), 0);
	ck_assert_int_eq(sim_pthread_spin_destroy(&spin), 0);
}

TEST(spin_locks)
{
	ck_assert_uint_eq(jumpy_runs(three_spin, one_inside).idle, SEEDS);
}

static unsigned initialised;

static void initialise(void)
{
	sim_step(sim, STEP_STORE, 5);
	sim_step(sim, STEP_STORE, 5);
	initialised++;
}

static void *needs_it(void *arg)
{
	(void)arg;
	ck_assert_int_eq(sim_pthread_once(&once, initialise), 0);
	ck_assert_uint_eq(initialised, 1);
	return NULL;
}

static void three_need_it(void *arg)
{
	pthread_t thread[3];
	(void)arg;
	once = PTHREAD_ONCE_INIT;
	initialised = 0;
	for (unsigned i = 0; i < 3; i++)
		thread[i] = start(needs_it, NULL);
	for (unsigned i = 0; i < 3; i++)
		end_of(thread[i]);
	note("all");
}

TEST(only_once)
{
	run(three_need_it);
	ck_assert_uint_eq(jumpy_runs(three_need_it, NULL).idle, SEEDS);
	ck_assert_str_eq(notes, "all ");
}

static void *answers(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(sim_sem_wait(&sem), 0);
		note("%u", i);
		ck_assert_int_eq(sim_sem_post(&back), 0);
	}
	return NULL;
}

static void semaphores(void *arg)
{
	struct timespec soon;
	int value;
	(void)arg;
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

static void asked_and_answered(void)
{
	ck_assert_str_eq(notes, "ask 0 ask 1 ask 2 all ");
}

TEST(semaphore)
{
	run(semaphores);
	asked_and_answered();
	ck_assert_uint_eq(many_runs(semaphores, asked_and_answered).idle, SEEDS);
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

static void c11(void *arg)
{
	thrd_t a, b;
	int result;
	struct timespec soon = in_ns(CLOCK_REALTIME, 500), a_while = {0, 300};
	(void)arg;
	queue = initialised = 0;
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

TEST(c11_threads)
{
	run(c11);
	ck_assert_str_eq(notes, "a b ");
}

/* --- processes --- */

static void *holds_on(void *arg)
{
	sim_pthread_mutex_lock(arg);
	rt_sleep(1000000);
	note("never");
	return NULL;
}

static void client(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	start(holds_on, &mutex);
	rt_sleep(1000);
	note("%s", sim_actor(sim)->name);
	sim_end_others(sim);
	sim_connects_again(sim, 1);
	/* A new process, with new memory. */
	second = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	end_of(start(twice, NULL));
	sim_pthread_mutex_lock(&second);
	sim_pthread_mutex_lock(&second);
}

TEST(new_process)
{
	sim_reset(sim, NULL);
	notes[0] = '\0';
	ck_assert_int_eq(sim_spawn(sim, 1, NULL, client, NULL), 0);
	ck_assert_int_eq(sim_run(sim), SIM_FAULT);
	ck_assert_str_eq(notes, "c1 c1/thread1.2 ");
	ck_assert_str_eq(sim_fault(sim, NULL), "deadlock: c1 holds mutex #1 and waits for it");
}

/* The server's function runs on a client's task when it connects. */
static int accepts(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	(void)req, (void)req_len, (void)rsp, (void)rsp_len;
	sim_pthread_mutex_lock(arg);
	sim_step(sim, STEP_POST, 5);
	sim_pthread_mutex_unlock(arg);
	return 0;
}

static void server_with_lock(void *arg)
{
	(void)arg;
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	ck_assert_int_eq(rt_listen(accepts, &mutex), 0);
	rt_sleep(5000);
	sim_pthread_mutex_lock(&mutex);
	note("goes on");
}

static void connects(void *arg)
{
	(void)arg;
	rt_sleep(1000);
	rt_connect(NULL, 0, NULL, 0);
	note("connected");
}

static unsigned dies_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	(void)source;
	return n > DELAY_FOREVER && at->kind == CHOICE_STEP && at->a == STEP_POST ? DELAY_FOREVER
										  : 0;
}

TEST(client_dies_in_accept)
{
	struct source source = {.answer = dies_answer};
	sim_reset(sim, &source);
	notes[0] = '\0';
	ck_assert_int_eq(sim_spawn(sim, HOST_SERVER, NULL, server_with_lock, NULL), 0);
	ck_assert_int_eq(sim_spawn(sim, 1, NULL, connects, NULL), 0);
	ck_assert_int_eq(sim_run(sim), SIM_IDLE);
	ck_assert_str_eq(notes, "goes on ");
}

/* The server dies while its function waits on a client's task. */
static void listens_and_holds(void *arg)
{
	server_with_lock(arg);
	rt_sleep(3000);
	sim_step(sim, STEP_POST, 5);
	note("never");
}

static void is_refused(void *arg)
{
	(void)arg;
	rt_sleep(6000);
	note("%d", rt_connect(NULL, 0, NULL, 0));
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	sim_pthread_mutex_lock(&mutex);
}

static unsigned server_dies_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	(void)source, (void)n;
	return at->kind == CHOICE_STEP && at->a == STEP_POST && at->who->name[0] == 's'
		       ? DEATH_SERVER
		       : 0;
}

static void bury_server(void *arg, unsigned host, unsigned how)
{
	(void)arg, (void)host, (void)how;
}

TEST(server_dies_in_accept)
{
	struct source source = {.answer = server_dies_answer};
	sim_reset(sim, &source);
	sim_set_death(sim, bury_server, NULL);
	notes[0] = '\0';
	ck_assert_int_eq(sim_spawn(sim, HOST_SERVER, NULL, listens_and_holds, NULL), 0);
	ck_assert_int_eq(sim_spawn(sim, 1, NULL, is_refused, NULL), 0);
	enum sim_end end = sim_run(sim);
	ck_assert_msg(end == SIM_IDLE, "ended with %d: %s", (int)end, sim_fault(sim, NULL));
	ck_assert_str_eq(notes, "goes on -111 ");
}

/* What the server's function makes is the server's, and so is what it locks: two processes may have
 * their static data at one address. */
static int makes_thread(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	(void)req, (void)req_len, (void)rsp, (void)rsp_len;
	start(twice, arg);
	return 0;
}

static void listens(void *arg)
{
	(void)arg;
	ck_assert_int_eq(rt_listen(makes_thread, NULL), 0);
	sim_pthread_mutex_lock(&mutex);
	pthread_mutex_t of_server = mutex;
	rt_sleep(2000);
	note("server");
	mutex = of_server; /* as when the host's data are put in place */
	sim_pthread_mutex_unlock(&mutex);
}

static void has_its_own(void *arg)
{
	(void)arg;
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
	sim_reset(sim, NULL);
	notes[0] = '\0';
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	ck_assert_int_eq(sim_spawn(sim, HOST_SERVER, NULL, listens, NULL), 0);
	ck_assert_int_eq(sim_spawn(sim, 1, NULL, has_its_own, NULL), 0);
	enum sim_end end = sim_run(sim);
	ck_assert_msg(end == SIM_IDLE, "ended with %d: %s", (int)end, sim_fault(sim, NULL));
	ck_assert_str_eq(notes, "server/thread1 c1/thread1 server ");
}

/* --- steps --- */

static unsigned lock_steps;

static unsigned count_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	(void)source, (void)n;
	if (at->kind == CHOICE_STEP && at->a == STEP_LOCK)
		ck_assert_uint_eq(at->b, ++lock_steps);
	return 0;
}

static bool in_pm;
static unsigned locked_calls;

static bool is_locked(void *arg, const void *at, uintptr_t pc)
{
	ck_assert_ptr_eq(arg, &locked_calls);
	(void)pc;
	locked_calls++;
	return !in_pm || at != &mutex;
}

static void some_steps(void *arg)
{
	(void)arg;
	sim_set_locked(sim, is_locked, &locked_calls);
	memset(&mutex, 0, sizeof(mutex));
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
	ends_with(some_steps, "a mutex in persistent memory, which would survive its process");
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
	(void)arg;
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
	(void)arg, (void)what, (void)where, (void)len;
}

static void nothing(void *arg)
{
	(void)arg;
}

static void run_searched(void *arg)
{
	unsigned i = 0;
	(void)arg;
	sim_reset(sim, &search.source);
	mutex = second = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
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

static uint64_t hash_of(void (*main)(void *), uint64_t seed)
{
	struct jumpy jumpy = {{.answer = jumpy_answer}, seed};
	run_with(main, &jumpy.source);
	sim_mix_bytes(sim, notes, strlen(notes));
	sim_mix(sim, sim_now(sim), total);
	return sim_hash(sim);
}

TEST(determinism)
{
	static void (*const program[])(void *) = {three_lock, crossing, queues, reads_and_writes,
						  at_barrier, data,	c11};
	unsigned different = 0;
	for (unsigned p = 0; p < sizeof(program) / sizeof(program[0]); p++)
		for (uint64_t seed = 1; seed <= 50; seed++) {
			uint64_t hash = hash_of(program[p], seed);
			struct sim *old = sim;
			ck_assert_uint_eq(hash_of(program[p], seed), hash);
			sim = sim_new(); /* other addresses */
			ck_assert_uint_eq(hash_of(program[p], seed), hash);
			different += hash_of(program[p], seed + 1) != hash;
			sim_free(sim);
			sim = old;
		}
	ck_assert_uint_gt(different, 300);
}

int main(void)
{
	return run_suite(listed_suite("threads", setup, teardown));
}
