/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_CQ_H
#define TM_RNIC_OBJECTS_CQ_H
/* Completion queues: cq.c; iterating over one: cq_ex.c. */
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/pd.h"

/* An entry: what the user sees, and whose it is. */
struct cqe {
	struct ibv_wc wc;
	struct rnic_qp *qp;
	uint32_t seq; /* the work request's number in its queue */
	bool recv, solicited;
	uint64_t at_ns;	    /* when it was put in */
	struct op_label op; /* of the message */
	uint64_t message;   /* its packets' name.id */
};

/* Which entry makes an event. */
enum cq_armed {
	CQ_UNARMED,
	CQ_ARMED_SOLICITED,
	CQ_ARMED_NEXT,
};

/* Between ibv_start_poll() and ibv_end_poll(). */
struct cq_batch {
	bool open, named;
	const void *owner; /* the task that opened it */
	struct cqe current;
	uint8_t class; /* of its buffer */
};

struct rnic_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct cqe *ring;	   /* grows up to ibv.cqe entries */
	uint8_t ring_class;	   /* of its buffer */
	uint32_t room, head, tail; /* head: next to poll; tail: next to fill; both run on */
	unsigned users;		   /* a queue pair counts once as sender, once as receiver */
	bool overrun, dead;
	bool ignores_overrun, single_threaded;
	uint8_t armed;			  /* enum cq_armed */
	struct ibv_moderate_cq moderated; /* one event for so many entries, or after so long */
	uint32_t withheld;		  /* entries that moderation keeps back */
	struct alarm moderation;
	struct rnic_event failing; /* of the queue pairs, after an overrun */
	uint32_t reported;	   /* events that the program has read, and will acknowledge */
	struct rnic_pd *parent;	   /* the parent domain, or NULL */
	struct cq_batch *batch;	   /* NULL: there is no iterating over it */
	struct rnic_cq *next;	   /* of those that were given back */
};

/* Put an entry in. When there is no room the entry is lost, and the queue's queue pairs will
 * fail. */
void cq_push(struct rnic_net *net, struct rnic_cq *cq, const struct cqe *cqe);
/* As qp_give_back(). */
void cq_give_back(struct rnic_cq *cq);
/* Take out what is left of a queue pair that was reset or destroyed. */
void cq_purge(struct rnic_cq *cq, const struct rnic_qp *qp);
int rnic_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int rnic_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* What an iterating poll (cq_ex.c) has of ibv_poll_cq(): the next entry; NULL: there is none, or,
 * `*named`, it is one that names what the task works for, as did one before. */
const struct cqe *cq_take(struct rnic_cq *cq, bool *named);
/* A step of the task that polls. False: the queue is empty. */
bool cq_step(struct rnic_cq *cq);
/* ibv_start_poll() and so on. */
int cq_ex_start(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
int cq_ex_next(struct ibv_cq_ex *cq);
void cq_ex_end(struct ibv_cq_ex *cq);

#endif
