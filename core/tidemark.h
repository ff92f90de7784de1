/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIDEMARK_H
#define TIDEMARK_H
/*
 * What a store plugs in.
 *
 * A store is plain C against <infiniband/verbs.h>, <libpmem.h> and
 * "core/rt/rt.h" (tasks, clock, connecting).  It describes itself with one
 * `struct tm_store`; everything else in Tidemark knows a store only through
 * that description.  docs/own-store.md walks through a small one.
 *
 * Rules for store code, each checked by a test for the stores that ship here:
 *   - no writable static data: two simulated machines share the process;
 *   - no addresses in messages or in PM: offsets mean the same after a reboot;
 *   - PM is read and written by the store's own compiled code and the library
 *     functions of core/stores/sim.syms, not by others, which the tracer cannot
 *     see;
 *   - memory comes from malloc/calloc/free; a power failure takes it all away.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/calls.h"

struct ibv_context;
struct tm_append_methods;

/*
 * The promises that a store can make about what clients see. A row is the contract's name, when
 * and how it is judged, and what it says. Whatever has to know all contracts is made from these
 * rows. docs/contracts.md has an example of each, checker/judge/contracts.c the definitions.
 */
#define TM_CONTRACT_ROWS(X)                                                                      \
	X(RDA, TM_IN_RUN | TM_AFTER_CRASH | TM_ON_MACHINE | TM_KEYED,                            \
	  "a GET returns one PUT's whole value, or not-found; never a mix, never another key's " \
	  "bytes")                                                                               \
	X(LIN, TM_IN_RUN | TM_ON_MACHINE | TM_NAMES_MISSED | TM_MODELLED,                        \
	  "linearizable while nothing crashes")                                                  \
	X(DUR, TM_AFTER_CRASH | TM_ON_MACHINE | TM_IF_LIN | TM_NAMES_MISSED | TM_MODELLED,       \
	  "an acknowledged PUT or DELETE survives any later power failure")                      \
	X(BUF, TM_AFTER_CRASH | TM_IF_LIN | TM_MODELLED,                                         \
	  "after a power failure the state is some prefix of the real-time order")               \
	X(MONO, TM_AFTER_CRASH | TM_ON_MACHINE | TM_NAMES_MISSED | TM_KEYED,                     \
	  "a value read before the power failure is still there, or a newer one")                \
	X(KEEP, TM_AFTER_CRASH | TM_ON_MACHINE | TM_NAMES_MISSED | TM_KEYED,                     \
	  "a version that was durable and current is not replaced by an older one")              \
	X(NORES, TM_IN_RUN | TM_AFTER_CRASH | TM_ON_MACHINE | TM_KEYED,                          \
	  "what was deleted, or reported as failed, does not come back")                         \
	X(OK, TM_IN_RUN | TM_AFTER_CRASH,                                                        \
	  "an operation fails only for a reason that was injected")                              \
	X(ATOM, TM_IN_RUN | TM_AFTER_CRASH | TM_KEYED | TM_TRANSACTED,                           \
	  "of what one transaction wrote all is visible or nothing")                             \
	X(SSER, TM_IN_RUN | TM_KEYED | TM_TRANSACTED,                                            \
	  "transactions are strictly serializable while nothing crashes")                        \
	X(DURN,                                                                                  \
	  TM_IN_RUN | TM_AFTER_CRASH | TM_IF_LIN | TM_NAMES_MISSED | TM_MODELLED | TM_SEVERAL,   \
	  "as DUR, when a server is lost for good")                                              \
	X(FENCE, TM_IN_RUN | TM_AFTER_CRASH | TM_KEYED | TM_SEVERAL,                             \
	  "what a server does after it was left out is never read")                              \
	X(LIVE, TM_BY_RUNNING,                                                                   \
	  "every operation ends, also when the newest version's writer is dead")                 \
	X(FSCK, TM_BY_RUNNING, "the store's own structural check passes after recovery")         \
	X(AGREE, TM_BY_RUNNING | TM_KEYED | TM_SEVERAL,                                          \
	  "members with a copy of a key have the same, once nothing is under way")               \
	X(OWN, TM_IN_RUN | TM_AFTER_CRASH, "what the store's own judge asks of a history")

enum tm_judged {
	TM_IN_RUN = 1,	      /* from the history of a run in which the power has not failed */
	TM_AFTER_CRASH = 2,   /* from the history with what is read after a power failure */
	TM_ON_MACHINE = 4,    /* from what clients of a real machine have recorded */
	TM_IF_LIN = 8,	      /* only where LIN holds: else it would prove nothing */
	TM_NAMES_MISSED = 16, /* the verdict names the version that an answer misses */
	TM_BY_RUNNING = 32,   /* not from a history: it shows while the store runs */
	TM_KEYED = 64,	      /* of keys and values: not judged of a store's own operations, */
	TM_MODELLED = 128,    /* and this of them by the store's model alone */
	TM_TRANSACTED = 256,  /* of transactions: only where the store has such (tm_store.txn) */
	TM_SEVERAL = 512,     /* only where the store has several servers (tm_store.servers) */
};

enum tm_contract {
#define X(name, judged, what) TM_##name,
	TM_CONTRACT_ROWS(X)
#undef X
		TM_CONTRACTS
};
#define TM_BIT(contract) (1u << (contract))

#define TM_LINE	       64 /* bytes that a CPU writes back at once */
#define TM_MAX_KNOBS   32
#define TM_MAX_CLIENTS 16    /* of what is searched; tm_params.clients may be more */
#define TM_MAX_KEY     32    /* bytes */
#define TM_MAX_VALUE   65536 /* bytes */

/* A knob of a store. `values` are separated by single spaces; the first is
 * the default. Listed by `tidemark list`, set by `--knob name=value`. */
struct tm_knob {
	const char *name;
	const char *values;
	const char *what; /* one sentence */
};

/* A named set of knob values: a reading of the paper, or a seeded bug. */
struct tm_variant {
	const char *name;
	const char *knobs; /* "name=value name=value" */
	const char *what;  /* one sentence: what it is, or what it breaks */
	unsigned breaks;   /* contracts (TM_BIT) of which a seeded bug breaks at least one; 0: not a
			      bug */
};

/* What travels or lies together with a value: where lines and packets end is a matter of the sum
 * of both lengths. */
struct tm_overhead {
	const char *what; /* "object" */
	uint16_t bytes;	  /* before the value */
	bool key;	  /* ... and then the key, without padding */
};

/* A column of the default campaign besides those of the hardware: a shape of the store's pool or
 * its machine that other runs do not have. */
struct tm_shape {
	const char *name; /* variants that are no bugs, and hardware as "name=value", with '+'
			     between them; no other column's */
	unsigned share; /* it gets one in so many of the campaign's runs and states; 0: one in 20 */
	const char *often; /* a workload whose name begins so gets them all; NULL: none does */
};

/* Why an operation of a client may fail. What explains an error of any store, whatever its design:
 * the first three, and the last. The others explain those errors alone that the store declares. */
enum tm_reason {
	TM_LINK_LOST = 1,   /* packets of the client's link were lost, more often than they are
			       repeated */
	TM_CALL_FAILED = 2, /* a call of the client's host, or of the server, was told to fail */
	TM_DROPPED = 4,	    /* something was held up, and the server has said that it has closed the
			       client's connections (rt_client_dropped()) */
	TM_PEER_FAILED = 8, /* another client has died, or its link or a call of it has failed */
	TM_DISTURBED = 16,  /* a task or a packet was held up, or a packet lost or doubled */
	TM_ALWAYS = 32,	    /* none is needed */
	TM_SERVER_DIED = 64, /* the server's process has died since the client connected */
};

/* An error that operations of a store return by its design. */
struct tm_error {
	int error;	     /* -errno; -ETIMEDOUT stands for an operation that never ends, too */
	unsigned operations; /* enum tm_operation, bits */
	unsigned reasons;    /* enum tm_reason, bits: one of these must have come first */
	const char *why;     /* one sentence */
};

/* What each client does: "enqueue 8, dequeue" is a client's program. A key is named when it is
 * first used, and `keys` says what the load phase puts: "k1 40, k2 -" (docs/own-operations.md). */
struct tm_workload {
	const char *name;      /* as Tidemark's own: letters, digits, '-' and '.' */
	const char *keys;      /* NULL: none is loaded */
	const char *client[3]; /* NULL: there is no such client */
	const char *what;      /* one line */
};

/* A named part of the PM pool; names lines in traces and reports. */
struct tm_region {
	const char *name;
	uint64_t off, len; /* bytes from the pool's start */
};

/* The size that a store must have, and the values of its knobs. */
struct tm_params {
	unsigned clients;  /* connections over the store's life, recovery's readers included */
	unsigned keys;	   /* distinct keys */
	unsigned updates;  /* PUTs and DELETEs over the store's life: enough room for all of them */
	unsigned later;	   /* of these, so many are for clients of a store that has recovered */
	unsigned max_vlen; /* longest value, bytes */
	/* Of several servers: of which one, from 0, where pm_bytes() and regions() are asked, and
	 * what a server has as tm_env.params. */
	unsigned server;
	bool rqwrb_pm; /* the machine has its receive buffers in PM: a store that can, does so */
	uint8_t knob[TM_MAX_KNOBS]; /* index into the knob's values, by position in
				     * tm_store.knobs */
};

/* What a server or a client is started with. */
struct tm_env {
	const struct tm_params *params;
	struct ibv_context *verbs; /* this host's RNIC */
	unsigned client;	   /* 1.. for a client, 0 for the server */
	uint8_t *pm;		   /* server: the mapped pool, 64-byte aligned; client: NULL */
	size_t pm_len;		   /* bytes; tm_store.pm_bytes(params) */
	unsigned server;	   /* of several servers: this one's number, from 0 */
	unsigned servers;	   /* how many there are */
};

/* A structural check says what it found through this, one call a defect. */
struct tm_fsck {
	void (*bad)(struct tm_fsck *fsck, const char *fmt, ...)
		__attribute__((format(printf, 2, 3)));
};

/* What the bytes of a pool are, one call a field. Where fields overlap, the last call counts. */
struct tm_fields {
	/* [off, off + len) of the pool is one field, which has `paper` bytes in the paper's
	 * layout. */
	void (*field)(struct tm_fields *fields, const char *name, uint64_t off, uint64_t len,
		      uint64_t paper);
};

/* A server's copy of a key's value, and the version that it has there (0: it has none). */
struct tm_dump {
	uint8_t *value; /* at most cap bytes are written */
	size_t cap, vlen;
	uint64_t version;
};

/*
 * All functions run on a task of the runtime and may block in rt_yield().
 * They return 0 or -errno. Where a signature has no comment, see docs/own-store.md.
 */
struct tm_store {
	const char *name;
	const char *what;	  /* one line, with the paper */
	unsigned promises;	  /* TM_BIT()s */
	bool in_default_campaign; /* tested when no store is named */
	/* What fsck asks for holds of a pool that is being served, too, once no operation is under
	 * way and all that was written has landed. Then it runs at the end of each life as well. */
	bool fsck_at_rest;
	/* It needs what iWARP does not have: unreliable connections, or datagrams. */
	bool infiniband;
	/* Its server looks for requests in memory, and naps when there have been none. Costs are
	 * those of an operation that finds it awake. */
	bool naps;
	/* How many servers it has at most, each with a pool of its own: core/rt/config.h. Their
	 * pools may differ in size and in regions (tm_params.server). 0: one. */
	unsigned servers;
	/* Of three or more so many may be lost at once, before the others have left one out. 0:
	 * one. */
	unsigned losses;
	const struct tm_knob *knobs;	   /* ends with .name = NULL */
	const struct tm_variant *variants; /* ends with .name = NULL; "default" is implied */
	/* Ends with .what = NULL; a value alone is implied. NULL: there are none. Lengths are drawn
	 * so that values with these end at and beside the ends of lines and packets. */
	const struct tm_overhead *overheads;
	/* What it can hold: lengths of values, bytes, and distinct keys. No campaign asks for
	 * more. 0: no limit of its own. */
	uint32_t min_vlen, max_vlen, max_keys;
	const struct tm_shape *shapes; /* ends with .name = NULL; NULL: none */
	const struct tm_error *errors; /* ends with .error = 0; NULL: none */

	size_t (*pm_bytes)(const struct tm_params *params); /* rounded up to a multiple of 64 */
	/* Fills at most `max` regions, returns how many there are. Without any, the whole pool is
	 * one, "pool". */
	unsigned (*regions)(const struct tm_params *params, struct tm_region *out, unsigned max);

	/* Make an empty, durable store in a zeroed pool. */
	int (*format)(const struct tm_env *env);
	/* Bring a pool that a power failure has left into a servable state. */
	int (*recover)(const struct tm_env *env);
	/* Register memory, take connections (rt_listen), start the server's tasks; returns. */
	int (*serve)(const struct tm_env *env);
	/* Check a pool that has been recovered, or see fsck_at_rest; read only. */
	void (*fsck)(const struct tm_env *env, struct tm_fsck *fsck);

	/* How many servers there are with these knobs: at least two, at most .servers. NULL: always
	 * as many. */
	unsigned (*servers_of)(const struct tm_params *params);
	/* Several servers: this one's copy of the key, read only, when nothing is under way.
	 * -ENOENT: its copy says that there is no value; -ENODATA: it holds no copy of this key.
	 * NULL: AGREE is not judged. */
	int (*dump)(const struct tm_env *env, const void *key, size_t klen, struct tm_dump *out);

	/* A client: connect, and the three operations, or none of them (`calls`). A client has one
	 * operation at a time. put and del return 0 when acknowledged to the caller. */
	int (*open)(const struct tm_env *env, void **client);
	int (*put)(void *client, const void *key, size_t klen, const void *value, size_t vlen);
	/* -ENOENT: not found. *vlen: the value's length; at most cap bytes are copied. */
	int (*get)(void *client, const void *key, size_t klen, void *value, size_t cap,
		   size_t *vlen);
	int (*del)(void *client, const void *key, size_t klen);
	/* Several GETs, PUTs and DELETEs in one transaction: ATOM and SSER are judged of it. It
	 * returns 0 when it is committed, or aborted; -errno: it may have been done, or not. NULL:
	 * the store has no transactions. */
	int (*txn)(void *client, struct tm_txn *txn);
	/* Ask the server to clean its log now, whatever room there is. Returns when it has agreed;
	 * cleaning goes on by itself. A store that says -EALREADY while it is at it declares that
	 * in `errors`. NULL: the store has no log cleaning. */
	int (*clean)(void *client);
	/* Operations of the store's own; ends with .name = NULL. NULL: it has none. */
	const struct tm_call_type *calls;
	/* Their workloads besides those that Tidemark makes; ends with .name = NULL. NULL: none. */
	const struct tm_workload *workloads;
	/* What they mean, put, get and del included; NULL: only `judge` knows. */
	const struct tm_model *model;
	/* The contract OWN: say what is broken, if anything is. NULL: it has none. */
	void (*judge)(const struct tm_history *history, struct tm_judgement *judgement);
	/* Name the fields of the pool as it is, read only: `tidemark count` then gives what was
	 * written in the sizes of the paper, too (docs/count.md). NULL: the paper has no such
	 * figures. */
	void (*fields)(const struct tm_env *env, struct tm_fields *fields);
	/* Methods of making an append durable that the store can be told to use
	 * ("core/stores/append_method.h"): `tidemark taxonomy` measures them. NULL: it has one
	 * way. */
	const struct tm_append_methods *methods;
};

#endif
