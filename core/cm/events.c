/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event channels and events of the connection manager.
 *
 * An event belongs to an identifier. Destroying the identifier drops the events that were not
 * retrieved, and waits until the others have been acknowledged. A connection request belongs to the
 * listening identifier.
 */
#include <assert.h>
#include <stdlib.h>
#include "core/cm/calls.h"
#include "core/cm/ground.h"

struct rdma_event_channel *cm_create_event_channel(void)
{
	struct cm *cm = cm_ground->here();
	struct cm_channel *channel = cm ? cm_ground->new_channel(cm) : NULL;

	return channel ? &channel->user : NULL;
}

static void put_event(struct cm_channel *channel, struct cm_event *event)
{
	assert(!*channel->last); /* the list ends there */
	event->next = NULL;
	event->nth = channel->arrivals++;
	*channel->last = event;
	channel->last = &event->next;
	cm_ground->arrived(channel, event);
}

/* Take out the first event of this owner; NULL: of any owner. */
static struct cm_event *pull(struct cm_channel *channel, const struct cm_id *owner)
{
	struct cm_event **at = &channel->first;

	while (*at && owner && (*at)->owner != owner)
		at = &(*at)->next;
	struct cm_event *event = *at;
	if (!event)
		return NULL;
	assert(event->next || channel->last == &event->next);
	*at = event->next;
	if (!event->next)
		channel->last = at;
	if (cm_ground->left)
		cm_ground->left(channel);
	return event;
}

struct cm_event *cm_event(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *event = cm_ground->new_event(id->cm);

	if (event) {
		event->user.id = &id->user;
		event->user.event = type;
		event->user.status = status;
	}
	return event;
}

void cm_report(struct cm_event *event, struct cm_id *owner)
{
	assert(!event->owner && !owner->kernels); /* reported once, to a program */
	event->owner = owner;
	put_event(to_channel(owner->user.channel), event);
}

bool cm_tell(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	if (id->kernels)
		return true;
	struct cm_event *event = cm_event(id, type, status);
	if (event)
		cm_report(event, id);
	return event != NULL;
}

static void forget(struct cm_event *event)
{
	struct cm_id *owner = event->owner;
	struct cm *cm = owner->cm;

	/* The program does not know the new identifier. */
	if (event->user.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct cm_id *id = to_cm(event->user.id);
		assert(owner->waiting > 0 && !id->unacked);
		owner->waiting--;
		cm_forget_events(id);
		cm->cause = &event->op;
		cm_close(id);
		cm->cause = NULL;
	}
	cm_ground->free_event(cm, event);
}

void cm_forget_events(struct cm_id *id)
{
	struct cm_event *event;

	while ((event = pull(to_channel(id->user.channel), id)))
		forget(event);
}

void cm_free_channel(struct rdma_event_channel *channel)
{
	struct cm_event *event;

	while ((event = pull(to_channel(channel), NULL)))
		forget(event);
	cm_ground->free_channel(to_channel(channel));
}

void cm_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct cm *cm = to_channel(channel)->cm;

	cm_lock(cm);
	cm_free_channel(channel);
	cm_unlock(cm);
}

/* Events of new identifiers that ask to be connected move, too: these have no channel of their own
 * yet. */
static void move_events(struct cm_id *id, struct cm_channel *from, struct cm_channel *to)
{
	struct cm_event *event;

	while ((event = pull(from, id))) {
		if (event->user.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			move_events(to_cm(event->user.id), from, to);
		put_event(to, event);
	}
	id->user.channel = &to->user;
}

void cm_acknowledge(struct rdma_cm_event *user)
{
	struct cm_event *event = (struct cm_event *)user;
	struct cm_id *owner = event->owner;

	assert(owner->unacked);
	owner->unacked--;
	cm_ground->acked(owner);
	cm_ground->free_event(owner->cm, event);
}

void cm_wait_for_acks(struct cm_id *id)
{
	while (id->unacked)
		cm_ground->wait_for_ack(id);
}

/* NULL: make the identifier synchronous, with a channel of its own. 0 or -errno. */
static int migrate(struct cm_id *id, struct cm_channel *channel)
{
	struct cm_channel *from = to_channel(id->user.channel),
			  *to = channel ? channel : cm_ground->new_channel(id->cm);
	bool was_sync = id->sync;

	if (!to)
		return -errno;
	if (was_sync && id->user.event) {
		cm_acknowledge(id->user.event);
		id->user.event = NULL;
	}
	if (from == to)
		return 0;
	move_events(id, from, to);
	id->sync = !channel;
	cm_wait_for_acks(id);
	if (was_sync)
		cm_free_channel(&from->user);
	return 0;
}

int cm_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	return cm_result(CM_LOCKED(to_cm(id), migrate(to_cm(id), to_channel(channel))));
}

struct cm_event *cm_retrieve(struct cm_channel *channel)
{
	struct cm_event *event = pull(channel, NULL);

	if (!event)
		return NULL;
	if (cm_ground->retrieved)
		cm_ground->retrieved(channel, event);
	struct cm_id *owner = event->owner;
	owner->unacked++;
	if (event->user.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		assert(owner->waiting > 0 && owner != to_cm(event->user.id));
		owner->waiting--;
		if (owner->sync)
			migrate(to_cm(event->user.id), NULL);
	}
	cm_retrieved(event);
	return event;
}

int cm_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
	struct cm_event *event;

	if (!channel || !out)
		return errno_minus(EINVAL);
	if (cm_ground->get(to_channel(channel), &event))
		return -1;
	*out = &event->user;
	return 0;
}

int cm_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return errno_minus(EINVAL);
	struct cm *cm = ((struct cm_event *)event)->owner->cm;
	cm_lock(cm);
	cm_acknowledge(event);
	cm_unlock(cm);
	return 0;
}

static void acknowledge_last(struct rdma_cm_id *id)
{
	if (id->event)
		cm_ack_cm_event(id->event);
	id->event = NULL;
}

int cm_complete(struct cm_id *id, int rc)
{
	if (rc || !id->sync)
		return cm_result(rc);
	acknowledge_last(&id->user);
	if (cm_get_cm_event(id->user.channel, &id->user.event))
		return -1;
	return cm_result(cm_event_error(id->user.event));
}

/* The new identifier gets the queue pair that rdma_create_ep() was told of. 0 or an errno. */
static int equip(const struct cm_id *listener, struct rdma_cm_id *id)
{
	if (!listener->qp_init)
		return 0;
	struct ibv_qp_init_attr init = *listener->qp_init;
	return cm_create_qp(id, listener->ep_pd, &init) ? errno : 0;
}

int cm_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
	struct cm_id *listener = to_cm(listen);
	struct rdma_cm_event *event;

	if (!listener->sync || listener->state != CM_LISTEN)
		return errno_minus(EINVAL);
	acknowledge_last(listen);
	if (cm_get_cm_event(listen->channel, &event))
		return -1;
	int error = event->status ? abs(event->status) : EINVAL;
	if (!event->status && event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		error = equip(listener, event->id);
		if (!error) {
			*out = event->id;
			event->id->event = event;
			return 0;
		}
		cm_destroy_id(event->id);
	}
	cm_ack_cm_event(event);
	return errno_minus(error);
}

const char *cm_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		"RDMA_CM_EVENT_ADDR_RESOLVED",	 "RDMA_CM_EVENT_ADDR_ERROR",
		"RDMA_CM_EVENT_ROUTE_RESOLVED",	 "RDMA_CM_EVENT_ROUTE_ERROR",
		"RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
		"RDMA_CM_EVENT_CONNECT_ERROR",	 "RDMA_CM_EVENT_UNREACHABLE",
		"RDMA_CM_EVENT_REJECTED",	 "RDMA_CM_EVENT_ESTABLISHED",
		"RDMA_CM_EVENT_DISCONNECTED",	 "RDMA_CM_EVENT_DEVICE_REMOVAL",
		"RDMA_CM_EVENT_MULTICAST_JOIN",	 "RDMA_CM_EVENT_MULTICAST_ERROR",
		"RDMA_CM_EVENT_ADDR_CHANGE",	 "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	if ((unsigned)event >= sizeof(names) / sizeof(*names))
		return "UNKNOWN EVENT";
	return names[event];
}
