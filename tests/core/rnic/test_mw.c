/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The soft RNIC's memory windows, SEND with invalidate, re-registration, null regions, parent
 * domains. b owns the memory, a accesses it.
 */
#include "tests/core/rnic/rnic_world.h"

#define RW    (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
#define HERE  8192ul /* where a window begins in b's buffer */
#define BYTES 256ul

static struct ibv_mr *region; /* b's, on all of its buffer, with the right to bind */

static void windowed(int access)
{
	region = rnic_reg_mr(b.pd, b.buf, BUF, access | IBV_ACCESS_MW_BIND);
	ck_assert_ptr_nonnull(region);
}

static struct ibv_mw_bind_info info(size_t off, size_t len, unsigned access)
{
	return (struct ibv_mw_bind_info){region, (uintptr_t)b.buf + off, len, access};
}

static struct ibv_send_wr bind_wr(struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info what)
{
	struct ibv_send_wr wr = {
		.wr_id = 30, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = what;
	return wr;
}

/* Bind by b's queue pair, wait for the completion. */
static uint32_t bind_2(struct ibv_mw *mw, uint32_t old, struct ibv_mw_bind_info what,
		       enum ibv_wc_status status)
{
	struct ibv_send_wr wr = bind_wr(mw, ibv_inc_rkey(old), what);
	post(&b, &wr);
	struct ibv_wc wc = wait_for(b.scq);
	ck_assert_msg(wc.status == status, "%s", rnic_wc_status_str(wc.status));
	if (status == IBV_WC_SUCCESS)
		ck_assert_int_eq(wc.opcode, IBV_WC_BIND_MW);
	ck_assert_uint_eq(wc.wr_id, 30);
	return wr.bind_mw.rkey;
}

static void bind_1(struct ibv_mw *mw, struct ibv_mw_bind_info what, enum ibv_wc_status status)
{
	struct ibv_mw_bind bind = {.wr_id = 31, .send_flags = IBV_SEND_SIGNALED, .bind_info = what};
	ck_assert_int_eq(ibv_bind_mw(b.qp, mw, &bind), 0);
	expect(b.scq, 31, status);
}

static void invalidate(struct side *s, uint32_t rkey, enum ibv_wc_status status)
{
	struct ibv_send_wr wr = {
		.wr_id = 32, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
	wr.invalidate_rkey = rkey;
	post(s, &wr);
	struct ibv_wc wc = wait_for(s->scq);
	ck_assert_msg(wc.status == status, "%s", rnic_wc_status_str(wc.status));
	if (status == IBV_WC_SUCCESS)
		ck_assert_int_eq(wc.opcode, IBV_WC_LOCAL_INV);
}

/* a accesses b's memory at `va` with this key; a refusal ends the connection, which is made
 * anew. */
static void access_at(enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t va, uint32_t len,
		      enum ibv_wc_status status)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, opcode, &sge, 0, len, &b, 0);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.remote_addr = va;
	} else if (opcode == IBV_WR_FLUSH) {
		flush_wr(&wr, rkey, va, len, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	} else {
		wr.wr.rdma.rkey = rkey;
		wr.wr.rdma.remote_addr = va;
	}
	post_done(&a, &wr, status);
	if (status != IBV_WC_SUCCESS)
		reconnect();
}

static void access_off(enum ibv_wr_opcode opcode, uint32_t rkey, size_t off, uint32_t len,
		       enum ibv_wc_status status)
{
	access_at(opcode, rkey, (uintptr_t)b.buf + off, len, status);
}

#define OK     IBV_WC_SUCCESS
#define NO     IBV_WC_REM_ACCESS_ERR
#define FAILED IBV_WC_MW_BIND_ERR

/* --- life --- */

RNIC_TEST(connected, type_1)
{
	windowed(ALL_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	ck_assert_ptr_nonnull(mw);
	uint32_t first = mw->rkey;
	access_off(IBV_WR_RDMA_WRITE, first, HERE, 8, NO); /* not bound */
	bind_1(mw, info(HERE, BYTES, RW), OK);
	uint32_t rkey = mw->rkey;
	ck_assert_uint_ne(rkey, first);
	ck_assert_uint_eq(rkey >> 8, first >> 8);
	fill(a.buf, BYTES, 1);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, BYTES, OK);
	ck_assert_mem_eq(b.buf + HERE, a.buf, BYTES);
	memset(a.buf, 0, BYTES);
	access_off(IBV_WR_RDMA_READ, rkey, HERE, BYTES, OK);
	ck_assert_mem_eq(b.buf + HERE, a.buf, BYTES);
	/* Its bounds, its rights, its key. */
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE - 1, 2, NO);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE + BYTES - 1, 2, NO);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, BYTES + 1, NO);
	access_off(IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, HERE, 8, NO);
	access_off(IBV_WR_FLUSH, rkey, HERE, 8, NO);
	access_off(IBV_WR_RDMA_WRITE, first, HERE, 8, NO);
	access_off(IBV_WR_RDMA_WRITE, ibv_inc_rkey(rkey), HERE, 8, NO);
	/* It survives the queue pair's reset. Bound again it moves, and the old key dies. */
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 8, OK);
	bind_1(mw, info(0, 64, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC), OK);
	access_off(IBV_WR_RDMA_READ, mw->rkey, 0, 64, OK);
	access_off(IBV_WR_ATOMIC_FETCH_AND_ADD, mw->rkey, 0, 8, OK);
	access_off(IBV_WR_RDMA_WRITE, mw->rkey, 0, 8, NO);
	access_off(IBV_WR_RDMA_READ, mw->rkey, HERE, 8, NO);
	access_off(IBV_WR_RDMA_READ, rkey, HERE, 8, NO);
	/* The region's keys are not the window's business. */
	access_off(IBV_WR_RDMA_WRITE, region->rkey, HERE, 8, OK);
	/* What hangs together. */
	ck_assert_int_eq(rnic_dereg_mr(region), EBUSY);
	ck_assert_int_eq(rnic_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_CMD);
	ck_assert_int_eq(errno, EBUSY);
	ck_assert_int_eq(rnic_dealloc_pd(b.pd), EBUSY);
	/* No bytes: not bound. */
	bind_1(mw, (struct ibv_mw_bind_info){0}, OK);
	access_off(IBV_WR_RDMA_READ, mw->rkey, 0, 8, NO);
	bind_1(mw, info(0, 64, RW), OK);
	bind_1(mw, info(0, 0, 0), OK);
	access_off(IBV_WR_RDMA_READ, mw->rkey, 0, 8, NO);
	/* A bound one can be given back. */
	bind_1(mw, info(0, 64, RW), OK);
	rkey = mw->rkey;
	unsigned objects = rnic_objects(b.ctx);
	ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
	ck_assert_int_eq(ibv_dealloc_mw(mw), EINVAL);
	ck_assert_uint_eq(rnic_objects(b.ctx), objects - 1);
	access_off(IBV_WR_RDMA_READ, rkey, 0, 8, NO);
	ck_assert_int_eq(rnic_dereg_mr(region), 0);
	NOT_MADE(ibv_alloc_mw(b.pd, 3), EINVAL);
}

RNIC_TEST(connected, type_2)
{
	windowed(IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t rkey = bind_2(mw, mw->rkey, info(HERE, BYTES, RW), OK);
	fill(a.buf, BYTES, 2);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, BYTES, OK);
	ck_assert_mem_eq(b.buf + HERE, a.buf, BYTES);
	access_off(IBV_WR_RDMA_WRITE, region->rkey, HERE, 8, NO);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE + BYTES, 1, NO);
	ck_assert_int_eq(rnic_dereg_mr(region), EBUSY);
	/* Bound, it has to be invalidated first. */
	bind_2(mw, rkey, info(HERE, BYTES, RW), FAILED);
	reconnect();
	access_off(IBV_WR_RDMA_READ, rkey, HERE, 8, OK);
	invalidate(&b, rkey, OK);
	access_off(IBV_WR_RDMA_READ, rkey, HERE, 8, NO);
	invalidate(&b, rkey, FAILED);
	reconnect();
	rkey = bind_2(mw, rkey, info(HERE, BYTES, IBV_ACCESS_REMOTE_READ), OK);
	access_off(IBV_WR_RDMA_READ, rkey, HERE, 8, OK);
	/* By the peer. */
	recv_post(&b, 0, 64, 55);
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_SEND_WITH_INV, &sge, 0, 40, &b, 0);
	wr.invalidate_rkey = rkey;
	post(&a, &wr);
	struct ibv_wc wc = wait_for(b.rcq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_INV);
	ck_assert_uint_eq(wc.invalidated_rkey, rkey);
	ck_assert_uint_eq(wc.byte_len, 40);
	wc = wait_for(a.scq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, IBV_WC_SEND);
	access_off(IBV_WR_RDMA_READ, rkey, HERE, 8, NO);
	/* Only the last byte of the key is the one that was asked for. */
	struct ibv_send_wr odd = bind_wr(mw, 0x12345677, info(HERE, BYTES, RW));
	post(&b, &odd);
	expect(b.scq, 30, OK);
	ck_assert_uint_eq(mw->rkey, (rkey & ~0xffu) | 0x77);
	access_off(IBV_WR_RDMA_READ, mw->rkey, HERE, 8, OK);
	invalidate(&b, mw->rkey, OK);
	ck_assert_int_eq(rnic_dereg_mr(region), 0);
	ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
}

/* A long SEND with invalidate: the key dies with its last packet. */
/* Also with losses: what is sent again invalidates once. */
RNIC_TESTS(connected, long_send, 2, source.state = _i ? 7 : 0,
	   source.permille[CHOICE_PACKET] = _i ? 200 : 0)
{
	windowed(ALL_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t rkey = bind_2(mw, mw->rkey, info(HERE, BYTES, RW), OK);
	struct ibv_sge sge[3];
	struct ibv_send_wr before = wr_make(&a, IBV_WR_RDMA_WRITE, &sge[0], 0, BYTES, &b, HERE);
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_SEND_WITH_INV, &sge[1], 0, 5000, &b, 0);
	struct ibv_send_wr after = wr_make(&a, IBV_WR_RDMA_WRITE, &sge[2], 512, BYTES, &b, HERE);
	fill(a.buf, 5000, 3);
	recv_post(&b, 16384, 5000, 55);
	before.wr.rdma.rkey = after.wr.rdma.rkey = wr.invalidate_rkey = rkey;
	before.next = &wr;
	wr.next = &after;
	wr.wr_id = 8;
	after.wr_id = 9;
	post_done(&a, &before, OK);
	expect(a.scq, 8, OK);
	expect(a.scq, 9, NO);
	expect(b.rcq, 55, OK);
	ck_assert_mem_eq(b.buf + 16384, a.buf, 5000);
	ck_assert_mem_eq(b.buf + HERE, a.buf, BYTES);
}

/* What the peer may not invalidate: the message has come, its receive completes with an error, it
 * is not acknowledged, and that was it. */
RNIC_TESTS(connected, wrong_invalidation, true + 1, opt.hw.ack_early = _i)
{
	windowed(ALL_ACCESS);
	struct ibv_mw *one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1),
		      *two = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	bind_1(one, info(0, 64, RW), OK);
	uint32_t rkey = bind_2(two, two->rkey, info(0, 64, RW), OK);
	const uint32_t keys[] = {region->rkey, region->lkey, one->rkey, ibv_inc_rkey(rkey), 0,
				 0xffffffff};
	note_events();
	for (unsigned i = 0; i < ROWS_OF(keys); i++) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = wr_make(&a, IBV_WR_SEND_WITH_INV, &sge, 0, 8, &b, 0);
		wr.invalidate_rkey = keys[i];
		recv_post(&b, 0, 64, 55);
		post(&a, &wr);
		expect(b.rcq, 55, IBV_WC_REM_INV_REQ_ERR);
		ck_assert_int_eq(b.qp->state, IBV_QPS_ERR);
		expect(a.scq, wr.wr_id, IBV_WC_REM_ACCESS_ERR);
		ck_assert_int_eq(a.qp->state, IBV_QPS_ERR);
		ck_assert_uint_eq(event_count, 0);
		reconnect();
		invalidate(&b, keys[i], FAILED);
		reconnect();
	}
	access_off(IBV_WR_RDMA_READ, region->rkey, 0, 8, OK);
	access_off(IBV_WR_RDMA_READ, one->rkey, 0, 8, OK);
	access_off(IBV_WR_RDMA_READ, rkey, 0, 8, OK);
}

/* --- what may be bound --- */

static const struct binding {
	const char *name;
	int region;	 /* its rights, with MW_BIND if not `closed` */
	unsigned access; /* the window's */
	size_t off, len;
	bool closed;
	enum ibv_wc_status status;
} bindings[] = {
	{"read", 0, IBV_ACCESS_REMOTE_READ, HERE, 8, false, OK},
	{"no rights at all", 0, 0, HERE, 8, false, OK},
	{"write", IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, HERE, 8, false, OK},
	{"atomics", IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, HERE, 8, false, OK},
	{"write to what is not writable", 0, IBV_ACCESS_REMOTE_WRITE, HERE, 8, false, FAILED},
	{"atomics on what is not writable", 0, IBV_ACCESS_REMOTE_ATOMIC, HERE, 8, false, FAILED},
	{"no right to bind", ALL_ACCESS, IBV_ACCESS_REMOTE_READ, HERE, 8, true, FAILED},
	{"all of it", 0, IBV_ACCESS_REMOTE_READ, 0, BUF, false, OK},
	{"a byte too long", 0, IBV_ACCESS_REMOTE_READ, 0, BUF + 1, false, FAILED},
	{"behind its end", 0, IBV_ACCESS_REMOTE_READ, BUF, 1, false, FAILED},
	{"across its end", 0, IBV_ACCESS_REMOTE_READ, BUF - 1, 2, false, FAILED},
	{"before its beginning", 0, IBV_ACCESS_REMOTE_READ, (size_t)-1, 2, false, FAILED},
	{"around the end of the address space", 0, IBV_ACCESS_REMOTE_READ, 0, (size_t)-1, false,
	 FAILED},
	{"flush", IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_GLOBAL, HERE, 8, false, OK},
	{"flush where the region is not to be flushed", 0, IBV_ACCESS_FLUSH_GLOBAL, HERE, 8, false,
	 FAILED},
	{"on a region that counts from zero", IBV_ACCESS_ZERO_BASED, IBV_ACCESS_REMOTE_READ, HERE,
	 8, false, FAILED},
};

RNIC_TEST(connected, rules)
{
	for (unsigned i = 0; i < ROWS_OF(bindings); i++) {
		const struct binding *t = &bindings[i];
		struct ibv_mw *one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
		struct ibv_mw *two = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
		region = rnic_reg_mr(b.pd, b.buf, BUF,
				     t->region | (t->closed ? 0 : IBV_ACCESS_MW_BIND));
		struct ibv_mw_bind bind = {.wr_id = 31,
					   .send_flags = IBV_SEND_SIGNALED,
					   .bind_info = info(t->off, t->len, t->access)};
		ck_assert_int_eq(ibv_bind_mw(b.qp, one, &bind), 0);
		struct ibv_wc wc = wait_for(b.scq);
		ck_assert_msg(wc.status == t->status, "%s: %s", t->name,
			      rnic_wc_status_str(wc.status));
		if (t->status != OK)
			reconnect();
		bind_2(two, two->rkey, info(t->off, t->len, t->access), t->status);
		if (t->status != OK)
			reconnect();
		ck_assert_int_eq(ibv_dealloc_mw(one), 0);
		ck_assert_int_eq(ibv_dealloc_mw(two), 0);
		ck_assert_int_eq(rnic_dereg_mr(region), 0);
	}
	/* The queue pair's domain, the window's, the region's. */
	windowed(ALL_ACCESS);
	struct ibv_pd *other = rnic_alloc_pd(b.ctx);
	struct ibv_mw *mw = ibv_alloc_mw(other, IBV_MW_TYPE_2);
	bind_2(mw, mw->rkey, info(HERE, 8, RW), FAILED);
	reconnect();
	struct ibv_mr *alien = rnic_reg_mr(other, b.buf, BUF, ALL_ACCESS | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info what = info(HERE, 8, RW);
	what.mr = alien;
	bind_2(mw, mw->rkey, what, FAILED);
	reconnect();
	/* A region that is gone; no bytes. */
	reconnect();
	bind_2(mw, mw->rkey, info(HERE, 0, RW), FAILED);
	reconnect();
	what = info(HERE, 8, RW);
	ck_assert_int_eq(rnic_dereg_mr(region), 0);
	bind_2(mw, mw->rkey, what, FAILED);
}

/* What is refused when it is posted. */
RNIC_TEST(connected, refused_posts)
{
	windowed(ALL_ACCESS);
	struct ibv_mw *one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1),
		      *two = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_mw *far = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info what = info(HERE, 8, RW);
	const uint32_t key = one->rkey;
	struct ibv_send_wr *bad, wr = bind_wr(one, one->rkey, what);
	ck_assert_int_eq(ibv_post_send(b.qp, &wr, &bad), EINVAL); /* that is ibv_bind_mw()'s */
	wr = bind_wr(far, far->rkey, what);
	ck_assert_int_eq(ibv_post_send(b.qp, &wr, &bad), EINVAL);
	wr = bind_wr(NULL, 0, what);
	ck_assert_int_eq(ibv_post_send(b.qp, &wr, &bad), EINVAL);
	what.mr = NULL;
	wr = bind_wr(two, two->rkey, what);
	ck_assert_int_eq(ibv_post_send(b.qp, &wr, &bad), EINVAL);
	wr = bind_wr(two, two->rkey, info(HERE, 8, IBV_ACCESS_MW_BIND));
	ck_assert_int_eq(ibv_post_send(b.qp, &wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr);
	struct ibv_mw_bind bind = {.bind_info = info(HERE, 8, RW | IBV_ACCESS_ZERO_BASED)};
	ck_assert_int_eq(ibv_bind_mw(b.qp, one, &bind), EINVAL);
	bind.bind_info = info(HERE, 8, RW);
	ck_assert_int_eq(ibv_bind_mw(b.qp, two, &bind), EINVAL);
	bind.send_flags = IBV_SEND_INLINE;
	ck_assert_int_eq(ibv_bind_mw(b.qp, one, &bind), EINVAL);
	bind.send_flags = 0;
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_RESET, 0), 0);
	ck_assert_int_eq(ibv_bind_mw(b.qp, one, &bind), EINVAL);
	ck_assert_uint_eq(one->rkey, key);
	ck_assert(empty(b.scq));
}

/* Addresses that count from the window's beginning. */
RNIC_TEST(connected, zero_based)
{
	windowed(ALL_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t rkey = bind_2(mw, mw->rkey, info(HERE, BYTES, RW | IBV_ACCESS_ZERO_BASED), OK);
	fill(a.buf, 100, 4);
	access_at(IBV_WR_RDMA_WRITE, rkey, 100, 100, OK);
	ck_assert_mem_eq(b.buf + HERE + 100, a.buf, 100);
	access_at(IBV_WR_RDMA_WRITE, rkey, BYTES - 99, 100, NO);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 8, NO);
}

/* A type 2 window serves the queue pair that bound it, and dies with it; one of type 1 serves all
 * of its domain. */
RNIC_TEST(connected, whose)
{
	windowed(ALL_ACCESS);
	struct ibv_mw *one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1),
		      *two = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	bind_1(one, info(HERE, BYTES, RW), OK);
	uint32_t rkey = bind_2(two, two->rkey, info(HERE, BYTES, RW), OK);
	struct side a1 = a, b1 = b;
	struct ibv_qp_init_attr init = {.send_cq = a.scq,
					.recv_cq = a.rcq,
					.cap = {16, 16, 2, 2, 0},
					.qp_type = IBV_QPT_RC};
	a.qp = rnic_create_qp(a.pd, &init);
	init.send_cq = b.scq;
	init.recv_cq = b.rcq;
	b.qp = rnic_create_qp(b.pd, &init);
	connect_both();
	access_off(IBV_WR_RDMA_WRITE, one->rkey, HERE, 8, OK);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 8, NO);
	invalidate(&b, rkey, FAILED);
	reconnect();
	struct side a2 = a, b2 = b;
	a = a1;
	b = b1;
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 8, OK);
	ck_assert_int_eq(rnic_destroy_qp(b.qp), 0);
	a = a2;
	b = b2;
	/* It can be bound anew, by another one. */
	rkey = bind_2(two, rkey, info(HERE, BYTES, RW), OK);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 8, OK);
	access_off(IBV_WR_RDMA_WRITE, one->rkey, HERE, 8, OK);
}

/* An unreliable connection has windows, too: what is outside of them is dropped without a word. */
RNIC_TEST(connected, unreliable)
{
	struct ibv_sge sge;
	remake_qp(&a, IBV_QPT_UC, NULL);
	remake_qp(&b, IBV_QPT_UC, NULL);
	connect_both();
	windowed(ALL_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t rkey = bind_2(mw, mw->rkey, info(HERE, BYTES, RW), OK);
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, BYTES, &b, HERE);
	fill(a.buf, BYTES, 8);
	wr.wr.rdma.rkey = rkey;
	post_done(&a, &wr, OK);
	wr.wr.rdma.remote_addr += BYTES;
	post_done(&a, &wr, OK);
	rt_sleep(100 * US);
	ck_assert_mem_eq(b.buf + HERE, a.buf, BYTES);
	ck_assert_uint_eq(word(&b, HERE + BYTES), 0);
	invalidate(&b, rkey, OK);
	fill(a.buf, BYTES, 9);
	wr.wr.rdma.remote_addr -= BYTES;
	post_done(&a, &wr, OK);
	rt_sleep(100 * US);
	ck_assert_mem_ne(b.buf + HERE, a.buf, BYTES);
	/* Datagrams have none of this. */
	remake_qp(&b, IBV_QPT_UD, NULL);
	connect_side(&b, &a);
	struct ibv_send_wr *bad, bind = bind_wr(mw, mw->rkey, info(HERE, BYTES, RW));
	ck_assert_int_eq(ibv_post_send(b.qp, &bind, &bad), EINVAL);
}

/* Requests around a binding keep their order, lossy link or not; the SEND after it may carry the
 * new key. */
RNIC_TESTS(connected, order, 2, source.state = _i ? 11 : 0,
	   source.permille[CHOICE_PACKET] = _i ? 100 : 0)
{
	windowed(ALL_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t rkey = mw->rkey;
	for (unsigned i = 0; i < 20; i++) {
		struct ibv_sge sge[2];
		struct ibv_send_wr read = wr_make(&b, IBV_WR_RDMA_READ, &sge[0], 0, 5000, &a, 0);
		struct ibv_send_wr wr = bind_wr(mw, ibv_inc_rkey(rkey), info(HERE, BYTES, RW));
		struct ibv_send_wr tell = wr_make(&b, IBV_WR_SEND, &sge[1], 32768, 8, &a, 0);
		rkey = wr.bind_mw.rkey;
		set_word(&b, 32768, rkey);
		recv_post(&a, 32768, 8, 60);
		read.wr_id = 1;
		read.next = &wr;
		wr.next = &tell;
		tell.wr_id = 3;
		post(&b, &read);
		expect(a.rcq, 60, OK);
		ck_assert_uint_eq(word(&a, 32768), rkey);
		access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 8, OK);
		expect(b.scq, 1, OK);
		expect(b.scq, 30, OK);
		expect(b.scq, 3, OK);
		invalidate(&b, rkey, OK);
	}
}

/* A binding that fails waits for its turn: those before it succeed, those after it are flushed. */
RNIC_TEST(connected, failure_in_turn)
{
	windowed(ALL_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_sge sge[2];
	struct ibv_send_wr read = wr_make(&b, IBV_WR_RDMA_READ, &sge[0], 0, 5000, &a, 0);
	struct ibv_send_wr wr = bind_wr(mw, ibv_inc_rkey(mw->rkey), info(HERE, BUF, RW));
	struct ibv_send_wr write = wr_make(&b, IBV_WR_RDMA_WRITE, &sge[1], 0, 8, &a, 0);
	read.next = &wr;
	wr.next = &write;
	wr.send_flags = 0; /* errors always complete */
	post_done(&b, &read, OK);
	expect(b.scq, 30, FAILED);
	expect(b.scq, 7, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b.qp->state, IBV_QPS_ERR);
}

/* By ibv_wr_*. */
RNIC_TEST(connected, extended,
	  opt.send_ops = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
			 IBV_QP_EX_WITH_SEND_WITH_INV)
{
	windowed(ALL_ACCESS);
	struct ibv_mw *one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1),
		      *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info what = info(HERE, BYTES, RW);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	ibv_wr_start(b.qpx);
	b.qpx->wr_id = 1;
	b.qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(b.qpx, mw, rkey, &what);
	ck_assert_int_eq(ibv_wr_complete(b.qpx), 0);
	expect(b.scq, 1, OK);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 8, OK);
	ibv_wr_start(b.qpx);
	b.qpx->wr_id = 2;
	ibv_wr_local_inv(b.qpx, rkey);
	b.qpx->wr_id = 3;
	ibv_wr_bind_mw(b.qpx, mw, rkey + 0, &what);
	ck_assert_int_eq(ibv_wr_complete(b.qpx), 0);
	expect(b.scq, 2, OK);
	expect(b.scq, 3, OK);
	recv_post(&b, 0, 64, 55);
	ibv_wr_start(a.qpx);
	a.qpx->wr_id = 4;
	a.qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_inv(a.qpx, rkey);
	ibv_wr_set_sge(a.qpx, a.mr->lkey, (uintptr_t)a.buf, 16);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	expect(a.scq, 4, OK);
	struct ibv_wc wc = wait_for(b.rcq);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_INV);
	ck_assert_uint_eq(wc.invalidated_rkey, rkey);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 8, NO);
	/* No data belong to them, and type 1 not here. */
	ibv_wr_start(b.qpx);
	ibv_wr_local_inv(b.qpx, rkey);
	ibv_wr_set_sge(b.qpx, b.mr->lkey, (uintptr_t)b.buf, 16);
	ck_assert_int_eq(ibv_wr_complete(b.qpx), EINVAL);
	ibv_wr_start(b.qpx);
	ibv_wr_bind_mw(b.qpx, one, one->rkey, &what);
	ck_assert_int_eq(ibv_wr_complete(b.qpx), EINVAL);
	ck_assert(empty(b.scq));
}

ANSWER(never_drain, at->kind == CHOICE_DRAIN, n - 1)

/* What the window shows of a pool is PM: a FLUSH through it makes it durable. */
RNIC_TEST(pm, pm_window, source.answer = never_drain,
	  opt.hw = (struct hardware){.domain = DOMAIN_DMP, .iio_in_mhp = true, .mtu = 4096})
{
	windowed(ALL_ACCESS | PERSISTENT);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	uint32_t rkey = bind_2(mw, mw->rkey,
			       info(HERE, BYTES, RW | PERSISTENT | IBV_ACCESS_ZERO_BASED), OK);
	struct ibv_send_wr flush = {.wr_id = 5, .send_flags = IBV_SEND_SIGNALED};
	fill(a.buf, BYTES, 5);
	access_at(IBV_WR_RDMA_WRITE, rkey, 0, BYTES, OK);
	flush_wr(&flush, rkey, 0, BYTES, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	post(&a, &flush);
	expect(a.scq, 5, OK);
	ck_assert_mem_eq(b.buf + HERE, a.buf, BYTES);
	ck_assert_uint_eq(pmem_dirty(pool), 0);
	access_off(IBV_WR_RDMA_WRITE, b.mr->rkey, HERE + BYTES, 64, OK); /* after the window */
	post(&a, &flush);
	expect(a.scq, 5, OK);
	ck_assert_uint_eq(pmem_dirty(pool), 1);
}

/* --- regions --- */

RNIC_TEST(connected, rereg)
{
	windowed(ALL_ACCESS);
	uint32_t rkey = region->rkey, lkey = region->lkey;
	/* Rights. */
	ck_assert_int_eq(rnic_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				       IBV_ACCESS_REMOTE_READ),
			 0);
	access_off(IBV_WR_RDMA_READ, rkey, 0, 8, OK);
	access_off(IBV_WR_RDMA_WRITE, rkey, 0, 8, NO);
	/* Place. */
	ck_assert_int_eq(rnic_rereg_mr(region,
				       IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
				       NULL, b.buf + HERE, 64, ALL_ACCESS),
			 0);
	ck_assert_ptr_eq(region->addr, b.buf + HERE);
	ck_assert_uint_eq(region->length, 64);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 64, OK);
	access_off(IBV_WR_RDMA_WRITE, rkey, 0, 8, NO);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 65, NO);
	/* Domain: there and back. */
	struct ibv_pd *other = rnic_alloc_pd(b.ctx);
	ck_assert_int_eq(rnic_rereg_mr(region, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	ck_assert_ptr_eq(region->pd, other);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 8, NO);
	ck_assert_int_eq(rnic_dealloc_pd(other), EBUSY);
	ck_assert_int_eq(rnic_rereg_mr(region, IBV_REREG_MR_CHANGE_PD, b.pd, NULL, 0, 0), 0);
	ck_assert_int_eq(rnic_dealloc_pd(other), 0);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 8, OK);
	/* What is refused, and changes nothing. */
	static const struct {
		int flags;
		bool pd, addr;
		size_t len;
		int access, rc, error;
	} wrong[] = {
		{0, false, false, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL},
		{8, false, false, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL},
		{IBV_REREG_MR_CHANGE_TRANSLATION, false, false, 64, 0, IBV_REREG_MR_ERR_INPUT,
		 EINVAL},
		{IBV_REREG_MR_CHANGE_TRANSLATION, false, true, 0, 0, IBV_REREG_MR_ERR_INPUT,
		 EINVAL},
		{IBV_REREG_MR_CHANGE_TRANSLATION, false, true, 8, IBV_ACCESS_REMOTE_READ,
		 IBV_REREG_MR_ERR_INPUT, EINVAL},
		{IBV_REREG_MR_CHANGE_PD, false, false, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL},
		{IBV_REREG_MR_CHANGE_ACCESS, false, false, 0, IBV_ACCESS_REMOTE_WRITE,
		 IBV_REREG_MR_ERR_CMD, EINVAL},
		{IBV_REREG_MR_CHANGE_ACCESS, false, false, 0, IBV_ACCESS_ON_DEMAND,
		 IBV_REREG_MR_ERR_CMD, EOPNOTSUPP},
	};
	for (unsigned i = 0; i < ROWS_OF(wrong); i++) {
		errno = 0;
		ck_assert_int_eq(rnic_rereg_mr(region, wrong[i].flags, wrong[i].pd ? b.pd : NULL,
					       wrong[i].addr ? b.buf : NULL, wrong[i].len,
					       wrong[i].access),
				 wrong[i].rc);
		ck_assert_int_eq(errno, wrong[i].error);
	}
	ck_assert_int_eq(rnic_rereg_mr(region, IBV_REREG_MR_CHANGE_PD, a.pd, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	ck_assert_uint_eq(region->rkey, rkey);
	ck_assert_uint_eq(region->lkey, lkey);
	access_off(IBV_WR_RDMA_WRITE, rkey, HERE, 64, OK);
	ck_assert_int_eq(rnic_dereg_mr(region), 0);
}

static const struct {
	const char *name;
	size_t len;
	int access, error;
} registrations[] = {
	{"all rights", 64, ALL_ACCESS | IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB, 0},
	{"an optional one from the future", 64, IBV_ACCESS_OPTIONAL_FIRST, 0},
	{"no bytes", 0, ALL_ACCESS, EINVAL},
	{"more than there are addresses", SIZE_MAX, ALL_ACCESS, EINVAL},
	{"remote write alone", 64, IBV_ACCESS_REMOTE_WRITE, EINVAL},
	{"remote atomics alone", 64, IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ, EINVAL},
	{"a right from the future", 64, 1 << 10, EINVAL},
	{"on demand", 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP},
	{"durable DRAM", 64, ALL_ACCESS | PERSISTENT, EINVAL},
};

RNIC_TEST(connected, registering)
{
	for (unsigned i = 0; i < ROWS_OF(registrations); i++) {
		errno = 0;
		struct ibv_mr *mr = rnic_reg_mr(a.pd, a.buf, registrations[i].len,
						registrations[i].access);
		ck_assert_msg(!mr == !!registrations[i].error && errno == registrations[i].error,
			      "%s: %d", registrations[i].name, errno);
		ck_assert(!mr || (mr->addr == a.buf && mr->length == registrations[i].len &&
				  mr->pd == a.pd && mr->context == a.ctx));
	}
	/* Addresses of its own have the page's offset. */
	ck_assert_ptr_nonnull(
		rnic_reg_mr_iova2(a.pd, a.buf, 64, (uintptr_t)a.buf % 4096, ALL_ACCESS));
	NOT_MADE(rnic_reg_mr_iova2(a.pd, a.buf, 64, (uintptr_t)a.buf % 4096 + 8, ALL_ACCESS),
		 EINVAL);
}

/* Reads as zeros, swallows what is written, and no peer sees it. */
RNIC_TEST(connected, null_region)
{
	struct ibv_mr *null = ibv_alloc_null_mr(a.pd);
	ck_assert_ptr_nonnull(null);
	fill(b.buf, 4096, 6);
	struct ibv_sge sge[2] = {{0, 100, null->lkey}, {(uintptr_t)a.buf, 100, a.mr->lkey}};
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, sge, 0, 0, &b, 0);
	memset(a.buf, 0xaa, 300);
	sge[0] = (struct ibv_sge){1ull << 60, 100, null->lkey};
	sge[1] = (struct ibv_sge){(uintptr_t)a.buf, 100, a.mr->lkey};
	wr.num_sge = 2;
	post_done(&a, &wr, OK);
	for (unsigned i = 0; i < 200; i++)
		ck_assert_uint_eq(b.buf[i], i < 100 ? 0 : 0xaa);
	wr.opcode = IBV_WR_RDMA_READ;
	fill(b.buf, 200, 7);
	post_done(&a, &wr, OK);
	ck_assert_mem_eq(a.buf, b.buf + 100, 100);
	ck_assert_int_eq(rnic_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	ck_assert_int_eq(rnic_dereg_mr(null), 0);
	null = ibv_alloc_null_mr(b.pd);
	access_off(IBV_WR_RDMA_READ, null->rkey, 0, 8, NO);
	access_off(IBV_WR_RDMA_READ, null->lkey, 0, 8, NO);
	access_off(IBV_WR_RDMA_READ, null->lkey | 1, 0, 8, NO);
	/* No window shows it. */
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	region = null;
	bind_2(mw, mw->rkey, info(0, 64, IBV_ACCESS_REMOTE_READ), FAILED);
}

/* A parent domain is as good as what it was made of. */
RNIC_TEST(connected, parents)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = ibv_alloc_td(b.ctx, &td_attr);
	ck_assert_ptr_nonnull(td);
	struct ibv_parent_domain_init_attr attr = {.pd = b.pd, .td = td};
	struct ibv_pd *parent = ibv_alloc_parent_domain(b.ctx, &attr);
	ck_assert_ptr_nonnull(parent);
	ck_assert_int_eq(ibv_dealloc_td(td), EBUSY);
	struct ibv_mr *mr = rnic_reg_mr(parent, b.buf, BUF, ALL_ACCESS);
	access_off(IBV_WR_RDMA_WRITE, mr->rkey, 0, 8,
		   OK); /* b's queue pair is of the domain itself */
	ck_assert_int_eq(rnic_dealloc_pd(parent), EBUSY);
	ck_assert_int_eq(rnic_dereg_mr(mr), 0);
	/* What a parent domain cannot be made of. */
	attr.pd = parent;
	NOT_MADE(ibv_alloc_parent_domain(b.ctx, &attr), EINVAL);
	attr.pd = NULL;
	ck_assert_ptr_null(ibv_alloc_parent_domain(b.ctx, &attr));
	attr.pd = a.pd;
	ck_assert_ptr_null(ibv_alloc_parent_domain(b.ctx, &attr));
	attr.pd = b.pd;
	attr.comp_mask = 1 << 7;
	ck_assert_ptr_null(ibv_alloc_parent_domain(b.ctx, &attr));
	struct ibv_pd *other = rnic_alloc_pd(b.ctx);
	attr = (struct ibv_parent_domain_init_attr){.pd = other};
	struct ibv_pd *second = ibv_alloc_parent_domain(b.ctx, &attr);
	mr = rnic_reg_mr(second, b.buf, BUF, ALL_ACCESS);
	access_off(IBV_WR_RDMA_WRITE, mr->rkey, 0, 8, NO);
	ck_assert_int_eq(rnic_dealloc_pd(other), EBUSY);
	ck_assert_int_eq(rnic_dereg_mr(mr), 0);
	ck_assert_int_eq(rnic_dealloc_pd(second), 0);
	ck_assert_int_eq(rnic_dealloc_pd(other), 0);
	ck_assert_int_eq(rnic_dealloc_pd(parent), 0);
	ck_assert_int_eq(ibv_dealloc_td(td), 0);
	ck_assert_int_eq(ibv_dealloc_td(td), EINVAL);
}

/* --- a hostile peer --- */

/*
 * Keys, lengths, addresses at random and at the edges: nothing outside what was given is read or
 * changed. The rest of b's buffer is guarded by a pattern, in which each word says where it is.
 */
RNIC_TEST(connected, spray)
{
	uint64_t state = 99;
	const uint64_t edges[] = {0,	     1,	  7,	      8,	  BYTES - 1,	 BYTES,
				  BYTES + 1, BUF, UINT32_MAX, UINT64_MAX, UINT64_MAX - 7};
	struct ibv_mr *given = rnic_reg_mr(b.pd, b.buf + HERE, BYTES, ALL_ACCESS);
	struct ibv_mr *closed = rnic_reg_mr(b.pd, b.buf, BUF, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *dead = rnic_reg_mr(b.pd, b.buf, BUF, ALL_ACCESS);
	ck_assert_int_eq(rnic_dereg_mr(b.mr), 0);
	ck_assert_int_eq(rnic_dereg_mr(dead), 0);
	for (size_t off = 0; off < BUF; off += 8)
		set_word(&b, off, ~off);
	for (unsigned i = 0; i < 2000; i++) {
		const uint32_t keys[] = {given->rkey,
					 given->lkey,
					 closed->lkey,
					 closed->rkey,
					 dead->rkey,
					 b.mr->rkey,
					 (uint32_t)random_next(&state),
					 given->rkey ^ 1u << random_next(&state) % 32};
		const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD,
						      IBV_WR_ATOMIC_WRITE};
		enum ibv_wr_opcode opcode = opcodes[random_next(&state) % 4];
		uint64_t edge = edges[random_next(&state) % (ROWS_OF(edges))];
		uint64_t va = (uintptr_t)b.buf + HERE + (random_next(&state) % 2 ? edge : 0 - edge);
		uint32_t len = (uint32_t)(random_next(&state) % 2 ? edges[random_next(&state) % 8]
								  : random_next(&state) % 600);
		struct ibv_sge sge;
		if (opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_RDMA_READ)
			len = 8;
		if (len > 8192)
			len = 8192;
		struct ibv_send_wr wr = wr_make(&a, opcode, &sge, 0, len, &b, 0);
		uint32_t key = keys[random_next(&state) % 8];
		bool inside = key == given->rkey && va - ((uintptr_t)b.buf + HERE) <= BYTES &&
			      len <= BYTES - (va - ((uintptr_t)b.buf + HERE));
		if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr.wr.atomic.rkey = key;
			wr.wr.atomic.remote_addr = va;
		} else {
			wr.wr.rdma.rkey = key;
			wr.wr.rdma.remote_addr = va;
		}
		memset(a.buf, 0x55, 8192);
		post(&a, &wr);
		struct ibv_wc wc = wait_for(a.scq);
		if (!inside && len) {
			ck_assert_int_ne(wc.status, IBV_WC_SUCCESS);
			ck_assert(a.buf[0] == 0x55 && !memcmp(a.buf, a.buf + 1, 8191));
		}
		if (inside && len && opcode <= IBV_WR_RDMA_READ)
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		if (wc.status != IBV_WC_SUCCESS)
			reconnect();
	}
	size_t off = 0;
	while (off < BUF && (word(&b, off) == ~off || (off >= HERE && off < HERE + BYTES)))
		off += 8;
	ck_assert_uint_eq(off, BUF);
}

RUN_TESTS(setup_options, NULL)
