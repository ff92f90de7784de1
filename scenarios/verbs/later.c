/* SPDX-License-Identifier: BSD-3-Clause */
/* What the soft RNIC was the last to get, and what it has not yet: those programs run on a device
 * of the system only. */
#include <poll.h>
#include "scenarios/verbs/programs.h"

#define THERE 8192u

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
	{"channel", "events on a completion channel, all and the solicited ones", channel, LATER},
	{"window", "a memory window, and a SEND that invalidates it", window, 0},
	{"resize", "a completion queue is resized", resize, LATER},
	{"reregister", "a region gets other rights", reregister, 0},
	{0},
};
