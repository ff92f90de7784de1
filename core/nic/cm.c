/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager's state, its thread, and identifiers. See cm.h.
 *
 * A socket that was dropped may still be among those of which the thread has just heard, so it is freed by
 * the thread alone, when it has dealt with what it heard.
 *
 * A child of fork() has nothing of it: its parent's sockets are closed there, so that the parent's peers
 * learn of the parent's end and do not wait for the child's.
 */
#include "core/nic/cm.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define HEARD	    64
#define PATIENCE_MS 5000 /* with a socket on which nobody says what it wants */
#define MAX_NOBODYS 256

#define FRESH                                                                                       \
	(struct cm)                                                                                 \
	{                                                                                           \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .acked = PTHREAD_COND_INITIALIZER, .epoll = -1, \
		.wake = -1                                                                          \
	}
struct cm cm = FRESH;

/* A thread that is cancelled in here would keep the lock. */
void cm_lock(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_mutex_lock(&cm.mutex);
	cm.cancel_state = before;
}

void cm_unlock(void)
{
	int before = cm.cancel_state;

	pthread_mutex_unlock(&cm.mutex);
	pthread_setcancelstate(before, NULL);
}

void cm_wait_for_acks(struct cm_id *id)
{
	int before = cm.cancel_state;

	while (id->unacked)
		pthread_cond_wait(&cm.acked, &cm.mutex);
	cm.cancel_state = before;
}

uint64_t cm_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- sockets --- */

static void put_wire(struct cm_wire **list, struct cm_wire *wire)
{
	wire->next = *list;
	wire->prev = list;
	if (*list)
		(*list)->prev = &wire->next;
	*list = wire;
}

static void pull_wire(struct cm_wire *wire)
{
	*wire->prev = wire->next;
	if (wire->next)
		wire->next->prev = wire->prev;
}

static void free_wire(struct cm_wire *wire)
{
	free(wire->in);
	free(wire->out);
	free(wire);
}

void cm_drop(struct cm_wire *wire)
{
	/* What it has still to say: a last try. */
	if (!wire->listens && !wire->place.connecting)
		cm_wire_flush(wire);
	epoll_ctl(cm.epoll, EPOLL_CTL_DEL, wire->fd, NULL);
	close(wire->fd);
	if (wire->adopted >= 0)
		close(wire->adopted);
	wire->fd = wire->adopted = -1;
	wire->id = NULL;
	pull_wire(wire);
	put_wire(&cm.dead, wire);
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

/* --- the thread --- */

static unsigned count_nobodys(void)
{
	unsigned n = 0;

	for (struct cm_wire *wire = cm.wires; wire; wire = wire->next)
		n += !wire->id;
	return n;
}

static void strangers(struct cm_wire *listener)
{
	unsigned nobodys = count_nobodys();

	for (;;) {
		struct cm_place place;
		int fd = cm_wire_accept(listener->fd, &place);
		struct cm_wire *wire;

		if (fd < 0)
			return;
		if (++nobodys > MAX_NOBODYS)
			close(fd);
		else if (!cm_watch(fd, false, &place, NULL, &wire))
			wire->deadline_ms = cm_now_ms() + PATIENCE_MS;
	}
}

/* Each direction by edges, so that a socket with room does not keep the thread busy. */
#define BY_EDGES (EPOLLIN | EPOLLOUT | EPOLLET)

/* A socket may be somebody else's, too, who keeps it open: it leaves the set by name. */
static void watch_adopted(struct cm_wire *wire)
{
	struct epoll_event event = {.events = BY_EDGES, .data.ptr = wire};

	if (wire->adopted < 0)
		return;
	epoll_ctl(cm.epoll, EPOLL_CTL_DEL, wire->fd, NULL);
	close(wire->fd);
	wire->fd = wire->adopted;
	wire->adopted = -1;
	epoll_ctl(cm.epoll, EPOLL_CTL_ADD, wire->fd, &event);
}

static void hear(struct cm_wire *wire, uint32_t events)
{
	struct cm_message message;
	int rc = 0;

	if (wire->fd < 0)
		return;
	if (wire->listens) {
		strangers(wire);
		return;
	}
	if (events & EPOLLOUT && !(events & (EPOLLHUP | EPOLLERR))) {
		wire->place.connecting = false;
		rc = cm_wire_flush(wire);
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		/* A message may be the end of this socket. */
		while (wire->fd >= 0 && (rc = cm_wire_receive(wire, &message)) > 0) {
			watch_adopted(wire);
			cm_take_message(wire, &message);
		}
	}
	if (wire->fd >= 0 && rc < 0)
		cm_wire_ended(wire, rc);
}

/* What is late; when something will be, ms from now; -1: nothing. */
static int mind_time(void)
{
	uint64_t now = cm_now_ms(), first = UINT64_MAX;
	struct cm_wire *next;

	for (struct cm_id *id = cm.ids; id; id = id->next) {
		if (id->deadline_ms && id->deadline_ms <= now) {
			id->deadline_ms = 0;
			cm_timed_out(id);
		}
		if (id->deadline_ms && id->deadline_ms < first)
			first = id->deadline_ms;
	}
	for (struct cm_wire *wire = cm.wires; wire; wire = next) {
		next = wire->next;
		if (!wire->deadline_ms)
			continue;
		if (wire->deadline_ms <= now)
			cm_drop(wire);
		else if (wire->deadline_ms < first)
			first = wire->deadline_ms;
	}
	return first == UINT64_MAX ? -1 : first - now > 1000000 ? 1000000 : (int)(first - now);
}

static void bury(void)
{
	while (cm.dead) {
		struct cm_wire *wire = cm.dead;

		pull_wire(wire);
		free_wire(wire);
	}
}

static void *thread_main(void *arg)
{
	struct epoll_event heard[HEARD];
	int epoll = (int)(intptr_t)arg;

	cm_lock();
	for (;;) {
		int ms = mind_time(), n;
		uint64_t count;

		cm_unlock();
		n = epoll_wait(epoll, heard, HEARD, ms);
		cm_lock();
		for (int i = 0; i < n; i++) {
			if (heard[i].data.ptr)
				hear(heard[i].data.ptr, heard[i].events);
			else if (read(cm.wake, &count, sizeof(count)) < 0)
				continue;
		}
		bury();
	}
	return NULL;
}

int cm_start_thread(void)
{
	struct epoll_event wake = {.events = EPOLLIN};
	sigset_t all, old;
	pthread_t thread;
	int error;

	if (cm.epoll >= 0)
		return 0;
	cm.epoll = epoll_create1(EPOLL_CLOEXEC);
	cm.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cm.epoll < 0 || cm.wake < 0 || epoll_ctl(cm.epoll, EPOLL_CTL_ADD, cm.wake, &wake)) {
		error = errno;
	} else {
		/* Signals are the program's. */
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

int cm_watch(int fd, bool listens, const struct cm_place *place, struct cm_id *id, struct cm_wire **out)
{
	struct cm_wire *wire = calloc(1, sizeof(*wire));
	struct epoll_event event = {.data.ptr = wire};
	int rc = wire ? cm_start_thread() : -ENOMEM;

	if (!rc) {
		*wire = (struct cm_wire){.fd = fd, .listens = listens, .adopted = -1, .id = id};
		if (place)
			wire->place = *place;
		wire->in = calloc(1, CM_WIRE_BYTES);
		wire->out = calloc(CM_TYPES, CM_WIRE_BYTES);
		event.events = listens ? EPOLLIN : BY_EDGES;
		if (!wire->in || !wire->out)
			rc = -ENOMEM;
		else if (epoll_ctl(cm.epoll, EPOLL_CTL_ADD, fd, &event))
			rc = -errno;
	}
	if (rc) {
		close(fd);
		if (wire)
			free_wire(wire);
		return rc;
	}
	put_wire(&cm.wires, wire);
	*out = wire;
	return 0;
}

int cm_listen_far(void)
{
	int fd = cm.far ? -ENODEV : cm_wire_listen_far();

	if (fd < 0)
		return fd == -ENODEV ? 0 : fd;
	return cm_watch(fd, true, NULL, NULL, &cm.far);
}

/* --- the process's beginning and end --- */

/* Whoever comes later finds nothing of this process. */
static void at_exit(void)
{
	cm_lock();
	for (struct cm_id *id = cm.ids; id; id = id->next) {
		if (id->state == CM_LISTEN)
			cm_hang_up(id);
		cm_release_port(id);
	}
	cm_wire_sweep();
	cm_wire_leave();
	cm_unlock();
}

static void in_child(void)
{
	int cancel_state = cm.cancel_state;

	for (struct cm_wire *wire = cm.wires; wire; wire = wire->next) {
		close(wire->fd);
		if (wire->adopted >= 0)
			close(wire->adopted);
	}
	if (cm.epoll >= 0) {
		close(cm.epoll);
		close(cm.wake);
	}
	cm_wire_in_child();
	cm = FRESH;
	pthread_setcancelstate(cancel_state, NULL);
}

int cm_open_device(void)
{
	static bool once;
	struct cm_device *device = &cm.device;
	struct ibv_device **list;
	int error = 0;

	if (device->context)
		return 0;
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
	cm_wire_sweep();
	if (!once) {
		once = true;
		atexit(at_exit); /* before the NIC's, which was there first */
		pthread_atfork(cm_lock, cm_unlock, in_child);
	}
	return 0;
}

CM_EXPORT struct ibv_context **rdma_get_devices(int *num)
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

CM_EXPORT void rdma_free_devices(struct ibv_context **list)
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
		cm_wire_unlisten((uint16_t)id->user.ps, &id->user.route.addr.src_addr, id->v6_only);
	id->state = CM_OVER;
	id->deadline_ms = 0;
	if (id->wire)
		cm_drop(id->wire);
	id->wire = NULL;
	cm_release_port(id);
}

/* Of which kind a port space's queue pairs are; 0: there is no such port space. */
static enum ibv_qp_type type_of(enum rdma_port_space ps)
{
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB:
		return IBV_QPT_RC;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IBV_QPT_UD;
	default:
		return 0;
	}
}

CM_EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
			     enum rdma_port_space ps)
{
	struct rdma_event_channel *own = NULL;
	struct cm_id *id;
	int rc;

	if (!out || !type_of(ps))
		return cm_fail(EINVAL);
	if (!channel) {
		own = cm_new_channel();
		if (!own)
			return cm_fail(ENOMEM);
	}
	cm_lock();
	rc = cm_open_device();
	id = rc ? NULL : cm_new_id(channel ? channel : own, context, ps, type_of(ps));
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

CM_EXPORT int rdma_destroy_id(struct rdma_cm_id *user)
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
