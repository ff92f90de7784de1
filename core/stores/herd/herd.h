/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_HERD_H
#define TM_STORES_HERD_H
/*
 * HERD (SV 2.1, 3.1) and, as a variant, HERD with Pmem-Redis behind it (RK IV): requests by WRITE
 * on an unreliable connection into a slot of the server's memory, which the server polls; replies
 * by datagrams. Both services lose messages and say nothing, so a client that waits too long
 * repeats its request.
 *
 *	client                                 server
 *	  | WRITE value, head          -->     | finds the head's word
 *	  |                                    | executes, persists
 *	  | receive                    <--     | SENDs the reply, as datagrams
 *	  |                                    |
 *	  | no reply: the same WRITE   -->     | has executed it: the same reply
 *
 * A client has one slot of 1 KB in the server's DRAM. A request lies at its end, so that its last
 * word, which is polled, lands last:
 *
 *	0x000 ... free
 *	0x3c0 - vlen  a PUT's value
 *	0x3c0 head: struct kv_req; crc: over value and head, with zero for itself
 *	0x3f8       u64 word: bit 0 "there is one"; bits 32..63 the request's number
 *
 * (knob poll_front, as the public code has it: the head, then the value, from 0x000 on.) The server
 * takes the request out of its slot by storing zero to the word. A number says whether it has
 * executed the request before: it remembers each client's last request, and its reply.
 *
 * A reply is as many datagrams as its value needs:
 *
 *	0x00 u32 number, of the request
 *	0x04 i32 status
 *	0x08 u32 bytes of the value
 *	0x0c u32 where in it this part begins
 *	0x10 ... the part
 *
 * The pool is that of kv_pool.h, and after it an undo log for backend=tx (tx.c). The server
 * executes one request at a time and persists what it changes before it replies (kv_place.h).
 *
 *	link.c		queue pairs of both kinds, and what is said when a client connects
 *	client.c	what clients do
 *	server.c	what the server does
 *	tx.c		PUTs and DELETEs in transactions, and recovery
 *	herd.c		the store: knobs, variants, what it promises
 */
#include "core/stores/kv_place.h"
#include "core/stores/kv_slots.h"
#include "core/stores/rpc_qp.h"

enum {
	CROWD = KV_CROWD,
	REQUEST,
	POLL_FRONT,
	CHECK,
	NUMBERS,
	BACKEND,
	REPLY_FIRST,
	PERSIST,
	BUG,
	KNOBS
};
enum { REQUEST_POLLED, REQUEST_IMM };
enum { NUMBERS_ON, NUMBERS_OFF, NUMBERS_ONE };
enum { CHECK_CRC, CHECK_WORD };
enum { BACKEND_PLACE, BACKEND_TX };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define HERD_BUGS(X)                                                                               \
	X(two_workers, "", RDA | LIN | DUR | FSCK | OK | MONO | KEEP,                              \
	  "two tasks poll the same slots")                                                         \
	X(repeat_executes, "", LIN | NORES | DUR, "the server executes what its client repeats")   \
	X(reply_unchecked, "", RDA | LIN | DUR | OK,                                               \
	  "a client takes any reply, that of an earlier request, too")                             \
	X(client_kept, " numbers=one", LIN | RDA | OK | DUR,                                       \
	  "a client that comes back gets the reply to its former self")                            \
	X(value_unflushed, "", RDA | DUR, "only the entry is flushed")                             \
	X(entry_first, "", RDA, "the entry names the value, durably, before the value is durable") \
	X(delete_unflushed, "", DUR, "a DELETE is not flushed")                                    \
	X(tx_unlogged, " backend=tx", KEEP | DUR | RDA,                                            \
	  "the undo log names the entry before what it held is durable")                           \
	X(tx_unflushed, " backend=tx", DUR,                                                        \
	  "a transaction is committed, and its change is not durable")                             \
	X(tx_kept, " backend=tx", KEEP | DUR | RDA | FSCK,                                         \
	  "recovery does not undo what was interrupted")                                           \
	X(undo_assumed, " backend=tx", DUR | MONO | KEEP,                                          \
	  "recovery leaves an undo log alone that is empty, in the cache perhaps")
enum { NO_BUG, HERD_BUGS(KV_BUG_VALUE) };

/* --- requests --- */

#define HERD_SLOT 1024 /* bytes */

struct herd_head {
	struct kv_req req;
	uint64_t word;
};

_Static_assert(sizeof(struct herd_head) == TM_LINE, "a head is a line");

#define HERD_MAX_VALUE (HERD_SLOT - sizeof(struct herd_head)) /* bytes */

static inline uint64_t herd_word(uint32_t number)
{
	return (uint64_t)number << 32 | 1;
}

/* Where in a slot the word is, with the head of a request around it. */
static inline size_t herd_head_at(const struct tm_params *params)
{
	return params->knob[POLL_FRONT] ? 0 : HERD_SLOT - sizeof(struct herd_head);
}

/* Where in a slot a value of so many bytes begins. */
static inline size_t herd_value_at(const struct tm_params *params, uint32_t vlen)
{
	return params->knob[POLL_FRONT] ? sizeof(struct herd_head) : herd_head_at(params) - vlen;
}

/* The check of a request: of its value, and of its head but for the check. */
uint32_t herd_crc(const struct herd_head *head, const void *value);

/* --- replies --- */

struct herd_reply {
	uint32_t number;
	int32_t status;
	uint32_t vlen;
	uint32_t from;
};

#define HERD_GRH     40 /* bytes in front of a datagram that was received */
#define HERD_LARGEST (sizeof(struct herd_reply) + HERD_MAX_VALUE) /* bytes of a datagram */
#define HERD_PARTS   4 /* of a reply, at most: HERD_MAX_VALUE in datagrams of 256 bytes */
#define HERD_RECVS   (2 * HERD_PARTS) /* that a client has posted */

/* Bytes of a value in one datagram between these two. */
static inline uint32_t herd_part(const struct rpc_greeting *own, const struct rpc_greeting *peer)
{
	uint8_t mtu = own->mtu < peer->mtu ? own->mtu : peer->mtu; /* enum ibv_mtu */

	return (128u << mtu) - (uint32_t)sizeof(struct herd_reply);
}

/* --- queue pairs (link.c) --- */

/*
 * What a client sends when it connects: of its connection, and of its datagrams; `connection` is 0.
 * Or it asks, in the same way, whether the server still has its connection: neither NIC says so.
 */
struct herd_hello {
	struct rpc_greeting writes, replies;
	uint32_t connection; /* of struct herd_welcome */
	uint32_t number;     /* before the first request's */
};

struct herd_welcome {
	struct herd_hello server;
	struct rpc_region slot; /* the client's */
	uint32_t index;
	uint32_t connection; /* the client's n-th, from 1 */
};

/* An unreliable connection, or datagrams; `cq` for both directions; `sends`: so many can be on
 * their way, or a few where that is less. *hello is what to say of it. NULL with errno. */
struct ibv_qp *herd_qp_open(struct ibv_pd *pd, struct ibv_cq *cq, bool datagrams, unsigned sends,
			    uint32_t client, struct rpc_greeting *hello);
/* Ready to send and receive. `peer`: of the connection; NULL: datagrams. 0 or -errno. */
int herd_qp_ready(struct ibv_qp *qp, const struct rpc_greeting *own,
		  const struct rpc_greeting *peer);

/* --- transactions (tx.c) --- */

size_t herd_bytes(const struct tm_params *params);
unsigned herd_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
int herd_recover(const struct tm_env *env);
void herd_fsck(const struct tm_env *env, struct tm_fsck *fsck);

/* The undo log, two lines: 1 + the number of an entry, or 0; and what that held. */
struct herd_undo {
	uint64_t entry;
	uint64_t zero[7];
	struct kv_entry held;
};

_Static_assert(sizeof(struct herd_undo) == 2 * TM_LINE, "an undo log is two lines");

struct herd_undo *herd_undo_at(const struct tm_params *params, uint8_t *pm);
/* As kv_place_put(), kv_place_del(), each a transaction. */
int herd_tx_put(struct kv_place *place, struct herd_undo *undo, const struct tm_params *params,
		const struct kv_req *req, const void *bytes);
void herd_tx_del(struct kv_place *place, struct herd_undo *undo, const struct tm_params *params,
		 const uint8_t key[TM_MAX_KEY]);

/* tm_store's functions of these names. */
int herd_serve(const struct tm_env *env);
int herd_open(const struct tm_env *env, void **out);
int herd_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int herd_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int herd_del(void *client, const void *key, size_t klen);

#endif
