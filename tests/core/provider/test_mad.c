/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication manager's messages on the wire: what the Linux kernel has sent, what is
 * refused, and that each message says the same after a round trip, whatever its bytes.
 */
#include <arpa/inet.h>
#include "core/cm/mad.h"
#include "tests/suite.h"

/* Parse hexadecimal digits; zeros follow. */
static void parse(const char *hex, uint8_t bytes[MAD_BYTES])
{
	memset(bytes, 0, MAD_BYTES);
	for (unsigned i = 0; hex[2 * i]; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1]};

		bytes[i] = (uint8_t)strtoul(two, NULL, 16);
	}
}

static void expect_address(const struct sockaddr_storage *addr, const char *address, uint16_t port)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	char text[INET_ADDRSTRLEN];

	ck_assert_int_eq(in->sin_family, AF_INET);
	ck_assert_str_eq(inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)), address);
	ck_assert_int_eq(ntohs(in->sin_port), port);
}

/* rping -c, Linux 6.12, rdma_rxe. */
TEST(known_request)
{
	static const char hex[] =
		"010702030000000000000004e755c916001000000000000016c955e70000000000000000010648ae"
		"c0c729fffe7f4f2f000000000000000000001a0100000001000000a0acb268a7ffff37f0ffffffff"
		"00000000000000000000ffff0a09000100000000000000000000ffff0a090002685c800000400088"
		"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
		"000000000040b7a60000000000000000000000000a0900010000000000000000000000000a090002";
	static const uint8_t gid[] = {[10] = 0xff, 0xff, 10, 9, 0, 1},
			     peer[] = {[10] = 0xff, 0xff, 10, 9, 0, 2};
	uint8_t bytes[MAD_BYTES], again[MAD_BYTES];
	struct sockaddr_storage src, dst;
	struct cm_message m;
	uint16_t port_space, port;

	parse(hex, bytes);
	ck_assert_int_eq(mad_decode(&m, bytes), 0);
	ck_assert_int_eq(m.type, CM_REQ);
	ck_assert_uint_eq(m.local_id, 0x16c955e7);
	ck_assert(mad_service(m.service_id, &port_space, &port));
	ck_assert_int_eq(port_space, 0x106);
	ck_assert_int_eq(m.params.qpn, 0x00001a);
	ck_assert_int_eq(m.params.psn, 0xacb268);
	ck_assert_int_eq(m.params.responder_resources, 1);
	ck_assert_int_eq(m.params.initiator_depth, 1);
	ck_assert_int_eq(m.params.retry_count, 7);
	ck_assert_int_eq(m.params.rnr_retry_count, 7);
	ck_assert_int_eq(m.params.flow_control, 0);
	ck_assert_int_eq(m.params.srq, 0);
	ck_assert_int_eq(m.their_timeout, 20);
	ck_assert_int_eq(m.our_timeout, 20);
	ck_assert_int_eq(m.max_retries, 15);
	ck_assert_int_eq(m.transport, CM_TRANSPORT_RC);
	ck_assert_int_eq(m.mtu, IBV_MTU_1024);
	ck_assert_int_eq(m.ack_timeout, 17);
	ck_assert_int_eq(m.pkey, 0xffff);
	ck_assert_int_eq(m.hop_limit, 64);
	ck_assert_int_eq(m.local_lid, 0xffff);
	ck_assert_mem_eq(m.gid.raw, gid, 16);
	ck_assert_mem_eq(m.peer_gid.raw, peer, 16);
	mad_get_addresses(&m, &src, &dst);
	expect_address(&src, "10.9.0.1", 0xb7a6);
	expect_address(&dst, "10.9.0.2", port);
	/* Nothing of it is lost, but the flow label, which differs from connection to
	 * connection. */
	mad_encode(&m, again);
	memset(bytes + 24 + 88, 0, 3);
	bytes[24 + 91] &= 0x3f;
	ck_assert_mem_eq(bytes, again, MAD_BYTES);
}

TEST(known_answer)
{
	static const char reply[] =
		"01070203000000000e882a500195a0c8001300000000000003c955e70195a0c80000000000001100"
		"000000008210b400010178e0c0c729fffe7f4f2f";
	uint8_t bytes[MAD_BYTES], again[MAD_BYTES];
	struct cm_message m;

	parse(reply, bytes);
	ck_assert_int_eq(mad_decode(&m, bytes), 0);
	ck_assert_int_eq(m.type, CM_REP);
	ck_assert_uint_eq(m.local_id, 0x03c955e7);
	ck_assert_uint_eq(m.remote_id, 0x0195a0c8);
	ck_assert_int_eq(m.params.qpn, 0x11);
	ck_assert_int_eq(m.params.psn, 0x8210b4);
	ck_assert_int_eq(m.params.responder_resources, 1);
	ck_assert_int_eq(m.params.rnr_retry_count, 7);
	mad_encode(&m, again);
	bytes[24 + 26] = 0; /* the target's delay of acknowledgements */
	ck_assert_mem_eq(bytes, again, MAD_BYTES);
}

TEST(refused)
{
	struct cm_message m = {.type = CM_RTU, .local_id = 1};
	uint8_t bytes[MAD_BYTES];

	mad_encode(&m, bytes);
	ck_assert_int_eq(mad_decode(&m, bytes), 0);
	/* Version, class, class version, method, attribute. */
	for (unsigned i = 0; i < 18; i++) {
		if (i >= 4 && i < 16)
			continue;
		bytes[i] ^= 0x80;
		ck_assert_int_lt(mad_decode(&m, bytes), 0);
		bytes[i] ^= 0x80;
	}
	for (unsigned type = 0; type < 256; type++) {
		bytes[17] = (uint8_t)type;
		ck_assert_int_eq(!mad_decode(&m, bytes), type >= CM_REQ && type <= CM_DREP);
	}
}

TEST(round_trips)
{
	static struct cm_message first, second;
	uint8_t bytes[MAD_BYTES], again[MAD_BYTES];
	int more;

	srand(1);
	for (unsigned n = 0; n < 2000; n++) {
		for (unsigned i = 0; i < MAD_BYTES; i++)
			bytes[i] = (uint8_t)rand();
		memcpy(bytes, "\1\7\2\3", 4);
		bytes[16] = 0;
		bytes[17] = (uint8_t)(CM_REQ + n % (CM_TYPES - CM_REQ));
		ck_assert_int_eq(mad_decode(&first, bytes), 0);
		mad_encode(&first, again);
		ck_assert_int_eq(mad_decode(&second, again), 0);
		ck_assert_mem_eq(&first, &second, sizeof(first));
		/* Every byte that a decoder looks at is one that an encoder writes: no bit is read
		 * twice. */
		more = 0;
		for (unsigned i = 0; i < MAD_BYTES; i++)
			more |= again[i] & ~bytes[i];
		ck_assert_int_eq(more, 0);
	}
}

TEST(addresses)
{
	struct sockaddr_in6 a = {
		.sin6_family = AF_INET6, .sin6_port = htons(7), .sin6_addr = in6addr_loopback};
	struct sockaddr_storage src, dst;
	struct cm_message m = {.type = CM_REQ, .service_id = mad_service_id(0x106, 9)};

	mad_set_addresses(&m, (struct sockaddr *)&a, (struct sockaddr *)&a);
	mad_get_addresses(&m, &src, &dst);
	ck_assert_mem_eq(&src, &a, sizeof(a));
	ck_assert_int_eq(((struct sockaddr_in6 *)&dst)->sin6_port, htons(9));
	m.ip_version = 5;
	mad_get_addresses(&m, &src, &dst);
	ck_assert_int_eq(src.ss_family, 0);
	m.ip_version = 6;
	m.cma_version = 1;
	mad_get_addresses(&m, &src, &dst);
	ck_assert_int_eq(dst.ss_family, 0);
}

RUN_TESTS(NULL, NULL)
