/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_EVENTS_H
#define TM_RNIC_EVENTS_H
/*
 * Completion channels and asynchronous events: what a program waits for at a descriptor. Simulated
 * hosts and real processes have the same ones, each on a ground of its own:
 * core/rnic/host/events.c, core/provider/verbs/verbs_events.c.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>

struct rnic_cq;
struct rnic_hca;

struct happened {
	struct happened *next;
	void *element;		  /* the queue or queue pair that it is about; NULL: the port */
	uint64_t nth;		  /* of its list */
	enum ibv_event_type type; /* of an asynchronous event */
};

/* What the program has not read. */
struct events {
	struct happened *first, **last;
	uint64_t arrivals; /* so far */
	int fd, ours;	   /* the program's descriptor; the ground's. -1: none */
	void *owner;	   /* of the ground */
};

/* Of a context. */
struct async_events {
	struct events events;
	struct happened *read; /* and not acknowledged */
};

struct event_channel {
	struct ibv_comp_channel ibv; /* first: what the program holds */
	struct events events;
};

/* Those marked "optional" may be NULL. */
struct events_ground {
	/* Those of a context. NULL: it has none, which may be if they are not `needed`. */
	struct async_events *(*async)(struct ibv_context *context, bool needed);
	/* NULL: there is no memory, and the event is lost, as a kernel loses it. */
	struct happened *(*alloc)(struct events *events);
	void (*free)(struct events *events, struct happened *happened);
	/* An event was put in; optional: taken out; optional: by the program. */
	void (*arrived)(struct events *events, const struct happened *happened);
	void (*left)(struct events *events);
	void (*retrieved)(struct events *events, const struct happened *happened);
	/* Wait until there may be an event. An errno: EAGAIN where the program has set the
	 * descriptor not to wait, EINTR. */
	int (*wait)(struct events *events);
	/* Optional: one thread at a time. */
	void (*lock)(void);
	void (*unlock)(void);
	/* Locked: wait until something that `key` stands for is acknowledged; not locked: it was.
	 */
	void (*wait_for_ack)(struct events *events, const void *key);
	void (*acked)(struct events *events, const void *key);
};
/* Set before main() by the one that the program is linked with. */
extern const struct events_ground *events_ground;

void events_init(struct events *events, void *owner);
/* Struct rnic_hooks: the RNIC reports. Locked. */
void events_completion(struct rnic_cq *cq);
void events_async(struct rnic_hca *hca, enum ibv_event_type type, void *element);
/* Drop the events about an element; NULL: all. Locked. */
void events_drop(struct events *events, const void *element);
/* An object was destroyed: drop its events, and wait until those that the program has read are
 * acknowledged. Not locked. */
void events_settle(struct ibv_context *context, const void *element);
void events_settle_completions(struct ibv_cq *cq);

int rnic_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void rnic_ack_cq_events(struct ibv_cq *cq, unsigned int n);
int rnic_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void rnic_ack_async_event(struct ibv_async_event *event);

#endif
