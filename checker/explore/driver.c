/* SPDX-License-Identifier: BSD-3-Clause */
/* Worker processes that share a list of units; what they find is merged in order. See driver.h. */
#include "checker/explore/driver.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include "checker/explore/clock.h"

/* A message: the unit's number, then its result. */
#define MESSAGE_BYTES (sizeof(unsigned) + DRIVER_RESULT_MAX)
#define ENDS	      SIGUSR1 /* leave off; SIGKILL would leave half a file */
#define GLANCE_MS     100     /* how often the bounds are looked at while no result comes */

/* In the processes' shared memory. */
struct shared {
	atomic_uint next;	 /* place in the queue */
	pthread_mutex_t writing; /* a message is longer than what a pipe takes in one piece */
};

/* What the processes share out: the units in the order in which they are begun. */
struct queue {
	struct shared *shared;
	unsigned *order; /* NULL: as they are numbered */
};

static bool init_shared(struct shared *s)
{
	pthread_mutexattr_t attr;
	if (pthread_mutexattr_init(&attr))
		return false;
	bool done = !pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) &&
		    !pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) &&
		    !pthread_mutex_init(&s->writing, &attr);
	pthread_mutexattr_destroy(&attr);
	return done;
}

/* --- in a process --- */

/* False: this message, or that of a process that died while it wrote one, is not whole. */
static bool write_message(struct shared *s, int out, const char *message, size_t len)
{
	size_t written = 0;
	if (pthread_mutex_lock(&s->writing))
		return false;
	while (written < len) {
		ssize_t n = write(out, message + written, len - written);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		written += (size_t)n;
	}
	pthread_mutex_unlock(&s->writing);
	return written == len;
}

/* Signals that end a program. */
static sigset_t ending(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return set;
}

/* A terminal signals all of them; what it means is for the calling process to say. Such signals are
 * blocked when a process begins. */
static void ignore_signals(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

static _Noreturn void worker(const struct driver *d, const struct queue *q, int out,
			     const sigset_t *before)
{
	_Alignas(max_align_t) char result[DRIVER_RESULT_MAX];
	char message[MESSAGE_BYTES];
	size_t len = sizeof(unsigned) + d->result_bytes;
	signal(ENDS, SIG_DFL);
	if (d->bounds && d->bounds->stop)
		ignore_signals();
	sigprocmask(SIG_SETMASK, before, NULL);
	driver_hold(SIG_UNBLOCK);
	while (!d->more || d->more(d->arg)) {
		unsigned unit = atomic_fetch_add(&q->shared->next, 1);
		if (unit >= d->units)
			break;
		unit = q->order ? q->order[unit] : unit;
		assert(unit < d->units);
		memset(result, 0, sizeof(result));
		d->work(d->arg, unit, result);
		memcpy(message, &unit, sizeof(unit));
		memcpy(message + sizeof(unit), result, d->result_bytes);
		if (!write_message(q->shared, out, message, len))
			_Exit(70);
	}
	_Exit(0);
}

/* --- in the calling process --- */

static void take(struct driver *d, unsigned unit, const void *result)
{
	assert(unit < d->units);
	assert(d->at.done < d->units); /* each unit has one result */
	if (d->results)
		memcpy((char *)d->results + unit * d->result_bytes, result, d->result_bytes);
	if (d->done)
		d->done[unit] = true;
	d->at.done++;
	d->at.last = unit;
	d->at.states += d->states ? d->states(result) : 0;
	d->at.seconds = clock_seconds() - d->started;
	if (d->take)
		d->take(d->arg, unit, result);
	if (d->progress)
		d->progress(d->progress_arg, &d->at);
}

static bool leaves_off(const struct driver *d)
{
	const struct driver_bounds *b = d->bounds;
	return b && ((b->stop && *b->stop) ||
		     (b->seconds > 0 && clock_seconds() - d->started >= b->seconds));
}

/* Until there is something to read. -EINTR: it leaves off. */
static int await_message(const struct driver *d, int in)
{
	struct pollfd fd = {.fd = in, .events = POLLIN};
	while (!leaves_off(d)) {
		int n = poll(&fd, 1, d->bounds ? GLANCE_MS : -1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return -EINTR;
}

/* 1: a message; 0: the pipe has closed; -ECHILD: within a message. */
static int read_message(int in, char *message, size_t len)
{
	size_t got = 0;
	while (got < len) {
		ssize_t n = read(in, message + got, len - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return got ? -ECHILD : 0;
		got += (size_t)n;
	}
	return 1;
}

/* One more result. 1: it has come; 0, -ECHILD: as read_message(). */
static int receive(struct driver *d, int in)
{
	_Alignas(max_align_t) char result[DRIVER_RESULT_MAX];
	char message[MESSAGE_BYTES];
	unsigned unit;
	size_t len = sizeof(unit) + d->result_bytes;
	assert(len <= sizeof(message));
	int got = read_message(in, message, len);
	if (got <= 0)
		return got;
	memcpy(&unit, message, sizeof(unit));
	memcpy(result, message + sizeof(unit), d->result_bytes);
	take(d, unit, result);
	return 1;
}

/* Results as they come. -ECHILD when the pipe closes too early, -EINTR when it leaves off. */
static int collect(struct driver *d, int in)
{
	while (d->at.done < d->units) {
		int error = await_message(d, in);
		int got = error ? 0 : receive(d, in);
		if (error)
			return error;
		if (got == 0 && d->more)
			return 0; /* they have stopped of their own */
		if (got <= 0)
			return -ECHILD;
	}
	assert(d->at.done == d->units);
	return 0;
}

/* They are ended; results that were sent before count. */
static void end_processes(struct driver *d, int in, const pid_t *child, unsigned jobs)
{
	for (unsigned j = 0; j < jobs; j++)
		if (child[j] > 0)
			kill(child[j], ENDS);
	while (receive(d, in) > 0)
		;
}

static int run_processes(struct driver *d, const struct queue *q, pid_t *child, unsigned jobs)
{
	const sigset_t set = ending();
	sigset_t before;
	int pipes[2], error = 0;
	if (pipe(pipes))
		return -errno;
	fflush(NULL);
	sigprocmask(SIG_BLOCK, &set, &before);
	for (unsigned j = 0; j < jobs; j++) {
		child[j] = fork();
		if (child[j] == 0) {
			close(pipes[0]);
			worker(d, q, pipes[1], &before);
		}
		if (child[j] < 0)
			error = -errno;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(pipes[1]);
	if (!error)
		error = collect(d, pipes[0]);
	if (error == -EINTR)
		end_processes(d, pipes[0], child, jobs);
	close(pipes[0]);
	for (unsigned j = 0; j < jobs; j++) {
		int status = 0;
		if (child[j] > 0 && waitpid(child[j], &status, 0) > 0 && status && !error)
			error = -ECHILD;
	}
	return error;
}

/* --- the order --- */

struct priced {
	unsigned unit;
	uint64_t cost;
};

static int dearer(const void *a, const void *b)
{
	const struct priced *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* NULL without memory. */
static unsigned *make_order(const struct driver *d)
{
	struct priced *list = calloc(d->units + 1, sizeof(*list));
	unsigned *order = calloc(d->units + 1, sizeof(*order));
	for (unsigned u = 0; u < d->units && list && order; u++)
		list[u] = (struct priced){u, d->cost(d->arg, u)};
	if (list && order)
		qsort(list, d->units, sizeof(*list), dearer);
	for (unsigned u = 0; u < d->units && list && order; u++) {
		assert(!u || list[u].cost <= list[u - 1].cost);
		assert(list[u].unit < d->units);
		order[u] = list[u].unit;
	}
	if (!list) {
		free(order);
		order = NULL;
	}
	free(list);
	return order;
}

int driver_run(struct driver *d)
{
	unsigned jobs = d->jobs ? d->jobs : 1;
	struct queue q = {.order = d->cost ? make_order(d) : NULL};
	pid_t *child = calloc(jobs, sizeof(*child));
	int error = -ENOMEM;
	assert(d->result_bytes <= DRIVER_RESULT_MAX);
	assert(d->work);
	d->started = clock_seconds();
	d->at = (struct driver_progress){.units = d->units};
	q.shared = mmap(NULL, sizeof(*q.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (q.shared != MAP_FAILED && child && init_shared(q.shared) && (q.order || !d->cost))
		error = run_processes(d, &q, child, jobs);
	if (q.shared != MAP_FAILED)
		munmap(q.shared, sizeof(*q.shared));
	free(child);
	free(q.order);
	return error;
}

void driver_hold(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, ENDS);
	sigprocmask(how, &set, NULL);
}

const char *driver_error(int error)
{
	if (error == -ECHILD)
		return "a worker process died before its work was done (killed, or no memory "
		       "left?)";
	return strerror(-error);
}
