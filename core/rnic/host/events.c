/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels and asynchronous events, as libibverbs and the kernel have them.
 *
 * The RNIC reports an event, the kernel keeps it in a list, and a call of the program takes it out,
 * or waits for one. Events that were taken are counted until the program acknowledges them: to
 * destroy the object waits for that. What was not taken when the object is destroyed is dropped.
 */
#include "core/rnic/host/events.h"
#include <assert.h>
#include <errno.h>
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/srq.h"
#include "core/rt/descriptors.h"

#define STEP_NS 20
#define CALL_NS 500

/* --- waiting --- */

void host_wait(const struct host *host, const void *key)
{
	struct sim *sim = host_sim(host);

	sim_spend_step(sim);
	sim_idle_on(sim, key);
	sim_yield(sim);
}

void host_call(const struct host *host)
{
	struct sim *sim = host_sim(host);

	sim_commit_pending(sim);
	sim_step(sim, STEP_POST, CALL_NS);
}

bool host_await(const struct host *host, const struct descriptor_kind *kind, const void *object,
		const void *list, int fd)
{
	struct sim *sim = host_sim(host);
	uint64_t arrivals;

	for (;;) {
		if (kind->ready(object, &arrivals)) {
			sim_commit_pending(sim);
			sim_step(sim, STEP_POLL, STEP_NS);
			/* Another thread may have taken it meanwhile. */
			if (kind->ready(object, &arrivals))
				return true;
		} else if (descriptor_waits(sim, host->number, fd)) {
			host_wait(host, list);
		} else {
			sim_spend_step(sim);
			sim_idle_on(sim, list);
			errno = EAGAIN;
			return false;
		}
	}
}

void host_took(const struct host *host, const void *list, uint64_t nth)
{
	struct sim *sim = host_sim(host);

	/* Another thread may take, too: which one is first matters. */
	sim_touch_state(sim, TOUCH_DRAM_WRITE, list, sizeof(uint64_t));
	sim_takes(sim, list, nth);
}

void host_put(const struct host *host, const void *list, uint64_t nth)
{
	struct sim *sim = host_sim(host);

	sim_gives(sim, list, nth);
	sim_wake(sim, list);
	descriptors_wake(sim, host->number);
}

/* --- lists --- */

static void put(const struct host *host, struct happened_list *list, int type, void *element)
{
	struct hosts *all = host->all;
	struct happened *happened = all->free_happened;

	if (happened)
		all->free_happened = happened->next;
	else
		happened = ground_alloc(&all->net->ground, sizeof(*happened));
	*happened = (struct happened){.element = element, .type = type, .nth = list->arrivals++};
	if (!list->first)
		list->last = &list->first;
	*list->last = happened;
	list->last = &happened->next;
	host_put(host, list, happened->nth);
}

static void give_back(const struct host *host, struct happened *happened)
{
	happened->next = host->all->free_happened;
	host->all->free_happened = happened;
}

static void drop(const struct host *host, struct happened_list *list, const void *element)
{
	struct happened **at = &list->first;

	while (*at) {
		struct happened *happened = *at;
		if (happened->element != element) {
			at = &happened->next;
			continue;
		}
		*at = happened->next;
		give_back(host, happened);
	}
	list->last = at;
}

/* What host_await() has found. */
static struct happened *take(const struct host *host, struct happened_list *list)
{
	struct happened *happened = list->first;

	host_took(host, list, happened->nth);
	list->first = happened->next;
	return happened;
}

/* --- completion channels --- */

struct channel {
	struct ibv_comp_channel ibv;
	struct host *host;
	struct happened_list happened;
};

static short channel_ready(const void *object, uint64_t *arrivals)
{
	const struct channel *channel = object;

	*arrivals = channel->happened.arrivals;
	return channel->happened.first ? POLLIN : 0;
}

static const struct descriptor_kind channel_kind = {.ready = channel_ready};

struct ibv_comp_channel *rnic_create_comp_channel(struct ibv_context *context)
{
	struct host *host = process_of(context)->host;
	struct channel *channel;
	int fd;

	if (sim_fails(FAIL_MEMORY)) {
		errno = ENOMEM;
		return NULL;
	}
	channel = ground_alloc(&host->all->net->ground, sizeof(*channel));
	fd = descriptor_open(host_sim(host), host->number, &channel_kind, channel);
	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	channel->host = host;
	channel->ibv.context = context;
	channel->ibv.fd = fd;
	return &channel->ibv;
}

int rnic_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct channel *channel = (struct channel *)ibv;

	if (ibv->refcnt)
		return EBUSY;
	descriptor_free(host_sim(channel->host), channel->host->number, ibv->fd);
	return 0;
}

void events_completion(struct rnic_cq *cq)
{
	struct channel *channel = (struct channel *)cq->ibv.channel;

	if (channel)
		put(channel->host, &channel->happened, 0, cq);
}

int rnic_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	struct channel *channel = (struct channel *)ibv;
	struct happened *happened;

	if (!host_await(channel->host, &channel_kind, channel, &channel->happened, ibv->fd))
		return -1;
	happened = take(channel->host, &channel->happened);
	((struct rnic_cq *)happened->element)->reported++;
	*cq = happened->element;
	*cq_context = (*cq)->cq_context;
	give_back(channel->host, happened);
	return 0;
}

void rnic_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	const struct host *host = process_of(cq->context)->host;

	cq->comp_events_completed += n;
	sim_wake(host_sim(host), &cq->comp_events_completed);
}

/* --- asynchronous events --- */

void events_async(struct rnic_hca *hca, enum ibv_event_type type, void *element)
{
	struct process *process = hca->hooks.arg;

	put(process->host, &process->async, type, element);
}

static short async_ready(const void *object, uint64_t *arrivals)
{
	const struct process *process = object;

	*arrivals = process->async.arrivals;
	return process->async.first ? POLLIN : 0;
}

static const struct descriptor_kind async_kind = {.ready = async_ready};

int events_open_async(struct process *process)
{
	struct host *host = process->host;

	if (process->async_fd < 0)
		process->async_fd = descriptor_open(host_sim(host), host->number, &async_kind,
						    process);
	return process->async_fd;
}

int rnic_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct process *process = process_of(context);
	struct happened *happened;

	if (!host_await(process->host, &async_kind, process, &process->async, process->async_fd))
		return -1;
	happened = take(process->host, &process->async);
	*event = (struct ibv_async_event){.event_type = (enum ibv_event_type)happened->type};
	if (!happened->element) {
		event->element.port_num = 1;
		give_back(process->host, happened); /* no destruction waits for it */
		return 0;
	}
	event->element.qp = happened->element; /* cq and srq share its place */
	happened->next = process->read;
	process->read = happened;
	return 0;
}

void rnic_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_context *context = rnic_event_context(event);
	struct process *process;

	if (!context)
		return;
	process = process_of(context);
	for (struct happened **at = &process->read; *at; at = &(*at)->next) {
		struct happened *happened = *at;
		if (happened->element != event->element.qp ||
		    happened->type != (int)event->event_type)
			continue;
		*at = happened->next;
		give_back(process->host, happened);
		break;
	}
	sim_wake(host_sim(process->host), &process->read);
}

static bool unacknowledged(const struct process *process, const void *element)
{
	for (const struct happened *happened = process->read; happened; happened = happened->next)
		if (happened->element == element)
			return true;
	return false;
}

/* The object is destroyed. */
static void settle(struct ibv_context *context, const void *element)
{
	struct process *process = process_known(context);

	if (!process)
		return;
	drop(process->host, &process->async, element);
	while (unacknowledged(process, element))
		host_wait(process->host, &process->read);
}

/* --- destruction --- */

int rnic_host_destroy_cq(struct ibv_cq *ibv)
{
	const struct rnic_cq *cq = (struct rnic_cq *)ibv;
	struct channel *channel = (struct channel *)ibv->channel;
	int error = rnic_destroy_cq(ibv);

	if (error)
		return error;
	settle(ibv->context, ibv);
	if (!channel)
		return 0;
	drop(channel->host, &channel->happened, cq);
	while ((int32_t)(cq->reported - ibv->comp_events_completed) > 0)
		host_wait(channel->host, &ibv->comp_events_completed);
	return 0;
}

int rnic_host_destroy_qp(struct ibv_qp *qp)
{
	struct ibv_context *context = qp->context;
	int error = rnic_destroy_qp(qp);

	if (!error)
		settle(context, qp);
	return error;
}

int rnic_host_destroy_srq(struct ibv_srq *srq)
{
	struct ibv_context *context = srq->context;
	int error = rnic_destroy_srq(srq);

	if (!error)
		settle(context, srq);
	return error;
}
