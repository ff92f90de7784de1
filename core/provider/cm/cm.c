/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a process's connection manager, its thread, its device. See cm.h.
 *
 * A child of fork() starts with a fresh state.
 */
#include "core/clock.h"
#include "core/own_thread.h"
#include "core/provider/cm/cm.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "core/provider/base/lock.h"

#define HEARD	  64
#define LOCK_MS	  1000 /* at the end */
#define MOST_ASKS 50
#define LINGER_NS 20000000000ull
/* What the thread waits for. A number below these is a slot whose process has ended. */
enum { WAKE = FABRIC_SLOTS, MESSAGES };

#define FRESH                                                                          \
	(struct manager)                                                               \
	{                                                                              \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .acked = PTHREAD_COND_INITIALIZER, \
		.epoll = -1, .wake = -1                                                \
	}
struct manager manager = FRESH;

/* A thread that was cancelled here would keep the lock. */
static void lock_manager(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_mutex_lock(&manager.mutex);
	assert(!manager.locked);
	manager.locked = true;
	manager.cancel_state = before;
}

static void unlock_manager(void)
{
	int before = manager.cancel_state;

	assert(manager.locked);
	manager.locked = false;
	pthread_mutex_unlock(&manager.mutex);
	pthread_setcancelstate(before, NULL);
}

static void lock(struct cm *cm)
{
	lock_manager();
}

static void unlock(struct cm *cm)
{
	unlock_manager();
}

static void wait_for_ack(struct cm_id *id)
{
	int before = manager.cancel_state;

	assert(manager.locked);
	manager.locked = false;
	pthread_cond_wait(&manager.acked, &manager.mutex);
	assert(!manager.locked);
	manager.locked = true;
	manager.cancel_state = before;
}

static void acked(struct cm_id *id)
{
	pthread_cond_broadcast(&manager.acked);
}

static void wake_thread(void)
{
	uint64_t one = 1;

	if (manager.wake >= 0 && write(manager.wake, &one, sizeof(one)) < 0)
		return; /* it is awake */
}

static bool set_alarm(struct cm_id *id, uint64_t ns)
{
	uint64_t ms = ns / 1000000;

	assert(manager.locked);
	place_of(id)->deadline_ms = ns ? clock_ms() + (ms ? ms : 1) : 0;
	if (ns && place_of(id)->deadline_ms < manager.next_ms)
		wake_thread();
	return true;
}

/* --- the thread --- */

/* Has the watched process of the slot ended? */
static bool has_died(unsigned slot)
{
	struct pollfd fd = {.fd = manager.watched[slot] - 1, .events = POLLIN};

	return manager.watched[slot] && poll(&fd, 1, 0) == 1;
}

static void bury(unsigned slot)
{
	assert(slot != manager.mads->slot && manager.watched[slot]);
	close(manager.watched[slot] - 1);
	manager.watched[slot] = 0;
	for (struct cm_id *id = manager.cm.ids, *next; id; id = next) {
		next = id->next;
		if (place_of(id)->slot == slot)
			cm_peer_ended(id);
	}
}

int watch_slot(unsigned slot)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = slot};

	assert(manager.locked && slot < FABRIC_SLOTS);
	if (!slot || slot == manager.mads->slot)
		return 0;
	/* The slot may have a new process by now. */
	if (has_died(slot))
		bury(slot);
	if (manager.watched[slot])
		return 0;
	int fd = cm_fabric_watch(slot);
	if (fd == -ESRCH)
		return fd;
	/* A process that cannot be watched is treated as if its last message were lost. */
	if (fd < 0)
		return 0;
	if (epoll_ctl(manager.epoll, EPOLL_CTL_ADD, fd, &event)) {
		close(fd);
		return 0;
	}
	assert(!manager.watched[slot]); /* else a descriptor would be lost */
	manager.watched[slot] = fd + 1;
	return 0;
}

static void take_messages(void)
{
	uint8_t mad[MAD_BYTES];
	union ibv_gid from;
	uint64_t count;

	if (read(manager.mads->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	while (manager.mads->receive(mad, &from))
		cm_take(&manager.cm, &from, mad);
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

	if (what == WAKE && read(manager.wake, &count, sizeof(count)) < 0)
		return;
	if (what == MESSAGES)
		take_messages();
	else if (what != WAKE)
		take_death((unsigned)what);
}

/* Handle the deadlines that have passed. When the next one is, ms; UINT64_MAX: there is none. */
static uint64_t mind_time(uint64_t now)
{
	uint64_t first = UINT64_MAX;

	for (struct cm_id *id = manager.cm.ids, *next; id; id = next) {
		struct place *place = place_of(id);
		uint64_t deadline = place->deadline_ms;

		next = id->next;
		if (deadline && deadline <= now) {
			place->deadline_ms = 0;
			cm_timed_out(id); /* perhaps it is gone now */
			first = now;	  /* perhaps it has another one */
		} else if (deadline && deadline < first) {
			first = deadline;
		}
	}
	return first;
}

/* The time until the next deadline, ms; -1: there is none. */
static int time_to_wait(void)
{
	uint64_t now = clock_ms();

	assert(manager.locked);
	do {
		manager.next_ms = mind_time(now);
	} while (manager.next_ms <= now);
	uint64_t wait = manager.next_ms - now;
	return manager.next_ms == UINT64_MAX ? -1 : wait > 1000000 ? 1000000 : (int)wait;
}

static void *thread_main(void *arg)
{
	struct epoll_event heard[HEARD];
	int epoll = (int)(intptr_t)arg;

	lock_manager();
	for (;;) {
		int ms = time_to_wait();

		unlock_manager();
		int n = epoll_wait(epoll, heard, HEARD, ms);
		lock_manager();
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
	pthread_t thread;
	int error;

	assert(manager.epoll < 0 && manager.wake < 0); /* there is one */
	manager.epoll = epoll_create1(EPOLL_CLOEXEC);
	manager.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (manager.epoll < 0 || manager.wake < 0 ||
	    epoll_ctl(manager.epoll, EPOLL_CTL_ADD, manager.wake, &wake) ||
	    epoll_ctl(manager.epoll, EPOLL_CTL_ADD, manager.mads->fd, &messages)) {
		error = errno;
	} else {
		error = own_thread(&thread, NULL, thread_main, (void *)(intptr_t)manager.epoll);
	}
	if (!error) {
		pthread_detach(thread);
		return 0;
	}
	if (manager.epoll >= 0)
		close(manager.epoll);
	if (manager.wake >= 0)
		close(manager.wake);
	manager.epoll = manager.wake = -1;
	return -error;
}

/* --- the process's beginning and end --- */

static bool lock_for_a_while(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	if (!lock_within(&manager.mutex, LOCK_MS)) {
		pthread_setcancelstate(before, NULL);
		return false;
	}
	assert(!manager.locked);
	manager.locked = true;
	manager.cancel_state = before;
	return true;
}

/* Later processes find nothing of this one. A child of vfork() or clone() shares its parent's
 * memory and has nothing of its own. */
static void at_exit(void)
{
	if (manager.pid != getpid() || !lock_for_a_while())
		return;
	for (struct cm_id *id = manager.cm.ids; id; id = id->next)
		cm_part(id);
	linger_at_exit();
	cm_fabric_sweep();
	cm_fabric_leave();
	unlock_manager();
}

static void in_child(void)
{
	int cancel_state = manager.cancel_state;

	for (unsigned slot = 0; slot < FABRIC_SLOTS; slot++)
		if (manager.watched[slot])
			close(manager.watched[slot] - 1);
	if (manager.epoll >= 0) {
		close(manager.epoll);
		close(manager.wake);
	}
	cm_fabric_in_child();
	manager = FRESH;
	pthread_setcancelstate(cancel_state, NULL);
}

static int open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device_attr attr;
	struct cm *cm = &manager.cm;
	int error = 0;

	errno = ENODEV;
	if (list && *list)
		cm->verbs = ibv_open_device(*list);
	if (!cm->verbs)
		error = errno ? errno : ENODEV;
	if (list)
		ibv_free_device_list(list);
	if (error)
		return -error;
	cm->pd = ibv_alloc_pd(cm->verbs);
	if (!cm->pd || ibv_query_device(cm->verbs, &attr) ||
	    ibv_query_port(cm->verbs, 1, &manager.port) || ibv_query_gid(cm->verbs, 1, 0, &cm->gid))
		return -ENODEV;
	cm->guid = be64toh(attr.node_guid);
	cm->mtu = (uint8_t)manager.port.active_mtu;
	cm->limits = (struct cm_limits){attr.max_qp_rd_atom, attr.max_qp_init_rd_atom};
	cm->most_asks = MOST_ASKS;
	cm->linger_ns = LINGER_NS;
	return 0;
}

static int open_manager(void)
{
	static bool once;
	struct cm *cm = &manager.cm;
	int rc;

	assert(manager.locked);
	if (cm->verbs)
		return 0;
	assert(!cm->pd && !cm->ids);
	rc = open_device();
	if (!rc) {
		manager.mads = tidemark_mads();
		manager.pid = getpid();
		cm_fabric_sweep();
		rc = manager.mads ? start_thread() : -ENODEV;
	}
	if (rc) {
		if (cm->pd)
			ibv_dealloc_pd(cm->pd);
		if (cm->verbs)
			ibv_close_device(cm->verbs);
		*cm = (struct cm){0};
		return rc;
	}
	if (!once) {
		once = true;
		atexit(at_exit); /* runs before the NIC's, which was registered earlier */
		pthread_atfork(lock_manager, unlock_manager, in_child);
	}
	return 0;
}

static struct cm *here(void)
{
	lock_manager();
	int rc = open_manager();
	unlock_manager();
	if (!rc)
		return &manager.cm;
	errno = -rc;
	return NULL;
}

/* --- the rest of the ground --- */

static struct cm_id *new_id(struct cm *cm)
{
	return calloc(1, sizeof(struct place));
}

static void free_id(struct cm_id *id)
{
	free(place_of(id));
}

static struct cm_event *new_event(struct cm *cm)
{
	return calloc(1, sizeof(struct cm_event));
}

static void free_event(struct cm *cm, struct cm_event *event)
{
	free(event);
}

static bool never_fails(enum fail_point point)
{
	return false;
}

static void load(struct cm_id *id, void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}

static int device(struct cm *cm)
{
	assert(cm->verbs);
	return 0;
}

EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	if (!attr || id->srq || !id->verbs)
		return errno_minus(EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (attr->pd->context != id->verbs)
		return errno_minus(EINVAL);
	id->srq = ibv_create_srq_ex(id->verbs, attr);
	if (!id->srq)
		return -1;
	id->pd = attr->pd;
	return 0;
}

static const struct cm_ground ground = {
	.here = here,
	.lock = lock,
	.unlock = unlock,
	.fails = never_fails,
	.new_id = new_id,
	.free_id = free_id,
	.new_event = new_event,
	.free_event = free_event,
	.calloc = calloc,
	.free = free,
	.load = load,
	.new_channel = new_channel,
	.free_channel = free_channel,
	.get = get_event,
	.arrived = event_arrived,
	.left = event_left,
	.wait_for_ack = wait_for_ack,
	.acked = acked,
	.alarm = set_alarm,
	.timeout = own_timeout,
	.send = send_message,
	.choose_number = choose_number,
	.watch = watch_peer,
	.device = device,
	.reserve = reserve_port,
	.listen = listen_at,
	.release = release_port,
	.covers = covers,
	.source = find_source,
	.route = find_route,
	.find = find_name,
	.create_comp_channel = ibv_create_comp_channel,
	.destroy_comp_channel = ibv_destroy_comp_channel,
	.create_cq = ibv_create_cq,
	.destroy_cq = ibv_destroy_cq,
	.create_qp = ibv_create_qp_ex,
	.modify_qp = ibv_modify_qp,
	.destroy_qp = ibv_destroy_qp,
	.create_srq = ibv_create_srq,
	.destroy_srq = ibv_destroy_srq,
};

__attribute__((constructor)) static void stand(void)
{
	cm_ground = &ground;
}
