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
	struct ibv_sge sge = {(uintptr_t)a->buf + 100, 8, a->mr->lkey}, saved[LAB_SGES];
	memcpy(saved, a->sge, sizeof(saved));
	good.opcode = IBV_WR_RDMA_WRITE;
	good.send_flags = IBV_SEND_SIGNALED;
	good.num_sge = 0;
	good.sg_list = &sge;
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

/* The peer's region with these rights, and with what lab_fill() gives. */
static void connect_with(struct lab *lab, unsigned mr_access, unsigned qp_access)
{
	lab->opt.mr_access = LAB_ALL;
	lab_make(lab);
	lab_fill(lab->a.buf, LAB_BUF, 1);
	lab_fill(lab->b.buf, LAB_BUF, 2);
	struct ibv_mr *whole = lab->b.mr;
	lab->b.mr = ibv_reg_mr(lab->b.pd, lab->b.buf, LAB_BUF, (int)mr_access);
	lab_say(lab, "b: register: %s", lab->b.mr ? "0" : lab_error(errno));
	if (!lab->b.mr)
		lab_give_up(lab);
	lab_say(lab, "b: deregister: %s", lab_error(ibv_dereg_mr(whole)));
	lab->opt.qp_access = LAB_ALL;
	lab_to_rts(&lab->a, &lab->b);
	lab->opt.qp_access = qp_access;
	lab_to_rts(&lab->b, &lab->a);
}

static uint32_t bytes_of(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ ? 12 : 8;
}

static void ask(struct lab *lab, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = lab_wr(&lab->a, opcode, 2, 0, bytes_of(opcode), &lab->b, THERE);
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		wr.wr.atomic.compare_add = lab_word(&lab->b, THERE);
	refused(lab, &wr);
}

/* What an atomic does not need. */
static void add_only(struct lab *lab)
{
	const unsigned not_needed = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	connect_with(lab, LAB_ALL & ~not_needed, LAB_ALL & ~not_needed);
	ask(lab, IBV_WR_ATOMIC_FETCH_AND_ADD);
}

static void connect(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, LAB_BUF, 1);
	lab_fill(lab->b.buf, LAB_BUF, 2);
}

/* `len` bytes for the peer's address `off` from its buffer's start. */
static void aim(struct lab *lab, enum ibv_wr_opcode opcode, uint32_t len, int64_t off)
{
	connect(lab);
	struct ibv_send_wr wr = lab_wr(&lab->a, opcode, 2, 0, len, &lab->b, 0);
	if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ ||
	    opcode == IBV_WR_ATOMIC_WRITE)
		wr.wr.rdma.remote_addr += (uint64_t)off;
	else
		wr.wr.atomic.remote_addr += (uint64_t)off;
	refused(lab, &wr);
	lab_bytes(&lab->b, LAB_BUF - 4096, 4096);
}

static void add_unaligned(struct lab *lab)
{
	aim(lab, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, THERE + 4);
}

static void swap_unaligned(struct lab *lab)
{
	aim(lab, IBV_WR_ATOMIC_CMP_AND_SWP, 8, THERE + 1);
}

static void add_short(struct lab *lab)
{
	aim(lab, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, THERE);
}

static void add_long(struct lab *lab)
{
	aim(lab, IBV_WR_ATOMIC_FETCH_AND_ADD, 16, THERE);
}

/* --- keys --- */

static void with_rkey(struct lab *lab, enum ibv_wr_opcode opcode, uint32_t len, uint32_t rkey)
{
	struct ibv_send_wr wr = lab_wr(&lab->a, opcode, 2, 0, len, &lab->b, THERE);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.rkey = rkey;
	else
		wr.wr.rdma.rkey = rkey;
	refused(lab, &wr);
}

/* Nothing is written, so no key is looked at. */
static void empty_no_key(struct lab *lab)
{
	connect(lab);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 0, &lab->b, THERE);
	wr.wr.rdma.rkey = NO_KEY;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	wr = lab_wr(&lab->a, IBV_WR_RDMA_READ, 2, 0, 0, &lab->b, THERE);
	wr.wr.rdma.rkey = NO_KEY;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_state(&lab->a);
}

static void with_lkey(struct lab *lab, enum ibv_wr_opcode opcode, uint32_t lkey)
{
	struct ibv_send_wr wr = lab_wr(&lab->a, opcode, 2, 0, bytes_of(opcode), &lab->b, THERE);
	lab->a.sge[0].lkey = lkey;
	if (opcode == IBV_WR_SEND)
		lab_recv(&lab->b, 100, THERE, 64);
	refused(lab, &wr);
}

static void write_no_lkey(struct lab *lab)
{
	connect(lab);
	with_lkey(lab, IBV_WR_RDMA_WRITE, NO_KEY);
}

static void send_no_lkey(struct lab *lab)
{
	connect(lab);
	with_lkey(lab, IBV_WR_SEND, NO_KEY);
}

static void write_lkey_other_pd(struct lab *lab)
{
	connect(lab);
	struct ibv_pd *pd = ibv_alloc_pd(lab->a.ctx);
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, lab->a.buf, LAB_BUF, LAB_ALL) : NULL;
	if (!mr)
		lab_give_up(lab);
	with_lkey(lab, IBV_WR_RDMA_WRITE, mr->lkey);
}

/* a's own data end a byte after its region. */
static void write_local_past(struct lab *lab)
{
	connect(lab);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 2, LAB_BUF - 11, 12, &lab->b,
				       THERE);
	refused(lab, &wr);
}

/* A READ, a fetched value into memory that is only to be read from. */
static void into_read_only(struct lab *lab, enum ibv_wr_opcode opcode)
{
	connect(lab);
	struct ibv_mr *mr = ibv_reg_mr(lab->a.pd, lab->a.buf, LAB_BUF, 0);
	if (!mr)
		lab_give_up(lab);
	with_lkey(lab, opcode, mr->lkey);
	lab_bytes(&lab->a, 0, 16);
}

static void read_into_read_only(struct lab *lab)
{
	into_read_only(lab, IBV_WR_RDMA_READ);
}

static void add_into_read_only(struct lab *lab)
{
	into_read_only(lab, IBV_WR_ATOMIC_FETCH_AND_ADD);
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

/* Two packets fit, the third does not. */
static void short_long_receive(struct lab *lab)
{
	connect(lab);
	send_to(lab, 3000, 2999, lab->b.mr->lkey);
	lab_bytes(&lab->b, THERE, 3000);
}

static void receive_no_key(struct lab *lab)
{
	connect(lab);
	send_to(lab, 12, 64, NO_KEY);
}

static void receive_read_only(struct lab *lab)
{
	connect(lab);
	struct ibv_mr *mr = ibv_reg_mr(lab->b.pd, lab->b.buf, LAB_BUF, 0);
	if (!mr)
		lab_give_up(lab);
	send_to(lab, 12, 64, mr->lkey);
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
	ask(lab, IBV_WR_RDMA_READ);
}

/* More READs than may be under way: they wait for each other. */
static void shallow(struct lab *lab)
{
	lab->opt.rd_atomic = lab->opt.dest_rd_atomic = 1;
	connect(lab);
	for (unsigned i = 0; i < 6; i++)
		lab_op(&lab->a, IBV_WR_RDMA_READ, i, 20000 * i, 10000, &lab->b, 1000 * i);
	lab_sent(&lab->a, 6);
	lab_bytes(&lab->a, 0, 120000);
}

/* --- requests that are refused when they are posted --- */

static void try_post(struct lab *lab, const char *what, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	lab_say(lab, "%s: %s", what, lab_error(ibv_post_send(lab->a.qp, wr, &bad)));
}

static void bad_posts(struct lab *lab)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge[8];
	connect(lab);
	for (unsigned i = 0; i < 8; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)lab->a.buf, 1, lab->a.mr->lkey};
	wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
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

/* A local key where a remote one is asked for. */
static void local_key(struct lab *lab)
{
	connect(lab);
	with_rkey(lab, IBV_WR_RDMA_WRITE, 12, lab->b.mr->lkey);
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

/* Nothing at all is a region, too. */
static void empty_region(struct lab *lab)
{
	lab_make(lab);
	reg(lab, "no bytes", lab->a.buf, 0, LAB_ALL);
}

/* One buffer, two regions: a key that is gone does not take the other one's memory away. */
static void two_regions(struct lab *lab)
{
	connect(lab);
	struct ibv_mr *second = ibv_reg_mr(lab->b.pd, lab->b.buf, LAB_BUF, LAB_ALL);
	if (!second)
		lab_give_up(lab);
	lab_say(lab, "the same keys: %s", second->rkey == lab->b.mr->rkey ? "yes" : "no");
	lab_say(lab, "deregister: %s", lab_error(ibv_dereg_mr(second)));
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
}

/* Objects that others need cannot be taken away. */
static void in_use(struct lab *lab)
{
	connect(lab);
	struct end *a = &lab->a;
	lab_say(lab, "domain with regions and a queue pair: %s", lab_error(ibv_dealloc_pd(a->pd)));
	lab_say(lab, "completion queue of a queue pair: %s", lab_error(ibv_destroy_cq(a->scq)));
	lab_op(a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_sent(a, 1);
	lab_say(lab, "queue pair: %s", lab_error(ibv_destroy_qp(a->qp)));
	lab_say(lab, "its completion queues: %s, %s", lab_error(ibv_destroy_cq(a->scq)),
		lab_error(ibv_destroy_cq(a->rcq)));
	lab_say(lab, "domain with regions: %s", lab_error(ibv_dealloc_pd(a->pd)));
	lab_say(lab, "region: %s", lab_error(ibv_dereg_mr(a->mr)));
	lab_say(lab, "domain: %s", lab_error(ibv_dealloc_pd(a->pd)));
}

/* Addresses in requests count from the region's own start. */
static void zero_based(struct lab *lab)
{
	connect(lab);
	struct ibv_mr *mr = ibv_reg_mr_iova2(lab->b.pd, lab->b.buf, 8192, 4096, LAB_ALL);
	lab_say(lab, "register: %s", mr ? "0" : lab_error(errno));
	if (!mr)
		return;
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, 0);
	wr.wr.rdma.rkey = mr->rkey;
	wr.wr.rdma.remote_addr = 4096 + 100;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->b, 96, 16);
	wr.wr_id = 2;
	wr.wr.rdma.remote_addr = 4095;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
}

const struct verbs_program verbs_rights[] = {
	{"add-one-right", "FETCH AND ADD where only atomics are allowed", add_only, 0},
	{"add-unaligned", "FETCH AND ADD of a word that is not aligned", add_unaligned, 0},
	{"swap-unaligned", "COMPARE AND SWAP of a word that is not aligned", swap_unaligned, 0},
	{"add-short", "FETCH AND ADD with room for 4 bytes", add_short, 0},
	{"add-long", "FETCH AND ADD with room for 16 bytes", add_long, 0},
	{"empty-no-key", "WRITE and READ of nothing with a key of no region", empty_no_key, 0},
	{"write-local-key", "WRITE with the local key of the peer's region", local_key, 0},
	BOTH_APIS("write-no-lkey", write_no_lkey, "WRITE of data with a key of no region"),
	{"send-no-lkey", "SEND of data with a key of no region", send_no_lkey, 0},
	{"write-lkey-other-domain", "WRITE of data of another protection domain",
	 write_lkey_other_pd, 0},
	{"write-local-past", "WRITE of data that end a byte past their region", write_local_past,
	 0},
	{"read-into-read-only", "READ into a region without the right to write",
	 read_into_read_only, 0},
	{"add-into-read-only", "FETCH AND ADD into a region without the right to write",
	 add_into_read_only, 0},
	{"write-from-read-only", "WRITE from a region without any right", write_from_read_only, 0},
	{"short-receive", "SEND of a byte more than the receive request has room for",
	 short_receive, 0},
	{"short-long-receive", "SEND of three packets, of which the last does not fit",
	 short_long_receive, 0},
	{"receive-no-key", "SEND to a receive request whose key is of no region", receive_no_key,
	 0},
	{"receive-read-only", "SEND to a region without the right to write", receive_read_only, 0},
	{"receive-nothing", "SEND of nothing to a receive request whose key is of no region",
	 receive_nothing, 0},
	{"no-initiator", "READ where no READ may be under way", no_initiator, 0},
	{"shallow", "six READs of which one may be under way", shallow, 0},
	{"bad-posts", "requests that ibv_post_send() refuses", bad_posts, 0},
	{"inline-read", "a READ that is posted as inline", inline_read, 0},
	{"send-invalidate", "SEND with invalidate of a key of no region", send_invalidate, 0},
	{"registrations", "what can be registered, and with which rights", registrations, 0},
	{"empty-region", "a region of no bytes", empty_region, 0},
	{"two-regions", "two regions of one buffer", two_regions, 0},
	{"in-use", "objects that are in use cannot be destroyed", in_use, 0},
	{"own-addresses", "a region with addresses of its own", zero_based, 0},
	{0},
};
