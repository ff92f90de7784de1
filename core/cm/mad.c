/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See mad.h. A table has the fields of each message: the first bit, the number of bits, the member
 * of struct cm_message. A field of up to 64 bits is a number, a longer one an array of bytes. Bits
 * that are not in the table are sent as zero and ignored on receipt.
 */
#include "core/cm/mad.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define BASE_VERSION  1
#define CLASS	      7
#define CLASS_VERSION 2
#define METHOD_SEND   3
#define HEADER	      24 /* bytes */
#define IP_HEADER     36 /* rdma_cm's, in front of a request's private data */

struct field {
	uint16_t bit, width;
	uint16_t offset, size;
};
#define FIELD(byte, bit_, width_, member)                               \
	{                                                               \
		.bit = (HEADER + (byte)) * 8 + (bit_), .width = width_, \
		.offset = offsetof(struct cm_message, member),          \
		.size = sizeof(((struct cm_message *)0)->member)        \
	}
#define BYTES(byte, member) FIELD(byte, 0, 8 * sizeof(((struct cm_message *)0)->member), member)
/* Annex A11. */
#define IP_FIELDS(byte)                                                           \
	FIELD(byte, 0, 8, cma_version), FIELD((byte) + 1, 0, 4, ip_version),      \
		FIELD((byte) + 2, 0, 16, source_port), BYTES((byte) + 4, source), \
		BYTES((byte) + 20, destination)

static const struct field header_fields[] = {
	{.bit = 64,
	 .width = 64,
	 .offset = offsetof(struct cm_message, tid),
	 .size = sizeof(uint64_t)},
};
static const struct field req[] = {
	/* Extended connection establishment, in the attribute modifier and in reserved bits. */
	FIELD(-4, 0, 32, ece.options),
	FIELD(5, 0, 24, ece.vendor_id),
	FIELD(0, 0, 32, local_id),
	FIELD(8, 0, 64, service_id),
	FIELD(16, 0, 64, ca_guid),
	FIELD(32, 0, 24, params.qpn),
	FIELD(35, 0, 8, params.responder_resources),
	FIELD(39, 0, 8, params.initiator_depth),
	FIELD(43, 0, 5, their_timeout),
	FIELD(43, 5, 2, transport),
	FIELD(43, 7, 1, params.flow_control),
	FIELD(44, 0, 24, params.psn),
	FIELD(47, 0, 5, our_timeout),
	FIELD(47, 5, 3, params.retry_count),
	FIELD(48, 0, 16, pkey),
	FIELD(50, 0, 4, mtu),
	FIELD(50, 5, 3, params.rnr_retry_count),
	FIELD(51, 0, 4, max_retries),
	FIELD(51, 4, 1, params.srq),
	/* The primary path. */
	FIELD(52, 0, 16, local_lid),
	FIELD(54, 0, 16, remote_lid),
	BYTES(56, gid),
	BYTES(72, peer_gid),
	FIELD(91, 2, 6, rate),
	FIELD(92, 0, 8, traffic_class),
	FIELD(93, 0, 8, hop_limit),
	FIELD(94, 4, 1, subnet_local),
	FIELD(95, 0, 5, ack_timeout),
	IP_FIELDS(140),
};
static const struct field mra[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 32, remote_id),
	FIELD(8, 0, 2, about),
	FIELD(9, 0, 5, service_timeout),
};
static const struct field rej[] = {
	FIELD(0, 0, 32, local_id), FIELD(4, 0, 32, remote_id), FIELD(8, 0, 2, about),
	FIELD(9, 0, 7, info_len),  FIELD(10, 0, 16, reason),   BYTES(12, info),
};
static const struct field rep[] = {
	FIELD(-4, 0, 32, ece.options),
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 32, remote_id),
	FIELD(12, 0, 24, params.qpn),
	FIELD(20, 0, 24, params.psn),
	FIELD(24, 0, 8, params.responder_resources),
	FIELD(25, 0, 8, params.initiator_depth),
	FIELD(26, 7, 1, params.flow_control),
	FIELD(27, 0, 3, params.rnr_retry_count),
	FIELD(27, 3, 1, params.srq),
	FIELD(28, 0, 64, ca_guid),
};
static const struct field rtu[] = {FIELD(0, 0, 32, local_id), FIELD(4, 0, 32, remote_id)};
static const struct field dreq[] = {
	FIELD(0, 0, 32, local_id),
	FIELD(4, 0, 32, remote_id),
	FIELD(8, 0, 24, remote_qpn),
};
static const struct layout {
	const struct field *fields;
	unsigned n;
	unsigned private_at, private_bytes; /* offsets after the header */
} layouts[CM_TYPES] = {
#define LAYOUT(fields, at, bytes)                                     \
	{                                                             \
		fields, sizeof(fields) / sizeof(*(fields)), at, bytes \
	}
	[CM_REQ] = LAYOUT(req, 140 + IP_HEADER, CM_REQ_PRIVATE),
	[CM_MRA] = LAYOUT(mra, 0, 0),
	[CM_REJ] = LAYOUT(rej, 84, CM_REJ_PRIVATE),
	[CM_REP] = LAYOUT(rep, 36, CM_REP_PRIVATE),
	[CM_RTU] = LAYOUT(rtu, 0, 0),
	[CM_DREQ] = LAYOUT(dreq, 0, 0),
	[CM_DREP] = LAYOUT(rtu, 0, 0),
};

/* --- fields --- */

static uint64_t get_bits(const uint8_t *bytes, unsigned bit, unsigned width)
{
	uint64_t value = 0;

	for (unsigned i = bit; i < bit + width; i++)
		value = value << 1 | (bytes[i / 8] >> (7 - i % 8) & 1);
	return value;
}

static void put_bits(uint8_t *bytes, unsigned bit, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		if (value >> i & 1)
			bytes[(bit + width - 1 - i) / 8] |= (uint8_t)(1 << (7 - (bit + width - 1 -
										 i) % 8));
}

static uint64_t get_member(const void *at, unsigned size)
{
	uint64_t value = 0;

	memcpy((uint8_t *)&value + (BYTE_ORDER == BIG_ENDIAN ? sizeof(value) - size : 0), at, size);
	return value;
}

static void put_member(void *at, unsigned size, uint64_t value)
{
	memcpy(at, (uint8_t *)&value + (BYTE_ORDER == BIG_ENDIAN ? sizeof(value) - size : 0), size);
}

static void encode_fields(const struct field *fields, unsigned n, const struct cm_message *message,
			  uint8_t *bytes)
{
	for (const struct field *f = fields; f < fields + n; f++) {
		const uint8_t *member = (const uint8_t *)message + f->offset;

		if (f->width > 64)
			memcpy(bytes + f->bit / 8, member, f->size);
		else
			put_bits(bytes, f->bit, f->width, get_member(member, f->size));
	}
}

static void decode_fields(const struct field *fields, unsigned n, struct cm_message *message,
			  const uint8_t *bytes)
{
	for (const struct field *f = fields; f < fields + n; f++) {
		uint8_t *member = (uint8_t *)message + f->offset;

		if (f->width > 64)
			memcpy(member, bytes + f->bit / 8, f->size);
		else
			put_member(member, f->size, get_bits(bytes, f->bit, f->width));
	}
}

/* --- messages --- */

/* A REP has one byte of the vendor ID in each of three reserved bytes. */
static const unsigned vendor_at[] = {15, 19, 23};

void mad_encode(const struct cm_message *message, uint8_t bytes[MAD_BYTES])
{
	const struct layout *layout = &layouts[message->type];

	memset(bytes, 0, MAD_BYTES);
	bytes[0] = BASE_VERSION;
	bytes[1] = CLASS;
	bytes[2] = CLASS_VERSION;
	bytes[3] = METHOD_SEND;
	bytes[17] = (uint8_t)message->type; /* of 16 bits */
	encode_fields(header_fields, 1, message, bytes);
	encode_fields(layout->fields, layout->n, message, bytes);
	for (unsigned i = 0; message->type == CM_REP && i < 3; i++)
		bytes[HEADER + vendor_at[i]] = (uint8_t)(message->ece.vendor_id >> (16 - 8 * i));
	memcpy(bytes + HEADER + layout->private_at, message->private_data, layout->private_bytes);
}

int mad_decode(struct cm_message *message, const uint8_t bytes[MAD_BYTES])
{
	memset(message, 0, sizeof(*message));
	if (bytes[0] != BASE_VERSION || bytes[1] != CLASS || bytes[2] != CLASS_VERSION ||
	    bytes[3] != METHOD_SEND || bytes[16] || bytes[17] < CM_REQ || bytes[17] >= CM_TYPES)
		return -EPROTO;
	message->type = bytes[17];
	const struct layout *layout = &layouts[message->type];
	decode_fields(header_fields, 1, message, bytes);
	decode_fields(layout->fields, layout->n, message, bytes);
	for (unsigned i = 0; message->type == CM_REP && i < 3; i++)
		message->ece.vendor_id |= (uint32_t)bytes[HEADER + vendor_at[i]] << (16 - 8 * i);
	memcpy(message->private_data, bytes + HEADER + layout->private_at, layout->private_bytes);
	return 0;
}

/* --- services, addresses --- */

uint64_t mad_service_id(uint16_t port_space, uint16_t port)
{
	return (uint64_t)port_space << 16 | port;
}

bool mad_service(uint64_t service_id, uint16_t *port_space, uint16_t *port)
{
	*port_space = (uint16_t)(service_id >> 16);
	*port = (uint16_t)service_id;
	return !(service_id >> 32);
}

static void put_address(uint8_t to[16], const struct sockaddr *from)
{
	memset(to, 0, 16);
	if (from->sa_family == AF_INET)
		memcpy(to + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
	else if (from->sa_family == AF_INET6)
		memcpy(to, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
}

void mad_set_addresses(struct cm_message *message, const struct sockaddr *source,
		       const struct sockaddr *destination)
{
	message->ip_version = destination->sa_family == AF_INET	   ? 4
			      : destination->sa_family == AF_INET6 ? 6
								   : 0;
	message->source_port = ntohs(((const struct sockaddr_in *)source)->sin_port);
	put_address(message->source, source);
	put_address(message->destination, destination);
}

static void get_address(struct sockaddr_storage *to, unsigned version, const uint8_t from[16],
			uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*to));
	if (version == 4) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, from + 12, 4);
		in->sin_port = htons(port);
	} else if (version == 6) {
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, from, 16);
		in6->sin6_port = htons(port);
	}
}

void mad_get_addresses(const struct cm_message *message, struct sockaddr_storage *source,
		       struct sockaddr_storage *destination)
{
	unsigned version = message->cma_version ? 0 : message->ip_version;
	uint16_t port_space, port;

	mad_service(message->service_id, &port_space, &port);
	get_address(source, version, message->source, message->source_port);
	get_address(destination, version, message->destination, port);
}
