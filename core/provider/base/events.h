/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_EVENTS_H
#define TM_PROVIDER_BASE_EVENTS_H
/*
 * A queue of events that a program waits for: a completion channel, or a context's asynchronous
 * events.
 *
 * The program sees one end of a pair of sockets, to be polled or made non-blocking; it is readable
 * as long as there is an event (each is a byte more, so an edge-triggered epoll sees each; the last
 * to go takes all away). A socket, because looking into it (MSG_PEEK) waits as the read() of a
 * kernel's descriptor does: it is begun again after a signal handler that is installed so, and the
 * thread may be cancelled in it. The events themselves stand in a list, so an object that goes away
 * takes its own along. All calls but events_wait() under the NIC's lock.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>

struct event {
	struct event *next;
	enum ibv_event_type type; /* of an asynchronous event */
	void *element;		  /* whose: a queue, a queue pair; NULL: the port */
};

struct events {
	int fd, ours; /* the program's end; -1: closed */
	struct event *first, **last;
};

/* -errno. */
int events_init(struct events *events);
void events_free(struct events *events);
void events_put(struct events *events, enum ibv_event_type type, void *element);
/* The oldest, to be freed by the caller; NULL: there is none. */
struct event *events_take(struct events *events);
/* The element is no more. */
void events_drop(struct events *events, const void *element);
/* Until there may be an event; -EAGAIN: the program has made the descriptor non-blocking, -EINTR: a
 * signal.
 */
int events_wait(const struct events *events);

#endif
