/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutexes, spin locks, read-write locks, pthread_once(). See threads.h.
 *
 * A lock that becomes free wakes those that wait for it; it has no owner until one of them, or
 * another thread, has taken it at a step of its own.
 */
#include <errno.h>
#include "core/rt/threads/sim_threads.h"
#include "core/rt/threads/threads.h"

/* --- mutexes --- */

static struct mutex *of_mutex(pthread_mutex_t *mutex)
{
	return (struct mutex *)mutex;
}

static struct sync named_mutex(struct sim *sim, struct mutex *m)
{
	return sync_named(sim, m, &m->number, SYNC_MUTEX);
}

static void take_mutex(struct sim *sim, struct thread *thread, struct mutex *m, uint32_t times,
		       uintptr_t pc)
{
	struct sync what = named_mutex(sim, m);
	assert(!m->owner);
	m->owner = thread->serial;
	m->times = times;
	sync_waited(thread);
	sync_hold(sim, thread, what);
	sync_trace(sim, pc, "locks", what);
}

/* Does another thread own it? What a dead thread held is free. */
static bool is_held(struct sim *sim, struct mutex *m)
{
	if (m->owner && sync_is_gone(sim, m->owner))
		m->owner = m->times = 0;
	return m->owner;
}

/* Wait for it if necessary, and take it. */
static int get_mutex(struct sim *sim, struct thread *thread, struct mutex *m, uint32_t times,
		     uint64_t deadline, uintptr_t pc)
{
	if (!is_held(sim, m))
		sync_gives_way(sim, thread, named_mutex(sim, m));
	while (is_held(sim, m)) {
		if (!sync_wait(sim, thread, named_mutex(sim, m), deadline, pc) && is_held(sim, m)) {
			sync_waited(thread);
			return ETIMEDOUT;
		}
		sync_step(sim, m, sizeof(*m), "mutex", pc);
	}
	take_mutex(sim, thread, m, times, pc);
	return 0;
}

static bool is_kind(const struct mutex *m)
{
	return m->kind >= PTHREAD_MUTEX_TIMED_NP && m->kind <= PTHREAD_MUTEX_ADAPTIVE_NP;
}

int mutex_lock(pthread_mutex_t *mutex, uint64_t deadline, uintptr_t pc)
{
	struct sim *sim = sim_of_thread;
	struct mutex *m = of_mutex(mutex);
	struct thread *thread = sync_step(sim, m, sizeof(*m), "mutex", pc);
	if (!is_kind(m))
		return EINVAL;
	if (m->owner == thread->serial && m->kind == PTHREAD_MUTEX_RECURSIVE) {
		if (m->times == UINT32_MAX)
			return EAGAIN;
		m->times++;
		return 0;
	}
	if (m->owner == thread->serial && m->kind == PTHREAD_MUTEX_ERRORCHECK)
		return EDEADLK;
	return get_mutex(sim, thread, m, 1, deadline, pc);
}

int sim_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return mutex_lock(mutex, NEVER, PC);
}

int mutex_trylock(pthread_mutex_t *mutex, uintptr_t pc)
{
	struct sim *sim = sim_of_thread;
	struct mutex *m = of_mutex(mutex);
	struct thread *thread = sync_step(sim, m, sizeof(*m), "mutex", pc);
	if (!is_kind(m))
		return EINVAL;
	if (m->owner == thread->serial && m->kind == PTHREAD_MUTEX_RECURSIVE) {
		m->times++;
		return 0;
	}
	if (is_held(sim, m))
		return EBUSY;
	take_mutex(sim, thread, m, 1, pc);
	return 0;
}

int sim_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return mutex_trylock(mutex, PC);
}

int sim_pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at)
{
	return UNTIL(clock, at, mutex_lock(mutex, deadline, PC));
}

int sim_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *at)
{
	return UNTIL(CLOCK_REALTIME, at, mutex_lock(mutex, deadline, PC));
}

int mutex_unlock(pthread_mutex_t *mutex, uintptr_t pc)
{
	struct sim *sim = sim_of_thread;
	struct mutex *m = of_mutex(mutex);
	struct thread *thread = sync_step(sim, m, sizeof(*m), "mutex", pc);
	char name[SYNC_NAME];
	if (m->owner == thread->serial && --m->times)
		return 0;
	if (m->owner == thread->serial) {
		sync_trace(sim, pc, "unlocks", named_mutex(sim, m));
		mutex_release(sim, thread, mutex);
		return 0;
	}
	if (m->kind == PTHREAD_MUTEX_RECURSIVE || m->kind == PTHREAD_MUTEX_ERRORCHECK)
		return EPERM;
	struct thread *owner = m->owner ? thread_find(sim, m->owner) : NULL;
	sync_fault(sim, pc, "%s unlocks %s, which %s holds", thread_actor(thread),
		   sync_name(named_mutex(sim, m), name), owner ? thread_actor(owner) : "nobody");
}

int sim_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return mutex_unlock(mutex, PC);
}

uint32_t mutex_release(struct sim *sim, struct thread *thread, pthread_mutex_t *mutex)
{
	struct mutex *m = of_mutex(mutex);
	uint32_t times = m->times ? m->times : 1;
	if (m->owner != thread->serial)
		return 0;
	m->owner = m->times = 0;
	sync_release(thread, named_mutex(sim, m));
	sync_wake(sim, named_mutex(sim, m));
	return times;
}

void mutex_lock_again(struct sim *sim, pthread_mutex_t *mutex, uint32_t times, uintptr_t pc)
{
	struct mutex *m = of_mutex(mutex);
	struct thread *thread = sync_step(sim, m, sizeof(*m), "mutex", pc);
	get_mutex(sim, thread, m, times, NEVER, pc);
}

/* A mutexattr holds the kind. */
ATTRIBUTES(mutexattr)

int sim_pthread_mutexattr_settype(pthread_mutexattr_t *attr, int kind)
{
	if (kind < PTHREAD_MUTEX_TIMED_NP || kind > PTHREAD_MUTEX_ADAPTIVE_NP)
		return EINVAL;
	memcpy(attr, &kind, sizeof(kind));
	return 0;
}

int sim_pthread_mutexattr_gettype(const pthread_mutexattr_t *attr, int *kind)
{
	memcpy(kind, attr, sizeof(*kind));
	return 0;
}

int sim_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	struct sim *sim = sim_of_thread;
	struct mutex *m = of_mutex(mutex);
	int kind = PTHREAD_MUTEX_DEFAULT;
	if (attr)
		sim_pthread_mutexattr_gettype(attr, &kind);
	sync_new(sim, mutex, sizeof(*mutex), "mutex", PC);
	m->kind = kind;
	named_mutex(sim, m);
	return 0;
}

int sim_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	struct mutex *m = of_mutex(mutex);
	sync_step(sim_of_thread, m, sizeof(*m), "mutex", PC);
	if (m->owner)
		return EBUSY;
	memset(mutex, 0, sizeof(*mutex));
	return 0;
}

/* --- spin locks: a thread sleeps until the lock is free --- */

static struct sync named_spin(struct sim *sim, pthread_spinlock_t *lock)
{
	uint32_t number = SPIN_NUMBER(*lock);
	struct sync what = sync_named(sim, (const void *)lock, &number, SYNC_SPIN);
	*lock = (int)((number & SERIAL_MAX) << 16 | SPIN_OWNER(*lock));
	return what;
}

static bool is_spinning(struct sim *sim, pthread_spinlock_t *lock)
{
	if (SPIN_OWNER(*lock) && sync_is_gone(sim, SPIN_OWNER(*lock)))
		*lock &= (int)~SERIAL_MAX;
	return SPIN_OWNER(*lock);
}

static void take_spin(struct sim *sim, struct thread *thread, pthread_spinlock_t *lock,
		      uintptr_t pc)
{
	struct sync what = named_spin(sim, lock);
	assert(!SPIN_OWNER(*lock));
	*lock |= (int)thread->serial;
	sync_waited(thread);
	sync_hold(sim, thread, what);
	sync_trace(sim, pc, "locks", what);
}

static struct thread *step_spin(struct sim *sim, pthread_spinlock_t *lock, uintptr_t pc)
{
	return sync_step(sim, (const void *)lock, sizeof(*lock), "spin lock", pc);
}

int sim_pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
	int error = sync_shared(shared);
	if (error)
		return error;
	sync_new(sim_of_thread, (void *)lock, sizeof(*lock), "spin lock", PC);
	named_spin(sim_of_thread, lock);
	return 0;
}

int sim_pthread_spin_destroy(pthread_spinlock_t *lock)
{
	step_spin(sim_of_thread, lock, PC);
	if (SPIN_OWNER(*lock))
		return EBUSY;
	*lock = 0;
	return 0;
}

int sim_pthread_spin_lock(pthread_spinlock_t *lock)
{
	struct sim *sim = sim_of_thread;
	struct thread *thread = step_spin(sim, lock, PC);
	if (!is_spinning(sim, lock))
		sync_gives_way(sim, thread, named_spin(sim, lock));
	while (is_spinning(sim, lock)) {
		sync_wait(sim, thread, named_spin(sim, lock), NEVER, PC);
		step_spin(sim, lock, PC);
	}
	take_spin(sim, thread, lock, PC);
	return 0;
}

int sim_pthread_spin_trylock(pthread_spinlock_t *lock)
{
	struct sim *sim = sim_of_thread;
	struct thread *thread = step_spin(sim, lock, PC);
	if (is_spinning(sim, lock))
		return EBUSY;
	take_spin(sim, thread, lock, PC);
	return 0;
}

int sim_pthread_spin_unlock(pthread_spinlock_t *lock)
{
	struct sim *sim = sim_of_thread;
	struct thread *thread = step_spin(sim, lock, PC);
	char name[SYNC_NAME];
	if (SPIN_OWNER(*lock) != thread->serial)
		sync_fault(sim, PC, "%s unlocks %s, which it does not hold", thread_actor(thread),
			   sync_name(named_spin(sim, lock), name));
	sync_trace(sim, PC, "unlocks", named_spin(sim, lock));
	*lock &= (int)~SERIAL_MAX;
	sync_release(thread, named_spin(sim, lock));
	sync_wake(sim, named_spin(sim, lock));
	return 0;
}

/* --- read-write locks: as glibc's, readers enter while others read, past waiting writers --- */

static struct rwlock *of_rwlock(pthread_rwlock_t *lock)
{
	return (struct rwlock *)lock;
}

static struct sync named_rwlock(struct sim *sim, struct rwlock *l)
{
	return sync_named(sim, l, &l->number, SYNC_RWLOCK);
}

static struct thread *step_rwlock(struct sim *sim, struct rwlock *l, uintptr_t pc)
{
	return sync_step(sim, l, sizeof(*l), "read-write lock", pc);
}

static bool is_open(struct sim *sim, struct rwlock *l, bool write)
{
	if (l->writer && sync_is_gone(sim, l->writer))
		l->writer = 0;
	if (write && l->readers && !l->writer)
		l->readers = sync_held(sim, named_rwlock(sim, l));
	return !l->writer && !(write && l->readers);
}

static void take_rwlock(struct sim *sim, struct thread *thread, struct rwlock *l, bool write,
			uintptr_t pc)
{
	struct sync what = named_rwlock(sim, l);
	assert(is_open(sim, l, write));
	if (write)
		l->writer = thread->serial;
	else
		l->readers++;
	sync_waited(thread);
	sync_hold(sim, thread, what);
	sync_trace(sim, pc, write ? "locks for writing" : "locks for reading", what);
}

static int lock_rwlock(pthread_rwlock_t *lock, bool write, uint64_t deadline, uintptr_t pc)
{
	struct sim *sim = sim_of_thread;
	struct rwlock *l = of_rwlock(lock);
	struct thread *thread = step_rwlock(sim, l, pc);
	if (l->writer == thread->serial)
		return EDEADLK;
	if (is_open(sim, l, write))
		sync_gives_way(sim, thread, named_rwlock(sim, l));
	while (!is_open(sim, l, write)) {
		if (!sync_wait(sim, thread, named_rwlock(sim, l), deadline, pc) &&
		    !is_open(sim, l, write)) {
			sync_waited(thread);
			return ETIMEDOUT;
		}
		step_rwlock(sim, l, pc);
	}
	take_rwlock(sim, thread, l, write, pc);
	return 0;
}

static int try_rwlock(pthread_rwlock_t *lock, bool write, uintptr_t pc)
{
	struct sim *sim = sim_of_thread;
	struct rwlock *l = of_rwlock(lock);
	struct thread *thread = step_rwlock(sim, l, pc);
	if (!is_open(sim, l, write))
		return EBUSY;
	take_rwlock(sim, thread, l, write, pc);
	return 0;
}

int sim_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	return lock_rwlock(lock, false, NEVER, PC);
}

int sim_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	return lock_rwlock(lock, true, NEVER, PC);
}

int sim_pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
	return try_rwlock(lock, false, PC);
}

int sim_pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
	return try_rwlock(lock, true, PC);
}

int sim_pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *at)
{
	return UNTIL(CLOCK_REALTIME, at, lock_rwlock(lock, false, deadline, PC));
}

int sim_pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *at)
{
	return UNTIL(CLOCK_REALTIME, at, lock_rwlock(lock, true, deadline, PC));
}

int sim_pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
				   const struct timespec *at)
{
	return UNTIL(clock, at, lock_rwlock(lock, false, deadline, PC));
}

int sim_pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
				   const struct timespec *at)
{
	return UNTIL(clock, at, lock_rwlock(lock, true, deadline, PC));
}

int sim_pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	struct sim *sim = sim_of_thread;
	struct rwlock *l = of_rwlock(lock);
	struct thread *thread = step_rwlock(sim, l, PC);
	char name[SYNC_NAME];
	if (l->writer ? l->writer != thread->serial
		      : !sync_holds(sim, thread, named_rwlock(sim, l)))
		sync_fault(sim, PC, "%s unlocks %s, which it does not hold", thread_actor(thread),
			   sync_name(named_rwlock(sim, l), name));
	sync_trace(sim, PC, "unlocks", named_rwlock(sim, l));
	if (l->writer)
		l->writer = 0;
	else
		l->readers--;
	sync_release(thread, named_rwlock(sim, l));
	/* All of them look again: the first to come may be a writer, or several readers. */
	if (is_open(sim, l, true))
		sync_wake_all(sim, named_rwlock(sim, l));
	return 0;
}

int sim_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attr)
{
	struct sim *sim = sim_of_thread;
	struct rwlock *l = of_rwlock(lock);
	sync_new(sim, lock, sizeof(*lock), "read-write lock", PC);
	named_rwlock(sim, l);
	return 0;
}

int sim_pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
	struct rwlock *l = of_rwlock(lock);
	step_rwlock(sim_of_thread, l, PC);
	if (l->writer || l->readers)
		return EBUSY;
	memset(lock, 0, sizeof(*lock));
	return 0;
}

ATTRIBUTES(rwlockattr)

/* --- pthread_once(): 0, then ONCE_RUNS with the thread that runs it, then ONCE_DONE --- */

#define ONCE_DONE 2
#define ONCE_RUNS 1
_Static_assert(sizeof(pthread_once_t) == sizeof(uint32_t), "a number");

static struct sync named_once(struct sim *sim, pthread_once_t *once)
{
	uint32_t number = 1; /* there is no room for one */
	return sync_named(sim, once, &number, SYNC_ONCE);
}

static bool is_running(struct sim *sim, pthread_once_t *once)
{
	if (*once & ONCE_RUNS && sync_is_gone(sim, (uint32_t)*once >> 2))
		*once = 0;
	return *once;
}

int sim_pthread_once(pthread_once_t *once, void (*fn)(void))
{
	struct sim *sim = sim_of_thread;
	struct thread *thread = sync_step(sim, once, sizeof(*once), "pthread_once_t", PC);
	while (*once != ONCE_DONE) {
		if (is_running(sim, once)) {
			sync_wait(sim, thread, named_once(sim, once), NEVER, PC);
			sync_step(sim, once, sizeof(*once), "pthread_once_t", PC);
			continue;
		}
		*once = (int)(thread->serial << 2 | ONCE_RUNS);
		sync_waited(thread);
		sync_hold(sim, thread, named_once(sim, once));
		fn();
		sync_step(sim, once, sizeof(*once), "pthread_once_t", PC);
		sync_release(thread, named_once(sim, once));
		*once = ONCE_DONE;
		sync_wake_all(sim, named_once(sim, once));
	}
	sync_waited(thread);
	return 0;
}

bool lock_held_by(const struct sync *what, uint32_t serial)
{
	const struct rwlock *rwlock = what->at;
	switch (what->kind) {
	case SYNC_MUTEX:
		return ((const struct mutex *)what->at)->owner == serial;
	case SYNC_SPIN:
		return SPIN_OWNER(*(const uint32_t *)what->at) == serial;
	case SYNC_RWLOCK:
		return rwlock->writer ? rwlock->writer == serial : rwlock->readers > 0;
	case SYNC_ONCE:
		return *(const uint32_t *)what->at == (serial << 2 | ONCE_RUNS);
	default:
		return false;
	}
}
