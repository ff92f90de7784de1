/* SPDX-License-Identifier: BSD-3-Clause */
/* See events.h. */
#include "core/nic/events.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int events_init(struct events *events)
{
	events->first = NULL;
	events->last = &events->first;
	events->fd = eventfd(0, EFD_CLOEXEC);
	return events->fd < 0 ? -errno : 0;
}

void events_free(struct events *events)
{
	struct event *event;

	while ((event = events_take(events)))
		free(event);
	close(events->fd);
	events->fd = -1;
}

void events_put(struct events *events, enum ibv_event_type type, void *element)
{
	struct event *event = calloc(1, sizeof(*event));

	if (!event)
		return; /* as a kernel without memory loses it */
	event->type = type;
	event->element = element;
	*events->last = event;
	events->last = &event->next;
	eventfd_write(events->fd, 1);
}

/* Unlink *at. */
static struct event *unlink_at(struct events *events, struct event **at)
{
	struct event *event = *at;
	eventfd_t count;

	*at = event->next;
	if (!event->next)
		events->last = at;
	if (!events->first)
		eventfd_read(events->fd, &count); /* there is a count: it does not block */
	return event;
}

struct event *events_take(struct events *events)
{
	return events->first ? unlink_at(events, &events->first) : NULL;
}

void events_drop(struct events *events, const void *element)
{
	struct event **at = &events->first;

	while (*at) {
		if ((*at)->element == element)
			free(unlink_at(events, at));
		else
			at = &(*at)->next;
	}
}

int events_wait(const struct events *events)
{
	struct pollfd fd = {.fd = events->fd, .events = POLLIN};
	int flags = fcntl(events->fd, F_GETFL);

	if (flags < 0)
		return -errno;
	if (flags & O_NONBLOCK)
		return -EAGAIN;
	return poll(&fd, 1, -1) < 0 ? -errno : 0;
}
