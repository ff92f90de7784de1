/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See wire.h. core/rnic/opcode.h says which extended headers an opcode brings; encoding and
 * decoding walk them alike. A length is checked once, before the first byte after it is read: the
 * headers' bytes are known from the opcode.
 *
 * The ICRC is the CRC-32 of Ethernet, little-endian, over 64 ones (where InfiniBand has its local
 * route header), the IPv4 header, the UDP header, the BTH and everything after it; what a router
 * may change counts as ones: type of service, time to live, both checksums, the BTH's byte 4.
 *
 * A UDP socket does not tell the IPv4 identification of what it received. Ours is always 0 (the
 * Linux kernel numbers only what may be fragmented, and connected sockets); other senders' is not.
 * The checksum is linear: two messages of the same length that differ in these 16 bits differ in
 * their checksums by a word that the 16 bits determine, and that the checksum's register, run
 * backwards, gives back. So with any_id the identification is solved for, and the packet taken if
 * there is one: a check of 16 bits instead of 32.
 */
#include "core/provider/link/wire.h"
#include <endian.h>
#include <errno.h>
#include <isa-l/crc.h>
#include <string.h>

#define BTH_BYTES  12
#define ICRC_BYTES 4
#define PKEY	   0xffff /* the default partition, full member */
#define DF	   0x4000
#define ID_OFFSET  (8 + 4) /* of the IPv4 identification, in the bytes that the ICRC covers */

static uint8_t *put32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *put64(uint8_t *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *put16(uint8_t *at, uint16_t value)
{
	value = htobe16(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint32_t get32(const uint8_t **at)
{
	uint32_t value;

	memcpy(&value, *at, sizeof(value));
	*at += sizeof(value);
	return be32toh(value);
}

static uint64_t get64(const uint8_t **at)
{
	uint64_t high = get32(at);

	return high << 32 | get32(at);
}

static void put_ip_udp(const struct wire_ends *ends, size_t len, uint8_t *at)
{
	at = put16(at, (uint16_t)(0x4500 | ends->tos));
	at = put16(at, (uint16_t)(WIRE_IP_UDP + len));
	at = put16(at, ends->ip_id);
	at = put16(at, DF);
	at = put16(at, (uint16_t)(ends->ttl << 8 | 17 /* UDP */));
	at = put16(at, 0);
	at = put32(at, ends->src);
	at = put32(at, ends->dst);
	at = put16(at, ends->sport);
	at = put16(at, ends->dport);
	at = put16(at, (uint16_t)(8 + len));
	put16(at, 0); /* no UDP checksum: the ICRC is stronger */
}

void wire_ip_udp(const struct wire_ends *ends, size_t len, uint8_t buf[WIRE_IP_UDP])
{
	uint32_t sum = 0;

	put_ip_udp(ends, len, buf);
	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)(buf[i] << 8 | buf[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(buf + 10, (uint16_t) ~(sum + (sum >> 16)));
}

/* The ICRC of a packet of len bytes from the BTH on, which include the ICRC. */
static uint32_t icrc(const struct wire_ends *ends, const uint8_t *buf, size_t len)
{
	uint8_t head[8 + WIRE_IP_UDP + BTH_BYTES], *ip = head + 8, *udp = ip + 20, *bth = udp + 8;

	memset(head, 0xff, 8);
	put_ip_udp(ends, len, ip);
	ip[1] = ip[8] = ip[10] = ip[11] = udp[6] = udp[7] = 0xff;
	memcpy(bth, buf, BTH_BYTES);
	bth[4] = 0xff;
	return crc32_gzip_refl(crc32_gzip_refl(0, head, sizeof(head)), buf + BTH_BYTES,
			       len - BTH_BYTES - ICRC_BYTES);
}

/* The checksum's register before it processed so many zero bytes. */
static uint32_t run_backwards(uint32_t crc, size_t bytes)
{
	for (size_t bit = 0; bit < 8 * bytes; bit++)
		crc = crc >> 31 ? (crc ^ 0xedb88320u) << 1 | 1 : crc << 1;
	return crc;
}

static bool icrc_holds(const struct wire_ends *ends, const uint8_t *buf, size_t len)
{
	uint32_t wire;

	memcpy(&wire, buf + len - ICRC_BYTES, sizeof(wire));
	uint32_t differs = le32toh(wire) ^ icrc(ends, buf, len);
	if (!differs || !ends->any_id)
		return !differs;
	/* Processing two bytes is processing two zero bytes with these two xored into the lower
	 * half of the register. */
	return run_backwards(differs, 8 + WIRE_IP_UDP + len - ICRC_BYTES - ID_OFFSET) <= 0xffff;
}

static uint8_t *put_headers(const struct packet *pkt, unsigned has, uint8_t *at)
{
	if (has & DETH)
		at = put32(put32(at, pkt->qkey), pkt->src_qpn & PSN_MASK);
	if (has & FETH)
		at = put32(at, (pkt->placement & 15u) | (pkt->selectivity & 3u) << 4);
	if (has & RETH)
		at = put32(put32(put64(at, pkt->va), pkt->rkey), pkt->dma_len);
	if (has & ATOMIC_ETH)
		at = put64(put64(put32(put64(at, pkt->va), pkt->rkey), pkt->swap_add),
			   pkt->compare);
	if (has & AETH)
		at = put32(at, (uint32_t)pkt->syndrome << 24 | (pkt->msn & PSN_MASK));
	if (has & ATOMIC_ACK_ETH)
		at = put64(at, pkt->original);
	if (has & IMM_DT)
		at = put32(at, be32toh(pkt->imm));
	if (has & IETH)
		at = put32(at, pkt->invalidate);
	return at;
}

static void get_headers(struct packet *pkt, unsigned has, const uint8_t *at)
{
	uint32_t word;

	if (has & DETH) {
		pkt->qkey = get32(&at);
		pkt->src_qpn = get32(&at) & PSN_MASK;
	}
	if (has & FETH) {
		word = get32(&at);
		pkt->placement = word & 15;
		pkt->selectivity = word >> 4 & 3;
	}
	if (has & (RETH | ATOMIC_ETH)) {
		pkt->va = get64(&at);
		pkt->rkey = get32(&at);
	}
	if (has & RETH)
		pkt->dma_len = get32(&at);
	if (has & ATOMIC_ETH) {
		pkt->swap_add = get64(&at);
		pkt->compare = get64(&at);
	}
	if (has & AETH) {
		word = get32(&at);
		pkt->syndrome = (uint8_t)(word >> 24);
		pkt->msn = word & PSN_MASK;
	}
	if (has & ATOMIC_ACK_ETH)
		pkt->original = get64(&at);
	if (has & IMM_DT)
		pkt->imm = htobe32(get32(&at));
	if (has & IETH)
		pkt->invalidate = get32(&at);
}

/* The first three bits of an opcode on the wire. */
static unsigned wire_service(uint8_t opcode, uint8_t service)
{
	return opcode_serves(opcode, SERVICE_VENDOR) ? SERVICE_VENDOR : service;
}

/* The packet's service; SERVICE_VENDOR: none. */
static uint8_t service_of_wire(uint8_t opcode, unsigned bits)
{
	uint8_t service = bits == SERVICE_VENDOR ? SERVICE_RC : (uint8_t)bits;

	return wire_service(opcode, service) == bits ? service : SERVICE_VENDOR;
}

/* 0: there is no such packet. */
static unsigned headers_of(uint8_t opcode, uint8_t service)
{
	return service == SERVICE_VENDOR ? 0 : opcode_headers(opcode, service);
}

int wire_encode(const struct packet *pkt, const struct wire_ends *ends, uint8_t *buf, size_t size)
{
	unsigned has = headers_of(pkt->opcode, pkt->service);
	uint32_t pad = -pkt->len & 3;
	size_t len = BTH_BYTES + HEADERS_BYTES(has) + pkt->len + pad + ICRC_BYTES;
	uint8_t *at = buf;

	if (!has || (pkt->len && !(has & PAYLOAD)) || pkt->len > WIRE_PAYLOAD)
		return -EINVAL;
	if (len > size)
		return -EMSGSIZE;
	*at++ = (uint8_t)(wire_service(pkt->opcode, pkt->service) << 5 | pkt->opcode);
	*at++ = (uint8_t)(pkt->solicited << 7 | 1 << 6 /* path migration state: migrated */ |
			  pad << 4);
	at = put16(at, PKEY);
	at = put32(at, pkt->dest_qpn & PSN_MASK);
	at = put32(at, (uint32_t)pkt->ack_req << 31 | (pkt->psn & PSN_MASK));
	at = put_headers(pkt, has, at);
	memcpy(at, pkt->payload, pkt->len);
	memset(at + pkt->len, 0, pad);
	uint32_t crc = htole32(icrc(ends, buf, len));
	memcpy(at + pkt->len + pad, &crc, sizeof(crc));
	return (int)len;
}

int wire_decode(struct rnic_net *net, const uint8_t *buf, size_t len, const struct wire_ends *ends,
		bool check_icrc, struct packet **out)
{
	const uint8_t *at = buf + 4;

	if (len < BTH_BYTES + ICRC_BYTES || len > WIRE_PACKET || len % 4)
		return -EMSGSIZE;
	if (buf[1] & 15)
		return -EPROTONOSUPPORT;
	uint8_t service = service_of_wire(buf[0] & 31, buf[0] >> 5);
	unsigned has = headers_of(buf[0] & 31, service);
	if (!has)
		return -EPROTO;
	size_t head = BTH_BYTES + HEADERS_BYTES(has);
	size_t pad = buf[1] >> 4 & 3;
	if (len < head + pad + ICRC_BYTES)
		return -EMSGSIZE;
	len -= head + pad + ICRC_BYTES;
	if (len > WIRE_PAYLOAD || ((len || pad) && !(has & PAYLOAD)))
		return -EMSGSIZE;
	if (check_icrc && !icrc_holds(ends, buf, head + len + pad + ICRC_BYTES))
		return -EBADMSG;
	if (((buf[2] << 8 | buf[3]) & 0x7fff) != (PKEY & 0x7fff))
		return -EKEYREJECTED;
	struct packet *pkt = packet_get(net, (uint32_t)len);
	pkt->service = service;
	pkt->opcode = buf[0] & 31;
	pkt->solicited = buf[1] >> 7;
	pkt->dest_qpn = get32(&at) & PSN_MASK;
	uint32_t word = get32(&at);
	pkt->ack_req = word >> 31;
	pkt->psn = word & PSN_MASK;
	get_headers(pkt, has, at);
	memcpy(pkt->payload, buf + head, len);
	*out = pkt;
	return 0;
}
