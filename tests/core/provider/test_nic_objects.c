/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects of the soft RNIC in real time: handles that a program has overwritten, how many there may
 * be at a time, what becomes of the numbers and the memory of those that are gone. What each call
 * accepts and does is stated by the simulated RNIC's tests, tests/core/rnic/.
 */
#include <infiniband/verbs.h>
#include "core/rt/asan.h"
#include "tests/core/provider/nic_fabric.h"
#include "tests/core/provider/nic_side.h"

#define BUF (64u << 10)
#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

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

/* A program that has overwritten an object's handle is told that it does not exist; the object
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

	for (unsigned i = 0; i < ROWS_OF(contexts); i++) {
		contexts[i] = ibv_open_device(list[0]);
		ck_assert_ptr_nonnull(contexts[i]);
	}
	for (unsigned i = 0; i < ROWS_OF(contexts); i++)
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
	post_op(&a, IBV_WR_RDMA_WRITE, 8, 1);
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
			post_op(&a, IBV_WR_SEND, 8, k);
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

TEST(overrun)
{
	struct ibv_cq *small = ibv_create_cq(a.context, 2, NULL, NULL, 0);

	a.scq = small;
	connect_both(IBV_QPT_RC);
	for (unsigned i = 0; i < (unsigned)small->cqe + 2; i++)
		post_op(&a, IBV_WR_RDMA_WRITE, 8, i);
	expect_event(&a, IBV_EVENT_CQ_ERR, small);
	expect_event(&a, IBV_EVENT_QP_FATAL, a.qp);
	ck_assert_int_eq(state_of(&a), IBV_QPS_ERR);
}

int main(void)
{
	return nic_fabric_run(listed_suite(setup, NULL));
}
