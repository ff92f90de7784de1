/* SPDX-License-Identifier: BSD-3-Clause */
/* See recorded_packets.h. */
#include "core/provider/link/recorded_packets.h"
#include <endian.h>
#include "core/record/message.h"
#include "core/record/record_hooks.h"

/* Its ICRC ends a packet, and says what is in it. */
static uint64_t name_of(const struct packet *pkt, const uint8_t *bytes, size_t len)
{
	uint32_t icrc;
	memcpy(&icrc, bytes + len - sizeof(icrc), sizeof(icrc));
	return record_packet(le32toh(icrc), pkt->psn, pkt->opcode);
}

void packet_leaves(const struct packet *pkt, const struct wire_ends *ends, const uint8_t *bytes,
		   size_t len)
{
	if (&tidemark_record_hooks)
		tidemark_record_hooks.packet(false, ends->src, ends->dst, pkt->dest_qpn,
					     name_of(pkt, bytes, len));
}

/* Another process of this machine may have taken it from the wire: so it is encoded again. */
void packet_came(const struct packet *pkt, uint32_t from, uint32_t own)
{
	const struct wire_ends ends = {
		.src = from, .dst = own, .sport = ROCE_PORT, .dport = ROCE_PORT};
	uint8_t bytes[WIRE_PACKET];
	if (!&tidemark_record_hooks)
		return;
	int len = wire_encode(pkt, &ends, bytes, sizeof(bytes));
	if (len > 0)
		tidemark_record_hooks.packet(true, own, from, pkt->dest_qpn,
					     name_of(pkt, bytes, (size_t)len));
}
