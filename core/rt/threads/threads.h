/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_THREADS_THREADS_H
#define TM_RT_THREADS_THREADS_H
/*
 * What store objects call instead of libpthread in the sim world: core/stores/sim.syms renames
 * pthread_create to sim_pthread_create, and so on.
 *
 * A thread is a task of its host, named by the order of creation, "server/thread1", or as
 * pthread_setname_np() said before the thread first ran. Threads are not preempted: others run
 * where one waits, or where it is delayed at a step. Each function here that deals with an object
 * others may use, too, is a step (STEP_LOCK) before it takes effect, and what its CPU has stored is
 * in memory then, as after any locked instruction.
 *
 * What is there: threads, joining, detaching, their attributes (only the detach state has an
 * effect: a stack has FIBER_STACK_BYTES whatever is asked for) and names; mutexes (normal,
 * adaptive, recursive, error-checking); condition variables; read-write locks; barriers; spin
 * locks, which sleep; pthread_once(); thread-specific data; unnamed semaphores; <threads.h>. Static
 * initialisers work. Deadlines are the simulation's time, by CLOCK_REALTIME and CLOCK_MONOTONIC
 * alike.
 *
 * What is not there, and so does not link: pthread_cancel() and cleanup handlers, robust mutexes,
 * priorities and their protocols, signals to threads, named semaphores, futexes. No wake-up is
 * spurious, and pthread_cond_signal() wakes the thread that has waited longest. An object in
 * persistent memory is a fault of the store: its state would survive its process.
 *
 * The run ends with a fault of the store (SIM_FAULT) that says what is wrong:
 *
 *	- threads that wait for each other in a circle, through locks and pthread_join(), without a
 *	  deadline: "deadlock: server/a holds mutex #1 and waits for mutex #2; ...". Numbers count
 *	  the objects of a kind in the order in which their process first used them. One thread is a
 *	  circle, too, if it locks a normal mutex twice;
 *	- a wait for a lock that a thread still held when it ended;
 *	- the unlocking of a lock that the thread does not hold, where the type does not ask for an
 *	  error, and pthread_cond_wait() without the mutex.
 *
 * A thread that waits for a condition variable, a semaphore or a barrier that no thread will ever
 * signal is no circle: an operation that depends on it does not terminate.
 *
 * At most SIM_TASKS tasks and threads of a simulation live at a time: else EAGAIN. When a process
 * dies its threads do; what a client's task held of the server's locks, because it was in the
 * server's accept function, is free then. pthread_exit() of a task that pthread_create() did not
 * make ends that task only.
 *
 * With a scheduler in the clock's place (sim_set_scheduler()) no deadline comes.
 */
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

int sim_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
		       void *arg);
int sim_pthread_join(pthread_t thread, void **result);
int sim_pthread_tryjoin_np(pthread_t thread, void **result);
int sim_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *at);
int sim_pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
			     const struct timespec *at);
int sim_pthread_detach(pthread_t thread);
pthread_t sim_pthread_self(void);
int sim_pthread_equal(pthread_t a, pthread_t b);
_Noreturn void sim_pthread_exit(void *result);
int sim_sched_yield(void);
int sim_pthread_yield(void);

int sim_pthread_attr_init(pthread_attr_t *attr);
int sim_pthread_attr_destroy(pthread_attr_t *attr);
int sim_pthread_attr_setdetachstate(pthread_attr_t *attr, int state);
int sim_pthread_attr_getdetachstate(const pthread_attr_t *attr, int *state);
int sim_pthread_attr_setstacksize(pthread_attr_t *attr, size_t bytes);
int sim_pthread_attr_getstacksize(const pthread_attr_t *attr, size_t *bytes);
int sim_pthread_attr_setguardsize(pthread_attr_t *attr, size_t bytes);
int sim_pthread_attr_setaffinity_np(pthread_attr_t *attr, size_t bytes, const cpu_set_t *set);

int sim_pthread_setname_np(pthread_t thread, const char *name);
int sim_pthread_getname_np(pthread_t thread, char *name, size_t size);
int sim_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set);

int sim_pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int sim_pthread_key_delete(pthread_key_t key);
int sim_pthread_setspecific(pthread_key_t key, const void *value);
void *sim_pthread_getspecific(pthread_key_t key);
/* What C++ compilers call for the destructor of a thread_local object. */
int sim_cxa_thread_atexit(void (*destructor)(void *), void *object, void *dso);

int sim_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int sim_pthread_mutex_destroy(pthread_mutex_t *mutex);
int sim_pthread_mutex_lock(pthread_mutex_t *mutex);
int sim_pthread_mutex_trylock(pthread_mutex_t *mutex);
int sim_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *at);
int sim_pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at);
int sim_pthread_mutex_unlock(pthread_mutex_t *mutex);
int sim_pthread_mutexattr_init(pthread_mutexattr_t *attr);
int sim_pthread_mutexattr_destroy(pthread_mutexattr_t *attr);
int sim_pthread_mutexattr_settype(pthread_mutexattr_t *attr, int kind);
int sim_pthread_mutexattr_gettype(const pthread_mutexattr_t *attr, int *kind);
int sim_pthread_mutexattr_setpshared(pthread_mutexattr_t *attr, int shared);

int sim_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
int sim_pthread_cond_destroy(pthread_cond_t *cond);
int sim_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int sim_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			       const struct timespec *at);
int sim_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			       const struct timespec *at);
int sim_pthread_cond_signal(pthread_cond_t *cond);
int sim_pthread_cond_broadcast(pthread_cond_t *cond);
int sim_pthread_condattr_init(pthread_condattr_t *attr);
int sim_pthread_condattr_destroy(pthread_condattr_t *attr);
int sim_pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock);
int sim_pthread_condattr_getclock(const pthread_condattr_t *attr, clockid_t *clock);
int sim_pthread_condattr_setpshared(pthread_condattr_t *attr, int shared);

int sim_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attr);
int sim_pthread_rwlock_destroy(pthread_rwlock_t *lock);
int sim_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int sim_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int sim_pthread_rwlock_tryrdlock(pthread_rwlock_t *lock);
int sim_pthread_rwlock_trywrlock(pthread_rwlock_t *lock);
int sim_pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *at);
int sim_pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *at);
int sim_pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
				   const struct timespec *at);
int sim_pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
				   const struct timespec *at);
int sim_pthread_rwlock_unlock(pthread_rwlock_t *lock);
int sim_pthread_rwlockattr_init(pthread_rwlockattr_t *attr);
int sim_pthread_rwlockattr_destroy(pthread_rwlockattr_t *attr);
int sim_pthread_rwlockattr_setpshared(pthread_rwlockattr_t *attr, int shared);

int sim_pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr,
			     unsigned count);
int sim_pthread_barrier_destroy(pthread_barrier_t *barrier);
int sim_pthread_barrier_wait(pthread_barrier_t *barrier);
int sim_pthread_barrierattr_init(pthread_barrierattr_t *attr);
int sim_pthread_barrierattr_destroy(pthread_barrierattr_t *attr);
int sim_pthread_barrierattr_setpshared(pthread_barrierattr_t *attr, int shared);

int sim_pthread_spin_init(pthread_spinlock_t *lock, int shared);
int sim_pthread_spin_destroy(pthread_spinlock_t *lock);
int sim_pthread_spin_lock(pthread_spinlock_t *lock);
int sim_pthread_spin_trylock(pthread_spinlock_t *lock);
int sim_pthread_spin_unlock(pthread_spinlock_t *lock);

int sim_pthread_once(pthread_once_t *once, void (*fn)(void));

int sim_sem_init(sem_t *sem, int shared, unsigned value);
int sim_sem_destroy(sem_t *sem);
int sim_sem_wait(sem_t *sem);
int sim_sem_trywait(sem_t *sem);
int sim_sem_timedwait(sem_t *sem, const struct timespec *at);
int sim_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *at);
int sim_sem_post(sem_t *sem);
int sim_sem_getvalue(sem_t *sem, int *value);

/* <threads.h>, on what is above. */
int sim_thrd_create(thrd_t *thread, thrd_start_t fn, void *arg);
int sim_thrd_join(thrd_t thread, int *result);
int sim_thrd_detach(thrd_t thread);
thrd_t sim_thrd_current(void);
int sim_thrd_equal(thrd_t a, thrd_t b);
_Noreturn void sim_thrd_exit(int result);
void sim_thrd_yield(void);
int sim_thrd_sleep(const struct timespec *time, struct timespec *left);
int sim_mtx_init(mtx_t *mutex, int type);
void sim_mtx_destroy(mtx_t *mutex);
int sim_mtx_lock(mtx_t *mutex);
int sim_mtx_trylock(mtx_t *mutex);
int sim_mtx_timedlock(mtx_t *mutex, const struct timespec *at);
int sim_mtx_unlock(mtx_t *mutex);
int sim_cnd_init(cnd_t *cond);
void sim_cnd_destroy(cnd_t *cond);
int sim_cnd_wait(cnd_t *cond, mtx_t *mutex);
int sim_cnd_timedwait(cnd_t *cond, mtx_t *mutex, const struct timespec *at);
int sim_cnd_signal(cnd_t *cond);
int sim_cnd_broadcast(cnd_t *cond);
int sim_tss_create(tss_t *key, tss_dtor_t destructor);
void sim_tss_delete(tss_t key);
int sim_tss_set(tss_t key, void *value);
void *sim_tss_get(tss_t key);
void sim_call_once(once_flag *once, void (*fn)(void));

#endif
