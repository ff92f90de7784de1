/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_VERBS_CONTEXT_H
#define TM_PROVIDER_VERBS_CONTEXT_H
/*
 * What an opened device has besides the transport's struct rnic_hca, and the events that its
 * objects have (verbs_events.c). It stays when the device is closed, as all memory of the transport
 * does: a program that goes on using what it has closed finds dead objects.
 */
#include <pthread.h>
#include "core/provider/base/events.h"
#include "core/rnic/objects/device.h"

struct nic_context {
	struct events async;   /* first; the NIC's lock */
	pthread_mutex_t mutex; /* of what follows; taken after the NIC's lock, or alone */
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
/* Without the lock, of an object that was destroyed: forget what the program has not read, wait
 * until what it has read is acknowledged. */
void nic_settle_events(struct ibv_context *context, void *element);
void nic_settle_completions(struct ibv_cq *cq);
/* A function for the context's tables: iterating polls, under the lock (verbs_cq.c). */
struct ibv_cq_ex *nic_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int nic_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int nic_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int nic_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* What posts work requests, for the context's table (verbs.c). */
void nic_data_calls(struct ibv_context *context);
/* Locked: put the lock around the ibv_wr_*() of a new queue pair, or NULL, and return it
 * (verbs_wr.c). */
struct ibv_qp *nic_lock_wr(struct ibv_qp *qp);

#endif
