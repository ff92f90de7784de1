/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_EVENTS_H
#define TM_PROVIDER_BASE_EVENTS_H
/*
 * A queue of events that a program waits for: a completion channel, or a context's asynchronous
 * events.
 *
 * The program holds one end of a pair of sockets, which it may poll or make non-blocking. That end
 * is readable while there is an event. Each event adds a byte, so that an edge-triggered epoll
 * reports each one; the bytes are removed when the last event is taken. It is a socket because
 * looking at a byte without taking it (MSG_PEEK) waits as read() on a kernel's descriptor does: it
 * is restarted after a signal handler that was installed with SA_RESTART, and it is a cancellation
 * point. The events themselves are in a list, so that the events of an object can be dropped when
 * the object is destroyed.
 *
 * All calls but events_wait() are made under the NIC's lock.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>

struct event {
	struct event *next;
	enum ibv_event_type type; /* of an asynchronous event */
	void *element;		  /* the queue or queue pair that it is about; NULL: the port */
};

struct events {
	int fd, ours; /* the program's end; -1: closed */
	struct event *first, **last;
};

/* -errno. */
int events_init(struct events *events);
void events_free(struct events *events);
void events_put(struct events *events, enum ibv_event_type type, void *element);
/* Take out the oldest event, which the caller frees; NULL: there is none. */
struct event *events_take(struct events *events);
/* The element is destroyed: drop its events. */
void events_drop(struct events *events, const void *element);
/* Wait until there may be an event. -EAGAIN: the program has made the descriptor non-blocking;
 * -EINTR: a signal. */
int events_wait(const struct events *events);

#endif
