/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts of the live world. See live.h.
 *
 * The baton is a queue: a thread that lets go of it hands it to the one that has waited longest. A
 * thread that blocks (for a completion, for time to pass, for the server's answer) has let go.
 *
 * A task that yields has found nothing to do. The first times it only lets others run;
 * then it has its completion queues make events, and looks once more, as a completion may
 * have come before; then it sleeps until there is an event, or until it is time to look in any
 * case: what it waits for may be another task's doing.
 *
 * A task of a stopped host leaves by longjmp() from where it waits to where it began: store
 * code has loops without an end.
 */
#include "core/clock.h"
#include "core/live/live_host.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "core/live/live_fails.h"
#include "core/own_thread.h"

#define SPINS	    4	     /* yields that find nothing before the task sleeps */
#define NAP_MIN_NS  20000    /* of a task that found nothing */
#define NAP_MAX_NS  10000000 /* with completion queues to wake it */
#define NAP_CALM_NS 1000000  /* without */
#define STACK_BYTES (1 << 20)
#define SECOND	    1000000000ull

static _Thread_local struct live_task *self;

struct live_task *live_self(void)
{
	assert(self);
	return self;
}

/* --- the baton --- */

static void take_baton(struct live_task *task)
{
	struct live_host *host = task->host;
	pthread_mutex_lock(&host->lock);
	assert(host->holder != task);
	assert(host->holder || !host->first); /* no task waits for a baton that lies there */
	if (!host->holder) {
		host->holder = task;
	} else {
		task->next_waiting = NULL;
		if (host->first)
			host->last->next_waiting = task;
		else
			host->first = task;
		host->last = task;
	}
	while (host->holder != task)
		pthread_cond_wait(&task->turn, &host->lock);
	pthread_mutex_unlock(&host->lock);
}

void live_let_go(struct live_task *task)
{
	struct live_host *host = task->host;
	pthread_mutex_lock(&host->lock);
	assert(host->holder == task);
	host->holder = host->first;
	if (host->first) {
		pthread_cond_signal(&host->first->turn);
		host->first = host->first->next_waiting;
	}
	assert(host->holder != task);
	pthread_mutex_unlock(&host->lock);
}

/* With the baton: a stopped host's task ends here. */
static void leave_if_stopped(struct live_task *task)
{
	if (atomic_load(&task->host->stopping))
		longjmp(task->leave, 1);
}

void live_go_on(struct live_task *task)
{
	take_baton(task);
	leave_if_stopped(task);
}

/* --- waiting --- */

void live_busy(struct live_task *task)
{
	task->idle = 0;
	task->nap_ns = 0;
}

/* Wait for one of the descriptors, the first of which is the host's own, without the baton. True:
 * it is not only time that has passed. */
static bool wait_for(struct live_task *task, struct pollfd *fds, unsigned n, uint64_t ns)
{
	const struct timespec t = {(time_t)(ns / SECOND), (long)(ns % SECOND)};
	assert(n >= 1 && n <= 1 + LIVE_POLLED);
	fds[0] = (struct pollfd){.fd = task->host->stop_fd, .events = POLLIN};
	live_let_go(task);
	int ready = ppoll(fds, n, &t, NULL);
	live_go_on(task);
	return ready != 0;
}

/* Have the queues that were found empty make events. True: all of them did so before they were last
 * polled.
 */
static bool all_armed(struct live_task *task)
{
	bool all = true;
	assert(task->empty <= LIVE_POLLED);
	for (unsigned i = 0; i < task->empty; i++) {
		struct live_object *o = live_cq(task->host, task->polled[i]);
		if (o && !o->armed && !ibv_req_notify_cq(o->object, 0)) {
			o->armed = true;
			all = false;
		}
	}
	return all;
}

/* Take the events out of the channels of queues that are still there. */
static void take_events(struct live_task *task)
{
	for (unsigned i = 0; i < task->empty; i++) {
		struct live_object *o = live_cq(task->host, task->polled[i]);
		struct ibv_cq *cq;
		void *context;
		while (o && !ibv_get_cq_event(o->channel, &cq, &context)) {
			ibv_ack_cq_events(cq, 1);
			o->armed = false;
		}
	}
}

static void wait_for_work(struct live_task *task)
{
	struct pollfd fds[1 + LIVE_POLLED];
	uint64_t most = task->empty ? NAP_MAX_NS : NAP_CALM_NS;
	unsigned n = 1;
	for (unsigned i = 0; i < task->empty; i++) {
		struct live_object *o = live_cq(task->host, task->polled[i]);
		if (o)
			fds[n++] = (struct pollfd){.fd = o->channel->fd, .events = POLLIN};
	}
	task->nap_ns = task->nap_ns ? 2 * task->nap_ns : NAP_MIN_NS;
	if (task->nap_ns > most)
		task->nap_ns = most;
	assert(task->nap_ns >= NAP_MIN_NS);
	if (wait_for(task, fds, n, task->nap_ns))
		take_events(task);
}

void live_rt_yield(void)
{
	struct live_task *task = live_self();
	if (task->idle < SPINS) {
		task->idle++;
		live_let_go(task);
		sched_yield();
		live_go_on(task);
	} else if (all_armed(task)) {
		wait_for_work(task);
	}
	task->empty = 0;
}

void live_rt_sleep(uint64_t ns)
{
	struct live_task *task = live_self();
	uint64_t until = clock_ns() + ns, now;
	struct pollfd fds[1];
	live_busy(task);
	do {
		now = clock_ns();
		wait_for(task, fds, 1, now < until ? until - now : 0);
	} while (clock_ns() < until);
}

uint64_t live_rt_now(void)
{
	return clock_ns() - live_self()->host->start_ns;
}

/* --- tasks --- */

/* Run `fn` as a task that may be left at any yield. */
static int run_task(struct live_task *task, int (*fn)(void *arg), void *arg)
{
	volatile int rc = -ECANCELED;
	assert(!self);
	self = task;
	take_baton(task);
	if (!atomic_load(&task->host->stopping) && !setjmp(task->leave))
		rc = fn(arg);
	assert(self == task); /* also after it left from where it waited */
	live_let_go(task);
	self = NULL;
	return rc;
}

static int spawned(void *arg)
{
	struct live_task *task = arg;
	task->fn(task->arg);
	return 0;
}

static void *task_main(void *arg)
{
	run_task(arg, spawned, arg);
	return NULL;
}

static int start_thread(struct live_task *task)
{
	pthread_attr_t attr;
	int error = pthread_attr_init(&attr);
	if (error)
		return error;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	error = own_thread(&task->thread, &attr, task_main, task);
	pthread_attr_destroy(&attr);
	return error;
}

int live_rt_spawn(const char *name, void (*fn)(void *arg), void *arg)
{
	struct live_host *host = live_self()->host;
	char short_name[16];
	leave_if_stopped(live_self());
	struct live_task *task = live_fails(FAIL_SPAWN) ? NULL : calloc(1, sizeof(*task));
	if (!task)
		return -EAGAIN;
	task->host = host;
	task->fn = fn;
	task->arg = arg;
	pthread_cond_init(&task->turn, NULL);
	int error = start_thread(task);
	if (error) {
		pthread_cond_destroy(&task->turn);
		free(task);
		return -error;
	}
	strncpy(short_name, name, sizeof(short_name) - 1);
	short_name[sizeof(short_name) - 1] = '\0';
	pthread_setname_np(task->thread, short_name);
	pthread_mutex_lock(&host->lock);
	task->next = host->tasks;
	host->tasks = task;
	pthread_mutex_unlock(&host->lock);
	return 0;
}

int live_call(struct live_host *host, int (*fn)(void *arg), void *arg)
{
	struct live_task task = {.host = host};
	pthread_cond_init(&task.turn, NULL);
	int rc = run_task(&task, fn, arg);
	pthread_cond_destroy(&task.turn);
	return rc;
}

/* --- connecting --- */

int live_rt_listen(rt_accept_fn *fn, void *arg)
{
	struct live_host *host = live_self()->host;
	if (host->accept || live_fails(FAIL_LISTEN))
		return -EADDRINUSE;
	host->accept = fn;
	host->accept_arg = arg;
	return 0;
}

int live_rt_connect(const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	return live_rt_connect_to(0, req, req_len, rsp, rsp_len);
}

struct accepting {
	struct live_host *host;
	const void *req;
	size_t req_len, rsp_len;
	void *rsp;
};

static int accept_task(void *arg)
{
	const struct accepting *a = arg;
	struct live_host *host = a->host;
	if (!host->accept)
		return -ECONNREFUSED;
	if (live_fails(FAIL_ACCEPT))
		return -EUSERS;
	return host->accept(host->accept_arg, a->req, a->req_len, a->rsp, a->rsp_len);
}

int live_accept(struct live_host *host, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	struct accepting a = {
		.host = host, .req = req, .req_len = req_len, .rsp = rsp, .rsp_len = rsp_len};
	return live_call(host, accept_task, &a);
}

void live_rt_client_dropped(uint32_t client)
{
	struct live_host *host = live_self()->host;
	if (client <= TM_MAX_CLIENTS)
		atomic_fetch_add(&host->dropped[client], 1);
}

/* --- what was injected --- */

void live_injected(struct live_host *host, unsigned client, struct injected *out)
{
	*out = (struct injected){.links = atomic_load(&host->links)};
	for (unsigned p = 0; p < FAIL_POINT_COUNT; p++)
		out->calls += live_failed(p);
	if (client <= TM_MAX_CLIENTS)
		out->dropped = atomic_load(&host->dropped[client]);
}

struct bad_completion live_bad_completion(struct live_host *host)
{
	unsigned long long bad = atomic_load(&host->bad);
	return (struct bad_completion){(uint8_t)bad, (uint8_t)(bad >> 8), (uint32_t)(bad >> 32)};
}

static int ask_task(void *arg)
{
	struct live_task *task = live_self();
	live_let_go(task);
	int rc = live_peers_injected(task->host, arg);
	live_go_on(task);
	return rc;
}

int live_ask_injected(struct live_host *host, struct injected *out)
{
	return live_call(host, ask_task, out);
}

bool live_rt_pm_full(void)
{
	return live_fails(FAIL_PM_FULL);
}

/* --- hosts --- */

int live_device_open(const char *name, struct ibv_context **out)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	if (!list)
		return errno == ENOMEM ? -ENOMEM : -ENODEV;
	*out = NULL;
	for (int i = 0; i < n && !*out; i++)
		if (!name || !*name || !strcmp(ibv_get_device_name(list[i]), name))
			*out = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return *out ? 0 : -ENODEV;
}

int live_host_new(struct live_host **out, struct ibv_context *verbs, const struct live_peers *peers)
{
	struct live_host *host = calloc(1, sizeof(*host));
	if (!host)
		return -ENOMEM;
	host->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int error = host->stop_fd < 0 ? -errno : 0;
	if (error) {
		free(host);
		return error;
	}
	pthread_mutex_init(&host->lock, NULL);
	host->verbs = verbs;
	live_peers_init(host, peers);
	host->start_ns = clock_ns();
	error = live_peers_begin(host);
	if (error) {
		host->peer[0].to = host->peer[LIVE_SERVERS].to = NULL; /* the caller's */
		live_host_free(host);
		return error;
	}
	*out = host;
	return 0;
}

void live_host_stop(struct live_host *host)
{
	const uint64_t one = 1;
	int error = errno;
	atomic_store(&host->stopping, true);
	live_peers_break(host);
	/* It can only fail when it has been done often before. */
	ssize_t n = write(host->stop_fd, &one, sizeof(one));
	(void)n;
	errno = error;
}

static struct live_task *next_task(struct live_host *host)
{
	pthread_mutex_lock(&host->lock);
	struct live_task *task = host->tasks;
	if (task)
		host->tasks = task->next;
	pthread_mutex_unlock(&host->lock);
	return task;
}

void live_host_free(struct live_host *host)
{
	struct live_task *task;
	if (!host)
		return;
	live_host_stop(host);
	while ((task = next_task(host))) {
		pthread_join(task->thread, NULL);
		pthread_cond_destroy(&task->turn);
		free(task);
	}
	assert(!host->holder && !host->first); /* no task is left, also none that waits */
	live_peers_free(host);
	live_objects_free(host);
	live_blocks_free(host);
	assert(!host->objects && !host->blocks);
	close(host->stop_fd);
	pthread_mutex_destroy(&host->lock);
	free(host);
}
