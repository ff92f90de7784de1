/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link that holds so many packets only (core/rnic/transport/link.h, burst): what is under way
 * stays below that, a READ is asked for in parts, each of which ends where it did before when it is
 * asked for again, and READs, WRITEs and atomics of random sizes bring the right bytes over a link
 * that loses, doubles and reorders. Also who is not a queue pair's peer.
 */
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/qp.h"
#include "tests/core/rnic/rnic_world.h"

#define BURST  8
#define ROUNDS 60

/* What stands before the link's send(): that is `send` here. */
static struct {
	void (*send)(struct link *link, unsigned from, struct packet *pkt);
	uint32_t ends[64], end_count; /* of parts of READs: PSNs */
	uint32_t largest;	      /* part: bytes */
} gate;

static void gate_send(struct link *link, unsigned from, struct packet *pkt)
{
	if (pkt->opcode == OP_READ_REQUEST) {
		uint32_t psns = (pkt->dma_len + 1023) / 1024;

		if (pkt->dma_len > gate.largest)
			gate.largest = pkt->dma_len;
		gate.ends[gate.end_count++ % 64] = psn_add(pkt->psn, psns);
	}
	gate.send(link, from, pkt);
}

static void put_gate(uint32_t burst)
{
	memset(&gate, 0, sizeof(gate));
	gate.send = net->link->send;
	net->link->send = gate_send;
	net->link->burst = burst;
}

RNIC_TEST(connected, parts)
{
	static const uint32_t ends[] = {8, 16, 20,
					21}; /* 20 packets are 8, 8, 4; and the one after */

	put_gate(BURST);
	fill(b.buf, 100000, 3);
	op(&a, IBV_WR_RDMA_READ, 0, 20000, &b, 7, 1, IBV_SEND_SIGNALED);
	op(&a, IBV_WR_RDMA_READ, 20000, 100, &b, 7, 2, IBV_SEND_SIGNALED);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	ck_assert_mem_eq(a.buf, b.buf + 7, 20000);
	ck_assert_mem_eq(a.buf + 20000, b.buf + 7, 100);
	ck_assert_uint_eq(gate.end_count, 4);
	ck_assert_uint_eq(gate.largest, BURST * 1024);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(gate.ends[i], opt.psn + ends[i]);
}

RNIC_TEST(connected, whole)
{
	put_gate(0);
	op_done(&a, IBV_WR_RDMA_READ, 0, 200000, &b, 0);
	ck_assert_uint_eq(gate.end_count, 1);
	ck_assert_uint_eq(gate.largest, 200000);
}

RNIC_TESTS(connected, lossy, 24, source.state = (uint64_t)_i * 77 + 1,
	   source.permille[CHOICE_PACKET] = 30 + (unsigned)_i % 3 * 60,
	   source.permille[CHOICE_FETCH] = _i % 2 ? 20 : 0 /* a responder that takes its time */,
	   opt.psn = 0xfffff0, opt.timeout = 6, opt.rd_atomic = opt.dest_rd_atomic = 1 + _i % 4)
{
	put_gate(BURST);
	random_traffic(ROUNDS, false);
	ck_assert_uint_le(gate.largest, BURST * 1024);
}

RNIC_TEST(connected, stranger)
{
	set_word(&b, 0, 1);
	for (uint32_t from = 0; from < 3; from++) {
		struct packet *pkt = packet_to_b(OP_WRITE_ONLY, 8, 0x40 + (int)from);

		pkt->from = from; /* a is on host 1 */
		deliver_to_b(pkt);
		ck_assert_uint_eq(word(&b, 0), from ? 0x4141414141414141u : 1);
	}
}

RUN_TESTS(setup_options, NULL)
