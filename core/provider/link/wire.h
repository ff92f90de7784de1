/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_WIRE_H
#define TM_PROVIDER_LINK_WIRE_H
/*
 * Packets as they are on a wire: RoCEv2 over IPv4 (IBA vol. 1, 9.2 and 9.3;
 * annex A17: UDP, ICRC; annex A19: FETH).
 *
 *     IPv4 20 | UDP 8 | BTH 12 | extended headers 0..32 | payload | pad 0..3 | ICRC 4
 *
 * What wire_encode() makes and wire_decode() reads starts at the BTH: the rest is the socket's. The
 * ICRC covers the IPv4 and UDP headers too, but for what routers change, so that both need to know
 * the packet's ends.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/rnic/transport/packet.h"

#define ROCE_PORT    4791
#define WIRE_IP_UDP  28	       /* bytes in front of the BTH */
#define WIRE_PAYLOAD 4096      /* at most */
#define WIRE_HEADERS (12 + 32) /* BTH and the largest of extended headers */
#define WIRE_PACKET \
	(WIRE_HEADERS + WIRE_PAYLOAD + 4) /* bytes from the BTH on, at most; payload padded */

/* Host byte order. */
struct wire_ends {
	uint32_t src, dst;
	uint16_t sport, dport;
	uint8_t tos, ttl; /* not in the ICRC */
	uint16_t ip_id;
	bool any_id; /* decoding: the IPv4 identification is not known; see wire.c */
};

/* Encode from the BTH on. The number of bytes; -EMSGSIZE: more than `size`; -EINVAL: a packet
 * that no wire has. */
int wire_encode(const struct packet *pkt, const struct wire_ends *ends, uint8_t *buf, size_t size);

/*
 * Decode the packet in buf, from the BTH on; it is allocated from `net`. `peer` and `from` are left
 * to the link, and src_qpn unless it is a datagram. -EPROTO: no such opcode; -EPROTONOSUPPORT:
 * another transport version; -EKEYREJECTED: another partition; -EMSGSIZE: a length that its opcode
 * cannot have; -EBADMSG: the ICRC.
 */
int wire_decode(struct rnic_net *net, const uint8_t *buf, size_t len, const struct wire_ends *ends,
		bool check_icrc, struct packet **out);

/* The headers in front of `len` bytes from the BTH on. */
void wire_ip_udp(const struct wire_ends *ends, size_t len, uint8_t buf[WIRE_IP_UDP]);

#endif
