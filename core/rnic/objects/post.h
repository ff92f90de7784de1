/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_POST_H
#define TM_RNIC_OBJECTS_POST_H
/* Posting work requests: post.c. */
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/work_queue.h"

/* Append a receive request; `oldest`: the lowest number still in use. */
void post_rqe(struct rnic_net *net, struct work_queue *queue, uint32_t oldest,
	      const struct ibv_recv_wr *wr);
int rnic_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int rnic_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* The same, with windows of which type IBV_WR_BIND_MW may bind. */
int post_list(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
	      enum ibv_mw_type binds);
/* Posting is a step of the task. */
void post_step(struct rnic_qp *qp);
/* Wait until no other task's batch is open. EINVAL: it is the caller's own. */
int post_enter(struct rnic_qp *qp);
/* May requests be posted, and is there room for one more after `ahead` that are not posted yet? */
int post_room(const struct rnic_qp *qp, uint32_t ahead);
/* A cleared slot of the send queue for a request of this operation (its number, opcode.h), number
 * posted + ahead. */
struct wqe *post_slot(struct rnic_qp *qp, uint32_t ahead, unsigned operation, unsigned flags);
/* Where the request's inline data are to be copied. */
uint8_t *post_inline(struct rnic_qp *qp, struct wqe *wqe);
/* Copy a piece of them; the CPU does this, so it needs no key. The next piece goes where this one
 * ends. */
uint8_t *post_copy(struct rnic_qp *qp, uint8_t *to, const void *from, size_t len);
/* Can what the request asks for be done at all? */
int post_check(const struct rnic_qp *qp, const struct wqe *wqe);
/* Where a datagram goes. */
int post_address(struct rnic_qp *qp, struct wqe *wqe, const struct ibv_ah *ah, uint32_t qpn,
		 uint32_t qkey);
/* The request in the next slot is posted. */
void post_commit(struct rnic_qp *qp);
void post_doorbell(struct rnic_qp *qp);
/* A program has found this completion queue empty, or is about to wait for it. */
void post_ask(struct rnic_net *net, const struct ibv_cq *cq);

#endif
