/* SPDX-License-Identifier: BSD-3-Clause */
/* See events.h. */
#include "core/provider/base/events.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int events_init(struct events *events)
{
	int pair[2];

	events->first = NULL;
	events->last = &events->first;
	events->fd = events->ours = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	events->fd = pair[0];
	events->ours = pair[1];
	return 0;
}

void events_free(struct events *events)
{
	struct event *event;

	while ((event = events_take(events)))
		free(event);
	assert(events->last == &events->first);
	assert(events->fd >= 0 && events->ours >= 0); /* else another file is closed */
	close(events->ours); /* wakes a thread that waits at the other end */
	close(events->fd);
	events->fd = events->ours = -1;
}

void events_put(struct events *events, enum ibv_event_type type, void *element)
{
	struct event *event = calloc(1, sizeof(*event));

	if (!event)
		return; /* as a kernel without memory loses it */
	event->type = type;
	event->element = element;
	assert(events->ours >= 0);
	assert(!*events->last); /* the list ends there */
	*events->last = event;
	events->last = &event->next;
	/* A full socket is readable, too. */
	send(events->ours, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Unlink *at. */
static struct event *unlink_at(struct events *events, struct event **at)
{
	struct event *event = *at;
	char bytes[512];

	assert(event->next || events->last == &event->next);
	*at = event->next;
	if (!event->next)
		events->last = at;
	assert(events->first || events->last == &events->first);
	while (!events->first &&
	       recv(events->fd, bytes, sizeof(bytes), MSG_DONTWAIT) == sizeof(bytes))
		;
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
	char byte;
	ssize_t got = recv(events->fd, &byte, 1, MSG_PEEK);

	if (got < 0)
		return -errno;
	return got ? 0 : -EBADF;
}
