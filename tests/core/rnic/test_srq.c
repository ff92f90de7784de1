/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: the object, queue pairs of each type that take from one, its limit, what
 * errors and resets leave behind. */
#include "core/rnic/objects/ah.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/srq.h"
#include "tests/core/rnic/rnic_world.h"

#define SENT IBV_SEND_SIGNALED

static struct ibv_srq *srq; /* b's */
static struct side b2;	    /* a second queue pair of b's, whose peer is a2 */
static struct side a2;

static struct ibv_srq *make_srq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr init = {.srq_context = &srq,
					 .attr = {.max_wr = max_wr, .max_sge = max_sge}};
	return rnic_create_srq(b.pd, &init);
}

/* b has a shared receive queue and two queue pairs on it, each with a peer at a's. */
static void share(enum ibv_qp_type type, uint32_t max_wr)
{
	note_events();
	srq = make_srq(max_wr, 2);
	ck_assert_ptr_nonnull(srq);
	remake_qp(&a, type, NULL);
	remake_qp(&b, type, srq);
	a2 = a;
	b2 = b;
	struct ibv_qp_init_attr init = {
		.send_cq = a.scq, .recv_cq = a.rcq, .cap = {16, 16, 1, 1, 0}, .qp_type = type};
	a2.qp = rnic_create_qp(a.pd, &init);
	init.send_cq = b.scq;
	init.recv_cq = b.rcq;
	init.srq = srq;
	b2.qp = rnic_create_qp(b.pd, &init);
	ck_assert(a2.qp && b2.qp);
	connect_both();
	connect_side(&a2, &b2);
	connect_side(&b2, &a2);
	sim_source(sim, source.answer || source.state ? &source.source : NULL);
}

static int try_recv(struct ibv_srq *to, size_t off, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)b.buf + off, len, b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
	return ibv_post_srq_recv(to, &wr, &bad);
}

static void give(size_t off, uint32_t len, uint64_t id)
{
	ck_assert_int_eq(try_recv(srq, off, len, id), 0);
}

static void send_word(struct side *from, struct side *to, uint64_t value)
{
	set_word(&a, 0, value);
	op(from, IBV_WR_SEND, 0, 8, to, 0, value, SENT);
}

static struct ibv_wc sent_and_received(struct side *from, struct side *to, uint64_t value)
{
	send_word(from, to, value);
	expect(a.scq, value, IBV_WC_SUCCESS);
	struct ibv_wc wc = wait_for(b.rcq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.qp_num, to->qp->qp_num);
	return wc;
}

/* --- the object --- */

RNIC_TEST(task, object)
{
	struct ibv_srq_attr attr;
	unsigned objects = rnic_objects(b.ctx);
	NOT_MADE(make_srq(0, 1), EINVAL);
	ck_assert_ptr_null(make_srq(MAX_WR + 1, 1));
	NOT_MADE(make_srq(1, MAX_SGE + 1), EINVAL);
	srq = make_srq(10, 3);
	ck_assert_ptr_nonnull(srq);
	ck_assert_ptr_eq(srq->pd, b.pd);
	ck_assert_ptr_eq(srq->context, b.ctx);
	ck_assert_ptr_eq(srq->srq_context, &srq);
	ck_assert_int_eq(rnic_query_srq(srq, &attr), 0);
	ck_assert(attr.max_wr == 10 && attr.max_sge == 3 && attr.srq_limit == 0);
	/* modify */
	attr = (struct ibv_srq_attr){.max_wr = 20, .srq_limit = 11};
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR), 0);
	ck_assert_int_eq(rnic_query_srq(srq, &attr), 0);
	ck_assert(attr.max_wr == 20 && attr.srq_limit == 11);
	attr.max_wr = 10;
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, 1 << 5), EINVAL);
	attr = (struct ibv_srq_attr){.max_wr = 0, .srq_limit = 0};
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	attr.max_wr = MAX_WR + 1;
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	/* the extended way */
	struct ibv_srq_init_attr_ex ex = {.attr = {.max_wr = 4, .max_sge = 1},
					  .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
						       IBV_SRQ_INIT_ATTR_PD,
					  .srq_type = IBV_SRQT_BASIC,
					  .pd = b.pd};
	struct ibv_srq *second = rnic_create_srq_ex(b.ctx, &ex);
	uint32_t one, two;
	ck_assert_ptr_nonnull(second);
	ck_assert_int_eq(ibv_get_srq_num(srq, &one), 0);
	ck_assert_int_eq(ibv_get_srq_num(second, &two), 0);
	ck_assert_uint_ne(one, two);
	ex.srq_type = IBV_SRQT_XRC;
	NOT_MADE(ibv_create_srq_ex(b.ctx, &ex), EOPNOTSUPP);
	ex.srq_type = IBV_SRQT_TM;
	NOT_MADE(ibv_create_srq_ex(b.ctx, &ex), EOPNOTSUPP);
	ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	ex.srq_type = IBV_SRQT_BASIC;
	NOT_MADE(ibv_create_srq_ex(b.ctx, &ex), EINVAL);
	/* users: not an unreliable connection; what its receive queue would hold is not looked at
	 */
	struct ibv_qp_init_attr user = {.send_cq = b.scq,
					.recv_cq = b.rcq,
					.srq = srq,
					.cap = {1, UINT32_MAX, 1, UINT32_MAX, 0},
					.qp_type = IBV_QPT_UC};
	NOT_MADE(rnic_create_qp(b.pd, &user), EINVAL);
	user.qp_type = IBV_QPT_UD;
	ck_assert_int_eq(rnic_destroy_qp(rnic_create_qp(b.pd, &user)), 0);
	remake_qp(&b, IBV_QPT_RC, srq);
	ck_assert_int_eq(rnic_destroy_srq(srq), EBUSY);
	remake_qp(&b, IBV_QPT_RC, NULL);
	ck_assert_int_eq(rnic_destroy_srq(srq), 0);
	ck_assert_int_eq(rnic_destroy_srq(srq), EINVAL);
	ck_assert_int_eq(rnic_destroy_srq(second), 0);
	ck_assert_int_eq(try_recv(second, 0, 8, 1), EINVAL);
	ck_assert_int_eq(rnic_query_srq(second, &attr), EINVAL);
	ck_assert_uint_eq(rnic_objects(b.ctx), objects);
	struct ibv_qp_init_attr init = {
		.send_cq = b.scq, .recv_cq = b.rcq, .srq = second, .qp_type = IBV_QPT_RC};
	NOT_MADE(rnic_create_qp(b.pd, &init), EINVAL);
	struct ibv_device_attr device;
	ck_assert_int_eq(rnic_query_device(b.ctx, &device), 0);
	ck_assert(device.max_srq > 0 && device.max_srq_wr == MAX_WR &&
		  device.max_srq_sge == MAX_SGE);
}

RNIC_TEST(task, domain)
{
	struct ibv_pd *pd = rnic_alloc_pd(b.ctx);
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1}};
	struct ibv_srq *other = rnic_create_srq(pd, &init);
	ck_assert_ptr_nonnull(other);
	ck_assert_int_eq(rnic_dealloc_pd(pd), EBUSY);
	ck_assert_int_eq(rnic_destroy_srq(other), 0);
	ck_assert_int_eq(rnic_dealloc_pd(pd), 0);
	NOT_MADE(rnic_create_srq(pd, &init), EINVAL);
}

/* --- taking from it --- */

RNIC_TEST(task, sharing)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	share(IBV_QPT_RC, 8);
	for (unsigned i = 0; i < 4; i++)
		give(i * 64, 64, i);
	ck_assert_uint_eq(sent_and_received(&a, &b, 10).wr_id, 0);
	ck_assert_uint_eq(sent_and_received(&a2, &b2, 11).wr_id, 1);
	ck_assert_uint_eq(sent_and_received(&a2, &b2, 12).wr_id, 2);
	ck_assert_uint_eq(sent_and_received(&a, &b, 13).wr_id, 3);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(word(&b, i * 64), 10 + i);
	/* The queue pairs have no receive queue of their own. */
	struct ibv_sge sge = {(uintptr_t)b.buf, 64, b.mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	ck_assert_int_eq(ibv_post_recv(b.qp, &wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr);
	ck_assert_int_eq(rnic_query_qp(b.qp, &attr, IBV_QP_CAP, &init), 0);
	ck_assert_ptr_eq(init.srq, srq);
	ck_assert_uint_eq(init.cap.max_recv_wr, 0);
	/* A message of many packets, and a WRITE that takes one for its immediate data. */
	fill(a.buf + 8192, 5000, 3);
	give(8192, 5000, 20);
	op(&a, IBV_WR_SEND, 8192, 5000, &b, 0, 1, SENT);
	expect(b.rcq, 20, IBV_WC_SUCCESS);
	ck_assert_mem_eq(a.buf + 8192, b.buf + 8192, 5000);
	give(0, 0, 21);
	op(&a2, IBV_WR_RDMA_WRITE_WITH_IMM, 8192, 5000, &b, 20000, 2, SENT);
	expect(b.rcq, 21, IBV_WC_SUCCESS);
	ck_assert_mem_eq(a.buf + 8192, b.buf + 20000, 5000);
}

RNIC_TEST(task, room)
{
	struct ibv_srq_attr attr = {.max_wr = 2};
	share(IBV_QPT_RC, 3);
	for (unsigned i = 0; i < 3; i++)
		give(i * 64, 64, i);
	ck_assert_int_eq(try_recv(srq, 0, 8, 3), ENOMEM);
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	struct ibv_sge three[3] = {{0}};
	struct ibv_recv_wr wr = {.sg_list = three, .num_sge = 3}, *bad;
	ck_assert_int_eq(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	/* Taken and completed, but not polled: still there. */
	send_word(&a, &b, 1);
	send_word(&a2, &b2, 2);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	rt_sleep(10 * US);
	ck_assert_int_eq(try_recv(srq, 0, 8, 3), ENOMEM);
	expect(b.rcq, 0, IBV_WC_SUCCESS);
	give(0, 64, 3);
	ck_assert_int_eq(try_recv(srq, 0, 8, 4), ENOMEM);
	/* A reset takes the second one's completion along, and gives its room back. */
	ck_assert_int_eq(modify(&b2, &a2, IBV_QPS_RESET, 0), 0);
	give(0, 64, 4);
	ck_assert_int_eq(try_recv(srq, 0, 8, 5), ENOMEM);
	attr.max_wr = 5;
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	give(0, 64, 5);
	give(0, 64, 6);
	ck_assert_int_eq(try_recv(srq, 0, 8, 7), ENOMEM);
	for (unsigned i = 2; i < 7; i++)
		ck_assert_uint_eq(sent_and_received(&a, &b, 100 + i).wr_id, i);
	ck_assert(empty(b.rcq));
}

RNIC_TEST(task, not_ready)
{
	share(IBV_QPT_RC, 8);
	send_word(&a, &b, 1);
	rt_sleep(100 * US);
	ck_assert(empty(a.scq));
	give(0, 64, 9);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(b.rcq, 9, IBV_WC_SUCCESS);
	/* Two wait for one. */
	send_word(&a, &b, 2);
	send_word(&a2, &b2, 3);
	rt_sleep(100 * US);
	give(0, 64, 10);
	struct ibv_wc first = wait_for(a.scq);
	expect(b.rcq, 10, IBV_WC_SUCCESS);
	rt_sleep(100 * US);
	ck_assert(empty(a.scq));
	give(0, 64, 11);
	expect(a.scq, 5 - first.wr_id, IBV_WC_SUCCESS);
	expect(b.rcq, 11, IBV_WC_SUCCESS);
}

RNIC_TEST(task, exhausted, opt.rnr_retry = 1)
{
	share(IBV_QPT_RC, 8);
	send_word(&a, &b, 1);
	expect(a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
}

/* --- events --- */

RNIC_TEST(task, limit)
{
	struct ibv_srq_attr attr = {.srq_limit = 3};
	share(IBV_QPT_RC, 8);
	for (unsigned i = 0; i < 4; i++)
		give(i * 64, 64, i);
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	sent_and_received(&a, &b, 1); /* 3 left: not below */
	ck_assert_uint_eq(event_count, 0);
	sent_and_received(&a2, &b2, 2);
	ck_assert_uint_eq(noted(IBV_EVENT_SRQ_LIMIT_REACHED, srq), 1);
	ck_assert_int_eq(rnic_query_srq(srq, &attr), 0);
	ck_assert_uint_eq(attr.srq_limit, 0);
	sent_and_received(&a2, &b2, 3);
	ck_assert_uint_eq(event_count, 1);
	/* Armed again. */
	attr.srq_limit = 1;
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	sent_and_received(&a, &b, 4);
	ck_assert_uint_eq(noted(IBV_EVENT_SRQ_LIMIT_REACHED, srq), 2);
	ck_assert_uint_eq(event_count, 2);
}

/* A queue pair that fails flushes what it has taken, says that it takes no more, and leaves the
 * rest. */
RNIC_TEST(task, last)
{
	share(IBV_QPT_RC, 8);
	for (unsigned i = 0; i < 3; i++)
		give(i * 4096, 1500, i);
	/* Two packets fit, the third does not. */
	op(&a, IBV_WR_SEND, 0, 3000, &b, 0, 1, SENT);
	expect(a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect(b.rcq, 0, IBV_WC_LOC_LEN_ERR);
	ck_assert_int_eq(b.qp->state, IBV_QPS_ERR);
	ck_assert_uint_eq(noted(IBV_EVENT_QP_LAST_WQE_REACHED, b.qp), 1);
	ck_assert_uint_eq(event_count, 1);
	struct ibv_recv_wr wr = {0}, *bad;
	ck_assert_int_eq(ibv_post_recv(b.qp, &wr, &bad), EINVAL);
	ck_assert_uint_eq(event_count, 1);
	ck_assert_uint_eq(sent_and_received(&a2, &b2, 2).wr_id, 1);
	ck_assert(empty(b.rcq));
	/* By hand, too. */
	ck_assert_int_eq(modify(&b2, &a2, IBV_QPS_ERR, 0), 0);
	ck_assert_uint_eq(noted(IBV_EVENT_QP_LAST_WQE_REACHED, b2.qp), 1);
	ck_assert_int_eq(modify(&b2, &a2, IBV_QPS_ERR, 0), 0);
	ck_assert_uint_eq(event_count, 2);
	ck_assert(empty(b.rcq));
	/* And again after a reset: the one that is left serves. */
	reconnect();
	ck_assert_uint_eq(sent_and_received(&a, &b, 3).wr_id, 2);
}

/* --- domains, datagrams --- */

RNIC_TEST(task, foreign_domain)
{
	struct ibv_pd *own = b.pd, *other = rnic_alloc_pd(b.ctx);
	struct ibv_mr *mr = b.mr;
	b.pd = other;
	b.mr = rnic_reg_mr(other, b.buf, BUF, ALL_ACCESS);
	struct ibv_mr *theirs = b.mr;
	share(IBV_QPT_RC, 8); /* queue pairs and shared queue: of the other domain */
	b.pd = own;
	remake_qp(&b, IBV_QPT_RC, srq);
	remake_qp(&a, IBV_QPT_RC, NULL);
	connect_both();
	give(0, 64, 1); /* its keys are the shared queue's domain's ... */
	sent_and_received(&a, &b, 5);
	b.mr = mr; /* ... a WRITE's those of the queue pair's */
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 64);
	give(0, 64, 3);
	send_word(&a, &b, 6);
	expect(b.rcq, 3, IBV_WC_LOC_PROT_ERR);
	expect(a.scq, 6, IBV_WC_REM_OP_ERR);
	b.mr = theirs;
}

RNIC_TEST(task, datagram)
{
	share(IBV_QPT_UD, 8);
	struct ibv_ah_attr attr = attr_for(&b).ah_attr;
	struct ibv_ah *ah = rnic_create_ah(a.pd, &attr);
	struct side *to[] = {&b2, &b, &b2};
	for (unsigned i = 0; i < 3; i++)
		give(i * 128, i < 2 ? 128 : 47, i);
	for (unsigned i = 0; i < 3; i++) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = wr_make(&a, IBV_WR_SEND, &sge, 0, 8, to[i], 0);
		set_word(&a, 0, 50 + i);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = to[i]->qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		post_done(&a, &wr, IBV_WC_SUCCESS);
		struct ibv_wc wc = wait_for(b.rcq);
		ck_assert_uint_eq(wc.wr_id, i);
		ck_assert_uint_eq(wc.qp_num, to[i]->qp->qp_num);
		ck_assert_int_eq(wc.status, i < 2 ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR);
		if (i < 2)
			ck_assert_uint_eq(word(&b, i * 128 + GRH_BYTES), 50 + i);
	}
	ck_assert_uint_eq(noted(IBV_EVENT_QP_LAST_WQE_REACHED, b2.qp), 1);
}

/* --- much at once --- */

#define SLOT  4096u
#define SLOTS 12u
#define SENDS 200u

/* Two connections over a bad link send as fast as they can: each message arrives once and whole, in
 * its connection's order, and the shared queue's entries all come back. */
RNIC_TESTS(task, soak, 12, source.state = (uint64_t)_i + 1, source.permille[CHOICE_PACKET] = 30,
	   source.permille[CHOICE_LAND] = _i % 2 ? 3 : 0, opt.timeout = 6,
	   opt.hw.ack_early = _i % 3 != 0)
{
	uint64_t state = source.state;
	struct side *from[2] = {&a, &a2}, *to[2] = {&b, &b2};
	uint64_t sent[2] = {0}, done[2] = {0}, got[2] = {0};
	bool held[SLOTS] = {0};
	static uint8_t want[SLOT];
	share(IBV_QPT_RC, SLOTS);
	while (got[0] < SENDS || got[1] < SENDS) {
		struct ibv_wc wc;
		for (unsigned i = 0; i < 2; i++) {
			if (sent[i] == SENDS || sent[i] - done[i] >= 4)
				continue;
			uint64_t name = i << 20 | sent[i];
			size_t off = (i * 4 + sent[i] % 4) * SLOT;
			fill(a.buf + off, SLOT, name);
			set_word(&a, off, name);
			op(from[i], IBV_WR_SEND, off,
			   8 + (uint32_t)(random_next(&state) % (SLOT - 8)), to[i], 0, i, SENT);
			sent[i]++;
		}
		for (unsigned i = 0; i < SLOTS; i++)
			if (!held[i] && random_next(&state) % 3 == 0) {
				give(i * SLOT, SLOT, i);
				held[i] = true;
			}
		while (ibv_poll_cq(a.scq, 1, &wc)) {
			ck_assert_msg(wc.status == IBV_WC_SUCCESS, "%s",
				      rnic_wc_status_str(wc.status));
			done[wc.wr_id]++;
		}
		while (ibv_poll_cq(b.rcq, 1, &wc)) {
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			uint64_t name = word(&b, wc.wr_id * SLOT), i = name >> 20;
			ck_assert_uint_eq(wc.qp_num, to[i]->qp->qp_num);
			ck_assert_uint_eq(name & 0xfffff, got[i]++);
			fill(want, wc.byte_len, name);
			memcpy(want, &name, 8);
			ck_assert_mem_eq(b.buf + wc.wr_id * SLOT, want, wc.byte_len);
			held[wc.wr_id] = false;
		}
		rt_sleep(US);
	}
	ck_assert_uint_eq(((struct rnic_srq *)srq)->taken, 0);
}

RUN_TESTS(setup_options, NULL)
