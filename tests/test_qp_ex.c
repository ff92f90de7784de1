/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extended API for posting: ibv_create_qp_ex() and ibv_wr_*.
 */
#include "tests/rnic_world.h"

#define ALL_OPS                                                                                        \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |        \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE)

static void setup(void)
{
	setup_options();
	opt.send_ops = ALL_OPS;
}

static uint64_t at(const struct side *s, size_t off)
{
	return (uintptr_t)s->buf + off;
}

/* One request: wr_id, flags, builder, and all of its bytes at `off` of a's buffer. */
static void start(uint64_t id, unsigned flags)
{
	ibv_wr_start(a.qpx);
	a.qpx->wr_id = id;
	a.qpx->wr_flags = flags;
}

static void set(size_t off, uint32_t len)
{
	ibv_wr_set_sge(a.qpx, a.mr->lkey, at(&a, off), len);
}

static struct ibv_wc done(uint64_t id, enum ibv_wc_opcode opcode, uint32_t bytes)
{
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	struct ibv_wc wc = wait_for(a.scq);
	ck_assert_msg(wc.status == IBV_WC_SUCCESS, "%s", rnic_wc_status_str(wc.status));
	ck_assert_uint_eq(wc.wr_id, id);
	ck_assert_int_eq(wc.opcode, opcode);
	ck_assert_uint_eq(wc.byte_len, bytes);
	ck_assert_uint_eq(wc.qp_num, a.qp->qp_num);
	return wc;
}

/* --- each builder --- */

static void builders_body(void)
{
	fill(a.buf, 4096, 1);
	start(1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(a.qpx, b.mr->rkey, at(&b, 100));
	set(0, 3000);
	done(1, IBV_WC_RDMA_WRITE, 3000);
	rt_sleep(10 * US);
	ck_assert_mem_eq(b.buf + 100, a.buf, 3000);

	recv_post(&b, 0, 0, 50);
	start(2, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write_imm(a.qpx, b.mr->rkey, at(&b, 5000), htobe32(0x01020304));
	set(0, 1000);
	done(2, IBV_WC_RDMA_WRITE, 1000);
	struct ibv_wc wc = wait_for(b.rcq);
	ck_assert_uint_eq(wc.wr_id, 50);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	ck_assert_uint_eq(be32toh(wc.imm_data), 0x01020304);
	ck_assert_uint_eq(wc.byte_len, 1000);
	ck_assert_mem_eq(b.buf + 5000, a.buf, 1000);

	start(3, IBV_SEND_SIGNALED);
	ibv_wr_rdma_read(a.qpx, b.mr->rkey, at(&b, 100));
	set(8000, 3000);
	done(3, IBV_WC_RDMA_READ, 3000);
	ck_assert_mem_eq(a.buf + 8000, a.buf, 3000);

	recv_post(&b, 20000, 4096, 51);
	start(4, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	ibv_wr_send(a.qpx);
	set(0, 4096);
	done(4, IBV_WC_SEND, 4096);
	wc = wait_for(b.rcq);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.wc_flags, 0);
	ck_assert_uint_eq(wc.byte_len, 4096);
	ck_assert_mem_eq(b.buf + 20000, a.buf, 4096);

	recv_post(&b, 30000, 64, 52);
	start(5, IBV_SEND_SIGNALED);
	ibv_wr_send_imm(a.qpx, htobe32(77));
	set(0, 64);
	done(5, IBV_WC_SEND, 64);
	wc = wait_for(b.rcq);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	ck_assert_uint_eq(be32toh(wc.imm_data), 77);
	ck_assert_mem_eq(b.buf + 30000, a.buf, 64);
}

START_TEST(builders)
{
	run(connected, builders_body);
}
END_TEST

static void atomic_builders_body(void)
{
	set_word(&b, 64, 40);
	start(1, IBV_SEND_SIGNALED);
	ibv_wr_atomic_fetch_add(a.qpx, b.mr->rkey, at(&b, 64), 2);
	set(0, 8);
	done(1, IBV_WC_FETCH_ADD, 8);
	ck_assert_uint_eq(word(&a, 0), 40);
	ck_assert_uint_eq(word(&b, 64), 42);

	start(2, IBV_SEND_SIGNALED);
	ibv_wr_atomic_cmp_swp(a.qpx, b.mr->rkey, at(&b, 64), 41, 7);
	set(0, 8);
	done(2, IBV_WC_COMP_SWAP, 8);
	ck_assert_uint_eq(word(&a, 0), 42);
	ck_assert_uint_eq(word(&b, 64), 42);
	start(3, IBV_SEND_SIGNALED);
	ibv_wr_atomic_cmp_swp(a.qpx, b.mr->rkey, at(&b, 64), 42, 7);
	set(0, 8);
	done(3, IBV_WC_COMP_SWAP, 8);
	ck_assert_uint_eq(word(&b, 64), 7);

	uint64_t value = 0x0102030405060708;
	start(4, IBV_SEND_SIGNALED);
	ibv_wr_atomic_write(a.qpx, b.mr->rkey, at(&b, 64), &value);
	value = 0; /* ours again */
	done(4, IBV_WC_ATOMIC_WRITE, 8);
	ck_assert_uint_eq(word(&b, 64), 0x0102030405060708);
	ck_assert_uint_eq(word(&b, 72), 0);

	start(5, IBV_SEND_SIGNALED);
	ibv_wr_flush(a.qpx, b.mr->rkey, at(&b, 64), 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	done(5, IBV_WC_FLUSH, 0);
}

START_TEST(atomic_builders)
{
	opt.inline_bytes = 0; /* is for inline data, which an atomic write's are not */
	run(connected, atomic_builders_body);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("qp_ex");
	TCase *tc = tcase_create("qp_ex");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, builders);
	tcase_add_test(tc, atomic_builders);
	suite_add_tcase(suite, tc);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
