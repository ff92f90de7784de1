/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that may not be: keys, rights, bounds, alignment, lengths; and what an error leaves
 * after it. */
#include "scenarios/verbs/programs.h"

#define THERE  8192u
#define NO_KEY 0xdeadbee0u

/*
 * A good WRITE, the request, and one after it. Both sides have receive requests. Then both sides'
 * completions and states, and the memory that the request was for.
 */
static void refused(struct lab *lab, struct ibv_send_wr *wr)
{
	struct end *a = &lab->a, *b = &lab->b;
	struct ibv_send_wr good = *wr;
	good.opcode = IBV_WR_RDMA_WRITE;
	good.send_flags = IBV_SEND_SIGNALED;
	good.num_sge = 0;
	lab_recv(a, 50, 0, 64);
	lab_recv(a, 51, 0, 64);
	if (wr->opcode != IBV_WR_SEND) /* else the caller has */
		lab_recv(b, 100, 0, 64);
	lab_recv(b, 101, 0, 64);
	good.wr_id = 1;
	lab_post(a, &good);
	lab_sent(a, 1);
	if (lab_post(a, wr)) {
		lab_state(a);
		return;
	}
	good.wr_id = 3;
	lab_post(a, &good);
	lab_sent(a, 2);
	lab_state(a);
	lab_state(b);
	lab_received(a, 2);
	lab_no_more(b);
	lab_bytes(b, THERE - 8, 24);
}

static void connect(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, LAB_BUF, 1);
	lab_fill(lab->b.buf, LAB_BUF, 2);
}

/* FETCH AND ADD with room for `len` bytes, `off` bytes from THERE. */
static void add(struct lab *lab, uint32_t len, uint64_t off)
{
	connect(lab);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, len, &lab->b,
				       THERE);
	wr.wr.atomic.remote_addr += off;
	refused(lab, &wr);
	lab_bytes(&lab->b, LAB_BUF - 4096, 4096);
}

static void add_unaligned(struct lab *lab)
{
	add(lab, 8, 4);
}

static void add_short(struct lab *lab)
{
	add(lab, 4, 0);
}

static void add_long(struct lab *lab)
{
	add(lab, 16, 0);
}

/* --- keys --- */

/* 12 bytes. */
static void with_keys(struct lab *lab, enum ibv_wr_opcode opcode, uint32_t lkey, uint32_t rkey)
{
	struct ibv_send_wr wr = lab_wr(&lab->a, opcode, 2, 0, 12, &lab->b, THERE);
	lab->a.sge[0].lkey = lkey;
	wr.wr.rdma.rkey = rkey;
	refused(lab, &wr);
}

/* A local key where a remote one is asked for. */
static void local_key(struct lab *lab)
{
	connect(lab);
	with_keys(lab, IBV_WR_RDMA_WRITE, lab->a.mr->lkey, lab->b.mr->lkey);
}

static void write_no_lkey(struct lab *lab)
{
	connect(lab);
	with_keys(lab, IBV_WR_RDMA_WRITE, NO_KEY, lab->b.mr->rkey);
}

/* Memory that is only to be read from. */
static void read_into_read_only(struct lab *lab)
{
	connect(lab);
	struct ibv_mr *mr = ibv_reg_mr(lab->a.pd, lab->a.buf, LAB_BUF, 0);
	if (!mr)
		lab_give_up(lab);
	with_keys(lab, IBV_WR_RDMA_READ, mr->lkey, lab->b.mr->rkey);
	lab_bytes(&lab->a, 0, 16);
}

/* It may well be sent from. */
static void write_from_read_only(struct lab *lab)
{
	connect(lab);
	struct ibv_mr *mr = ibv_reg_mr(lab->a.pd, lab->a.buf, LAB_BUF, 0);
	if (!mr)
		lab_give_up(lab);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 2, 0, 8, &lab->b, THERE);
	lab->a.sge[0].lkey = mr->lkey;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->b, THERE, 8);
}

/* --- receive requests --- */

static void send_to(struct lab *lab, uint32_t len, uint32_t room, uint32_t lkey)
{
	struct end *b = &lab->b;
	struct ibv_sge sge = {(uintptr_t)b->buf + THERE, room, lkey};
	struct ibv_recv_wr receive = {.wr_id = 100, .sg_list = &sge, .num_sge = 1}, *bad;
	lab_say(lab, "b: post receive: %s", lab_error(ibv_post_recv(b->qp, &receive, &bad)));
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_SEND, 2, 0, len, b, 0);
	refused(lab, &wr);
}

static void short_receive(struct lab *lab)
{
	connect(lab);
	send_to(lab, 12, 11, lab->b.mr->lkey);
}

static void receive_no_key(struct lab *lab)
{
	connect(lab);
	send_to(lab, 12, 64, NO_KEY);
}

/* The receive request's key is no region's, but the SEND has no data. */
static void receive_nothing(struct lab *lab)
{
	connect(lab);
	struct ibv_sge sge = {(uintptr_t)lab->b.buf, 64, NO_KEY};
	struct ibv_recv_wr receive = {.wr_id = 100, .sg_list = &sge, .num_sge = 1}, *bad;
	lab_say(lab, "b: post receive: %s", lab_error(ibv_post_recv(lab->b.qp, &receive, &bad)));
	lab_op(&lab->a, IBV_WR_SEND, 1, 0, 0, &lab->b, 0);
	lab_sent(&lab->a, 1);
	lab_received(&lab->b, 1);
}

/* --- depths --- */

static void no_initiator(struct lab *lab)
{
	lab->opt.rd_atomic = 0;
	connect(lab);
	with_keys(lab, IBV_WR_RDMA_READ, lab->a.mr->lkey, lab->b.mr->rkey);
}

/* --- requests that are refused when they are posted --- */

static void try_post(struct lab *lab, const char *what, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	lab_say(lab, "%s: %s", what, lab_error(ibv_post_send(lab->a.qp, wr, &bad)));
}

static void bad_posts(struct lab *lab)
{
	struct ibv_sge sge[8];
	connect(lab);
	for (unsigned i = 0; i < 8; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)lab->a.buf, 1, lab->a.mr->lkey};
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	wr.sg_list = sge;
	wr.num_sge = 5;
	try_post(lab, "five list entries of four", &wr);
	wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 2, 0, 65, &lab->b, THERE);
	wr.send_flags |= IBV_SEND_INLINE;
	try_post(lab, "65 inline bytes of 64", &wr);
	wr = lab_wr(&lab->a, (enum ibv_wr_opcode)77, 3, 0, 8, &lab->b, THERE);
	try_post(lab, "an unknown opcode", &wr);
	lab_no_more(&lab->a);
	lab_state(&lab->a);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 4, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
}

/* What comes back has no place in an inline request. */
static void inline_read(struct lab *lab)
{
	connect(lab);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_READ, 1, 0, 8, &lab->b, THERE);
	wr.send_flags |= IBV_SEND_INLINE;
	try_post(lab, "an inline READ", &wr);
	lab_no_more(&lab->a);
	lab_bytes(&lab->a, 0, 8);
}

static void send_invalidate(struct lab *lab)
{
	connect(lab);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_SEND_WITH_INV, 1, 0, 8, &lab->b, 0);
	wr.invalidate_rkey = NO_KEY;
	lab_recv(&lab->b, 100, 0, 64);
	try_post(lab, "SEND with invalidate", &wr);
	lab_no_more(&lab->a);
	lab_no_more(&lab->b);
}

/* A FLUSH that says neither "visible" nor "durable". */
static void flush_no_type(struct lab *lab)
{
	lab->opt.mr_access |= IBV_ACCESS_FLUSH_GLOBAL;
	lab->opt.qp_access |= IBV_ACCESS_FLUSH_GLOBAL;
	lab_connect(lab);
	lab_recv(&lab->b, 100, 0, 64);
	if (lab_flush(&lab->a, 1, &lab->b, THERE, 64, 0, IBV_FLUSH_RANGE))
		return;
	lab_sent(&lab->a, 1);
	lab_state(&lab->a);
	lab_state(&lab->b);
	lab_no_more(&lab->b);
}

/* --- registration --- */

static void reg(struct lab *lab, const char *what, void *at, size_t len, int access)
{
	errno = 0;
	struct ibv_mr *mr = ibv_reg_mr(lab->a.pd, at, len, access);
	lab_say(lab, "%s: %s", what, mr ? "0" : lab_error(errno));
	if (mr)
		ibv_dereg_mr(mr);
}

static void registrations(struct lab *lab)
{
	lab_make(lab);
	uint8_t *buf = lab->a.buf;
	reg(lab, "to be read from", buf, 4096, 0);
	reg(lab, "remote write", buf, 4096, IBV_ACCESS_REMOTE_WRITE);
	reg(lab, "remote atomic", buf, 4096, IBV_ACCESS_REMOTE_ATOMIC);
	reg(lab, "remote read", buf, 4096, IBV_ACCESS_REMOTE_READ);
	reg(lab, "unknown rights", buf, 4096, IBV_ACCESS_LOCAL_WRITE | 1 << 15);
	reg(lab, "rights that may be ignored", buf, 4096,
	    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	reg(lab, "odd bounds", buf + 3, 77, LAB_ALL);
	reg(lab, "no address", NULL, 4096, LAB_ALL);
	reg(lab, "an end before the beginning", buf, SIZE_MAX - 100, LAB_ALL);
	reg(lab, "flush to be visible", buf, 4096, LAB_ALL | IBV_ACCESS_FLUSH_GLOBAL);
	reg(lab, "flush to be durable, of DRAM", buf, 4096, LAB_ALL | IBV_ACCESS_FLUSH_PERSISTENT);
	reg(lab, "zero based", buf, 4096, LAB_ALL | IBV_ACCESS_ZERO_BASED);
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

const struct verbs_program verbs_rights[] = {
	{"add-unaligned", "FETCH AND ADD of a word that is not aligned", add_unaligned, 0},
	{"add-short", "FETCH AND ADD with room for 4 bytes", add_short, 0},
	{"add-long", "FETCH AND ADD with room for 16 bytes", add_long, 0},
	{"write-local-key", "WRITE with the local key of the peer's region", local_key, 0},
	{"write-no-lkey", "WRITE of data with a key of no region", write_no_lkey, 0},
	{"read-into-read-only", "READ into a region without the right to write",
	 read_into_read_only, 0},
	{"write-from-read-only", "WRITE from a region without any right", write_from_read_only, 0},
	{"short-receive", "SEND of a byte more than the receive request has room for",
	 short_receive, 0},
	{"receive-no-key", "SEND to a receive request whose key is of no region", receive_no_key,
	 0},
	{"receive-nothing", "SEND of nothing to a receive request whose key is of no region",
	 receive_nothing, 0},
	{"no-initiator", "READ where no READ may be under way", no_initiator, 0},
	{"bad-posts", "requests that ibv_post_send() refuses", bad_posts, 0},
	{"inline-read", "a READ that is posted as inline", inline_read, 0},
	{"send-invalidate", "SEND with invalidate of a key of no region", send_invalidate, 0},
	{"flush-no-type/wr", "FLUSH of no placement type", flush_no_type, BY_WR},
	{"registrations", "what can be registered, and with which rights", registrations, 0},
	{"window", "a memory window, and a SEND that invalidates it", window, 0},
	{"reregister", "a region gets other rights", reregister, 0},
	{0},
};
