/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The manual pages of libibverbs, held against the soft RNIC in real time: what each call promises
 * of return values, attributes, limits, states and events, as rows of tables. Two devices that one
 * process has opened, a queue pair on each. What cannot be kept, and how it is refused, is in
 * docs/nic/reference.md.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "core/rt/asan.h"
#include "tests/core/provider/nic_fabric.h"
#include "tests/core/provider/nic_side.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define BUF	     (64u << 10)
#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define SIGNALED IBV_SEND_SIGNALED

static void open_one(struct side *s)
{
	open_side(s, BUF, ALL);
	s->rcq = ibv_create_cq(s->context, 64, NULL, NULL, 0);
	ck_assert_ptr_nonnull(s->rcq);
	s->attr.timeout = 8;
	s->attr.retry_cnt = 3;
}

static void setup(void)
{
	open_one(&a);
	open_one(&b);
}

/* --- work --- */

static int try_op(enum ibv_wr_opcode opcode, uint32_t len, uint64_t id, unsigned flags)
{
	struct ibv_sge sge = {(uintptr_t)a.buf, len, a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = flags,
				 .imm_data = htobe32(0x01020304),
				 .wr.rdma = {(uintptr_t)b.buf, b.mr->rkey}},
			   *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)b.buf;
		wr.wr.atomic.rkey = b.mr->rkey;
		wr.wr.atomic.compare_add = wr.wr.atomic.swap = 1;
	}
	return ibv_post_send(a.qp, &wr, &bad);
}

static void op(enum ibv_wr_opcode opcode, uint32_t len, uint64_t id, unsigned flags)
{
	ck_assert_int_eq(try_op(opcode, len, id, flags), 0);
}

/* --- ibv_modify_qp, ibv_query_qp --- */

TESTS(transition, TRANSITIONS)
{
	const struct transition *way = &transitions[_i];
	const enum ibv_qp_state from = way->to - 1;
	struct ibv_qp_attr attr, now;
	struct ibv_qp_init_attr init;

	make_qp(&a, way->type);
	make_qp(&b, way->type);
	go(&a, &b, from);
	attr = attr_to(&a, &b, way->to);
	/* Each that has to be there, missing; each that may not be there, too much. Nothing
	 * changes. */
	for (int bit = 1; bit < IBV_QP_RATE_LIMIT << 1; bit <<= 1)
		if (way->mask & bit)
			ck_assert_int_eq(
				ibv_modify_qp(a.qp, &attr, (way->mask & ~bit) | IBV_QP_STATE),
				EINVAL);
	ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, way->mask | IBV_QP_STATE | IBV_QP_CAP), EINVAL);
	ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, way->mask | IBV_QP_STATE | IBV_QP_RATE_LIMIT),
			 EINVAL);
	ck_assert_int_eq(
		ibv_modify_qp(a.qp, &attr, way->mask | IBV_QP_STATE | IBV_QP_PATH_MIG_STATE),
		EINVAL);
	/* Steps are not left out. */
	for (enum ibv_qp_state to = way->to + 1; to <= IBV_QPS_SQD; to++) {
		attr.qp_state = to;
		ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, way->mask | IBV_QP_STATE), EINVAL);
	}
	ck_assert_int_eq(state_of(&a), from);
	ck_assert_int_eq(a.qp->state, from);
	attr.qp_state = way->to;
	ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, way->mask | IBV_QP_STATE), 0);
	ck_assert_int_eq(a.qp->state, way->to);
	ck_assert_int_eq(ibv_query_qp(a.qp, &now, way->mask | IBV_QP_STATE | IBV_QP_CAP, &init), 0);
#define SAME(bit, field) ck_assert(!(way->mask & (bit)) || now.field == attr.field)
	SAME(IBV_QP_PKEY_INDEX, pkey_index);
	SAME(IBV_QP_PORT, port_num);
	SAME(IBV_QP_QKEY, qkey);
	SAME(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	SAME(IBV_QP_PATH_MTU, path_mtu);
	SAME(IBV_QP_DEST_QPN, dest_qp_num);
	SAME(IBV_QP_RQ_PSN, rq_psn);
	SAME(IBV_QP_SQ_PSN, sq_psn);
	SAME(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	SAME(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	SAME(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	SAME(IBV_QP_TIMEOUT, timeout);
	SAME(IBV_QP_RETRY_CNT, retry_cnt);
	SAME(IBV_QP_RNR_RETRY, rnr_retry);
	if (way->mask & IBV_QP_AV)
		ck_assert_mem_eq(&now.ah_attr, &attr.ah_attr, sizeof(attr.ah_attr));
	ck_assert_int_eq(now.qp_state, way->to);
	ck_assert(now.cap.max_send_wr >= WR && now.cap.max_recv_wr >= WR &&
		  now.cap.max_send_sge >= SGE && now.cap.max_recv_sge >= SGE &&
		  now.cap.max_inline_data >= INLINE);
	ck_assert(init.send_cq == a.scq && init.recv_cq == a.rcq && !init.srq &&
		  init.qp_type == way->type && !init.sq_sig_all);
	/* From each state to Error, and to Reset, from where all begins again. */
	to_state(&a, IBV_QPS_ERR, 0);
	ck_assert_int_eq(state_of(&a), IBV_QPS_ERR);
	to_state(&a, IBV_QPS_INIT, EINVAL);
	to_state(&a, IBV_QPS_RESET, 0);
	ck_assert_int_eq(state_of(&a), IBV_QPS_RESET);
	go(&a, &b, IBV_QPS_RTS);
	to_state(&a, IBV_QPS_RESET, 0);
}

static const struct value {
	int bit;
	enum ibv_qp_state from;
	size_t field;
	uint32_t wrong;
	size_t size;
} values[] = {
#define VALUE(bit, from, field, wrong)                                 \
	{                                                              \
		bit, from, offsetof(struct ibv_qp_attr, field), wrong, \
			sizeof(((struct ibv_qp_attr *)0)->field)       \
	}
	VALUE(IBV_QP_PKEY_INDEX, IBV_QPS_RESET, pkey_index, 1),
	VALUE(IBV_QP_PORT, IBV_QPS_RESET, port_num, 0),
	VALUE(IBV_QP_PORT, IBV_QPS_RESET, port_num, 2),
	VALUE(IBV_QP_ACCESS_FLAGS, IBV_QPS_RESET, qp_access_flags, 1u << 30),
	VALUE(IBV_QP_PATH_MTU, IBV_QPS_INIT, path_mtu, 0),
	VALUE(IBV_QP_PATH_MTU, IBV_QPS_INIT, path_mtu, IBV_MTU_4096 + 1),
	VALUE(IBV_QP_DEST_QPN, IBV_QPS_INIT, dest_qp_num, 1u << 24),
	VALUE(IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QPS_INIT, max_dest_rd_atomic, 255),
	VALUE(IBV_QP_MIN_RNR_TIMER, IBV_QPS_INIT, min_rnr_timer, 32),
	VALUE(IBV_QP_AV, IBV_QPS_INIT, ah_attr.is_global, 0),
	VALUE(IBV_QP_AV, IBV_QPS_INIT, ah_attr.grh.sgid_index, 200),
	VALUE(IBV_QP_AV, IBV_QPS_INIT, ah_attr.port_num, 2),
	VALUE(IBV_QP_MAX_QP_RD_ATOMIC, IBV_QPS_RTR, max_rd_atomic, 255),
	VALUE(IBV_QP_TIMEOUT, IBV_QPS_RTR, timeout, 32),
	VALUE(IBV_QP_RETRY_CNT, IBV_QPS_RTR, retry_cnt, 8),
	VALUE(IBV_QP_RNR_RETRY, IBV_QPS_RTR, rnr_retry, 8),
	VALUE(IBV_QP_CUR_STATE, IBV_QPS_RTR, cur_qp_state, IBV_QPS_INIT),
};

/* A value that there is not: none of the attributes is modified, the state is not either. */
TESTS(wrong_value, COUNT(values))
{
	const struct value *value = &values[_i];
	struct ibv_qp_attr attr, before, now;
	struct ibv_qp_init_attr init;
	int mask = value->bit | IBV_QP_STATE;

	make_qp(&a, IBV_QPT_RC);
	make_qp(&b, IBV_QPT_RC);
	go(&a, &b, value->from);
	attr = attr_to(&a, &b, value->from + 1);
	for (unsigned i = 0; i < TRANSITIONS; i++)
		if (transitions[i].type == IBV_QPT_RC && transitions[i].to == attr.qp_state)
			mask |= transitions[i].mask;
	memcpy((char *)&attr + value->field, &value->wrong, value->size);
	ck_assert_int_eq(ibv_query_qp(a.qp, &before, mask, &init), 0);
	ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, mask), EINVAL);
	ck_assert_int_eq(ibv_query_qp(a.qp, &now, mask, &init), 0);
	ck_assert_mem_eq(&now, &before, sizeof(now));
}

/* Drained: what is posted waits, what is under way ends, and that is told; what may be changed
 * then. */
TEST(drained)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1}, now;
	struct ibv_qp_init_attr init;

	connect_both(IBV_QPT_RC);
	op(IBV_WR_SEND, 8, 1, SIGNALED);
	ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	op(IBV_WR_RDMA_WRITE, 8, 2, SIGNALED);
	ck_assert_int_eq(ibv_query_qp(a.qp, &now, IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(now.qp_state, IBV_QPS_SQD);
	ck_assert_int_eq(now.sq_draining, 1);
	give(&b, 64, 1);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect_event(&a, IBV_EVENT_SQ_DRAINED, a.qp);
	ck_assert_int_eq(ibv_query_qp(a.qp, &now, IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(now.sq_draining, 0);
	nothing_in(a.scq);
	attr.timeout = 9;
	attr.retry_cnt = 5;
	ck_assert_int_eq(
		ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT), 0);
	ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN), EINVAL);
	ck_assert_int_eq(ibv_query_qp(a.qp, &now, IBV_QP_TIMEOUT, &init), 0);
	ck_assert(now.timeout == 9 && now.retry_cnt == 5);
	to_state(&a, IBV_QPS_RTS, 0);
	expect(a.scq, 2, IBV_WC_SUCCESS);
}

/* --- objects: limits, what they say of themselves, what is in use --- */

TEST(limits)
{
	struct ibv_device_attr device;
	struct ibv_qp_init_attr good = init_of(&a, IBV_QPT_RC), init;
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};

	ck_assert_int_eq(ibv_query_device(a.context, &device), 0);
	const int cqes[] = {0, -1, device.max_cqe + 1};
	for (unsigned i = 0; i < COUNT(cqes); i++) {
		ck_assert_ptr_null(ibv_create_cq(a.context, cqes[i], NULL, NULL, 0));
		ck_assert_int_eq(errno, EINVAL);
		ck_assert_int_eq(ibv_resize_cq(a.scq, cqes[i]), EINVAL);
	}
	ck_assert_ptr_null(ibv_create_cq(a.context, 1, NULL, NULL, a.context->num_comp_vectors));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_create_cq(a.context, 1, NULL, NULL, -1));
	struct ibv_cq *cq = ibv_create_cq(a.context, device.max_cqe, &device, NULL, 0);
	ck_assert_ptr_nonnull(cq);
	ck_assert_int_ge(cq->cqe, device.max_cqe);
	ck_assert_ptr_eq(cq->cq_context, &device);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);

	const struct ibv_qp_cap caps[] = {
		{(uint32_t)device.max_qp_wr + 1, 1, 1, 1, 0},
		{1, (uint32_t)device.max_qp_wr + 1, 1, 1, 0},
		{1, 1, (uint32_t)device.max_sge + 1, 1, 0},
		{1, 1, 1, (uint32_t)device.max_sge + 1, 0},
		{1, 1, 1, 1, 1u << 20},
	};
	for (unsigned i = 0; i < COUNT(caps); i++) {
		init = good;
		init.cap = caps[i];
		ck_assert_ptr_null(ibv_create_qp(a.pd, &init));
		ck_assert_int_eq(errno, EINVAL);
	}
	init = good;
	init.cap = (struct ibv_qp_cap){(uint32_t)device.max_qp_wr, (uint32_t)device.max_qp_wr,
				       (uint32_t)device.max_sge, (uint32_t)device.max_sge, 0};
	struct ibv_qp *qp = ibv_create_qp(a.pd, &init);
	ck_assert_ptr_nonnull(qp);
	ck_assert(init.cap.max_send_wr >= (uint32_t)device.max_qp_wr);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	/* What is left out is an error, what belongs to another device as well. */
	init = good;
	init.send_cq = NULL;
	ck_assert_ptr_null(ibv_create_qp(a.pd, &init));
	init = good;
	init.recv_cq = b.rcq;
	ck_assert_ptr_null(ibv_create_qp(a.pd, &init));
	ck_assert_int_eq(errno, EINVAL);
	/* Shared receive queues: their limits, and which queue pairs may use one. */
	a.srq = ibv_create_srq(a.pd, &srq);
	ck_assert_ptr_nonnull(a.srq);
	ck_assert(srq.attr.max_wr >= 1 && srq.attr.max_sge >= 1);
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_UC};
	for (unsigned i = 0; i < COUNT(types); i++) {
		init = init_of(&a, types[i]);
		init.cap.max_recv_wr = init.cap.max_recv_sge = UINT32_MAX; /* not looked at */
		qp = ibv_create_qp(a.pd, &init);
		ck_assert(types[i] == IBV_QPT_UC ? !qp && errno == EINVAL
						 : qp && !ibv_destroy_qp(qp));
	}
	srq.attr.max_wr = (uint32_t)device.max_srq_wr + 1;
	ck_assert_ptr_null(ibv_create_srq(a.pd, &srq));
	srq.attr = (struct ibv_srq_attr){.max_wr = 1, .max_sge = (uint32_t)device.max_srq_sge + 1};
	ck_assert_ptr_null(ibv_create_srq(a.pd, &srq));
	ck_assert_int_eq(errno, EINVAL);
}

/* Nothing goes that something else stands on; then all goes, from the top down. */
TEST(in_use)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(a.context);
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_ah_attr path = path_to(&b.gid);
	struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = SIGNALED};
	struct ibv_pd *pd = ibv_alloc_pd(a.context);
	struct ibv_ah *ah;
	struct ibv_mw *mw;

	ck_assert_ptr_nonnull(channel);
#define BUSY(create, destroy)                                \
	do {                                                 \
		ck_assert((create) != NULL);                 \
		ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY); \
		ck_assert_int_eq(destroy, 0);                \
	} while (0)
	struct ibv_mr *mr;
	BUSY(mr = ibv_reg_mr(pd, a.buf, 8, 0), ibv_dereg_mr(mr));
	BUSY(ah = ibv_create_ah(pd, &path), ibv_destroy_ah(ah));
	BUSY(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1), ibv_dealloc_mw(mw));
	BUSY(a.srq = ibv_create_srq(pd, &srq), ibv_destroy_srq(a.srq));
	a.srq = ibv_create_srq(a.pd, &srq);
	struct ibv_cq *cq = ibv_create_cq(a.context, 4, NULL, channel, 0), *plain = a.rcq;
	ck_assert_ptr_nonnull(cq);
	a.rcq = cq;
	make_qp(&a, IBV_QPT_RC);
	ck_assert_int_eq(ibv_destroy_cq(cq), EBUSY);
	ck_assert_int_eq(ibv_destroy_cq(a.scq), EBUSY);
	ck_assert_int_eq(ibv_destroy_srq(a.srq), EBUSY);
	ck_assert_int_eq(ibv_destroy_comp_channel(channel), EBUSY);
	ck_assert_int_eq(ibv_dealloc_pd(a.pd), EBUSY);
	ck_assert_int_eq(ibv_destroy_qp(a.qp), 0);
	ck_assert_int_eq(ibv_destroy_srq(a.srq), 0);
	ck_assert_int_eq(ibv_destroy_comp_channel(channel), EBUSY);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
	ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
	/* A region with a window. */
	a.srq = NULL;
	a.rcq = plain;
	connect_both(IBV_QPT_RC);
	mr = ibv_reg_mr(a.pd, a.buf, BUF, ALL | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1);
	ck_assert(mr && mw);
	bind.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)a.buf, 64,
						   IBV_ACCESS_REMOTE_READ};
	ck_assert_int_eq(ibv_bind_mw(a.qp, mw, &bind), 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_dereg_mr(mr), EBUSY);
	ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}

/* A program that has overwritten an object's handle is told that there is no such object, which
 * stays as it was. */
TEST(handles)
{
	struct ibv_qp_init_attr init = init_of(&a, IBV_QPT_RC), query;
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_ah_attr path = path_to(&b.gid);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_srq_attr srq_attr = {.max_wr = 8};
	struct ibv_srq *srq = ibv_create_srq(a.pd, &srq_init);
	struct ibv_mw *mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
	struct ibv_ah *ah = ibv_create_ah(a.pd, &path);
	struct ibv_pd *pd = ibv_alloc_pd(a.context);

	make_qp(&a, IBV_QPT_RC);
	ck_assert(srq && mw && ah && pd);
#define GARBLED(object, check)            \
	do {                              \
		(object)->handle ^= 0x55; \
		errno = 0;                \
		check;                    \
		(object)->handle ^= 0x55; \
	} while (0)
#define NONE(object, call)    GARBLED(object, ck_assert_int_eq(call, ENOENT))
#define NOTHING(object, call) GARBLED(object, ck_assert(!(call) && errno == ENOENT))
	NONE(pd, ibv_dealloc_pd(pd));
	NOTHING(pd, ibv_reg_mr(pd, a.buf, 8, 0));
	NOTHING(pd, ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	NOTHING(pd, ibv_create_qp(pd, &init));
	NOTHING(pd, ibv_create_srq(pd, &srq_init));
	NOTHING(pd, ibv_create_ah(pd, &path));
	NOTHING(a.scq, ibv_create_qp(pd, &init));
	NOTHING(a.rcq, ibv_create_qp(pd, &init));
	init.srq = srq;
	NOTHING(srq, ibv_create_qp(pd, &init));
	NONE(a.scq, ibv_destroy_cq(a.scq));
	NONE(a.scq, ibv_resize_cq(a.scq, 10));
	NONE(a.scq, ibv_req_notify_cq(a.scq, 0));
	NONE(a.mr, ibv_dereg_mr(a.mr));
	NONE(mw, ibv_dealloc_mw(mw));
	NONE(ah, ibv_destroy_ah(ah));
	NONE(srq, ibv_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR));
	NONE(srq, ibv_query_srq(srq, &srq_attr));
	NONE(srq, ibv_destroy_srq(srq));
	NONE(a.qp, ibv_modify_qp(a.qp, &attr, IBV_QP_STATE));
	NONE(a.qp, ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &query));
	NONE(a.qp, ibv_destroy_qp(a.qp));
	/* Another context has none, either. */
	pd->context = b.context;
	ck_assert_int_eq(ibv_dealloc_pd(pd), ENOENT);
	pd->context = a.context;
	ck_assert_int_eq(ibv_destroy_qp(a.qp), 0);
	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_eq(ibv_dereg_mr(a.mr), 0);
	ck_assert_int_eq(ibv_dealloc_pd(a.pd), 0);
	ck_assert_int_eq(ibv_destroy_cq(a.scq), 0);
}

/* Many contexts at a time; numbers of queue pairs that do not run out as long as some are free. */
TEST(much)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = init_of(&a, IBV_QPT_RC);
	struct ibv_context *contexts[150];
	struct ibv_device_attr device;

	for (unsigned i = 0; i < COUNT(contexts); i++) {
		contexts[i] = ibv_open_device(list[0]);
		ck_assert_ptr_nonnull(contexts[i]);
	}
	for (unsigned i = 0; i < COUNT(contexts); i++)
		ck_assert_int_eq(ibv_close_device(contexts[i]), 0);
	ck_assert_int_eq(ibv_query_device(a.context, &device), 0);
	make_qp(&a, IBV_QPT_RC);
	for (int i = 0; i < device.max_qp + 100; i++) {
		struct ibv_qp *qp = ibv_create_qp(a.pd, &init);

		ck_assert_msg(qp, "after %d: %s", i, strerror(errno));
		ck_assert_uint_ne(qp->qp_num, a.qp->qp_num);
		ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	}
	make_qp(&b, IBV_QPT_RC);
	go(&a, &b, IBV_QPS_RTS);
	go(&b, &a, IBV_QPS_RTS);
	op(IBV_WR_RDMA_WRITE, 8, 1, SIGNALED);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ibv_free_device_list(list);
}

static size_t memory(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	size_t all, resident = 0;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%zu %zu", &all, &resident), 2);
	fclose(file);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Connections, each with queues of its own, that come and go: their memory serves the next ones. */
TEST(come_and_go)
{
	struct ibv_cq *const cq[] = {a.scq, a.rcq};
	size_t before = 0;

	for (unsigned i = 0; i < 600; i++) {
		if (i == 100)
			before = memory();
		a.scq = ibv_create_cq(a.context, 64, NULL, NULL, 0);
		a.rcq = ibv_create_cq(a.context, 64, NULL, NULL, 0);
		connect_both(IBV_QPT_RC);
		for (unsigned k = 0; k < WR; k++) {
			give(&a, 64, k);
			give(&b, 64, k);
			op(IBV_WR_SEND, 8, k, SIGNALED);
		}
		for (unsigned k = 0; k < WR; k++) {
			expect(a.scq, k, IBV_WC_SUCCESS);
			expect(b.rcq, k, IBV_WC_SUCCESS);
		}
		ck_assert_int_eq(ibv_destroy_qp(a.qp), 0);
		ck_assert_int_eq(ibv_destroy_qp(b.qp), 0);
		ck_assert_int_eq(ibv_destroy_cq(a.scq), 0);
		ck_assert_int_eq(ibv_destroy_cq(a.rcq), 0);
	}
	if (!TM_ASAN) /* which keeps what is freed */
		ck_assert_uint_lt(memory(), before + 500 * 1024);
	a.scq = cq[0];
	a.rcq = cq[1];
}

/* As many as the device says, and no more; one that goes makes room. */
#define AS_MANY(max, type, create, destroy)                                                     \
	do {                                                                                    \
		int made_ = 0;                                                                  \
		type *last_ = NULL, *one_;                                                      \
		while ((one_ = (create))) {                                                     \
			last_ = one_;                                                           \
			ck_assert_int_le(++made_, max);                                         \
		}                                                                               \
		ck_assert_msg(made_ >= (max)-10 && errno == ENOMEM, "%d of %d: %s", made_, max, \
			      strerror(errno));                                                 \
		ck_assert_int_eq(destroy(last_), 0);                                            \
		ck_assert_ptr_nonnull(create);                                                  \
	} while (0)

TEST(as_many)
{
	struct ibv_ah_attr path = path_to(&b.gid);
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr init = init_of(&a, IBV_QPT_RC);
	struct ibv_device_attr device;

	ck_assert_int_eq(ibv_query_device(a.context, &device), 0);
	AS_MANY(device.max_pd, struct ibv_pd, ibv_alloc_pd(a.context), ibv_dealloc_pd);
	AS_MANY(device.max_cq, struct ibv_cq, ibv_create_cq(a.context, 10, NULL, NULL, 0),
		ibv_destroy_cq);
	AS_MANY(device.max_srq, struct ibv_srq, ibv_create_srq(a.pd, &srq), ibv_destroy_srq);
	AS_MANY(device.max_ah, struct ibv_ah, ibv_create_ah(a.pd, &path), ibv_destroy_ah);
	AS_MANY(device.max_qp, struct ibv_qp, ibv_create_qp(a.pd, &init), ibv_destroy_qp);
	AS_MANY(device.max_mw, struct ibv_mw, ibv_alloc_mw(b.pd, IBV_MW_TYPE_1), ibv_dealloc_mw);
	AS_MANY(device.max_mr, struct ibv_mr, ibv_reg_mr(a.pd, a.buf, 4096, 0), ibv_dereg_mr);
}

/* What lists may have in them that no byte of a message comes to; messages of nothing look at no
 * key. */
TEST(lists)
{
	struct ibv_sge sge = {(uintptr_t)b.buf, BUF + 32, b.mr->lkey},
		       none = {(uintptr_t)a.buf - 64, 0, 1};
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &none,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = SIGNALED,
				 .wr.rdma = {(uintptr_t)b.buf - 64, b.mr->rkey}},
			   *bad;

	connect_both(IBV_QPT_RC);
	/* Longer than its region, which the message is not. */
	ck_assert_int_eq(ibv_post_recv(b.qp, &recv, &bad_recv), 0);
	op(IBV_WR_SEND, BUF, 1, SIGNALED);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(b.rcq, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_RDMA_READ;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	expect(a.scq, 2, IBV_WC_SUCCESS);
}

static const struct shown {
	int region, window;
	enum ibv_wc_status status;
} shown[] = {
	{ALL | IBV_ACCESS_MW_BIND, ALL & ~IBV_ACCESS_LOCAL_WRITE, IBV_WC_SUCCESS},
	{IBV_ACCESS_MW_BIND, 0, IBV_WC_SUCCESS},
	{ALL, 0, IBV_WC_MW_BIND_ERR},
	{IBV_ACCESS_MW_BIND, IBV_ACCESS_REMOTE_READ, IBV_WC_SUCCESS},
	{IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS},
	{IBV_ACCESS_MW_BIND, IBV_ACCESS_REMOTE_WRITE, IBV_WC_MW_BIND_ERR},
	{IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_SUCCESS},
	{IBV_ACCESS_MW_BIND, IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_MW_BIND_ERR},
};

/* What a window of each type may show of a region; its key is what the window's holder has then. */
TESTS(bound, 2 * COUNT(shown))
{
	const struct shown *row = &shown[(unsigned)_i % COUNT(shown)];
	const enum ibv_mw_type type = (unsigned)_i < COUNT(shown) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	struct ibv_mr *mr = ibv_reg_mr(b.pd, b.buf, BUF, row->region);
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, type);
	struct ibv_mw_bind_info info = {mr, (uintptr_t)b.buf, 64, (unsigned)row->window};
	struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = SIGNALED, .bind_info = info};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .opcode = IBV_WR_BIND_MW,
				 .send_flags = SIGNALED,
				 .bind_mw = {mw, 0x12345677, info}},
			   *bad;
	uint32_t before = mw->rkey;

	ck_assert(mr && mw);
	connect_both(IBV_QPT_RC);
	ck_assert_int_eq(type == IBV_MW_TYPE_1 ? ibv_bind_mw(b.qp, mw, &bind)
					       : ibv_post_send(b.qp, &wr, &bad),
			 0);
	expect(b.scq, 1, row->status);
	if (row->status != IBV_WC_SUCCESS)
		return;
	ck_assert_uint_eq(mw->rkey >> 8, before >> 8);
	if (type == IBV_MW_TYPE_2)
		ck_assert_uint_eq(mw->rkey & 0xff, 0x77);
	if (!(row->window & IBV_ACCESS_REMOTE_READ))
		return;
	b.mr = mr;
	b.mr->rkey = mw->rkey;
	op(IBV_WR_RDMA_READ, 64, 3, SIGNALED);
	expect(a.scq, 3, IBV_WC_SUCCESS);
	op(IBV_WR_RDMA_READ, 65, 4, SIGNALED);
	expect(a.scq, 4, IBV_WC_REM_ACCESS_ERR);
}

/* Every set of rights; remote writing and atomics want local writing. */
TEST(rights)
{
	static const int flags[] = {IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE,
				    IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC,
				    IBV_ACCESS_MW_BIND};
	const int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_mr *mr;

	for (unsigned set = 0; set < 1u << COUNT(flags); set++) {
		int access = IBV_ACCESS_RELAXED_ORDERING;
		for (unsigned i = 0; i < COUNT(flags); i++)
			access |= set >> i & 1 ? flags[i] : 0;
		mr = ibv_reg_mr(a.pd, a.buf, 4096, access);
		if (access & writes && !(access & IBV_ACCESS_LOCAL_WRITE)) {
			ck_assert(!mr && errno == EINVAL);
			continue;
		}
		ck_assert_ptr_nonnull(mr);
		ck_assert(mr->addr == a.buf && mr->length == 4096 && mr->pd == a.pd &&
			  mr->context == a.context);
		ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	}
	ck_assert(!ibv_reg_mr(a.pd, a.buf, 0, 0) && errno == EINVAL);
	ck_assert(!ibv_reg_mr(a.pd, a.buf, 8, 1 << 15) && errno == EINVAL);
	ck_assert(!ibv_reg_mr(a.pd, a.buf, SIZE_MAX, 0) && errno == EINVAL);
}

/* --- posting --- */

/* ibv_post_send(3)'s table; SEND with invalidate on UC, for which InfiniBand has no packet, is
 * docs/nic/reference.md's. */
static const struct posted {
	enum ibv_wr_opcode opcode;
	bool ud, uc;
	enum ibv_wc_opcode done, came; /* at the sender, at the receiver */
	bool receives, imm;
} posted[] = {
	{IBV_WR_SEND, true, true, IBV_WC_SEND, IBV_WC_RECV, true, false},
	{IBV_WR_SEND_WITH_IMM, true, true, IBV_WC_SEND, IBV_WC_RECV, true, true},
	{IBV_WR_RDMA_WRITE, false, true, IBV_WC_RDMA_WRITE, 0, false, false},
	{
		IBV_WR_RDMA_WRITE_WITH_IMM,
		false,
		true,
		IBV_WC_RDMA_WRITE,
		IBV_WC_RECV_RDMA_WITH_IMM,
		true,
		true,
	},
	{IBV_WR_RDMA_READ, false, false, IBV_WC_RDMA_READ, 0, false, false},
	{IBV_WR_ATOMIC_CMP_AND_SWP, false, false, IBV_WC_COMP_SWAP, 0, false, false},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, false, false, IBV_WC_FETCH_ADD, 0, false, false},
};

TESTS(opcode_table, 2 * COUNT(posted))
{
	static const uint32_t sizes[] = {8, 0, 1, 1024, 1025, 5000};
	const struct posted *row = &posted[_i % COUNT(posted)];
	const enum ibv_qp_type type = (unsigned)_i < COUNT(posted) ? IBV_QPT_UC : IBV_QPT_RC;
	bool atomic = row->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		      row->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

	connect_both(type);
	if (type == IBV_QPT_UC && !row->uc) {
		ck_assert_int_eq(try_op(row->opcode, 8, 1, SIGNALED), EINVAL);
		return;
	}
	for (unsigned i = 0; i < (atomic ? 1 : COUNT(sizes)); i++) {
		if (row->receives)
			give(&b, BUF, 50 + i);
		op(row->opcode, sizes[i], i, SIGNALED | IBV_SEND_SOLICITED);
		struct ibv_wc wc = wait_for(a.scq);
		ck_assert_msg(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		ck_assert_int_eq(wc.opcode, row->done);
		ck_assert_uint_eq(wc.wr_id, i);
		ck_assert_uint_eq(wc.qp_num, a.qp->qp_num);
		if (row->opcode == IBV_WR_RDMA_READ || atomic)
			ck_assert_uint_eq(wc.byte_len, sizes[i]);
		if (!row->receives)
			continue;
		wc = wait_for(b.rcq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(wc.opcode, row->came);
		ck_assert_uint_eq(wc.wr_id, 50 + i);
		ck_assert_uint_eq(wc.byte_len, sizes[i]);
		ck_assert_uint_eq(wc.qp_num, b.qp->qp_num);
		ck_assert_uint_eq(wc.wc_flags, row->imm ? IBV_WC_WITH_IMM : 0);
		if (row->imm)
			ck_assert_mem_eq(&wc.imm_data, "\1\2\3\4", 4);
	}
}

TEST(post_in_states)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR};
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};

	for (unsigned t = 0; t < COUNT(types); t++)
		for (unsigned i = 0; i < COUNT(states); i++) {
			make_qp(&a, types[t]);
			make_qp(&b, types[t]);
			go(&a, &b, states[i]);
			ck_assert_int_eq(try_op(IBV_WR_SEND, 8, 1, 0), EINVAL);
			ck_assert_int_eq(try_recv(&a, 8, 1),
					 states[i] == IBV_QPS_RESET ? EINVAL : 0);
			nothing_in(a.scq);
			nothing_in(a.rcq);
			ck_assert_int_eq(ibv_destroy_qp(a.qp), 0);
			ck_assert_int_eq(ibv_destroy_qp(b.qp), 0);
		}
	/* In the error state both are taken, and flushed, those that were there first. */
	make_qp(&a, IBV_QPT_RC);
	make_qp(&b, IBV_QPT_RC);
	go(&a, &b, IBV_QPS_RTS);
	give(&a, 8, 1);
	to_state(&a, IBV_QPS_ERR, 0);
	op(IBV_WR_SEND, 8, 3, 0);
	give(&a, 8, 2);
	expect(a.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	expect(a.rcq, 2, IBV_WC_WR_FLUSH_ERR);
	expect(a.scq, 3, IBV_WC_WR_FLUSH_ERR);
}

/* A list is carried out up to the first that cannot be. */
TEST(bad_wr)
{
	struct ibv_sge sge[SGE + 1] = {{0}}, *none = NULL;
	struct ibv_send_wr wr[4] = {{0}}, *bad = NULL;
	struct ibv_recv_wr recv[3] = {{0}}, *bad_recv = NULL;

	connect_both(IBV_QPT_RC);
	for (unsigned i = 0; i < SGE + 1; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)a.buf, 4, a.mr->lkey};
	for (unsigned i = 0; i < 4; i++)
		wr[i] = (struct ibv_send_wr){.wr_id = i,
					     .next = i < 3 ? &wr[i + 1] : NULL,
					     .sg_list = sge,
					     .num_sge = SGE,
					     .opcode = IBV_WR_RDMA_WRITE,
					     .send_flags = SIGNALED,
					     .wr.rdma = {(uintptr_t)b.buf, b.mr->rkey}};
	wr[2].num_sge = SGE + 1;
	ck_assert_int_eq(ibv_post_send(a.qp, wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr[2]);
	expect(a.scq, 0, IBV_WC_SUCCESS);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	nothing_in(a.scq);
	/* More inline than there is room for; READ has none. */
	wr[3].send_flags |= IBV_SEND_INLINE;
	sge[0].length = INLINE + 1;
	wr[3].num_sge = 1;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr[3], &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr[3]);
	wr[3].opcode = IBV_WR_RDMA_READ;
	sge[0].length = 4;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr[3], &bad), EINVAL);
	/* Inline: the key is not looked at, the buffer is the program's again at once. */
	wr[3].opcode = IBV_WR_RDMA_WRITE;
	sge[0] = (struct ibv_sge){(uintptr_t)a.buf, INLINE, 0xdeadbeef};
	memset(a.buf, 7, INLINE);
	ck_assert_int_eq(ibv_post_send(a.qp, &wr[3], &bad), 0);
	memset(a.buf, 9, INLINE);
	expect(a.scq, 3, IBV_WC_SUCCESS);
	ck_assert(b.buf[0] == 7 && b.buf[INLINE - 1] == 7);
	/* Receive requests. */
	for (unsigned i = 0; i < 3; i++)
		recv[i] = (struct ibv_recv_wr){
			.wr_id = i, .next = i < 2 ? &recv[i + 1] : NULL, .sg_list = none};
	recv[1].num_sge = SGE + 1;
	recv[1].sg_list = sge;
	ck_assert_int_eq(ibv_post_recv(a.qp, recv, &bad_recv), EINVAL);
	ck_assert_ptr_eq(bad_recv, &recv[1]);
	for (unsigned i = 1; i < WR; i++)
		ck_assert_int_eq(ibv_post_recv(a.qp, &recv[2], &bad_recv), 0);
	ck_assert_int_eq(ibv_post_recv(a.qp, &recv[2], &bad_recv), ENOMEM);
	ck_assert_ptr_eq(bad_recv, &recv[2]);
}

/* The send queue: full at its size; one that is signaled gives back those before it. */
TEST(queue_room)
{
	connect_both(IBV_QPT_RC);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < WR; i++)
			op(IBV_WR_RDMA_WRITE, 8, i, i == WR - 1 ? SIGNALED : 0);
		ck_assert_int_eq(try_op(IBV_WR_RDMA_WRITE, 8, 99, SIGNALED), ENOMEM);
		expect(a.scq, WR - 1, IBV_WC_SUCCESS);
		nothing_in(a.scq);
	}
	/* All are signaled where the queue pair says so. */
	struct ibv_qp_init_attr init = init_of(&a, IBV_QPT_RC);
	init.sq_sig_all = 1;
	a.qp = ibv_create_qp(a.pd, &init);
	make_qp(&b, IBV_QPT_RC);
	go(&a, &b, IBV_QPS_RTS);
	go(&b, &a, IBV_QPS_RTS);
	for (unsigned i = 0; i < 4; i++)
		op(IBV_WR_RDMA_WRITE, 8, i, 0);
	for (unsigned i = 0; i < 4; i++)
		expect(a.scq, i, IBV_WC_SUCCESS);
}

/* --- what goes wrong --- */

enum fault {
	BAD_LKEY,
	BAD_KEYS,
	SHORT_LIST,
	BAD_RKEY,
	BEYOND,
	NO_RIGHT,
	NO_QP_RIGHT,
	UNALIGNED,
	TOO_LONG,
	SHORT_RECEIVE,
	BAD_RECEIVE_KEY,
	NOT_READY,
	NOBODY
};

static const struct wrong {
	enum fault fault;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_status status,
		received; /* the latter: of the receive request, if one is hurt */
	enum ibv_qp_state peer;
	enum ibv_event_type event; /* the peer's, QP_FATAL: none */
} wrongs[] = {
	{BAD_LKEY, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR, 0, IBV_QPS_RTS, IBV_EVENT_QP_FATAL},
	{BAD_LKEY, IBV_WR_SEND, IBV_WC_LOC_PROT_ERR, 0, IBV_QPS_RTS, IBV_EVENT_QP_FATAL},
	{BAD_LKEY, IBV_WR_RDMA_READ, IBV_WC_LOC_PROT_ERR, 0, IBV_QPS_RTS, IBV_EVENT_QP_FATAL},
	{BAD_LKEY, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_LOC_PROT_ERR, 0, IBV_QPS_RTS,
	 IBV_EVENT_QP_FATAL},
	/* Cards look at the place for a result when they have it. */
	{BAD_KEYS, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR, 0, IBV_QPS_RTS, IBV_EVENT_QP_FATAL},
	{BAD_KEYS, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_ACCESS_ERR},
	{BAD_KEYS, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_REM_ACCESS_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_ACCESS_ERR},
	{SHORT_LIST, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_LOC_LEN_ERR, 0, IBV_QPS_RTS,
	 IBV_EVENT_QP_FATAL},
	{BAD_RKEY, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_ACCESS_ERR},
	{BAD_RKEY, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR,
	 IBV_QPS_ERR, IBV_EVENT_QP_FATAL},
	{BAD_RKEY, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_ACCESS_ERR},
	{BAD_RKEY, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_REM_ACCESS_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_ACCESS_ERR},
	{BEYOND, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0, IBV_QPS_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{BEYOND, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 0, IBV_QPS_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{NO_RIGHT, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_ACCESS_ERR},
	{NO_RIGHT, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_ACCESS_ERR},
	{NO_RIGHT, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_REM_ACCESS_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_ACCESS_ERR},
	{NO_QP_RIGHT, IBV_WR_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_REQ_ERR},
	{NO_QP_RIGHT, IBV_WR_RDMA_READ, IBV_WC_REM_INV_REQ_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_REQ_ERR},
	{UNALIGNED, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_REM_INV_REQ_ERR, 0, IBV_QPS_ERR,
	 IBV_EVENT_QP_REQ_ERR},
	{TOO_LONG, IBV_WR_RDMA_WRITE, IBV_WC_LOC_LEN_ERR, 0, IBV_QPS_RTS, IBV_EVENT_QP_FATAL},
	{SHORT_RECEIVE, IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR,
	 IBV_EVENT_QP_FATAL},
	{BAD_RECEIVE_KEY, IBV_WR_SEND, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR,
	 IBV_EVENT_QP_FATAL},
	{NOT_READY, IBV_WR_SEND, IBV_WC_RNR_RETRY_EXC_ERR, 0, IBV_QPS_RTS, IBV_EVENT_QP_FATAL},
	{NOBODY, IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR, 0, IBV_QPS_RESET, IBV_EVENT_QP_FATAL},
};

static void arrange(enum fault fault, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct ibv_qp_attr attr = {.rnr_retry = 1, .qp_access_flags = 0, .qp_state = IBV_QPS_SQD};
	const bool atomic = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
			    wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	uint64_t *va = atomic ? &wr->wr.atomic.remote_addr : &wr->wr.rdma.remote_addr;
	uint32_t *rkey = atomic ? &wr->wr.atomic.rkey : &wr->wr.rdma.rkey;

	switch (fault) {
	case BAD_LKEY:
		sge->lkey ^= 0x5a5a00;
		break;
	case BAD_KEYS:
		sge->lkey ^= 0x5a5a00;
		*rkey ^= 0x5a5a00;
		break;
	case SHORT_LIST:
		sge->length = 7;
		break;
	case BAD_RKEY:
		*rkey ^= 0x5a5a00;
		break;
	case BEYOND:
		*va += BUF - 7;
		break;
	case NO_RIGHT:
		b.mr = ibv_reg_mr(b.pd, b.buf, BUF, IBV_ACCESS_LOCAL_WRITE);
		*rkey = b.mr->rkey;
		break;
	case NO_QP_RIGHT:
		ck_assert_int_eq(ibv_modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
		break;
	case UNALIGNED:
		*va += 4;
		break;
	case TOO_LONG:
		wr->num_sge = 2;
		sge[0].length = sge[1].length = 1u << 30;
		break;
	case SHORT_RECEIVE:
		give(&b, 7, 70);
		break;
	case BAD_RECEIVE_KEY:
		b.mr->lkey ^= 0x5a5a00;
		give(&b, 64, 70);
		b.mr->lkey ^= 0x5a5a00;
		break;
	case NOT_READY:
		ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
		ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_RNR_RETRY), 0);
		to_state(&a, IBV_QPS_RTS, 0);
		break;
	case NOBODY:
		to_state(&b, IBV_QPS_RESET, 0);
		break;
	}
}

/* The status, also of an unsignaled request; the requests after it in their order; both ends'
 * states; the event. */
TESTS(fails, COUNT(wrongs))
{
	const struct wrong *row = &wrongs[_i];
	struct ibv_sge sge[2] = {{(uintptr_t)a.buf, 8, a.mr->lkey},
				 {(uintptr_t)a.buf, 8, a.mr->lkey}};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = sge,
				 .num_sge = 1,
				 .opcode = row->opcode,
				 .wr.rdma = {(uintptr_t)b.buf, b.mr->rkey}},
			   *bad;
	struct ibv_wc wc;

	if (row->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    row->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)b.buf;
		wr.wr.atomic.rkey = b.mr->rkey;
	}
	connect_both(IBV_QPT_RC);
	arrange(row->fault, &wr, sge);
	give(&a, 8, 60);
	if (row->fault < SHORT_RECEIVE)
		give(&b, 8, 70);
	else if (row->fault < NOT_READY)
		give(&b, 8, 71);
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	op(IBV_WR_RDMA_WRITE, 8, 2, SIGNALED);
	op(IBV_WR_RDMA_WRITE, 8, 3, 0);
	wc = wait_for(a.scq);
	ck_assert_msg(wc.status == row->status, "%s, expected %s", ibv_wc_status_str(wc.status),
		      ibv_wc_status_str(row->status));
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_uint_eq(wc.qp_num, a.qp->qp_num);
	expect(a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect(a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect(a.rcq, 60, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(state_of(&a), IBV_QPS_ERR);
	ck_assert_int_eq(state_of(&b), row->peer);
	if (row->event != IBV_EVENT_QP_FATAL)
		expect_event(&b, row->event, b.qp);
	if (row->received) {
		expect(b.rcq, 70, row->received);
		if (row->fault >= SHORT_RECEIVE)
			expect(b.rcq, 71, IBV_WC_WR_FLUSH_ERR);
	} else if (row->peer == IBV_QPS_ERR) {
		expect(b.rcq, 70, IBV_WC_WR_FLUSH_ERR);
	} else {
		nothing_in(b.rcq);
	}
}

/* Seven times is for ever: the receiver may take its time. */
TEST(waits_for_receiver)
{
	const struct timespec while_ = {.tv_nsec = 100000000};

	connect_both(IBV_QPT_RC);
	op(IBV_WR_SEND, 8, 1, SIGNALED);
	nanosleep(&while_, NULL);
	nothing_in(a.scq);
	give(&b, 64, 2);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(b.rcq, 2, IBV_WC_SUCCESS);
}

/* No more READs and atomics under way than both ends have agreed on; the others wait. */
TEST(many_reads)
{
	struct ibv_qp_attr attr;

	make_qp(&a, IBV_QPT_RC);
	make_qp(&b, IBV_QPT_RC);
	go(&b, &a, IBV_QPS_RTS);
	go(&a, &b, IBV_QPS_RTR);
	attr = attr_to(&a, &b, IBV_QPS_RTS);
	attr.max_rd_atomic = 1;
	ck_assert_int_eq(
		ibv_modify_qp(a.qp, &attr, transitions[TRANSITIONS - 1].mask | IBV_QP_STATE), 0);
	for (unsigned i = 0; i < WR; i++)
		op(i % 2 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_READ, 8, i, SIGNALED);
	for (unsigned i = 0; i < WR; i++)
		expect(a.scq, i, IBV_WC_SUCCESS);
	uint64_t sum;
	memcpy(&sum, b.buf, sizeof(sum));
	ck_assert_uint_eq(sum, WR / 2);
}

/* The result has 8 bytes. The list may have room for more, and several pieces. */
TEST(result_of_atomic)
{
	static const uint32_t lengths[][2] = {{8, 0}, {9, 0}, {3, 5}, {4, 8}};
	const uint64_t before = 0x1122334455667788;
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = 2,
				 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				 .send_flags = SIGNALED,
				 .wr.atomic = {.remote_addr = (uintptr_t)b.buf,
					       .rkey = b.mr->rkey}},
			   *bad;
	uint8_t expected[64];

	connect_both(IBV_QPT_RC);
	for (unsigned i = 0; i < COUNT(lengths); i++) {
		const uint32_t first = lengths[i][0] < 8 ? lengths[i][0] : 8;

		memcpy(b.buf, &before, sizeof(before));
		memset(a.buf, 0xff, sizeof(expected));
		memset(expected, 0xff, sizeof(expected));
		memcpy(expected, &before, first);
		memcpy(expected + 32, (const char *)&before + first, 8 - first);
		sge[0] = (struct ibv_sge){(uintptr_t)a.buf, lengths[i][0], a.mr->lkey};
		sge[1] = (struct ibv_sge){(uintptr_t)a.buf + 32, lengths[i][1], a.mr->lkey};
		ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
		struct ibv_wc wc = wait_for(a.scq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.byte_len, 8);
		ck_assert_mem_eq(a.buf, expected, sizeof(expected));
	}
}

/* A fence: requests after it begin when the READ before it has ended. */
TEST(fenced)
{
	connect_both(IBV_QPT_RC);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t word = i;
		memcpy(b.buf, &word, sizeof(word));
		memset(a.buf, 0xff, 8);
		op(IBV_WR_RDMA_READ, 8, 1, 0);
		/* Writes back what was read: without the fence, what was there before. */
		struct ibv_sge sge = {(uintptr_t)a.buf, 8, a.mr->lkey};
		struct ibv_send_wr wr = {.wr_id = 2,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = SIGNALED | IBV_SEND_FENCE,
					 .wr.rdma = {(uintptr_t)b.buf + 64, b.mr->rkey}},
				   *bad;
		ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
		expect(a.scq, 2, IBV_WC_SUCCESS);
		ck_assert_mem_eq(b.buf + 64, &word, sizeof(word));
	}
}

/* --- completion queues and events --- */

TEST(resized)
{
	connect_both(IBV_QPT_RC);
	for (unsigned i = 0; i < 5; i++)
		op(IBV_WR_RDMA_WRITE, 8, i, SIGNALED);
	op(IBV_WR_RDMA_READ, 8, 5, SIGNALED);
	/* Begins when the READ has ended: by then six are in the queue. */
	give(&b, 64, 7);
	op(IBV_WR_SEND, 8, 6, IBV_SEND_FENCE);
	expect(b.rcq, 7, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_resize_cq(a.scq, 5), EINVAL);
	ck_assert_int_eq(a.scq->cqe, 64);
	ck_assert_int_eq(ibv_resize_cq(a.scq, 6), 0);
	ck_assert_int_ge(a.scq->cqe, 6);
	ck_assert_int_eq(ibv_resize_cq(a.scq, 100), 0);
	ck_assert_int_ge(a.scq->cqe, 100);
	for (unsigned i = 0; i < 6; i++)
		expect(a.scq, i, IBV_WC_SUCCESS);
}

TEST(overrun)
{
	struct ibv_cq *small = ibv_create_cq(a.context, 2, NULL, NULL, 0);

	a.scq = small;
	connect_both(IBV_QPT_RC);
	for (unsigned i = 0; i < (unsigned)small->cqe + 2; i++)
		op(IBV_WR_RDMA_WRITE, 8, i, SIGNALED);
	expect_event(&a, IBV_EVENT_CQ_ERR, small);
	expect_event(&a, IBV_EVENT_QP_FATAL, a.qp);
	ck_assert_int_eq(state_of(&a), IBV_QPS_ERR);
}

static const struct notified {
	int solicited_only;
	unsigned flags;
	bool fails, told;
} notified[] = {
	{0, 0, false, true},  {0, IBV_SEND_SOLICITED, false, true},
	{1, 0, false, false}, {1, IBV_SEND_SOLICITED, false, true},
	{1, 0, true, true},
};

/* One event for one call; solicited is what the sender has marked so, or what failed. */
TESTS(notification, COUNT(notified))
{
	const struct notified *row = &notified[_i];
	struct ibv_comp_channel *channel = ibv_create_comp_channel(b.context);
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *arg;

	b.rcq = ibv_create_cq(b.context, 16, &b, channel, 0);
	connect_both(IBV_QPT_RC);
	give(&b, row->fails ? 4 : 64, 1);
	give(&b, 64, 2);
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, row->solicited_only), 0);
	op(IBV_WR_SEND, 8, 1, SIGNALED | row->flags);
	wait_for(a.scq);
	ck_assert_int_eq(poll(&fd, 1, row->told ? 60000 : 100), row->told);
	if (row->told) {
		ck_assert_int_eq(ibv_get_cq_event(channel, &cq, &arg), 0);
		ck_assert(cq == b.rcq && arg == &b);
		ibv_ack_cq_events(cq, 1);
	}
	if (!row->fails && row->told) {
		op(IBV_WR_SEND, 8, 2, SIGNALED | row->flags);
		expect(a.scq, 2, IBV_WC_SUCCESS);
		ck_assert_int_eq(poll(&fd, 1, 100), 0);
	}
}

TEST(shared_queue_events)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq_attr attr = {.srq_limit = 3};

	b.srq = ibv_create_srq(b.pd, &init);
	connect_both(IBV_QPT_RC);
	for (unsigned i = 0; i < 4; i++)
		give(&b, 64, i);
	ck_assert_int_eq(ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT), 0);
	ck_assert_int_eq(ibv_query_srq(b.srq, &attr), 0);
	ck_assert(attr.srq_limit == 3 && attr.max_wr >= 8 && attr.max_sge >= 1);
	for (unsigned i = 0; i < 2; i++) {
		op(IBV_WR_SEND, 8, i, SIGNALED);
		expect(a.scq, i, IBV_WC_SUCCESS);
	}
	expect_event(&b, IBV_EVENT_SRQ_LIMIT_REACHED, b.srq);
	ck_assert_int_eq(ibv_query_srq(b.srq, &attr), 0);
	ck_assert_uint_eq(attr.srq_limit, 0); /* not armed any more */
	attr.srq_limit = 9;
	ck_assert_int_eq(ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	to_state(&b, IBV_QPS_ERR, 0);
	expect_event(&b, IBV_EVENT_QP_LAST_WQE_REACHED, b.qp);
}

/* --- datagrams --- */

TEST(datagram)
{
	struct ibv_ah_attr path = path_to(&b.gid), back;
	struct ibv_sge sge = {(uintptr_t)a.buf, 16, a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = SIGNALED,
				 .imm_data = htobe32(5)},
			   *bad;
	struct ibv_port_attr port;

	ck_assert_int_eq(ibv_query_port(a.context, 1, &port), 0);
	ck_assert_uint_ne(port.flags & IBV_QPF_GRH_REQUIRED, 0);
	connect_both(IBV_QPT_UD);
	/* Without a route there is no handle. */
	path.is_global = 0;
	ck_assert(!ibv_create_ah(a.pd, &path) && errno == EINVAL);
	path.is_global = 1;
	path.port_num = 2;
	ck_assert(!ibv_create_ah(a.pd, &path) && errno == EINVAL);
	path.port_num = 1;
	path.grh.traffic_class = 0x48;
	wr.wr.ud.ah = ibv_create_ah(a.pd, &path);
	ck_assert_ptr_nonnull(wr.wr.ud.ah);
	wr.wr.ud.remote_qpn = b.qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	give(&b, 100, 1);
	memset(a.buf, 3, 16);
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	expect(a.scq, 0, IBV_WC_SUCCESS);
	struct ibv_wc wc = wait_for(b.rcq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, GRH + 16);
	ck_assert_uint_eq(wc.src_qp, a.qp->qp_num);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	ck_assert_uint_eq(be32toh(wc.imm_data), 5);
	ck_assert(b.buf[GRH] == 3 && b.buf[GRH + 15] == 3);
	/* The header is an IPv4 header, over UDP; it has no service level for the way back. */
	ck_assert_uint_eq(wc.sl, 10);
	ck_assert_int_eq(ibv_init_ah_from_wc(b.context, 1, &wc, (struct ibv_grh *)b.buf, &back), 0);
	ck_assert_uint_eq(back.sl, 0);
	ck_assert_uint_eq(b.buf[GRH / 2 + 1], 0x48); /* IPv4's type of service */
	ck_assert_uint_eq(back.grh.traffic_class, 0x48);
	ck_assert(back.is_global && back.port_num == 1 && back.grh.sgid_index == 0);
	ck_assert_mem_eq(&back.grh.dgid, &a.gid, sizeof(a.gid));
	ck_assert_int_eq(ibv_init_ah_from_wc(b.context, 2, &wc, (struct ibv_grh *)b.buf, &back),
			 -1);
	/* To no queue pair: lost. Too long for the receive request: lost, and the request is
	 * used for the next one. */
	wr.wr.ud.remote_qpn = 0xdeadbeef;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	expect(a.scq, 0, IBV_WC_SUCCESS);
	wr.wr.ud.remote_qpn = b.qp->qp_num;
	give(&b, GRH + 16, 9);
	sge.length = 17;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	expect(a.scq, 0, IBV_WC_SUCCESS);
	sge.length = 16;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	expect(a.scq, 0, IBV_WC_SUCCESS);
	expect(b.rcq, 9, IBV_WC_SUCCESS);
	/* As long as the port's MTU, and no longer. */
	sge.length = 128u << port.active_mtu;
	give(&b, sge.length + GRH, 2);
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	expect(a.scq, 0, IBV_WC_SUCCESS);
	expect(b.rcq, 2, IBV_WC_SUCCESS);
	sge.length++;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	expect(a.scq, 0, IBV_WC_LOC_LEN_ERR);
	ck_assert_int_eq(state_of(&a), IBV_QPS_SQE);
	/* Back by RTS, and on. */
	to_state(&a, IBV_QPS_RTS, 0);
	sge.length = 16;
	give(&b, 100, 3);
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	expect(a.scq, 0, IBV_WC_SUCCESS);
	expect(b.rcq, 3, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < COUNT(posted); i++)
		if (!posted[i].ud)
			ck_assert_int_eq(try_op(posted[i].opcode, 8, 1, SIGNALED), EINVAL);
}

/* --- the port, keys, names --- */

TEST(queries)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	ck_assert_int_eq(ibv_query_device(a.context, &device), 0);
	ck_assert_int_eq(device.phys_port_cnt, 1);
	ck_assert_int_eq(ibv_query_port(a.context, 1, &port), 0);
	ck_assert(port.state == IBV_PORT_ACTIVE && port.link_layer == IBV_LINK_LAYER_ETHERNET);
	ck_assert(port.active_mtu <= port.max_mtu && port.max_msg_sz > 0);
	static const uint8_t ports[] = {0, 2, 255};
	for (unsigned i = 0; i < COUNT(ports); i++) {
		ck_assert_int_eq(ibv_query_port(a.context, ports[i], &port), EINVAL);
		ck_assert_int_eq(ibv_query_gid(a.context, ports[i], 0, &gid), -1);
		ck_assert_int_eq(ibv_query_pkey(a.context, ports[i], 0, &pkey), -1);
		ck_assert_int_eq(ibv_get_pkey_index(a.context, ports[i], htobe16(0xffff)), -1);
	}
	ck_assert_int_eq(ibv_query_port(a.context, 1, &port), 0);
	ck_assert_int_eq(ibv_query_gid(a.context, 1, port.gid_tbl_len, &gid), -1);
	ck_assert_int_eq(ibv_query_gid(a.context, 1, -1, &gid), -1);
	for (int i = 0; i < port.pkey_tbl_len; i++) {
		ck_assert_int_eq(ibv_query_pkey(a.context, 1, i, &pkey), 0);
		ck_assert_int_eq(ibv_get_pkey_index(a.context, 1, pkey), i);
	}
	ck_assert_int_eq(ibv_query_pkey(a.context, 1, port.pkey_tbl_len, &pkey), -1);
	ck_assert_int_eq(ibv_get_pkey_index(a.context, 1, htobe16(0x1234)), -1);
}

/* Names and rates are those of the system's library, for numbers that mean nothing, too. */
TEST(names)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return;
#define SAME_NAME(call, type)                                                                     \
	do {                                                                                      \
		const char *(*theirs)(enum type) = (const char *(*)(enum type))dlsym(lib, #call); \
		ck_assert(theirs &&theirs != call);                                               \
		for (int i = -1; i < 40; i++)                                                     \
			ck_assert_str_eq(call((enum type)i), theirs((enum type)i));               \
	} while (0)
#define SAME_NUMBER(call, result, type, from, to)                                                 \
	do {                                                                                      \
		result (*theirs)(type) = (result(*)(type))dlsym(lib, #call);                      \
		ck_assert(theirs &&theirs != call);                                               \
		for (int i = from; i < to; i++)                                                   \
			ck_assert_msg(call((type)i) == theirs((type)i), #call "(%d): %d, not %d", \
				      i, (int)call((type)i), (int)theirs((type)i));               \
	} while (0)
	SAME_NAME(ibv_wc_status_str, ibv_wc_status);
	SAME_NAME(ibv_event_type_str, ibv_event_type);
	SAME_NAME(ibv_node_type_str, ibv_node_type);
	SAME_NAME(ibv_port_state_str, ibv_port_state);
	SAME_NUMBER(ibv_rate_to_mult, int, enum ibv_rate, -1, 40);
	SAME_NUMBER(ibv_rate_to_mbps, int, enum ibv_rate, -1, 40);
	SAME_NUMBER(mult_to_ibv_rate, enum ibv_rate, int, -1, 500);
	SAME_NUMBER(mbps_to_ibv_rate, enum ibv_rate, int, -1, 700000);
	/* As the pages have it. */
	ck_assert_int_eq(ibv_rate_to_mbps(IBV_RATE_5_GBPS), 5000);
	ck_assert_int_eq(mbps_to_ibv_rate(5000), IBV_RATE_5_GBPS);
	ck_assert_int_eq(mult_to_ibv_rate(2), IBV_RATE_5_GBPS);
	ck_assert_uint_eq(ibv_inc_rkey(0x123456ff), 0x12345600);
}

int main(void)
{
	return nic_fabric_run(listed_suite("nic_man", setup, NULL));
}
