/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues of the soft RNIC, as far as they are more than ibv_poll_cq()
 * (tests/core/rnic/test_rnic.c): what arms a queue and what makes an event of it, asynchronous
 * events, iterating polls, resizing, overruns, timestamps.
 */
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/qp.h"
#include "tests/core/rnic/rnic_world.h"

#define SIGNALED  IBV_SEND_SIGNALED
#define SOLICITED IBV_SEND_SOLICITED

/* --- what the hooks tell --- */

struct told_event {
	enum ibv_event_type type;
	void *element;
};
static unsigned completions;
static struct rnic_cq *completed;
static struct told_event events[8];
static unsigned told;
static struct ibv_comp_channel channel;

static void on_completion(struct rnic_cq *cq)
{
	completions++;
	completed = cq;
}

static void on_event(struct rnic_hca *hca, enum ibv_event_type type, void *element)
{
	ck_assert_ptr_eq(hca->hooks.arg, &told);
	ck_assert_uint_lt(told, 8);
	events[told++] = (struct told_event){type, element};
}

static void hook(struct side *s)
{
	completions = told = 0;
	to_hca(s->ctx)->hooks = (struct rnic_hooks){
		.completion = on_completion, .event = on_event, .arg = &told};
}

/* Let `n` messages of 8 bytes get to b. */
static void send(unsigned n, unsigned flags)
{
	for (unsigned i = 0; i < n; i++) {
		recv_post(&b, 0, 64, i);
		op(&a, IBV_WR_SEND, 0, 8, &b, 0, i, SIGNALED | flags);
		expect(a.scq, i, IBV_WC_SUCCESS);
	}
	rt_sleep(20 * US);
}

/* --- arming --- */

RNIC_TEST(connected, arming)
{
	hook(&b);
	send(1, SOLICITED);
	ck_assert_uint_eq(completions, 0); /* it is not armed */
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	rt_sleep(100 * US);
	ck_assert_uint_eq(completions, 0); /* what is there is no news */
	send(1, 0);
	ck_assert_uint_eq(completions, 1);
	ck_assert_ptr_eq(&completed->ibv, b.rcq);
	send(2, SOLICITED);
	ck_assert_uint_eq(completions, 1); /* once for each time that it is armed */
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	send(2, 0);
	ck_assert_uint_eq(completions, 2);
}

RNIC_TEST(connected, solicited)
{
	hook(&b);
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 1), 0);
	send(2, 0);
	ck_assert_uint_eq(completions, 0);
	send(1, SOLICITED);
	ck_assert_uint_eq(completions, 1);
	/* Armed for both: the next. */
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 1), 0);
	send(1, 0);
	ck_assert_uint_eq(completions, 2);
	/* A failure is always worth an event. */
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 1), 0);
	recv_post(&b, 0, 8, 9);
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_ERR, 0), 0);
	ck_assert_uint_eq(completions, 3);
}

RNIC_TEST(connected, moderation)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {3, 0}};
	hook(&b);
	ck_assert_int_eq(rnic_modify_cq(b.rcq, &attr), 0);
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	send(2, 0);
	rt_sleep(MS);
	ck_assert_uint_eq(completions, 0);
	send(1, 0);
	ck_assert_uint_eq(completions, 1);
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	send(2, 0); /* counted anew */
	ck_assert_uint_eq(completions, 1);
	send(1, 0);
	ck_assert_uint_eq(completions, 2);
	attr.moderate = (struct ibv_moderate_cq){10, 200};
	ck_assert_int_eq(rnic_modify_cq(b.rcq, &attr), 0);
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	send(1, 0);
	ck_assert_uint_eq(completions, 2);
	rt_sleep(300 * US);
	ck_assert_uint_eq(completions, 3);
	rt_sleep(MS);
	ck_assert_uint_eq(completions, 3);
	attr.attr_mask = IBV_CQ_ATTR_RESERVED;
	ck_assert_int_eq(rnic_modify_cq(b.rcq, &attr), EINVAL);
}

RNIC_TEST(task, channels)
{
	struct ibv_cq *cq;
	channel.context = b.ctx;
	NOT_MADE(rnic_create_cq(b.ctx, 4, NULL, &channel, 0),
		 EOPNOTSUPP); /* no program would be told */
	hook(&b);
	ck_assert_ptr_null(rnic_create_cq(a.ctx, 4, NULL, &channel, 0));
	cq = rnic_create_cq(b.ctx, 4, NULL, &channel, 0);
	ck_assert_ptr_nonnull(cq);
	ck_assert_ptr_eq(cq->channel, &channel);
	ck_assert_int_eq(channel.refcnt, 1);
	ck_assert_int_eq(rnic_destroy_cq(cq), 0);
	ck_assert_int_eq(channel.refcnt, 0);
	ck_assert_int_eq(ibv_req_notify_cq(cq, 0), EINVAL);
}

/* --- asynchronous events --- */

static void expect_event(enum ibv_event_type type, const void *element)
{
	ck_assert_uint_eq(told, 1);
	ck_assert_int_eq(events[0].type, type);
	ck_assert_ptr_eq(events[0].element, element);
	told = 0;
}

RNIC_TEST(task, established)
{
	hook(&b);
	connect_side(&a, &b);
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_INIT, MASK_INIT), 0);
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_RTR, MASK_RTR), 0);
	ck_assert_uint_eq(told, 0);
	send(2, 0);
	expect_event(IBV_EVENT_COMM_EST, b.qp);
}

RNIC_TEST(connected, drained)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	const int mask = IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY;
	hook(&a);
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, 1, SIGNALED);
	rt_sleep(US / 2);
	ck_assert_int_eq(rnic_modify_qp(a.qp, &attr, mask), 0);
	ck_assert_uint_eq(told, 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect_event(IBV_EVENT_SQ_DRAINED, a.qp);
	/* With nothing under way: at once; not asked for: not at all. */
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTS, 0), 0);
	ck_assert_int_eq(rnic_modify_qp(a.qp, &attr, mask), 0);
	expect_event(IBV_EVENT_SQ_DRAINED, a.qp);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTS, 0), 0);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_SQD, 0), 0);
	ck_assert_uint_eq(told, 0);
}

/* The responder's errors; the completion tells of one that hits a receive request. */
RNIC_TEST(connected, refused)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, 8, &b, 0);
	hook(&b);
	wr.wr.rdma.rkey ^= 1;
	post_done(&a, &wr, IBV_WC_REM_ACCESS_ERR);
	expect_event(IBV_EVENT_QP_ACCESS_ERR, b.qp);
}

RNIC_TEST(connected, unaligned)
{
	hook(&b);
	op(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, &b, 4, 1, SIGNALED);
	expect(a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_event(IBV_EVENT_QP_REQ_ERR, b.qp);
}

RNIC_TEST(connected, too_long)
{
	hook(&b);
	recv_post(&b, 0, 4, 1);
	op(&a, IBV_WR_SEND, 0, 8, &b, 0, 2, SIGNALED);
	expect(b.rcq, 1, IBV_WC_LOC_LEN_ERR);
	ck_assert_uint_eq(told, 0);
}

/* --- overruns --- */

RNIC_TEST(connected, overrun, opt.cqe = 4)
{
	hook(&a);
	for (uint64_t i = 0; i < 6; i++)
		op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, i, SIGNALED);
	rt_sleep(100 * US);
	ck_assert_uint_eq(told, 2);
	ck_assert_int_eq(events[0].type, IBV_EVENT_CQ_ERR);
	ck_assert_ptr_eq(events[0].element, a.scq);
	ck_assert_int_eq(events[1].type, IBV_EVENT_QP_FATAL);
	ck_assert_ptr_eq(events[1].element, a.qp);
	ck_assert_int_eq(a.qp->state, IBV_QPS_ERR);
	for (uint64_t i = 0; i < 4; i++)
		expect(a.scq, i, IBV_WC_SUCCESS);
	ck_assert(empty(a.scq));
}

/* Resized in time, the same six fit. */
RNIC_TEST(connected, resized, opt.cqe = 4)
{
	hook(&a);
	for (uint64_t i = 0; i < 4; i++)
		op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, i, SIGNALED);
	rt_sleep(100 * US);
	ck_assert_int_eq(rnic_resize_cq(a.scq, 3), EINVAL);
	ck_assert_int_eq(a.scq->cqe, 4);
	ck_assert_int_eq(rnic_resize_cq(a.scq, 0), EINVAL);
	ck_assert_int_eq(rnic_resize_cq(a.scq, MAX_CQE + 1), EINVAL);
	ck_assert_int_eq(rnic_resize_cq(a.scq, 6), 0);
	ck_assert_int_ge(a.scq->cqe, 6);
	for (uint64_t i = 4; i < 6; i++)
		op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, i, SIGNALED);
	rt_sleep(100 * US);
	for (uint64_t i = 0; i < 6; i++)
		expect(a.scq, i, IBV_WC_SUCCESS);
	ck_assert_int_eq(rnic_resize_cq(a.scq, 1), 0);
	ck_assert_uint_eq(told, 0);
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0);
}

/* --- iterating --- */

static struct ibv_cq_ex *cqx;

/* b receives into an extended queue. */
static void make_extended(uint64_t wc_flags, uint32_t flags, uint32_t cqe)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = cqe,
					   .wc_flags = wc_flags,
					   .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					   .flags = flags};
	struct ibv_qp_init_attr init = {
		.send_cq = b.scq, .cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	cqx = ibv_create_cq_ex(b.ctx, &attr);
	ck_assert_ptr_nonnull(cqx);
	init.recv_cq = ibv_cq_ex_to_cq(cqx);
	ck_assert_int_eq(rnic_destroy_qp(b.qp), 0);
	b.qp = rnic_create_qp(b.pd, &init);
	ck_assert_ptr_nonnull(b.qp);
	connect_both();
}

RNIC_TEST(task, iterating)
{
	const uint64_t all = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	struct ibv_poll_cq_attr attr = {.comp_mask = 0}, unknown = {.comp_mask = 1};
	uint64_t before = sim_now(sim), at = before;
	make_extended(all, 0, 16);
	ck_assert_int_eq(ibv_start_poll(cqx, &attr), ENOENT);
	ck_assert_int_eq(ibv_start_poll(cqx, &unknown), EINVAL);
	send(3, 0);
	ck_assert_int_eq(ibv_start_poll(cqx, &attr), 0);
	ck_assert_int_eq(ibv_start_poll(cqx, &attr), EINVAL); /* would wait for itself */
	for (uint64_t i = 0; i < 3; i++) {
		ck_assert_int_eq(cqx->status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(cqx->wr_id, i);
		ck_assert_int_eq(ibv_wc_read_opcode(cqx), IBV_WC_RECV);
		ck_assert_uint_eq(ibv_wc_read_byte_len(cqx), 8);
		ck_assert_uint_eq(ibv_wc_read_qp_num(cqx), b.qp->qp_num);
		ck_assert_uint_eq(ibv_wc_read_src_qp(cqx), a.qp->qp_num);
		ck_assert_uint_eq(ibv_wc_read_vendor_err(cqx) | ibv_wc_read_wc_flags(cqx) |
					  ibv_wc_read_slid(cqx) | ibv_wc_read_sl(cqx) |
					  ibv_wc_read_dlid_path_bits(cqx),
				  0);
		ck_assert_uint_gt(ibv_wc_read_completion_ts(cqx), at);
		at = ibv_wc_read_completion_ts(cqx);
		ck_assert_int_eq(ibv_next_poll(cqx), i == 2 ? ENOENT : 0);
	}
	ck_assert_uint_le(at, sim_now(sim));
	ibv_end_poll(cqx);
	/* The slots are free again, and the plain poll sees the same queue. */
	send(1, 0);
	expect(ibv_cq_ex_to_cq(cqx), 0, IBV_WC_SUCCESS);
}

RNIC_TEST(task, readers)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_TM_INFO};
	make_extended(IBV_WC_EX_WITH_IMM, IBV_CREATE_CQ_ATTR_SINGLE_THREADED, 4);
	ck_assert_ptr_nonnull(cqx->read_imm_data);
	ck_assert_ptr_null(cqx->read_byte_len);
	ck_assert_ptr_null(cqx->read_completion_ts);
	NOT_MADE(ibv_create_cq_ex(b.ctx, &attr), EOPNOTSUPP);
	attr.wc_flags = 0;
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = 1 << 5;
	NOT_MADE(ibv_create_cq_ex(b.ctx, &attr), EOPNOTSUPP);
	attr.flags = 0;
	attr.cqe = UINT32_MAX;
	NOT_MADE(ibv_create_cq_ex(b.ctx, &attr), EINVAL);
}

/* A parent domain is needed as long as its queue is there; a plain domain is none. */
RNIC_TEST(task, parents)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};
	struct ibv_parent_domain_init_attr of = {.pd = b.pd};
	struct ibv_pd *parent = ibv_alloc_parent_domain(b.ctx, &of);
	struct ibv_cq_ex *cq;
	ck_assert_ptr_nonnull(parent);
	attr.parent_domain = b.pd;
	NOT_MADE(ibv_create_cq_ex(b.ctx, &attr), EINVAL);
	attr.parent_domain = NULL;
	ck_assert_ptr_null(ibv_create_cq_ex(b.ctx, &attr));
	attr.parent_domain = parent;
	ck_assert_ptr_null(ibv_create_cq_ex(a.ctx, &attr));
	cq = ibv_create_cq_ex(b.ctx, &attr);
	ck_assert_ptr_nonnull(cq);
	ck_assert_int_eq(rnic_dealloc_pd(parent), EBUSY);
	ck_assert_int_eq(rnic_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	ck_assert_int_eq(rnic_dealloc_pd(parent), 0);
}

/* The oldest go; nothing fails. */
RNIC_TEST(task, ignored_overrun)
{
	hook(&b);
	make_extended(0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, 2);
	send(5, 0);
	ck_assert_uint_eq(told, 0);
	expect(ibv_cq_ex_to_cq(cqx), 3, IBV_WC_SUCCESS);
	expect(ibv_cq_ex_to_cq(cqx), 4, IBV_WC_SUCCESS);
	ck_assert(empty(ibv_cq_ex_to_cq(cqx)));
}

static bool other_has_one;

static void other_task(void *arg)
{
	ck_assert_int_eq(ibv_start_poll(cqx, NULL), 0);
	ck_assert_uint_eq(cqx->wr_id, 2);
	other_has_one = true;
	ibv_end_poll(cqx);
}

/* Another task waits until the batch is over. */
RNIC_TEST(task, two_tasks)
{
	make_extended(0, 0, 16);
	send(3, 0);
	ck_assert_int_eq(ibv_start_poll(cqx, NULL), 0);
	other_has_one = false;
	ck_assert_int_eq(sim_spawn(sim, 1, "other", other_task, NULL), 0);
	rt_sleep(10 * US);
	ck_assert(!other_has_one);
	ck_assert_uint_eq(cqx->wr_id, 0);
	ck_assert_int_eq(ibv_next_poll(cqx), 0);
	ck_assert_uint_eq(cqx->wr_id, 1);
	ibv_end_poll(cqx);
	rt_sleep(10 * US);
	ck_assert(other_has_one);
}

/* --- the clock --- */

RNIC_TEST(task, device_clock)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK |
						    IBV_VALUES_MASK_RESERVED};
	rt_sleep(3 * US);
	ck_assert_int_eq(ibv_query_rt_values_ex(a.ctx, &values), 0);
	ck_assert_uint_eq(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	ck_assert_int_eq(values.raw_clock.tv_nsec, (long)sim_now(sim));
}

RUN_TESTS(setup_options, NULL)
