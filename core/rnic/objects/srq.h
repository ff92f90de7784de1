/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_SRQ_H
#define TM_RNIC_OBJECTS_SRQ_H
/* Shared receive queues: srq.c. */
#include <assert.h>
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/work_queue.h"

struct rnic_srq {
	struct ibv_srq ibv;
	struct rnic_hca *hca;
	struct work_queue rq; /* what no queue pair has taken is [next, posted) */
	uint32_t taken;	      /* by queue pairs, and their completions are not polled */
	uint32_t limit;	      /* 0: not armed */
	unsigned users;
	bool dead;
	uint32_t number;
};

/* The domain that the keys of receive requests must belong to. */
static inline const struct ibv_pd *qp_recv_pd(const struct rnic_qp *qp)
{
	return qp->srq ? qp->srq->ibv.pd : qp->ibv.pd;
}
/* All receive completions before number `seq` were polled, or will never be. */
static inline void qp_recv_freed(struct rnic_qp *qp, uint32_t seq)
{
	assert((int32_t)(seq - qp->rq.freed) >= 0);
	assert(!qp->srq || seq - qp->rq.freed <= qp->srq->taken);
	if (qp->srq)
		qp->srq->taken -= seq - qp->rq.freed;
	qp->rq.freed = seq;
}

int rnic_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* Take the oldest request out, to be copied before another is posted; NULL: there is none. */
const struct rqe *srq_pop(struct rnic_srq *srq);
/* Move a request to the queue pair's own receive queue; false: there is none. */
bool srq_take(struct rnic_qp *qp);

#endif
