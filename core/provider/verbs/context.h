/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_VERBS_CONTEXT_H
#define TM_PROVIDER_VERBS_CONTEXT_H
/*
 * An open device is the transport's struct rnic_hca. Its asynchronous events are kept when the
 * device is closed, as all memory of the transport is, so that a program that still uses closed
 * objects finds them dead.
 */
#include "core/rnic/events.h"
#include "core/rnic/objects/cq.h"

/* A pair of sockets for events (verbs_events.c). False: errno. */
bool nic_open_events(struct events *events);
/* Locked: there are no events any more. */
void nic_close_events(struct events *events);
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
