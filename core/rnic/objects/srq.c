/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues (IBA vol. 1, 10.2.9).
 *
 * A message that needs a receive request has its queue pair take the oldest one out of the shared
 * queue: a copy goes to the end of the queue pair's own receive queue, which is otherwise empty,
 * and from there on (landing, completion, flush) it is a receive request like any other. So the
 * requests of one queue pair complete in order, those of several in any order.
 *
 *      posted by the program ... taken by a queue pair ... completed ... polled
 *      ------ in the shared queue ------ in the queue pair's ----------
 *      -------------------- counted against max_wr --------------------
 *
 * The limit is armed by ibv_modify_srq(). The request whose taking leaves fewer than that raises
 * IBV_EVENT_SRQ_LIMIT_REACHED, once, and disarms it.
 *
 * The protection domain that the lists' keys must belong to is the shared queue's. A request that a
 * queue pair has taken when it is reset or destroyed is lost.
 */
#include "core/rnic/objects/srq.h"
#include <assert.h>
#include <errno.h>
#include "core/fail.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/pd.h"
#include "core/rnic/objects/post.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/work_queue.h"

static struct rnic_srq *to_srq(struct ibv_srq *ibv)
{
	return (struct rnic_srq *)ibv;
}

static uint32_t outstanding(const struct rnic_srq *srq)
{
	return srq->rq.posted - srq->rq.next + srq->taken;
}

struct ibv_srq *rnic_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct rnic_hca *hca = to_hca(pd->context);
	if (((struct rnic_pd *)pd)->dead || !init->attr.max_wr || init->attr.max_wr > MAX_WR ||
	    init->attr.max_sge > MAX_SGE)
		return errno_null(EINVAL);
	if (hca->shared == MAX_OBJECTS)
		return errno_null(ENOMEM);
	struct rnic_srq *srq = ground_alloc(&hca->net->ground, sizeof(*srq));
	srq->hca = hca;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = pd;
	srq->number = ++hca->srqs;
	work_queue_init(&srq->rq, sizeof(struct rqe), init->attr.max_wr, init->attr.max_sge);
	((struct rnic_pd *)pd)->users++;
	hca->objects++;
	hca->shared++;
	assert(hca->shared <= MAX_OBJECTS && hca_adds_up(hca));
	assert(!srq->users && outstanding(srq) == 0);
	return &srq->ibv;
}

struct ibv_srq *rnic_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	const uint32_t basic = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	enum ibv_srq_type type = init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? init->srq_type
									  : IBV_SRQT_BASIC;
	struct ibv_srq_init_attr common = {.srq_context = init->srq_context, .attr = init->attr};
	int error = 0;
	if (init->comp_mask & ~basic || type != IBV_SRQT_BASIC)
		error = EOPNOTSUPP;
	else if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !init->pd ||
		 init->pd->context != context)
		error = EINVAL;
	if (error)
		return errno_null(error);
	return rnic_create_srq(init->pd, &common);
}

int rnic_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct rnic_srq *srq = to_srq(ibv);
	uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.max_wr;
	uint32_t limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit;
	if (srq->dead || mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (!max_wr || max_wr > MAX_WR || max_wr < outstanding(srq) || limit > max_wr)
		return EINVAL;
	srq->rq.max_wr = max_wr;
	srq->limit = limit;
	return 0;
}

int rnic_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct rnic_srq *srq = to_srq(ibv);
	if (srq->dead)
		return EINVAL;
	*attr = (struct ibv_srq_attr){
		.max_wr = srq->rq.max_wr, .max_sge = srq->rq.max_sge, .srq_limit = srq->limit};
	return 0;
}

int rnic_get_srq_num(struct ibv_srq *ibv, uint32_t *number)
{
	if (to_srq(ibv)->dead)
		return EINVAL;
	*number = to_srq(ibv)->number;
	return 0;
}

int rnic_destroy_srq(struct ibv_srq *ibv)
{
	struct rnic_srq *srq = to_srq(ibv);
	if (srq->dead)
		return EINVAL;
	if (srq->users)
		return EBUSY;
	srq->dead = true;
	work_queue_drop(srq->hca->net, &srq->rq);
	assert(((struct rnic_pd *)ibv->pd)->users);
	assert(srq->hca->shared && hca_adds_up(srq->hca));
	((struct rnic_pd *)ibv->pd)->users--;
	srq->hca->objects--;
	srq->hca->shared--;
	return 0;
}

int rnic_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct rnic_srq *srq = to_srq(ibv);
	const struct rnic_ground *ground = &srq->hca->net->ground;
	int error = 0;
	ground_step(ground, STEP_POST, ground_cost(ground)->post);
	for (; wr; wr = wr->next) {
		if (ground_fails(ground, FAIL_POST_RECV) ||
		    (!srq->dead && outstanding(srq) >= srq->rq.max_wr))
			error = ENOMEM;
		if (srq->dead || wr->num_sge < 0 || (unsigned)wr->num_sge > srq->rq.max_sge)
			error = EINVAL;
		if (error) {
			*bad_wr = wr;
			break;
		}
		post_rqe(srq->hca->net, &srq->rq, srq->rq.next, wr);
		assert(outstanding(srq) <= srq->rq.max_wr);
	}
	return error;
}

const struct rqe *srq_pop(struct rnic_srq *srq)
{
	if (srq->rq.next == srq->rq.posted)
		return NULL;
	assert(!srq->dead);
	const struct rqe *rqe = queue_at(&srq->rq, srq->rq.next++);
	/* Which queue pair is first matters. */
	ground_touch(&srq->hca->net->ground, TOUCH_DRAM_WRITE, &srq->rq.next, sizeof(srq->rq.next));
	srq->taken++;
	assert(outstanding(srq) <= srq->rq.max_wr);
	if (srq->rq.posted - srq->rq.next < srq->limit) {
		srq->limit = 0;
		rnic_event(srq->hca, IBV_EVENT_SRQ_LIMIT_REACHED, &srq->ibv);
	}
	return rqe;
}

bool srq_take(struct rnic_qp *qp)
{
	struct rnic_srq *srq = qp->srq;
	const struct rqe *rqe = srq_pop(srq);
	if (!rqe)
		return false;
	struct rqe *own = work_queue_slot(qp->hca->net, &qp->rq, qp->rq.done, qp->rq.posted);
	assert(srq->rq.stride <= qp->rq.stride);
	memcpy(own, rqe, srq->rq.stride);
	qp->rq.posted++;
	assert(qp->rq.posted - qp->rq.done <= qp->rq.room);
	return true;
}
