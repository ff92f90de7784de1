/* SPDX-License-Identifier: BSD-3-Clause */
/* What each request does when all is well, of every size that matters. */
#include "scenarios/verbs/programs.h"

static const uint32_t sizes[] = {
	0, 1, 63, 64, 65, LAB_MTU - 1, LAB_MTU, LAB_MTU + 1, 5 * LAB_MTU + 7, 65536};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

#define THERE 1000u /* in the peer's buffer: no page's or line's start */

static void connect_filled(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, LAB_BUF, 1);
	lab_fill(lab->b.buf, LAB_BUF, 2);
}

static void write_sizes(struct lab *lab)
{
	connect_filled(lab);
	for (unsigned i = 0; i < SIZES; i++) {
		lab_op(&lab->a, IBV_WR_RDMA_WRITE, i, 3, sizes[i], &lab->b, THERE);
		lab_sent(&lab->a, 1);
		lab_bytes(&lab->b, THERE - 8, sizes[i] + 16);
	}
	lab_no_more(&lab->b);
}

static void read_sizes(struct lab *lab)
{
	connect_filled(lab);
	for (unsigned i = 0; i < SIZES; i++) {
		lab_op(&lab->a, IBV_WR_RDMA_READ, i, THERE, sizes[i], &lab->b, 3);
		lab_sent(&lab->a, 1);
		lab_bytes(&lab->a, THERE - 8, sizes[i] + 16);
	}
	lab_no_more(&lab->b);
}

static void send_sizes(struct lab *lab)
{
	connect_filled(lab);
	for (unsigned i = 0; i < SIZES; i++) {
		lab_recv(&lab->b, 100 + i, THERE, 65536);
		lab_op(&lab->a, IBV_WR_SEND, i, 3, sizes[i], &lab->b, 0);
		lab_sent(&lab->a, 1);
		lab_received(&lab->b, 1);
		lab_bytes(&lab->b, THERE - 8, sizes[i] + 16);
	}
}

static void imm(struct lab *lab, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_send_wr wr = lab_wr(&lab->a, opcode, len, 3, len, &lab->b, THERE);
	wr.imm_data = htobe32(0x12345678 + len);
	lab_recv(&lab->b, 100 + len, 4096, 8192);
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_received(&lab->b, 1);
	lab_bytes(&lab->b, THERE - 8, len + 16);
	lab_bytes(&lab->b, 4096, len + 8);
}

static void send_imm(struct lab *lab)
{
	connect_filled(lab);
	imm(lab, IBV_WR_SEND_WITH_IMM, 0);
	imm(lab, IBV_WR_SEND_WITH_IMM, 10);
	imm(lab, IBV_WR_SEND_WITH_IMM, LAB_MTU);
	imm(lab, IBV_WR_SEND_WITH_IMM, 3 * LAB_MTU - 1);
}

static void write_imm(struct lab *lab)
{
	connect_filled(lab);
	imm(lab, IBV_WR_RDMA_WRITE_WITH_IMM, 0);
	imm(lab, IBV_WR_RDMA_WRITE_WITH_IMM, 10);
	imm(lab, IBV_WR_RDMA_WRITE_WITH_IMM, LAB_MTU);
	imm(lab, IBV_WR_RDMA_WRITE_WITH_IMM, 3 * LAB_MTU - 1);
}

static void swap(struct lab *lab, uint64_t id, uint64_t compare, uint64_t value)
{
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_ATOMIC_CMP_AND_SWP, id, 0, 8, &lab->b, 64);
	wr.wr.atomic.compare_add = compare;
	wr.wr.atomic.swap = value;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_say(lab, "a has %lx, b has %lx", lab_word(&lab->a, 0), lab_word(&lab->b, 64));
}

static void compare_and_swap(struct lab *lab)
{
	lab_connect(lab);
	lab_set_word(&lab->b, 64, 5);
	swap(lab, 1, 5, 0x1122334455667788);
	swap(lab, 2, 5, 9);
	swap(lab, 3, 0x1122334455667788, 0);
}

static void add(struct lab *lab, uint64_t id, uint64_t value)
{
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_ATOMIC_FETCH_AND_ADD, id, 0, 8, &lab->b, 64);
	wr.wr.atomic.compare_add = value;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_say(lab, "a has %lx, b has %lx", lab_word(&lab->a, 0), lab_word(&lab->b, 64));
}

static void fetch_and_add(struct lab *lab)
{
	lab_connect(lab);
	lab_set_word(&lab->b, 64, 40);
	add(lab, 1, 2);
	add(lab, 2, UINT64_MAX);
	add(lab, 3, 0);
	lab_set_word(&lab->b, 64, UINT64_MAX);
	add(lab, 4, 2);
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
	struct ibv_send_wr wr;
	connect_filled(lab);
	wr = gather(lab, IBV_WR_RDMA_WRITE, 1);
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

/* Requests with no list at all, and with one empty entry whose key is no region's. */
static void no_data(struct lab *lab)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						     IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM};
	connect_filled(lab);
	lab_recv(&lab->b, 100, 0, 64);
	lab_recv(&lab->b, 101, 0, 64);
	lab_recv(&lab->b, 102, 0, 64);
	lab_recv(&lab->b, 103, 0, 64);
	for (unsigned i = 0; i < 4; i++) {
		struct ibv_send_wr wr = lab_wr(&lab->a, opcodes[i], 2 * i, 0, 0, &lab->b, THERE);
		wr.num_sge = 0;
		lab_post(&lab->a, &wr);
		lab_sent(&lab->a, 1);
		wr = lab_wr(&lab->a, opcodes[i], 2 * i + 1, 0, 0, &lab->b, THERE);
		lab->a.sge[0] = (struct ibv_sge){0};
		lab_post(&lab->a, &wr);
		lab_sent(&lab->a, 1);
	}
	lab_received(&lab->b, 4);
	lab_state(&lab->a);
}

/* The message is what it was when it was posted, and its key does not matter. */
static void inline_data(struct lab *lab)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND};
	static const uint32_t lengths[] = {0, 1, 33, 64};
	connect_filled(lab);
	for (unsigned i = 0; i < 8; i++) {
		uint32_t len = lengths[i % 4];
		struct ibv_send_wr wr = lab_wr(&lab->a, opcodes[i / 4], i, 256, len, &lab->b,
					       THERE + 100 * i);
		wr.send_flags |= IBV_SEND_INLINE;
		lab->a.sge[0].lkey = 0;
		lab_fill(lab->a.buf + 256, 64, 10 + i);
		lab_recv(&lab->b, 100 + i, THERE + 100 * i, 64);
		lab_post(&lab->a, &wr);
		memset(lab->a.buf + 256, 0, 64);
		lab_sent(&lab->a, 1);
		if (i >= 4)
			lab_received(&lab->b, 1);
		lab_bytes(&lab->b, THERE + 100 * i, len + 8);
		if (i == 3) /* the receive requests of the WRITEs */
			for (unsigned k = 0; k < 4; k++) {
				lab_op(&lab->a, IBV_WR_SEND, 50 + k, 0, 1, &lab->b, 0);
				lab_sent(&lab->a, 1);
				lab_received(&lab->b, 1);
			}
	}
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

/* Four requests of which the last asks for a completion. */
static void unsignaled(struct lab *lab)
{
	struct ibv_send_wr wr[4];
	connect_filled(lab);
	for (unsigned i = 0; i < 4; i++) {
		wr[i] = lab_wr(&lab->a, i == 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i, 100 * i,
			       64, &lab->b, THERE + 100 * i);
		if (i < 3)
			wr[i].send_flags = 0;
		lab_post(&lab->a, &wr[i]);
	}
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->b, THERE, 400);
	lab_bytes(&lab->a, 200, 64);
	lab_no_more(&lab->a);
}

/* A queue pair that signals all, whatever the requests' flags say. */
static void sig_all(struct lab *lab)
{
	lab->opt.sig_all = 1;
	connect_filled(lab);
	for (unsigned i = 0; i < 3; i++) {
		struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, i, 0, 64, &lab->b,
					       THERE);
		wr.send_flags = i == 1 ? IBV_SEND_SIGNALED : 0;
		lab_post(&lab->a, &wr);
	}
	lab_sent(&lab->a, 3);
	lab_no_more(&lab->a);
}

/* A list of requests of several kinds, posted at once. */
static void chain(struct lab *lab)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND,
						     IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
						     IBV_WR_RDMA_WRITE_WITH_IMM};
	struct ibv_send_wr wr[5];
	struct ibv_sge sge[5];
	connect_filled(lab);
	lab_set_word(&lab->b, 4096, 7);
	lab_recv(&lab->b, 100, 8192, 4096);
	lab_recv(&lab->b, 101, 8192, 4096);
	for (unsigned i = 0; i < 5; i++) {
		wr[i] = lab_wr(&lab->a, opcodes[i], i, 512 * i, 8, &lab->b, 4096);
		sge[i] = lab->a.sge[0];
		wr[i].sg_list = &sge[i];
		wr[i].next = i < 4 ? &wr[i + 1] : NULL;
	}
	wr[0].wr.rdma.remote_addr += 512;
	wr[2].wr.rdma.remote_addr += 512;
	wr[3].wr.atomic.compare_add = 3;
	wr[4].imm_data = htobe32(77);
	lab_post(&lab->a, wr);
	lab_sent(&lab->a, 5);
	lab_received(&lab->b, 2);
	lab_bytes(&lab->b, 4096, 16);
	lab_bytes(&lab->b, 4608, 16);
	lab_bytes(&lab->a, 1024, 16);
	lab_say(lab, "a has %lx", lab_word(&lab->a, 1536));
}

/* The third of five requests has more list entries than the queue pair allows. */
static void bad_chain(struct lab *lab)
{
	struct ibv_send_wr wr[5], *bad = NULL;
	struct ibv_sge sge[8];
	connect_filled(lab);
	for (unsigned i = 0; i < 8; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)lab->a.buf, 8, lab->a.mr->lkey};
	for (unsigned i = 0; i < 5; i++) {
		wr[i] = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, i, 0, 8, &lab->b, THERE + 100 * i);
		wr[i].sg_list = sge;
		wr[i].next = i < 4 ? &wr[i + 1] : NULL;
	}
	wr[2].num_sge = 8;
	lab->opt.by_wr = false;
	lab_say(lab, "post: %s", lab_error(ibv_post_send(lab->a.qp, wr, &bad)));
	lab_say(lab, "bad_wr is number %ld", bad ? (long)(bad - wr) : -1L);
	lab_sent(&lab->a, 2);
	lab_no_more(&lab->a);
	lab_bytes(&lab->b, THERE + 100, 16);
	lab_bytes(&lab->b, THERE + 200, 16);
	lab_bytes(&lab->b, THERE + 300, 16);
	lab_state(&lab->a);
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

/* A second connection between the same hosts: c and d. */
static void second(struct lab *lab, struct end *c, struct end *d)
{
	lab_end(lab, c, "c", 1);
	lab_end(lab, d, "d", 0);
	lab_to_rts(c, d);
	lab_to_rts(d, c);
}

static void two_connections(struct lab *lab)
{
	struct end c, d;
	connect_filled(lab);
	second(lab, &c, &d);
	lab_recv(&lab->b, 1, 0, 64);
	lab_recv(&d, 2, 0, 64);
	lab_op(&c, IBV_WR_SEND, 3, 0, 3, &d, 0);
	lab_op(&lab->a, IBV_WR_SEND, 4, 0, 5, &lab->b, 0);
	lab_sent(&c, 1);
	lab_sent(&lab->a, 1);
	lab_received(&lab->b, 1);
	lab_received(&d, 1);
}

/* Both ends are on one host. */
static void one_host(struct lab *lab)
{
	lab_end(lab, &lab->a, "a", 1);
	lab_end(lab, &lab->b, "b", 1);
	lab_to_rts(&lab->a, &lab->b);
	lab_to_rts(&lab->b, &lab->a);
	lab_fill(lab->a.buf, 4096, 1);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 3000, &lab->b, 64);
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->b, 0, 3200);
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

/* One completion queue for both directions of an end. */
static void one_queue(struct lab *lab)
{
	struct ibv_cq *own;
	lab_make(lab);
	struct end *b = &lab->b;
	lab_say(lab, "destroy a queue pair: %s", lab_error(ibv_destroy_qp(b->qp)));
	own = b->rcq;
	b->rcq = b->scq;
	b->qp = lab_qp(b);
	if (!b->qp)
		lab_give_up(lab);
	b->qpx = lab->opt.by_wr ? ibv_qp_to_qp_ex(b->qp) : NULL;
	lab_say(lab, "destroy a completion queue: %s", lab_error(ibv_destroy_cq(own)));
	lab_to_rts(&lab->a, b);
	lab_to_rts(b, &lab->a);
	lab_recv(b, 1, 0, 64);
	lab_recv(b, 2, 0, 64);
	lab_op(&lab->a, IBV_WR_SEND, 3, 0, 8, b, 0);
	lab_sent(&lab->a, 1);
	lab_received(b, 1);
	lab_op(b, IBV_WR_RDMA_WRITE, 4, 0, 8, &lab->a, 0);
	lab_sent(b, 1);
	lab_op(&lab->a, IBV_WR_SEND, 5, 0, 8, b, 0);
	lab_sent(&lab->a, 1);
	lab_received(b, 1);
	lab_no_more(b);
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

/* ibv_poll_cq() with room for several completions, and for none. */
static void poll_many(struct lab *lab)
{
	struct ibv_wc wc[8];
	connect_filled(lab);
	for (unsigned i = 0; i < 6; i++)
		lab_op(&lab->a, IBV_WR_RDMA_WRITE, i, 0, 8, &lab->b, THERE);
	lab_sleep(lab, LAB_QUIET);
	lab_say(lab, "room for 0: %d", ibv_poll_cq(lab->a.scq, 0, wc));
	lab_say(lab, "room for 4: %d", ibv_poll_cq(lab->a.scq, 4, wc));
	lab_say(lab, "room for 4: %d", ibv_poll_cq(lab->a.scq, 4, wc));
	lab_say(lab, "room for 4: %d", ibv_poll_cq(lab->a.scq, 4, wc));
}

const struct verbs_program verbs_basic[] = {
	BOTH_APIS("write", write_sizes, "WRITEs from nothing to 64 packets"),
	BOTH_APIS("read", read_sizes, "READs from nothing to 64 packets"),
	BOTH_APIS("send", send_sizes, "SENDs from nothing to 64 packets"),
	BOTH_APIS("send-imm", send_imm, "SENDs with immediate data"),
	BOTH_APIS("write-imm", write_imm,
		  "WRITEs with immediate data take a receive request, not its memory"),
	BOTH_APIS("compare-swap", compare_and_swap,
		  "COMPARE AND SWAP that meets what it compares with, and not"),
	BOTH_APIS("fetch-add", fetch_and_add, "FETCH AND ADD, also beyond 2^64"),
	BOTH_APIS("atomic-write", atomic_write, "ATOMIC WRITE of 8 bytes"),
	BOTH_APIS("lists", lists, "lists of several pieces, at both ends"),
	BOTH_APIS("no-data", no_data,
		  "requests without a list, or with an empty piece that has no key"),
	BOTH_APIS("inline", inline_data,
		  "inline data are copied when they are posted and need no key"),
	BOTH_APIS("inline-list", inline_list, "inline data of several pieces"),
	{"inline-unflagged/wr", "inline data by their setter, without IBV_SEND_INLINE",
	 inline_unflagged, BY_WR},
	BOTH_APIS("unsignaled", unsignaled, "only what asks for a completion has one"),
	BOTH_APIS("sig-all", sig_all, "a queue pair of which each request has a completion"),
	BOTH_APIS("chain", chain, "five kinds of requests posted as one list"),
	{"bad-chain", "a list whose third request is refused", bad_chain, 0},
	{"batches/wr", "a batch that is aborted, and one with an error", batches, BY_WR},
	{"two-connections", "two connections between two hosts", two_connections, 0},
	{"one-host", "two queue pairs of one host", one_host, 0},
	{"itself", "a queue pair that is connected to itself", itself, 0},
	{"one-queue", "sends and receives share a completion queue", one_queue, 0},
	{"wc-fields", "what stands in those fields of a completion that mean nothing for it",
	 wc_fields, 0},
	{"poll-many", "several completions at once", poll_many, 0},
	{0},
};
