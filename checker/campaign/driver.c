/* SPDX-License-Identifier: BSD-3-Clause */
/* Worker processes that share a list of units; what they find is merged in order. See driver.h. */
#include "checker/campaign/driver.h"
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
#include <xxhash.h>
#include "checker/campaign/results.h"
#include "core/clock.h"

/* What a message begins with; the result follows. */
struct head {
	unsigned unit;
};
#define MESSAGE_BYTES (sizeof(struct head) + DRIVER_RESULT_MAX)
#define ENDS	      SIGUSR1 /* stop; SIGKILL would leave half a file */
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

static struct results *results_of(const struct driver *d)
{
	return d->how.bounds ? d->how.bounds->results : NULL;
}

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

static void (*end_process)(void); /* driver.end */

/* It ends of the signal, as if that were not caught. */
static void told_to_end(int sig)
{
	end_process();
	signal(sig, SIG_DFL);
	raise(sig);
}

static _Noreturn void worker(const struct driver *d, const struct queue *q, int out,
			     const sigset_t *before)
{
	_Alignas(max_align_t) char result[DRIVER_RESULT_MAX];
	char message[MESSAGE_BYTES];
	size_t len = sizeof(struct head) + d->result_bytes;
	unsigned unit;
	end_process = d->end;
	signal(ENDS, d->end ? told_to_end : SIG_DFL);
	if (d->how.bounds && d->how.bounds->stop)
		ignore_signals();
	sigprocmask(SIG_SETMASK, before, NULL);
	driver_hold(SIG_UNBLOCK);
	while ((unit = atomic_fetch_add(&q->shared->next, 1)) < d->units) {
		unit = q->order ? q->order[unit] : unit;
		assert(unit < d->units);
		if (results_of(d) && !results_wants(results_of(d), unit))
			continue;
		struct head head = {.unit = unit};
		memset(result, 0, d->result_bytes);
		d->work(d->arg, unit, result);
		memcpy(message, &head, sizeof(head));
		memcpy(message + sizeof(head), result, d->result_bytes);
		if (!write_message(q->shared, out, message, len))
			_Exit(70);
	}
	if (d->end)
		d->end();
	_Exit(0);
}

/* --- in the calling process --- */

static void take_result(struct driver *d, unsigned unit, const void *result)
{
	assert(unit < d->units);
	assert(d->at.done < d->at.units); /* each unit has one result */
	if (d->results)
		memcpy((char *)d->results + unit * d->result_bytes, result, d->result_bytes);
	if (d->done)
		d->done[unit] = true;
	d->at.done++;
	d->at.last = unit;
	if (d->states_at)
		d->at.states += *(const uint64_t *)((const char *)result + d->states_at - 1);
	d->at.seconds = clock_seconds() - d->started;
	if (d->take)
		d->take(d->arg, unit, result);
	if (d->how.progress)
		d->how.progress(d->progress_arg, &d->at);
}

static bool leaves_off(const struct driver *d)
{
	const struct driver_bounds *b = d->how.bounds;
	return b && ((b->stop && *b->stop) || (b->until > 0 && clock_seconds() >= b->until));
}

/* Until there is something to read. -EINTR: it stops early. */
static int await_message(const struct driver *d, int in)
{
	struct pollfd fd = {.fd = in, .events = POLLIN};
	while (!leaves_off(d)) {
		int n = poll(&fd, 1, d->how.bounds ? GLANCE_MS : -1);
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

/* One more result. 1: it has come; 0, -ECHILD: as read_message(); or as results_keep(). */
static int receive(struct driver *d, int in)
{
	_Alignas(max_align_t) char result[DRIVER_RESULT_MAX];
	char message[MESSAGE_BYTES];
	struct head head;
	size_t len = sizeof(head) + d->result_bytes;
	assert(len <= sizeof(message));
	int got = read_message(in, message, len);
	if (got <= 0)
		return got;
	memcpy(&head, message, sizeof(head));
	memcpy(result, message + sizeof(head), d->result_bytes);
	bool failed = (d->failed && d->failed(result)) ||
		      (d->error_at && *(const int *)(result + d->error_at - 1) == -ENOMEM);
	bool kept = results_of(d) && !failed;
	int error = kept ? results_keep(results_of(d), head.unit, result) : 0;
	if (error)
		return error;
	take_result(d, head.unit, result);
	return 1;
}

/* Results as they come. -ECHILD when the pipe closes too early, -EINTR when it stops early. */
static int collect(struct driver *d, int in)
{
	while (d->at.done < d->at.units) {
		int error = await_message(d, in);
		int got = error ? 0 : receive(d, in);
		if (error)
			return error;
		if (got <= 0)
			return got ? got : -ECHILD;
	}
	assert(d->at.done == d->at.units);
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

/* Processes that are not waited for yet, for driver_end(). */
static pid_t *volatile running;
static volatile unsigned runs;

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
	running = child;
	runs = jobs;
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(pipes[1]);
	if (!error)
		error = collect(d, pipes[0]);
	if (error && error != -ECHILD)
		end_processes(d, pipes[0], child, jobs);
	close(pipes[0]);
	runs = 0;
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
	uint64_t rank, cost, mixed;
};

static int sooner(const void *a, const void *b)
{
	const struct priced *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	if (x->mixed != y->mixed)
		return x->mixed < y->mixed ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* `mixed`: for shards, which take every nth: without ranks, which not all of them need have, and
 * among equals in an order that has nothing to do with their numbers, so that they get units of all
 * sorts. NULL without memory. */
static unsigned *make_order(const struct driver *d, bool mixed)
{
	struct priced *list = calloc((size_t)d->units + 1, sizeof(*list));
	unsigned *order = calloc((size_t)d->units + 1, sizeof(*order));
	for (unsigned u = 0; u < d->units && list && order; u++)
		list[u] = (struct priced){u, d->rank && !mixed ? d->rank(d->arg, u) : 0,
					  d->cost ? d->cost(d->arg, u) : 0,
					  mixed ? XXH3_64bits(&u, sizeof(u)) : 0};
	if (list && order)
		qsort(list, d->units, sizeof(*list), sooner);
	for (unsigned u = 0; u < d->units && list && order; u++) {
		assert(!u || list[u].rank > list[u - 1].rank || list[u].cost <= list[u - 1].cost);
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

/* --- results that are known --- */

static int begin_results(struct driver *d)
{
	unsigned *order = make_order(d, true);
	unsigned *place = calloc((size_t)d->units + 1, sizeof(*place));
	if (!order || !place) {
		free(order);
		free(place);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < d->units; i++)
		place[order[i]] = i;
	free(order);
	return results_begin(results_of(d), d->units, d->result_bytes, place, d->same);
}

static int take_known(struct driver *d)
{
	_Alignas(max_align_t) char result[DRIVER_RESULT_MAX];
	struct results *r = results_of(d);
	int error = begin_results(d);
	d->at.units = 0;
	for (unsigned u = 0; u < d->units && !error; u++)
		d->at.units += results_knows(r, u) || results_wants(r, u);
	for (unsigned u = 0; u < d->units && !error; u++) {
		if (!results_knows(r, u))
			continue;
		error = results_take(r, u, result);
		if (!error)
			take_result(d, u, result);
	}
	if (!error && results_merges(r) && r->missing)
		error = -EINTR;
	return error;
}

/* --- the whole --- */

static int run_units(struct driver *d)
{
	unsigned jobs = d->how.jobs ? d->how.jobs : 1;
	const bool ordered = d->rank || d->cost;
	struct queue q = {.order = ordered ? make_order(d, false) : NULL};
	pid_t *child = calloc(jobs, sizeof(*child));
	int error = -ENOMEM;
	q.shared = mmap(NULL, sizeof(*q.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (q.shared != MAP_FAILED && child && init_shared(q.shared) && (q.order || !ordered))
		error = run_processes(d, &q, child, jobs);
	if (q.shared != MAP_FAILED)
		munmap(q.shared, sizeof(*q.shared));
	free(child);
	free(q.order);
	return error;
}

int driver_run(struct driver *d)
{
	assert(d->result_bytes <= DRIVER_RESULT_MAX);
	assert(d->work);
	d->started = clock_seconds();
	d->at = (struct driver_progress){.units = d->units};
	int error = results_of(d) ? take_known(d) : 0;
	return error || (results_of(d) && !results_of(d)->missing) ? error : run_units(d);
}

void driver_end(void)
{
	for (unsigned j = 0; j < runs; j++) {
		if (running[j] <= 0)
			continue;
		kill(running[j], ENDS);
		kill(running[j], SIGCONT); /* it may have been stopped */
	}
	for (unsigned j = 0; j < runs; j++)
		if (running[j] > 0)
			waitpid(running[j], NULL, 0);
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
	if (error == -ENOTRECOVERABLE)
		return "what was taken for known of a recovery or a run was something else";
	return strerror(-error);
}
