/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_WORKLOAD_WORKLOAD_H
#define TM_SCENARIOS_WORKLOAD_WORKLOAD_H
/*
 * A workload: which client does which operation on which key with which value length, in each
 * client's program order, after a load phase.
 *
 * Where workloads come from: by name (builtin.c, ycsb.c), from a recorded list
 * (ops_file.c), from a trace (the textual form below), from bytes (bytes.c), or built
 * call by call.
 * A workload starts as `struct workload w = {0}` and ends in workload_free().
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "core/rt/choose.h"
#include "core/text/text.h"
#include "core/tidemark.h"

#define WORKLOAD_MAX_CLIENTS 96 /* where only time is measured; else TM_MAX_CLIENTS */
#define WORKLOAD_MAX_KEYS    1024
#define WORKLOAD_MAX_OPS     4096 /* of all clients together; the load phase does not count */

struct workload_key {
	char name[TM_MAX_KEY + 1]; /* printable ASCII, no blanks, no comma, no '#' */
	uint8_t klen;		   /* bytes, 1..TM_MAX_KEY */
	int32_t loaded; /* value length put by the load phase, durable before client 1 starts; -1:
			 * not
			 * loaded */
};

/* Is a PUT, a GET or a DELETE part of a transaction (tm_store.txn)? */
enum workload_txn { TXN_NONE, TXN_FIRST, TXN_NEXT };

struct workload_op {
	uint8_t kind;  /* enum op_kind; not OP_OPEN */
	uint8_t call;  /* OP_CALL: which of the store's own operations; else 0 */
	uint16_t nth;  /* n-th operation of this kind of this client, from 1: its label */
	uint32_t vlen; /* bytes, 0..TM_MAX_VALUE, if workload_op_valued(); else 0 */
	uint16_t same; /* PUT: all of a key with the same number, not 0, write the same bytes; 0:
			  its own */
	uint8_t txn;   /* enum workload_txn; the same one's operations follow each other */
	/* Indices into workload.key, as many as workload_op_keys() says; the others are 0. */
	union {
		uint16_t key;
		uint16_t keys[TM_CALL_KEYS];
	};
};

struct workload {
	char name[64];
	/* The store's list of its own operations, if it has such; it stays the store's. */
	const struct tm_call_type *calls;
	struct workload_key *key;
	unsigned keys;
	struct {
		struct workload_op *op;
		unsigned ops;
	} client[WORKLOAD_MAX_CLIENTS]; /* [0] is client 1; a client without operations is allowed
					 */
	unsigned clients;
};

/* Is it an operation on a key that every store knows? */
static inline bool workload_op_keyed(enum op_kind kind)
{
	return kind == OP_PUT || kind == OP_GET || kind == OP_DEL;
}
/* Number of kinds in a store's list of its own operations, which may be NULL. */
static inline unsigned workload_call_types(const struct tm_call_type *calls)
{
	unsigned n = 0;
	while (calls && calls[n].name)
		n++;
	return n;
}
/* Number of keys that it has. */
static inline unsigned workload_op_keys(const struct workload *w, const struct workload_op *op)
{
	return op->kind == OP_CALL ? w->calls[op->call].keys : workload_op_keyed(op->kind);
}
/* Has it a value? */
static inline bool workload_op_valued(const struct workload *w, const struct workload_op *op)
{
	return op->kind == OP_CALL ? w->calls[op->call].value : op->kind == OP_PUT;
}
/* Frees what *w owns and zeroes it. */
void workload_free(struct workload *w);
/* *to is written, not freed first. 0 or -ENOMEM, *to is then empty. */
int workload_copy(struct workload *to, const struct workload *from);
unsigned workload_ops(const struct workload *w); /* operations of all clients */
/* PUTs, DELETEs and operations of the store's own, the load phase included. */
unsigned workload_updates(const struct workload *w);
unsigned workload_max_vlen(const struct workload *w);
/* Does any client ask for the log to be cleaned? */
bool workload_cleans(const struct workload *w);
/* Has it a transaction of several operations? */
bool workload_transacts(const struct workload *w);
/* Does any client do what only this store can? */
bool workload_has_calls(const struct workload *w);
/* Number of operations that look at a store that has recovered (tm_call_type.looks), besides
 * GETs. */
unsigned workload_looks(const struct workload *w);
/*
 * Add (or find) a key; its index, or -errno (-EINVAL name or loaded, -ENOSPC, -ENOMEM).
 * A key found again is loaded from now on if `loaded` says so; -1 leaves it as it is.
 */
int workload_key_add(struct workload *w, const char *name, size_t len, int32_t loaded);
/* Index of a key, or -ENOENT. */
int workload_key_find(const struct workload *w, const char *name, size_t len);
/*
 * Append an operation to client 1.. (makes the client exist); sets nth. `key`: ignored if the kind
 * has none. 0 or -errno: -EINVAL (client, kind, key, or vlen above TM_MAX_VALUE), -ENOSPC, -ENOMEM.
 */
int workload_op_add(struct workload *w, unsigned client, enum op_kind kind, unsigned key,
		    uint32_t vlen);
/* Likewise, any operation; what it does not have is 0. nth is set. */
int workload_op_append(struct workload *w, unsigned client, const struct workload_op *op);
/* The client's last operation is of one transaction with the one before it. False: it cannot be. */
bool workload_op_join(struct workload *w, unsigned client);
/* Number of operations of the transaction that begins there; 0: none does. */
unsigned workload_txn_size(const struct workload *w, unsigned client, unsigned index);
/* Take away an operation; later ones of its kind are renumbered. */
void workload_op_remove(struct workload *w, unsigned client, unsigned index);
/* Number nth of all operations anew. */
void workload_renumber(struct workload *w);

#define WORKLOAD_MAX_SAME 99
/*
 * The value of a PUT: `vlen` bytes, none of them zero. If there are eight or more no other PUT
 * of any key and client has them; fewer may be those of another PUT, and none say nothing.
 * client 0: the load phase, nth is then the key's index + 1.
 * A pure function; a longer value of the same PUT starts with the shorter one.
 */
void workload_value(unsigned client, unsigned nth, unsigned key, uint8_t *out, uint32_t vlen);
/* Likewise, of a PUT that writes what others of its key with the same number write. */
void workload_value_same(unsigned same, unsigned key, uint8_t *out, uint32_t vlen);
/* What stands for the key in a value of an operation of the store's own: no PUT has it. */
#define WORKLOAD_CALL_KEY(call) (WORKLOAD_MAX_KEYS + (call))

/*
 * Built-in workloads: the small matrix, then YCSB with its default sizes. i from 0;
 * 0, -ENOENT at the end, or -ENOMEM. Nothing is drawn that the name does not fix.
 */
int workload_builtin(unsigned i, struct workload *w);
const char *workload_what(unsigned i); /* one line for `tidemark list`; NULL at the end */
/*
 * By name. "ycsb-a:clients=4,keys=16,ops=200,vlen=256,seed=1" sets a YCSB workload's
 * sizes. -ENOENT: no such name; -EINVAL: the name is right and a parameter is not;
 * -ENOMEM. *expected then says what would be right.
 */
int workload_named(const char *name, struct workload *w, const char **expected);
/*
 * Workloads of what not every store has (calls.c): those that the store brings; those of
 * transactions; then one for each way in which a few of its own operations can follow and meet each
 * other. i from 0; 0, -ENOENT at the end (a
 * store without such operations has none), or -ENOMEM; when the store is loaded also -EINVAL, with
 * what is *expected of one that it brings.
 */
int workload_of_store(const struct tm_store *store, unsigned i, struct workload *w,
		      const char **expected);
extern const struct tm_workload workload_transactions[]; /* ends with .name = NULL */
/* The built-in ones, if the store has put, get and del; then those of its own. As
 * workload_builtin(). */
int workload_for_store(const struct tm_store *store, unsigned i, struct workload *w);

/*
 * Lengths at edges (sizes.c). Gives the keys and values of a workload other lengths, drawn
 * from `seed`: 0, 1, a word's edges, each side of where lines and packets of `mtu` bytes end with
 * what the store puts before a value, sometimes the longest there may be; and often a key's next
 * value is a little shorter, or longer, than its last. All are within the store's limits. Which
 * client does what on which key stays.
 */
void workload_resize(struct workload *w, const struct tm_store *store, unsigned mtu, uint64_t seed);
/* May the store be asked for this? 0; -EINVAL: `expected` says what it can hold; -ENOMEM. */
#define WORKLOAD_EXPECTED 120
int workload_check(const struct workload *w, const struct tm_store *store,
		   char expected[WORKLOAD_EXPECTED]);
/*
 * Bring keys and lengths within the store's limits. The clients that meet stay the same, and so do
 * different keys, and of two lengths the longer one: keys that no operation names go, lengths that
 * are too long are spread below the limit. Where many keys are drawn, several become one. False: it
 * needs more keys than the store takes, and has as many as before.
 */
bool workload_limit(struct workload *w, const struct tm_store *store);
/* The length that is nearest among those that the store takes. */
uint32_t workload_limit_vlen(const struct tm_store *store, uint32_t vlen);
/* Do they ask for the same? Their names do not count. */
bool workload_same(const struct workload *a, const struct workload *b);

/* Has the store all the operations that are asked for? */
bool workload_fits(const struct workload *w, const struct tm_store *store);

/* YCSB (ycsb.c). */
struct ycsb {
	unsigned read_percent; /* the rest are updates */
	unsigned clients;      /* 1..WORKLOAD_MAX_CLIENTS */
	unsigned keys;	       /* 1..WORKLOAD_MAX_KEYS, all loaded */
	unsigned ops;  /* of all clients together, dealt to them in turn; 1..WORKLOAD_MAX_OPS */
	unsigned vlen; /* bytes, 0..TM_MAX_VALUE */
	uint32_t seed;
};
/* The i-th YCSB workload: its name, its one line, its default sizes. NULL at the end. */
const char *ycsb_default(unsigned i, struct ycsb *y, const char **what);
/* Of a mix, "a", "b", "c" or "u": how many percent are reads. False: there is no such. */
bool ycsb_mix(const char *mix, unsigned *read_percent);
/* Read "clients=4,keys=16" into *y. 0, or -EINVAL with *expected. */
int ycsb_parse(struct ycsb *y, const char *text, const char **expected);
/* Draw the operations into an empty *w. 0 or -ENOMEM. */
int ycsb_make(const struct ycsb *y, struct workload *w);

/*
 * From bytes (bytes.c): any `n` bytes are a workload of 1 to 3 clients on 1 or 2 keys;
 * those after the first WORKLOAD_BYTES say nothing. `goings`: GOING_BYTES more, the comings and
 * goings before each operation; or NULL. It does what the store can. Fills an empty *w. 0 or
 * -ENOMEM.
 */
#define WORKLOAD_BYTES 9
#define GOING_BYTES    (WORKLOAD_BYTES - 1)
int workload_from_bytes(struct workload *w, const struct tm_store *store, const uint8_t *bytes,
			size_t n, const uint8_t *goings);

/*
 * A recorded operation list, docs/ops-file.md: one operation a line: client,
 * put|get|del|clean, key, value length; or one of w->calls, with its keys and a length. Fills an
 * empty *w. 0, or -errno with *err
 * filled and *w empty: -EINVAL (bad input), -EIO (reading failed), -ENOMEM.
 */
int workload_read_ops(FILE *in, struct workload *w, struct input_error *err);

/*
 * The form used in traces. "put k1 96, get k1, clean" is one client, and in "T{get k1, put k2 96}"
 * both are of one transaction; "k1 96, k2 -" is the
 * keys, in the order of their indices (a value depends on the index), and what the
 * load phase put. Print writes the rest of the line, without a newline. Parse reads
 * it: 0; -EINVAL, -ENOSPC or -ENOMEM, *expected then says what would be right.
 * After an error *w may hold a part; free it. Blank text: a client without
 * operations, no keys. An operation on a key not named before adds that key, not
 * loaded; so the keys' line, if there is one, comes first.
 */
void workload_print_client(const struct workload *w, unsigned client, FILE *out);
int workload_parse_client(struct workload *w, unsigned client, const char *text,
			  const char **expected);
void workload_print_keys(const struct workload *w, FILE *out);
int workload_parse_keys(struct workload *w, const char *text, const char **expected);

#endif
