/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event channels and events of the connection manager.
 *
 * A channel is a list of events and a pair of sockets. While the list is not empty, one byte is in
 * the socket that the program holds. So the program can poll it, and looking at the byte without
 * taking it waits or not, as the program has set the descriptor. The byte is added and removed
 * under the lock.
 *
 * An event belongs to an identifier. Destroying the identifier drops the events that were not
 * retrieved, and waits until the others have been acknowledged. A connection request belongs to the
 * listening identifier.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/provider/cm/cm.h"

struct channel {
	struct cm_channel cm;
	int tell; /* the library's socket */
	unsigned waiters;
	bool is_read, gone;
	pthread_t reader; /* the thread that called last, if is_read */
};

static struct cm_channel *to_channel(struct rdma_event_channel *channel)
{
	return (struct cm_channel *)channel;
}

struct rdma_event_channel *cm_new_channel(void)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	int fds[2];

	if (!channel)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		free(channel);
		return NULL;
	}
	channel->cm.user.fd = fds[0];
	channel->tell = fds[1];
	channel->cm.last = &channel->cm.first;
	return &channel->cm.user;
}

EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	int rc;

	cm_lock();
	rc = cm_open_device();
	cm_unlock();
	if (rc) {
		errno = -rc;
		return NULL;
	}
	return cm_new_channel();
}

/* Locked: add or remove the byte. `was`: there were events before. */
static void show(struct cm_channel *channel, bool was)
{
	char byte = 0;

	if (channel->first && !was)
		while (send(((struct channel *)channel)->tell, &byte, 1, MSG_NOSIGNAL) < 0 &&
		       errno == EINTR)
			;
	if (!channel->first && was)
		while (recv(channel->user.fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EINTR)
			;
}

static void put(struct cm_channel *channel, struct cm_event *event)
{
	bool was = channel->first;

	assert(cm.locked);
	assert(!*channel->last); /* the list ends there */
	event->next = NULL;
	*channel->last = event;
	channel->last = &event->next;
	show(channel, was);
}

static struct cm_event *take_out(struct cm_channel *channel, struct cm_event **at)
{
	struct cm_event *event = *at;

	assert(cm.locked && (event->next || channel->last == &event->next));
	*at = event->next;
	if (!event->next)
		channel->last = at;
	assert(channel->first || channel->last == &channel->first);
	show(channel, true);
	return event;
}

/* Take out the first event of this owner; NULL: of any owner. */
static struct cm_event *pull(struct cm_channel *channel, const struct cm_id *owner)
{
	for (struct cm_event **at = &channel->first; *at; at = &(*at)->next)
		if (!owner || (*at)->owner == owner)
			return take_out(channel, at);
	return NULL;
}

struct cm_event *cm_event(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *event = calloc(1, sizeof(*event));

	if (event) {
		event->user.id = &id->user;
		event->user.event = type;
		event->user.status = status;
	}
	return event;
}

void cm_report(struct cm_event *event, struct cm_id *owner)
{
	assert(!event->owner); /* it is reported once */
	event->owner = owner;
	put(to_channel(owner->user.channel), event);
}

static void forget(struct cm_event *event)
{
	/* The program does not know the new identifier. */
	if (event->user.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		assert(event->owner->waiting > 0);
		assert(!to_cm(event->user.id)->unacked);
		event->owner->waiting--;
		cm_forget_events(to_cm(event->user.id));
		cm_hang_up(to_cm(event->user.id));
		cm_free_id(to_cm(event->user.id));
	}
	free(event);
}

void cm_forget_events(struct cm_id *id)
{
	struct cm_event *event;

	while ((event = pull(to_channel(id->user.channel), id)))
		forget(event);
}

/* A thread that waits on the channel waits for ever, as it would in the kernel; some programs
 * end that way. So does a thread that has just returned from there and is about to wait again.
 * That is why a channel that another thread has read from is not freed. */
EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *user)
{
	struct channel *channel = (struct channel *)user;
	struct cm_event *event;
	bool comes_back;

	cm_lock();
	while ((event = pull(&channel->cm, NULL)))
		forget(event);
	comes_back = channel->waiters ||
		     (channel->is_read && !pthread_equal(channel->reader, pthread_self()));
	channel->gone = true;
	if (!channel->waiters) {
		close(user->fd);
		close(channel->tell);
	}
	cm_unlock();
	if (!comes_back)
		free(channel);
}

/* Locked. Events of new identifiers that ask to be connected move, too: these have no channel of
 * their own yet. */
static void move_events(struct cm_id *id, struct cm_channel *from, struct cm_channel *to)
{
	struct cm_event *event;

	while ((event = pull(from, id))) {
		if (event->user.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			move_events(to_cm(event->user.id), from, to);
		put(to, event);
	}
	id->user.channel = &to->user;
}

static int acknowledge(struct rdma_cm_event *user)
{
	struct cm_event *event = (struct cm_event *)user;

	event->owner->unacked--;
	pthread_cond_broadcast(&cm.acked);
	free(event);
	return 0;
}

/* Locked. NULL: make the identifier synchronous, with a channel of its own. 0 or -errno. */
static int migrate(struct cm_id *id, struct rdma_event_channel *channel)
{
	struct rdma_event_channel *from = id->user.channel,
				  *to = channel ? channel : cm_new_channel();

	if (!to)
		return -ENOMEM;
	if (id->sync && id->user.event) {
		acknowledge(id->user.event);
		id->user.event = NULL;
	}
	move_events(id, to_channel(from), to_channel(to));
	cm_wait_for_acks(id);
	if (id->sync) {
		cm_unlock();
		rdma_destroy_event_channel(from);
		cm_lock();
	}
	id->sync = !channel;
	return 0;
}

EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	int rc;

	cm_lock();
	rc = migrate(to_cm(id), channel);
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

/* Locked: the next event; NULL: none. */
static struct cm_event *retrieve(struct cm_channel *channel)
{
	struct cm_event *event = pull(channel, NULL);

	if (!event)
		return NULL;
	event->owner->unacked++;
	if (event->user.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		assert(event->owner->waiting > 0 && event->owner != to_cm(event->user.id));
		event->owner->waiting--;
		if (event->owner->sync)
			migrate(to_cm(event->user.id), NULL);
	}
	cm_retrieved(event);
	return event;
}

static void stop_waiting(void *arg)
{
	cm_lock();
	((struct channel *)arg)->waiters--;
	cm_unlock();
}

/* Wait for an event, or for as long as the program has set the descriptor to wait. */
static int wait_for_event(struct channel *channel)
{
	char byte;
	ssize_t n;

	pthread_cleanup_push(stop_waiting, channel);
	n = recv(channel->cm.user.fd, &byte, 1, MSG_PEEK);
	pthread_cleanup_pop(1);
	return n < 0 ? -1 : 0; /* EAGAIN, EINTR */
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel *user, struct rdma_cm_event **out)
{
	struct channel *channel = (struct channel *)user;
	struct cm_event *event;
	bool gone;

	if (!channel || !out)
		return cm_fail(EINVAL);
	for (;;) {
		cm_lock();
		gone = channel->gone;
		channel->is_read = true;
		channel->reader = pthread_self();
		event = gone ? NULL : retrieve(&channel->cm);
		if (!event && !gone)
			channel->waiters++;
		cm_unlock();
		if (event)
			break;
		if (gone)
			pause();
		else if (wait_for_event(channel))
			return -1;
	}
	*out = &event->user;
	return 0;
}

EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return cm_fail(EINVAL);
	cm_lock();
	acknowledge(event);
	cm_unlock();
	return 0;
}

int cm_complete(struct cm_id *id)
{
	int rc;

	if (!id->sync)
		return 0;
	if (id->user.event) {
		rdma_ack_cm_event(id->user.event);
		id->user.event = NULL;
	}
	if (rdma_get_cm_event(id->user.channel, &id->user.event))
		return -1;
	rc = cm_event_error(id->user.event);
	return rc ? cm_fail(-rc) : 0;
}

EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
	struct cm_id *listener = to_cm(listen);
	struct rdma_cm_event *event;
	int error;

	if (!listener->sync || listener->state != CM_LISTEN)
		return cm_fail(EINVAL);
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	error = event->status ? abs(event->status) : EINVAL;
	if (!event->status && event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		error = 0;
		if (listener->qp_init) {
			struct ibv_qp_init_attr init = *listener->qp_init;

			if (rdma_create_qp(event->id, listener->ep_pd, &init))
				error = errno;
		}
		if (!error) {
			*out = event->id;
			event->id->event = event;
			return 0;
		}
		rdma_destroy_id(event->id);
	}
	rdma_ack_cm_event(event);
	return cm_fail(error);
}

EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return cm_event_str(event);
}
