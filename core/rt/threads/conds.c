/* SPDX-License-Identifier: BSD-3-Clause */
/* Condition variables, barriers, semaphores. See threads.h. */
#include <errno.h>
#include <limits.h>
#include "core/fail.h"
#include "core/rt/threads/sim_threads.h"
#include "core/rt/threads/threads.h"

/* --- condition variables --- */

struct cond {
	uint32_t number;
	int32_t clock; /* of pthread_cond_timedwait(); CLOCK_REALTIME is 0 */
};
_Static_assert(sizeof(struct cond) <= sizeof(pthread_cond_t), "fits into glibc's");
_Static_assert(CLOCK_REALTIME == 0, "what a static initialiser says");

static struct cond *of_cond(pthread_cond_t *cond)
{
	return (struct cond *)cond;
}

static struct sync named_cond(struct sim *sim, struct cond *c)
{
	return sync_named(sim, c, &c->number, SYNC_COND);
}

int cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline, uintptr_t pc)
{
	struct sim *sim = sim_of_thread;
	struct cond *c = of_cond(cond);
	struct thread *thread = sync_step(sim, c, sizeof(*c), "condition variable", pc);
	struct sync what = named_cond(sim, c);
	char name[SYNC_NAME];
	sim_touch_state(sim, TOUCH_DRAM_WRITE, mutex, sizeof(struct mutex));
	/* From here until the thread sleeps no other runs. */
	uint32_t times = mutex_release(sim, thread, mutex);
	if (!times && (mutex->__data.__kind == PTHREAD_MUTEX_ERRORCHECK ||
		       mutex->__data.__kind == PTHREAD_MUTEX_RECURSIVE))
		return EPERM;
	if (!times)
		sync_fault(sim, pc, "%s waits for %s and does not hold the mutex",
			   thread_actor(thread), sync_name(what, name));
	bool woken = sync_wait(sim, thread, what, deadline, pc);
	sync_waited(thread);
	mutex_lock_again(sim, mutex, times, pc);
	return woken ? 0 : ETIMEDOUT;
}

int sim_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return cond_wait(cond, mutex, NEVER, PC);
}

int sim_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			       const struct timespec *at)
{
	return UNTIL(of_cond(cond)->clock, at, cond_wait(cond, mutex, deadline, PC));
}

int sim_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			       const struct timespec *at)
{
	return UNTIL(clock, at, cond_wait(cond, mutex, deadline, PC));
}

int sim_pthread_cond_signal(pthread_cond_t *cond)
{
	struct sim *sim = sim_of_thread;
	struct cond *c = of_cond(cond);
	sync_step(sim, c, sizeof(*c), "condition variable", PC);
	sync_trace(sim, PC, "signals", named_cond(sim, c));
	sync_wake(sim, named_cond(sim, c));
	return 0;
}

int sim_pthread_cond_broadcast(pthread_cond_t *cond)
{
	struct sim *sim = sim_of_thread;
	struct cond *c = of_cond(cond);
	sync_step(sim, c, sizeof(*c), "condition variable", PC);
	sync_trace(sim, PC, "signals to all", named_cond(sim, c));
	sync_wake_all(sim, named_cond(sim, c));
	return 0;
}

/* A condattr holds the clock. */
ATTRIBUTES(condattr)

int sim_pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	memcpy(attr, &clock, sizeof(clock));
	return 0;
}

int sim_pthread_condattr_getclock(const pthread_condattr_t *attr, clockid_t *clock)
{
	memcpy(clock, attr, sizeof(*clock));
	return 0;
}

int sim_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	struct sim *sim = sim_of_thread;
	struct cond *c = of_cond(cond);
	sync_new(sim, cond, sizeof(*cond), "condition variable", PC);
	if (attr)
		sim_pthread_condattr_getclock(attr, &c->clock);
	named_cond(sim, c);
	return 0;
}

int sim_pthread_cond_destroy(pthread_cond_t *cond)
{
	struct sim *sim = sim_of_thread;
	struct cond *c = of_cond(cond);
	sync_step(sim, c, sizeof(*c), "condition variable", PC);
	if (sync_waited_for(sim, named_cond(sim, c)))
		return EBUSY;
	memset(cond, 0, sizeof(*cond));
	return 0;
}

/* --- barriers --- */

struct barrier {
	uint32_t number;
	uint32_t count;	  /* threads that meet; 0: it is not initialised */
	uint32_t arrived; /* in this round */
};
_Static_assert(sizeof(struct barrier) <= sizeof(pthread_barrier_t), "fits into glibc's");

int sim_pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr,
			     unsigned count)
{
	struct sim *sim = sim_of_thread;
	struct barrier *b = (struct barrier *)barrier;
	if (!count || count > INT_MAX)
		return EINVAL;
	sync_new(sim, barrier, sizeof(*barrier), "barrier", PC);
	b->count = count;
	sync_named(sim, b, &b->number, SYNC_BARRIER);
	return 0;
}

int sim_pthread_barrier_destroy(pthread_barrier_t *barrier)
{
	struct barrier *b = (struct barrier *)barrier;
	sync_step(sim_of_thread, b, sizeof(*b), "barrier", PC);
	if (b->arrived)
		return EBUSY;
	memset(barrier, 0, sizeof(*barrier));
	return 0;
}

int sim_pthread_barrier_wait(pthread_barrier_t *barrier)
{
	struct sim *sim = sim_of_thread;
	struct barrier *b = (struct barrier *)barrier;
	struct thread *thread = sync_step(sim, b, sizeof(*b), "barrier", PC);
	const struct sync what = sync_named(sim, b, &b->number, SYNC_BARRIER);
	if (!b->count)
		return EINVAL;
	if (++b->arrived < b->count) {
		sync_wait(sim, thread, what, NEVER, PC);
		sync_waited(thread);
		return 0;
	}
	b->arrived = 0;
	sync_trace(sim, PC, "is the last to come to", what);
	sync_wake_all(sim, what);
	return PTHREAD_BARRIER_SERIAL_THREAD;
}

ATTRIBUTES(barrierattr)

/* --- semaphores --- */

struct semaphore {
	uint32_t number;
	uint32_t value;
};
_Static_assert(sizeof(struct semaphore) <= sizeof(sem_t), "fits into glibc's");

static struct sync named_semaphore(struct sim *sim, struct semaphore *s)
{
	return sync_named(sim, s, &s->number, SYNC_SEMAPHORE);
}

static struct thread *step_semaphore(struct sim *sim, struct semaphore *s, uintptr_t pc)
{
	return sync_step(sim, s, sizeof(*s), "semaphore", pc);
}

int sim_sem_init(sem_t *sem, int shared, unsigned value)
{
	struct sim *sim = sim_of_thread;
	struct semaphore *s = (struct semaphore *)sem;
	if (value > SEM_VALUE_MAX)
		return errno_minus(EINVAL);
	sync_new(sim, sem, sizeof(*sem), "semaphore", PC);
	s->value = value;
	named_semaphore(sim, s);
	return 0;
}

int sim_sem_destroy(sem_t *sem)
{
	struct semaphore *s = (struct semaphore *)sem;
	step_semaphore(sim_of_thread, s, PC);
	memset(sem, 0, sizeof(*sem));
	return 0;
}

static int wait_semaphore(sem_t *sem, uint64_t deadline, uintptr_t pc)
{
	struct sim *sim = sim_of_thread;
	struct semaphore *s = (struct semaphore *)sem;
	struct thread *thread = step_semaphore(sim, s, pc);
	if (s->value)
		sync_gives_way(sim, thread, named_semaphore(sim, s));
	while (!s->value) {
		if (!sync_wait(sim, thread, named_semaphore(sim, s), deadline, pc) && !s->value) {
			sync_waited(thread);
			return errno_minus(ETIMEDOUT);
		}
		step_semaphore(sim, s, pc);
	}
	s->value--;
	sync_waited(thread);
	sync_trace(sim, pc, "takes one of", named_semaphore(sim, s));
	return 0;
}

int sim_sem_wait(sem_t *sem)
{
	return wait_semaphore(sem, NEVER, PC);
}

int sim_sem_timedwait(sem_t *sem, const struct timespec *at)
{
	uint64_t deadline;
	int error = sync_deadline(CLOCK_REALTIME, at, &deadline);
	return error ? errno_minus(error) : wait_semaphore(sem, deadline, PC);
}

int sim_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *at)
{
	uint64_t deadline;
	int error = sync_deadline(clock, at, &deadline);
	return error ? errno_minus(error) : wait_semaphore(sem, deadline, PC);
}

int sim_sem_trywait(sem_t *sem)
{
	struct sim *sim = sim_of_thread;
	struct semaphore *s = (struct semaphore *)sem;
	step_semaphore(sim, s, PC);
	if (!s->value)
		return errno_minus(EAGAIN);
	s->value--;
	sync_trace(sim, PC, "takes one of", named_semaphore(sim, s));
	return 0;
}

int sim_sem_post(sem_t *sem)
{
	struct sim *sim = sim_of_thread;
	struct semaphore *s = (struct semaphore *)sem;
	step_semaphore(sim, s, PC);
	if (s->value == SEM_VALUE_MAX)
		return errno_minus(EOVERFLOW);
	s->value++;
	sync_trace(sim, PC, "posts", named_semaphore(sim, s));
	sync_wake(sim, named_semaphore(sim, s));
	return 0;
}

int sim_sem_getvalue(sem_t *sem, int *value)
{
	struct semaphore *s = (struct semaphore *)sem;
	step_semaphore(sim_of_thread, s, PC);
	*value = (int)s->value;
	return 0;
}
