/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended reliable connections: domains, shared receive queues, targets and their handles; each
 * request to each shared receive queue; what is refused; what a bad link, resets and destruction
 * do. */
#include <fcntl.h>
#include "core/rnic/count.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/srq.h"
#include "core/rnic/objects/xrc.h"
#include "tests/core/rnic/rnic_world.h"

#define SENT	 IBV_SEND_SIGNALED
#define QUEUES	 3
#define DOMAIN_2 2 /* the queue that is in another domain */
#define SLICE	 8192
#define SRQ_WR	 64

/* b's: a domain with two shared receive queues, a second domain with one. */
static struct queue {
	struct ibv_xrcd *xrcd;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr; /* all of b's buffer, in this queue's protection domain */
	uint32_t number;
} q[QUEUES];
static struct ibv_xrcd *domain[2];

/* --- making --- */

static struct ibv_xrcd *open_domain(struct ibv_context *ctx)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD |
						       IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1,
					  .oflags = O_CREAT};
	return ibv_open_xrcd(ctx, &attr);
}

static struct ibv_srq *make_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = SRQ_WR, .max_sge = 2},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq};
	return ibv_create_srq_ex(pd->context, &init);
}

static struct ibv_qp *make_target(struct ibv_xrcd *xrcd, void *qp_context)
{
	struct ibv_qp_init_attr_ex init = {.qp_context = qp_context,
					   .qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					   .xrcd = xrcd};
	return ibv_create_qp_ex(xrcd->context, &init);
}

static struct ibv_qp *open_target(struct ibv_xrcd *xrcd, uint32_t number)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						     IBV_QP_OPEN_ATTR_TYPE |
						     IBV_QP_OPEN_ATTR_CONTEXT,
					.qp_num = number,
					.xrcd = xrcd,
					.qp_context = &domain,
					.qp_type = IBV_QPT_XRC_RECV};
	return ibv_open_qp(xrcd->context, &attr);
}

#define INI_RTR (MASK_RTR & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
#define TGT_RTS (IBV_QP_TIMEOUT | IBV_QP_SQ_PSN)

static void ready_sender(void)
{
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_INIT, MASK_INIT), 0);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTR, INI_RTR), 0);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTS, MASK_RTS), 0);
}

static void ready_target(void)
{
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_INIT, MASK_INIT), 0);
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_RTR, MASK_RTR), 0);
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_RTS, TGT_RTS), 0);
}

/* a sends, b's queue pair is the target. */
static void connect_xrc(void)
{
	note_events();
	for (unsigned i = 0; i < 2; i++)
		domain[i] = open_domain(b.ctx);
	for (unsigned i = 0; i < QUEUES; i++) {
		q[i].xrcd = domain[i == DOMAIN_2];
		q[i].pd = i ? rnic_alloc_pd(b.ctx) : b.pd;
		q[i].cq = rnic_create_cq(b.ctx, 128, NULL, NULL, 0);
		q[i].mr = i ? rnic_reg_mr(q[i].pd, b.buf, BUF, ALL_ACCESS) : b.mr;
		q[i].srq = make_srq(q[i].pd, q[i].xrcd, q[i].cq);
		ck_assert_ptr_nonnull(q[i].srq);
		ck_assert_int_eq(ibv_get_srq_num(q[i].srq, &q[i].number), 0);
	}
	remake_qp(&a, IBV_QPT_XRC_SEND, NULL);
	ck_assert_int_eq(rnic_destroy_qp(b.qp), 0);
	b.qp = make_target(domain[0], &q);
	ck_assert_ptr_nonnull(b.qp);
	ready_sender();
	ready_target();
	sim_source(sim, source.answer || source.state ? &source.source : NULL);
}

static int try_give(const struct queue *to, size_t off, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)b.buf + off, len, to->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
	return ibv_post_srq_recv(to->srq, &wr, &bad);
}

static void give(const struct queue *to, size_t off, uint32_t len, uint64_t id)
{
	ck_assert_int_eq(try_give(to, off, len, id), 0);
}

/* A request for a shared receive queue, by the key of the domain of `keys`. */
static void request(enum ibv_wr_opcode opcode, uint32_t srqn, const struct queue *keys, size_t off,
		    uint32_t len, size_t remote, uint64_t id)
{
	struct ibv_sge sge;
	struct side peer = b;
	peer.mr = keys->mr;
	struct ibv_send_wr wr = wr_make(&a, opcode, &sge, off, len, &peer, remote);
	wr.wr_id = id;
	wr.imm_data = htobe32(0xabc);
	wr.qp_type.xrc.remote_srqn = srqn;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = 5;
	post(&a, &wr);
}

static void send_to(const struct queue *to, size_t off, uint32_t len, uint64_t id)
{
	request(IBV_WR_SEND, to->number, to, off, len, 0, id);
}

/* --- objects --- */

static void domain_body(void)
{
	unsigned objects = rnic_objects(b.ctx);
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1, .oflags = O_CREAT};
	ck_assert_ptr_null(ibv_open_xrcd(b.ctx, &attr));
	ck_assert_int_eq(errno, EINVAL);
	attr.comp_mask |= IBV_XRCD_INIT_ATTR_OFLAGS;
	attr.fd = 0;
	ck_assert_ptr_null(ibv_open_xrcd(b.ctx, &attr));
	ck_assert_int_eq(errno, EBADF);
	attr.comp_mask |= IBV_XRCD_INIT_ATTR_RESERVED;
	ck_assert_ptr_null(ibv_open_xrcd(b.ctx, &attr));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	struct ibv_xrcd *one = open_domain(b.ctx), *foreign = open_domain(a.ctx);
	ck_assert(one && foreign && one->context == b.ctx);
	/* its users */
	ck_assert_ptr_null(make_srq(b.pd, foreign, b.rcq));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(make_srq(b.pd, one, a.rcq));
	ck_assert_int_eq(errno, EINVAL);
	struct ibv_srq *srq = make_srq(b.pd, one, b.rcq), *second = make_srq(b.pd, one, b.rcq);
	uint32_t n1, n2;
	ck_assert(srq && second && !ibv_get_srq_num(srq, &n1) && !ibv_get_srq_num(second, &n2) &&
		  n1 != n2);
	ck_assert_int_eq(ibv_close_xrcd(one), EBUSY);
	ck_assert_int_eq(rnic_destroy_srq(second), 0);
	ck_assert_int_eq(rnic_destroy_srq(srq), 0);
	ck_assert_int_eq(rnic_destroy_srq(srq), EINVAL);
	struct ibv_qp *target = make_target(one, NULL);
	ck_assert_int_eq(ibv_close_xrcd(one), EBUSY);
	ck_assert_int_eq(rnic_destroy_qp(target), 0);
	ck_assert_int_eq(rnic_destroy_qp(target), EINVAL);
	ck_assert_int_eq(ibv_close_xrcd(one), 0);
	ck_assert_int_eq(ibv_close_xrcd(one), EINVAL);
	ck_assert_ptr_null(make_srq(b.pd, one, b.rcq));
	ck_assert_uint_eq(rnic_objects(b.ctx), objects);
	/* a queue's numbers come from the net's; its completion queue stays as long as it */
	one = open_domain(b.ctx);
	struct ibv_cq *cq = rnic_create_cq(b.ctx, 8, NULL, NULL, 0);
	srq = make_srq(b.pd, one, cq);
	ck_assert_int_eq(rnic_destroy_cq(cq), EBUSY);
	ck_assert_int_eq(rnic_destroy_srq(srq), 0);
	ck_assert_int_eq(rnic_destroy_cq(cq), 0);
}

START_TEST(domains)
{
	run(task, domain_body);
}
END_TEST

static void file_body(void)
{
	ck_assert_ptr_null(xrc_open(b.ctx, 1, 2, 0));
	ck_assert_int_eq(errno, EAGAIN);
	struct ibv_xrcd *one = xrc_open(b.ctx, 1, 2, O_CREAT), *same = xrc_open(b.ctx, 1, 2, 0);
	struct ibv_xrcd *other = xrc_open(b.ctx, 2, 2, O_CREAT | O_EXCL);
	ck_assert(one && same && other && one != same);
	ck_assert_ptr_null(xrc_open(b.ctx, 1, 2, O_CREAT | O_EXCL));
	ck_assert_int_eq(errno, EINVAL);
	struct ibv_qp *target = make_target(one, NULL);
	struct ibv_qp *again = open_target(same, target->qp_num);
	ck_assert_ptr_nonnull(again);
	ck_assert_ptr_null(open_target(other, target->qp_num));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(rnic_destroy_qp(target), 0);
	ck_assert_int_eq(ibv_close_xrcd(one), 0);
	ck_assert_int_eq(ibv_close_xrcd(same), EBUSY);
	ck_assert_ptr_nonnull(xrc_open(b.ctx, 1, 2, 0)); /* it is still there */
	ck_assert_int_eq(rnic_destroy_qp(again), 0);
	ck_assert_int_eq(ibv_close_xrcd(same), 0);
}

START_TEST(domains_of_files)
{
	run(task, file_body);
}
END_TEST

static void numbers_body(void)
{
	struct ibv_xrcd *xrcd = open_domain(b.ctx);
	struct ibv_srq *srq[4];
	uint32_t number, last = 0;
	net->qpn_limit = net->qpn_first + 4; /* a, b: two queue pairs */
	for (unsigned i = 0; i < 4; i++) {
		srq[i] = make_srq(b.pd, xrcd, b.rcq);
		ck_assert(srq[i] && !ibv_get_srq_num(srq[i], &number));
		ck_assert_uint_gt(number, last);
		last = number;
	}
	ck_assert_ptr_null(make_srq(b.pd, xrcd, b.rcq));
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_int_eq(ibv_get_srq_num(srq[2], &last), 0);
	ck_assert_int_eq(rnic_destroy_srq(srq[2]), 0);
	srq[2] = make_srq(b.pd, xrcd, b.rcq);
	ck_assert(srq[2] && !ibv_get_srq_num(srq[2], &number));
	ck_assert_uint_eq(number, last);
	ck_assert_ptr_null(make_srq(b.pd, xrcd, b.rcq));
}

START_TEST(numbers_run_out)
{
	run(task, numbers_body);
}
END_TEST

static void queue_pair_body(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr got,
		plain = {.send_cq = b.scq, .recv_cq = b.rcq, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = b.pd};
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_SEND, &sge, 0, 8, &b, 0), *bad;
	plain.qp_type = IBV_QPT_XRC_RECV;
	ck_assert_ptr_null(rnic_create_qp(b.pd, &plain));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_create_qp_ex(b.ctx, &init));
	ck_assert_int_eq(errno, EINVAL);
	init.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.xrcd = domain[0];
	init.send_ops_flags = IBV_QP_EX_WITH_SEND;
	ck_assert_ptr_null(ibv_create_qp_ex(b.ctx, &init));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	/* A shared receive queue of XRC is no other queue pair's; a sender needs no queue to
	 * receive. */
	plain.qp_type = IBV_QPT_RC;
	plain.srq = q[0].srq;
	ck_assert_ptr_null(rnic_create_qp(b.pd, &plain));
	ck_assert_int_eq(errno, EINVAL);
	plain = (struct ibv_qp_init_attr){
		.send_cq = b.scq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = UINT32_MAX},
		.qp_type = IBV_QPT_XRC_SEND};
	struct ibv_qp *sender = rnic_create_qp(b.pd, &plain);
	ck_assert_ptr_nonnull(sender);
	ck_assert_int_eq(rnic_query_qp(sender, &attr, IBV_QP_CAP, &got), 0);
	ck_assert(got.cap.max_send_wr == 4 && got.cap.max_recv_wr == 0 &&
		  got.cap.max_recv_sge == 0 && !got.recv_cq);
	ck_assert_int_eq(ibv_post_recv(a.qp, &recv, &bad_recv), EINVAL);
	ck_assert_int_eq(rnic_destroy_qp(sender), 0);
	/* the target */
	ck_assert(b.qp->qp_type == IBV_QPT_XRC_RECV && b.qp->qp_context == &q && !b.qp->pd &&
		  !b.qp->recv_cq);
	ck_assert_int_eq(rnic_query_qp(b.qp, &attr, IBV_QP_STATE, &got), 0);
	ck_assert(attr.qp_state == IBV_QPS_RTS && attr.dest_qp_num == a.qp->qp_num);
	ck_assert(got.qp_context == &q && !got.send_cq && !got.recv_cq &&
		  got.qp_type == IBV_QPT_XRC_RECV);
	ck_assert_int_eq(ibv_post_recv(b.qp, &recv, &bad_recv), EINVAL);
	ck_assert_int_eq(ibv_post_send(b.qp, &wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr);
	wr.num_sge = 0;
	ck_assert_int_eq(ibv_post_send(b.qp, &wr, &bad), EINVAL);
	wr.qp_type.xrc.remote_srqn = 1 << 24;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
}

static void queue_pairs_body(void)
{
	connect_xrc();
	queue_pair_body();
}

START_TEST(queue_pairs)
{
	run(task, queue_pairs_body);
}
END_TEST

/* What only the other end has may be given, and means nothing; all else that a transition does not
 * have is refused. */
static void transitions_body(void)
{
	connect_xrc();
	struct side *both[] = {&a, &b};
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = both[i], *peer = both[!i];
		int rtr = i ? MASK_RTR : INI_RTR, rts = i ? TGT_RTS : MASK_RTS;
		ck_assert_int_eq(modify(s, peer, IBV_QPS_RESET, 0), 0);
		ck_assert_int_eq(modify(s, peer, IBV_QPS_INIT, MASK_INIT_UD), EINVAL);
		ck_assert_int_eq(modify(s, peer, IBV_QPS_INIT, MASK_INIT), 0);
		for (unsigned bit = 0; bit < 21; bit++)
			if (rtr >> bit & 1)
				ck_assert_int_eq(modify(s, peer, IBV_QPS_RTR, rtr & ~(1 << bit)),
						 EINVAL);
		ck_assert_int_eq(modify(s, peer, IBV_QPS_RTR, rtr | IBV_QP_QKEY), EINVAL);
		ck_assert_int_eq(modify(s, peer, IBV_QPS_RTR, rtr | MASK_RTR), 0);
		for (unsigned bit = 0; bit < 21; bit++)
			if (rts >> bit & 1)
				ck_assert_int_eq(modify(s, peer, IBV_QPS_RTS, rts & ~(1 << bit)),
						 EINVAL);
		ck_assert_int_eq(modify(s, peer, IBV_QPS_RTS, rts | IBV_QP_PATH_MTU), EINVAL);
		ck_assert_int_eq(modify(s, peer, IBV_QPS_RTS, rts | MASK_RTS), 0);
		ck_assert_int_eq(s->qp->state, IBV_QPS_RTS);
		ck_assert_int_eq(modify(s, peer, IBV_QPS_SQD, 0), 0);
		ck_assert_int_eq(modify(s, peer, IBV_QPS_RTS, 0), 0);
	}
	give(&q[0], 0, 64, 1);
	send_to(&q[0], 0, 8, 2);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	expect(q[0].cq, 1, IBV_WC_SUCCESS);
}

START_TEST(transitions)
{
	run(task, transitions_body);
}
END_TEST

/* --- requests --- */

static void sends_body(void)
{
	connect_xrc();
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 4; k++)
			give(&q[i], (1 + i * 4 + k) * SLICE, SLICE, 10 * i + k);
	fill(a.buf, 8 * SLICE, 3);
	/* in turns, of one packet and of several; the completion is of the queue, and of the
	 * target */
	for (unsigned n = 0; n < 8; n++)
		send_to(&q[n % 2], n * SLICE, n < 4 ? 100 : 5000, 100 + n);
	for (unsigned n = 0; n < 8; n++)
		expect(a.scq, 100 + n, IBV_WC_SUCCESS);
	for (unsigned n = 0; n < 8; n++) {
		struct ibv_wc wc = wait_for(q[n % 2].cq);
		uint32_t len = n < 4 ? 100 : 5000;
		ck_assert(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV &&
			  wc.byte_len == len);
		ck_assert_uint_eq(wc.wr_id, 10 * (n % 2) + n / 2);
		ck_assert_uint_eq(wc.qp_num, b.qp->qp_num);
		ck_assert_uint_eq(wc.src_qp, a.qp->qp_num);
		ck_assert_mem_eq(b.buf + (1 + n % 2 * 4 + n / 2) * SLICE, a.buf + n * SLICE, len);
	}
	ck_assert(empty(q[0].cq) && empty(q[1].cq) && empty(b.rcq));
}

START_TEST(sends)
{
	run(task, sends_body);
}
END_TEST

static void one_sided_body(void)
{
	connect_xrc();
	for (unsigned i = 0; i < 2; i++) {
		size_t at = (i + 1) * 4 * SLICE;
		uint32_t srqn = q[i].number;
		fill(a.buf, SLICE, 7 + i);
		request(IBV_WR_RDMA_WRITE, srqn, &q[i], 0, SLICE, at, 1);
		request(IBV_WR_RDMA_READ, srqn, &q[i], SLICE, SLICE, at, 2);
		expect(a.scq, 1, IBV_WC_SUCCESS);
		expect(a.scq, 2, IBV_WC_SUCCESS);
		ck_assert_mem_eq(b.buf + at, a.buf, SLICE);
		ck_assert_mem_eq(a.buf + SLICE, a.buf, SLICE);
		set_word(&b, at, 40);
		request(IBV_WR_ATOMIC_FETCH_AND_ADD, srqn, &q[i], 0, 8, at, 3);
		expect(a.scq, 3, IBV_WC_SUCCESS);
		ck_assert(word(&b, at) == 45 && word(&a, 0) == 40);
		set_word(&a, 8, 99);
		request(IBV_WR_FLUSH, srqn, &q[i], 0, 8, at, 4);
		request(IBV_WR_ATOMIC_WRITE, srqn, &q[i], 8, 8, at, 5);
		expect(a.scq, 4, IBV_WC_SUCCESS);
		expect(a.scq, 5, IBV_WC_SUCCESS);
		ck_assert_uint_eq(word(&b, at), 99);
		give(&q[i], 0, 8, 6);
		request(IBV_WR_RDMA_WRITE_WITH_IMM, srqn, &q[i], 0, 3000, at + SLICE, 7);
		expect(a.scq, 7, IBV_WC_SUCCESS);
		struct ibv_wc wc = wait_for(q[i].cq);
		ck_assert(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 3000 &&
			  wc.wr_id == 6);
		ck_assert(wc.imm_data == htobe32(0xabc) && wc.wc_flags == IBV_WC_WITH_IMM);
	}
}

START_TEST(one_sided)
{
	run(task, one_sided_body);
}
END_TEST

/* A READ's keys are those of its own queue, whatever came in while it waited. */
static void waits_body(void)
{
	connect_xrc();
	for (unsigned n = 0; n < 16; n++)
		give(&q[1], 32 * SLICE - 64, 64, n);
	fill(b.buf, 16 * SLICE, 5);
	for (unsigned n = 0; n < 16; n++) {
		request(IBV_WR_RDMA_READ, q[0].number, &q[0], n * SLICE, SLICE, n * SLICE, n);
		send_to(&q[1], 0, 0, 100 + n);
	}
	for (unsigned n = 0; n < 16; n++) {
		expect(a.scq, n, IBV_WC_SUCCESS);
		expect(a.scq, 100 + n, IBV_WC_SUCCESS);
		expect(q[1].cq, n, IBV_WC_SUCCESS);
	}
	ck_assert_mem_eq(a.buf, b.buf, 16 * SLICE);
}

START_TEST(requests_that_wait)
{
	source.state = 11;
	source.permille[CHOICE_FETCH] = 300;
	source.permille[CHOICE_LAND] = 300;
	run(task, waits_body);
}
END_TEST

static void batch_body(void)
{
	connect_xrc();
	give(&q[0], 0, 64, 1);
	give(&q[1], 64, 64, 2);
	struct ibv_qp_ex *ex = a.qpx;
	set_word(&a, 0, 77);
	ibv_wr_start(ex);
	for (unsigned i = 0; i < 2; i++) {
		ex->wr_id = i;
		ex->wr_flags = SENT;
		ibv_wr_send(ex);
		ibv_wr_set_xrc_srqn(ex, q[i].number);
		ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf, 8);
	}
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	for (unsigned i = 0; i < 2; i++) {
		expect(a.scq, i, IBV_WC_SUCCESS);
		expect(q[i].cq, i + 1, IBV_WC_SUCCESS);
		ck_assert_uint_eq(word(&b, 64 * i), 77);
	}
	/* without a number, with two, with one that cannot be */
	for (unsigned bad = 0; bad < 3; bad++) {
		ibv_wr_start(ex);
		ibv_wr_send(ex);
		if (bad)
			ibv_wr_set_xrc_srqn(ex, bad == 2 ? 1 << 24 : q[0].number);
		if (bad == 1)
			ibv_wr_set_xrc_srqn(ex, q[0].number);
		ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf, 8);
		ck_assert_int_eq(ibv_wr_complete(ex), EINVAL);
	}
}

START_TEST(batches)
{
	opt.send_ops = IBV_QP_EX_WITH_SEND;
	run(task, batch_body);
}
END_TEST

/* --- what is refused --- */

static void refused(enum ibv_wc_status status, enum ibv_event_type type)
{
	expect(a.scq, 9, status);
	for (unsigned n = 0; b.qp->state != IBV_QPS_ERR && n < 100; n++) {
		struct ibv_qp_attr attr;
		ck_assert_int_eq(rnic_query_qp(b.qp, &attr, IBV_QP_STATE, NULL), 0);
		rt_yield();
	}
	ck_assert_int_eq(b.qp->state, IBV_QPS_ERR);
	ck_assert_uint_eq(noted(type, b.qp), 1);
	ck_assert_uint_eq(event_count, noted(type, b.qp) + noted(IBV_EVENT_COMM_EST, b.qp));
}

static enum ibv_wr_opcode bad_opcode;

/* Of another domain; of none; and the key of the queue beside it. */
static void other_domain_body(void)
{
	connect_xrc();
	give(&q[DOMAIN_2], 0, 64, 1);
	give(&q[0], 0, 64, 1);
	request(bad_opcode, q[DOMAIN_2].number, &q[DOMAIN_2], 0, 8, 0, 9);
	refused(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	ck_assert(empty(q[DOMAIN_2].cq) && empty(q[0].cq));
}

static void unknown_body(void)
{
	connect_xrc();
	request(bad_opcode, q[DOMAIN_2].number + 1, &q[0], 0, 8, 0, 9);
	refused(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

static void foreign_key_body(void)
{
	connect_xrc();
	request(IBV_WR_RDMA_WRITE, q[0].number, &q[0], 0, 8, 0, 8);
	expect(a.scq, 8, IBV_WC_SUCCESS);
	request(bad_opcode, q[0].number, &q[1], 0, 8, 0, 9);
	refused(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

static const enum ibv_wr_opcode some[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
					  IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_FLUSH};

START_TEST(other_domain)
{
	bad_opcode = some[_i];
	run(task, other_domain_body);
}
END_TEST

START_TEST(unknown_queue)
{
	bad_opcode = some[_i];
	run(task, unknown_body);
}
END_TEST

START_TEST(foreign_key)
{
	bad_opcode = some[_i + 1];
	run(task, foreign_key_body);
}
END_TEST

static void deliver(unsigned host, const struct side *to, const struct side *from, uint8_t opcode,
		    uint32_t psn, uint32_t srqn, uint32_t len)
{
	struct packet *pkt = packet_get(net, len);
	pkt->service = SERVICE_XRC;
	pkt->opcode = opcode;
	pkt->dest_qpn = to->qp->qp_num;
	pkt->src_qpn = from->qp->qp_num;
	pkt->from = qp_find(net, to->qp->qp_num)->peer;
	pkt->psn = psn;
	pkt->srqn = srqn;
	pkt->name.who = &qp_find(net, from->qp->qp_num)->actor;
	rnic_deliver(net, host, pkt);
}

/* A message that goes on for another queue than it began for. */
static void changed_body(void)
{
	connect_xrc();
	give(&q[0], 0, SLICE, 1);
	give(&q[1], SLICE, SLICE, 2);
	deliver(HOST_SERVER, &b, &a, OP_SEND_FIRST, opt.psn, q[0].number, 1024);
	deliver(HOST_SERVER, &b, &a, OP_SEND_LAST, psn_add(opt.psn, 1), q[1].number, 8);
	expect(q[0].cq, 1, IBV_WC_WR_FLUSH_ERR); /* it had been taken */
	ck_assert(empty(q[1].cq));
	ck_assert_uint_eq(noted(IBV_EVENT_QP_REQ_ERR, b.qp), 1);
}

START_TEST(changed_queue)
{
	run(task, changed_body);
}
END_TEST

/* A sender serves nobody, a target asks nobody. */
static void wrong_end_body(void)
{
	uint64_t counts[RNIC_COUNT] = {0};
	connect_xrc();
	net->count = counts;
	give(&q[0], 0, 64, 1);
	deliver(1, &a, &b, OP_SEND_ONLY, opt.psn, q[0].number, 8);
	deliver(HOST_SERVER, &b, &a, OP_ACKNOWLEDGE, opt.psn, 0, 0);
	ck_assert_uint_eq(counts[COUNT_bad_opcode], 2);
	deliver(HOST_SERVER, &b, &a, OP_SEND_ONLY, opt.psn, q[0].number + 1000, 0);
	ck_assert_uint_eq(counts[COUNT_bad_srq], 1);
	net->count = NULL;
}

START_TEST(wrong_end)
{
	run(task, wrong_end_body);
}
END_TEST

/* What is too long for its receive request, and a request with a bad key, of the queue. */
static void bad_receive_body(void)
{
	connect_xrc();
	give(&q[1], 0, 8, 1);
	send_to(&q[1], 0, 9, 9);
	expect(q[1].cq, 1, IBV_WC_LOC_LEN_ERR);
	expect(a.scq, 9, IBV_WC_REM_INV_REQ_ERR);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RESET, 0), 0);
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_RESET, 0), 0);
	ready_sender();
	ready_target();
	struct queue mixed = q[1];
	mixed.mr = q[0].mr;
	give(&mixed, 0, 64, 2);
	send_to(&q[1], 0, 9, 9);
	expect(q[1].cq, 2, IBV_WC_LOC_PROT_ERR);
	expect(a.scq, 9, IBV_WC_REM_OP_ERR);
	ck_assert(!noted(IBV_EVENT_QP_LAST_WQE_REACHED, b.qp));
}

START_TEST(bad_receives)
{
	run(task, bad_receive_body);
}
END_TEST

/* One queue is empty; the other's requests are not for its messages. */
static void not_ready_body(void)
{
	connect_xrc();
	give(&q[0], 0, 64, 1);
	send_to(&q[1], 0, 8, 2);
	rt_sleep(100 * US);
	ck_assert(empty(a.scq) && empty(q[0].cq));
	give(&q[1], 64, 64, 3);
	expect(q[1].cq, 3, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	opt.rnr_retry = 0;
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RESET, 0), 0);
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_RESET, 0), 0);
	ready_sender();
	ready_target();
	send_to(&q[1], 0, 8, 4);
	expect(a.scq, 4, IBV_WC_RNR_RETRY_EXC_ERR);
	ck_assert(empty(q[0].cq));
}

START_TEST(not_ready)
{
	run(task, not_ready_body);
}
END_TEST

/* --- handles --- */

static void handles_body(void)
{
	connect_xrc();
	unsigned objects = rnic_objects(b.ctx);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
	struct ibv_qp_init_attr got;
	struct ibv_qp *second = open_target(domain[0], b.qp->qp_num), *first = b.qp;
	ck_assert_ptr_nonnull(second);
	ck_assert(second != first && second->qp_num == first->qp_num &&
		  second->qp_context == &domain);
	ck_assert_int_eq(second->state, IBV_QPS_RTS);
	ck_assert_ptr_null(open_target(domain[0], a.qp->qp_num));
	ck_assert_ptr_null(open_target(domain[1], b.qp->qp_num));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(rnic_modify_qp(second, &attr, IBV_QP_STATE), 0);
	ck_assert_int_eq(rnic_query_qp(first, &attr, IBV_QP_STATE, &got), 0);
	ck_assert(attr.qp_state == IBV_QPS_SQD && first->state == IBV_QPS_SQD &&
		  got.qp_context == &q);
	attr.qp_state = IBV_QPS_RTS;
	ck_assert_int_eq(rnic_modify_qp(first, &attr, IBV_QP_STATE), 0);
	/* The one that made it goes; it stays. */
	ck_assert_int_eq(rnic_destroy_qp(first), 0);
	ck_assert_int_eq(rnic_query_qp(first, &attr, IBV_QP_STATE, NULL), EINVAL);
	give(&q[1], 0, 64, 1);
	send_to(&q[1], 0, 8, 2);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	/* All who have it open hear of an event. */
	struct ibv_qp *third = open_target(domain[0], second->qp_num);
	event_count = 0;
	send_to(&q[DOMAIN_2], 0, 8, 3);
	expect(a.scq, 3, IBV_WC_REM_INV_REQ_ERR);
	ck_assert(noted(IBV_EVENT_QP_REQ_ERR, second) == 1 &&
		  noted(IBV_EVENT_QP_REQ_ERR, third) == 1);
	ck_assert_uint_eq(event_count, 2);
	ck_assert_int_eq(rnic_destroy_qp(third), 0);
	ck_assert_uint_eq(rnic_objects(b.ctx), objects);
	ck_assert_int_eq(rnic_destroy_qp(second), 0);
	ck_assert_ptr_null(qp_find(net, second->qp_num));
	ck_assert_ptr_null(open_target(domain[0], second->qp_num));
	expect(q[1].cq, 1, IBV_WC_SUCCESS); /* what a queue has received is the queue's */
}

START_TEST(handles)
{
	run(task, handles_body);
}
END_TEST

static void close_body(void)
{
	connect_xrc();
	struct ibv_qp *second = open_target(domain[0], b.qp->qp_num);
	struct rnic_qp *target = qp_find(net, b.qp->qp_num);
	xrc_close_qp(target, a.ctx);
	ck_assert_ptr_eq(qp_find(net, b.qp->qp_num), target);
	xrc_close_qp(target, b.ctx);
	ck_assert_ptr_null(qp_find(net, b.qp->qp_num));
	ck_assert_int_eq(rnic_destroy_qp(second), EINVAL);
}

START_TEST(closed_context)
{
	run(task, close_body);
}
END_TEST

/* --- room, resets, destruction --- */

/* A request's room comes back when its completion is polled, in whatever order the queues are. */
static void room_body(void)
{
	connect_xrc();
	for (unsigned i = 0; i < 2; i++)
		for (unsigned n = 0; n < SRQ_WR; n++)
			give(&q[i], 0, 8, n);
	ck_assert_int_eq(try_give(&q[0], 0, 8, 0), ENOMEM);
	for (unsigned n = 0; n < SRQ_WR; n++) {
		send_to(&q[n % 2], 0, 8, n);
		expect(a.scq, n, IBV_WC_SUCCESS);
	}
	ck_assert_int_eq(try_give(&q[0], 0, 8, 0), ENOMEM);
	for (unsigned n = 0; n < SRQ_WR / 2; n++) {
		expect(q[1].cq, n, IBV_WC_SUCCESS);
		give(&q[1], 0, 8, 0);
		ck_assert_int_eq(try_give(&q[1], 0, 8, 0), ENOMEM);
	}
	ck_assert_int_eq(try_give(&q[0], 0, 8, 0), ENOMEM);
	expect(q[0].cq, 0, IBV_WC_SUCCESS);
	give(&q[0], 0, 8, 0);
}

START_TEST(room)
{
	run(task, room_body);
}
END_TEST

static void reset_body(void)
{
	connect_xrc();
	struct rnic_srq *srq = (struct rnic_srq *)q[1].srq;
	give(&q[1], 0, 2048, 1);
	give(&q[1], 0, 2048, 2);
	deliver(HOST_SERVER, &b, &a, OP_SEND_FIRST, opt.psn, q[1].number, 1024);
	ck_assert_uint_eq(srq->taken, 1);
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_RESET, 0), 0);
	ck_assert_uint_eq(srq->taken, 0);
	ck_assert(empty(q[1].cq));
	ready_target();
	send_to(&q[1], 0, 8, 3);
	expect(a.scq, 3, IBV_WC_SUCCESS);
	expect(q[1].cq, 2, IBV_WC_SUCCESS);
}

START_TEST(reset_in_a_message)
{
	run(task, reset_body);
}
END_TEST

/* A queue goes: with what has completed for it, in the middle of a message, while requests wait. */
static void gone_body(void)
{
	connect_xrc();
	give(&q[1], 0, 64, 1);
	give(&q[1], 0, 4096, 2);
	send_to(&q[1], 0, 8, 3);
	expect(a.scq, 3, IBV_WC_SUCCESS);
	deliver(HOST_SERVER, &b, &a, OP_SEND_FIRST, psn_add(opt.psn, 1), q[1].number, 1024);
	ck_assert_int_eq(rnic_destroy_srq(q[1].srq), 0);
	ck_assert(empty(q[1].cq));
	ck_assert_int_eq(rnic_destroy_cq(q[1].cq), 0);
	deliver(HOST_SERVER, &b, &a, OP_SEND_LAST, psn_add(opt.psn, 2), q[1].number, 8);
	ck_assert_uint_eq(noted(IBV_EVENT_QP_REQ_ERR, b.qp), 1);
	ck_assert_int_eq(rnic_destroy_qp(b.qp), 0);
	for (unsigned i = 0; i < QUEUES; i++)
		if (i != 1)
			ck_assert_int_eq(rnic_destroy_srq(q[i].srq), 0);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(ibv_close_xrcd(domain[i]), 0);
}

START_TEST(queue_gone)
{
	run(task, gone_body);
}
END_TEST

static unsigned hold_fetch(const struct choice_point *at, unsigned n)
{
	(void)n;
	return at->kind == CHOICE_FETCH ? 6 : 0;
}

static void gone_read_body(void)
{
	connect_xrc();
	request(IBV_WR_RDMA_WRITE, q[0].number, &q[0], 0, 8, 0, 1);
	request(IBV_WR_RDMA_READ, q[1].number, &q[1], 64, 8, 0, 2);
	request(IBV_WR_RDMA_READ, q[1].number, &q[1], 64, 8, 0, 3);
	rt_sleep(2 * US);
	ck_assert_int_eq(rnic_destroy_srq(q[1].srq), 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	expect(a.scq, 3, IBV_WC_WR_FLUSH_ERR);
}

START_TEST(queue_gone_before_its_read)
{
	source.answer = hold_fetch;
	run(task, gone_read_body);
}
END_TEST

/* The completion queue of one shared receive queue overruns. */
static void overrun_body(void)
{
	connect_xrc();
	ck_assert_int_eq(rnic_resize_cq(q[1].cq, 1), 0);
	for (unsigned n = 0; n < 3; n++)
		give(&q[1], 0, 64, n);
	send_to(&q[1], 0, 8, 1);
	send_to(&q[1], 0, 8, 2);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	wait_for(a.scq);
	rt_sleep(10 * US);
	ck_assert_uint_eq(noted(IBV_EVENT_CQ_ERR, q[1].cq), 1);
	ck_assert_uint_eq(noted(IBV_EVENT_QP_FATAL, b.qp), 1);
}

START_TEST(overrun)
{
	run(task, overrun_body);
}
END_TEST

/* --- a bad link --- */

static bool keeps; /* what came ahead of its turn (core/rnic/transport/loss_recovery.c) */

static void lossy_body(void)
{
	uint64_t state = source.state;
	unsigned taken[2] = {0};
	net->link->lossy = keeps;
	connect_xrc();
	for (unsigned i = 0; i < 2; i++)
		for (unsigned n = 0; n < SRQ_WR / 2; n++)
			give(&q[i], (i * SRQ_WR / 2 + n) * 2048, 2048, n);
	fill(a.buf, SRQ_WR * 2048, 1);
	for (unsigned n = 0; n < 40; n++) {
		unsigned i = rnd(&state) % 2;
		uint32_t len = (uint32_t)(rnd(&state) % 2048);
		bool writes = rnd(&state) % 3 == 0;
		size_t at = (size_t)(SRQ_WR + n % 16) * 2048;
		uint8_t *there = b.buf + (writes ? at : (i * SRQ_WR / 2 + taken[i]) * 2048);
		request(writes ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, q[i].number, &q[i], n * 2048, len,
			at, n);
		expect(a.scq, n, IBV_WC_SUCCESS);
		if (!writes) {
			struct ibv_wc wc = wait_for(q[i].cq);
			ck_assert(wc.status == IBV_WC_SUCCESS && wc.byte_len == len &&
				  wc.wr_id == taken[i]++);
		} else { /* a READ after it finds it */
			request(IBV_WR_RDMA_READ, q[i].number, &q[i], 100 * 2048, 1, at, 500);
			expect(a.scq, 500, IBV_WC_SUCCESS);
		}
		ck_assert_mem_eq(there, a.buf + n * 2048, len);
		ck_assert(empty(q[0].cq) && empty(q[1].cq));
	}
}

START_TEST(lossy)
{
	source.state = 100 + (uint64_t)_i;
	source.permille[CHOICE_PACKET] = 100;
	source.permille[CHOICE_LAND] = 50;
	keeps = _i % 2;
	run(task, lossy_body);
}
END_TEST

/* Requests for both queues at once, of which some are kept after a gap. */
static void in_turns_body(void)
{
	net->link->lossy = true;
	connect_xrc();
	for (unsigned n = 0; n < 40; n++) {
		give(&q[n % 2], (size_t)n * 2048, 2048, n);
	}
	fill(a.buf, 40 * 2048, 1);
	for (unsigned n = 0; n < 40; n++)
		send_to(&q[n % 2], (size_t)n * 2048, 2048 - n, 100 + n);
	for (unsigned n = 0; n < 40; n++) {
		expect(a.scq, 100 + n, IBV_WC_SUCCESS);
		expect(q[n % 2].cq, n, IBV_WC_SUCCESS);
		ck_assert_mem_eq(b.buf + (size_t)n * 2048, a.buf + (size_t)n * 2048, 2048 - n);
	}
	/* One that is kept, and is refused when its turn comes. */
	give(&q[0], 0, 64, 1);
	send_to(&q[0], 0, 8, 1);
	request(IBV_WR_SEND, q[DOMAIN_2].number, &q[0], 0, 8, 0, 2);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
}

START_TEST(in_turns)
{
	source.state = 300 + (uint64_t)_i;
	source.permille[CHOICE_PACKET] = 150;
	run(task, in_turns_body);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rnic_xrc");
	TCase *tests = tcase_create("rnic_xrc");
	tcase_add_checked_fixture(tests, setup_options, NULL);
	tcase_add_test(tests, domains);
	tcase_add_test(tests, domains_of_files);
	tcase_add_test(tests, numbers_run_out);
	tcase_add_test(tests, queue_pairs);
	tcase_add_test(tests, transitions);
	tcase_add_test(tests, sends);
	tcase_add_test(tests, one_sided);
	tcase_add_test(tests, requests_that_wait);
	tcase_add_test(tests, batches);
	tcase_add_loop_test(tests, other_domain, 0, 5);
	tcase_add_loop_test(tests, unknown_queue, 0, 5);
	tcase_add_loop_test(tests, foreign_key, 0, 4);
	tcase_add_test(tests, changed_queue);
	tcase_add_test(tests, wrong_end);
	tcase_add_test(tests, bad_receives);
	tcase_add_test(tests, not_ready);
	tcase_add_test(tests, handles);
	tcase_add_test(tests, closed_context);
	tcase_add_test(tests, room);
	tcase_add_test(tests, reset_in_a_message);
	tcase_add_test(tests, queue_gone);
	tcase_add_test(tests, queue_gone_before_its_read);
	tcase_add_test(tests, overrun);
	tcase_add_loop_test(tests, lossy, 0, 20);
	tcase_add_loop_test(tests, in_turns, 0, 20);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
