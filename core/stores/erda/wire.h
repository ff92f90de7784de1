/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_ERDA_WIRE_H
#define TM_ERDA_WIRE_H
/*
 * What Erda's clients and server say to each other.
 *
 * A PUT's request is a WRITE_WITH_IMM of `struct erda_req` into the client's own
 * request slot in the server's DRAM; the immediate is the client's number (Erda
 * paper 4.1; knob request=send: an ordinary SEND, as eFactory's authors describe
 * Erda). The reply is a SEND. Slots are safe, for a client waits for the reply
 * before its next request. The repair message is a SEND without a reply.
 */
#include "core/stores/rpc.h"

/* The server's exported regions. */
enum erda_export {
	EXPORT_TABLE, /* boot block, head array, hash table: PM, clients read */
	EXPORT_LOG,   /* PM, clients read and write */
	EXPORT_SLOTS, /* request slots: DRAM, clients write */
	EXPORT_MOVES  /* the displacement counter, 8 B: DRAM, clients read */
};

enum erda_op { ERDA_OP_PUT = 1, ERDA_OP_DEL, ERDA_OP_REPAIR };

struct erda_req {
	uint8_t op; /* enum erda_op */
	uint8_t klen;
	uint16_t unused;
	uint32_t vlen;
	uint32_t client;
	uint32_t bad;		 /* REPAIR: the newest offset, at which the reader found no intact object */
	uint8_t key[TM_MAX_KEY]; /* only klen bytes travel */
};

#define ERDA_REQ_BYTES(klen) (offsetof(struct erda_req, key) + (klen))

struct erda_rsp {
	int32_t status; /* 0 or -errno */
	uint32_t head;
	uint32_t off; /* reserved for the object, in units; ERDA_NO_OFFSET: nothing to write */
	uint32_t unused;
};

#endif
