/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_RECORDING_H
#define TM_CHECKER_LIVE_RECORDING_H
/*
 * What live clients did and saw, in a file that they map: it is complete up to the last
 * instruction of a client that is killed, and of a guest that loses its power, if the
 * file is an NVDIMM's. A page of text, then records of RECORDING_OP bytes:
 *
 *	tidemark-recording 1
 *	room 100000		(records in this file)
 *	...			what recording_set_text() was given: as scenarios/live_store.h
 *
 * A record is written when the operation is invoked; `returned_ns` last of all, when it
 * returns. Times are CLOCK_MONOTONIC of the machine where the clients run: recordings of one
 * machine can be put together, those of several cannot.
 */
#include <stddef.h>
#include <stdint.h>
#include "checker/judge/history.h"

#define RECORDING_OP 64 /* bytes */

/* got: of a GET. put: the PUT's own id. scenarios/live_store.h */
struct recording_op {
	uint64_t invoked_ns;  /* 0: this record is not used */
	uint64_t returned_ns; /* 0: has not returned */
	uint64_t value;	      /* PUT: its id; GET: the id of the PUT whose value it returned */
	uint32_t key;
	uint32_t boot; /* of the server, when the session began */
	int32_t error; /* 0 or -errno */
	uint32_t vlen; /* bytes; GET: of what it returned */
	uint16_t client;
	uint8_t kind;  /* enum history_kind */
	uint8_t found; /* GET without error: 0 not found, 1 a value, 2 bytes that no PUT of this key
			  wrote */
	/* If the operation failed: what was injected until then, and the first completion with an
	 * error (core/live/injected.h). */
	uint8_t says;	  /* enum recording_says */
	uint8_t gone;	  /* the server did not answer any more */
	uint16_t dropped; /* the server had closed the client's connections so often */
	uint16_t calls, server_calls;
	uint32_t vendor; /* of the completion */
	uint16_t links, server_links, departed;
	uint8_t status, posted;
};
_Static_assert(sizeof(struct recording_op) == RECORDING_OP, "a fixed layout");

/* Recordings of an older Tidemark say nothing of failures, or nothing of completions; `calls` and
 * `server_calls` of the latter have four bytes each. */
enum recording_says { SAYS_NOTHING, SAYS_INJECTED, SAYS_ALL };

/* What is wrong with a record that is used: what was expected. NULL: nothing. */
const char *recording_op_wrong(const struct recording_op *op);

struct recording;
/* To write: a file (made, with room for `ops`) or a devdax device (all of it is room), whose old
 * records are wiped. 0 or -errno. */
int recording_create(struct recording **out, const char *path, uint64_t ops);
int recording_set_text(struct recording *r, const char *text);
void recording_close(struct recording *r);
/* The next free record, from any thread; NULL: the file is full. */
struct recording_op *recording_next(struct recording *r);
/* The caller has filled the rest; takes the time. */
void recording_invoke(struct recording_op *op);
/* Likewise; of a GET `value`, `found` and `vlen`. */
void recording_return(struct recording_op *op, int error);

/* To read: a file, which may be an NVDIMM's backing file, or a devdax device. 0 or -errno, *why a
 * sentence. */
int recording_open(struct recording **out, const char *path, char *why, size_t n);
const char *recording_text(const struct recording *r); /* as it was set */
/* Up to the last that is used; each that is has been checked. */
const struct recording_op *recording_ops(const struct recording *r, uint64_t *n);

#endif
