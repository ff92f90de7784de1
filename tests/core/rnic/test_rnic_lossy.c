/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link that is known to be lossy (core/rnic/transport/link.h,
 * core/rnic/transport/loss_recovery.c). A gate before the simulation's link loses, or holds back,
 * just the packets that a test names, and counts what passes: how much is sent for a loss, for
 * packets that changed places, for a lost end, and how soon. What an ending peer still says. Then
 * everything at random, and the right bytes.
 */
#include "core/rnic/count.h"
#include "core/rnic/objects/qp.h"
#include "tests/core/rnic/rnic_world.h"

#define MTU	1024
#define PACKETS 100
#define ROUNDS	60

/* What stands before the link's send(): that is `send` here. */
static struct {
	void (*send)(struct link *link, unsigned from, struct packet *pkt);
	bool (*loses)(const struct packet *pkt);
	bool (*holds)(const struct packet *pkt); /* it goes after the next one */
	struct packet *held;
	unsigned requests, reads, acks, naks; /* that were to be sent */
} gate;

static uint64_t count[RNIC_COUNT];

static void gate_send(struct link *link, unsigned from, struct packet *pkt)
{
	if (pkt->opcode == OP_ACKNOWLEDGE)
		*(pkt->syndrome & AETH_KIND ? &gate.naks : &gate.acks) += 1;
	else if (!(opcode_is[pkt->opcode] & IS_RESPONSE))
		gate.requests++;
	gate.reads += pkt->opcode == OP_READ_REQUEST;
	if (gate.loses && gate.loses(pkt)) {
		packet_put(net, pkt);
		return;
	}
	if (gate.holds && !gate.held && gate.holds(pkt)) {
		gate.held = pkt;
		return;
	}
	gate.send(link, from, pkt);
	if (gate.held) {
		gate.send(link, from, gate.held);
		gate.held = NULL;
	}
}

static void put_gate(bool (*loses)(const struct packet *pkt))
{
	memset(&gate, 0, sizeof(gate));
	memset(count, 0, sizeof(count));
	net->count = count;
	gate.loses = loses;
	gate.send = net->link->send;
	net->link->send = gate_send;
	net->link->lossy = true;
}

/* A request of PACKETS packets, and that it brings the bytes. */
static void transfer(enum ibv_wr_opcode opcode)
{
	uint32_t len = PACKETS * MTU;

	fill(a.buf, len, 1);
	fill(b.buf, len, 2);
	op_done(&a, opcode, 0, len, &b, 0);
	rt_sleep(10 * US);
	ck_assert_mem_eq(a.buf, b.buf, len);
}

/* A transmission that is the first one: none was sent again before. */
static bool is_first(const struct packet *pkt)
{
	return pkt->name.round == 1;
}

static bool is_data(const struct packet *pkt)
{
	return opcode_is[pkt->opcode] & (IS_SEND | IS_WRITE) ||
	       (pkt->opcode >= OP_READ_RESPONSE_FIRST && pkt->opcode <= OP_READ_RESPONSE_ONLY);
}

static bool fifth(const struct packet *pkt)
{
	return is_first(pkt) && is_data(pkt) && pkt->psn == psn_add(opt.psn, 5);
}

static bool every_tenth(const struct packet *pkt)
{
	return is_first(pkt) && is_data(pkt) && pkt->psn % 10 == 5;
}

static bool last_three(const struct packet *pkt)
{
	return is_first(pkt) && is_data(pkt) && psn_diff(pkt->psn, opt.psn) >= PACKETS - 3;
}

RNIC_TEST(connected, one)
{
	put_gate(fifth);
	transfer(IBV_WR_RDMA_WRITE);
	ck_assert_uint_eq(gate.requests, PACKETS + 1);
	ck_assert_uint_eq(gate.naks, 1);
	ck_assert_uint_eq(count[COUNT_probe] + count[COUNT_timeout], 0);
}

RNIC_TEST(connected, many)
{
	put_gate(every_tenth);
	transfer(IBV_WR_RDMA_WRITE);
	ck_assert_uint_eq(gate.requests, PACKETS + 10);
	ck_assert_uint_eq(count[COUNT_probe] + count[COUNT_timeout], 0);
}

RNIC_TEST(connected, read_gaps)
{
	put_gate(every_tenth);
	transfer(IBV_WR_RDMA_READ);
	/* For each one packet's bytes, and nothing for what came in spite of it. */
	ck_assert_uint_eq(gate.reads, 1 + 10);
	ck_assert_uint_eq(count[COUNT_duplicate], 10);
	ck_assert_uint_eq(count[COUNT_probe] + count[COUNT_timeout], 0);
}

/* Packets that change places: neither end complains. */
RNIC_TEST(connected, order)
{
	put_gate(NULL);
	gate.holds = every_tenth;
	transfer(IBV_WR_RDMA_WRITE);
	transfer(IBV_WR_RDMA_READ);
	ck_assert_uint_eq(gate.requests, PACKETS + 1);
	ck_assert_uint_eq(gate.naks, 0);
	ck_assert_uint_gt(count[COUNT_kept], 10);
	ck_assert_uint_eq(count[COUNT_probe] + count[COUNT_timeout] + count[COUNT_retry], 0);
}

/* The end of what was sent is lost: noticed long before the timeout, and no retry. */
RNIC_TEST(connected, end, opt.timeout = 14, opt.retry_cnt = 0)
{
	uint64_t start = sim_now(sim);

	put_gate(last_three);
	transfer(IBV_WR_RDMA_WRITE);
	ck_assert_uint_lt(sim_now(sim) - start, 3 * MS);
	start = sim_now(sim);
	opt.psn += PACKETS;
	transfer(IBV_WR_RDMA_READ);
	ck_assert_uint_lt(sim_now(sim) - start, 3 * MS);
	ck_assert_uint_eq(count[COUNT_retry], 0);
}

static bool all_requests(const struct packet *pkt)
{
	return !(opcode_is[pkt->opcode] & IS_RESPONSE) && pkt->opcode != OP_ACKNOWLEDGE;
}

/* Probes go out, and the limit is what it was: timeout times (retry_cnt + 1). */
/* Tries are as far apart as the timeout says, or as an equal share of the link's silence. */
static void limit_body(uint64_t between)
{
	uint64_t start = sim_now(sim);

	put_gate(all_requests);
	op(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 0, 1, IBV_SEND_SIGNALED);
	expect(a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_ge(sim_now(sim) - start, 3 * between);
	ck_assert_uint_lt(sim_now(sim) - start, 3 * between + MS);
	ck_assert_uint_gt(count[COUNT_probe], 5);
	ck_assert_uint_eq(count[COUNT_retry], 2);
}

static void timeout_body(void)
{
	limit_body(4096 << 14);
}

static void silence_body(void)
{
	net->link->silence_ns = 1000 * MS;
	limit_body(1000 * MS / 3);
}

TESTS(limit, 2)
{
	opt.timeout = 14;
	opt.retry_cnt = 2;
	run_connected(_i ? silence_body : timeout_body);
}

/* A peer that drops what comes after a gap, as the specification has it. */
static bool fifth_and_behind(const struct packet *pkt)
{
	return is_first(pkt) && is_data(pkt) && psn_diff(pkt->psn, opt.psn) >= 5 &&
	       psn_diff(pkt->psn, opt.psn) != PACKETS - 1;
}

RNIC_TEST(connected, forgetful)
{
	put_gate(fifth_and_behind);
	transfer(IBV_WR_RDMA_WRITE);
	ck_assert_uint_ge(gate.requests, PACKETS + 94);
	ck_assert_uint_le(gate.requests, PACKETS + 94 + 5);
	/* Bursts that grow, not an answer for each packet. */
	ck_assert_uint_lt(gate.acks, 60);
}

/* What came after a message that found no receiver is not kept: it comes again, and is refused
 * once. */
RNIC_TEST(connected, not_ready, opt.rnr_retry = 1)
{
	put_gate(NULL);
	for (unsigned i = 0; i < 4; i++)
		op(&a, IBV_WR_SEND, 0, 64, &b, 0, i, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 4; i++) {
		while (gate.naks == i)
			rt_sleep(US);
		recv_post(&b, 0, 64, i);
		expect(b.rcq, i, IBV_WC_SUCCESS);
		expect(a.scq, i, IBV_WC_SUCCESS);
	}
	ck_assert_uint_eq(gate.naks, 4);
	ck_assert_uint_eq(count[COUNT_kept], 0);
}

/* The link was a good one, until the middle of a transfer, or until it waits for the answer to its
 * end. */
static bool waits;

static bool middle_and_end(const struct packet *pkt)
{
	int32_t at = psn_diff(pkt->psn, opt.psn);
	return is_first(pkt) && is_data(pkt) &&
	       (at >= 2 * PACKETS - 3 || (!waits && at == PACKETS));
}

RNIC_TESTS(connected, becomes, 2, opt.timeout = 0 /* for ever */, waits = _i)
{
	put_gate(middle_and_end);
	net->link->lossy = false;
	op(&a, IBV_WR_RDMA_WRITE, 0, 2 * PACKETS * MTU, &b, 0, 1, IBV_SEND_SIGNALED);
	if (!waits)
		op(&a, IBV_WR_RDMA_READ, 2 * PACKETS * MTU, MTU, &b, 0, 2, IBV_SEND_SIGNALED);
	rt_sleep(waits ? 200 * US : 3 * US);
	ck_assert(empty(a.scq));
	ck_assert(waits ? gate.requests >= 2 * PACKETS : gate.requests < 2 * PACKETS);
	rnic_becomes_lossy(net);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	if (waits)
		ck_assert_uint_gt(count[COUNT_probe], 0);
	else
		expect(a.scq, 2, IBV_WC_SUCCESS);
}

/* --- last words --- */

static bool deaf; /* a hears no answer */

static bool answers_to_a(const struct packet *pkt)
{
	return deaf && pkt->opcode == OP_ACKNOWLEDGE;
}

RNIC_TESTS(connected, acknowledged, 2, opt.timeout = 14, opt.retry_cnt = 1, opt.sig_all = _i)
{
	deaf = true;
	put_gate(answers_to_a);
	fill(a.buf, 64, 1);
	recv_post(&b, 0, 64, 5);
	op(&a, IBV_WR_SEND, 0, 64, &b, 0, 1, IBV_SEND_SIGNALED);
	expect(b.rcq, 5, IBV_WC_SUCCESS);
	if (opt.sig_all)
		ck_assert_int_eq(modify(&b, &a, IBV_QPS_ERR, 0), 0);
	else
		ck_assert_int_eq(rnic_destroy_qp(b.qp), 0);
	deaf = false;
	expect(a.scq, 1, IBV_WC_SUCCESS);
	/* What came later is not acknowledged. */
	op(&a, IBV_WR_SEND, 0, 64, &b, 0, 2, IBV_SEND_SIGNALED);
	expect(a.scq, 2, IBV_WC_RETRY_EXC_ERR);
}

RNIC_TESTS(connected, refused, 2, opt.sig_all = _i)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, 64, &b, 0);

	deaf = true;
	put_gate(answers_to_a);
	wr.wr.rdma.rkey ^= 0x700;
	post(&a, &wr);
	while (b.qp->state != IBV_QPS_ERR)
		rt_yield();
	rt_sleep(10 * US);
	if (opt.sig_all)
		ck_assert_int_eq(rnic_destroy_qp(b.qp), 0);
	deaf = false;
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
}

/* An answer may overtake an acknowledgement: queues have room for that, and say so. */
RNIC_TEST(connected, room)
{
	struct ibv_qp_init_attr init = {.send_cq = a.scq, .recv_cq = a.rcq, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp_init_attr none = init;
	struct ibv_cq *cq = rnic_create_cq(a.ctx, 1, NULL, NULL, 0);

	ck_assert_int_eq(cq->cqe, 1);
	put_gate(NULL);
	cq = rnic_create_cq(a.ctx, 1, NULL, NULL, 0);
	ck_assert_int_eq(cq->cqe, 16);
	init.qp_type = none.qp_type = IBV_QPT_RC;
	none.cap.max_send_wr = 0;
	ck_assert_ptr_nonnull(rnic_create_qp(a.pd, &init));
	ck_assert_uint_eq(init.cap.max_send_wr, 16);
	ck_assert_ptr_nonnull(rnic_create_qp(a.pd, &none));
	ck_assert_uint_eq(none.cap.max_send_wr, 0);
}

/* --- everything --- */

static void random_body(void)
{
	put_gate(NULL);
	net->link->burst = source.permille[CHOICE_LAND] ? 0 : 16;
	random_traffic(ROUNDS, true);
	ck_assert_uint_eq(count[COUNT_retry_exceeded], 0);
}

TESTS(random_order, 48)
{
	source.state = (uint64_t)_i * 77 + 1;
	source.permille[CHOICE_PACKET] = 30 + (unsigned)_i % 4 * 60;
	source.permille[CHOICE_FETCH] = _i % 2 ? 20 : 0; /* a responder that takes its time */
	source.permille[CHOICE_LAND] = _i % 3 ? 5 : 0;
	opt.hw.ack_early = _i % 2;
	opt.psn = 0xfffff0;
	opt.timeout = 14;
	opt.rd_atomic = opt.dest_rd_atomic = 1 + _i % 4;
	run_connected(random_body);
}

RUN_TESTS(setup_options, NULL)
