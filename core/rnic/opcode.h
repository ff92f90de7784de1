/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OPCODE_H
#define TM_RNIC_OPCODE_H
/*
 * The operations of the RNIC, described once: three tables that the packet format, the requester,
 * the responder, posting, fault rules, counting and litmus tests look everything up in.
 *
 *	PACKET_ROWS	each kind of packet: its BTH opcode (IBA vol. 1, 9.2.1, table 35; annex
 *			A19), the services that have it, its place in a message, its extended
 *			headers
 *	CLASS_ROWS	each kind of work, which several operations may share: what it needs of
 *			the peer's memory, and how it is ordered
 *	operations	each work request: its class, the packets that it is sent as, its
 *			completion
 *
 * docs/contributing.md says how to add an operation.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/rdma_commit.h"
#include "core/verbs_compat.h"

/* The first three bits of a BTH opcode (9.2.1, table 35); enum opcode has the other five. A
 * vendor's packets, which are of reliable connections here, have bits of their own on the wire, and
 * there alone. */
enum service { SERVICE_RC = 0, SERVICE_UC = 1, SERVICE_UD = 3, SERVICE_VENDOR = 6 };

/* Sets of services. */
#define RELIABLE    (1u << SERVICE_RC)
#define CONNECTED   (RELIABLE | 1u << SERVICE_UC)
#define ANY_SERVICE (CONNECTED | 1u << SERVICE_UD)
#define VENDOR	    (1u << SERVICE_RC | 1u << SERVICE_VENDOR)

/* What a packet is. */
enum {
	IS_SEND = 1,
	IS_WRITE = 2,
	IS_FIRST = 4,
	IS_LAST = 8,
	HAS_IMM = 16,
	IS_READ = 32,
	IS_ATOMIC = 64,
	IS_RESPONSE = 128,
	IS_ONLY = IS_FIRST | IS_LAST
};

/* Extended headers, in the order in which they follow the BTH, then the payload (IBA vol. 1, 9.3;
 * annexes A14 and A19). */
enum {
	DETH = 1,
	FETH = 4,
	RETH = 8,
	ATOMIC_ETH = 16,
	AETH = 32,
	ATOMIC_ACK_ETH = 64,
	IMM_DT = 128,
	IETH = 256,
	PAYLOAD = 512
};
#define HEADERS_BYTES(headers)                                                                   \
	(((headers)&DETH ? 8u : 0u) + ((headers)&FETH ? 4u : 0u) + ((headers)&RETH ? 16u : 0u) + \
	 ((headers)&ATOMIC_ETH ? 28u : 0u) + ((headers)&AETH ? 4u : 0u) +                        \
	 ((headers)&ATOMIC_ACK_ETH ? 8u : 0u) + ((headers)&IMM_DT ? 4u : 0u) +                   \
	 ((headers)&IETH ? 4u : 0u))

/* clang-format off */
/* X(opcode, BTH code, class, services, what it is, headers, name) */
#define PACKET_ROWS(X) \
	X(SEND_FIRST,		0x00, SEND, CONNECTED, IS_SEND | IS_FIRST, PAYLOAD, "SEND packet") \
	X(SEND_MIDDLE,		0x01, SEND, CONNECTED, IS_SEND, PAYLOAD, "SEND packet") \
	X(SEND_LAST,		0x02, SEND, CONNECTED, IS_SEND | IS_LAST, PAYLOAD, "SEND packet") \
	X(SEND_LAST_IMM,	0x03, SEND, CONNECTED, IS_SEND | IS_LAST, PAYLOAD | IMM_DT, "SEND packet") \
	X(SEND_ONLY,		0x04, SEND, ANY_SERVICE, IS_SEND | IS_ONLY, PAYLOAD, "SEND packet") \
	X(SEND_ONLY_IMM,	0x05, SEND, ANY_SERVICE, IS_SEND | IS_ONLY, PAYLOAD | IMM_DT, "SEND packet") \
	X(WRITE_FIRST,		0x06, WRITE, CONNECTED, IS_WRITE | IS_FIRST, RETH | PAYLOAD, "WRITE packet") \
	X(WRITE_MIDDLE,		0x07, WRITE, CONNECTED, IS_WRITE, PAYLOAD, "WRITE packet") \
	X(WRITE_LAST,		0x08, WRITE, CONNECTED, IS_WRITE | IS_LAST, PAYLOAD, "WRITE packet") \
	X(WRITE_LAST_IMM,	0x09, WRITE, CONNECTED, IS_WRITE | IS_LAST, PAYLOAD | IMM_DT, \
	  "WRITE_WITH_IMM packet") \
	X(WRITE_ONLY,		0x0a, WRITE, CONNECTED, IS_WRITE | IS_ONLY, RETH | PAYLOAD, "WRITE packet") \
	X(WRITE_ONLY_IMM,	0x0b, WRITE, CONNECTED, IS_WRITE | IS_ONLY, RETH | PAYLOAD | IMM_DT, \
	  "WRITE_WITH_IMM packet") \
	X(READ_REQUEST,		0x0c, READ, RELIABLE, IS_READ, RETH, "READ request") \
	X(READ_RESPONSE_FIRST,	0x0d, RESPONSE, RELIABLE, IS_READ | IS_RESPONSE | IS_FIRST, AETH | PAYLOAD, \
	  "READ response") \
	X(READ_RESPONSE_MIDDLE,	0x0e, RESPONSE, RELIABLE, IS_READ | IS_RESPONSE, PAYLOAD, "READ response") \
	X(READ_RESPONSE_LAST,	0x0f, RESPONSE, RELIABLE, IS_READ | IS_RESPONSE | IS_LAST, AETH | PAYLOAD, \
	  "READ response") \
	X(READ_RESPONSE_ONLY,	0x10, RESPONSE, RELIABLE, IS_READ | IS_RESPONSE | IS_ONLY, AETH | PAYLOAD, \
	  "READ response") \
	X(ACKNOWLEDGE,		0x11, ACK, RELIABLE, IS_RESPONSE, AETH, "acknowledgement") \
	X(ATOMIC_ACKNOWLEDGE,	0x12, RESPONSE, RELIABLE, IS_ATOMIC | IS_RESPONSE, AETH | ATOMIC_ACK_ETH, \
	  "atomic response") \
	X(COMPARE_SWAP,		0x13, ATOMIC, RELIABLE, IS_ATOMIC, ATOMIC_ETH, "CMP_AND_SWP request") \
	X(FETCH_ADD,		0x14, ATOMIC, RELIABLE, IS_ATOMIC, ATOMIC_ETH, "FETCH_AND_ADD request") \
	X(SEND_LAST_INV,	0x16, SEND, RELIABLE, IS_SEND | IS_LAST, PAYLOAD | IETH, "SEND packet") \
	X(SEND_ONLY_INV,	0x17, SEND, RELIABLE, IS_SEND | IS_ONLY, PAYLOAD | IETH, "SEND packet") \
	X(COMMIT,		0x18, COMMIT, VENDOR, IS_ONLY, RETH, "COMMIT request") \
	X(COMMIT_IMM,		0x19, COMMIT, VENDOR, IS_ONLY, RETH | IMM_DT, "COMMIT_WITH_IMM request") \
	X(COMMIT_PAYLOAD,	0x1a, COMMIT_PAYLOAD, VENDOR, IS_ONLY, RETH | PAYLOAD, \
	  "COMMIT_WITH_PAYLOAD request") \
	X(FLUSH,		0x1c, FLUSH, RELIABLE, IS_ONLY, FETH | RETH, "FLUSH request") \
	X(ATOMIC_WRITE,		0x1d, ATOMIC_WRITE, RELIABLE, IS_ONLY, RETH | PAYLOAD, "ATOMIC_WRITE request")

/*
 * X(class, word in a fault rule, what it is, right that the peer's memory has to give, bytes of the
 * one aligned word that it works on or 0). A FLUSH's rights follow from its placement type. The word
 * of a request that names a range is the range's last one.
 */
#define CLASS_ROWS(X) \
	X(SEND,		"send",		CARRIES_DATA, 0, 0) \
	X(WRITE,	"write",	CARRIES_DATA | NAMES_MEMORY, IBV_ACCESS_REMOTE_WRITE, 0) \
	X(READ,		"read",		NONPOSTED | NAMES_MEMORY, IBV_ACCESS_REMOTE_READ, 0) \
	X(RESPONSE,	"response",	0, 0, 0) \
	X(ATOMIC,	"atomic",	NONPOSTED | NAMES_MEMORY, IBV_ACCESS_REMOTE_ATOMIC, 8) \
	X(FLUSH,	"flush",	NONPOSTED | NAMES_MEMORY | NAMES_RANGE, 0, 0) \
	X(COMMIT,	"commit",	NONPOSTED | NAMES_MEMORY | NAMES_RANGE, IBV_ACCESS_FLUSH_PERSISTENT, 0) \
	X(COMMIT_PAYLOAD, "commit_payload", NONPOSTED | NAMES_MEMORY | NAMES_RANGE | CARRIES_DATA, \
	  IBV_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_REMOTE_WRITE, 8) \
	/* It reads nothing: it needs the right to write, not that to atomics, as with rdma_rxe. */ \
	X(ATOMIC_WRITE,	"atomic_write",	NONPOSTED | NAMES_MEMORY | CARRIES_DATA, IBV_ACCESS_REMOTE_WRITE, 8) \
	X(ACK,		"ack",		0, 0, 0) \
	X(NAK,		"nak",		0, 0, 0) /* the same opcode; its syndrome says so */ \
	X(BIND,		NULL,		NO_PACKET, 0, 0) \
	X(INVALIDATE,	NULL,		NO_PACKET, 0, 0)
/* clang-format on */

enum opcode {
#define X(id, code, class, services, is, headers, name) OP_##id = (code),
	PACKET_ROWS(X)
#undef X
		OP_CODES
};

enum op_class {
	CLASS_ANY, /* of a packet: none that is known */
#define X(id, word, is, right, bytes) CLASS_##id,
	CLASS_ROWS(X)
#undef X
		CLASS_COUNT
};

/* What a class is. */
enum {
	NONPOSTED = 1,	  /* something other than an acknowledgement is awaited */
	CARRIES_DATA = 2, /* the bytes of its list go to the peer; else results go there */
	NAMES_MEMORY = 4, /* it has a remote address and key */
	NO_PACKET = 8,	  /* done by this RNIC alone */
	NAMES_RANGE = 16  /* a range of the peer's memory, whatever its list holds */
};

struct class_row {
	const char *word; /* NULL: it has no packets */
	uint8_t is;
	uint8_t word_bytes;
	uint16_t right; /* enum ibv_access_flags */
};
extern const struct class_row class_rows[CLASS_COUNT];

struct packet_row {
	const char *name; /* NULL: there is no such opcode */
	uint8_t class;	  /* enum op_class */
	uint8_t services;
	uint16_t headers;
};
extern const struct packet_row packet_rows[OP_CODES];
/* The same table's column that each packet is looked up in; 0: there is no such opcode. */
extern const uint8_t opcode_is[OP_CODES];

/* A packet's place in its message. */
enum { PACKET_FIRST, PACKET_MIDDLE, PACKET_LAST, PACKET_ONLY, PACKET_PLACES };

static inline unsigned packet_place(bool first, bool last)
{
	return first ? (last ? PACKET_ONLY : PACKET_FIRST) : last ? PACKET_LAST : PACKET_MIDDLE;
}

/* What is special about an operation within its class. */
enum {
	WITH_IMM = 1,
	WITH_INV = 2,	 /* it takes a key away, the peer's or its own */
	WITH_COMPARE = 4 /* an atomic with a second operand */
};

struct operation {
	const char *name;   /* as in ibv_wr_opcode, shortened; NULL: there is none */
	const char *litmus; /* the statement of a litmus test, or NULL */
	uint8_t class;	    /* enum op_class */
	uint8_t with;
	uint8_t completion; /* enum ibv_wc_opcode */
	uint8_t packet[PACKET_PLACES];
	uint32_t send_op; /* enum ibv_qp_create_send_ops_flags */
};
/* An operation's number: enum ibv_wr_opcode; those of rdma_commit.h follow. */
enum {
	OPERATION_COMMIT = IBV_WR_ATOMIC_WRITE + 1,
	OPERATION_COMMIT_WITH_IMM,
	OPERATION_COMMIT_WITH_PAYLOAD,
	OPERATIONS
};
extern const struct operation operations[OPERATIONS];

/* The number of what is posted by this opcode; OPERATIONS: there is no such operation. */
static inline unsigned operation_number(unsigned wr_opcode)
{
	unsigned number = wr_opcode;
	if (wr_opcode >= (unsigned)TM_WR_COMMIT)
		number = wr_opcode - (unsigned)TM_WR_COMMIT + OPERATION_COMMIT;
	else if (wr_opcode >= OPERATION_COMMIT)
		return OPERATIONS;
	return number < OPERATIONS && operations[number].name ? number : OPERATIONS;
}
/* The other way round: the opcode by which it is posted. */
static inline enum ibv_wr_opcode operation_opcode(unsigned number)
{
	return (enum ibv_wr_opcode)(number < OPERATION_COMMIT
					    ? number
					    : number - OPERATION_COMMIT + (unsigned)TM_WR_COMMIT);
}
/* Is its class this? */
static inline bool operation_is(unsigned number, unsigned is)
{
	return class_rows[operations[number].class].is & is;
}
/* Has the service this operation? */
bool operation_serves(const struct operation *op, enum service service);
/* The operation that has packets of this kind; NULL: it is a response. */
const struct operation *operation_of_packet(uint8_t opcode);

/* Is there such a packet in the service? */
static inline bool opcode_serves(uint8_t opcode, unsigned service)
{
	return opcode < OP_CODES && service < 8 && packet_rows[opcode].services >> service & 1;
}
/* The headers of such a packet, PAYLOAD among them, those of its service too; 0: there is none. */
unsigned opcode_headers(uint8_t opcode, unsigned service);
const char *opcode_name(uint8_t opcode);
static inline bool has_invalidate(uint8_t opcode)
{
	return packet_rows[opcode].headers & IETH;
}

/* Packet numbers of a message's requests, and of what a responder sends for it, which thus never
 * meet. */
#define PACKET_NUMBERS(X) X(PACKET, "packet") X(ACK, "ack") X(READ, "reply")
#define INDEX_RANGE	  (1u << 28)
enum {
#define X(id, word) NUMBERS_##id,
	PACKET_NUMBERS(X)
#undef X
};
/* Added to the number of a packet that lands a second time, as unreliable services let it. No
 * message of theirs in a simulation has so many. */
#define INDEX_COPY (1u << 15)
enum { INDEX_ACK = NUMBERS_ACK * INDEX_RANGE, INDEX_READ = NUMBERS_READ * INDEX_RANGE };

#endif
