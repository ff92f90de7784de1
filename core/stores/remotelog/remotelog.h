/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REMOTELOG_H
#define TM_REMOTELOG_H
/*
 * RemoteLog (RP: the remote persistence taxonomy): a log in the server's PM to which
 * clients append. PUT and DELETE append a record; GET reads the log and takes the
 * newest record of its key. There is nothing else: the store is a bench for the methods
 * by which a remote update, or two updates in order, become durable.
 *
 *	singleton	one update: the record (a). The log ends where a record's checksum
 *			or its number is wrong.
 *	compound	two updates: the record (a), then the tail, 8 bytes (b). b must never
 *			be durable while a is not.
 *
 *	remotelog.c	what it promises, its knobs, its sizes
 *	method.c	the methods, as lists of steps
 *	append.c	the client's part of a method: work requests and waiting
 *	client.c	PUT, DELETE, GET
 *	server.c	what the server does with messages and immediates
 *	recover.c	an empty pool, a pool after a power failure, its check
 *
 * The pool, offsets in bytes:
 *
 *	0	magic
 *	64	tail: how many records the log has (compound; 0 in a singleton's)
 *	128	record 1, record 2, ... of rl_span() bytes each, one per update of the store's life
 *	...	with receive buffers in PM: the message buffers of rpc_server_init_in()
 *
 * Numbers start at 1, so that a zeroed slot is no record.
 *
 * One client appends at a time. A word in the server's DRAM, which clients change by
 * compare-and-swap, is 2 x the next record's number, plus 1 while somebody appends. It
 * is given back by a WRITE behind the append, or, where the client's part ends with a
 * SEND, by the server when it has applied the message. A client that dies in between
 * blocks all others: LIVE is not promised.
 *
 * DUR is about appends. A GET returns what is visible; beside another client's append that
 * need not be durable yet, so MONO is not promised, and with readers beside writers DUR breaks, too.
 */
#include "core/stores/kv.h"
#include "core/stores/rpc.h"
#include "core/tidemark.h"

enum rl_knob { RL_METHOD, RL_FLUSH, RL_CRC, RL_GET, RL_SCAN_BUFFERS, RL_KNOBS };
enum rl_flush { RL_FLUSH_NATIVE, RL_FLUSH_READ, RL_FLUSH_READ_OTHER_QP };

#define RL_MAGIC 0x31474f4c4d52u /* "RMLOG1" */
#define RL_TAIL	 64
#define RL_LOG	 128

enum rl_region { RL_POOL, RL_LOCK }; /* exported */

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

/* An immediate: 2 x the record's number, plus 1 if it is about the tail. */

/* --- methods --- */

enum rl_step {
	RL_END,
	RL_WRITE_A,
	RL_IMM_A, /* WRITE_WITH_IMM */
	RL_WRITE_B,
	RL_FENCED_B, /* WRITE that waits for earlier FLUSHes' completion */
	RL_ATOMIC_B, /* ATOMIC WRITE */
	RL_IMM_B,
	RL_SEND,	 /* of a; compound: of a and b */
	RL_FLUSH_RECORD, /* FLUSH of a's range */
	RL_FLUSH_TAIL,	 /* of b's */
	RL_FLUSH_ALL,	 /* of the whole region */
	RL_WAIT,	 /* for the completion of the step before */
	RL_CALL_A,	 /* SEND(&a), wait for the server's reply */
	RL_CALL_B,	 /* SEND(&b) */
	RL_IMM_CALL_A,	 /* WRITE_WITH_IMM of a, wait for the server's reply */
	RL_IMM_CALL_B,
	RL_SEND_CALL /* SEND of a (and b), wait for the server's reply */
};

/* What the server does with a, and b, that came in a message, or about which it is told. */
enum rl_duty { RL_NOTHING, RL_PERSIST, RL_COPY, RL_COPY_PERSIST, RL_COPY_BOTH_PERSIST };

struct rl_method {
	const char *name;
	bool compound;
	uint8_t duty;	 /* enum rl_duty */
	uint8_t step[6]; /* enum rl_step, ends with RL_END */
};
const struct rl_method *rl_method(const struct tm_params *params);
/* Does the client's part end with a message that carries the record? Then the server gives the lock back. */
bool rl_sends(const struct rl_method *method);

/* --- the pool --- */

static inline unsigned rl_knob(const struct tm_params *params, enum rl_knob knob)
{
	return params->knob[knob];
}
uint64_t rl_span(const struct tm_params *params);
uint64_t rl_log_end(const struct tm_params *params); /* the offset behind the last slot */
size_t rl_msg_bytes(const struct tm_params *params);
static inline uint64_t rl_off(const struct tm_params *params, uint64_t seq)
{
	return RL_LOG + (seq - 1) * rl_span(params);
}

uint32_t rl_crc(const struct rl_record *record);
/* Is this, as far as one can see, the whole record number seq? */
bool rl_intact(const struct tm_params *params, const struct rl_record *record, uint64_t seq);
/* How many records the pool's log has: compound: its tail; singleton: up to the first that is not intact. */
uint64_t rl_count(const struct tm_params *params, const uint8_t *pm);

int rl_format(const struct tm_env *env);
int rl_recover(const struct tm_env *env);
void rl_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int rl_serve(const struct tm_env *env);

/* --- the client --- */

struct rl_client {
	struct tm_params params;
	struct rpc_conn conn;
	struct rpc_conn other; /* flush=read_other_qp */
	uint64_t next;	       /* the number that the next record has, as far as this client knows */
	struct rl_msg *msg;    /* what it appends; the reply of RL_LOOKUP */
	uint32_t chunk;	       /* records that GET reads at once */
	bool found;
};
int rl_open(const struct tm_env *env, void **client);
int rl_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int rl_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int rl_del(void *client, const void *key, size_t klen);

/* Of the connection's buffer: room for the data of GETs, then for what a client posts. */
size_t rl_buffer_bytes(const struct rl_client *client);
/* Become the one who appends: client->next is the record's number then. */
int rl_lock(struct rl_client *client);
/* Let the next one append. Does not wait. */
int rl_unlock(struct rl_client *client);
/* Do the method's steps with client->msg. Returns where the method says "durable". */
int rl_append(struct rl_client *client);

#endif
