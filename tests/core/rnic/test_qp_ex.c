/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extended API for posting, ibv_create_qp_ex() and ibv_wr_*, and the memory
 * placement extensions, FLUSH and ATOMIC WRITE, by this API and by ibv_post_send().
 *
 * What is allowed, and what is said to what is not, stands in tables: `creations`,
 * `MISUSES`, `placements` (IBA annex A19), `malformed` (packets that our own requester
 * would never send).
 */
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/post.h"
#include "tests/core/rnic/rnic_world.h"

#define ALL_OPS                                                                                 \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE)

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

/* By the extended API: what test_rnic.c and the tables below know by their opcodes. */
#define IMM 0x01020304
static void build(enum ibv_wr_opcode opcode, size_t off, uint32_t len, size_t remote)
{
	const uint32_t rkey = b.mr->rkey;
	const uint64_t va = at(&b, remote);

	switch ((int)opcode) {
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(a.qpx, rkey, va);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(a.qpx, rkey, va, 0, 5);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(a.qpx, rkey, va, 5);
		break;
	case IBV_WR_FLUSH:
		ibv_wr_flush(a.qpx, rkey, va, len, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		return;
	case IBV_WR_ATOMIC_WRITE:
		ibv_wr_atomic_write(a.qpx, rkey, va, a.buf + off);
		return;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(a.qpx, rkey, va);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(a.qpx, rkey, va, htobe32(IMM));
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(a.qpx, htobe32(IMM));
		break;
	default:
		ibv_wr_send(a.qpx);
	}
	if (a.qpx->wr_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(a.qpx, a.buf + off, len);
	else
		set(off, len);
}

/* --- the same run, whichever API --- */

static const struct request {
	enum ibv_wr_opcode opcode;
	size_t off;
	uint32_t len;
	size_t remote;
	unsigned flags;
} requests[] = {
	{IBV_WR_RDMA_WRITE, 0, 3000, 64, IBV_SEND_SIGNALED},
	{IBV_WR_ATOMIC_WRITE, 8, 8, 8, IBV_SEND_SIGNALED | IBV_SEND_INLINE},
	{IBV_WR_FLUSH, 0, 3000, 64, IBV_SEND_SIGNALED},
	{IBV_WR_RDMA_WRITE, 16, 40, 0, IBV_SEND_INLINE | IBV_SEND_FENCE},
	{IBV_WR_RDMA_WRITE_WITH_IMM, 100, 1000, 4096, IBV_SEND_SIGNALED},
	{IBV_WR_SEND, 0, 4096, 0, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED},
	{IBV_WR_SEND_WITH_IMM, 200, 64, 0, IBV_SEND_SIGNALED},
	{IBV_WR_ATOMIC_CMP_AND_SWP, 4096, 8, 8192, IBV_SEND_SIGNALED},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, 4104, 8, 8192, IBV_SEND_SIGNALED},
	{IBV_WR_RDMA_READ, 8192, 3000, 0, IBV_SEND_SIGNALED},
};
#define REQUESTS ROWS_OF(requests)

static unsigned api; /* 0: ibv_post_send() */
static struct outcome {
	uint64_t hash;
	struct {
		uint64_t id;
		int status, opcode;
		uint32_t len, imm;
	} done[REQUESTS + 2];
	uint8_t of_a[32768], of_b[32768];
} outcomes[2];

static void post_all(void)
{
	struct ibv_sge sge[REQUESTS];
	struct ibv_send_wr wr[REQUESTS];

	if (api)
		ibv_wr_start(a.qpx);
	for (unsigned i = 0; i < REQUESTS; i++) {
		const struct request *r = &requests[i];

		if (api) {
			a.qpx->wr_id = i;
			a.qpx->wr_flags = r->flags;
			build(r->opcode, r->off, r->len, r->remote);
			continue;
		}
		wr[i] = wr_make(&a, r->opcode, &sge[i], r->off, r->len, &b, r->remote);
		wr[i].wr_id = i;
		wr[i].send_flags = r->flags;
		wr[i].next = i + 1 < REQUESTS ? &wr[i + 1] : NULL;
		if (r->opcode == IBV_WR_SEND_WITH_IMM || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			wr[i].imm_data = htobe32(IMM);
		if (r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
			wr[i].wr.atomic.swap = 5;
		if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			wr[i].wr.atomic.compare_add = 5;
	}
	if (api)
		ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	else
		post(&a, wr);
}

static void same_body(void)
{
	struct outcome *o = &outcomes[api];

	fill(a.buf, 4096, 7);
	for (unsigned i = 0; i < 3; i++)
		recv_post(&b, 12288 + i * 4096, 4096, 50 + i);
	post_all();
	for (unsigned i = 0; i < ROWS_OF(o->done); i++) {
		struct ibv_wc wc = wait_for(i < REQUESTS - 1 ? a.scq : b.rcq);

		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		o->done[i].id = wc.wr_id;
		o->done[i].opcode = wc.opcode;
		o->done[i].len = wc.byte_len;
		o->done[i].imm = wc.wc_flags & IBV_WC_WITH_IMM ? be32toh(wc.imm_data) : 0;
	}
	memcpy(o->of_a, a.buf, sizeof(o->of_a));
	memcpy(o->of_b, b.buf, sizeof(o->of_b));
	o->hash = sim_hash(sim);
}

/* One run, step by step, with the same completions and the same bytes, over a bad link. */
TEST(same_run)
{
	for (api = 0; api < 2; api++) {
		setup();
		source.state = 11;
		source.permille[CHOICE_PACKET] = 100;
		source.permille[CHOICE_LAND] = 50;
		run_connected(same_body);
	}
	ck_assert_uint_eq(outcomes[0].hash, outcomes[1].hash);
	ck_assert_mem_eq(&outcomes[0], &outcomes[1], sizeof(outcomes[0]));
}

/* An atomic write's data are not inline data, for which there may be no room; they are the
 * program's again at once. */
RNIC_TEST(connected, word_of_atomic_write, opt.inline_bytes = 0)
{
	uint64_t value = 0x0102030405060708;
	start(4, IBV_SEND_SIGNALED);
	ibv_wr_atomic_write(a.qpx, b.mr->rkey, at(&b, 64), &value);
	value = 0;
	done(4, IBV_WC_ATOMIC_WRITE, 8);
	ck_assert_uint_eq(word(&b, 64), 0x0102030405060708);
	ck_assert_uint_eq(word(&b, 72), 0);
}

/* --- data --- */

RNIC_TEST(connected, lists)
{
	struct ibv_sge sge[5];
	uint8_t want[400];
	fill(a.buf, 4096, 2);
	for (unsigned i = 0; i < 5; i++) {
		sge[i] = (struct ibv_sge){at(&a, 1000 * i), i == 2 ? 0 : 100, a.mr->lkey};
		if (i < 4)
			memcpy(want + 100 * (i < 3 ? i : i - 1), a.buf + 1000 * i, 100);
	}
	start(1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(a.qpx, b.mr->rkey, at(&b, 7));
	ibv_wr_set_sge_list(a.qpx, 4, sge);
	memset(sge, 0, sizeof(sge)); /* the list is ours again, the data are not */
	done(1, IBV_WC_RDMA_WRITE, 300);
	rt_sleep(US);
	ck_assert_mem_eq(b.buf + 7, want, 300);
	/* Scattered. */
	for (unsigned i = 0; i < 3; i++)
		sge[i] = (struct ibv_sge){at(&a, 20000 + 500 * i), 100, a.mr->lkey};
	start(2, IBV_SEND_SIGNALED);
	ibv_wr_rdma_read(a.qpx, b.mr->rkey, at(&b, 7));
	ibv_wr_set_sge_list(a.qpx, 3, sge);
	done(2, IBV_WC_RDMA_READ, 300);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_mem_eq(a.buf + 20000 + 500 * i, want + 100 * i, 100);
}

RNIC_TEST(connected, inline_data)
{
	uint8_t data[128], copy[128];
	fill(data, 128, 3);
	memcpy(copy, data, 128);
	start(1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(a.qpx, b.mr->rkey, at(&b, 0));
	ibv_wr_set_inline_data(a.qpx, data, 128);
	memset(data, 0, 128); /* no key, and ours again */
	done(1, IBV_WC_RDMA_WRITE, 128);
	rt_sleep(US);
	ck_assert_mem_eq(b.buf, copy, 128);

	memcpy(data, copy, 128);
	struct ibv_data_buf bufs[] = {{data + 100, 28}, {NULL, 0}, {data, 99}};
	recv_post(&b, 1000, 128, 50);
	start(2, IBV_SEND_SIGNALED);
	ibv_wr_send_imm(a.qpx, htobe32(5));
	ibv_wr_set_inline_data_list(a.qpx, 3, bufs);
	memset(data, 0, 128);
	done(2, IBV_WC_SEND, 127);
	ck_assert_uint_eq(wait_for(b.rcq).byte_len, 127);
	ck_assert_mem_eq(b.buf + 1000, copy + 100, 28);
	ck_assert_mem_eq(b.buf + 1028, copy, 99);
	/* The flag of ibv_post_send() means nothing here: a list is gathered later. */
	fill(a.buf, 64, 4);
	start(3, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	ibv_wr_rdma_write(a.qpx, b.mr->rkey, at(&b, 0));
	set(0, 64);
	a.buf[0] ^= 0xff;
	done(3, IBV_WC_RDMA_WRITE, 64);
	rt_sleep(US);
	ck_assert_mem_eq(b.buf, a.buf, 64);
}

/* Messages of no bytes, in all the ways there are; they need no key. */
RNIC_TEST(connected, nothing)
{
	for (unsigned how = 0; how < 5; how++)
		for (unsigned what = 0; what < 3; what++) {
			start(what, IBV_SEND_SIGNALED);
			if (what == 0)
				ibv_wr_rdma_write(a.qpx, 1, 0);
			else if (what == 1)
				ibv_wr_rdma_read(a.qpx, 1, 0);
			else
				ibv_wr_send(a.qpx);
			if (how == 1)
				ibv_wr_set_sge_list(a.qpx, 0, NULL);
			else if (how == 2)
				set(0, 0);
			else if (how == 3 && what != 1)
				ibv_wr_set_inline_data(a.qpx, NULL, 0);
			else if (how == 4 && what != 1)
				ibv_wr_set_inline_data_list(a.qpx, 0, NULL);
			if (what == 2)
				recv_post(&b, 0, 8, 50);
			done(what,
			     what == 0	 ? IBV_WC_RDMA_WRITE
			     : what == 1 ? IBV_WC_RDMA_READ
					 : IBV_WC_SEND,
			     0);
			if (what == 2)
				ck_assert_uint_eq(wait_for(b.rcq).byte_len, 0);
		}
}

/* Inline data, and an atomic write's, may lie in PM. */
RNIC_TEST(pm, from_pm)
{
	struct side *me = &b, *peer = &a;
	fill(b.buf, 128, 5);
	ibv_wr_start(me->qpx);
	me->qpx->wr_id = 1;
	me->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(me->qpx, peer->mr->rkey, at(peer, 0));
	ibv_wr_set_inline_data(me->qpx, b.buf, 128);
	ibv_wr_atomic_write(me->qpx, peer->mr->rkey, at(peer, 128), b.buf + 64);
	ck_assert_int_eq(ibv_wr_complete(me->qpx), 0);
	expect(b.scq, 1, IBV_WC_SUCCESS);
	expect(b.scq, 1, IBV_WC_SUCCESS);
	ck_assert_mem_eq(a.buf, b.buf, 128);
	ck_assert_mem_eq(a.buf + 128, b.buf + 64, 8);
}

/* --- batches --- */

RNIC_TESTS(connected, batch, 2, opt.hw.transport = _i ? TRANSPORT_IWARP : TRANSPORT_IB)
{
	fill(a.buf, 4096, 6);
	recv_post(&b, 40000, 64, 50);
	ibv_wr_start(a.qpx);
	a.qpx->wr_flags = IBV_SEND_SIGNALED;
	for (uint64_t i = 0; i < 10; i++) {
		a.qpx->wr_id = 100 + i;
		a.qpx->wr_flags = i % 3 ? 0 : IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(a.qpx, b.mr->rkey, at(&b, 100 * i));
		set(100 * i, 100);
		rt_sleep(US);
	}
	/* What is in the fields counts when the builder is called, not later. */
	a.qpx->wr_id = 7;
	a.qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(a.qpx);
	a.qpx->wr_id = 8;
	a.qpx->wr_flags = 0;
	set(0, 64);
	rt_sleep(50 * US);
	/* Nothing has been posted. */
	ck_assert(empty(a.scq) && empty(b.rcq));
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_uint_eq(b.buf[i], 0);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	for (uint64_t i = 0; i < 10; i += 3)
		expect(a.scq, 100 + i, IBV_WC_SUCCESS);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	ck_assert(empty(a.scq));
	expect(b.rcq, 50, IBV_WC_SUCCESS);
	ck_assert_mem_eq(b.buf, a.buf, 1000);
	/* A batch of nothing. */
	ibv_wr_start(a.qpx);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	rt_sleep(10 * US);
	ck_assert(empty(a.scq));
}

RNIC_TEST(connected, aborted, opt.send_wr = 4)
{
	uint8_t data[100] = {1};
	uint64_t value = 1;
	ibv_wr_abort(a.qpx); /* of nothing */
	for (unsigned round = 0; round < 5; round++) {
		start(round, IBV_SEND_SIGNALED);
		ibv_wr_rdma_write(a.qpx, b.mr->rkey, at(&b, 0));
		ibv_wr_set_inline_data(a.qpx, data, 100);
		ibv_wr_atomic_write(a.qpx, b.mr->rkey, at(&b, 8), &value);
		ibv_wr_rdma_read(a.qpx, b.mr->rkey, at(&b, 0));
		set(0, 100);
		ibv_wr_abort(a.qpx);
		rt_sleep(20 * US);
		ck_assert(empty(a.scq));
		ck_assert_uint_eq(word(&b, 0), 0);
	}
	/* An error is gone with its batch. */
	start(20, IBV_SEND_SIGNALED);
	set(0, 8);
	ibv_wr_abort(a.qpx);
	/* All four slots are free. */
	start(30, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 4; i++) {
		ibv_wr_rdma_write(a.qpx, b.mr->rkey, at(&b, 0));
		ibv_wr_set_inline_data(a.qpx, data, 100);
	}
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	for (unsigned i = 0; i < 4; i++)
		expect(a.scq, 30, IBV_WC_SUCCESS);
	rt_sleep(US);
	ck_assert_mem_eq(b.buf, data, 100);
}

static void sent(void)
{
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	rt_sleep(10 * US);
}
static void dropped(void)
{
	ibv_wr_abort(a.qpx);
}
static void refused(void)
{
	ibv_wr_send(a.qpx);
	ibv_wr_set_inline_data(a.qpx, a.buf, 4096);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), EINVAL);
}
static void lost(void)
{
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RESET, 0), 0);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), EINVAL);
}
static void (*const ends[])(void) = {sent, dropped, refused, lost};

/* The RNIC's memory for inline data is free again, however a batch ends. */
RNIC_TESTS(connected, buffers, ROWS_OF(ends), opt.psn = (uint32_t)_i, opt.inline_bytes = 1024)
{
	uint8_t class, *first, *second;
	unsigned found = 0;
	/* So that the queues have their memory, and the batch does not have the first slots. */
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0);
	first = buffer_get(net, 1000, &class);
	second = buffer_get(net, 1000, &class);
	buffer_put(net, first, class);
	buffer_put(net, second, class);
	start(1, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 2; i++) {
		ibv_wr_rdma_write(a.qpx, b.mr->rkey, at(&b, 0));
		ibv_wr_set_inline_data(a.qpx, a.buf, 1000);
	}
	ends[opt.psn]();
	while (net->free_buffer[class]) {
		uint8_t *buf = buffer_get(net, 1000, &class);
		found += (buf == first) + (buf == second);
	}
	ck_assert_uint_eq(found, 2);
}

static void write_word(uint64_t id, uint64_t value, size_t off)
{
	a.qpx->wr_id = id;
	ibv_wr_rdma_write(a.qpx, b.mr->rkey, at(&b, off));
	ibv_wr_set_inline_data(a.qpx, &value, 8);
}

RNIC_TEST(connected, full, opt.send_wr = 4)
{
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 800, 1, IBV_SEND_SIGNALED);
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 808, 2, IBV_SEND_SIGNALED);
	start(0, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 3; i++)
		write_word(10 + i, 10 + i, 8 * i);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), ENOMEM);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	rt_sleep(20 * US);
	ck_assert(empty(a.scq));
	ck_assert_uint_eq(word(&b, 0), 0); /* not even those that there was room for */
	ck_assert_int_eq(a.qp->state, IBV_QPS_RTS);
	/* Four fit; a slot is free when the completion after it has been taken out, not before. */
	start(0, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 4; i++)
		write_word(20 + i, 20 + i, 8 * i);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	rt_sleep(20 * US);
	start(0, 0);
	write_word(30, 30, 0);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), ENOMEM);
	for (unsigned i = 0; i < 4; i++)
		expect(a.scq, 20 + i, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(word(&b, 8 * i), 20 + i);
	/* Room that comes while the batch is being built counts. */
	for (unsigned i = 0; i < 4; i++)
		op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 800, 40, IBV_SEND_SIGNALED);
	ibv_wr_start(a.qpx);
	expect(a.scq, 40, IBV_WC_SUCCESS);
	a.qpx->wr_flags = IBV_SEND_SIGNALED;
	write_word(50, 50, 0);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	for (unsigned i = 0; i < 3; i++)
		expect(a.scq, 40, IBV_WC_SUCCESS);
	expect(a.scq, 50, IBV_WC_SUCCESS);
}

/* Both ways to post on one queue pair: one order. */
RNIC_TEST(connected, mixed)
{
	uint64_t id = 0, want[8] = {0};
	struct ibv_wc wc;
	for (uint64_t round = 0; round < 40; round++) {
		start(0, IBV_SEND_SIGNALED);
		for (unsigned i = 0; i <= round % 3; i++, id++) {
			write_word(id, id, 8 * (id % 8));
			want[id % 8] = id;
		}
		ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
		/* To the word that the batch has just written, and to the one that the next begins
		 * with. */
		set_word(&a, 0, 1000 + round);
		op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 8 * ((id - 1) % 8), id, IBV_SEND_SIGNALED);
		want[(id - 1) % 8] = 1000 + round;
		op(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 512, 8, &b, 8 * (id % 8), id + 1,
		   IBV_SEND_SIGNALED);
		start(id + 2, IBV_SEND_SIGNALED);
		ibv_wr_rdma_read(a.qpx, b.mr->rkey, at(&b, 0));
		set(1024, 64);
		ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
		for (uint64_t i = id - 1 - round % 3; i <= id + 2; i++) {
			wc = wait_for(a.scq);
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			ck_assert_uint_eq(wc.wr_id, i);
		}
		ck_assert_uint_eq(word(&a, 512), want[id % 8]);
		ck_assert_mem_eq(a.buf + 1024, want, 64);
		ck_assert(empty(a.scq));
	}
}

/* --- misuse --- */

static void post_send_inside(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, 8, &b, 8), *bad = NULL;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr);
}
static void reset_inside(void)
{
	reconnect();
}

static void write_8(void)
{
	ibv_wr_rdma_write(a.qpx, b.mr->rkey, at(&b, 8));
}

static void flush_8(size_t len, uint8_t type, uint8_t level)
{
	ibv_wr_flush(a.qpx, b.mr->rkey, at(&b, 8), len, type, level);
}

static void inline_list(size_t second)
{
	ibv_wr_set_inline_data_list(a.qpx, 2,
				    (struct ibv_data_buf[]){{a.buf, 100}, {a.buf, second}});
}

/* What is said of ibv_wr_complete()'s error, and what is called. */
/* clang-format off */
#define MISUSES                                                                                  \
	MISUSE("sge without a request", EINVAL, set(0, 8))                                       \
	MISUSE("list without a request", EINVAL, ibv_wr_set_sge_list(a.qpx, 0, NULL))            \
	MISUSE("inline without a request", EINVAL, ibv_wr_set_inline_data(a.qpx, a.buf, 8))      \
	MISUSE("two setters", EINVAL, write_8(), set(0, 8), set(8, 8))                           \
	MISUSE("two setters, the second inline", EINVAL,                                         \
	       write_8(), set(0, 8), ibv_wr_set_inline_data(a.qpx, a.buf, 8))                    \
	MISUSE("list too long", EINVAL,                                                          \
	       ibv_wr_send(a.qpx), ibv_wr_set_sge_list(a.qpx, 5, (struct ibv_sge[5]){{0}}))      \
	MISUSE("list of 2^32", EINVAL,                                                           \
	       ibv_wr_send(a.qpx), ibv_wr_set_sge_list(a.qpx, (size_t)1 << 32, NULL))            \
	MISUSE("inline too long", EINVAL, write_8(), ibv_wr_set_inline_data(a.qpx, a.buf, 129))  \
	MISUSE("inline of 2^32", EINVAL,                                                         \
	       write_8(), ibv_wr_set_inline_data(a.qpx, a.buf, ((size_t)1 << 32) + 8))           \
	MISUSE("inline list too long", EINVAL, write_8(), inline_list(29))                       \
	MISUSE("inline list that overflows", EINVAL, write_8(), inline_list(SIZE_MAX))           \
	MISUSE("inline READ", EINVAL,                                                            \
	       ibv_wr_rdma_read(a.qpx, b.mr->rkey, at(&b, 8)),                                   \
	       ibv_wr_set_inline_data(a.qpx, a.buf, 8))                                          \
	MISUSE("inline atomic", EINVAL,                                                          \
	       ibv_wr_atomic_fetch_add(a.qpx, b.mr->rkey, at(&b, 8), 1),                         \
	       ibv_wr_set_inline_data(a.qpx, a.buf, 8))                                          \
	MISUSE("ATOMIC WRITE with a setter", EINVAL,                                             \
	       ibv_wr_atomic_write(a.qpx, b.mr->rkey, at(&b, 8), a.buf), set(0, 8))              \
	MISUSE("FLUSH with a setter", EINVAL, flush_8(8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE), set(0, 0)) \
	MISUSE("FLUSH with an empty list", EINVAL,                                               \
	       flush_8(8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE), ibv_wr_set_sge_list(a.qpx, 0, NULL)) \
	MISUSE("FLUSH of no type", EINVAL, flush_8(8, 0, IBV_FLUSH_RANGE))                       \
	MISUSE("FLUSH of an unknown type", EINVAL, flush_8(8, IBV_FLUSH_GLOBAL | 4, IBV_FLUSH_RANGE)) \
	MISUSE("FLUSH of an unknown level", EINVAL, flush_8(8, IBV_FLUSH_GLOBAL, 2))             \
	MISUSE("FLUSH of 2^32 bytes", EINVAL,                                                    \
	       flush_8((size_t)1 << 32, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE))                      \
	MISUSE("second start", EINVAL, ibv_wr_start(a.qpx))                                      \
	MISUSE("post_send inside", 0, post_send_inside())                                        \
	MISUSE("reset inside", EINVAL, reset_inside())
/* clang-format on */

#define MISUSE(...) +1
enum { MISUSE_COUNT = MISUSES };
#undef MISUSE

static unsigned misuse;

/* Its name. */
static const char *do_misuse(int *error)
{
	unsigned row = 0;

#define MISUSE(name, result, ...)  \
	if (row++ == misuse) {     \
		*error = (result); \
		__VA_ARGS__;       \
		return name;       \
	}
	MISUSES
#undef MISUSE
	return NULL;
}

/* The misuse comes first, in the middle, or last; either all of the batch is posted, or nothing. */
RNIC_TESTS(connected, misused, MISUSE_COUNT, misuse = (unsigned)_i)
{
	fill(a.buf, 256, 8);
	for (unsigned place = 0; place < 3; place++) {
		set_word(&b, 0, 0);
		set_word(&b, 64, 0);
		start(1, IBV_SEND_SIGNALED);
		if (place > 0)
			write_word(1, 1, 0);
		int expected;
		const char *name = do_misuse(&expected);
		if (place < 2)
			write_word(2, 2, 64);
		int error = ibv_wr_complete(a.qpx);
		ck_assert_msg(error == expected, "%s, %u: %d", name, place, error);
		rt_sleep(20 * US);
		ck_assert_uint_eq(word(&b, 0), place > 0 && !error ? 1 : 0);
		ck_assert_uint_eq(word(&b, 64), place < 2 && !error ? 2 : 0);
		ck_assert_uint_eq(word(&b, 8), 0);
		if (place > 0 && !error)
			expect(a.scq, 1, IBV_WC_SUCCESS);
		if (place < 2 && !error)
			expect(a.scq, 2, IBV_WC_SUCCESS);
		ck_assert(empty(a.scq));
		ck_assert_int_eq(a.qp->state, IBV_QPS_RTS);
		/* The next batch is a new one. */
		start(3, IBV_SEND_SIGNALED);
		write_word(3, 3, 128);
		ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
		expect(a.scq, 3, IBV_WC_SUCCESS);
	}
}

RNIC_TEST(connected, first_error, opt.send_wr = 2)
{
	/* Complete without start. */
	ck_assert_int_eq(ibv_wr_complete(a.qpx), EINVAL);
	a.qpx->wr_flags = IBV_SEND_SIGNALED;
	write_word(1, 1, 0);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), EINVAL);
	/* The first error is the one that is told. */
	start(1, IBV_SEND_SIGNALED);
	write_word(1, 1, 0);
	write_word(2, 2, 8);
	write_word(3, 3, 16); /* ENOMEM */
	set(0, 8);	      /* EINVAL */
	ck_assert_int_eq(ibv_wr_complete(a.qpx), ENOMEM);
	start(1, IBV_SEND_SIGNALED);
	set(0, 8);
	write_word(1, 1, 0);
	write_word(2, 2, 8);
	write_word(3, 3, 16);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), EINVAL);
	rt_sleep(20 * US);
	ck_assert(empty(a.scq));
	ck_assert_uint_eq(word(&b, 0), 0);
}

/* --- states --- */

static int post_in_state(uint64_t id)
{
	start(id, 0); /* flushed requests complete, signaled or not */
	write_word(id, id, 0);
	write_word(id + 1, id, 8);
	return ibv_wr_complete(a.qpx);
}

RNIC_TEST(task, states)
{
	ck_assert_int_eq(post_in_state(1), EINVAL);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_INIT, MASK_INIT), 0);
	ck_assert_int_eq(post_in_state(1), EINVAL);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTR, MASK_RTR), 0);
	ck_assert_int_eq(post_in_state(1), EINVAL);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTS, MASK_RTS), 0);
	connect_side(&b, &a);
	/* Drained: posted, and not started before it is ready to send again. */
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_SQD, 0), 0);
	ck_assert_int_eq(post_in_state(10), 0);
	rt_sleep(50 * US);
	ck_assert_uint_eq(word(&b, 0), 0);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTS, 0), 0);
	rt_sleep(50 * US);
	ck_assert_uint_eq(word(&b, 0), 10);
	/* The error state comes while the batch is being built. */
	start(20, 0);
	write_word(20, 20, 0);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_ERR, 0), 0);
	ck_assert(empty(a.scq));
	write_word(21, 21, 8);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	expect(a.scq, 20, IBV_WC_WR_FLUSH_ERR);
	expect(a.scq, 21, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(post_in_state(30), 0);
	expect(a.scq, 30, IBV_WC_WR_FLUSH_ERR);
	expect(a.scq, 31, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(word(&b, 0), 10);
	/* Destroyed in the middle. */
	start(40, 0);
	write_word(40, 40, 0);
	ck_assert_int_eq(rnic_destroy_qp(a.qp), 0);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), EINVAL);
	ck_assert_int_eq(post_in_state(1), EINVAL);
}

/* --- two tasks, one queue pair --- */

static unsigned others_post;

/* Waits at its post until the batch of the first is over. */
static void other_task(void *arg)
{
	if (others_post == 0) {
		op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, 50, IBV_SEND_SIGNALED);
		return;
	}
	start(50, IBV_SEND_SIGNALED);
	write_word(50, 50, 0);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
}

RNIC_TESTS(connected, two_tasks, 2, others_post = (unsigned)_i)
{
	set_word(&a, 0, 50);
	start(1, IBV_SEND_SIGNALED);
	write_word(1, 1, 0);
	ck_assert_int_eq(sim_spawn(sim, 1, "other", other_task, NULL), 0);
	rt_sleep(50 * US);
	ck_assert_uint_eq(word(&b, 0), 0);
	a.qpx->wr_flags = IBV_SEND_SIGNALED;
	write_word(2, 2, 0);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	expect(a.scq, 50, IBV_WC_SUCCESS);
	rt_sleep(US);
	ck_assert_uint_eq(word(&b, 0), 50);
}

/* --- creation --- */

#define PD  IBV_QP_INIT_ATTR_PD
#define OPS IBV_QP_INIT_ATTR_SEND_OPS_FLAGS

static const struct creation {
	const char *name;
	uint32_t mask, create_flags;
	uint64_t ops;
	int error;
	enum ibv_qp_type type; /* 0: RC */
	uint32_t send_wr;
} creations[] = {
	{"domain alone: an ordinary queue pair", PD, 0, 0, 0, 0, 1},
	{"all operations", PD | OPS, 0, ALL_OPS, 0, 0, 1},
	{"no operation", PD | OPS, 0, 0, 0, 0, 1},
	{"no creation flags", PD | OPS | IBV_QP_INIT_ATTR_CREATE_FLAGS, 0, ALL_OPS, 0, 0, 1},
	{"flags without their bit are not looked at", PD | OPS, 2, ALL_OPS, 0, 0, 1},
	{"operations without their bit are not looked at", PD, 0, ~0ull, 0, 0, 1},
	{"no domain", OPS, 0, ALL_OPS, EINVAL, 0, 1},
	{"nothing", 0, 0, 0, EINVAL, 0, 1},
	{"too large", PD | OPS, 0, ALL_OPS, EINVAL, 0, 1 << 20},
	{"LOCAL_INV", PD | OPS, 0, IBV_QP_EX_WITH_LOCAL_INV, 0, 0, 1},
	{"BIND_MW", PD | OPS, 0, ALL_OPS | IBV_QP_EX_WITH_BIND_MW, 0, 0, 1},
	{"SEND_WITH_INV", PD | OPS, 0, IBV_QP_EX_WITH_SEND_WITH_INV, 0, 0, 1},
	{"TSO", PD | OPS, 0, IBV_QP_EX_WITH_TSO, EOPNOTSUPP, 0, 1},
	{"an operation from the future", PD | OPS, 0, 1ull << 40, EOPNOTSUPP, 0, 1},
	{"creation flags", PD | IBV_QP_INIT_ATTR_CREATE_FLAGS, 1 << 10, 0, EOPNOTSUPP, 0, 1},
	{"an XRC domain", PD | IBV_QP_INIT_ATTR_XRCD, 0, 0, EOPNOTSUPP, 0, 1},
	{"segmentation", PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0, 0, EOPNOTSUPP, 0, 1},
	{"an indirection table", PD | IBV_QP_INIT_ATTR_IND_TABLE, 0, 0, EOPNOTSUPP, 0, 1},
	{"hashing", PD | IBV_QP_INIT_ATTR_RX_HASH, 0, 0, EOPNOTSUPP, 0, 1},
	{"an attribute from the future", PD | 1 << 20, 0, 0, EOPNOTSUPP, 0, 1},
	{"no type", PD | OPS, 0, IBV_QP_EX_WITH_SEND, EINVAL, (enum ibv_qp_type)1, 1},
	{"datagrams", PD | OPS, 0, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM, 0,
	 IBV_QPT_UD, 1},
	{"datagrams that WRITE", PD | OPS, 0, IBV_QP_EX_WITH_RDMA_WRITE, EOPNOTSUPP, IBV_QPT_UD, 1},
	{"unreliable connection", PD | OPS, 0, IBV_QP_EX_WITH_RDMA_WRITE, 0, IBV_QPT_UC, 1},
	{"READ without a reliable connection", PD | OPS, 0, IBV_QP_EX_WITH_RDMA_READ, EOPNOTSUPP,
	 IBV_QPT_UC, 1},
	{"raw packets", PD | OPS, 0, 0, EOPNOTSUPP, IBV_QPT_RAW_PACKET, 1},
};

RNIC_TEST(task, creation)
{
	for (unsigned i = 0; i < ROWS_OF(creations); i++) {
		const struct creation *c = &creations[i];
		struct ibv_qp_init_attr_ex init = {
			.qp_context = (void *)c,
			.send_cq = a.scq,
			.recv_cq = a.rcq,
			.cap = {.max_send_wr = c->send_wr,
				.max_send_sge = 2,
				.max_inline_data = 16},
			.qp_type = c->type ? c->type : IBV_QPT_RC,
			.comp_mask = c->mask,
			.pd = c->mask & PD ? a.pd : NULL,
			.create_flags = c->create_flags,
			.send_ops_flags = c->ops,
		};
		errno = 0;
		struct ibv_qp *qp = ibv_create_qp_ex(a.ctx, &init);
		ck_assert_msg(!qp == !!c->error, "%s", c->name);
		ck_assert_msg(c->error == 0 || errno == c->error, "%s: %d", c->name, errno);
		if (!qp)
			continue;
		struct ibv_qp_attr attr;
		struct ibv_qp_init_attr got;
		ck_assert_ptr_eq(qp->qp_context, c);
		ck_assert_int_eq(rnic_query_qp(qp, &attr, IBV_QP_CAP, &got), 0);
		ck_assert_uint_ge(got.cap.max_send_wr, init.cap.max_send_wr);
		ck_assert_uint_ge(init.cap.max_inline_data, 16);
		struct ibv_qp_ex *ex = rnic_qp_to_qp_ex(qp);
		ck_assert_msg(!ex == !(c->mask & OPS), "%s", c->name);
		if (ex)
			ck_assert_ptr_eq(&ex->qp_base, qp);
		ck_assert_int_eq(rnic_destroy_qp(qp), 0);
	}
	struct ibv_qp_init_attr_ex init = {.send_cq = a.scq,
					   .recv_cq = a.rcq,
					   .qp_type = IBV_QPT_RC,
					   .comp_mask = PD | OPS,
					   .pd = a.pd};
	ck_assert_ptr_null(ibv_create_qp_ex(b.ctx, &init)); /* all of another device */
	ck_assert_int_eq(errno, EINVAL);
	init.pd = b.pd;
	ck_assert_ptr_null(ibv_create_qp_ex(b.ctx, &init)); /* the queues are */
	ck_assert_int_eq(errno, EINVAL);
}

/* Which functions a queue pair has: those that were asked for. */
static const struct function {
	uint64_t op;
	size_t at; /* in struct ibv_qp_ex_with_flush, which begins with the queue pair */
} functions[] = {
#define FUNCTION(op, name)                                            \
	{                                                             \
		IBV_QP_EX_WITH_##op, offsetof(struct ibv_qp_ex, name) \
	}
	FUNCTION(RDMA_WRITE, wr_rdma_write),
	FUNCTION(RDMA_WRITE_WITH_IMM, wr_rdma_write_imm),
	FUNCTION(SEND, wr_send),
	FUNCTION(SEND_WITH_IMM, wr_send_imm),
	FUNCTION(RDMA_READ, wr_rdma_read),
	FUNCTION(ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp),
	FUNCTION(ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add),
	FUNCTION(ATOMIC_WRITE, wr_atomic_write),
	FUNCTION(BIND_MW, wr_bind_mw),
	FUNCTION(LOCAL_INV, wr_local_inv),
	FUNCTION(SEND_WITH_INV, wr_send_inv),
	{IBV_QP_EX_WITH_FLUSH, offsetof(struct ibv_qp_ex_with_flush, wr_flush)},
};

RNIC_TESTS(task, available, ROWS_OF(functions), opt.send_ops = functions[_i].op)
{
	for (unsigned i = 0; i < ROWS_OF(functions); i++) {
		void (*function)(void);

		memcpy(&function, (const char *)a.qpx + functions[i].at, sizeof(function));
		ck_assert_int_eq(!!function, functions[i].op == opt.send_ops);
	}
	ck_assert(!a.qpx->wr_send_tso && !a.qpx->wr_set_ud_addr && !a.qpx->wr_set_xrc_srqn);
	ck_assert(a.qpx->wr_start && a.qpx->wr_complete && a.qpx->wr_abort && a.qpx->wr_set_sge);
	ck_assert(a.qpx->wr_set_sge_list && a.qpx->wr_set_inline_data &&
		  a.qpx->wr_set_inline_data_list);
}

/* A store that calls a function that it did not ask for has a fault of its own, and the run goes on
 * to say so. */
static void calls_none(void *arg)
{
	make_sides();
	ibv_wr_start(a.qpx);
	ibv_wr_rdma_read(a.qpx, 1, 0);
}

TEST(not_asked_for)
{
	opt.send_ops = IBV_QP_EX_WITH_SEND;
	sim = sim_new();
	sim_reset(sim, NULL);
	net = rnic_net_new(sim, &opt.hw);
	ck_assert_int_eq(sim_spawn(sim, 1, "", calls_none, NULL), 0);
	ck_assert_int_eq(sim_run(sim), SIM_FAULT);
	ck_assert_str_eq(sim_fault(sim, NULL), "segmentation fault");
	sim_free(sim);
}

RNIC_TEST(task, device)
{
	struct ibv_device_attr_ex attr;
	struct ibv_device_attr plain;
	struct ibv_query_device_ex_input input = {.comp_mask = 0};
	memset(&attr, 0xff, sizeof(attr));
	ck_assert_int_eq(ibv_query_device_ex(a.ctx, &input, &attr), 0);
	ck_assert_int_eq(rnic_query_device(a.ctx, &plain), 0);
	ck_assert_uint_eq(attr.device_cap_flags_ex & UINT32_MAX, plain.device_cap_flags);
	ck_assert_uint_eq(attr.device_cap_flags_ex >> 32 << 32,
			  IB_UVERBS_DEVICE_FLUSH_GLOBAL | IB_UVERBS_DEVICE_FLUSH_PERSISTENT |
				  IB_UVERBS_DEVICE_ATOMIC_WRITE);
	ck_assert_uint_eq(attr.hca_core_clock, 1000000);
	ck_assert_uint_eq(attr.completion_timestamp_mask, UINT64_MAX);
	ck_assert_int_eq(ibv_query_device_ex(a.ctx, NULL, &attr), 0);
	input.comp_mask = 1;
	ck_assert_int_eq(ibv_query_device_ex(a.ctx, &input, &attr), EINVAL);
	/* A program that was built with an older, shorter structure. */
	struct verbs_context *table = verbs_get_ctx(a.ctx);
	size_t len = offsetof(struct ibv_device_attr_ex, tso_caps);
	memset(&attr, 0xee, sizeof(attr));
	ck_assert_int_eq(table->query_device_ex(a.ctx, NULL, &attr, len), 0);
	ck_assert_uint_ne(attr.device_cap_flags_ex, 0);
	ck_assert_uint_eq(attr.phys_port_cnt_ex, 0xeeeeeeee);
	ck_assert_int_eq(table->query_device_ex(a.ctx, NULL, &attr, 8), EINVAL);
	ck_assert_int_eq(table->query_device_ex(a.ctx, &input, &attr, sizeof(attr)), EINVAL);
}

/* --- the memory placement extensions --- */

/*
 * Rights, keys and ranges. The region is b's bytes 4096 to 8191, in PM. Where the right of the
 * queue pair is missing the request is invalid, where the region's is, or the bytes are not its,
 * the access is refused.
 */
#define G	 IBV_ACCESS_FLUSH_GLOBAL
#define P	 IBV_ACCESS_FLUSH_PERSISTENT
#define W	 (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define T	 (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define REST	 (ALL_ACCESS & ~G)
#define VISIBLE	 IBV_FLUSH_GLOBAL
#define DURABLE	 IBV_FLUSH_PERSISTENT
#define RANGE	 IBV_FLUSH_RANGE
#define WHOLE	 IBV_FLUSH_MR
#define OK	 IBV_WC_SUCCESS
#define ACCESS	 IBV_WC_REM_ACCESS_ERR
#define INVALID	 IBV_WC_REM_INV_REQ_ERR
#define FLUSH	 IBV_WR_FLUSH
#define ATOMIC_W IBV_WR_ATOMIC_WRITE

/* clang-format off */
static const struct placement {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint8_t type, level;
	uint64_t off; /* from the region's start */
	uint32_t len;
	unsigned region, qp; /* rights */
	enum ibv_wc_status status;
	enum { RIGHT, LKEY, DEAD, OTHER_DOMAIN } key;
} placements[] = {
	{"visible", FLUSH, VISIBLE, RANGE, 0, 64, G, G, OK, RIGHT},
	{"durable", FLUSH, DURABLE, RANGE, 0, 64, P, P, OK, RIGHT},
	{"both", FLUSH, VISIBLE | DURABLE, RANGE, 0, 64, G | P, G | P, OK, RIGHT},
	{"visible, whole", FLUSH, VISIBLE, WHOLE, 0, 0, G, G, OK, RIGHT},
	{"durable, whole", FLUSH, DURABLE, WHOLE, 0, 0, P, P, OK, RIGHT},
	{"visible, region for durable", FLUSH, VISIBLE, RANGE, 0, 64, P | REST, G | P, ACCESS, RIGHT},
	{"visible, queue pair for durable", FLUSH, VISIBLE, RANGE, 0, 64, G | P, P | REST, INVALID, RIGHT},
	{"durable, region for visible", FLUSH, DURABLE, RANGE, 0, 64, G | REST, G | P, ACCESS, RIGHT},
	{"durable, queue pair for visible", FLUSH, DURABLE, RANGE, 0, 64, G | P, G | REST, INVALID, RIGHT},
	{"both, region for visible", FLUSH, VISIBLE | DURABLE, RANGE, 0, 64, G, G | P, ACCESS, RIGHT},
	{"both, region for durable", FLUSH, VISIBLE | DURABLE, RANGE, 0, 64, P, G | P, ACCESS, RIGHT},
	{"both, queue pair for visible", FLUSH, VISIBLE | DURABLE, RANGE, 0, 64, G | P, G, INVALID, RIGHT},
	{"both, queue pair for durable", FLUSH, VISIBLE | DURABLE, RANGE, 0, 64, G | P, P, INVALID, RIGHT},
	{"whole, region says no", FLUSH, VISIBLE, WHOLE, 0, 0, P | REST, G | P, ACCESS, RIGHT},
	{"whole, queue pair says no", FLUSH, DURABLE, WHOLE, 0, 0, G | P, G | REST, INVALID, RIGHT},
	{"all of it", FLUSH, VISIBLE, RANGE, 0, 4096, G, G, OK, RIGHT},
	{"last byte", FLUSH, DURABLE, RANGE, 4095, 1, P, P, OK, RIGHT},
	{"one byte past the end", FLUSH, VISIBLE, RANGE, 4095, 2, G, G, ACCESS, RIGHT},
	{"a byte before the start", FLUSH, VISIBLE, RANGE, (uint64_t)-1, 64, G, G, ACCESS, RIGHT},
	{"the longest", FLUSH, VISIBLE, RANGE, 0, UINT32_MAX, G, G, ACCESS, RIGHT},
	{"nothing", FLUSH, VISIBLE, RANGE, 100, 0, G, G, OK, RIGHT},
	{"nothing, at the end", FLUSH, DURABLE, RANGE, 4096, 0, P, P, OK, RIGHT},
	{"nothing, behind the end", FLUSH, VISIBLE, RANGE, 4097, 0, G, G, ACCESS, RIGHT},
	{"nothing, without the right", FLUSH, VISIBLE, RANGE, 0, 0, P, G, ACCESS, RIGHT},
	{"nothing, wrong key", FLUSH, VISIBLE, RANGE, 0, 0, G, G, ACCESS, LKEY},
	{"whole, whatever the range", FLUSH, DURABLE, WHOLE, 1 << 30, UINT32_MAX, P, P, OK, RIGHT},
	{"wrong key", FLUSH, VISIBLE, RANGE, 0, 64, G, G, ACCESS, LKEY},
	{"whole, wrong key", FLUSH, VISIBLE, WHOLE, 0, 0, G, G, ACCESS, LKEY},
	{"dead region", FLUSH, VISIBLE, RANGE, 0, 64, G, G, ACCESS, DEAD},
	{"whole, dead region", FLUSH, DURABLE, WHOLE, 0, 0, P, P, ACCESS, DEAD},
	{"another domain's", FLUSH, VISIBLE, RANGE, 0, 64, G, G, ACCESS, OTHER_DOMAIN},
	{"whole, another domain's", FLUSH, VISIBLE, WHOLE, 0, 0, G, G, ACCESS, OTHER_DOMAIN},
	{"atomic write", ATOMIC_W, 0, 0, 0, 8, W, W, OK, RIGHT},
	{"atomic write, last word", ATOMIC_W, 0, 0, 4088, 8, W, W, OK, RIGHT},
	{"atomic write, region for atomics", ATOMIC_W, 0, 0, 0, 8, T, W | T, ACCESS, RIGHT},
	{"atomic write, queue pair for atomics", ATOMIC_W, 0, 0, 0, 8, W | T, T, INVALID, RIGHT},
	{"atomic write past the end", ATOMIC_W, 0, 0, 4096, 8, W, W, ACCESS, RIGHT},
	{"atomic write before the start", ATOMIC_W, 0, 0, (uint64_t)-8, 8, W, W, ACCESS, RIGHT},
	{"atomic write, 4", ATOMIC_W, 0, 0, 4, 8, W, W, INVALID, RIGHT},
	{"atomic write, 1", ATOMIC_W, 0, 0, 1, 8, W, W, INVALID, RIGHT},
	{"atomic write, wrong key", ATOMIC_W, 0, 0, 0, 8, W, W, ACCESS, LKEY},
	{"atomic write, dead region", ATOMIC_W, 0, 0, 0, 8, W, W, ACCESS, DEAD},
	{"atomic write, another domain's", ATOMIC_W, 0, 0, 0, 8, W, W, ACCESS, OTHER_DOMAIN},
};
/* clang-format on */
#define PLACEMENTS ROWS_OF(placements)
static struct placement placement;

static void post_placement(uint32_t rkey, uint64_t va)
{
	struct ibv_sge sge;
	uint64_t value = 77;
	set_word(&a, 0, value);
	if (!api) {
		struct ibv_send_wr wr = wr_make(&a, placement.opcode, &sge, 0, 8, &b, 0);
		if (placement.opcode == IBV_WR_FLUSH)
			flush_wr(&wr, rkey, va, placement.len, placement.type, placement.level);
		wr.wr.rdma.remote_addr = va;
		if (placement.opcode == IBV_WR_ATOMIC_WRITE)
			wr.wr.rdma.rkey = rkey;
		post(&a, &wr);
		return;
	}
	start(7, IBV_SEND_SIGNALED);
	if (placement.opcode == IBV_WR_FLUSH)
		ibv_wr_flush(a.qpx, rkey, va, placement.len, placement.type, placement.level);
	else
		ibv_wr_atomic_write(a.qpx, rkey, va, &value);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
}

RNIC_TESTS(pm, placement_case, 2 * PLACEMENTS, placement = placements[_i % PLACEMENTS],
	   api = _i >= (int)PLACEMENTS, opt.qp_access = placement.qp)
{
	struct ibv_pd *pd = placement.key == OTHER_DOMAIN ? rnic_alloc_pd(b.ctx) : b.pd;
	struct ibv_mr *mr = rnic_reg_mr(pd, b.buf + 4096, 4096, (int)placement.region);
	ck_assert_ptr_nonnull(mr);
	if (placement.key == DEAD)
		ck_assert_int_eq(rnic_dereg_mr(mr), 0);
	post_placement(placement.key == LKEY ? mr->lkey : mr->rkey, at(&b, 4096) + placement.off);
	struct ibv_wc wc = wait_for(a.scq);
	ck_assert_msg(wc.status == placement.status, "%s, api %u: %s", placement.name, api,
		      rnic_wc_status_str(wc.status));
	ck_assert_int_eq(b.qp->state, placement.status == OK ? IBV_QPS_RTS : IBV_QPS_ERR);
	ck_assert_int_eq(a.qp->state, placement.status == OK ? IBV_QPS_RTS : IBV_QPS_ERR);
	bool writes = placement.opcode == IBV_WR_ATOMIC_WRITE && placement.status == OK;
	for (size_t off = 0; off < 16384; off++)
		ck_assert(b.buf[off] == (writes && off == 4096 + placement.off ? 77 : 0));
	if (placement.status != OK)
		return;
	bool flush = placement.opcode == IBV_WR_FLUSH;
	ck_assert_int_eq(wc.opcode, flush ? IBV_WC_FLUSH : IBV_WC_ATOMIC_WRITE);
	ck_assert_uint_eq(wc.byte_len, flush ? 0 : 8);
	ck_assert_uint_eq(wc.wr_id, 7);
}

/* A region that counts from 0, at an address that is no multiple of 8: neither the address that is
 * sent nor the one in memory may be odd. */
RNIC_TESTS(connected, zero_based, 4, opt.psn = (uint32_t)_i)
{
	struct ibv_mr *mr = rnic_reg_mr(b.pd, b.buf + 4, 64, ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	uint64_t va = opt.psn % 2 ? 4 : 0, value = 1;
	start(7, IBV_SEND_SIGNALED);
	if (opt.psn / 2) {
		ibv_wr_atomic_write(a.qpx, mr->rkey, va, &value);
	} else {
		ibv_wr_atomic_fetch_add(a.qpx, mr->rkey, va, 1);
		set(0, 8);
	}
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	expect(a.scq, 7, INVALID);
	ck_assert_uint_eq(word(&b, 0) | word(&b, 8), 0);
}

/* The right to durability is for PM only. */
RNIC_TEST(pm, registration)
{
	ck_assert_ptr_nonnull(rnic_reg_mr(b.pd, b.buf, 64, P));
	ck_assert_ptr_nonnull(rnic_reg_mr(b.pd, b.buf, 64, G | P));
	ck_assert_ptr_nonnull(rnic_reg_mr(a.pd, a.buf, 64, G));
	NOT_MADE(rnic_reg_mr(a.pd, a.buf, 64, P), EINVAL);
	uint8_t dram[64];
	ck_assert_ptr_nonnull(rnic_reg_mr(b.pd, dram, 64, G));
	NOT_MADE(rnic_reg_mr(b.pd, dram, 64, G | P), EINVAL);
	NOT_MADE(rnic_reg_mr(b.pd, b.buf + BUF - 32, 64, P), EFAULT);
}

/* --- how many at a time --- */

static const enum ibv_wr_opcode nonposted[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
					       IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_FLUSH,
					       IBV_WR_ATOMIC_WRITE};
#define NONPOSTED 5
/* 8 bytes. */
static void build_8(enum ibv_wr_opcode opcode, size_t remote)
{
	build(opcode, 8 * remote + 512, 8, remote);
}

/* What the first message does is held. Requests that the client sent. */
static unsigned requests_sent;

static unsigned hold_first(const struct choice_point *at, unsigned n)
{
	if (at->kind == CHOICE_PACKET && !strcmp(at->who->name, "c1/qp1"))
		requests_sent++;
	return (at->kind == CHOICE_LAND || at->kind == CHOICE_FETCH) && at->a == 1 ? 6 : 0;
}

/* max_rd_atomic counts all that is not posted: so many are under way. */
RNIC_TESTS(connected, initiator_depth, 4 * NONPOSTED, opt.rd_atomic = (uint8_t)(1 + _i % 4),
	   opt.cqe += (unsigned)_i / 4, source.answer = hold_first, requests_sent = 0)
{
	start(0, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < NONPOSTED; i++)
		build_8(nonposted[(i + opt.cqe) % NONPOSTED], 64 * i);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	rt_sleep(10 * US);
	ck_assert_uint_eq(requests_sent, opt.rd_atomic);
	for (unsigned i = 0; i < NONPOSTED; i++)
		expect(a.scq, 0, IBV_WC_SUCCESS);
	ck_assert_uint_eq(requests_sent, NONPOSTED);
}

/* max_dest_rd_atomic, too; one more than it allows is an invalid request. */
RNIC_TESTS(connected, responder_resources, NONPOSTED, opt.dest_rd_atomic = 2,
	   opt.cqe += (unsigned)_i, source.answer = hold_first)
{
	start(0, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 3; i++) {
		a.qpx->wr_id = i;
		build_8(nonposted[(i + opt.cqe) % NONPOSTED], 64 * i);
	}
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	expect(a.scq, 0, IBV_WC_SUCCESS);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
}

/* --- once --- */

static uint32_t late_message, late_delay;

/* The first try of a message comes long after its repetition. */
static unsigned late_first_try(const struct choice_point *at, unsigned n)
{
	if (at->kind == CHOICE_DRAIN)
		return n - 1;
	if (at->kind != CHOICE_PACKET || strcmp(at->who->name, "c1/qp1"))
		return 0;
	return at->a == late_message && at->c == 1 ? PACKET_DELAY + late_delay : 0;
}

static void late_write_body(void)
{
	uint64_t value = 5;
	start(1, IBV_SEND_SIGNALED);
	ibv_wr_atomic_write(a.qpx, b.mr->rkey, at(&b, 0), &value);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	start(2, IBV_SEND_SIGNALED);
	write_word(2, 6, 0);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	rt_sleep(20 * MS);
	ck_assert_uint_eq(word(&b, 0), 6);
	ck_assert_int_eq(b.qp->state, IBV_QPS_RTS);
}

static void late_flush_body(void)
{
	start(1, IBV_SEND_SIGNALED);
	write_word(1, 5, 0);
	ibv_wr_flush(a.qpx, b.mr->rkey, at(&b, 0), 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(pmem_dirty(pool), 0);
	start(2, IBV_SEND_SIGNALED);
	write_word(2, 6, 0);
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	rt_sleep(20 * MS);
	ck_assert_uint_eq(pmem_dirty(pool), 1);
}

TESTS(late_duplicate, 2)
{
	opt.timeout = 2; /* 16 us */
	opt.hw.ddio = DDIO_OFF;
	source.answer = late_first_try;
	late_message = _i ? 2 : 1;
	late_delay = 5;
	run_pm(_i ? late_flush_body : late_write_body);
}

/* The first answer to the second message is lost. */
ANSWER(lose_answer,
       at->kind == CHOICE_PACKET && !strcmp(at->who->name, "server/qp1") && at->a == 2 &&
	       at->c == 1,
       PACKET_LOSE)

/* A sequence number comes again after 16 million packets (here it is set back): a duplicate gets
 * its own answer, not that of the request that had its number before. */
RNIC_TEST(connected, numbers_again, source.answer = lose_answer)
{
	struct rnic_qp *from = (struct rnic_qp *)a.qp, *to = (struct rnic_qp *)b.qp;
	for (uint64_t i = 0; i < 2; i++) {
		from->req.una = from->req.next_psn = to->resp.psn = opt.psn;
		start(i, IBV_SEND_SIGNALED);
		ibv_wr_atomic_fetch_add(a.qpx, b.mr->rkey, at(&b, 0), 1);
		set(0, 8);
		ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
		expect(a.scq, i, IBV_WC_SUCCESS);
		ck_assert_uint_eq(word(&a, 0), i);
	}
	ck_assert_uint_eq(word(&b, 0), 2);
}

/* --- packets that our requester would not send --- */

static const struct malformed {
	const char *name;
	uint8_t opcode;
	uint32_t payload, dma_len;
	uint8_t placement, selectivity;
	bool allowed;
} malformed[] = {
	{"atomic write", OP_ATOMIC_WRITE, 8, 8, 0, 0, true},
	{"atomic write of 4 bytes", OP_ATOMIC_WRITE, 4, 4, 0, 0, false},
	{"atomic write of 16 bytes", OP_ATOMIC_WRITE, 16, 16, 0, 0, false},
	{"atomic write of nothing", OP_ATOMIC_WRITE, 0, 0, 0, 0, false},
	{"atomic write, header says 16", OP_ATOMIC_WRITE, 8, 16, 0, 0, false},
	{"atomic write, header says nothing", OP_ATOMIC_WRITE, 8, 0, 0, 0, false},
	{"flush", OP_FLUSH, 0, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, true},
	{"flush of no type", OP_FLUSH, 0, 64, 0, IBV_FLUSH_RANGE, false},
	{"flush of an unknown type", OP_FLUSH, 0, 64, 4 | IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, false},
	{"flush of an unknown level", OP_FLUSH, 0, 64, IBV_FLUSH_GLOBAL, 2, false},
	{"flush with data", OP_FLUSH, 8, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, false},
};

RNIC_TEST(connected, malformed_packets)
{
	for (unsigned i = 0; i < ROWS_OF(malformed); i++) {
		const struct malformed *m = &malformed[i];
		struct packet *pkt = packet_to_b(m->opcode, m->payload, 1);
		set_word(&b, 0, 0);
		pkt->dma_len = m->dma_len;
		pkt->placement = m->placement;
		pkt->selectivity = m->selectivity;
		deliver_to_b(pkt);
		ck_assert_msg(b.qp->state == (m->allowed ? IBV_QPS_RTS : IBV_QPS_ERR), "%s",
			      m->name);
		ck_assert_uint_eq(word(&b, 0), m->allowed && m->payload ? 0x0101010101010101 : 0);
		ck_assert_int_eq(modify(&b, &a, IBV_QPS_RESET, 0), 0);
		connect_side(&b, &a);
	}
}

RUN_TESTS(setup, NULL)
