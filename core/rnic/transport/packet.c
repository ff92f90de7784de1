/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets and payload buffers, kept on the net's free lists.
 *
 * A crash-state world lives for microseconds and sends a few dozen packets, so
 * nothing here may cost more than a list operation: payloads up to a line ride
 * in the packet itself, larger ones in buffers whose sizes are powers of two.
 * Memory comes from the simulation's arena and is gone with it.
 */
#include "core/rnic/transport/packet.h"
#include <assert.h>
#include <string.h>
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/link.h"

const uint8_t opcode_is[OP_CODES] = {
	[OP_SEND_FIRST] = IS_SEND | IS_FIRST,
	[OP_SEND_MIDDLE] = IS_SEND,
	[OP_SEND_LAST] = IS_SEND | IS_LAST,
	[OP_SEND_LAST_IMM] = IS_SEND | IS_LAST | HAS_IMM,
	[OP_SEND_ONLY] = IS_SEND | IS_FIRST | IS_LAST,
	[OP_SEND_ONLY_IMM] = IS_SEND | IS_FIRST | IS_LAST | HAS_IMM,
	[OP_WRITE_FIRST] = IS_WRITE | IS_FIRST,
	[OP_WRITE_MIDDLE] = IS_WRITE,
	[OP_WRITE_LAST] = IS_WRITE | IS_LAST,
	[OP_WRITE_LAST_IMM] = IS_WRITE | IS_LAST | HAS_IMM,
	[OP_WRITE_ONLY] = IS_WRITE | IS_FIRST | IS_LAST,
	[OP_WRITE_ONLY_IMM] = IS_WRITE | IS_FIRST | IS_LAST | HAS_IMM,
	[OP_READ_REQUEST] = IS_READ,
	[OP_READ_RESPONSE_FIRST] = IS_READ | IS_RESPONSE | IS_FIRST,
	[OP_READ_RESPONSE_MIDDLE] = IS_READ | IS_RESPONSE,
	[OP_READ_RESPONSE_LAST] = IS_READ | IS_RESPONSE | IS_LAST,
	[OP_READ_RESPONSE_ONLY] = IS_READ | IS_RESPONSE | IS_FIRST | IS_LAST,
	[OP_ACKNOWLEDGE] = IS_RESPONSE,
	[OP_ATOMIC_ACKNOWLEDGE] = IS_RESPONSE | IS_ATOMIC,
	[OP_COMPARE_SWAP] = IS_ATOMIC,
	[OP_FETCH_ADD] = IS_ATOMIC,
	[OP_SEND_LAST_INV] = IS_SEND | IS_LAST,
	[OP_SEND_ONLY_INV] = IS_SEND | IS_FIRST | IS_LAST,
	[OP_FLUSH] = IS_FIRST | IS_LAST,
	[OP_ATOMIC_WRITE] = IS_FIRST | IS_LAST,
};

const char *opcode_name(uint8_t opcode)
{
	if (opcode >= OP_CODES)
		return "unknown packet";
	uint8_t is = opcode_is[opcode];
	if (is & IS_READ)
		return is & IS_RESPONSE ? "READ response" : "READ request";
	if (is & IS_RESPONSE)
		return is & IS_ATOMIC ? "atomic response" : "acknowledgement";
	if (is & IS_ATOMIC)
		return opcode == OP_COMPARE_SWAP ? "CMP_AND_SWP request" : "FETCH_AND_ADD request";
	if (is & IS_SEND)
		return "SEND packet";
	if (opcode == OP_FLUSH || opcode == OP_ATOMIC_WRITE)
		return opcode == OP_FLUSH ? "FLUSH request" : "ATOMIC_WRITE request";
	return is & HAS_IMM ? "WRITE_WITH_IMM packet" : "WRITE packet";
}

/* Bytes of the headers that an opcode has besides those that all have. */
#define AETH   4
#define IMMDT  4
#define IETH   4
#define RETH   16
#define FETH   4
#define ATOMIC 28 /* AtomicETH */
static const uint8_t opcode_bytes[OP_CODES] = {
	[OP_SEND_LAST_IMM] = IMMDT,	[OP_SEND_ONLY_IMM] = IMMDT,
	[OP_SEND_LAST_INV] = IETH,	[OP_SEND_ONLY_INV] = IETH,
	[OP_WRITE_FIRST] = RETH,	[OP_WRITE_LAST_IMM] = IMMDT,
	[OP_WRITE_ONLY] = RETH,		[OP_WRITE_ONLY_IMM] = RETH + IMMDT,
	[OP_READ_REQUEST] = RETH,	[OP_READ_RESPONSE_FIRST] = AETH,
	[OP_READ_RESPONSE_LAST] = AETH, [OP_READ_RESPONSE_ONLY] = AETH,
	[OP_ACKNOWLEDGE] = AETH,	[OP_ATOMIC_ACKNOWLEDGE] = AETH + 8, /* AtomicAckETH */
	[OP_COMPARE_SWAP] = ATOMIC,	[OP_FETCH_ADD] = ATOMIC,
	[OP_FLUSH] = FETH + RETH,	[OP_ATOMIC_WRITE] = RETH,
};

uint32_t packet_wire_bytes(const struct packet *pkt)
{
	bool is_request = !(opcode_is[pkt->opcode] & IS_RESPONSE);
	uint32_t service = pkt->service == SERVICE_UD		       ? 8 /* DETH */
			   : pkt->service == SERVICE_XRC && is_request ? 4 /* XRCETH */
								       : 0;
	return HEADER_BYTES * (pkt->more + 1u) + opcode_bytes[pkt->opcode] + service +
	       ((pkt->len + 3) & ~3u);
}

uint8_t *buffer_get(struct rnic_net *net, uint32_t len, uint8_t *class)
{
	uint8_t c = len <= 128 ? 7 : (uint8_t)(32 - __builtin_clz(len - 1));
	assert(c < BUFFER_CLASSES);
	*class = c;
	void **buf = net->free_buffer[c];
	if (!buf)
		return sim_alloc(net->sim, (size_t)1 << c);
	net->free_buffer[c] = *buf;
	return (uint8_t *)buf;
}

void buffer_put(struct rnic_net *net, uint8_t *buf, uint8_t class)
{
	assert(class >= 7 && class < BUFFER_CLASSES);
	memcpy(buf, &net->free_buffer[class], sizeof(void *));
	net->free_buffer[class] = (void *)buf;
}

struct packet *packet_get(struct rnic_net *net, uint32_t len)
{
	struct packet *pkt = net->free_packet;
	if (pkt) {
		net->free_packet = pkt->next;
		clear(pkt, offsetof(struct packet, small));
	} else {
		pkt = sim_alloc(net->sim, sizeof(*pkt));
	}
	pkt->net = net;
	pkt->len = len;
	pkt->picked = -1;
	if (len <= PACKET_SMALL)
		pkt->payload = pkt->small;
	else
		pkt->payload = buffer_get(net, len, &pkt->payload_class);
	return pkt;
}

struct packet *packet_to(struct rnic_net *net, uint32_t dest_qpn, uint32_t len)
{
	struct link *link = net->link;
	struct packet *pkt;
	uint8_t *room;
	if (len <= PACKET_SMALL || !link->reserve || !(room = link->reserve(link, dest_qpn, len)))
		return packet_get(net, len);
	pkt = packet_get(net, 0);
	pkt->len = len;
	pkt->payload = room;
	return pkt;
}

void packet_put(struct rnic_net *net, struct packet *pkt)
{
	assert(pkt->payload); /* NULL: put twice */
	if (pkt->reply)
		packet_put(net, pkt->reply);
	if (pkt->payload_class)
		buffer_put(net, pkt->payload, pkt->payload_class);
	pkt->payload = NULL;
	pkt->next = net->free_packet;
	net->free_packet = pkt;
}

struct packet *packet_copy_behind(struct rnic_net *net, const struct packet *pkt, uint32_t room)
{
	struct packet *copy = packet_get(net, pkt->len + room);
	uint8_t *payload = copy->payload;
	uint8_t class = copy->payload_class;
	memcpy(copy, pkt, offsetof(struct packet, small));
	copy->next = NULL;
	copy->payload = payload;
	copy->payload_class = class;
	copy->len += room;
	memcpy(payload + room, pkt->payload, pkt->len);
	return copy;
}

struct packet *packet_copy(struct rnic_net *net, const struct packet *pkt)
{
	return packet_copy_behind(net, pkt, 0);
}

/* The MTU that makes so many packets of the run's bytes; 0: there is none. */
static uint32_t mtu_of_run(const struct packet *run)
{
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2)
		if (run->len > run->more * mtu && run->len <= (run->more + 1) * mtu)
			return mtu;
	return 0;
}

static uint8_t opcode_in_run(uint8_t opcode, bool first, bool last)
{
	uint8_t is = opcode_is[opcode], begins = is & IS_SEND ? OP_SEND_FIRST : OP_WRITE_FIRST;
	first = first && is & IS_FIRST;
	last = last && is & IS_LAST;
	if (!last)
		return begins + (first ? OP_SEND_FIRST : OP_SEND_MIDDLE);
	if (has_invalidate(opcode))
		return OP_SEND_LAST_INV;
	return begins + (is & HAS_IMM ? OP_SEND_LAST_IMM : OP_SEND_LAST);
}

struct packet *packet_of_run(struct rnic_net *net, const struct packet *run, uint32_t i)
{
	uint32_t mtu = mtu_of_run(run), off = i * mtu;
	struct packet one = *run;
	if (!mtu || i > run->more || run->opcode >= OP_CODES ||
	    !(opcode_is[run->opcode] & (IS_SEND | IS_WRITE)))
		return NULL;
	one.more = 0;
	one.len = i < run->more ? mtu : run->len - off;
	one.payload = run->payload + off;
	one.psn = psn_add(run->psn, i);
	one.opcode = opcode_in_run(run->opcode, i == 0, i == run->more);
	one.ack_req = run->ack_req && i == run->more;
	one.solicited = run->solicited && i == run->more;
	one.name.index += i;
	return packet_copy(net, &one);
}
