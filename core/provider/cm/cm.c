/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager's state, its thread, and identifiers. See cm.h.
 *
 * A child of fork() starts with a fresh state.
 */
#include "core/provider/cm/cm.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "core/provider/base/lock.h"

#define HEARD	64
#define LOCK_MS 1000 /* at the end */
/* What the thread waits for. A number below these is a slot whose process has ended. */
enum { WAKE = FABRIC_SLOTS, MESSAGES };

#define FRESH                                                                          \
	(struct cm)                                                                    \
	{                                                                              \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .acked = PTHREAD_COND_INITIALIZER, \
		.epoll = -1, .wake = -1                                                \
	}
struct cm cm = FRESH;

/* A thread that was cancelled here would keep the lock. */
void cm_lock(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_mutex_lock(&cm.mutex);
	assert(!cm.locked);
	cm.locked = true;
	cm.cancel_state = before;
}

void cm_unlock(void)
{
	int before = cm.cancel_state;

	assert(cm.locked);
	cm.locked = false;
	pthread_mutex_unlock(&cm.mutex);
	pthread_setcancelstate(before, NULL);
}

void cm_wait_for_acks(struct cm_id *id)
{
	int before = cm.cancel_state;

	assert(cm.locked);
	while (id->unacked) {
		cm.locked = false;
		pthread_cond_wait(&cm.acked, &cm.mutex);
		assert(!cm.locked);
		cm.locked = true;
	}
	cm.cancel_state = before;
}

uint64_t cm_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void cm_wake(void)
{
	uint64_t one = 1;

	if (cm.wake >= 0 && write(cm.wake, &one, sizeof(one)) < 0)
		return; /* it is awake */
}

void cm_set_deadline(struct cm_id *id, uint64_t ms)
{
	id->deadline_ms = ms ? cm_now_ms() + ms : 0;
	if (ms)
		cm_wake();
}

#define FROM(state) (1u << (state))

void cm_to_state(struct cm_id *id, enum cm_state to)
{
	/* The states from which it is reached. Any identifier may be closed. */
	static const unsigned from[] = {
		[CM_BOUND] = FROM(CM_IDLE) | FROM(CM_LISTEN), /* listening failed */
		[CM_ADDR_RESOLVED] = FROM(CM_BOUND),
		[CM_ROUTE_RESOLVED] = FROM(CM_ADDR_RESOLVED) |
				      FROM(CM_REQ_SENT), /* sending failed */
		[CM_LISTEN] = FROM(CM_BOUND),
		[CM_REQ_SENT] = FROM(CM_ROUTE_RESOLVED),
		[CM_REQ_RCVD] = FROM(CM_IDLE),
		[CM_REP_SENT] = FROM(CM_REQ_RCVD),
		[CM_REP_RCVD] = FROM(CM_REQ_SENT),
		[CM_ESTABLISHED] = FROM(CM_REP_SENT) | FROM(CM_REP_RCVD),
		[CM_DREQ_SENT] = FROM(CM_REP_SENT) | FROM(CM_ESTABLISHED),
		[CM_TIMEWAIT] = FROM(CM_REP_RCVD) | FROM(CM_ESTABLISHED) | FROM(CM_DREQ_SENT),
		[CM_OVER] = ~0u,
	};

	assert(cm.locked && *id->prev == id);
	assert(from[to] & FROM(id->state));
	/* Without a communication ID no message of the peer finds it. */
	assert(to < CM_REQ_RCVD || to == CM_OVER || id->number);
	id->state = to;
}

/* --- the thread --- */

/* Has the watched process of the slot ended? */
static bool has_died(unsigned slot)
{
	struct pollfd fd = {.fd = cm.watched[slot] - 1, .events = POLLIN};

	return cm.watched[slot] && poll(&fd, 1, 0) == 1;
}

static void bury(unsigned slot)
{
	assert(slot != cm.mads->slot && cm.watched[slot]);
	close(cm.watched[slot] - 1);
	cm.watched[slot] = 0;
	cm_peer_died(slot);
}

int cm_watch(unsigned slot)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = slot};
	int fd;

	assert(cm.locked && slot < FABRIC_SLOTS);
	if (!slot || slot == cm.mads->slot)
		return 0;
	/* The slot may have a new process by now. */
	if (has_died(slot))
		bury(slot);
	if (cm.watched[slot])
		return 0;
	fd = cm_fabric_watch(slot);
	if (fd == -ESRCH)
		return fd;
	/* A process that cannot be watched is treated as if its last message were lost. */
	if (fd < 0)
		return 0;
	if (epoll_ctl(cm.epoll, EPOLL_CTL_ADD, fd, &event)) {
		close(fd);
		return 0;
	}
	assert(!cm.watched[slot]); /* else a descriptor would be lost */
	cm.watched[slot] = fd + 1;
	return 0;
}

static void take_messages(void)
{
	uint8_t mad[MAD_BYTES];
	union ibv_gid from;
	uint64_t count;

	if (read(cm.mads->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	while (cm.mads->receive(mad, &from))
		cm_take(mad, &from);
}

static void take_death(unsigned slot)
{
	take_messages(); /* the messages that it sent last */
	if (has_died(slot))
		bury(slot);
}

static void hear(uint64_t what)
{
	uint64_t count;

	if (what == WAKE && read(cm.wake, &count, sizeof(count)) < 0)
		return;
	if (what == MESSAGES)
		take_messages();
	else if (what != WAKE)
		take_death((unsigned)what);
}

/* Handle the deadlines that have passed. The time until the next one, ms; -1: there is none. */
static int mind_time(void)
{
	uint64_t now = cm_now_ms(), first = cm_resend_dreqs(now);

	assert(cm.locked);
	for (struct cm_id *id = cm.ids; id; id = id->next) {
		if (id->deadline_ms && id->deadline_ms <= now) {
			id->deadline_ms = 0;
			cm_timed_out(id);
		}
		if (id->deadline_ms && id->deadline_ms < first)
			first = id->deadline_ms;
	}
	assert(first > now); /* what was due has been done */
	return first == UINT64_MAX ? -1 : first - now > 1000000 ? 1000000 : (int)(first - now);
}

static void *thread_main(void *arg)
{
	struct epoll_event heard[HEARD];
	int epoll = (int)(intptr_t)arg;

	cm_lock();
	for (;;) {
		int ms = mind_time(), n;

		cm_unlock();
		n = epoll_wait(epoll, heard, HEARD, ms);
		cm_lock();
		/* Messages that arrived while the process was stopped, or waited for a CPU, were
		 * in time. */
		if (!n)
			take_messages();
		for (int i = 0; i < n; i++)
			hear(heard[i].data.u64);
	}
	return NULL;
}

static int start_thread(void)
{
	struct epoll_event wake = {.events = EPOLLIN, .data.u64 = WAKE};
	struct epoll_event messages = {.events = EPOLLIN, .data.u64 = MESSAGES};
	sigset_t all, old;
	pthread_t thread;
	int error;

	assert(cm.epoll < 0 && cm.wake < 0); /* there is one */
	cm.epoll = epoll_create1(EPOLL_CLOEXEC);
	cm.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cm.epoll < 0 || cm.wake < 0 || epoll_ctl(cm.epoll, EPOLL_CTL_ADD, cm.wake, &wake) ||
	    epoll_ctl(cm.epoll, EPOLL_CTL_ADD, cm.mads->fd, &messages)) {
		error = errno;
	} else {
		/* The program's own threads handle its signals. */
		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, &old);
		error = pthread_create(&thread, NULL, thread_main, (void *)(intptr_t)cm.epoll);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (!error) {
		pthread_detach(thread);
		return 0;
	}
	if (cm.epoll >= 0)
		close(cm.epoll);
	if (cm.wake >= 0)
		close(cm.wake);
	cm.epoll = cm.wake = -1;
	return -error;
}

/* --- the process's beginning and end --- */

static bool lock_for_a_while(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	if (!lock_within(&cm.mutex, LOCK_MS)) {
		pthread_setcancelstate(before, NULL);
		return false;
	}
	assert(!cm.locked);
	cm.locked = true;
	cm.cancel_state = before;
	return true;
}

/* Later processes find nothing of this one. A child of vfork() or clone() shares its parent's
 * memory and has nothing of its own. */
static void at_exit(void)
{
	if (cm.pid != getpid() || !lock_for_a_while())
		return;
	for (struct cm_id *id = cm.ids; id; id = id->next)
		cm_hang_up(id);
	cm_linger();
	cm_fabric_sweep();
	cm_fabric_leave();
	cm_unlock();
}

static void in_child(void)
{
	int cancel_state = cm.cancel_state;

	for (unsigned slot = 0; slot < sizeof(cm.watched) / sizeof(*cm.watched); slot++)
		if (cm.watched[slot])
			close(cm.watched[slot] - 1);
	if (cm.epoll >= 0) {
		close(cm.epoll);
		close(cm.wake);
	}
	cm_fabric_in_child();
	cm = FRESH;
	pthread_setcancelstate(cancel_state, NULL);
}

int cm_open_device(void)
{
	static bool once;
	struct cm_device *device = &cm.device;
	struct ibv_device **list;
	int error = 0;

	assert(cm.locked);
	if (device->context)
		return 0;
	assert(!device->pd && !cm.ids);
	list = ibv_get_device_list(NULL);
	errno = ENODEV;
	if (list && *list)
		device->context = ibv_open_device(*list);
	if (!device->context)
		error = errno ? errno : ENODEV;
	if (list)
		ibv_free_device_list(list);
	if (error)
		return -error;
	device->pd = ibv_alloc_pd(device->context);
	if (!device->pd || ibv_query_device(device->context, &device->attr) ||
	    ibv_query_port(device->context, 1, &device->port) ||
	    ibv_query_gid(device->context, 1, 0, &device->gid)) {
		if (device->pd)
			ibv_dealloc_pd(device->pd);
		ibv_close_device(device->context);
		*device = (struct cm_device){0};
		return -ENODEV;
	}
	cm.mads = tidemark_mads();
	cm.pid = getpid();
	cm_fabric_sweep();
	error = cm.mads ? -start_thread() : ENODEV;
	if (error) {
		ibv_dealloc_pd(device->pd);
		ibv_close_device(device->context);
		*device = (struct cm_device){0};
		return -error;
	}
	if (!once) {
		once = true;
		atexit(at_exit); /* runs before the NIC's, which was registered earlier */
		pthread_atfork(cm_lock, cm_unlock, in_child);
	}
	return 0;
}

EXPORT struct ibv_context **rdma_get_devices(int *num)
{
	struct ibv_context **list = calloc(2, sizeof(*list));
	int rc;

	cm_lock();
	rc = list ? cm_open_device() : -ENOMEM;
	cm_unlock();
	if (rc) {
		free(list);
		if (num)
			*num = 0;
		errno = -rc;
		return NULL;
	}
	list[0] = cm.device.context;
	if (num)
		*num = 1;
	return list;
}

EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}

/* --- identifiers --- */

void cm_bind_device(struct cm_id *id)
{
	struct rdma_ib_addr *ib = &id->user.route.addr.addr.ibaddr;

	id->user.verbs = cm.device.context;
	id->user.pd = cm.device.pd;
	id->user.port_num = 1;
	ib->sgid = cm.device.gid;
	ib->pkey = htobe16(0xffff);
}

struct cm_id *cm_new_id(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
			enum ibv_qp_type type)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	assert(cm.locked);
	assert(!cm.ids || cm.ids->prev == &cm.ids);
	id->user.channel = channel;
	id->user.context = context;
	id->user.ps = ps;
	id->user.qp_type = type;
	id->prev = &cm.ids;
	id->next = cm.ids;
	if (cm.ids)
		cm.ids->prev = &id->next;
	cm.ids = id;
	return id;
}

void cm_free_id(struct cm_id *id)
{
	assert(cm.locked && *id->prev == id && (!id->next || id->next->prev == &id->next));
	assert(!id->unacked && !id->reserved); /* no event, no port is left that refers to it */
	*id->prev = id->next;
	if (id->next)
		id->next->prev = id->prev;
	free(id->qp_init);
	free(id->connect_data);
	free(id);
}

void cm_hang_up(struct cm_id *id)
{
	if (id->state == CM_LISTEN)
		cm_fabric_unlisten((uint16_t)id->user.ps, &id->user.route.addr.src_addr,
				   id->conn.options.v6_only);
	cm_tell_peer(id);
	cm_to_state(id, CM_OVER);
	id->deadline_ms = 0;
	cm_release_port(id);
}

EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out,
			  void *context, enum rdma_port_space ps)
{
	struct rdma_event_channel *own = NULL;
	struct cm_id *id;
	int rc;

	if (!out || ps != RDMA_PS_TCP) /* the other port spaces are for datagrams */
		return cm_fail(EINVAL);
	if (!channel) {
		own = cm_new_channel();
		if (!own)
			return cm_fail(ENOMEM);
	}
	cm_lock();
	rc = cm_open_device();
	id = rc ? NULL : cm_new_id(channel ? channel : own, context, ps, IBV_QPT_RC);
	if (id)
		id->sync = !channel;
	cm_unlock();
	if (!id) {
		if (own)
			rdma_destroy_event_channel(own);
		return cm_fail(rc ? -rc : ENOMEM);
	}
	*out = &id->user;
	return 0;
}

EXPORT int rdma_destroy_id(struct rdma_cm_id *user)
{
	struct cm_id *id = to_cm(user);
	struct rdma_event_channel *own = id->sync ? user->channel : NULL;

	if (id->sync && user->event)
		rdma_ack_cm_event(user->event);
	cm_lock();
	cm_hang_up(id);
	cm_forget_events(id);
	cm_wait_for_acks(id);
	cm_free_id(id);
	cm_unlock();
	if (own)
		rdma_destroy_event_channel(own);
	return 0;
}
