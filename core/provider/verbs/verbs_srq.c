/* SPDX-License-Identifier: BSD-3-Clause */
/* libibverbs' functions of shared receive queues. */
#include "core/provider/verbs/context.h"
#include "core/fail.h"
#include "core/provider/verbs/verbs.h"
#include "core/rnic/objects/srq.h"

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return CALL(rnic_post_srq_recv(srq, wr, bad));
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	int error = attr->comp_mask & IBV_SRQ_INIT_ATTR_PD
			    ? nic_check_queues(attr->pd, NULL, NULL, NULL)
			    : 0;

	if (error)
		return errno_null(error);
	return NAMED(LOCKED(struct ibv_srq *, rnic_create_srq_ex(context, attr)));
}

static int get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	return CALL(rnic_get_srq_num(srq, number));
}

void verbs_enable_srq(struct ibv_context *context)
{
	struct verbs_context *verbs = &to_hca(context)->verbs;

	context->ops.post_srq_recv = post_srq_recv;
	verbs->create_srq_ex = create_srq_ex;
	verbs->get_srq_num = get_srq_num;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	return MADE_OF(pd, NAMED(LOCKED(struct ibv_srq *, rnic_create_srq(pd, attr))));
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	return CALL_OF(srq, rnic_modify_srq(srq, attr, mask));
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return CALL_OF(srq, rnic_query_srq(srq, attr));
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	int error = CALL_OF(srq, rnic_destroy_srq(srq));

	if (!error)
		events_settle(srq->context, srq);
	return error;
}
