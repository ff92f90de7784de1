/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended reliable connections in real time, as a program uses them: a domain of a file that two
 * devices of one process have open, a target of one with a shared receive queue of the other, and
 * events to all handles, with both APIs.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/core/provider/nic_fabric.h"
#include "tests/core/provider/nic_side.h"

#define BUF    65536u
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* a sends, and has made the target; b has the shared receive queue, in its domain. */
static struct side target;	       /* a, with another queue pair */
static struct ibv_xrcd *ours, *theirs; /* a's, b's */
static uint32_t srqn;
static char file[] = "/tmp/tidemark-xrc.XXXXXX";
static int fd;

static struct ibv_xrcd *open_domain(struct ibv_context *context, int descriptor, int oflags)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD |
						       IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = descriptor,
					  .oflags = oflags};

	return ibv_open_xrcd(context, &attr);
}

/* A queue pair of ours, for b. */
static struct ibv_qp *open_target(uint32_t number)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						     IBV_QP_OPEN_ATTR_TYPE,
					.qp_num = number,
					.xrcd = theirs,
					.qp_type = IBV_QPT_XRC_RECV};

	return ibv_open_qp(b.context, &attr);
}

static void setup(void)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD};
	struct ibv_srq_init_attr_ex shared = {
		.attr = {.max_wr = 16, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC};

	open_side(&a, BUF, ACCESS);
	open_side(&b, BUF, ACCESS);
	strcpy(file + sizeof(file) - 7, "XXXXXX");
	fd = mkstemp(file);
	ck_assert_int_ge(fd, 0);
	unlink(file);
	ck_assert_ptr_null(open_domain(a.context, fd, 0));
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_ptr_null(open_domain(a.context, 12345, O_CREAT));
	ck_assert_int_eq(errno, EBADF);
	ours = open_domain(a.context, fd, O_CREAT | O_EXCL);
	ck_assert_ptr_nonnull(ours);
	ck_assert_ptr_null(open_domain(b.context, fd, O_CREAT | O_EXCL));
	ck_assert_int_eq(errno, EINVAL);
	theirs = open_domain(b.context, dup(fd), 0);
	ck_assert_ptr_nonnull(theirs);
	shared.pd = b.pd;
	shared.xrcd = theirs;
	shared.cq = b.rcq;
	b.srq = ibv_create_srq_ex(b.context, &shared);
	ck_assert(b.srq && !ibv_get_srq_num(b.srq, &srqn));
	init.xrcd = ours;
	target = a;
	target.qp = ibv_create_qp_ex(a.context, &init);
	ck_assert_ptr_nonnull(target.qp);
	init = (struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_XRC_SEND,
					    .send_cq = a.scq,
					    .cap = {.max_send_wr = 16, .max_send_sge = 1},
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .pd = a.pd,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND};
	a.qp = ibv_create_qp_ex(a.context, &init);
	ck_assert_ptr_nonnull(a.qp);
	go(&a, &target, IBV_QPS_RTS);
	go(&target, &a, IBV_QPS_RTS);
}

static void request(enum ibv_wr_opcode opcode, uint32_t number, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)a.buf, len, a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)b.buf, b.mr->rkey},
				 .qp_type.xrc.remote_srqn = number},
			   *bad;

	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
}

/* --- */

START_TEST(two_contexts)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a.qp);
	struct ibv_wc wc;

	for (uint32_t i = 0; i < BUF; i++)
		a.buf[i] = (uint8_t)(i * 7);
	give(&b, BUF, 3);
	request(IBV_WR_SEND, srqn, BUF);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	wc = wait_for(b.rcq);
	ck_assert(wc.status == IBV_WC_SUCCESS && wc.wr_id == 3 && wc.byte_len == BUF);
	ck_assert_uint_eq(wc.qp_num, target.qp->qp_num);
	ck_assert_mem_eq(a.buf, b.buf, BUF);
	memset(a.buf, 0x5a, BUF);
	request(IBV_WR_RDMA_WRITE, srqn, BUF);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_mem_eq(a.buf, b.buf, BUF);
	b.buf[77] = 1;
	request(IBV_WR_RDMA_READ, srqn, BUF);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(a.buf[77], 1);
	give(&b, BUF, 4);
	ibv_wr_start(ex);
	ex->wr_id = 5;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, srqn);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf, 8);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	expect(a.scq, 5, IBV_WC_SUCCESS);
	expect(b.rcq, 4, IBV_WC_SUCCESS);
}
END_TEST

/* b holds the target, too; a closes its device; it works on, and is refused by what it refuses. */
START_TEST(outlives_its_maker)
{
	struct ibv_qp *again = open_target(target.qp->qp_num);

	ck_assert_ptr_nonnull(again);
	ck_assert_ptr_ne(again, target.qp);
	ck_assert_ptr_null(open_target(a.qp->qp_num));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(ibv_close_xrcd(theirs), EBUSY);
	ck_assert_int_eq(ibv_destroy_qp(target.qp), 0);
	ck_assert_int_eq(ibv_close_xrcd(ours), 0);
	give(&b, BUF, 1);
	request(IBV_WR_SEND, srqn, 8);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(b.rcq, 1, IBV_WC_SUCCESS);
	request(IBV_WR_SEND, srqn + 1, 8);
	expect(a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_event(&b, IBV_EVENT_QP_REQ_ERR, again);
	ck_assert_int_eq(ibv_destroy_qp(again), 0);
	ck_assert_int_eq(ibv_destroy_srq(b.srq), 0);
	ck_assert_int_eq(ibv_close_xrcd(theirs), 0);
	ck_assert_ptr_null(open_domain(b.context, fd, 0));
	ck_assert_int_eq(errno, EAGAIN);
}
END_TEST

/* The device that has made the target is closed, with all its objects. */
START_TEST(maker_closes)
{
	struct ibv_qp_init_attr init = {.send_cq = b.scq,
					.cap = {.max_send_wr = 4, .max_send_sge = 1},
					.qp_type = IBV_QPT_XRC_SEND};
	const uint32_t number = target.qp->qp_num;
	struct ibv_qp *again = open_target(number);
	struct ibv_qp_attr state;

	ck_assert_ptr_nonnull(again);
	ck_assert_int_eq(ibv_close_device(a.context), 0);
	ck_assert_int_eq(ibv_query_qp(again, &state, IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(state.qp_state, IBV_QPS_RTS);
	ck_assert_int_eq(ibv_destroy_qp(again), 0);
	ck_assert_ptr_null(open_target(number));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nic_xrc");
	TCase *tc = tcase_create("nic_xrc");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, two_contexts);
	tcase_add_test(tc, outlives_its_maker);
	tcase_add_test(tc, maker_closes);
	suite_add_tcase(suite, tc);
	return nic_fabric_run(suite);
}
