/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See events.h. The RNIC reports an event, which is kept in a list until a call of the program
 * takes it out. Events that were taken are counted, or kept, until the program acknowledges them:
 * to destroy the object waits for that. What was not taken when the object is destroyed is dropped.
 */
#include "core/rnic/events.h"
#include <assert.h>
#include <errno.h>
#include "core/rnic/objects/cq.h"
#include "core/rnic/rnic.h"

const struct events_ground *events_ground;

static void lock(void)
{
	if (events_ground->lock)
		events_ground->lock();
}

static void unlock(void)
{
	if (events_ground->unlock)
		events_ground->unlock();
}

void events_init(struct events *events, void *owner)
{
	*events = (struct events){.last = &events->first, .fd = -1, .ours = -1, .owner = owner};
}

static void put_event(struct events *events, enum ibv_event_type type, void *element)
{
	struct happened *happened = events_ground->alloc(events);

	if (!happened)
		return;
	*happened = (struct happened){.element = element, .type = type, .nth = events->arrivals++};
	assert(!*events->last); /* the list ends there */
	*events->last = happened;
	events->last = &happened->next;
	events_ground->arrived(events, happened);
}

static struct happened *unlink_at(struct events *events, struct happened **at)
{
	struct happened *happened = *at;

	assert(happened->next || events->last == &happened->next);
	*at = happened->next;
	if (!*at)
		events->last = at;
	if (events_ground->left)
		events_ground->left(events);
	return happened;
}

void events_drop(struct events *events, const void *element)
{
	struct happened **at = &events->first;

	while (*at) {
		if (!element || (*at)->element == element)
			events_ground->free(events, unlink_at(events, at));
		else
			at = &(*at)->next;
	}
}

/* The next event, with the lock, for the program; NULL and errno: it does not wait for one. */
static struct happened *next_event(struct events *events)
{
	int error;

	while (!(error = events_ground->wait(events))) {
		lock();
		if (events->first) {
			struct happened *happened = unlink_at(events, &events->first);
			if (events_ground->retrieved)
				events_ground->retrieved(events, happened);
			return happened;
		}
		unlock();
	}
	errno = error;
	return NULL;
}

/* --- completions --- */

void events_completion(struct rnic_cq *cq)
{
	if (cq->ibv.channel) /* else no one can be told */
		put_event(&((struct event_channel *)cq->ibv.channel)->events, 0, cq);
}

int rnic_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct events *events = &((struct event_channel *)channel)->events;
	struct happened *happened = next_event(events);

	if (!happened)
		return -1;
	((struct rnic_cq *)happened->element)->reported++;
	*cq = happened->element;
	*cq_context = (*cq)->cq_context;
	events_ground->free(events, happened);
	unlock();
	return 0;
}

void rnic_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	lock();
	cq->comp_events_completed += n;
	unlock();
	if (cq->channel)
		events_ground->acked(&((struct event_channel *)cq->channel)->events,
				     &cq->comp_events_completed);
}

void events_settle_completions(struct ibv_cq *cq)
{
	struct events *events;
	if (!cq->channel)
		return;
	events = &((struct event_channel *)cq->channel)->events;
	lock();
	events_drop(events, cq);
	while ((int32_t)(((struct rnic_cq *)cq)->reported - cq->comp_events_completed) > 0)
		events_ground->wait_for_ack(events, &cq->comp_events_completed);
	unlock();
}

/* --- asynchronous events --- */

void events_async(struct rnic_hca *hca, enum ibv_event_type type, void *element)
{
	put_event(&events_ground->async(&hca->verbs.context, true)->events, type, element);
}

int rnic_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct async_events *async = events_ground->async(context, true);
	struct happened *happened = next_event(&async->events);

	if (!happened)
		return -1;
	*event = (struct ibv_async_event){.event_type = happened->type};
	if (happened->element) {
		event->element.qp = happened->element; /* cq and srq share its place */
		happened->next = async->read;
		async->read = happened;
	} else { /* no destruction waits for it */
		event->element.port_num = 1;
		events_ground->free(&async->events, happened);
	}
	unlock();
	return 0;
}

void rnic_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_context *context = rnic_event_context(event);
	struct async_events *async = context ? events_ground->async(context, false) : NULL;

	if (!async)
		return;
	lock();
	struct happened **at = &async->read;
	while (*at && ((*at)->element != event->element.qp || (*at)->type != event->event_type))
		at = &(*at)->next;
	if (*at) {
		struct happened *happened = *at;
		*at = happened->next;
		events_ground->free(&async->events, happened);
	}
	unlock();
	events_ground->acked(&async->events, &async->read);
}

static bool is_read(const struct async_events *async, const void *element)
{
	const struct happened *happened = async->read;

	while (happened && happened->element != element)
		happened = happened->next;
	return happened;
}

void events_settle(struct ibv_context *context, const void *element)
{
	struct async_events *async = events_ground->async(context, false);

	if (!async)
		return;
	lock();
	events_drop(&async->events, element);
	while (is_read(async, element))
		events_ground->wait_for_ack(&async->events, &async->read);
	unlock();
}
