/* SPDX-License-Identifier: BSD-3-Clause */
/* What the soft RNIC was the last to get, and what it has not yet: those programs run on a device
 * of the system only. */
#include <poll.h>
#include "scenarios/verbs/programs.h"

#define THERE 8192u

/* Receive requests of a queue that two queue pairs share. */
static void shared_receives(struct lab *lab)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct end *a = &lab->a, *b = &lab->b;
	lab_make(lab);
	errno = 0;
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
	lab_say(lab, "b: create: %s", srq ? "0" : lab_error(errno));
	if (!srq)
		return;
	struct ibv_qp_init_attr qp = {.send_cq = b->scq,
				      .recv_cq = b->rcq,
				      .srq = srq,
				      .cap = {16, 0, 1, 0, 0},
				      .qp_type = IBV_QPT_RC};
	ibv_destroy_qp(b->qp);
	b->qp = ibv_create_qp(b->pd, &qp);
	if (!b->qp)
		lab_give_up(lab);
	lab_to_rts(a, b);
	lab_to_rts(b, a);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_sge sge = {(uintptr_t)b->buf + 100 * i, 64, b->mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
		lab_say(lab, "b: post: %s", lab_error(ibv_post_srq_recv(srq, &wr, &bad)));
	}
	lab_op(a, IBV_WR_SEND, 1, 0, 8, b, 0);
	lab_op(a, IBV_WR_SEND, 2, 0, 9, b, 0);
	lab_sent(a, 2);
	lab_received(b, 2);
}

/* Is there an event on the channel within a second? */
static bool event(struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	void *context;
	return poll(&fd, 1, 1000) == 1 && !ibv_get_cq_event(channel, cq, &context);
}

static void channel(struct lab *lab)
{
	struct end *a = &lab->a, *b = &lab->b;
	struct ibv_cq *cq = NULL;
	lab_make(lab);
	struct ibv_comp_channel *events = ibv_create_comp_channel(b->ctx);
	ibv_destroy_qp(b->qp);
	b->rcq = events ? ibv_create_cq(b->ctx, 16, NULL, events, 0) : NULL;
	b->qp = b->rcq ? lab_qp(b) : NULL;
	if (!b->qp)
		lab_give_up(lab);
	lab_to_rts(a, b);
	lab_to_rts(b, a);
	for (unsigned i = 0; i < 4; i++)
		lab_recv(b, i, 0, 64);
	lab_say(lab, "arm: %s", lab_error(ibv_req_notify_cq(b->rcq, 0)));
	lab_op(a, IBV_WR_SEND, 1, 0, 8, b, 0);
	lab_say(lab, "an event: %s", event(events, &cq) && cq == b->rcq ? "yes" : "no");
	lab_op(a, IBV_WR_SEND, 2, 0, 8, b, 0);
	lab_say(lab, "another one: %s", event(events, &cq) ? "yes" : "no");
	lab_say(lab, "arm for what is solicited: %s", lab_error(ibv_req_notify_cq(b->rcq, 1)));
	lab_op(a, IBV_WR_SEND, 3, 0, 8, b, 0);
	lab_say(lab, "an event: %s", event(events, &cq) ? "yes" : "no");
	struct ibv_send_wr wr = lab_wr(a, IBV_WR_SEND, 4, 0, 8, b, 0);
	wr.send_flags |= IBV_SEND_SOLICITED;
	lab_post(a, &wr);
	lab_say(lab, "an event: %s", event(events, &cq) ? "yes" : "no");
	lab_received(b, 4);
	lab_sent(a, 4);
}

/* A message to any queue pair that has the queue key. */
static void datagrams(struct lab *lab)
{
	struct end *e[2] = {&lab->a, &lab->b};
	lab_make(lab);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {.send_cq = e[i]->scq,
						.recv_cq = e[i]->rcq,
						.cap = {16, 16, 1, 1, 0},
						.qp_type = IBV_QPT_UD};
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x1234};
		ibv_destroy_qp(e[i]->qp);
		e[i]->qp = ibv_create_qp(e[i]->pd, &init);
		if (!e[i]->qp)
			lab_give_up(lab);
		int error = ibv_modify_qp(e[i]->qp, &attr,
					  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						  IBV_QP_QKEY);
		attr.qp_state = IBV_QPS_RTR;
		error = error ? error : ibv_modify_qp(e[i]->qp, &attr, IBV_QP_STATE);
		attr.qp_state = IBV_QPS_RTS;
		error = error ? error
			      : ibv_modify_qp(e[i]->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
		lab_say(lab, "%s: to RTS: %s", e[i]->name, lab_error(error));
	}
	struct ibv_qp_attr path = lab_attr(&lab->a, &lab->b);
	struct ibv_ah *ah = ibv_create_ah(lab->a.pd, &path.ah_attr);
	if (!ah)
		lab_give_up(lab);
	lab_recv(&lab->b, 9, 0, 128);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_SEND, 1, 0, 8, &lab->b, 0);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = lab->b.qp->qp_num;
	wr.wr.ud.remote_qkey = 0x1234;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_received(&lab->b, 1);
}

/* A memory window, and a SEND that takes it away. */
static void window(struct lab *lab)
{
	struct end *a = &lab->a, *b = &lab->b;
	lab->opt.mr_access = LAB_ALL | IBV_ACCESS_MW_BIND;
	lab_connect(lab);
	errno = 0;
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
	lab_say(lab, "b: allocate: %s", mw ? "0" : lab_error(errno));
	if (!mw)
		return;
	struct ibv_send_wr bind = {.wr_id = 1,
				   .opcode = IBV_WR_BIND_MW,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	bind.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = b->mr,
		.addr = (uintptr_t)b->buf + THERE,
		.length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	lab_say(lab, "b: bind: %s", lab_error(ibv_post_send(b->qp, &bind, &bad)));
	lab_sent(b, 1);
	uint32_t rkey = bind.bind_mw.rkey;
	struct ibv_send_wr wr = lab_wr(a, IBV_WR_RDMA_WRITE, 2, 0, 64, b, THERE);
	wr.wr.rdma.rkey = rkey;
	lab_post(a, &wr);
	lab_sent(a, 1);
	lab_recv(b, 3, 0, 64);
	wr = lab_wr(a, IBV_WR_SEND_WITH_INV, 4, 0, 8, b, 0);
	wr.invalidate_rkey = rkey;
	lab_post(a, &wr);
	lab_sent(a, 1);
	lab_received(b, 1);
	wr = lab_wr(a, IBV_WR_RDMA_WRITE, 5, 0, 64, b, THERE);
	wr.wr.rdma.rkey = rkey;
	lab_post(a, &wr);
	lab_sent(a, 1);
}

static void resize(struct lab *lab)
{
	lab_connect(lab);
	lab_say(lab, "resize: %s", lab_error(ibv_resize_cq(lab->a.scq, 256)));
	lab_say(lab, "large enough: %s", lab->a.scq->cqe >= 256 ? "yes" : "no");
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
}

/* A region gets other rights and keeps its place. */
static void reregister(struct lab *lab)
{
	lab_connect(lab);
	int error = ibv_rereg_mr(lab->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	lab_say(lab, "b: only READs: %s", error ? "refused" : "0");
	lab_op(&lab->a, IBV_WR_RDMA_READ, 1, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 2, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
}

const struct verbs_program verbs_later[] = {
	{"shared-receives", "a shared receive queue", shared_receives, 0},
	{"channel", "events on a completion channel, all and the solicited ones", channel, LATER},
	{"datagrams", "a SEND between queue pairs of type UD", datagrams, 0},
	{"window", "a memory window, and a SEND that invalidates it", window, 0},
	{"resize", "a completion queue is resized", resize, LATER},
	{"reregister", "a region gets other rights", reregister, 0},
	{0},
};
