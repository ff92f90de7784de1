/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' completion channels and asynchronous events (core/rnic/events.h), and their ground.
 *
 * The program holds one end of a pair of sockets, which it may poll or make non-blocking. That end
 * is readable while there is an event. Each event adds a byte, so that an edge-triggered epoll
 * reports each one; the bytes are removed when the last event is taken. It is a socket because
 * looking at a byte without taking it (MSG_PEEK) waits as read() on a kernel's descriptor does: it
 * is restarted after a signal handler that was installed with SA_RESTART, and it is a cancellation
 * point.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/provider/verbs/context.h"
#include "core/provider/verbs/verbs.h"

/* Taken before the NIC's lock is released, and after it is, so that no acknowledgement is missed.
 */
static pthread_mutex_t acks = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;

static struct async_events *async_of(struct ibv_context *context, bool needed)
{
	return to_hca(context)->hooks.arg;
}

static struct happened *alloc_event(struct events *events)
{
	return calloc(1, sizeof(struct happened));
}

static void free_event(struct events *events, struct happened *happened)
{
	free(happened);
}

static void event_arrived(struct events *events, const struct happened *happened)
{
	assert(events->ours >= 0);
	/* A full socket is readable, too. */
	send(events->ours, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void event_left(struct events *events)
{
	char bytes[512];

	while (!events->first &&
	       recv(events->fd, bytes, sizeof(bytes), MSG_DONTWAIT) == sizeof(bytes))
		;
}

static int wait_for_event(struct events *events)
{
	struct nic *nic = nic_get();
	char byte;

	nic_lock(nic);
	if (!events->first)
		nic_hand_over(nic);
	nic_unlock(nic);
	ssize_t got = recv(events->fd, &byte, 1, MSG_PEEK);
	return got > 0 ? 0 : got ? errno : EBADF;
}

static void lock(void)
{
	nic_lock(nic_get());
}

static void unlock(void)
{
	nic_unlock(nic_get());
}

static void wait_for_ack(struct events *events, const void *key)
{
	pthread_mutex_lock(&acks);
	unlock();
	pthread_cond_wait(&acked, &acks);
	pthread_mutex_unlock(&acks);
	lock();
}

static void event_acked(struct events *events, const void *key)
{
	pthread_mutex_lock(&acks);
	pthread_cond_broadcast(&acked);
	pthread_mutex_unlock(&acks);
}

static const struct events_ground ground = {
	.async = async_of,
	.alloc = alloc_event,
	.free = free_event,
	.arrived = event_arrived,
	.left = event_left,
	.wait = wait_for_event,
	.lock = lock,
	.unlock = unlock,
	.wait_for_ack = wait_for_ack,
	.acked = event_acked,
};

__attribute__((constructor)) static void stand(void)
{
	events_ground = &ground;
}

bool nic_open_events(struct events *events)
{
	int pair[2];

	events_init(events, NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return false;
	events->fd = pair[0];
	events->ours = pair[1];
	return true;
}

void nic_close_events(struct events *events)
{
	events_drop(events, NULL);
	assert(events->fd >= 0 && events->ours >= 0); /* else another file is closed */
	close(events->ours); /* wakes a thread that waits at the other end */
	close(events->fd);
	events->fd = events->ours = -1;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct event_channel *channel = calloc(1, sizeof(*channel));

	if (!channel || !nic_open_events(&channel->events)) {
		free(channel);
		return NULL;
	}
	channel->ibv.context = context;
	channel->ibv.fd = channel->events.fd;
	return &channel->ibv;
}

static int free_channel(struct ibv_comp_channel *ibv)
{
	if (ibv->refcnt)
		return EBUSY;
	nic_close_events(&((struct event_channel *)ibv)->events);
	free(ibv);
	return 0;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return CALL(free_channel(channel));
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	return rnic_get_cq_event(channel, cq, cq_context);
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	rnic_ack_cq_events(cq, n);
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return rnic_get_async_event(context, event);
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	rnic_ack_async_event(event);
}
