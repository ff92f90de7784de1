/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Identifiers, event channels and events of the connection manager. See cm.h.
 *
 * An event belongs to an identifier. Destroying the identifier drops the events that were not
 * retrieved, and waits until the others have been acknowledged. A connection request belongs to the
 * listening identifier.
 *
 * A task of the server that retrieves an event works from then on for the client's operation that
 * has brought it, as one does that polls a completion of a received message.
 */
#include "core/rnic/host/cm.h"
#include <assert.h>
#include <errno.h>
#include "core/rt/descriptors.h"
#include "core/rt/libc.h"

int host_cm_fail(int error)
{
	errno = error;
	return -1;
}

struct op_label host_cm_op(const struct host *host)
{
	const struct actor *actor = sim_actor(host_sim(host));

	return actor ? actor->op : (struct op_label){0};
}

/* --- event channels --- */

static struct cm_channel *to_channel(struct rdma_event_channel *channel)
{
	return (struct cm_channel *)channel;
}

static short channel_ready(const void *object, uint64_t *arrivals)
{
	const struct cm_channel *channel = object;

	*arrivals = channel->arrivals;
	return channel->first ? POLLIN : 0;
}

static const struct descriptor_kind channel_kind = {.ready = channel_ready};

/* NULL, with errno. */
static struct rdma_event_channel *new_channel(struct host *host)
{
	struct cm_channel *channel;
	int fd;

	if (sim_fails(FAIL_MEMORY)) {
		errno = ENOMEM;
		return NULL;
	}
	channel = ground_alloc(cm_ground(host), sizeof(*channel));
	fd = descriptor_open(host_sim(host), host->number, &channel_kind, channel);
	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	channel->host = host;
	channel->user.fd = fd;
	channel->last = &channel->first;
	return &channel->user;
}

struct rdma_event_channel *sim_rdma_create_event_channel(void)
{
	const struct process *process = process_here();

	return process ? new_channel(process->host) : NULL;
}

static void put(struct cm_channel *channel, struct cm_event *event)
{
	assert(!*channel->last); /* the list ends there */
	event->next = NULL;
	event->nth = channel->arrivals++;
	*channel->last = event;
	channel->last = &event->next;
	host_put(channel->host, channel, event->nth);
}

/* Take out the first event of this owner; NULL: of any owner. */
static struct cm_event *pull(struct cm_channel *channel, const struct cm_id *owner)
{
	struct cm_event **at = &channel->first, *event;

	while (*at && owner && (*at)->owner != owner)
		at = &(*at)->next;
	event = *at;
	if (!event)
		return NULL;
	*at = event->next;
	if (!event->next)
		channel->last = at;
	return event;
}

/* --- events --- */

struct cm_event *host_cm_event(struct cm_id *id, enum rdma_cm_event_type type, int status,
			       struct op_label op)
{
	struct hosts *all = id->host->all;
	struct cm_event *event = all->free_event;

	if (event)
		all->free_event = event->next;
	else
		event = ground_alloc(&all->net->ground, sizeof(*event));
	*event = (struct cm_event){.user = {.id = &id->user, .event = type, .status = status},
				   .op = op};
	return event;
}

void host_cm_report(struct cm_event *event, struct cm_id *owner)
{
	assert(!event->owner && !owner->kernels); /* reported once, to a program */
	event->owner = owner;
	put(to_channel(owner->user.channel), event);
}

void host_cm_tell(struct cm_id *id, enum rdma_cm_event_type type, int status, struct op_label op)
{
	if (!id->kernels)
		host_cm_report(host_cm_event(id, type, status, op), id);
}

static void free_event(struct hosts *all, struct cm_event *event)
{
	event->next = all->free_event;
	all->free_event = event;
}

static void forget(struct cm_event *event)
{
	struct cm_id *owner = event->owner;

	/* The program does not know the new identifier. */
	if (event->user.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct cm_id *id = to_cm(event->user.id);
		assert(owner->waiting > 0 && !id->unacked);
		owner->waiting--;
		host_cm_forget_events(id);
		host_cm_close(id, event->op);
	}
	free_event(owner->host->all, event);
}

void host_cm_forget_events(struct cm_id *id)
{
	struct cm_event *event;

	while ((event = pull(to_channel(id->user.channel), id)))
		forget(event);
}

void sim_rdma_destroy_event_channel(struct rdma_event_channel *user)
{
	struct cm_channel *channel = to_channel(user);
	struct cm_event *event;

	while ((event = pull(channel, NULL)))
		forget(event);
	descriptor_free(host_sim(channel->host), channel->host->number, user->fd);
}

/* Events of new identifiers that ask to be connected move, too: these have no channel of their own
 * yet. */
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

static void acknowledge(struct rdma_cm_event *user)
{
	struct cm_event *event = (struct cm_event *)user;
	struct cm_id *owner = event->owner;

	assert(owner->unacked);
	owner->unacked--;
	sim_wake(host_sim(owner->host), &owner->unacked);
	free_event(owner->host->all, event);
}

static void wait_for_acks(struct cm_id *id)
{
	while (id->unacked)
		host_wait(id->host, &id->unacked);
}

/* NULL: make the identifier synchronous, with a channel of its own. 0 or -errno. */
static int migrate(struct cm_id *id, struct rdma_event_channel *channel)
{
	struct rdma_event_channel *from = id->user.channel,
				  *to = channel ? channel : new_channel(id->host);
	bool was_sync = id->sync;

	if (!to)
		return -errno;
	if (was_sync && id->user.event) {
		acknowledge(id->user.event);
		id->user.event = NULL;
	}
	if (from == to)
		return 0;
	move_events(id, to_channel(from), to_channel(to));
	id->sync = !channel;
	wait_for_acks(id);
	if (was_sync)
		sim_rdma_destroy_event_channel(from);
	return 0;
}

int sim_rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	int rc = migrate(to_cm(id), channel);

	return rc ? host_cm_fail(-rc) : 0;
}

static void label_task(const struct host *host, const struct cm_event *event)
{
	struct actor *actor = sim_actor(host_sim(host));

	if (actor && host->number == HOST_SERVER && event->op.client)
		actor_label(actor, event->op);
}

/* The next event; the caller knows that there is one. */
static struct cm_event *retrieve(struct cm_channel *channel)
{
	struct cm_event *event = pull(channel, NULL);
	struct cm_id *owner = event->owner;

	host_took(channel->host, channel, event->nth);
	owner->unacked++;
	label_task(channel->host, event);
	if (event->user.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		assert(owner->waiting > 0 && owner != to_cm(event->user.id));
		owner->waiting--;
		if (owner->sync)
			migrate(to_cm(event->user.id), NULL);
	}
	host_cm_retrieved(event);
	return event;
}

int sim_rdma_get_cm_event(struct rdma_event_channel *user, struct rdma_cm_event **out)
{
	struct cm_channel *channel = to_channel(user);

	if (!user || !out)
		return host_cm_fail(EINVAL);
	if (!host_await(channel->host, &channel_kind, channel, channel, user->fd))
		return -1;
	*out = &retrieve(channel)->user;
	return 0;
}

int sim_rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return host_cm_fail(EINVAL);
	acknowledge(event);
	return 0;
}

int host_cm_complete(struct cm_id *id)
{
	int rc;

	if (!id->sync)
		return 0;
	if (id->user.event) {
		acknowledge(id->user.event);
		id->user.event = NULL;
	}
	if (sim_rdma_get_cm_event(id->user.channel, &id->user.event))
		return -1;
	rc = cm_event_error(id->user.event);
	return rc ? host_cm_fail(-rc) : 0;
}

const char *sim_rdma_event_str(enum rdma_cm_event_type event)
{
	return cm_event_str(event);
}

/* --- identifiers --- */

struct ibv_context **sim_rdma_get_devices(int *num)
{
	struct process *process = process_here();
	struct ibv_context **list = process ? sim_calloc(2, sizeof(*list)) : NULL;

	if (num)
		*num = list != NULL;
	if (list)
		list[0] = &process->hca->verbs.context;
	else if (process)
		errno = ENOMEM;
	return list;
}

void sim_rdma_free_devices(struct ibv_context **list)
{
	sim_free_memory(list);
}

int host_cm_bind_device(struct cm_id *id)
{
	struct process *process = id->host->process;
	struct rdma_ib_addr *ib = &id->user.route.addr.addr.ibaddr;

	assert(process);
	if (!process->pd)
		process->pd = rnic_alloc_pd(&process->hca->verbs.context);
	if (!process->pd)
		return -errno;
	id->user.verbs = &process->hca->verbs.context;
	id->user.pd = process->pd;
	id->user.port_num = 1;
	ib->sgid = process->hca->gid;
	ib->pkey = htons(0xffff);
	return 0;
}

struct cm_id *host_cm_new_id(struct host *host, struct rdma_event_channel *channel, void *context,
			     enum rdma_port_space ps)
{
	struct cm_id *id = host->all->free_id;
	struct alarm alarm = {0};

	if (id) {
		host->all->free_id = id->next;
		alarm = id->alarm; /* a stale event may still refer to it */
	} else {
		id = ground_alloc(cm_ground(host), sizeof(*id));
	}
	memset(id, 0, sizeof(*id));
	id->alarm = alarm;
	id->host = host;
	id->user.channel = channel;
	id->user.context = context;
	id->user.ps = ps;
	id->user.qp_type = IBV_QPT_RC;
	/* The last one comes first. */
	id->prev = &host->ids;
	id->next = host->ids;
	if (host->ids)
		host->ids->prev = &id->next;
	host->ids = id;
	return id;
}

void host_cm_free_id(struct cm_id *id)
{
	assert(!id->freed && *id->prev == id && !id->unacked);
	*id->prev = id->next;
	if (id->next)
		id->next->prev = id->prev;
	sim_free_memory(id->qp_init);
	sim_free_memory(id->connect_data);
	id->qp_init = NULL;
	id->connect_data = NULL;
	id->alarm.at = 0;
	id->freed = true;
	id->next = id->host->all->free_id;
	id->host->all->free_id = id;
}

int sim_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
		       enum rdma_port_space ps)
{
	struct process *process = process_here();
	struct rdma_event_channel *own = NULL;

	if (!process)
		return -1;
	if (!out || ps != RDMA_PS_TCP) /* the other port spaces are for datagrams */
		return host_cm_fail(EINVAL);
	if (sim_fails(FAIL_MEMORY))
		return host_cm_fail(ENOMEM);
	if (!channel) {
		own = new_channel(process->host);
		if (!own)
			return -1;
	}
	struct cm_id *id = host_cm_new_id(process->host, channel ? channel : own, context, ps);
	id->sync = !channel;
	*out = &id->user;
	return 0;
}

int sim_rdma_destroy_id(struct rdma_cm_id *user)
{
	struct cm_id *id = to_cm(user);
	struct rdma_event_channel *own = id->sync ? user->channel : NULL;

	host_call(id->host);
	if (id->sync && user->event)
		acknowledge(user->event);
	user->event = NULL;
	host_cm_forget_events(id);
	wait_for_acks(id);
	host_cm_forget_events(id); /* those that have come meanwhile */
	host_cm_close(id, host_cm_op(id->host));
	if (own)
		sim_rdma_destroy_event_channel(own);
	return 0;
}

int sim_rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	int rc = -ENOSYS;

	if (!value)
		rc = -EINVAL;
	else if (level == RDMA_OPTION_ID)
		rc = cm_set_option(&to_cm(id)->conn.options, to_cm(id)->state, name, value, len);
	return rc ? host_cm_fail(-rc) : 0;
}
