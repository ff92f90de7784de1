/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA Commit (core/rdma_commit.h): its three kinds, and what is refused. What it makes durable,
 * and in which order, scenarios/litmus/rc_*.litmus say, the taxonomy (wc, cwc) and tests/litmus.
 */
#include "core/rdma_commit.h"
#include "tests/core/rnic/rnic_world.h"

enum kind { PLAIN, WITH_IMMEDIATE, WITH_PAYLOAD };

/* A signaled request, number 7, of [remote, remote + len) of b's buffer. The payload comes from the
 * first 8 bytes of a's. */
static struct ibv_send_wr commit(enum kind kind, struct ibv_sge *sge, size_t remote, uint32_t len)
{
	uint64_t va = (uintptr_t)b.buf + remote;
	struct ibv_send_wr wr = {.wr_id = 7, .sg_list = sge, .send_flags = IBV_SEND_SIGNALED};

	*sge = (struct ibv_sge){(uintptr_t)a.buf, 8, a.mr->lkey};
	wr.num_sge = kind == WITH_PAYLOAD;
	if (kind == PLAIN)
		tm_commit_wr(&wr, b.mr->rkey, va, len);
	else if (kind == WITH_IMMEDIATE)
		tm_commit_imm_wr(&wr, b.mr->rkey, va, len, htobe32(99));
	else
		tm_commit_payload_wr(&wr, b.mr->rkey, va, len);
	return wr;
}

static void post_commit(enum kind kind, size_t remote, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = commit(kind, &sge, remote, len);

	post(&a, &wr);
}

static void expect_commit(enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_for(a.scq);

	ck_assert_int_eq(wc.status, status);
	ck_assert_uint_eq(wc.wr_id, 7);
	if (status == IBV_WC_SUCCESS)
		ck_assert_int_eq(wc.opcode, TM_WC_COMMIT);
}

ANSWER(never_drain, at->kind == CHOICE_DRAIN, n - 1)

RNIC_TESTS(pm, payload_is_the_last_word, 2, opt.hw.ddio = DDIO_ON, opt.hw.commit_visible = _i,
	   source.answer = never_drain)
{
	fill(a.buf, 512, 14);
	op(&a, IBV_WR_RDMA_WRITE, 64, 64, &b, 256, 1, 0);
	post_commit(WITH_PAYLOAD, 256, 128);
	expect_commit(IBV_WC_SUCCESS);
	ck_assert_uint_eq(pmem_dirty(pool), 0);
	ck_assert_mem_eq(b.buf + 256, a.buf + 64, 64);
	ck_assert_uint_eq(word(&b, 256 + 128 - 8), word(&a, 0));
	ck_assert_uint_eq(word(&b, 256 + 128 - 16), 0);
}

/* One whose first answers get lost is not done again: what was written since stays as it is. */
ANSWER(lose_answers,
       at->kind == CHOICE_PACKET && !strcmp(at->who->name, "server/qp1") && at->c <= 2, PACKET_LOSE)

RNIC_TEST(pm, not_done_twice, source.answer = lose_answers)
{
	set_word(&a, 0, 5);
	post_commit(WITH_PAYLOAD, 0, 8);
	rt_sleep(10 * US);
	ck_assert(empty(a.scq));
	ck_assert_uint_eq(word(&b, 0), 5);
	set_word(&b, 0, 6); /* the program's own store */
	expect_commit(IBV_WC_SUCCESS);
	ck_assert_uint_eq(word(&b, 0), 6);
}

/* --- the immediate --- */

/* What is not posted waits; what is posted does not. */
ANSWER(hold_commit, at->kind == CHOICE_FETCH, 4)

static void expect_receive(uint64_t id, enum ibv_wc_status status, enum ibv_wc_opcode opcode,
			   uint32_t bytes)
{
	struct ibv_wc wc = wait_for(b.rcq);

	ck_assert_uint_eq(wc.wr_id, id);
	ck_assert_int_eq(wc.status, status);
	if (status != IBV_WC_SUCCESS)
		return;
	ck_assert_int_eq(wc.opcode, opcode);
	ck_assert_uint_eq(wc.byte_len, bytes);
	ck_assert_int_eq(wc.wc_flags & IBV_WC_WITH_IMM,
			 opcode == IBV_WC_RECV_RDMA_WITH_IMM ? IBV_WC_WITH_IMM : 0);
	if (wc.wc_flags & IBV_WC_WITH_IMM)
		ck_assert_uint_eq(be32toh(wc.imm_data), 99);
}

/* A message, a Commit, and two more, which have landed in the end. */
static void send_and_commit(void)
{
	fill(a.buf, 512, 15);
	for (uint64_t id = 1; id <= 4; id++)
		recv_post(&b, 2048 + 64 * id, 64, id);
	op(&a, IBV_WR_SEND, 0, 16, &b, 0, 1, 0);
	post_commit(WITH_IMMEDIATE, 0, 64);
	op(&a, IBV_WR_SEND, 0, 64, &b, 0, 2, 0);
	op(&a, IBV_WR_SEND, 64, 8, &b, 0, 3, 0);
	expect_receive(1, IBV_WC_SUCCESS, IBV_WC_RECV, 16);
	while (memcmp(b.buf + 2048 + 64 * 4, a.buf + 64, 8))
		rt_yield();
}

/* Messages after it are there and not received before it has taken effect. */
RNIC_TEST(pm, receives_in_order, source.answer = hold_commit)
{
	send_and_commit();
	ck_assert(empty(b.rcq));
	expect_receive(2, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, 0);
	expect_receive(3, IBV_WC_SUCCESS, IBV_WC_RECV, 64);
	expect_receive(4, IBV_WC_SUCCESS, IBV_WC_RECV, 8);
	expect_commit(IBV_WC_SUCCESS);
}

/* Its region goes meanwhile: it is refused, and no receive after it completes as if nothing were.
 */
RNIC_TEST(pm, refused_in_the_middle, source.answer = hold_commit)
{
	send_and_commit();
	ck_assert_int_eq(rnic_dereg_mr(b.mr), 0);
	expect_receive(2, IBV_WC_WR_FLUSH_ERR, 0, 0);
	expect_receive(3, IBV_WC_WR_FLUSH_ERR, 0, 0);
	expect_receive(4, IBV_WC_WR_FLUSH_ERR, 0, 0);
	expect_commit(IBV_WC_REM_ACCESS_ERR);
}

/* A queue pair that is reset forgets them. */
RNIC_TEST(pm, reset_in_the_middle, source.answer = hold_commit)
{
	send_and_commit();
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_RESET, 0), 0);
	rt_sleep(100 * US);
	ck_assert(empty(b.rcq));
}

RNIC_TEST(pm, waits_for_a_receive)
{
	post_commit(WITH_IMMEDIATE, 0, 64);
	rt_sleep(50 * US);
	ck_assert(empty(a.scq));
	recv_post(&b, 2048, 0, 1);
	expect_receive(1, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, 0);
	expect_commit(IBV_WC_SUCCESS);
}

/* --- what is refused --- */

#define W IBV_ACCESS_REMOTE_WRITE
#define P IBV_ACCESS_FLUSH_PERSISTENT
static const struct refusal {
	enum kind kind;
	unsigned region, qp; /* rights besides local ones */
	size_t off;
	uint32_t len;
	enum ibv_wc_status status;
} refusals[] = {
	{PLAIN, P, P, 0, 64, IBV_WC_SUCCESS},
	{PLAIN, P, P, 3, 61, IBV_WC_SUCCESS},
	{PLAIN, W, W | P, 0, 64, IBV_WC_REM_ACCESS_ERR},
	{PLAIN, W | P, W, 0, 64, IBV_WC_REM_INV_REQ_ERR},
	{PLAIN, P, P, 4096 - 8, 64, IBV_WC_REM_ACCESS_ERR},
	{WITH_IMMEDIATE, W, W | P, 0, 64, IBV_WC_REM_ACCESS_ERR},
	{WITH_PAYLOAD, W | P, W | P, 0, 64, IBV_WC_SUCCESS},
	{WITH_PAYLOAD, W | P, W | P, 4, 60, IBV_WC_SUCCESS},
	{WITH_PAYLOAD, P, W | P, 0, 64, IBV_WC_REM_ACCESS_ERR},
	{WITH_PAYLOAD, W | P, P, 0, 64, IBV_WC_REM_INV_REQ_ERR},
	{WITH_PAYLOAD, W | P, W | P, 0, 60,
	 IBV_WC_REM_INV_REQ_ERR}, /* no aligned word at its end */
	{WITH_PAYLOAD, W | P, W | P, 0, 4, IBV_WC_REM_INV_REQ_ERR},
	{WITH_PAYLOAD, W | P, W | P, 4096, 8, IBV_WC_REM_ACCESS_ERR},
};
static struct refusal refusal;

RNIC_TESTS(pm, refused, ROWS_OF(refusals), refusal = refusals[_i], opt.qp_access = refusal.qp)
{
	struct ibv_mr *mr = rnic_reg_mr(b.pd, b.buf, 4096,
					IBV_ACCESS_LOCAL_WRITE | (int)refusal.region);
	struct ibv_sge sge;
	struct ibv_send_wr wr = commit(refusal.kind, &sge, refusal.off, refusal.len);

	set_word(&a, 0, 77);
	wr.wr.atomic.rkey = mr->rkey;
	recv_post(&b, 8192, 0, 1);
	post(&a, &wr);
	expect_commit(refusal.status);
	bool written = refusal.status == IBV_WC_SUCCESS && refusal.kind == WITH_PAYLOAD;
	ck_assert_uint_eq(word(&b, 56), written ? 77 : 0);
}

RNIC_TEST(pm, bad_posts)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = commit(PLAIN, &sge, 0, 64), *bad;

	wr.num_sge = 1;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	wr = commit(WITH_PAYLOAD, &sge, 0, 64);
	sge.length = 4;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	wr = commit(PLAIN, &sge, 0, 64);
	wr.wr.atomic.compare_add = 1ull << 32;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	wr.opcode = (enum ibv_wr_opcode)0xf3;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EOPNOTSUPP);
	wr.opcode = (enum ibv_wr_opcode)(IBV_WR_ATOMIC_WRITE + 1); /* a number, and no opcode */
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EOPNOTSUPP);
	remake_qp(&a, IBV_QPT_UC, NULL);
	remake_qp(&b, IBV_QPT_UC, NULL);
	connect_side(&a, &b);
	wr = commit(PLAIN, &sge, 0, 64);
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
}

/* The same three by ibv_wr_*(), in one batch. */
RNIC_TEST(pm, extended, opt.send_ops = TM_QP_EX_WITH_COMMIT)
{
	uint64_t va = (uintptr_t)b.buf, payload = 78;

	recv_post(&b, 2048, 0, 1);
	ibv_wr_start(a.qpx);
	a.qpx->wr_id = 7;
	a.qpx->wr_flags = IBV_SEND_SIGNALED;
	tm_wr_commit(a.qpx, b.mr->rkey, va, 64);
	tm_wr_commit_imm(a.qpx, b.mr->rkey, va, 64, htobe32(99));
	tm_wr_commit_payload(a.qpx, b.mr->rkey, va, 64, &payload);
	payload = 0;
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	for (unsigned i = 0; i < 3; i++)
		expect_commit(IBV_WC_SUCCESS);
	expect_receive(1, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, 0);
	ck_assert_uint_eq(word(&b, 56), 78);
	/* They take no data of the caller's. */
	ibv_wr_start(a.qpx);
	tm_wr_commit(a.qpx, b.mr->rkey, va, 64);
	ibv_wr_set_sge(a.qpx, a.mr->lkey, (uintptr_t)a.buf, 8);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), EINVAL);
}

RNIC_TEST(task, device_says_so)
{
	struct ibv_device_attr attr;

	ck_assert_int_eq(rnic_query_device(a.ctx, &attr), 0);
	ck_assert_uint_eq(attr.vendor_id, TM_VENDOR);
}

RUN_TESTS(setup_options, NULL)
