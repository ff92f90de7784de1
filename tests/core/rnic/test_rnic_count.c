/* SPDX-License-Identifier: BSD-3-Clause */
/* What the soft RNIC counts: for each refusal, retransmission and NAK the counter that `tidemark
 * stat` shows. a asks, b refuses; both count together. */
#include "core/rnic/count.h"
#include "core/rnic/objects/mr.h"
#include "tests/core/rnic/rnic_world.h"

static uint64_t count[RNIC_COUNT];

static const char *const names[RNIC_COUNT] = {
#define X(name, words) #name,
	RNIC_COUNTS(X)
#undef X
};

/* These counters, once each, and no other one. */
static void expect_counts(unsigned n, const enum rnic_count *which)
{
	for (unsigned i = 0; i < RNIC_COUNT; i++) {
		uint64_t expected = 0;
		for (unsigned k = 0; k < n; k++)
			expected += which[k] == i;
		ck_assert_msg(count[i] == expected, "%s is %llu", names[i],
			      (unsigned long long)count[i]);
	}
}
#define EXPECT(...)                                                                       \
	expect_counts(sizeof((enum rnic_count[]){__VA_ARGS__}) / sizeof(enum rnic_count), \
		      (const enum rnic_count[]){__VA_ARGS__})

static void begin(void)
{
	memset(count, 0, sizeof(count));
	net->count = count;
}

/* A WRITE of a's with another key, place, or to a queue pair with other rights. */
static void write_to(uint32_t rkey, uint64_t va, uint32_t len, enum ibv_wc_status status)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, len, &b, 0);
	begin();
	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = va;
	post_done(&a, &wr, status);
}

RNIC_TEST(connected, fine)
{
	write_to(b.mr->rkey, (uintptr_t)b.buf, 5000, IBV_WC_SUCCESS);
	expect_counts(0, NULL);
}

RNIC_TEST(connected, key)
{
	write_to(b.mr->rkey ^ 0x700, (uintptr_t)b.buf, 64, IBV_WC_REM_ACCESS_ERR);
	EXPECT(COUNT_bad_key, COUNT_nak_access_sent, COUNT_nak_access_received);
}

RNIC_TEST(connected, domain)
{
	struct ibv_pd *other = rnic_alloc_pd(b.ctx);
	struct ibv_mr *mr = rnic_reg_mr(other, b.buf, BUF, ALL_ACCESS);
	write_to(mr->rkey, (uintptr_t)b.buf, 64, IBV_WC_REM_ACCESS_ERR);
	EXPECT(COUNT_wrong_pd, COUNT_nak_access_sent, COUNT_nak_access_received);
}

RNIC_TEST(connected, bounds)
{
	write_to(b.mr->rkey, (uintptr_t)b.buf + BUF - 63, 64, IBV_WC_REM_ACCESS_ERR);
	EXPECT(COUNT_out_of_bounds, COUNT_nak_access_sent, COUNT_nak_access_received);
}

RNIC_TEST(connected, access)
{
	struct ibv_mr *mr = rnic_reg_mr(b.pd, b.buf, BUF, IBV_ACCESS_REMOTE_READ);
	write_to(mr->rkey, (uintptr_t)b.buf, 64, IBV_WC_REM_ACCESS_ERR);
	EXPECT(COUNT_no_access, COUNT_nak_access_sent, COUNT_nak_access_received);
}

/* The first packet is answered twice with "not ready", then there is a receive request. */
RNIC_TEST(connected, receive)
{
	begin();
	op(&a, IBV_WR_SEND, 0, 64, &b, 0, 1, IBV_SEND_SIGNALED);
	while (count[COUNT_nak_rnr_received] < 2)
		rt_sleep(1000);
	recv_post(&b, 0, 64, 2);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	EXPECT(COUNT_no_receive, COUNT_no_receive, COUNT_nak_rnr_sent, COUNT_nak_rnr_sent,
	       COUNT_nak_rnr_received, COUNT_nak_rnr_received);
}

RNIC_TEST(connected, state)
{
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_ERR, 0), 0);
	begin();
	op(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 0, 1, IBV_SEND_SIGNALED);
	expect(a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_eq(count[COUNT_qp_state], 8);
	ck_assert_uint_eq(count[COUNT_retry], 7);
	ck_assert_uint_eq(count[COUNT_timeout], 8);
	ck_assert_uint_eq(count[COUNT_retry_exceeded], 1);
}

/* The first packet is lost, the others follow; the second time none is. */
ANSWER(lose_first, at->kind == CHOICE_PACKET && source.asked[CHOICE_PACKET] == 1, 1 /* lost */)

ANSWER(lose_second, at->kind == CHOICE_PACKET && source.asked[CHOICE_PACKET] == 2, 1)

RNIC_TEST(connected, right, opt.qp_access = IBV_ACCESS_REMOTE_READ)
{
	write_to(b.mr->rkey, (uintptr_t)b.buf, 64, IBV_WC_REM_INV_REQ_ERR);
	EXPECT(COUNT_bad_request, COUNT_nak_invalid_sent, COUNT_nak_invalid_received);
}

RNIC_TEST(connected, gap, source.answer = lose_first)
{
	begin();
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 3 * 1024, &b, 0);
	EXPECT(COUNT_psn_gap, COUNT_psn_gap, COUNT_nak_sequence_sent, COUNT_nak_sequence_received,
	       COUNT_retry);
}

/* The acknowledgement is lost. */
RNIC_TEST(connected, duplicate, source.answer = lose_second)
{
	begin();
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 0);
	EXPECT(COUNT_duplicate, COUNT_timeout, COUNT_retry);
}

RNIC_TEST(connected, overrun, opt.cqe = 2)
{
	begin();
	for (unsigned i = 0; i < 3; i++)
		op(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 0, i, IBV_SEND_SIGNALED);
	rt_sleep(1 * MS);
	ck_assert_uint_ge(count[COUNT_cq_overrun], 1);
}

RUN_TESTS(setup_options, NULL)
