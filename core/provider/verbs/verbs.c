/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' functions over the process's soft RNIC, as a preloaded or drop-in library shows them
 * to programs. Each takes the NIC's lock and calls core/rnic. The functions of the device, of
 * completion queues, of events and so on are in files of their own.
 */
#include <errno.h>
#include <string.h>
#include "core/fail.h"
#include "core/provider/base/recorded_memory.h"
#include "core/provider/verbs/context.h"
#include "core/provider/verbs/verbs.h"
#include "core/rnic/objects/post.h"
#include "core/rnic/objects/qp.h"

/* --- work requests --- */

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	process_posts(__builtin_return_address(0));
	return CALL(rnic_post_send(qp, wr, bad));
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return CALL(rnic_post_recv(qp, wr, bad));
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	int error = nic_check_queues(attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL,
				     attr->send_cq, attr->recv_cq, attr->srq);
	const struct ibv_qp_cap asked = attr->cap;
	struct ibv_qp *qp;

	if (error)
		return errno_null(error);
	nic_grant(&attr->cap);
	qp = NAMED(LOCKED(struct ibv_qp *, nic_lock_wr(rnic_create_qp_ex(context, attr))));
	if (!qp)
		attr->cap = asked;
	return qp;
}

void nic_data_calls(struct ibv_context *context)
{
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	to_hca(context)->verbs.create_qp_ex = create_qp_ex;
	verbs_enable_srq(context);
	verbs_enable_memory(context);
}

/* --- queue pairs --- */

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {.pd = pd};

	memcpy(&ex, attr, sizeof(*attr)); /* with which it begins, and the mask is in its padding */
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	struct ibv_qp *qp = create_qp_ex(pd->context, &ex);
	attr->cap = ex.cap;
	return qp;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return LOCKED(struct ibv_qp_ex *, rnic_qp_to_qp_ex(qp));
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init)
{
	return CALL_OF(qp, rnic_query_qp(qp, attr, mask, init));
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return CALL_OF(qp, rnic_modify_qp(qp, attr, mask));
}

/* Answer a message of the peer that has arrived first. */
static int destroy_qp(struct ibv_qp *qp)
{
	nic_drain(nic_get());
	return rnic_destroy_qp(qp);
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	int error = CALL_OF(qp, destroy_qp(qp));

	if (error)
		return error;
	events_settle(qp->context, qp);
	nic_lock(nic_get());
	qp_give_back((struct rnic_qp *)qp);
	nic_unlock(nic_get());
	return 0;
}
