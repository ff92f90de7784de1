/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_REMOTELOG_REMOTELOG_H
#define TM_STORES_REMOTELOG_REMOTELOG_H
/*
 * RemoteLog (RP: the remote persistence taxonomy): a log in the server's PM to which
 * clients append. PUT and DELETE append a record; GET reads the log and takes the
 * newest record of its key; in a ring, where old records are collected, else the one in the
 * applied table. The store is a bench for the methods by which a remote update, or two
 * updates in order, become durable. docs/remotelog.md is its manual.
 *
 *	singleton	one update: the record (a). The log ends where a record's checksum
 *			or its number is wrong.
 *	compound	two updates: the record (a), then the tail (b), 8 bytes. b must never
 *			be durable while a is not.
 *
 *	remotelog.c	what it promises, its knobs, its sizes
 *	collect.c	a log that is a ring: the applied table, and taking records into it
 *	method.c	the methods, as lists of steps
 *	append.c	the client's part of a method: work requests and waiting
 *	client.c	PUT, DELETE, GET
 *	server.c	what the server does with messages and immediates
 *	recover.c	an empty pool, a pool after a power failure, its check
 *
 * The pool, offsets in bytes:
 *
 *	0	magic; head: number of the last record that was collected (a ring's)
 *	64	tail: number of the last record (compound; 0 in a singleton's)
 *	128	the slots, of rl_span() bytes each: record n is in slot (n - 1) mod their number
 *	...	a ring: the applied table, a slot for each key
 *	...	with receive buffers in PM: the message buffers of rpc_server_init_in()
 *
 * Numbers start at 1, so that a zeroed slot is no record. The log is what comes after the
 * head. By default there is a slot for each update of the store's life, and nothing is
 * collected.
 *
 * One client appends at a time. A word in the server's DRAM, which clients change by
 * compare-and-swap, is 2 x the next record's number, plus 1 while a client appends. It
 * is given back by a WRITE after the append, or, where the server replies to a message
 * with the record, by the server. A client that dies in between blocks all others, as the table of
 * errors says. The second word says how far the log has been collected, for good: what a
 * client that finds the log full waits for.
 *
 * DUR is about appends. A GET returns what is visible; beside another client's append that
 * need not be durable yet, so MONO is not promised, and with readers beside writers DUR breaks,
 * too. With get=durable it does not.
 */
#include "core/stores/append_method.h"
#include "core/stores/kv.h"
#include "core/stores/rpc.h"
#include "core/tidemark.h"

/* The knobs: name, values, what it is. The first value is the default. */
#define RL_KNOBS(X)                                                                               \
	X(method,                                                                                 \
	  "w1 w1n w2 w3 i1 i2 i3 s1 s2 s3 s4 wc cw1 cw2 cw2p cw2c cw2f cw3 cw4 ci1 ci2 ci3 ci4 "  \
	  "cs1 "                                                                                  \
	  "cs1x cs2 cs3 cs4 cwc cwcp",                                                            \
	  "how an append becomes durable (RP tables 2 and 3, and RDMA Commit); c in front: "      \
	  "compound, record then tail")                                                           \
	X(flush, "native read read_other_qp",                                                     \
	  "RDMA FLUSH; or a READ on the same connection instead; or on another one")              \
	X(qps, "one two two_wait",                                                                \
	  "queue pairs of a client: one; one for READs, WRITEs and FLUSHes and one for "          \
	  "messages; the same, and a message waits for the WRITE's completion")                   \
	X(crc, "on off", "readers and recovery compare a record's checksum, not only its number") \
	X(get, "client server durable",                                                           \
	  "who looks through the log for a GET: client by READ, server's CPU; or the server, "    \
	  "which makes durable what it returns")                                                  \
	X(scan_buffers, "on off", "recovery looks for records in receive buffers in PM")          \
	X(slots, "all 2 4 16",                                                                    \
	  "room for all records that are ever written; or a ring, which the server "              \
	  "collects")                                                                             \
	X(seq, "checked unchecked",                                                               \
	  "recovery's scan compares a record's number, not only its checksum")                    \
	X(tail, "8 16",                                                                           \
	  "bytes of a compound append's second update; 16 are too many for an ATOMIC "            \
	  "WRITE, and a WRITE stands for it")                                                     \
	X(wait, "cas add",                                                                        \
	  "what a client that waits for the lock looks at it with: a compare-and-swap that "      \
	  "fails, an add of 0")                                                                   \
	X(copy, "cpu nt",                                                                         \
	  "the server copies a record by plain stores; or by non-temporal ones, which only a "    \
	  "fence orders with the tail's")                                                         \
	X(numbers, "low wrap",                                                                    \
	  "records are numbered from 1; or from the last number that fits into an immediate")     \
	X(bug,                                                                                    \
	  "none gc_early gc_dirty room_early repost_early recover_head recover_cached "           \
	  "imm_truncated gc_short tail_untold head_first clear_one",                              \
	  "a seeded bug, see the variants")

/* tm_params.knob, by name. */
struct rl_knobs {
#define X(name, values, what) uint8_t name;
	RL_KNOBS(X)
#undef X
};
enum rl_get { RL_GET_CLIENT, RL_GET_SERVER, RL_GET_DURABLE };
enum rl_flush { RL_FLUSH_NATIVE, RL_FLUSH_READ, RL_FLUSH_READ_OTHER_QP };
enum rl_qps { RL_QPS_ONE, RL_QPS_TWO, RL_QPS_TWO_WAIT };
enum rl_bug {
	RL_NO_BUG,
	RL_GC_EARLY,
	RL_GC_DIRTY,
	RL_ROOM_EARLY,
	RL_REPOST_EARLY,
	RL_RECOVER_HEAD,
	RL_RECOVER_CACHED,
	RL_IMM_TRUNCATED,
	RL_GC_SHORT,
	RL_TAIL_UNTOLD,
	RL_HEAD_FIRST,
	RL_CLEAR_ONE
};

#define RL_MAGIC 0x31474f4c4d52u /* "RMLOG1" */
#define RL_HEAD	 8
#define RL_TAIL	 64
#define RL_LOG	 128

enum rl_region { RL_POOL, RL_WORDS }; /* exported */

/* In the server's DRAM. */
struct rl_words {
	uint64_t lock;
	uint64_t head; /* the head in PM, but never ahead of what is durable there */
};

enum rl_kind { RL_VALUE = 1, RL_TOMBSTONE };

struct rl_record {
	uint32_t crc; /* of all that follows, `len` bytes of value included */
	uint32_t len; /* of the value, bytes */
	uint64_t seq; /* from 1 */
	uint8_t key[TM_MAX_KEY];
	uint8_t klen;
	uint8_t kind; /* enum rl_kind */
	uint8_t unused[6];
	uint8_t value[];
};
_Static_assert(sizeof(struct rl_record) == 56, "a fixed layout without padding");

/* A message; of RL_FLUSH_A and RL_FLUSH_B only the first 16 bytes. */
enum rl_op { RL_APPEND = 1, RL_FLUSH_A, RL_FLUSH_B, RL_LOOKUP };
struct rl_msg {
	uint32_t op;
	int32_t status; /* of a reply */
	uint64_t seq;	/* which record; RL_APPEND: also the new tail */
	struct rl_record record;
};
#define RL_MSG_HEAD offsetof(struct rl_msg, record)

/* An immediate: 2 x the record's number, plus 1 if it is about the tail. It has the number's last
 * 31 bits; the server knows the others, as the log is much shorter. */
#define RL_IMM_NUMBERS (1ull << 31)
static inline uint32_t rl_imm(uint64_t seq, bool tail)
{
	return (uint32_t)(2 * seq + tail);
}

/* --- methods --- */

extern const struct tm_append_methods rl_methods;
const struct append_method *rl_method(const struct tm_params *params);
/* Does the server reply to the message that carries the record? Then it gives the lock back. */
bool rl_server_unlocks(const struct append_method *method);

/* --- the pool --- */

static inline const struct rl_knobs *rl_knobs(const struct tm_params *params)
{
	return (const struct rl_knobs *)params->knob;
}
uint64_t rl_span(const struct tm_params *params);
uint64_t rl_slots(const struct tm_params *params);
uint64_t rl_log_end(const struct tm_params *params);   /* the offset after the last slot */
uint64_t rl_table_end(const struct tm_params *params); /* the offset after the applied table */
size_t rl_msg_bytes(const struct tm_params *params);
uint64_t rl_off(const struct tm_params *params, uint64_t seq);
static inline struct rl_record *rl_slot(const struct tm_params *params, uint8_t *pm, uint64_t seq)
{
	return (struct rl_record *)(pm + rl_off(params, seq));
}
static inline size_t rl_record_bytes(const struct rl_record *record)
{
	return sizeof(*record) + record->len;
}

uint32_t rl_crc(const struct rl_record *record);
/* Is this a whole record, by all that can be checked? */
bool rl_whole(const struct tm_params *params, const struct rl_record *record);
/* ... and the one with this number? */
bool rl_intact(const struct tm_params *params, const struct rl_record *record, uint64_t seq);
/* The number before the first record's, which is never 0. */
uint64_t rl_before_first(const struct tm_params *params);
/* The number of the last record that has been collected; rl_before_first(): none. */
uint64_t rl_head(const struct tm_params *params, const uint8_t *pm);
/* The number of the log's last record: compound: its tail; singleton: of the last before one that
 * is not intact. rl_head(): the log is empty. */
uint64_t rl_end(const struct tm_params *params, uint8_t *pm);

/* The tail: a number, and with tail=16 how many bytes of records that makes. */
void rl_make_tail(const struct tm_params *params, uint64_t tail[2], uint64_t seq);
size_t rl_tail_bytes(const struct tm_params *params);
void rl_persist_tail(const struct tm_params *params, uint8_t *pm);

/* --- the ring --- */

/* Is the log one, with an applied table? */
bool rl_ring(const struct tm_params *params);
/* The entry of the table with which the search for a key begins; the next ones follow, in a
 * circle. */
unsigned rl_first_entry(const struct tm_params *params, const uint8_t key[TM_MAX_KEY]);
uint64_t rl_entry_off(const struct tm_params *params, unsigned entry);
/* The key's entry; or the one that is to become it; NULL: there is no room. */
struct rl_record *rl_entry(const struct tm_params *params, uint8_t *pm,
			   const uint8_t key[TM_MAX_KEY]);
/* Take the log's first record, whose number the caller has compared, into the table and move the
 * head over it, all of it durable; then say so in words->head, unless it is NULL. If the record is
 * damaged, only the head is moved. 0; -ENOSPC: more keys than the store was made for. */
int rl_collect(const struct tm_params *params, uint8_t *pm, struct rl_words *words);

int rl_format(const struct tm_env *env);
int rl_recover(const struct tm_env *env);
void rl_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int rl_serve(const struct tm_env *env);

/* --- the client --- */

struct rl_client {
	struct tm_params params;
	struct rpc_conn conn;
	struct rpc_conn other; /* flush=read_other_qp; qps=two: for messages */
	struct ibv_qp_ex *qp;  /* conn's */
	bool building;	       /* a batch has begun on it */
	uint64_t next;	    /* the number that the next record has, as far as this client knows */
	uint64_t head;	    /* so far the log has been collected, as far as this client knows */
	struct rl_msg *msg; /* what it appends; the reply of RL_LOOKUP */
	uint32_t chunk;	    /* records that GET reads at once */
	bool found;
};
int rl_open(const struct tm_env *env, void **client);
int rl_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int rl_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int rl_del(void *client, const void *key, size_t klen);

/* The connection for messages. */
struct rpc_conn *rl_messages(struct rl_client *client);
/* What the client's queue pair must be able to do by ibv_wr_*(): IBV_QP_EX_WITH_*. */
uint64_t rl_send_ops(const struct tm_params *params);
/* Length of the connection's buffer: room for data of GETs, then for what a client posts. */
size_t rl_buffer_bytes(const struct rl_client *client);
/* Sleep, at first (*ns is 0) for a microsecond, then longer each time. False: no longer than the
 * last
 * time. */
bool rl_nap(uint64_t *ns);
/* Take the turn to append: client->next is the record's number then. */
int rl_lock(struct rl_client *client);
/* Wait until the log has room for that record. -ENOSPC: it never will. */
int rl_room(struct rl_client *client);
/* Read how far the log has been collected. */
int rl_read_head(struct rl_client *client, uint64_t *head);
/* Let the next one append. Does not wait. */
int rl_unlock(struct rl_client *client);
/* Do the method's steps with client->msg. Returns where the method says "durable". */
int rl_append(struct rl_client *client);

#endif
