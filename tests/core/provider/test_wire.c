/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 on the wire: known packets, round trips of every opcode of every service, packets that are
 * refused, and a random run of damaged ones, each in a buffer of exactly its length, so that
 * AddressSanitizer sees a byte too far.
 */
#include "core/provider/link/wire.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/packet.h"
#include "core/rt/sim.h"
#include "tests/suite.h"

static struct sim *sim;
static struct rnic_net *net;

static void setup(void)
{
	static const struct hardware hw = {.mtu = 4096};

	sim = sim_new();
	ck_assert_ptr_nonnull(sim);
	sim_reset(sim, NULL);
	net = rnic_net_new(sim, &hw);
}

static void teardown(void)
{
	sim_free(sim);
}

static uint32_t rnd(void)
{
	static uint64_t state = 1;
	uint64_t z = (state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)(z >> 29);
}

static const struct wire_ends loopback = {
	.src = 0x7f000001, .dst = 0x7f000002, .sport = ROCE_PORT, .dport = ROCE_PORT, .ttl = 64};

/* Sent by a ConnectX card: a UC SEND of 18 bytes. */
TEST(known_send)
{
	static const uint8_t payload[] = "F0\x81\x8b\xe2\x89"
					 "5\xd9\x0e\x9a\x95PT\x01\xbe\x88^P";
	static const uint8_t wire[] = {0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00,
				       0xcf, 0x17, 0x10, 'F',  '0',  0x81, 0x8b, 0xe2, 0x89,
				       '5',  0xd9, 0x0e, 0x9a, 0x95, 'P',  'T',	 0x01, 0xbe,
				       0x88, '^',  'P',	 0x00, 0x00, 0x78, 0xf3, 0x53, 0xf3};
	struct wire_ends ends = {.src = 0xc0a80007,
				 .dst = 0xc0a80007,
				 .sport = 49152,
				 .dport = ROCE_PORT,
				 .tos = 1,
				 .ttl = 64,
				 .ip_id = 1144};
	struct packet *pkt = packet_get(net, sizeof(payload) - 1), *out;
	uint8_t buf[WIRE_PACKET], head[WIRE_IP_UDP];

	pkt->service = SERVICE_UC;
	pkt->opcode = OP_SEND_ONLY;
	pkt->dest_qpn = 211;
	pkt->psn = 13571856;
	memcpy(pkt->payload, payload, pkt->len);
	ck_assert_int_eq(wire_encode(pkt, &ends, buf, sizeof(buf)), sizeof(wire));
	ck_assert_mem_eq(buf, wire, sizeof(wire));
	ck_assert_int_eq(wire_decode(net, wire, sizeof(wire), &ends, true, &out), 0);
	ck_assert_int_eq(out->psn, 13571856);
	ck_assert_mem_eq(out->payload, payload, out->len);
	wire_ip_udp(&ends, sizeof(wire), head);
	ck_assert_int_eq(head[10] << 8 | head[11], 0xb4d5); /* the IPv4 checksum */
	/* A receiver that uses a socket does not know the identification; any other wrong length
	 * or bit is found. */
	ends.ip_id = 0;
	ck_assert_int_eq(wire_decode(net, wire, sizeof(wire), &ends, true, &out), -EBADMSG);
	ends.any_id = true;
	ck_assert_int_eq(wire_decode(net, wire, sizeof(wire), &ends, true, &out), 0);
	ends.dst++;
	ck_assert_int_eq(wire_decode(net, wire, sizeof(wire), &ends, true, &out), -EBADMSG);
}

/* All headers by hand: an atomic request and a FLUSH. */
TEST(known_headers)
{
	static const uint8_t atomic[] = {
		0x13, 0xc0, 0xff, 0xff, 0,    0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef, 1,    2,
		3,    4,    5,	  6,	7,    8,    0xa,  0xb,	0xc,  0xd,  0x11, 0x12, 0x13, 0x14,
		0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28};
	static const uint8_t flush[] = {0x1c, 0x40, 0xff, 0xff, 0,    0,   0, 0x11, 0x80, 0, 0,
					1,    0,    0,	  0,	0x12, 1,   2, 3,    4,	  5, 6,
					7,    8,    0xa,  0,	0,    0xd, 0, 0,    1,	  0};
	struct packet *pkt = packet_get(net, 0);
	uint8_t buf[WIRE_PACKET];

	pkt->opcode = OP_COMPARE_SWAP;
	pkt->solicited = pkt->ack_req = true;
	pkt->dest_qpn = 0x123456;
	pkt->psn = 0xabcdef;
	pkt->va = 0x0102030405060708;
	pkt->rkey = 0x0a0b0c0d;
	pkt->swap_add = 0x1112131415161718;
	pkt->compare = 0x2122232425262728;
	ck_assert_int_eq(wire_encode(pkt, &loopback, buf, sizeof(buf)), sizeof(atomic) + 4);
	ck_assert_mem_eq(buf, atomic, sizeof(atomic));
	pkt->opcode = OP_FLUSH;
	pkt->solicited = false;
	pkt->dest_qpn = 0x11;
	pkt->psn = 1;
	pkt->rkey = 0x0a00000d;
	pkt->dma_len = 256;
	pkt->placement = 2; /* persistent */
	pkt->selectivity = 1;
	ck_assert_int_eq(wire_encode(pkt, &loopback, buf, sizeof(buf)), sizeof(flush) + 4);
	ck_assert_mem_eq(buf, flush, sizeof(flush));
}

/* A vendor's packets have service bits of their own (9.2.1: opcodes from 0xc0 on). */
TEST(known_commit)
{
	static const uint8_t commit[] = {0xd9, 0x40, 0xff, 0xff, 0, 0, 0,    0x11, 0x80, 0,   0,
					 1,    1,    2,	   3,	 4, 5, 6,    7,	   8,	 0xa, 0,
					 0,    0xd,  0,	   0,	 1, 0, 0xfe, 0,	   0,	 0xdc};
	struct packet *pkt = packet_get(net, 0), *out;
	uint8_t buf[WIRE_PACKET];
	int len;

	pkt->opcode = OP_COMMIT_IMM;
	pkt->dest_qpn = 0x11;
	pkt->ack_req = true;
	pkt->psn = 1;
	pkt->va = 0x0102030405060708;
	pkt->rkey = 0x0a00000d;
	pkt->dma_len = 256;
	pkt->imm = htobe32(0xfe0000dc);
	len = wire_encode(pkt, &loopback, buf, sizeof(buf));
	ck_assert_int_eq(len, sizeof(commit) + 4);
	ck_assert_mem_eq(buf, commit, sizeof(commit));
	ck_assert_int_eq(wire_decode(net, buf, (size_t)len, &loopback, true, &out), 0);
	ck_assert_int_eq(out->service, SERVICE_RC);
	ck_assert_int_eq(out->opcode, OP_COMMIT_IMM);
	/* Under a service's own bits there is none, and no other packet under these. */
	buf[0] = OP_COMMIT_IMM;
	ck_assert_int_eq(wire_decode(net, buf, (size_t)len, &loopback, false, &out), -EPROTO);
	buf[0] = 0xc0 | OP_SEND_ONLY;
	ck_assert_int_eq(wire_decode(net, buf, (size_t)len, &loopback, false, &out), -EPROTO);
}

/* Does the service have the opcode, by its table in the specification (9.2.1, table 35)? */
static bool exists(unsigned service, unsigned opcode)
{
	if (service == SERVICE_RC && opcode >= 0x18 && opcode <= 0x1a)
		return true; /* RDMA Commit, ours */
	if (service == SERVICE_RC)
		return opcode <= 0x14 || opcode == 0x16 || opcode == 0x17 || opcode == 0x1c ||
		       opcode == 0x1d;
	if (service == SERVICE_UC)
		return opcode <= 0x0b;
	return service == SERVICE_UD && (opcode == 0x04 || opcode == 0x05);
}

static bool has_payload(unsigned opcode)
{
	return opcode != 0x0c && (opcode < 0x11 || opcode > 0x14) && opcode != 0x1c &&
	       opcode != 0x18 && opcode != 0x19;
}

static struct packet *any_packet(uint8_t service, uint8_t opcode, uint32_t len)
{
	struct packet *pkt = packet_get(net, len);

	pkt->service = service;
	pkt->opcode = opcode;
	pkt->src_qpn = rnd() & PSN_MASK;
	pkt->dest_qpn = rnd() & PSN_MASK;
	pkt->psn = rnd() & PSN_MASK;
	pkt->msn = rnd() & PSN_MASK;
	pkt->solicited = rnd() & 1;
	pkt->ack_req = rnd() & 1;
	pkt->syndrome = (uint8_t)rnd();
	pkt->va = (uint64_t)rnd() << 32 | rnd();
	pkt->rkey = rnd();
	pkt->dma_len = rnd();
	pkt->placement = rnd() & 15;
	pkt->selectivity = rnd() & 3;
	pkt->swap_add = (uint64_t)rnd() << 32 | rnd();
	pkt->compare = (uint64_t)rnd() << 32 | rnd();
	pkt->original = (uint64_t)rnd() << 32 | rnd();
	pkt->imm = rnd();
	pkt->invalidate = rnd();
	pkt->qkey = rnd();
	for (uint32_t i = 0; i < len; i++)
		pkt->payload[i] = (uint8_t)rnd();
	return pkt;
}

/* What there is of `in` for this opcode came back as it was; what there is not is zero. */
static void same(const struct packet *in, const struct packet *out)
{
	unsigned op = in->opcode;
	bool reth = (op >= 0x06 && op <= 0x0c && op != 0x07 && op != 0x08 && op != 0x09) ||
		    op >= 0x18;
	bool atomic = op == 0x13 || op == 0x14, aeth = (op >= 0x0d && op <= 0x12 && op != 0x0e);
	bool imm = op == 0x03 || op == 0x05 || op == 0x09 || op == 0x0b || op == 0x19,
	     ud = in->service == SERVICE_UD;

	ck_assert_int_eq(out->service, in->service);
	ck_assert_int_eq(out->opcode, op);
	ck_assert_int_eq(out->dest_qpn, in->dest_qpn);
	ck_assert_int_eq(out->psn, in->psn);
	ck_assert_int_eq(out->solicited, in->solicited);
	ck_assert_int_eq(out->ack_req, in->ack_req);
	ck_assert(out->va == (reth || atomic ? in->va : 0));
	ck_assert(out->rkey == (reth || atomic ? in->rkey : 0));
	ck_assert(out->dma_len == (reth ? in->dma_len : 0));
	ck_assert(out->swap_add == (atomic ? in->swap_add : 0));
	ck_assert(out->compare == (atomic ? in->compare : 0));
	ck_assert(out->syndrome == (aeth ? in->syndrome : 0));
	ck_assert(out->msn == (aeth ? in->msn : 0));
	ck_assert(out->original == (op == 0x12 ? in->original : 0));
	ck_assert(out->imm == (imm ? in->imm : 0));
	ck_assert(out->invalidate == (op == 0x16 || op == 0x17 ? in->invalidate : 0));
	ck_assert(out->qkey == (ud ? in->qkey : 0));
	ck_assert(out->src_qpn == (ud ? in->src_qpn : 0));
	ck_assert(out->placement == (op == 0x1c ? in->placement : 0));
	ck_assert(out->selectivity == (op == 0x1c ? in->selectivity : 0));
	ck_assert_int_eq(out->len, in->len);
	ck_assert_mem_eq(out->payload, in->payload, in->len);
}

TEST(round_trips)
{
	static const uint32_t lengths[] = {0, 1, 2, 3, 4, 5, 64, 65, 1023, 4095, 4096};
	static uint8_t buf[WIRE_PACKET];
	unsigned seen = 0;

	for (unsigned code = 0; code < 256; code++) {
		for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			uint8_t service = (uint8_t)(code >> 5), opcode = code & 31;
			struct packet *in = any_packet(service, opcode, lengths[i]), *out;
			int len = wire_encode(in, &loopback, buf, sizeof(buf));

			if (!exists(service, opcode) || (lengths[i] && !has_payload(opcode))) {
				ck_assert_int_eq(len, -EINVAL);
				packet_put(net, in);
				continue;
			}
			ck_assert_int_gt(len, 0);
			ck_assert_int_eq(len % 4, 0);
			/* The link's arithmetic knows as much. */
			if (opcode < OP_CODES)
				ck_assert_int_eq(packet_wire_bytes(in), 14 + WIRE_IP_UDP + len);
			ck_assert_int_eq(wire_encode(in, &loopback, buf, (size_t)len - 1),
					 -EMSGSIZE);
			ck_assert_int_eq(wire_decode(net, buf, (size_t)len, &loopback, true, &out),
					 0);
			same(in, out);
			packet_put(net, in);
			packet_put(net, out);
			seen++;
		}
	}
	ck_assert_int_eq(seen, (6 + 6 + 4 + 2 + 1) * 11 + 6 + 12 * 11 + 2 * 11 + 2 + 11);
}

TEST(refused)
{
	uint8_t buf[WIRE_PACKET + 8], damaged[WIRE_PACKET + 8];
	struct packet *in = any_packet(SERVICE_RC, OP_WRITE_ONLY, 5), *out = NULL;
	size_t len = (size_t)wire_encode(in, &loopback, buf, sizeof(buf));

	/* One bit wrong, wherever: refused, unless the ICRC takes it for ones. */
	for (size_t bit = 0; bit < len * 8; bit++) {
		memcpy(damaged, buf, len);
		damaged[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (bit / 8 == 4)
			continue;
		ck_assert_int_lt(wire_decode(net, damaged, len, &loopback, true, &out), 0);
	}
	ck_assert_ptr_null(out);
	memcpy(damaged, buf, len);
	damaged[1] |= 1;
	ck_assert_int_eq(wire_decode(net, damaged, len, &loopback, false, &out), -EPROTONOSUPPORT);
	memcpy(damaged, buf, len);
	damaged[0] = 0x15;
	ck_assert_int_eq(wire_decode(net, damaged, len, &loopback, false, &out), -EPROTO);
	memcpy(damaged, buf, len);
	damaged[2] = 1;
	ck_assert_int_eq(wire_decode(net, damaged, len, &loopback, false, &out), -EKEYREJECTED);
	/* An acknowledgement with payload; only padding; every length that is too short, or no
	 * words. */
	memcpy(damaged, buf, len);
	damaged[0] = OP_ACKNOWLEDGE;
	ck_assert_int_eq(wire_decode(net, damaged, len, &loopback, false, &out), -EMSGSIZE);
	memcpy(damaged, buf, len);
	damaged[1] |= 0x30;
	for (size_t n = 0; n < 12 + 16 + 4 + 4; n++) {
		uint8_t *exact = malloc(n ? n : 1);

		memcpy(exact, damaged, n);
		ck_assert_int_eq(wire_decode(net, exact, n, &loopback, false, &out), -EMSGSIZE);
		free(exact);
	}
	ck_assert_int_eq(wire_decode(net, buf, WIRE_PACKET + 4, &loopback, false, &out), -EMSGSIZE);
}

/* When the IPv4 identification is unknown, 1 in 65536 of the changes is not found. */
TEST(unknown_identification)
{
	uint8_t buf[WIRE_PACKET];
	struct wire_ends ends = loopback, known;
	unsigned taken = 0;

	for (unsigned n = 0; n < 2000; n++) {
		struct packet *in = any_packet(SERVICE_RC, OP_SEND_ONLY, rnd() % 300), *out;
		size_t len;

		ends.ip_id = (uint16_t)rnd();
		len = (size_t)wire_encode(in, &ends, buf, sizeof(buf));
		known = loopback;
		known.any_id = true;
		ck_assert_int_eq(wire_decode(net, buf, len, &known, true, &out), 0);
		packet_put(net, out);
		known.any_id = false;
		if (ends.ip_id)
			ck_assert_int_eq(wire_decode(net, buf, len, &known, true, &out), -EBADMSG);
		known.any_id = true;
		buf[8 + rnd() % (len - 8)] ^= (uint8_t)(1 + rnd() % 255);
		if (!wire_decode(net, buf, len, &known, true, &out)) {
			taken++;
			packet_put(net, out);
		}
		packet_put(net, in);
	}
	ck_assert_int_le(taken, 2);
}

/* Bytes changed, cut, doubled; the ICRC mended in half of them. Whatever is taken can be sent
 * again. */
TEST(damaged)
{
	static uint8_t buf[WIRE_PACKET], again[WIRE_PACKET];
	unsigned taken = 0;

	for (unsigned n = 0; n < 200000; n++) {
		struct packet *in = any_packet((uint8_t)(rnd() % 4), (uint8_t)(rnd() % 32),
					       rnd() % 80),
			      *out;
		int len = wire_encode(in, &loopback, buf, sizeof(buf));
		uint8_t *exact;
		int rc;

		packet_put(net, in);
		if (len < 0)
			len = (int)(rnd() % 100);
		for (unsigned i = rnd() % 4; i; i--)
			buf[rnd() % 40] = (uint8_t)rnd();
		if (rnd() % 4 == 0)
			len = (int)(rnd() % 128);
		exact = malloc(len ? (size_t)len : 1);
		memcpy(exact, buf, (size_t)len);
		rc = wire_decode(net, exact, (size_t)len, &loopback, rnd() & 1, &out);
		free(exact);
		if (rc) {
			ck_assert(rc == -EMSGSIZE || rc == -EPROTO || rc == -EPROTONOSUPPORT ||
				  rc == -EBADMSG || rc == -EKEYREJECTED);
			continue;
		}
		taken++;
		ck_assert(wire_encode(out, &loopback, again, sizeof(again)) == len);
		packet_put(net, out);
	}
	ck_assert_int_gt(taken, 10000);
}

RUN_TESTS(setup, teardown)
