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

uint32_t packet_wire_bytes(const struct packet *pkt)
{
	unsigned headers = opcode_headers(pkt->opcode, pkt->service);
	return HEADER_BYTES * (pkt->more + 1u) + HEADERS_BYTES(headers) + ((pkt->len + 3) & ~3u);
}

uint8_t *buffer_get(struct rnic_net *net, uint32_t len, uint8_t *class)
{
	uint8_t c = len <= 128 ? 7 : (uint8_t)(32 - __builtin_clz(len - 1));
	assert(c < BUFFER_CLASSES);
	*class = c;
	void **buf = net->free_buffer[c];
	if (!buf)
		return ground_alloc(&net->ground, (size_t)1 << c);
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
		pkt = ground_alloc(&net->ground, sizeof(*pkt));
	}
	pkt->net = net;
	pkt->len = len;
	if (len <= PACKET_SMALL)
		pkt->payload = pkt->small;
	else
		pkt->payload = buffer_get(net, len, &pkt->payload_class);
	return pkt;
}

struct packet *packet_to(struct rnic_net *net, uint32_t dest_qpn, uint32_t len)
{
	struct link *link = net->link;
	uint8_t *room;
	if (len <= PACKET_SMALL || !link->reserve || !(room = link->reserve(link, dest_qpn, len)))
		return packet_get(net, len);
	struct packet *pkt = packet_get(net, 0);
	pkt->len = len;
	pkt->payload = room;
	return pkt;
}

void packet_put(struct rnic_net *net, struct packet *pkt)
{
	assert(pkt->payload); /* NULL: put twice */
	if (pkt->reply)
		packet_put(net, pkt->reply);
	for (struct packet *kept = pkt->kept, *next; kept; kept = next) {
		next = kept->next;
		packet_put(net, kept);
	}
	if (pkt->payload_class)
		buffer_put(net, pkt->payload, pkt->payload_class);
	pkt->payload = NULL;
	pkt->next = net->free_packet;
	net->free_packet = pkt;
}

struct packet *packet_copy_after(struct rnic_net *net, const struct packet *pkt, uint32_t room)
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
	return packet_copy_after(net, pkt, 0);
}

/* Bytes of each packet but the last that this one stands for; 0: its length does not fit. */
static uint32_t segment_bytes(const struct packet *all)
{
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2)
		if (all->len > all->more * mtu && all->len <= (all->more + 1) * mtu)
			return mtu;
	return 0;
}

static uint8_t segment_opcode(uint8_t opcode, bool first, bool last)
{
	const struct operation *op = operation_of_packet(opcode);
	assert(op);
	first = first && opcode_is[opcode] & IS_FIRST;
	last = last && opcode_is[opcode] & IS_LAST;
	return op->packet[packet_place(first, last)];
}

struct packet *packet_segment(struct rnic_net *net, const struct packet *all, uint32_t i)
{
	uint32_t mtu = segment_bytes(all), off = i * mtu;
	struct packet one = *all;
	if (!mtu || i > all->more || all->opcode >= OP_CODES ||
	    !(opcode_is[all->opcode] & (IS_SEND | IS_WRITE)))
		return NULL;
	one.more = 0;
	one.len = i < all->more ? mtu : all->len - off;
	one.payload = all->payload + off;
	one.psn = psn_add(all->psn, i);
	one.opcode = segment_opcode(all->opcode, i == 0, i == all->more);
	one.ack_req = all->ack_req && i == all->more;
	one.solicited = all->solicited && i == all->more;
	one.name.index += i;
	return packet_copy(net, &one);
}
