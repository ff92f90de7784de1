/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_VERBS_CONTEXT_H
#define TM_PROVIDER_VERBS_CONTEXT_H
/*
 * What an open device has in addition to the transport's struct rnic_hca: the events of its objects
 * (verbs_events.c). It is kept when the device is closed, as all memory of the transport is, so
 * that a program that still uses closed objects finds them dead.
 */
#include <pthread.h>
#include "core/provider/base/events.h"
#include "core/rnic/objects/cq.h"

struct nic_context {
	struct events async;   /* first; the NIC's lock */
	pthread_mutex_t mutex; /* protects the fields below; taken after the NIC's lock, or alone */
	pthread_cond_t acknowledged;
	struct event *read; /* asynchronous events that the program has read and not acknowledged */
};

static inline struct nic_context *to_nic_context(struct ibv_context *context)
{
	return to_hca(context)->hooks.arg;
}

/* struct rnic_hooks. */
void nic_completion(struct rnic_cq *cq);
void nic_event(struct rnic_hca *hca, enum ibv_event_type type, void *element);
/* Without the lock, for an object that was destroyed: drop the events that the program has not
 * read, and wait until it has acknowledged those that it has read. */
void nic_settle_events(struct ibv_context *context, void *element);
void nic_settle_completions(struct ibv_cq *cq);
/* A function for the context's table. Iterating over the queue polls it under the lock
 * (verbs_cq.c). */
struct ibv_cq_ex *nic_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int nic_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int nic_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int nic_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Set the functions in the context's table that post work requests (verbs.c). */
void nic_data_calls(struct ibv_context *context);
/* Locked: make the ibv_wr_*() of a new queue pair take the lock, and return the queue pair; it
 * may be NULL (verbs_wr.c). */
struct ibv_qp *nic_lock_wr(struct ibv_qp *qp);

#endif
