/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_ERDA_WIRE_H
#define TM_STORES_ERDA_WIRE_H
/*
 * What Erda's clients and server say to each other.
 *
 * A PUT's request is a WRITE_WITH_IMM of `struct erda_req` into the client's own
 * request slot in the server's DRAM; the immediate is the client's number (Erda
 * paper 4.1; knob request=send: an ordinary SEND, as eFactory's authors describe
 * Erda). The reply is a SEND. Slots are safe, for a client waits for the reply
 * before its next request. The repair message is a SEND without a reply.
 *
 * While a log is cleaned (Erda paper 4.4) requests that concern it are SENDs, and
 * the values travel in them: the server writes and reads the objects. The server
 * tells the clients so by notices, on a connection of their own, and the clients
 * acknowledge BEGIN when they hold no address of that log.
 */
#include "core/stores/erda/layout.h"
#include "core/stores/rpc.h"

/* The server's exported regions. */
enum erda_export {
	EXPORT_TABLE, /* boot block, head array, hash table: PM, clients read */
	EXPORT_SLOTS, /* request slots: DRAM, clients write */
	EXPORT_MOVES, /* the displacement counter, 8 B: DRAM, clients read */
	EXPORT_LOG    /* PM, clients read and write: erda_export_log() */
};

/* The state of a log, as clients learn it when they connect (struct rpc_server: word): two bits a
 * head. */
static inline uint32_t erda_word(unsigned head, bool cleaning, unsigned region)
{
	return ((uint32_t)cleaning << 1 | region) << 2 * head;
}

static inline unsigned erda_export_log(unsigned head, unsigned region)
{
	return EXPORT_LOG + ERDA_REGIONS * head + region;
}

_Static_assert(EXPORT_LOG + ERDA_REGIONS * ERDA_MAX_HEADS <= RPC_REGIONS,
	       "a number for each region");

enum erda_op {
	ERDA_OP_PUT = 1,
	ERDA_OP_DEL,
	ERDA_OP_REPAIR,
	ERDA_OP_GET,
	ERDA_OP_CLEAN,
	ERDA_OP_ACK
};

struct erda_req {
	uint8_t op; /* enum erda_op */
	uint8_t klen;
	uint8_t inline_object; /* PUT, DEL: the server writes the object; PUT: the value
				* follows the key */
	uint8_t unused;
	uint32_t vlen;
	uint32_t client;
	uint32_t bad; /* REPAIR: the newest offset, at which the reader found no intact object; ACK:
			 the notice */
	uint8_t key[TM_MAX_KEY]; /* only klen bytes travel */
};

#define ERDA_REQ_BYTES(klen) (offsetof(struct erda_req, key) + (klen))

struct erda_rsp {
	int32_t status; /* 0 or -errno; -EBUSY: ask again; -EAGAIN: a GET that found no intact
			   version */
	uint16_t head;
	uint16_t region;
	uint32_t off;  /* reserved for the object, in units; ERDA_NO_OFFSET: nothing to write */
	uint32_t vlen; /* GET: the value follows */
};

/* The longest message, either way. */
static inline size_t erda_msg_bytes(const struct erda_geo *geo)
{
	return sizeof(struct erda_req) + geo->max_vlen;
}

_Static_assert(sizeof(struct erda_rsp) <= sizeof(struct erda_req),
	       "so a reply fits where a request does");

enum erda_notice_kind {
	NOTICE_BEGIN = 1, /* acknowledge it, and use SENDs for this head's log */
	NOTICE_END	  /* one-sided accesses again, to the region described */
};

struct erda_notice {
	uint8_t kind;
	uint8_t head;
	uint8_t region;
	uint8_t unused;
	uint32_t number; /* of the BEGIN: 1, 2, ... */
	struct rpc_region where;
};

#endif
