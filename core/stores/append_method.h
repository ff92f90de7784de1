/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_APPEND_METHOD_H
#define TM_STORES_APPEND_METHOD_H
/*
 * Methods of appending to a log in remote PM (RP tables 2 and 3), step by step. A store that
 * offers some names them in tm_store.methods; the taxonomy measures them, and works out what each
 * costs.
 *
 * a is the record. b is the log's tail, which a compound method updates after the record.
 */
#include "core/tidemark.h"

enum append_step {
	APPEND_END,
	APPEND_WRITE_A,
	APPEND_IMM_A, /* WRITE_WITH_IMM */
	APPEND_WRITE_B,
	APPEND_FENCED_B, /* WRITE that waits for earlier FLUSHes' completion */
	APPEND_ATOMIC_B, /* ATOMIC WRITE */
	APPEND_IMM_B,
	APPEND_SEND,	      /* of a; compound: of a and b */
	APPEND_FLUSH_RECORD,  /* FLUSH of a's range */
	APPEND_FLUSH_TAIL,    /* of b's */
	APPEND_FLUSH_ALL,     /* of the whole region */
	APPEND_COMMIT_RECORD, /* RDMA Commit of a's range */
	APPEND_COMMIT_TAIL,   /* of b's */
	APPEND_WAIT,	      /* for the completion of the step before */
	APPEND_CALL_A,	      /* SEND(&a), wait for the server's reply */
	APPEND_CALL_B,	      /* SEND(&b) */
	APPEND_IMM_CALL_A,    /* WRITE_WITH_IMM of a, wait for the server's reply */
	APPEND_IMM_CALL_B,
	APPEND_SEND_CALL /* SEND of a (and b), wait for the server's reply */
};
#define APPEND_STEPS 6

/* What the server does with the a and b that a message brought or announced. */
enum append_duty {
	DUTY_NOTHING,
	DUTY_PERSIST,
	DUTY_COPY,
	DUTY_COPY_PERSIST,
	DUTY_COPY_BOTH_PERSIST
};

struct append_method {
	const char *name;
	bool compound;
	uint8_t duty;		    /* enum append_duty */
	uint8_t step[APPEND_STEPS]; /* enum append_step, ends with APPEND_END */
};

/* What a store offers. */
struct tm_append_methods {
	const char *knob; /* its value number i chooses method[i] */
	const struct append_method *method;
	unsigned methods;
	uint32_t request_bytes;				      /* of a message without a record */
	uint32_t record_bytes;				      /* of a record without its value */
	size_t (*tail_bytes)(const struct tm_params *params); /* of b */
};

#endif
