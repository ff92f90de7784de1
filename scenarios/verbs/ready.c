/* SPDX-License-Identifier: BSD-3-Clause */
/* Receivers that are not ready, peers that do not answer. */
#include "scenarios/verbs/programs.h"

#define THERE 8192u

/* What was posted after a SEND waits with it. */
static void behind(struct lab *lab)
{
	lab->opt.rnr_retry = 7;
	lab_connect(lab);
	lab_fill(lab->a.buf, 4096, 1);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_op(&lab->a, IBV_WR_SEND, 2, 0, 8, &lab->b, 0);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 3, 8, 8, &lab->b, THERE + 8);
	lab_op(&lab->a, IBV_WR_RDMA_READ, 4, 4096, 8, &lab->b, THERE + 8);
	lab_sent(&lab->a, 1);
	lab_no_more(&lab->a);
	lab_bytes(&lab->b, THERE, 16);
	lab_recv(&lab->b, 9, 0, 64);
	lab_sent(&lab->a, 3);
	lab_bytes(&lab->b, THERE, 16);
	lab_bytes(&lab->a, 4096, 8);
}

/* Two requests to a peer that is in `state`, or gone. */
static void silent(struct lab *lab, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	lab->opt.timeout = 10; /* 4 ms */
	lab->opt.retry_cnt = 2;
	lab_connect(lab);
	if (state == IBV_QPS_UNKNOWN)
		lab_say(lab, "b: destroy: %s", lab_error(ibv_destroy_qp(lab->b.qp)));
	else
		lab_say(lab, "b: modify: %s",
			lab_error(ibv_modify_qp(lab->b.qp, &attr, IBV_QP_STATE)));
	lab_recv(&lab->a, 50, 0, 64);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_op(&lab->a, IBV_WR_RDMA_READ, 2, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 2);
	lab_state(&lab->a);
	lab_received(&lab->a, 1);
	lab_bytes(&lab->b, THERE, 8);
}

static void destroyed(struct lab *lab)
{
	silent(lab, IBV_QPS_UNKNOWN);
}

static void reset(struct lab *lab)
{
	silent(lab, IBV_QPS_RESET);
}

static void failed(struct lab *lab)
{
	silent(lab, IBV_QPS_ERR);
}

/* A peer that is in INIT does not answer; in RTR it does. */
static void half_connected(struct lab *lab)
{
	struct ibv_qp_attr attr;
	lab->opt.timeout = 10;
	lab->opt.retry_cnt = 1;
	lab_make(lab);
	lab_to_rts(&lab->a, &lab->b);
	attr = lab_attr(&lab->b, &lab->a);
	attr.qp_state = IBV_QPS_INIT;
	lab_say(lab, "b: to INIT: %s", lab_error(ibv_modify_qp(lab->b.qp, &attr, LAB_INIT)));
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
	lab_state(&lab->a);
}

static void ready_to_receive(struct lab *lab)
{
	struct ibv_qp_attr attr;
	lab_make(lab);
	lab_to_rts(&lab->a, &lab->b);
	attr = lab_attr(&lab->b, &lab->a);
	attr.qp_state = IBV_QPS_INIT;
	lab_say(lab, "b: to INIT: %s", lab_error(ibv_modify_qp(lab->b.qp, &attr, LAB_INIT)));
	lab_recv(&lab->b, 9, 0, 64);
	attr.qp_state = IBV_QPS_RTR;
	lab_say(lab, "b: to RTR: %s", lab_error(ibv_modify_qp(lab->b.qp, &attr, LAB_RTR)));
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_op(&lab->a, IBV_WR_SEND, 2, 0, 8, &lab->b, 0);
	lab_op(&lab->a, IBV_WR_RDMA_READ, 3, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 3);
	lab_received(&lab->b, 1);
	lab_state(&lab->b);
}

/* The sequence numbers of the two do not fit: nothing is let in. */
static void other_psn(struct lab *lab)
{
	lab->opt.timeout = 10;
	lab->opt.retry_cnt = 1;
	lab_make(lab);
	lab_to_rts(&lab->a, &lab->b);
	lab->opt.psn = 5000;
	lab_to_rts(&lab->b, &lab->a);
	lab_op(&lab->b, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->a, THERE);
	lab_sent(&lab->b, 1);
	lab_state(&lab->b);
	lab_state(&lab->a);
}

/* Numbers of packets wrap. */
static void psn_wraps(struct lab *lab)
{
	lab->opt.psn = 0xfffffd;
	lab_connect(lab);
	lab_fill(lab->a.buf, 65536, 1);
	lab_fill(lab->b.buf + 65536, 65536, 2);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 20000, &lab->b, 0);
	lab_op(&lab->a, IBV_WR_RDMA_READ, 2, 65536, 20000, &lab->b, 65536);
	lab_sent(&lab->a, 2);
	lab_bytes(&lab->b, 0, 20000);
	lab_bytes(&lab->a, 65536, 20000);
}

const struct verbs_program verbs_ready[] = {
	{"behind", "requests after a SEND that waits for its receiver wait, too", behind, 0},
	{"destroyed", "requests to a queue pair that was destroyed", destroyed, 0},
	{"reset", "requests to a queue pair that was reset", reset, 0},
	{"failed", "requests to a queue pair in the error state", failed, 0},
	{"half-connected", "requests to a queue pair in INIT", half_connected, 0},
	{"ready-to-receive", "requests to a queue pair in RTR", ready_to_receive, 0},
	{"other-psn", "a peer that expects other packet sequence numbers", other_psn, 0},
	{"psn-wraps", "packet sequence numbers wrap", psn_wraps, 0},
	{0},
};
