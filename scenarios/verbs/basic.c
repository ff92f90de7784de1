/* SPDX-License-Identifier: BSD-3-Clause */
/* What each request does when all is well, of every size that matters. */
#include "scenarios/verbs/programs.h"

#define THERE 1000u /* in the peer's buffer: no page's or line's start */

static void connect_filled(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, LAB_BUF, 1);
	lab_fill(lab->b.buf, LAB_BUF, 2);
}

static void atomic_write(struct lab *lab)
{
	connect_filled(lab);
	lab_op(&lab->a, IBV_WR_ATOMIC_WRITE, 1, 40, 8, &lab->b, 64);
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->a, 40, 8);
	lab_bytes(&lab->b, 56, 24);
	lab_no_more(&lab->b);
}

/* The list entries are pieces of a's buffer, one of them empty. */
static struct ibv_send_wr gather(struct lab *lab, enum ibv_wr_opcode opcode, uint64_t id)
{
	static const uint32_t lengths[4] = {1, 0, 1500, 70};
	struct end *a = &lab->a;
	struct ibv_send_wr wr = lab_wr(a, opcode, id, 0, 0, &lab->b, THERE);
	wr.num_sge = 4;
	for (unsigned i = 0; i < 4; i++)
		a->sge[i] = (struct ibv_sge){(uintptr_t)a->buf + 2000 * (4 - i), lengths[i],
					     a->mr->lkey};
	return wr;
}

static void lists(struct lab *lab)
{
	connect_filled(lab);
	struct ibv_send_wr wr = gather(lab, IBV_WR_RDMA_WRITE, 1);
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->b, THERE - 8, 1571 + 16);
	wr = gather(lab, IBV_WR_RDMA_READ, 2);
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->a, 0, 10000);
	struct end *b = &lab->b;
	struct ibv_sge to[3] = {{(uintptr_t)b->buf + 9000, 100, b->mr->lkey},
				{(uintptr_t)b->buf + 8000, 0, b->mr->lkey},
				{(uintptr_t)b->buf + 7000, 1900, b->mr->lkey}};
	struct ibv_recv_wr receive = {.wr_id = 7, .sg_list = to, .num_sge = 3}, *bad;
	lab_say(lab, "b: post receive: %s", lab_error(ibv_post_recv(b->qp, &receive, &bad)));
	wr = gather(lab, IBV_WR_SEND, 3);
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_received(b, 1);
	lab_bytes(b, 7000, 2200);
}

/* The setter for inline data alone says that they are inline: a flag is not needed. */
static void inline_unflagged(struct lab *lab)
{
	connect_filled(lab);
	struct ibv_qp_ex *qp = lab->a.qpx;
	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, lab->b.mr->rkey, (uintptr_t)lab->b.buf + THERE);
	ibv_wr_set_inline_data(qp, lab->a.buf, 33);
	lab_say(lab, "complete: %s", lab_error(ibv_wr_complete(qp)));
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->b, THERE, 48);
	lab_state(&lab->a);
}

/* Pieces of two buffers become one inline message. */
static void inline_list(struct lab *lab)
{
	connect_filled(lab);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 5, &lab->b, THERE);
	lab->a.sge[1] = (struct ibv_sge){(uintptr_t)lab->a.buf + 1000, 7, 0};
	lab->a.sge[2] = (struct ibv_sge){(uintptr_t)lab->a.buf + 500, 1, 0};
	wr.num_sge = 3;
	wr.send_flags |= IBV_SEND_INLINE;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->b, THERE, 16);
}

/* A batch is aborted; another has an error in it: nothing of either is posted. */
static void batches(struct lab *lab)
{
	connect_filled(lab);
	struct ibv_qp_ex *qp = lab->a.qpx;
	const struct end *b = &lab->b;
	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, b->mr->rkey, (uintptr_t)b->buf + THERE);
	ibv_wr_set_sge(qp, lab->a.mr->lkey, (uintptr_t)lab->a.buf, 8);
	ibv_wr_abort(qp);
	ibv_wr_start(qp);
	qp->wr_id = 2;
	ibv_wr_rdma_write(qp, b->mr->rkey, (uintptr_t)b->buf + THERE);
	ibv_wr_set_sge(qp, lab->a.mr->lkey, (uintptr_t)lab->a.buf, 8);
	qp->wr_id = 3;
	ibv_wr_rdma_write(qp, b->mr->rkey, (uintptr_t)b->buf + THERE);
	ibv_wr_set_inline_data(qp, lab->a.buf, 4096);
	lab_say(lab, "too much inline data: %s", lab_error(ibv_wr_complete(qp)));
	lab_no_more(&lab->a);
	lab_bytes(&lab->b, THERE, 8);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 4, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->b, THERE, 8);
}

/* A queue pair that is connected to itself. */
static void itself(struct lab *lab)
{
	struct end *a = &lab->a;
	lab_end(lab, a, "a", 1);
	lab_to_rts(a, a);
	lab_fill(a->buf, 4096, 1);
	lab_recv(a, 1, 8192, 4096);
	lab_op(a, IBV_WR_RDMA_WRITE, 2, 0, 3000, a, 4096);
	lab_op(a, IBV_WR_SEND, 3, 0, 2000, a, 0);
	lab_op(a, IBV_WR_RDMA_READ, 4, 16384, 100, a, 50);
	lab_sent(a, 3);
	lab_received(a, 1);
	lab_bytes(a, 4096, 4000);
	lab_bytes(a, 8192, 4096);
	lab_bytes(a, 16384, 128);
}

/* Flags and fields of completions that lab_sent() and lab_received() leave out. */
static void raw(struct end *e, struct ibv_cq *cq, const char *queue)
{
	struct ibv_wc wc;
	memset(&wc, 0xee, sizeof(wc));
	if (!lab_take(e, cq, &wc))
		lab_say(e->lab, "%s: %s: no completion", e->name, queue);
	else
		lab_say(e->lab,
			"%s: %s: flags %x, byte_len %u, vendor_err %x, pkey_index %u, slid %u, sl "
			"%u",
			e->name, queue, wc.wc_flags, wc.byte_len, wc.vendor_err, wc.pkey_index,
			wc.slid, wc.sl);
}

static void wc_fields(struct lab *lab)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						     IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						     IBV_WR_RDMA_WRITE_WITH_IMM};
	connect_filled(lab);
	for (unsigned i = 0; i < 3; i++)
		lab_recv(&lab->b, 100 + i, 0, 64);
	for (unsigned i = 0; i < 5; i++) {
		lab_op(&lab->a, opcodes[i], i, 0, 24, &lab->b, THERE);
		raw(&lab->a, lab->a.scq, "sent");
		if (i >= 2)
			raw(&lab->b, lab->b.rcq, "received");
	}
	struct ibv_wc wc;
	lab_op(&lab->b, IBV_WR_SEND, 9, 0, 1, &lab->a, 0);
	lab_recv(&lab->a, 10, 0, 64);
	if (lab_take(&lab->a, lab->a.rcq, &wc))
		lab_say(lab, "a: src_qp is b's: %s", wc.src_qp == lab->b.qp->qp_num ? "yes" : "no");
}

const struct verbs_program verbs_basic[] = {
	{"atomic-write", "ATOMIC WRITE of 8 bytes", atomic_write, 0},
	{"lists/wr", "lists of several pieces, at both ends", lists, BY_WR},
	{"inline-list/wr", "inline data of several pieces", inline_list, BY_WR},
	{"inline-unflagged/wr", "inline data by their setter, without IBV_SEND_INLINE",
	 inline_unflagged, BY_WR},
	{"batches/wr", "a batch that is aborted, and one with an error", batches, BY_WR},
	{"itself", "a queue pair that is connected to itself", itself, 0},
	{"wc-fields", "what stands in those fields of a completion that mean nothing for it",
	 wc_fields, 0},
	{0},
};
