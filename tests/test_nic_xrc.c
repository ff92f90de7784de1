/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended reliable connections in real time, as a program meets them: a domain of a file that two devices of
 * one process have open, a target of one with a shared receive queue of the other, events of all who hold it,
 * by both APIs.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/nic_net.h"

#define BUF    65536u
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
	struct ibv_mr *mr;
	uint8_t *buf;
};
/* a sends, and has made the target; b has the shared receive queue. */
static struct side a, b;
static struct ibv_qp *sender, *target;
static struct ibv_srq *srq;
static uint32_t srqn;
static char file[] = "/tmp/tidemark-xrc.XXXXXX";
static int fd;

static struct ibv_xrcd *open_domain(struct ibv_context *context, int descriptor, int oflags)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = descriptor,
					  .oflags = oflags};

	return ibv_open_xrcd(context, &attr);
}

static void open_side(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	ck_assert_ptr_nonnull(list);
	s->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	ck_assert_ptr_nonnull(s->context);
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 64, NULL, NULL, 0);
	s->buf = calloc(1, BUF);
	s->mr = ibv_reg_mr(s->pd, s->buf, BUF, ACCESS);
	ck_assert(s->pd && s->cq && s->mr);
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, enum ibv_qp_state to, int mask)
{
	attr->qp_state = to;
	ck_assert_int_eq(ibv_modify_qp(qp, attr, mask | IBV_QP_STATE), 0);
}

/* As programs do that give both ends what a reliable connection needs. */
static void to_rts(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {.port_num = 1,
				   .qp_access_flags = ACCESS,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = peer,
				   .max_dest_rd_atomic = 4,
				   .max_rd_atomic = 4,
				   .min_rnr_timer = 1,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .ah_attr = {.is_global = 1, .port_num = 1}};

	ck_assert_int_eq(ibv_query_gid(a.context, 1, 0, &attr.ah_attr.grh.dgid), 0);
	modify(qp, &attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(qp, &attr, IBV_QPS_RTR,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		       IBV_QP_MIN_RNR_TIMER);
	modify(qp, &attr, IBV_QPS_RTS,
	       IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

static void setup(void)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD};
	struct ibv_srq_init_attr_ex shared = {.attr = {.max_wr = 16, .max_sge = 1},
					      .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
							   IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
					      .srq_type = IBV_SRQT_XRC};

	open_side(&a);
	open_side(&b);
	strcpy(file + sizeof(file) - 7, "XXXXXX");
	fd = mkstemp(file);
	ck_assert_int_ge(fd, 0);
	unlink(file);
	ck_assert_ptr_null(open_domain(a.context, fd, 0));
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_ptr_null(open_domain(a.context, 12345, O_CREAT));
	ck_assert_int_eq(errno, EBADF);
	a.xrcd = open_domain(a.context, fd, O_CREAT | O_EXCL);
	ck_assert_ptr_nonnull(a.xrcd);
	ck_assert_ptr_null(open_domain(b.context, fd, O_CREAT | O_EXCL));
	ck_assert_int_eq(errno, EINVAL);
	b.xrcd = open_domain(b.context, dup(fd), 0);
	ck_assert_ptr_nonnull(b.xrcd);
	shared.pd = b.pd;
	shared.xrcd = b.xrcd;
	shared.cq = b.cq;
	srq = ibv_create_srq_ex(b.context, &shared);
	ck_assert(srq && !ibv_get_srq_num(srq, &srqn));
	init.xrcd = a.xrcd;
	target = ibv_create_qp_ex(a.context, &init);
	ck_assert_ptr_nonnull(target);
	init = (struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_XRC_SEND,
					    .send_cq = a.cq,
					    .cap = {.max_send_wr = 16, .max_send_sge = 1},
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .pd = a.pd,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND};
	sender = ibv_create_qp_ex(a.context, &init);
	ck_assert_ptr_nonnull(sender);
	to_rts(sender, target->qp_num);
	to_rts(target, sender->qp_num);
}

static void give(uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)b.buf, BUF, b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	ck_assert_int_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
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

	ck_assert_int_eq(ibv_post_send(sender, &wr, &bad), 0);
}

static struct ibv_wc wait_for(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	time_t start = time(NULL);

	while (!ibv_poll_cq(cq, 1, &wc))
		ck_assert_int_lt(time(NULL) - start, 20);
	return wc;
}

static void expect(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_for(cq);

	ck_assert_msg(wc.status == status, "%s", ibv_wc_status_str(wc.status));
}

static void expect_event(struct side *s, enum ibv_event_type type, struct ibv_qp *qp)
{
	struct pollfd pollfd = {.fd = s->context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	do {
		ck_assert_int_eq(poll(&pollfd, 1, 5000), 1);
		ck_assert_int_eq(ibv_get_async_event(s->context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	ck_assert_int_eq(event.event_type, type);
	ck_assert_ptr_eq(event.element.qp, qp);
}

/* --- */

START_TEST(two_contexts)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(sender);
	struct ibv_wc wc;

	for (uint32_t i = 0; i < BUF; i++)
		a.buf[i] = (uint8_t)(i * 7);
	give(3);
	request(IBV_WR_SEND, srqn, BUF);
	expect(a.cq, IBV_WC_SUCCESS);
	wc = wait_for(b.cq);
	ck_assert(wc.status == IBV_WC_SUCCESS && wc.wr_id == 3 && wc.byte_len == BUF);
	ck_assert_uint_eq(wc.qp_num, target->qp_num);
	ck_assert_mem_eq(a.buf, b.buf, BUF);
	memset(a.buf, 0x5a, BUF);
	request(IBV_WR_RDMA_WRITE, srqn, BUF);
	expect(a.cq, IBV_WC_SUCCESS);
	ck_assert_mem_eq(a.buf, b.buf, BUF);
	b.buf[77] = 1;
	request(IBV_WR_RDMA_READ, srqn, BUF);
	expect(a.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(a.buf[77], 1);
	give(4);
	ibv_wr_start(ex);
	ex->wr_id = 5;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, srqn);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf, 8);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	expect(a.cq, IBV_WC_SUCCESS);
	expect(b.cq, IBV_WC_SUCCESS);
}
END_TEST

/* b holds the target, too; a closes its device; it works on, and is refused by what it refuses. */
START_TEST(outlives_its_maker)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						     IBV_QP_OPEN_ATTR_TYPE,
					.qp_num = target->qp_num,
					.xrcd = b.xrcd,
					.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp *again = ibv_open_qp(b.context, &attr);

	ck_assert_ptr_nonnull(again);
	ck_assert_ptr_ne(again, target);
	attr.qp_num = sender->qp_num;
	ck_assert_ptr_null(ibv_open_qp(b.context, &attr));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(ibv_close_xrcd(b.xrcd), EBUSY);
	ck_assert_int_eq(ibv_destroy_qp(target), 0);
	ck_assert_int_eq(ibv_close_xrcd(a.xrcd), 0);
	give(1);
	request(IBV_WR_SEND, srqn, 8);
	expect(a.cq, IBV_WC_SUCCESS);
	expect(b.cq, IBV_WC_SUCCESS);
	request(IBV_WR_SEND, srqn + 1, 8);
	expect(a.cq, IBV_WC_REM_INV_REQ_ERR);
	expect_event(&b, IBV_EVENT_QP_REQ_ERR, again);
	ck_assert_int_eq(ibv_destroy_qp(again), 0);
	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
	ck_assert_int_eq(ibv_close_xrcd(b.xrcd), 0);
	ck_assert_ptr_null(open_domain(b.context, fd, 0));
	ck_assert_int_eq(errno, EAGAIN);
}
END_TEST

/* The device of whoever made the target is closed, with all that it has. */
START_TEST(maker_closes)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						     IBV_QP_OPEN_ATTR_TYPE,
					.qp_num = target->qp_num,
					.xrcd = b.xrcd,
					.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp_init_attr init = {
		.send_cq = b.cq, .cap = {.max_send_wr = 4, .max_send_sge = 1}, .qp_type = IBV_QPT_XRC_SEND};
	struct ibv_qp *again = ibv_open_qp(b.context, &attr);
	struct ibv_qp_attr state;

	ck_assert_ptr_nonnull(again);
	ck_assert_int_eq(ibv_close_device(a.context), 0);
	ck_assert_int_eq(ibv_query_qp(again, &state, IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(state.qp_state, IBV_QPS_RTS);
	ck_assert_int_eq(ibv_destroy_qp(again), 0);
	ck_assert_ptr_null(ibv_open_qp(b.context, &attr));
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
	return nic_net_run(suite);
}
