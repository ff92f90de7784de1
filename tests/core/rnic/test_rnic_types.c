/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The states of queue pairs of each type. Those of types UC and UD, and address handles: what each
 * type may do, what a lost or refused message leaves, what a datagram brings along.
 */
#include "core/rnic/objects/ah.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/qp.h"
#include "tests/core/rnic/rnic_world.h"

#define SENT IBV_SEND_SIGNALED

static void remake_both(enum ibv_qp_type type)
{
	remake_qp(&a, type, NULL);
	remake_qp(&b, type, NULL);
	connect_both();
	sim_source(sim, source.answer || source.state ? &source.source : NULL);
}

/* --- the state machine --- */

/* What a step needs and allows, from the tables of IBA vol. 1, 11.2.5.2. To Reset and Error each
 * state leads, with nothing said besides; there is no other step. */
#define CUR   IBV_QP_CUR_STATE
#define QKEY_ IBV_QP_QKEY
#define FLAGS IBV_QP_ACCESS_FLAGS
#define PKEY  IBV_QP_PKEY_INDEX
#define RNR   IBV_QP_MIN_RNR_TIMER
#define PSN   IBV_QP_SQ_PSN
#define TOLD  IBV_QP_EN_SQD_ASYNC_NOTIFY
static const struct step {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int required, optional;
} steps[] = {
	{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, MASK_INIT, 0},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, MASK_INIT},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, MASK_RTR, FLAGS | PKEY},
	{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, MASK_RTS, CUR | FLAGS | RNR},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | FLAGS | RNR},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, TOLD},
	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 (MASK_RTS & ~PSN) | MASK_INIT | IBV_QP_AV | IBV_QP_MAX_DEST_RD_ATOMIC | RNR},
	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | FLAGS | RNR},
	{IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, MASK_INIT, 0},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, MASK_INIT},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, MASK_RTR_UC, FLAGS | PKEY},
	{IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, PSN, CUR | FLAGS},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | FLAGS},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, TOLD},
	{IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_AV | FLAGS | PKEY},
	{IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | FLAGS},
	{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, MASK_INIT_UD, 0},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, MASK_INIT_UD},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, QKEY_ | PKEY},
	{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, PSN, CUR | QKEY_},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | QKEY_},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, TOLD},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, QKEY_ | PKEY},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | QKEY_},
};

/* What was said is what a query says. */
static void taken(const struct ibv_qp_attr *said, int mask)
{
	struct ibv_qp_attr now;
	struct ibv_qp_init_attr init;

	ck_assert_int_eq(rnic_query_qp(a.qp, &now, mask, &init), 0);
	ck_assert(init.send_cq == a.scq && init.recv_cq == a.rcq && !init.srq);
	ck_assert(init.qp_type == a.qp->qp_type && now.qp_state == a.qp->state);
	ck_assert(now.cap.max_send_wr == opt.send_wr && now.cap.max_inline_data >= 128);
#define SAME(bit, field) ck_assert(!(mask & (bit)) || now.field == said->field)
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
	if (mask & IBV_QP_AV)
		ck_assert_mem_eq(&now.ah_attr, &said->ah_attr, sizeof(said->ah_attr));
}

static void try_step(enum ibv_qp_state from, enum ibv_qp_state to, int mask, bool allowed)
{
	struct ibv_qp_attr attr = attr_for(&b);

	bring_to(&a, &b, from);
	attr.qp_state = to;
	attr.cur_qp_state = from;
	ck_assert_msg(rnic_modify_qp(a.qp, &attr, mask | IBV_QP_STATE) == (allowed ? 0 : EINVAL),
		      "type %d, %d to %d with %#x", (int)a.qp->qp_type, from, to, (unsigned)mask);
	ck_assert_int_eq(a.qp->state, allowed ? to : from);
	if (allowed && to != IBV_QPS_RESET)
		taken(&attr, mask);
}

/* With the least; with one bit that is not in it, or without one that is. */
static void try_pair(enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct step step = {0};
	bool known = to == IBV_QPS_RESET || to == IBV_QPS_ERR;

	for (unsigned i = 0; i < ROWS_OF(steps) && !known; i++)
		if (steps[i].type == a.qp->qp_type && steps[i].from == from && steps[i].to == to) {
			step = steps[i];
			known = true;
		}
	try_step(from, to, step.required, known);
	if (known)
		try_step(from, to, step.required | step.optional, true);
	else
		for (unsigned i = 0; i < ROWS_OF(steps); i++)
			try_step(from, to, steps[i].required, false);
	for (int bit = CUR; bit <= IBV_QP_RATE_LIMIT; bit <<= 1)
		try_step(from, to, step.required ^ bit, known && step.optional & bit);
}

RNIC_TEST(task, transitions, opt.min_rnr_timer = 7)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						   IBV_QPS_RTS,	  IBV_QPS_SQD,	IBV_QPS_ERR};
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	for (unsigned i = 0; i < ROWS_OF(types); i++) {
		remake_qp(&a, types[i], NULL);
		for (unsigned from = 0; from < ROWS_OF(states); from++)
			for (unsigned to = 0; to < ROWS_OF(states); to++)
				try_pair(states[from], states[to]);
	}
}

/* A value that there is not: no attribute is changed, and the state is not either. */
static const struct value {
	int bit;
	enum ibv_qp_state from; /* the step to the next state is tried */
	size_t field, size;
	uint32_t wrong;
	int error;
} values[] = {
#define VALUE(bit, from, field, wrong, error)                                      \
	{                                                                          \
		IBV_QP_##bit, IBV_QPS_##from, offsetof(struct ibv_qp_attr, field), \
			sizeof(((struct ibv_qp_attr *)0)->field), wrong, error     \
	}
	VALUE(PKEY_INDEX, RESET, pkey_index, 1, EINVAL),
	VALUE(PORT, RESET, port_num, 0, EINVAL),
	VALUE(PORT, RESET, port_num, 2, EINVAL),
	VALUE(ACCESS_FLAGS, RESET, qp_access_flags, 1u << 30, EINVAL),
	VALUE(PATH_MTU, INIT, path_mtu, 0, EINVAL),
	VALUE(PATH_MTU, INIT, path_mtu, IBV_MTU_2048, EINVAL), /* the port has less */
	VALUE(DEST_QPN, INIT, dest_qp_num, 1u << 24, EINVAL),
	VALUE(MAX_DEST_RD_ATOMIC, INIT, max_dest_rd_atomic, 17, EINVAL),
	VALUE(MIN_RNR_TIMER, INIT, min_rnr_timer, 32, EINVAL),
	VALUE(AV, INIT, ah_attr.is_global, 0, EINVAL),
	VALUE(AV, INIT, ah_attr.port_num, 2, EINVAL),
	VALUE(AV, INIT, ah_attr.grh.sgid_index, 1, EINVAL),
	VALUE(AV, INIT, ah_attr.grh.dgid, 0, EINVAL),
	VALUE(AV, INIT, ah_attr.grh.dgid.raw[0], 0xfe, ENETUNREACH),
	VALUE(MAX_QP_RD_ATOMIC, RTR, max_rd_atomic, 17, EINVAL),
	VALUE(TIMEOUT, RTR, timeout, 32, EINVAL),
	VALUE(RETRY_CNT, RTR, retry_cnt, 8, EINVAL),
	VALUE(RNR_RETRY, RTR, rnr_retry, 8, EINVAL),
	VALUE(CUR_STATE, RTR, cur_qp_state, IBV_QPS_INIT, EINVAL),
};

RNIC_TEST(task, wrong_values, opt.hw.mtu = 1024)
{
	static const int masks[] = {MASK_INIT, MASK_RTR, MASK_RTS};

	for (unsigned i = 0; i < ROWS_OF(values); i++) {
		const struct value *v = &values[i];
		const uint32_t wrong[4] = {v->wrong};
		const int mask = masks[v->from] | v->bit | IBV_QP_STATE;
		struct ibv_qp_attr attr = attr_for(&b), before, now;

		attr.qp_state = v->from + 1;
		bring_to(&a, &b, v->from);
		memcpy((char *)&attr + v->field, wrong, v->size);
		ck_assert_int_eq(rnic_query_qp(a.qp, &before, mask, NULL), 0);
		ck_assert_msg(rnic_modify_qp(a.qp, &attr, mask) == v->error, "row %u", i);
		ck_assert_int_eq(rnic_query_qp(a.qp, &now, mask, NULL), 0);
		ck_assert_mem_eq(&now, &before, sizeof(now));
	}
}

RNIC_TEST(task, iwarp, opt.hw.transport = TRANSPORT_IWARP)
{
	struct ibv_qp_init_attr init = {.send_cq = a.scq, .recv_cq = a.rcq, .qp_type = IBV_QPT_UD};
	NOT_MADE(rnic_create_qp(a.pd, &init), EOPNOTSUPP);
}

/* --- unreliable connection --- */

static int try_post(enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, opcode, &sge, 0, len, &b, 0), *bad;
	return ibv_post_send(a.qp, &wr, &bad);
}

static unsigned deliver(const struct choice_point *at, unsigned n)
{
	return 0;
}

RNIC_TEST(task, connection, source.answer = deliver)
{
	static const uint32_t lengths[] = {0, 1, 1024, 1025, 10000};
	remake_both(IBV_QPT_UC);
	fill(a.buf, 10000, 5);
	for (unsigned i = 0; i < ROWS_OF(lengths); i++) {
		uint32_t len = lengths[i];
		memset(b.buf, 0, 50000);
		recv_post(&b, 0, len + 1, 1);
		op(&a, i % 2 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, 0, len, &b, 0, 2, SENT);
		expect(a.scq, 2, IBV_WC_SUCCESS);
		struct ibv_wc wc = wait_for(b.rcq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.byte_len, len);
		ck_assert_uint_eq(wc.src_qp, a.qp->qp_num);
		ck_assert_uint_eq(wc.wc_flags, i % 2 ? IBV_WC_WITH_IMM : 0);
		ck_assert_mem_eq(a.buf, b.buf, len);
		recv_post(&b, 0, 0, 3);
		struct ibv_sge sge;
		struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, 0, len, &b,
						20000);
		wr.imm_data = htobe32(77);
		post_done(&a, &wr, IBV_WC_SUCCESS);
		wc = wait_for(b.rcq);
		ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		ck_assert_uint_eq(be32toh(wc.imm_data), 77);
		ck_assert_mem_eq(a.buf, b.buf + 20000, len);
		op_done(&a, IBV_WR_RDMA_WRITE, 0, len, &b, 40000);
		rt_sleep(10 * US);
		ck_assert_mem_eq(a.buf, b.buf + 40000, len);
	}
	ck_assert_int_eq(try_post(IBV_WR_RDMA_READ, 8), EINVAL);
	ck_assert_int_eq(try_post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8), EINVAL);
	ck_assert_int_eq(try_post(IBV_WR_ATOMIC_CMP_AND_SWP, 8), EINVAL);
	ck_assert_int_eq(try_post(IBV_WR_FLUSH, 8), EINVAL);
	ck_assert_uint_eq(source.asked[CHOICE_PACKET],
			  3 * (1 + 1 + 1 + 2 + 10)); /* no acknowledgements */
}

static struct {
	uint32_t message, index;
	unsigned answer;
} hit;

ANSWER(hit_one, at->kind == CHOICE_PACKET && at->a == hit.message && at->b == hit.index, hit.answer)

/* The second of four messages of three packets loses a packet: the others arrive, the second
 * one's receive request serves the third. */
static void gap_body(void)
{
	remake_both(IBV_QPT_UC);
	for (unsigned i = 0; i < 4; i++) {
		fill(a.buf + i * 3000, 3000, i);
		recv_post(&b, i * 4096, 4096, i);
	}
	for (unsigned i = 0; i < 4; i++)
		op(&a, IBV_WR_SEND, i * 3000, 3000, &b, 0, i, SENT);
	for (unsigned i = 0; i < 4; i++)
		expect(a.scq, i, IBV_WC_SUCCESS);
	static const unsigned from[] = {0, 2, 3};
	for (unsigned i = 0; i < 3; i++) {
		struct ibv_wc wc = wait_for(b.rcq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, i);
		ck_assert_uint_eq(wc.byte_len, 3000);
		ck_assert_mem_eq(b.buf + i * 4096, a.buf + from[i] * 3000, 3000);
	}
	rt_sleep(MS);
	ck_assert(empty(b.rcq));
	ck_assert_int_eq(b.qp->state, IBV_QPS_RTS);
	ck_assert_int_eq(a.qp->state, IBV_QPS_RTS);
}

TESTS(gap, 6)
{
	static const unsigned answers[] = {PACKET_LOSE, PACKET_DELAY + 4};
	hit.message = 2;
	hit.index = 1 + (uint32_t)_i % 3;
	hit.answer = answers[_i / 3];
	opt.psn = 0xfffffd;
	source.answer = hit_one;
	run_task(gap_body);
}

/* The receiver says nothing of what it refuses. */
RNIC_TEST(task, refusals)
{
	remake_both(IBV_QPT_UC);
	/* No receive request. */
	op_done(&a, IBV_WR_SEND, 0, 3000, &b, 0);
	rt_sleep(10 * US);
	/* One that is too short, for the first message. */
	recv_post(&b, 0, 2500, 1);
	op(&a, IBV_WR_SEND, 0, 3000, &b, 0, 2, SENT);
	op(&a, IBV_WR_SEND, 0, 2500, &b, 0, 3, SENT);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	expect(a.scq, 3, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wait_for(b.rcq).byte_len, 2500);
	/* A WRITE with a key that does not exist, one out of bounds. */
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, 2000, &b, 5000);
	memset(b.buf, 0, BUF);
	wr.wr.rdma.rkey ^= 0x100;
	post(&a, &wr);
	wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, 2000, &b, BUF - 1500);
	post_done(&a, &wr, IBV_WC_SUCCESS);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	recv_post(&b, 0, 8, 4);
	set_word(&a, 0, 99);
	op(&a, IBV_WR_SEND, 0, 8, &b, 0, 5, SENT);
	expect(b.rcq, 4, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word(&b, 0), 99);
	ck_assert_uint_eq(word(&b, 5000), 0);
	ck_assert_uint_eq(word(&b, BUF - 1500), 0);
	ck_assert_int_eq(b.qp->state, IBV_QPS_RTS);
	ck_assert(empty(b.rcq));
}

RNIC_TEST(task, send_error)
{
	struct ibv_sge sge;
	remake_both(IBV_QPT_UC);
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_SEND, &sge, 0, 8, &b, 0);
	sge.lkey ^= 0x100;
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 64, 1, SENT);
	post(&a, &wr);
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 64, 2, 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 7, IBV_WC_LOC_PROT_ERR);
	expect(a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(a.qp->state, IBV_QPS_SQE);
	/* What is posted now is flushed; receiving goes on. */
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 64, 3, 0);
	expect(a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	recv_post(&a, 128, 8, 4);
	op(&b, IBV_WR_SEND, 0, 8, &a, 0, 5, SENT);
	expect(a.rcq, 4, IBV_WC_SUCCESS);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_SQD, 0), EINVAL);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTS, IBV_QP_QKEY), EINVAL);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS), 0);
	set_word(&a, 0, 1234);
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 64);
	rt_sleep(10 * US);
	ck_assert_uint_eq(word(&b, 64), 1234);
}

/* A receive request whose key is wrong is the receiver's own fault. */
RNIC_TEST(task, receive_error)
{
	remake_both(IBV_QPT_UC);
	struct ibv_sge sge = {(uintptr_t)b.buf, 64, b.mr->lkey ^ 0x100};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
	ck_assert_int_eq(ibv_post_recv(b.qp, &wr, &bad), 0);
	recv_post(&b, 0, 64, 2);
	op_done(&a, IBV_WR_SEND, 0, 8, &b, 0);
	expect(b.rcq, 1, IBV_WC_LOC_PROT_ERR);
	expect(b.rcq, 2, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b.qp->state, IBV_QPS_ERR);
}

/* What the man pages of libibverbs allow on an unreliable connection besides: what needs no
 * packet. */
RNIC_TEST(task, window)
{
	remake_both(IBV_QPT_UC);
	struct ibv_mr *mr = rnic_reg_mr(b.pd, b.buf, BUF, ALL_ACCESS | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = rnic_alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW, .send_flags = SENT}, *bad;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = mr,
		.addr = (uintptr_t)b.buf,
		.length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	ck_assert_int_eq(ibv_post_send(b.qp, &wr, &bad), 0);
	expect(b.scq, 1, IBV_WC_SUCCESS);
	uint32_t rkey = wr.bind_mw.rkey;
	struct ibv_sge sge;
	for (unsigned i = 0; i < 2; i++) {
		set_word(&a, 0, 100 + i);
		wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, 8, &b, 0);
		wr.wr.rdma.rkey = rkey;
		post_done(&a, &wr, IBV_WC_SUCCESS);
		rt_sleep(10 * US);
		ck_assert_uint_eq(word(&b, 0), 100);
		if (i)
			break;
		wr = (struct ibv_send_wr){.wr_id = 2,
					  .opcode = IBV_WR_LOCAL_INV,
					  .send_flags = SENT,
					  .invalidate_rkey = rkey};
		ck_assert_int_eq(ibv_post_send(b.qp, &wr, &bad), 0);
		expect(b.scq, 2, IBV_WC_SUCCESS);
	}
	ck_assert_int_eq(try_post(IBV_WR_SEND_WITH_INV, 8), EINVAL); /* there is no such packet */
}

/* --- datagrams --- */

static struct ibv_ah *address_of(const struct side *from, const struct side *to)
{
	struct ibv_ah_attr attr = attr_for(to).ah_attr;
	return rnic_create_ah(from->pd, &attr);
}

static struct ibv_send_wr datagram(const struct side *from, struct ibv_sge *sge, size_t off,
				   uint32_t len, const struct side *to, struct ibv_ah *ah)
{
	struct ibv_send_wr wr = wr_make(from, IBV_WR_SEND, sge, off, len, to, 0);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to->qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	return wr;
}

static void send_datagram(struct side *from, size_t off, uint32_t len, const struct side *to,
			  struct ibv_ah *ah)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = datagram(from, &sge, off, len, to, ah);
	post(from, &wr);
}

/* The IPv4 header that RoCEv2 has in front of the data. */
static void check_grh(const uint8_t *grh, uint32_t len)
{
	static const uint8_t zeros[20];
	const uint8_t *ip = grh + 20;
	uint32_t sum = 0;
	ck_assert_mem_eq(grh, zeros, 20);
	ck_assert_uint_eq(ip[0], 0x45);
	ck_assert_uint_eq((uint32_t)ip[2] << 8 | ip[3], 20 + 8 + 12 + 8 + ((len + 3) & ~3u) + 4);
	ck_assert_uint_eq(ip[9], 17);
	ck_assert_mem_eq(ip + 12, a.gid.raw + 12, 4);
	ck_assert_mem_eq(ip + 16, b.gid.raw + 12, 4);
	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	ck_assert_uint_eq((sum & 0xffff) + (sum >> 16), 0xffff);
}

RNIC_TEST(task, datagrams)
{
	static const uint32_t lengths[] = {0, 1, 64, 4096};
	remake_both(IBV_QPT_UD);
	struct ibv_ah *ah = address_of(&a, &b);
	ck_assert_ptr_nonnull(ah);
	fill(a.buf, 4096, 9);
	for (unsigned i = 0; i < ROWS_OF(lengths); i++) {
		uint32_t len = lengths[i];
		memset(b.buf, 0xee, 8192);
		recv_post(&b, 0, GRH_BYTES + len, 1);
		send_datagram(&a, 0, len, &b, ah);
		expect(a.scq, 7, IBV_WC_SUCCESS);
		struct ibv_wc wc = wait_for(b.rcq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
		ck_assert_uint_eq(wc.wc_flags, IBV_WC_GRH);
		ck_assert_uint_eq(wc.byte_len, GRH_BYTES + len);
		ck_assert_uint_eq(wc.src_qp, a.qp->qp_num);
		check_grh(b.buf, len);
		ck_assert_mem_eq(b.buf + GRH_BYTES, a.buf, len);
		ck_assert_uint_eq(b.buf[GRH_BYTES + len], 0xee);
		/* The way back. */
		struct ibv_ah *back = rnic_create_ah_from_wc(b.pd, &wc, (struct ibv_grh *)b.buf, 1);
		ck_assert_ptr_nonnull(back);
		recv_post(&a, 10000, 200, 2);
		struct ibv_sge sge;
		struct ibv_send_wr wr = datagram(&b, &sge, 0, 4, &a, back);
		wr.wr.ud.remote_qpn = wc.src_qp;
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		wr.imm_data = htobe32(i);
		post(&b, &wr);
		wc = wait_for(a.rcq);
		ck_assert_uint_eq(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
		ck_assert_uint_eq(be32toh(wc.imm_data), i);
		ck_assert_uint_eq(wc.src_qp, b.qp->qp_num);
		expect(b.scq, 7, IBV_WC_SUCCESS);
		ck_assert_int_eq(rnic_destroy_ah(back), 0);
	}
}

RNIC_TEST(task, keys)
{
	struct ibv_sge sge;
	remake_both(IBV_QPT_UD);
	struct ibv_ah *ah = address_of(&a, &b);
	recv_post(&b, 0, 100, 1);
	struct ibv_send_wr wr = datagram(&a, &sge, 0, 8, &b, ah);
	wr.wr.ud.remote_qkey = QKEY + 1;
	post_done(&a, &wr, IBV_WC_SUCCESS);
	rt_sleep(MS);
	ck_assert(empty(b.rcq));
	/* With the high bit it is the sender's own that counts. */
	wr.wr.ud.remote_qkey = 0x80000000u;
	post(&a, &wr);
	expect(b.rcq, 1, IBV_WC_SUCCESS);
	struct ibv_qp_attr attr = {.qkey = 5};
	ck_assert_int_eq(rnic_modify_qp(b.qp, &attr, IBV_QP_QKEY), 0);
	recv_post(&b, 0, 100, 2);
	post(&a, &wr);
	rt_sleep(MS);
	ck_assert(empty(b.rcq));
	wr.wr.ud.remote_qkey = 5;
	wr.wr.ud.remote_qpn ^= 1; /* no queue pair's */
	post(&a, &wr);
	wr.wr.ud.remote_qpn ^= 1;
	post(&a, &wr);
	expect(b.rcq, 2, IBV_WC_SUCCESS);
	ck_assert(empty(b.rcq));
}

RNIC_TEST(task, datagram_errors)
{
	struct ibv_sge sge;
	remake_both(IBV_QPT_UD);
	struct ibv_ah *ah = address_of(&a, &b);
	struct ibv_send_wr wr = datagram(&a, &sge, 0, 8, &b, ah), *bad;
	/* The receiver is not ready. */
	post_done(&a, &wr, IBV_WC_SUCCESS);
	rt_sleep(MS);
	recv_post(&b, 0, 100, 1);
	/* Found when it is posted. */
	wr.wr.ud.ah = NULL;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	wr.wr.ud.ah = ah;
	for (wr.opcode = IBV_WR_RDMA_WRITE; wr.opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD; wr.opcode++)
		if (wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM)
			ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	/* Found by the RNIC: longer than a packet, another domain's address. */
	wr = datagram(&a, &sge, 0, 4097, &b, ah);
	post_done(&a, &wr, IBV_WC_LOC_LEN_ERR);
	ck_assert_int_eq(a.qp->state, IBV_QPS_SQE);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTS, IBV_QP_QKEY), 0);
	struct ibv_pd *other = rnic_alloc_pd(a.ctx), *pd = a.pd;
	a.pd = other;
	struct ibv_ah *foreign = address_of(&a, &b);
	a.pd = pd;
	wr = datagram(&a, &sge, 0, 8, &b, foreign);
	post_done(&a, &wr, IBV_WC_LOC_QP_OP_ERR);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTS, 0), 0);
	/* A parent domain stands for its domain. */
	struct ibv_parent_domain_init_attr parent = {.pd = pd};
	a.pd = rnic_alloc_parent_domain(a.ctx, &parent);
	struct ibv_ah *own = address_of(&a, &b);
	a.pd = pd;
	wr = datagram(&a, &sge, 0, 8, &b, own);
	wr.wr.ud.remote_qkey = 0;
	post_done(&a, &wr, IBV_WC_SUCCESS);
	/* A receive request without room for the 40 bytes and the data: it is the next one's. */
	ck_assert(empty(b.rcq));
	send_datagram(&a, 0, 61, &b, ah);
	send_datagram(&a, 0, 60, &b, ah);
	struct ibv_wc wc = wait_for(b.rcq);
	ck_assert(wc.wr_id == 1 && wc.status == IBV_WC_SUCCESS && wc.byte_len == GRH_BYTES + 60);
	ck_assert_int_eq(b.qp->state, IBV_QPS_RTS);
}

RNIC_TEST(task, handles)
{
	unsigned objects = rnic_objects(a.ctx);
	struct ibv_ah_attr attr = attr_for(&b).ah_attr, bad = attr;
	struct ibv_pd *pd = rnic_alloc_pd(a.ctx);
	struct ibv_ah *ah = rnic_create_ah(pd, &attr);
	ck_assert_ptr_nonnull(ah);
	ck_assert_ptr_eq(ah->pd, pd);
	ck_assert_ptr_eq(ah->context, a.ctx);
	ck_assert_int_eq(rnic_dealloc_pd(pd), EBUSY);
	ck_assert_int_eq(rnic_destroy_ah(ah), 0);
	ck_assert_int_eq(rnic_destroy_ah(ah), EINVAL);
	ck_assert_int_eq(rnic_dealloc_pd(pd), 0);
	NOT_MADE(rnic_create_ah(pd, &attr), EINVAL);
	ck_assert_uint_eq(rnic_objects(a.ctx), objects);
	bad.is_global = 0;
	NOT_MADE(rnic_create_ah(a.pd, &bad), EINVAL);
	bad = attr;
	bad.port_num = 2;
	NOT_MADE(rnic_create_ah(a.pd, &bad), EINVAL);
	bad = attr;
	bad.grh.sgid_index = 1;
	ck_assert_ptr_null(rnic_create_ah(a.pd, &bad));
	bad = attr;
	bad.grh.dgid.raw[0] = 0xfe;
	NOT_MADE(rnic_create_ah(a.pd, &bad), ENETUNREACH);
	/* A completion that is not for this port; one without the 40 bytes. */
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .src_qp = 17};
	struct ibv_grh grh = {.sgid = b.gid,
			      .dgid = b.gid,
			      .hop_limit = 3,
			      .version_tclass_flow = htobe32(0x6ab00123)};
	ck_assert_int_eq(rnic_init_ah_from_wc(a.ctx, 1, &wc, &grh, &attr), -1);
	grh.dgid = a.gid;
	ck_assert_int_eq(rnic_init_ah_from_wc(a.ctx, 2, &wc, &grh, &attr), -1);
	ck_assert_int_eq(rnic_init_ah_from_wc(a.ctx, 1, &wc, &grh, &attr), 0);
	ck_assert(attr.is_global && attr.port_num == 1 && attr.grh.sgid_index == 0);
	ck_assert_mem_eq(&attr.grh.dgid, &b.gid, 16);
	ck_assert_uint_eq(attr.grh.hop_limit, 3);
	ck_assert_uint_eq(attr.grh.traffic_class, 0xab);
	ck_assert_uint_eq(attr.grh.flow_label, 0x123);
	wc.wc_flags = 0;
	ck_assert_int_eq(rnic_init_ah_from_wc(a.ctx, 1, &wc, &grh, &attr), 0);
	ck_assert_int_eq(attr.is_global, 0);
}

RNIC_TEST(task, extended, opt.send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
{
	static const struct {
		const char *name;
		unsigned addresses;
		int error;
	} addressed[] = {{"no address", 0, EINVAL}, {"one", 1, 0}, {"two", 2, EINVAL}};
	remake_both(IBV_QPT_UD);
	struct ibv_ah *ah = address_of(&a, &b);
	recv_post(&b, 0, 100, 1);
	set_word(&a, 0, 4711);
	for (unsigned i = 0; i < 3; i++) {
		ibv_wr_start(a.qpx);
		a.qpx->wr_id = i;
		a.qpx->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send_imm(a.qpx, htobe32(8));
		for (unsigned n = 0; n < addressed[i].addresses; n++)
			ibv_wr_set_ud_addr(a.qpx, ah, b.qp->qp_num, QKEY);
		ibv_wr_set_sge(a.qpx, a.mr->lkey, (uintptr_t)a.buf, 8);
		ck_assert_msg(ibv_wr_complete(a.qpx) == addressed[i].error, "%s",
			      addressed[i].name);
	}
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(b.rcq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word(&b, GRH_BYTES), 4711);
	/* A dead address; an address before anything is built. */
	struct ibv_ah *dead = address_of(&a, &b);
	ck_assert_int_eq(rnic_destroy_ah(dead), 0);
	ibv_wr_start(a.qpx);
	ibv_wr_send(a.qpx);
	ibv_wr_set_ud_addr(a.qpx, dead, b.qp->qp_num, QKEY);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), EINVAL);
	ibv_wr_start(a.qpx);
	ibv_wr_set_ud_addr(a.qpx, ah, b.qp->qp_num, QKEY);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), EINVAL);
}

/* --- strangers --- */

RNIC_TEST(task, stranger, opt.retry_cnt = 1)
{
	/* From an unreliable connection to a reliable one of the expected number. */
	remake_qp(&a, IBV_QPT_UC, NULL);
	connect_both();
	recv_post(&b, 0, 64, 1);
	op_done(&a, IBV_WR_SEND, 0, 8, &b, 0);
	rt_sleep(MS);
	ck_assert(empty(b.rcq));
	/* A reliable connection does not find a peer in a datagram's queue pair. */
	remake_qp(&a, IBV_QPT_RC, NULL);
	remake_qp(&b, IBV_QPT_UD, NULL);
	connect_both();
	recv_post(&b, 0, 64, 2);
	op(&a, IBV_WR_SEND, 0, 8, &b, 0, 2, SENT);
	expect(a.scq, 2, IBV_WC_RETRY_EXC_ERR);
	ck_assert(empty(b.rcq));
	ck_assert_int_eq(b.qp->state, IBV_QPS_RTS);
}

/* Packets that our own requester would never send: none does any harm. */
static void malformed_body(void)
{
	uint64_t state = (uint64_t)source.permille[0];
	uint8_t service = b.qp->qp_type == IBV_QPT_UD ? SERVICE_UD : SERVICE_UC;
	fill(b.buf, 65536, 1);
	for (unsigned i = 0; i < 8; i++)
		recv_post(&b, 0, 5000, i);
	for (unsigned i = 0; i < 4000; i++) {
		static const uint32_t lengths[] = {0, 1, 8, 1024, 1025, 4096, 4097};
		uint32_t len = lengths[random_next(&state) % 7];
		struct packet *pkt = packet_get(net, len);
		memset(pkt->payload, 0, len);
		pkt->service = service;
		pkt->opcode = (uint8_t)(random_next(&state) % (OP_CODES + 2));
		pkt->from = a.gid.raw[15] - 1u;
		pkt->dest_qpn = b.qp->qp_num;
		pkt->psn = random_next(&state) % 3 ? ((struct rnic_qp *)b.qp)->resp.psn
						   : (uint32_t)random_next(&state) & PSN_MASK;
		pkt->qkey = random_next(&state) % 2 ? QKEY : 0;
		pkt->ack_req = true;
		pkt->rkey = b.mr->rkey;
		/* Beyond the region, or with another length than the packets'. */
		pkt->va = (uintptr_t)b.buf + BUF - random_next(&state) % 3;
		pkt->dma_len = random_next(&state) % 2 ? len + 4 : (uint32_t)random_next(&state);
		pkt->name.who = &((struct rnic_qp *)a.qp)->actor;
		rnic_take(net, (struct rnic_qp *)b.qp, pkt);
		if (i % 16 == 0)
			rt_sleep(US);
		for (struct ibv_wc wc; ibv_poll_cq(b.rcq, 1, &wc);) {
			/* No packet of these services invalidates. */
			ck_assert(wc.status != IBV_WC_REM_INV_REQ_ERR &&
				  !(wc.wc_flags & IBV_WC_WITH_INV));
			if (wc.status == IBV_WC_SUCCESS) {
				ck_assert(service == SERVICE_UC || wc.byte_len <= GRH_BYTES + 4096);
				recv_post(&b, 0, 5000, wc.wr_id);
			}
		}
	}
	static uint8_t want[65536];
	fill(want, sizeof(want), 1);
	ck_assert_mem_eq(b.buf + 8192, want + 8192, sizeof(want) - 8192);
	ck_assert_uint_eq(source.asked[CHOICE_PACKET], 0); /* nothing was answered */
}

static void malformed_uc_body(void)
{
	remake_both(IBV_QPT_UC);
	malformed_body();
}

static void malformed_ud_body(void)
{
	remake_both(IBV_QPT_UD);
	malformed_body();
}

TESTS(malformed, 20)
{
	source.permille[0] = (unsigned)_i;
	source.answer = deliver;
	run_task(_i % 2 ? malformed_ud_body : malformed_uc_body);
}

/* --- a link without room --- */

static struct {
	bool room;
	uint64_t taken;
} other_end;

static bool has_room(struct link *link, uint32_t peer, uint32_t dest_qpn, uint64_t *taken)
{
	*taken = other_end.taken;
	return other_end.room;
}

TEST(patience)
{
	struct link link = {.ready = has_room};
	struct link_patience p = {0};
	const uint64_t step = LINK_PATIENCE_NS / 2, end = 100 * step;
	/* It is slow, and takes something now and then: wait. */
	for (uint64_t now = step; now < end; now += step, other_end.taken += now / step % 2)
		ck_assert(!link_ready(&link, 1, 2, now, &p));
	/* It takes nothing any more. */
	other_end.taken++;
	ck_assert(!link_ready(&link, 1, 2, end, &p));
	ck_assert(!link_ready(&link, 1, 2, end + LINK_PATIENCE_NS - 1, &p));
	ck_assert(link_ready(&link, 1, 2, end + LINK_PATIENCE_NS, &p));
	ck_assert(link_ready(&link, 1, 2, end + LINK_PATIENCE_NS + 1, &p));
	/* It does. */
	other_end.taken++;
	ck_assert(!link_ready(&link, 1, 2, end + LINK_PATIENCE_NS + 2, &p));
	other_end.room = true;
	ck_assert(link_ready(&link, 1, 2, end + LINK_PATIENCE_NS + 3, &p));
	other_end.room = false;
	ck_assert(!link_ready(&link, 1, 2, end + 3 * LINK_PATIENCE_NS, &p));
}

static bool busy(struct link *link, uint32_t peer, uint32_t dest_qpn, uint64_t *taken)
{
	*taken = rt_now();
	return rt_now() < US || rt_now() > 20 * MS;
}

ANSWER(lose_first, at->kind == CHOICE_PACKET && at->b == 1 && at->c == 1, PACKET_LOSE)

/* A reliable connection's lost packet that cannot be sent again for long, as others fill the link,
 * costs one retry. */
RNIC_TEST(connected, busy_link, source.answer = lose_first, opt.retry_cnt = 2)
{
	net->link->ready = busy;
	recv_post(&b, 0, 64, 1);
	op_done(&a, IBV_WR_SEND, 0, 8, &b, 0);
	expect(b.rcq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_gt(rt_now(), 20 * MS);
}

/* --- memory that is gone --- */

static bool no_write(void *memory, const struct rnic_mr *mr, uint8_t *to, const void *from,
		     uint32_t len, const struct packet_name *name)
{
	return false;
}

static uint32_t no_random(void)
{
	return 0x1234567;
}

static int no_check(void *memory, const void *addr, uint64_t len, unsigned access,
		    struct pm_place *place)
{
	return 0;
}

static void (*real_send)(struct link *link, unsigned from, struct packet *pkt);
static unsigned packets;

static void count_send(struct link *link, unsigned from, struct packet *pkt)
{
	packets++;
	real_send(link, from, pkt);
}

static const struct rnic_memory gone_memory = {
	.random = no_random, .check = no_check, .write = no_write};
static enum ibv_event_type last_event;

static void note_event(struct rnic_hca *hca, enum ibv_event_type type, void *element)
{
	last_event = element == b.qp ? type : 0;
}

/* Found out after the message was let in: the receiver's error, and none of its sender's
 * business. */
RNIC_TESTS(task, gone, 3, source.permille[0] = (unsigned)_i)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_UC};
	unsigned i = source.permille[0];
	remake_both(types[i]);
	to_hca(b.ctx)->memory = &gone_memory;
	b.mr = rnic_reg_mr(b.pd, b.buf, BUF, ALL_ACCESS);
	to_hca(b.ctx)->hooks.event = note_event;
	real_send = net->link->send;
	net->link->send = count_send;
	recv_post(&b, 0, 100, 1);
	if (types[i] == IBV_QPT_UD)
		send_datagram(&a, 0, 8, &b, address_of(&a, &b));
	else
		op(&a, i ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, 0, 8, &b, 0, 7, SENT);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	expect(b.rcq, 1, i < 2 ? IBV_WC_LOC_PROT_ERR : IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(last_event, i < 2 ? 0 : IBV_EVENT_QP_ACCESS_ERR);
	ck_assert_int_eq(b.qp->state, IBV_QPS_ERR);
	rt_sleep(MS);
	ck_assert_int_eq(a.qp->state, IBV_QPS_RTS);
	ck_assert_uint_eq(packets, 1);
}

/* --- much of it, over a bad link --- */

#define SLOT  8192u
#define SLOTS 8u
#define SENDS 300u

/* Each message is `number`, then what fill() makes of it: all that arrive are whole, and so are
 * those that a datagram's duplicate brings. */
static void bad_link_body(bool ud)
{
	uint64_t state = source.state;
	unsigned got = 0, done = 0, sent = 0, last = 0;
	uint32_t front = ud ? GRH_BYTES : 0;
	struct ibv_ah *ah = address_of(&a, &b);
	for (unsigned i = 0; i < SLOTS; i++)
		recv_post(&b, i * SLOT, SLOT, i);
	while (done < SENDS) {
		struct ibv_wc wc;
		if (sent < SENDS && sent - done < SLOTS) {
			uint32_t len = 8 + (uint32_t)random_next(&state) % (ud ? 4080 : 7000);
			size_t off = sent % SLOTS * SLOT;
			fill(a.buf + off, len, sent);
			set_word(&a, off, sent++);
			struct ibv_sge sge;
			struct ibv_send_wr wr = ud ? datagram(&a, &sge, off, len, &b, ah)
						   : wr_make(&a, IBV_WR_SEND, &sge, off, len, &b,
							     0);
			post(&a, &wr);
		}
		while (ibv_poll_cq(a.scq, 1, &wc)) {
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			done++;
		}
		rt_sleep(20 * US);
		while (ibv_poll_cq(b.rcq, 1, &wc)) {
			static uint8_t want[SLOT];
			const size_t at = wc.wr_id * SLOT + front;
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			uint64_t number = word(&b, at);
			ck_assert_uint_lt(number, sent);
			fill(want, wc.byte_len - front, number);
			memcpy(want, &number, 8);
			ck_assert_mem_eq(b.buf + at, want, wc.byte_len - front);
			if (!got || number > last)
				last = (unsigned)number;
			got++;
			recv_post(&b, wc.wr_id * SLOT, SLOT, wc.wr_id);
		}
	}
	ck_assert_uint_gt(got, SENDS / 3);
	ck_assert_uint_gt(last, SENDS - 30);
	ck_assert_int_eq(b.qp->state, IBV_QPS_RTS);
}

static void bad_uc_body(void)
{
	remake_both(IBV_QPT_UC);
	bad_link_body(false);
}

static void bad_ud_body(void)
{
	remake_both(IBV_QPT_UD);
	bad_link_body(true);
}

TESTS(bad_link, 24)
{
	source.state = (uint64_t)_i + 1;
	source.permille[CHOICE_PACKET] = 60;
	source.permille[CHOICE_LAND] = _i % 2 ? 5 : 0;
	opt.psn = 0xfffff0;
	opt.hw.ack_early = _i % 3 != 0;
	run_task(_i % 4 < 2 ? bad_uc_body : bad_ud_body);
}

RUN_TESTS(setup_options, NULL)
