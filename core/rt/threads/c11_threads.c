/* SPDX-License-Identifier: BSD-3-Clause */
/* <threads.h>, on the functions for POSIX threads, as glibc has it. See threads.h. */
#include <errno.h>
#include "core/rt/threads/sim_threads.h"
#include "core/rt/threads/threads.h"

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "glibc's are alike");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "glibc's are alike");
_Static_assert(sizeof(once_flag) == sizeof(pthread_once_t), "glibc's are alike");

static int c11_error(int error)
{
	switch (error) {
	case 0:
		return thrd_success;
	case EBUSY:
		return thrd_busy;
	case ETIMEDOUT:
		return thrd_timedout;
	case ENOMEM:
		return thrd_nomem;
	default:
		return thrd_error;
	}
}

static pthread_mutex_t *of_mtx(mtx_t *mutex)
{
	return (pthread_mutex_t *)mutex;
}

static pthread_cond_t *of_cnd(cnd_t *cond)
{
	return (pthread_cond_t *)cond;
}

struct start {
	thrd_start_t fn;
	void *arg;
};

static void *start_main(void *arg)
{
	const struct start *start = arg;
	return (void *)(intptr_t)start->fn(start->arg);
}

int sim_thrd_create(thrd_t *thread, thrd_start_t fn, void *arg)
{
	struct start *start = sim_alloc(sim_of_thread, sizeof(*start));
	*start = (struct start){fn, arg};
	return c11_error(sim_pthread_create(thread, NULL, start_main, start));
}

int sim_thrd_join(thrd_t thread, int *result)
{
	void *returned;
	int error = thread_join(thread, &returned, NEVER, PC);
	if (!error && result)
		*result = (int)(intptr_t)returned;
	return c11_error(error);
}

thrd_t sim_thrd_current(void)
{
	return sim_pthread_self();
}

int sim_thrd_equal(thrd_t a, thrd_t b)
{
	return a == b;
}

void sim_thrd_exit(int result)
{
	sim_pthread_exit((void *)(intptr_t)result);
}

void sim_thrd_yield(void)
{
	sim_sched_yield();
}

int sim_thrd_sleep(const struct timespec *time, struct timespec *left)
{
	uint64_t ns;
	if (sync_deadline(CLOCK_MONOTONIC, time, &ns))
		return -2;
	sim_sleep(sim_of_thread, ns);
	if (left)
		*left = (struct timespec){0};
	return 0;
}

int sim_mtx_init(mtx_t *mutex, int type)
{
	pthread_mutexattr_t attr;
	sim_pthread_mutexattr_init(&attr);
	if (type & ~(mtx_recursive | mtx_timed))
		return thrd_error;
	if (type & mtx_recursive)
		sim_pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	return c11_error(sim_pthread_mutex_init(of_mtx(mutex), &attr));
}

void sim_mtx_destroy(mtx_t *mutex)
{
	sim_pthread_mutex_destroy(of_mtx(mutex));
}

void sim_cnd_destroy(cnd_t *cond)
{
	sim_pthread_cond_destroy(of_cnd(cond));
}

void sim_tss_delete(tss_t key)
{
	sim_pthread_key_delete(key);
}

void *sim_tss_get(tss_t key)
{
	return sim_pthread_getspecific(key);
}

void sim_call_once(once_flag *once, void (*fn)(void))
{
	sim_pthread_once((pthread_once_t *)once, fn);
}

/* --- those that only have errors of their own --- */

#define C11(name, params, call)         \
	int sim_##name params           \
	{                               \
		return c11_error(call); \
	}

C11(thrd_detach, (thrd_t thread), sim_pthread_detach(thread))
C11(mtx_lock, (mtx_t * mutex), mutex_lock(of_mtx(mutex), NEVER, PC))
C11(mtx_trylock, (mtx_t * mutex), mutex_trylock(of_mtx(mutex), PC))
C11(mtx_timedlock, (mtx_t * mutex, const struct timespec *at),
    UNTIL(CLOCK_REALTIME, at, mutex_lock(of_mtx(mutex), deadline, PC)))
C11(mtx_unlock, (mtx_t * mutex), mutex_unlock(of_mtx(mutex), PC))
C11(cnd_init, (cnd_t * cond), sim_pthread_cond_init(of_cnd(cond), NULL))
C11(cnd_wait, (cnd_t * cond, mtx_t *mutex), cond_wait(of_cnd(cond), of_mtx(mutex), NEVER, PC))
C11(cnd_timedwait, (cnd_t * cond, mtx_t *mutex, const struct timespec *at),
    UNTIL(CLOCK_REALTIME, at, cond_wait(of_cnd(cond), of_mtx(mutex), deadline, PC)))
C11(cnd_signal, (cnd_t * cond), sim_pthread_cond_signal(of_cnd(cond)))
C11(cnd_broadcast, (cnd_t * cond), sim_pthread_cond_broadcast(of_cnd(cond)))
C11(tss_create, (tss_t * key, tss_dtor_t destructor), sim_pthread_key_create(key, destructor))
C11(tss_set, (tss_t key, void *value), sim_pthread_setspecific(key, value))
