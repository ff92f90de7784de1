/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs (core/rnic/transport/packet.h): which packets go together, and what a link that has runs and
 * one that takes them apart make of the same requests, also where packets are lost, doubled and
 * reordered. A run whose length is not that of its packets is refused.
 */
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/qp.h"
#include "tests/core/rnic/rnic_world.h"

#define RUN    4096 /* bytes */
#define MTU    1024
#define ROUNDS 60

/* What stands before the link's send(): that is `send` here. */
static struct {
	void (*send)(struct link *link, unsigned from, struct packet *pkt);
	bool cuts; /* at times, by `state` */
	uint64_t state;
	uint32_t parts; /* not 0: of the first run only so many packets arrive, and nothing else for
			   a while */
	uint64_t until;
	struct packet seen[16]; /* the requests of host 1 */
	uint32_t count, runs, cut;
} gate;

static void send_in_parts(struct link *link, unsigned from, struct packet *run)
{
	uint32_t bytes = packet_wire_bytes(run), sum = 0;
	struct packet *pkt;

	gate.cut++;
	for (uint32_t i = 0; i <= run->more; i++) {
		pkt = packet_segment(net, run, i);
		ck_assert_ptr_nonnull(pkt);
		ck_assert_uint_le(pkt->len, MTU);
		ck_assert_uint_eq(pkt->more, 0);
		sum += packet_wire_bytes(pkt);
		gate.send(link, from, pkt);
	}
	ck_assert_uint_eq(sum, bytes);
	ck_assert_ptr_null(packet_segment(net, run, run->more + 1u));
	run->opcode = UINT8_MAX; /* a ring's sender may write anything */
	ck_assert_ptr_null(packet_segment(net, run, 0));
	packet_put(net, run);
}

static void gate_send(struct link *link, unsigned from, struct packet *pkt)
{
	if (!(opcode_is[pkt->opcode] & IS_RESPONSE))
		gate.seen[gate.count++ % 16] = *pkt;
	gate.runs += pkt->more > 0;
	ck_assert_uint_le(pkt->len, RUN);
	if (gate.parts && sim_now(sim) < gate.until) {
		for (uint32_t i = 0; i < gate.parts && gate.count == 1; i++)
			gate.send(link, from, packet_segment(net, pkt, i));
		packet_put(net, pkt);
		return;
	}
	if (pkt->more && gate.cuts && random_next(&gate.state) % 2)
		send_in_parts(link, from, pkt);
	else
		gate.send(link, from, pkt);
}

static void put_gate(uint32_t offload_bytes, bool cuts)
{
	memset(&gate, 0, sizeof(gate));
	gate.send = net->link->send;
	gate.cuts = cuts;
	gate.state = source.state + 1;
	net->link->send = gate_send;
	net->link->offload_bytes = offload_bytes;
}

RNIC_TEST(connected, shape)
{
	static const struct {
		uint32_t psn, len;
		uint8_t opcode, more;
	} expected[] = {
		{0, 4096, OP_WRITE_FIRST, 3},  {4, 4096, OP_WRITE_MIDDLE, 3},
		{8, 4096, OP_WRITE_MIDDLE, 3}, {12, 4096, OP_WRITE_MIDDLE, 3},
		{16, 3616, OP_WRITE_LAST, 3},  {20, 1024, OP_WRITE_ONLY, 0},
		{21, 1025, OP_SEND_ONLY, 1},
	};

	put_gate(RUN, false);
	fill(a.buf, 20000, 3);
	recv_post(&b, 60000, 2000, 9);
	op(&a, IBV_WR_RDMA_WRITE, 0, 20000, &b, 7, 1, 0);
	op(&a, IBV_WR_RDMA_WRITE, 0, 1024, &b, 30000, 2, 0);
	op_done(&a, IBV_WR_SEND, 5, 1025, &b, 0);
	ck_assert_uint_eq(wait_for(b.rcq).byte_len, 1025);
	ck_assert_mem_eq(b.buf + 7, a.buf, 20000);
	ck_assert_mem_eq(b.buf + 30000, a.buf, 1024);
	ck_assert_mem_eq(b.buf + 60000, a.buf + 5, 1025);
	ck_assert_uint_eq(gate.count, ROWS_OF(expected));
	for (unsigned i = 0; i < gate.count; i++) {
		ck_assert_uint_eq(gate.seen[i].psn, opt.psn + expected[i].psn);
		ck_assert_uint_eq(gate.seen[i].len, expected[i].len);
		ck_assert_uint_eq(gate.seen[i].opcode, expected[i].opcode);
		ck_assert_uint_eq(gate.seen[i].more, expected[i].more);
	}
}

/* 128 packets are under way, and not more. */
RNIC_TEST(connected, window)
{
	put_gate(RUN, false);
	gate.parts = 1; /* nothing is answered */
	gate.until = UINT64_MAX;
	op(&a, IBV_WR_RDMA_WRITE, 0, 1, &b, 0, 1, 0);
	op(&a, IBV_WR_RDMA_WRITE, 0, 200000, &b, 0, 2, 0);
	rt_sleep(10 * US);
	ck_assert_uint_eq(gate.count, 33);
	ck_assert_uint_eq(gate.seen[0].psn + gate.seen[0].more, opt.psn + 127);
}

/* Runs that do not end where others do: acknowledgements are asked for nonetheless, in every
 * window. */
RNIC_TEST(connected, long_message, opt.mtu = IBV_MTU_512, opt.retry_cnt = 0)
{
	put_gate(RUN, false);
	op(&a, IBV_WR_RDMA_WRITE, 0, 1, &b, 0, 1, 0);
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 200000, &b, 0);
}

/* The peer has a part of a run: what is sent again must not begin with what it has and end with
 * what it has not. */
RNIC_TEST(connected, resent, opt.timeout = 6, opt.retry_cnt = 1)
{
	put_gate(RUN, false);
	gate.parts = 2;
	gate.until = sim_now(sim) + 100 * US;
	fill(a.buf, 20000, 3);
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 20000, &b, 7);
	ck_assert_mem_eq(b.buf + 7, a.buf, 20000);
	ck_assert_uint_eq(gate.runs, 5);
	ck_assert_uint_eq(gate.count, 25);
}

/* A link with room for one packet has no runs. */
RNIC_TEST(connected, none)
{
	put_gate(MTU, false);
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 200000, &b, 0);
	ck_assert_uint_eq(gate.runs, 0);
}

RNIC_TESTS(connected, lossy, 24, source.state = (uint64_t)_i * 77 + 1,
	   source.permille[CHOICE_PACKET] = _i % 4 * 40, opt.psn = 0xfffff0, opt.timeout = 6)
{
	put_gate(RUN, true);
	random_traffic(ROUNDS, false);
	ck_assert_uint_gt(gate.runs, ROUNDS);
	ck_assert_uint_gt(gate.cut, ROUNDS / 2);
}

/* {bytes, packets after the first, opcode} of a WRITE of 3000 bytes that no peer like this one
 * sends. */
static const struct {
	uint32_t len;
	uint8_t more, opcode;
} wrong[] = {
	{3000, 0, OP_WRITE_ONLY},  {3000, 1, OP_WRITE_ONLY},  {3000, 3, OP_WRITE_ONLY},
	{2047, 1, OP_WRITE_FIRST}, {2048, 2, OP_WRITE_FIRST},
};

static unsigned which;

RNIC_TESTS(connected, refused, ROWS_OF(wrong), which = (unsigned)_i)
{
	struct packet *pkt = packet_to_b(wrong[which].opcode, wrong[which].len, 0x40);

	memset(b.buf, 0x11, 3000);
	pkt->more = wrong[which].more;
	pkt->dma_len = 3000;
	deliver_to_b(pkt);
	ck_assert_uint_eq(b.buf[0], 0x11);
	ck_assert_int_eq(b.qp->state, IBV_QPS_ERR);
}

RUN_TESTS(setup_options, NULL)
