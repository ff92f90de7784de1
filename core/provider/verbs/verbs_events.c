/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' completion channels and asynchronous events. The transport reports an event under the
 * NIC's lock (struct rnic_hooks); the program reads it from a queue (events.h). Before an object
 * can be destroyed, the events that name it and were read have to be acknowledged. Completion
 * events are counted in the completion queue, as in libibverbs; asynchronous events are kept in a
 * list until then.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "core/provider/verbs/context.h"
#include "core/provider/verbs/verbs.h"

/* --- completion channels --- */

struct channel {
	struct ibv_comp_channel ibv; /* first: what the program holds */
	struct events events;
};

void nic_completion(struct rnic_cq *cq)
{
	if (cq->ibv.channel) /* else no one can be told */
		events_put(&((struct channel *)cq->ibv.channel)->events, 0, cq);
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	int rc = channel ? events_init(&channel->events) : -ENOMEM;

	if (rc) {
		free(channel);
		errno = -rc;
		return NULL;
	}
	channel->ibv.context = context;
	channel->ibv.fd = channel->events.fd;
	return &channel->ibv;
}

static int free_channel(struct ibv_comp_channel *ibv)
{
	struct channel *channel = (struct channel *)ibv;

	if (ibv->refcnt)
		return EBUSY;
	events_free(&channel->events);
	free(channel);
	return 0;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return CALL(free_channel(channel));
}

/* Wait for the next event. `read` is called under the lock when the program gets it. NULL:
 * -errno in *rc. */
static struct event *next_event(struct events *events,
				void (*read)(struct events *, struct event *), int *rc)
{
	struct nic *nic = nic_get();
	struct event *event;

	for (;;) {
		nic_lock(nic);
		event = events_take(events);
		if (event)
			read(events, event);
		else
			nic_hand_over(nic);
		nic_unlock(nic);
		if (event)
			return event;
		*rc = events_wait(events);
		if (*rc)
			return NULL;
	}
}

static void completion_read(struct events *events, struct event *event)
{
	(void)events;
	((struct rnic_cq *)event->element)->reported++;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	int rc = 0;
	struct event *event = next_event(&((struct channel *)channel)->events, completion_read,
					 &rc);

	if (!event) {
		errno = -rc;
		return -1;
	}
	*cq = event->element;
	*cq_context = (*cq)->cq_context;
	free(event);
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

void nic_settle_completions(struct ibv_cq *cq)
{
	struct nic *nic = nic_get();
	uint32_t reported;

	if (!cq->channel)
		return;
	nic_lock(nic);
	events_drop(&((struct channel *)cq->channel)->events, cq);
	reported = ((struct rnic_cq *)cq)->reported;
	nic_unlock(nic);
	pthread_mutex_lock(&cq->mutex);
	while ((int32_t)(reported - cq->comp_events_completed) > 0)
		pthread_cond_wait(&cq->cond, &cq->mutex);
	pthread_mutex_unlock(&cq->mutex);
}

/* --- asynchronous events --- */

void nic_event(struct rnic_hca *hca, enum ibv_event_type type, void *element)
{
	events_put(&((struct nic_context *)hca->hooks.arg)->async, type, element);
}

static void async_read(struct events *events, struct event *event)
{
	struct nic_context *context = (struct nic_context *)events;
	struct event *read = event->element ? calloc(1, sizeof(*read)) : NULL;

	if (!read)
		return; /* no destruction will wait for it */
	*read = *event;
	pthread_mutex_lock(&context->mutex);
	read->next = context->read;
	context->read = read;
	pthread_mutex_unlock(&context->mutex);
}

EXPORT int ibv_get_async_event(struct ibv_context *ibv, struct ibv_async_event *out)
{
	int rc = 0;
	struct event *event = next_event(&to_nic_context(ibv)->async, async_read, &rc);

	if (!event) {
		errno = -rc;
		return -1;
	}
	out->event_type = event->type;
	if (event->element)
		out->element.qp = event->element; /* cq and srq share its place */
	else
		out->element.port_num = 1;
	free(event);
	return 0;
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_context *ibv = rnic_event_context(event);
	struct nic_context *context;

	if (!ibv)
		return;
	context = to_nic_context(ibv);
	pthread_mutex_lock(&context->mutex);
	for (struct event **at = &context->read; *at; at = &(*at)->next) {
		struct event *read = *at;

		if (read->element != event->element.qp || read->type != event->event_type)
			continue;
		*at = read->next;
		free(read);
		break;
	}
	pthread_cond_broadcast(&context->acknowledged);
	pthread_mutex_unlock(&context->mutex);
}

static bool unacknowledged(const struct nic_context *context, const void *element)
{
	for (const struct event *event = context->read; event; event = event->next)
		if (event->element == element)
			return true;
	return false;
}

void nic_settle_events(struct ibv_context *ibv, void *element)
{
	struct nic_context *context = to_nic_context(ibv);
	struct nic *nic = nic_get();

	nic_lock(nic);
	events_drop(&context->async, element);
	nic_unlock(nic);
	pthread_mutex_lock(&context->mutex);
	while (unacknowledged(context, element))
		pthread_cond_wait(&context->acknowledged, &context->mutex);
	pthread_mutex_unlock(&context->mutex);
}
