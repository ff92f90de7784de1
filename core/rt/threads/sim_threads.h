/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_THREADS_SIM_THREADS_H
#define TM_RT_THREADS_SIM_THREADS_H
/*
 * What the files of threads.h share.
 *
 *	sim_threads.c	the threads of a simulation: records, steps, waiting, deadlocks
 *	threads.c	threads, their attributes and their own data
 *	locks.c		mutexes, spin locks, read-write locks, pthread_once()
 *	conds.c		condition variables, barriers, semaphores
 *	c11_threads.c	<threads.h>
 *
 * A thread is a task with a record. A task that store code did not make by pthread_create() gets
 * its record when it first calls something of threads.h. Records lie in the arena. The records say
 * which thread holds what and which waits for what; the objects of glibc's types only say what
 * state they are in, without pointers.
 */
#include <errno.h>
#include <pthread.h>
#include "core/rt/sim_state.h"

#define THREAD_NAME 16 /* of pthread_setname_np(), with the zero */
#define NEVER	    UINT64_MAX

enum sync_kind {
	SYNC_MUTEX,
	SYNC_SPIN,
	SYNC_RWLOCK,
	SYNC_ONCE,
	SYNC_COND,
	SYNC_BARRIER,
	SYNC_SEMAPHORE,
	SYNC_END, /* of a thread: at is its record */
	SYNC_KINDS
};

/* Something that threads wait for. Two hosts can have static data at the same address. Messages
 * name it by its number: its process's objects of a kind are counted as they are first used. */
struct sync {
	const void *at; /* NULL: nothing */
	uint32_t number;
	uint8_t host; /* whose memory it lies in */
	uint8_t kind; /* enum sync_kind */
};

struct hold {
	struct sync what;
	uint32_t times;
};

struct at_exit {
	struct at_exit *next;
	void (*fn)(void *);
	void *arg;
};

struct thread {
	struct thread *next;
	struct task *task;	/* NULL: it has ended */
	char actor[ACTOR_NAME]; /* its name, when it has ended */
	char name[THREAD_NAME];
	uint32_t serial; /* its pthread_t, not 0 */
	unsigned host;
	bool created; /* by pthread_create() */
	bool begun, ended, detached, joined;
	void *(*fn)(void *);
	void *arg, *result;
	/* What it waits for. `turn` is the order in which waiting threads are served: a thread that
	 * was woken and comes too late waits on with the turn that it had. */
	struct sync waits;
	bool timed;
	bool bereft; /* the process whose code it ran has ended */
	uint64_t turn;
	struct sync woken; /* it was woken for this, and has not gone on yet */
	struct hold *hold;
	unsigned holds, hold_room;
	void **value; /* of each key */
	unsigned values;
	struct at_exit *at_exit;
};

struct key {
	bool used;
	void (*destructor)(void *);
};

struct threads {
	struct thread *first; /* those that run, or were not joined, or hold something */
	struct thread *spare;
	uint32_t serials;
	uint64_t turns;
	struct {
		uint32_t threads, numbers[SYNC_KINDS];
	} process[SIM_HOSTS]; /* what the host's process has made */
	struct key *key;
	unsigned keys, key_room;
};

/* --- the objects of glibc's types --- */

/* `kind` lies where glibc has it, which is what static initialisers write. */
struct mutex {
	uint32_t number;
	uint32_t times; /* that the owner has locked it */
	uint32_t owner; /* a thread's serial; 0: nobody */
	uint32_t unused;
	int32_t kind;
};
_Static_assert(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "fits into glibc's");
_Static_assert(offsetof(struct mutex, kind) == offsetof(pthread_mutex_t, __data.__kind),
	       "static initialisers write there");

/* The state of a pthread_spinlock_t. */
#define SPIN_OWNER(lock)  ((uint32_t)(lock)&0xffff)
#define SPIN_NUMBER(lock) ((uint32_t)(lock) >> 16)
#define SERIAL_MAX	  0xffff

struct rwlock {
	uint32_t number;
	uint32_t writer;  /* a thread's serial; 0: nobody */
	uint32_t readers; /* locks that they hold */
};
_Static_assert(sizeof(struct rwlock) <= offsetof(pthread_rwlock_t, __data.__flags),
	       "fits before what static initialisers write");

/* --- sim_threads.c --- */

struct threads *threads_of(struct sim *sim);
/* The current task's. */
struct thread *thread_self(struct sim *sim);
struct thread *thread_find(struct sim *sim, pthread_t serial); /* NULL: there is none */
struct thread *thread_new(struct sim *sim);
/* It cannot be asked for any more. */
void thread_forget(struct sim *sim, struct thread *thread);
const char *thread_actor(const struct thread *thread);

/* An object, which belongs to the process whose code runs. Its number is given when it is 0. */
struct sync sync_named(struct sim *sim, const void *at, uint32_t *number, enum sync_kind kind);
static inline bool sync_is(const struct sync *what, const struct sync *other)
{
	return what->at == other->at && what->host == other->host;
}
/*
 * A step of the current task before it does something to an object, which begins with these bytes:
 * others may come first. A locked instruction then: what its CPU has stored is in memory.
 */
struct thread *sync_step(struct sim *sim, const void *at, size_t len, const char *type,
			 uintptr_t pc);
/* The same for an object that begins: its bytes are zero then. */
struct thread *sync_new(struct sim *sim, void *at, size_t len, const char *type, uintptr_t pc);
/* The current thread waits until it is woken. False: the deadline came first. A deadlock is a fault
 * of the store. */
bool sync_wait(struct sim *sim, struct thread *thread, struct sync what, uint64_t deadline,
	       uintptr_t pc);
/* The first of those that wait for it. */
void sync_wake(struct sim *sim, struct sync what);
void sync_wake_all(struct sim *sim, struct sync what);
bool sync_waited_for(struct sim *sim, struct sync what);
/* Someone was woken because the object is free, and has not gone on yet: the current thread lets
 * that one go first, once. Without that, a thread that locks again at once would keep the others
 * out for ever in a run without delays. */
void sync_gives_way(struct sim *sim, const struct thread *thread, struct sync what);
/* The current thread has what it wanted, or gives up. */
void sync_waited(struct thread *thread);
void sync_hold(struct sim *sim, struct thread *thread, struct sync what);
void sync_release(struct thread *thread, struct sync what);
/* Number of times that the thread holds it. */
uint32_t sync_holds(const struct sim *sim, const struct thread *thread, struct sync what);
/* How often all threads hold it. A lock may say more: what a dead thread held is free. */
uint32_t sync_held(const struct sim *sim, struct sync what);
/* The thread of this serial has died, and not by its own end. */
bool sync_is_gone(struct sim *sim, uint32_t serial);
/* The thread ends and keeps its locks: threads that wait for them wait for ever. */
void sync_leave(struct sim *sim, struct thread *thread, uintptr_t pc);
/* What an attribute "shared between processes" may be: 0, or EINVAL. No two processes share memory
 * here. */
static inline int sync_shared(int shared)
{
	return shared == PTHREAD_PROCESS_PRIVATE || shared == PTHREAD_PROCESS_SHARED ? 0 : EINVAL;
}
/* What all types of attributes have: sim_pthread_mutexattr_init() and so on. */
#define ATTRIBUTES(type)                                                          \
	int sim_pthread_##type##_init(pthread_##type##_t *attr)                   \
	{                                                                         \
		memset(attr, 0, sizeof(*attr));                                   \
		return 0;                                                         \
	}                                                                         \
	int sim_pthread_##type##_destroy(pthread_##type##_t *attr)                \
	{                                                                         \
		return sim_pthread_##type##_init(attr);                           \
	}                                                                         \
	int sim_pthread_##type##_setpshared(pthread_##type##_t *attr, int shared) \
	{                                                                         \
		(void)attr;                                                       \
		return sync_shared(shared);                                       \
	}
/* "mutex #1" */
#define SYNC_NAME 40
const char *sync_name(struct sync what, char name[SYNC_NAME]);
void sync_trace(struct sim *sim, uintptr_t pc, const char *does, struct sync what);
_Noreturn void sync_fault(struct sim *sim, uintptr_t pc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* When an absolute time comes, ns of the simulation. 0 or EINVAL. */
int sync_deadline(clockid_t clock, const struct timespec *at, uint64_t *deadline);
/* An error number: EINVAL, or that of `call`, which has `deadline`. */
#define UNTIL(clock, at, call)                                    \
	({                                                        \
		uint64_t deadline;                                \
		int error_ = sync_deadline(clock, at, &deadline); \
		error_ ? error_ : (call);                         \
	})

/* --- locks.c --- */

/* For pthread_cond_wait(): without a step; the number of times that it was locked. 0: the current
 * thread does not hold it. */
uint32_t mutex_release(struct sim *sim, struct thread *thread, pthread_mutex_t *mutex);
void mutex_lock_again(struct sim *sim, pthread_mutex_t *mutex, uint32_t times, uintptr_t pc);
/* Does it really hold it? The memory may have become another lock since. */
bool lock_held_by(const struct sync *what, uint32_t serial);

/* --- what <threads.h> calls, with the place in the store's code --- */

int mutex_lock(pthread_mutex_t *mutex, uint64_t deadline, uintptr_t pc);
int mutex_trylock(pthread_mutex_t *mutex, uintptr_t pc);
int mutex_unlock(pthread_mutex_t *mutex, uintptr_t pc);
int cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline, uintptr_t pc);
/* deadline 0: it is not waited for. */
int thread_join(pthread_t serial, void **result, uint64_t deadline, uintptr_t pc);

#endif
