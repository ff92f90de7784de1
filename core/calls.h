/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CALLS_H
#define TM_CALLS_H
/*
 * What a store can do besides put, get and del, and how it is judged: a queue, a log, a counter,
 * or a key-value store with scans and transactions. docs/own-operations.md walks through a queue.
 *
 * A store lists its own operations (struct tm_call_type). It says what they mean by a model, a
 * state that each operation changes when it takes effect (struct tm_model): then Tidemark judges
 * LIN, DUR and BUF of them. What a model cannot say, a function judges that gets the whole history
 * (tm_store.judge): it is the contract OWN.
 *
 * Models and judges are the store's own code, called when nothing of the store runs. They may use
 * memory and static data; neither outlives the call.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tm_params;
struct tm_call_type;

#define TM_CALL_TYPES  16   /* operations of a store's own, at most */
#define TM_CALL_KEYS   3    /* keys of one of them, at most */
#define TM_MAX_ANSWER  4096 /* bytes */
#define TM_MODEL_BYTES 2048 /* of a model's state, at most */

enum tm_operation {
	TM_PUT = 1,
	TM_GET = 2,
	TM_DEL = 4,
	TM_OPEN = 8,
	TM_CLEAN = 16,
	TM_CALL = 32, /* one of the store's own */
};

/* What an operation is asked for. The memory is the caller's. */
struct tm_call {
	struct {
		const char *name; /* ends with a zero */
		size_t len;
	} key[TM_CALL_KEYS]; /* as many as it takes */
	/* If it takes a value; no other operation has the same one, if it has 8 bytes or more. */
	const void *value;
	size_t vlen;
};

#define TM_TXN_OPS 8 /* operations of one transaction, at most */

/* One operation of a transaction. A key may be named more than once: the transaction reads what it
 * has put there itself, and leaves what it put last. */
struct tm_txn_op {
	bool put;	 /* else it is a GET, or */
	bool del;	 /* a DELETE */
	const void *key; /* all memory is the caller's */
	size_t klen;
	const void *value; /* of a PUT; no other PUT has it, if it has 8 bytes or more */
	/* PUT: the value's length. GET: the answer's, set by the store; at most `cap` bytes are
	 * copied. */
	size_t vlen;
	void *answer;
	size_t cap;
	bool found; /* GET: set by the store, if the key has a value */
};

/* What a client wants to be done at once, or not at all. */
struct tm_txn {
	unsigned ops;
	struct tm_txn_op op[TM_TXN_OPS];
	/* Set by the store: nothing of it has been done, and nothing ever will. That is an answer
	 * of the store's, and no error. */
	bool aborted;
};

/* What an operation says. Zeroed when the operation is called. */
struct tm_answer {
	size_t len; /* bytes; at most TM_MAX_ANSWER */
	uint8_t bytes[TM_MAX_ANSWER];
};

/* An operation of the store's own. */
struct tm_call_type {
	/* Small letters and '_', at most 16; not put, get, del, clean, leave, die, pause, same. */
	const char *name;
	const char *what; /* one line */
	unsigned keys;	  /* how many it takes, at most TM_CALL_KEYS */
	bool value;	  /* it takes a value */
	/* The reader of a store that has recovered calls it (one that takes a key: with each),
	 * after a GET of each key, if the store has GETs. What these answer is what Tidemark knows
	 * of the recovered state. They may change the store, if its model says so. */
	bool looks;
	/* On a client's task. 0, with the answer, whatever that is ("the queue is empty" is an
	 * answer); -errno: it failed, and may have taken effect or not. */
	int (*run)(void *client, const struct tm_call *call, struct tm_answer *answer);
};

/* One operation as it took place. */
struct tm_event {
	enum tm_operation operation;	 /* TM_PUT, TM_GET, TM_DEL or TM_CALL */
	const struct tm_call_type *type; /* of TM_CALL; else NULL */
	struct tm_call call;
	/* 1..: a client of the workload; 0: the load phase; above tm_history.clients: the reader of
	 * a store that has recovered. */
	unsigned client;
	unsigned life; /* power failures that came before */
	/* Moments, from 0: each begin and each end of an operation has one of its own, and each
	 * power failure. `ended` -1: it had not ended when the power failed, or its client died. */
	int begun, ended;
	/* It has ended and said what became of it: `error` 0; or of GET and DEL -ENOENT, there is
	 * no such key. */
	bool answered;
	int error;	       /* 0 or -errno */
	const uint8_t *answer; /* of TM_CALL; of TM_GET the value */
	size_t len;	       /* bytes */
};

/* What all clients saw, in the order in which the operations began. */
struct tm_history {
	const struct tm_event *event;
	unsigned events;
	unsigned failures; /* of the power */
	const int *failed; /* the moment of each */
	unsigned clients;
	const struct tm_params *params;
};

/* What operations mean, one after the other. */
struct tm_model {
	size_t bytes; /* of a state, at most TM_MODEL_BYTES; equal states have equal bytes */
	/* The state of an empty store, into zeroed `state`. NULL: zeros are that. */
	void (*init)(void *state, const struct tm_params *params);
	/*
	 * The operation takes effect: change the state. False: in this state it cannot have given
	 * this answer. If it is not `answered` any answer may have been given, and false says that
	 * the state stays as it is, too.
	 */
	bool (*apply)(void *state, const struct tm_event *event);
};

struct tm_judgement {
	/* This broke. `event`: the number of the one that shows it, or -1. The first that is told
	 * counts. */
	void (*broken)(struct tm_judgement *judgement, int event, const char *fmt, ...)
		__attribute__((format(printf, 3, 4)));
};

#endif
