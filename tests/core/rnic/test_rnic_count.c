/* SPDX-License-Identifier: BSD-3-Clause */
/* What the soft RNIC counts: for each refusal, retransmission and NAK the counter that `tidemark
 * stat` shows. a asks, b refuses; both count together. */
#include <stdlib.h>
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
	post(&a, &wr);
	expect(a.scq, 7, status);
}

static void fine_body(void)
{
	write_to(b.mr->rkey, (uintptr_t)b.buf, 5000, IBV_WC_SUCCESS);
	expect_counts(0, NULL);
}

static void key_body(void)
{
	write_to(b.mr->rkey ^ 0x700, (uintptr_t)b.buf, 64, IBV_WC_REM_ACCESS_ERR);
	EXPECT(COUNT_bad_key, COUNT_nak_access_sent, COUNT_nak_access_received);
}

static void domain_body(void)
{
	struct ibv_pd *other = rnic_alloc_pd(b.ctx);
	struct ibv_mr *mr = rnic_reg_mr(other, b.buf, BUF, ALL_ACCESS);
	write_to(mr->rkey, (uintptr_t)b.buf, 64, IBV_WC_REM_ACCESS_ERR);
	EXPECT(COUNT_wrong_pd, COUNT_nak_access_sent, COUNT_nak_access_received);
}

static void bounds_body(void)
{
	write_to(b.mr->rkey, (uintptr_t)b.buf + BUF - 63, 64, IBV_WC_REM_ACCESS_ERR);
	EXPECT(COUNT_out_of_bounds, COUNT_nak_access_sent, COUNT_nak_access_received);
}

static void access_body(void)
{
	struct ibv_mr *mr = rnic_reg_mr(b.pd, b.buf, BUF, IBV_ACCESS_REMOTE_READ);
	write_to(mr->rkey, (uintptr_t)b.buf, 64, IBV_WC_REM_ACCESS_ERR);
	EXPECT(COUNT_no_access, COUNT_nak_access_sent, COUNT_nak_access_received);
}

static void right_body(void)
{
	write_to(b.mr->rkey, (uintptr_t)b.buf, 64, IBV_WC_REM_INV_REQ_ERR);
	EXPECT(COUNT_bad_request, COUNT_nak_invalid_sent, COUNT_nak_invalid_received);
}

/* The first packet is answered twice with "not ready", then there is a receive request. */
static void receive_body(void)
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

static void state_body(void)
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
static unsigned lose_first(const struct choice_point *at, unsigned n)
{
	(void)n;
	return at->kind == CHOICE_PACKET && source.asked[CHOICE_PACKET] == 1 ? 1 /* lost */ : 0;
}

static void gap_body(void)
{
	begin();
	op(&a, IBV_WR_RDMA_WRITE, 0, 3 * 1024, &b, 0, 1, IBV_SEND_SIGNALED);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	EXPECT(COUNT_psn_gap, COUNT_psn_gap, COUNT_nak_sequence_sent, COUNT_nak_sequence_received,
	       COUNT_retry);
}

static unsigned lose_second(const struct choice_point *at, unsigned n)
{
	(void)n;
	return at->kind == CHOICE_PACKET && source.asked[CHOICE_PACKET] == 2 ? 1 : 0;
}

/* The acknowledgement is lost. */
static void duplicate_body(void)
{
	begin();
	op(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 0, 1, IBV_SEND_SIGNALED);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	EXPECT(COUNT_duplicate, COUNT_timeout, COUNT_retry);
}

static void overrun_body(void)
{
	begin();
	for (unsigned i = 0; i < 3; i++)
		op(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 0, i, IBV_SEND_SIGNALED);
	rt_sleep(1 * MS);
	ck_assert_uint_ge(count[COUNT_cq_overrun], 1);
}

#define COUNTED(name)                        \
	START_TEST(test_##name)              \
	{                                    \
		run(connected, name##_body); \
	}                                    \
	END_TEST

COUNTED(fine)
COUNTED(key)
COUNTED(domain)
COUNTED(bounds)
COUNTED(access)
COUNTED(receive)
COUNTED(state)

START_TEST(test_right)
{
	opt.qp_access = IBV_ACCESS_REMOTE_READ;
	run(connected, right_body);
}
END_TEST

START_TEST(test_gap)
{
	source.answer = lose_first;
	run(connected, gap_body);
}
END_TEST

START_TEST(test_duplicate)
{
	source.answer = lose_second;
	run(connected, duplicate_body);
}
END_TEST

START_TEST(test_overrun)
{
	opt.cqe = 2;
	run(connected, overrun_body);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rnic_count");
	TCase *tc = tcase_create("counts");
	tcase_add_checked_fixture(tc, setup_options, NULL);
	tcase_add_test(tc, test_fine);
	tcase_add_test(tc, test_key);
	tcase_add_test(tc, test_domain);
	tcase_add_test(tc, test_bounds);
	tcase_add_test(tc, test_access);
	tcase_add_test(tc, test_right);
	tcase_add_test(tc, test_receive);
	tcase_add_test(tc, test_state);
	tcase_add_test(tc, test_gap);
	tcase_add_test(tc, test_duplicate);
	tcase_add_test(tc, test_overrun);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
