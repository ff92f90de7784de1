/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_CLI_RECORD_VERBS_H
#define TM_TESTS_CLI_RECORD_VERBS_H
/* What the programs that tests record do with verbs: a device, queue pairs, one request at a time.
 * What fails ends the program. */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ALL_RIGHTS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

#define NEED(what)                     \
	do {                           \
		if (!(what)) {         \
			perror(#what); \
			exit(9);       \
		}                      \
	} while (0)

static struct ibv_context *open_device(union ibv_gid *gid)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	NEED(list && list[0]);
	struct ibv_context *context = ibv_open_device(list[0]);
	NEED(context && !ibv_query_gid(context, 1, 0, gid));
	return context;
}

static struct ibv_qp *make(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	NEED(qp);
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	return qp;
}

static void join(struct ibv_qp *qp, uint32_t to, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .grh = {.dgid = *gid, .hop_limit = 1}, .port_num = 1}};
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void await(struct ibv_cq *cq, unsigned n)
{
	struct ibv_wc wc;
	while (n)
		if (ibv_poll_cq(cq, 1, &wc) == 1) {
			NEED(wc.status == IBV_WC_SUCCESS);
			n--;
		}
}

static void post(struct ibv_qp *qp, struct ibv_send_wr wr, const struct ibv_mr *mr, void *at,
		 uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)at, len, mr->lkey};
	struct ibv_send_wr *bad;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	NEED(!ibv_post_send(qp, &wr, &bad));
	await(qp->send_cq, wr.opcode == IBV_WR_SEND ? 2 : 1);
}

#endif
