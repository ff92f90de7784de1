/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_RFP_H
#define TM_STORES_RFP_H
/*
 * RFP, remote fetching (SV 3.1): requests and answers without SENDs. The client WRITEs its request
 * into the server's memory; the server, which polls that, executes it and leaves the answer in its
 * own memory; the client fetches the answer by READ. What is executed is a PUT, GET or DELETE of
 * the pool of kv_pool.h, persisted before it is answered (kv_place.c, where its commit point is).
 *
 *	client                                 server
 *	  | WRITE payload, WRITE header  -->     | finds the header, takes it
 *	  |                                      | executes, persists
 *	  |                                      | stores payload, then header of the answer
 *	  | READ: not there yet          <--     |
 *	  | READ: there                  <--     |
 *
 * Each connection has two buffers in the server's DRAM, exported as regions, and one in the
 * client's, for answers that the server WRITEs. Their form is one:
 *
 *	0x00 u32 bit 0 "there is one"; bits 1..31 bytes of payload
 *	0x04 u16 request: how it is to be answered (enum rfp_mode)
 *		 answer: how long the server took, us
 *	0x06 u16 number: of the client's requests, and of the one that this answers
 *	0x08 ... payload. Request: struct kv_req, then a PUT's value
 *			  Answer: i32 status, u32 zero, then a GET's value
 *
 * The header is one word. It lands, or is stored, after the payload. So code that sees it sees all.
 *
 * Fetching costs the server no request of its own. But while it takes long the client fetches in
 * vain: after RFP_FETCHES of them it changes the mode in its request buffer, and the server WRITEs
 * the answer (the hybrid switch). Neither knows when the other looks:
 *
 *	client	WRITE the mode		server	store the answer's header
 *		READ the answer			load the mode
 *
 * Each does the first before the second, so at least one sees what the other has done: the client
 * has its answer, or the server sends it. If both do, the second one's number is old by then.
 *
 *	server.c	what the server does
 *	client.c	what clients do
 *	rfp.c		the store: knobs, variants, what it promises
 */
#include "core/stores/kv_place.h"
#include "core/stores/kv_slots.h"

/* The exported regions; a connection's buffer is at its number. */
#define RFP_REQUESTS 0
#define RFP_ANSWERS  1

#define RFP_FETCHES  2 /* in vain: then the client asks to be written to */
#define RFP_SHORT_US 2 /* an answer that took no longer: it fetches the next one again */

enum { CROWD = KV_CROWD, PUT_REPLY, FETCH, REQUEST, FRESH, HYBRID, PERSIST, BUG, KNOBS };
enum { PUT_REPLY_FETCH, PUT_REPLY_WRITE };
enum { REQUEST_TWO_WRITES, REQUEST_ONE_WRITE };
enum { FRESH_NUMBER, FRESH_CLEAR, FRESH_TAKEN };
enum { HYBRID_ON, HYBRID_OFF };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define RFP_BUGS(X)                                                                                \
	X(status_first, "", RDA, "an answer's header is stored before its payload")                \
	X(no_second_read, "", RDA,                                                                 \
	  "what of an answer the first READ does not take is not fetched")                         \
	X(header_first, "", RDA | LIN,                                                             \
	  "a request's header is written, with what is in its line, before the rest")              \
	X(written_header_first, " put_reply=write", RDA | LIN | OK,                                \
	  "the server writes an answer's header before its payload")                               \
	X(mode_early, "", LIVE, "the server looks at the mode before it executes")                 \
	X(switch_blind, "", LIVE,                                                                  \
	  "the client does not fetch once more when it has changed the mode")                      \
	X(number_unchecked, "", RDA | LIN | DUR | OK,                                              \
	  "the client takes whatever answer is in the buffer, the one before, too")                \
	X(answers_shared, "", RDA | LIN | DUR | OK, "one buffer has the answers for all clients")  \
	X(buffers_kept, "", LIN | RDA | OK | DUR,                                                  \
	  "a client that comes back finds its former self's answer")                               \
	X(answer_early, "", LIN | DUR | RDA, "a request is answered before it is executed")        \
	X(value_unflushed, "", RDA | DUR, "only the entry is flushed")                             \
	X(entry_first, "", RDA, "the entry names the value, durably, before the value is durable") \
	X(delete_unflushed, "", DUR, "a DELETE is not flushed")                                    \
	X(mode_first, "", LIVE,                                                                    \
	  "the server looks at the mode just before it stores an answer's header, not after")
enum { NO_BUG, RFP_BUGS(KV_BUG_VALUE) };

enum rfp_mode { RFP_FETCH, RFP_WRITE };

/* --- buffers --- */

#define RFP_HEADER 8 /* bytes, at a buffer's start */
#define RFP_MODE   4 /* where in it the mode is */

struct rfp_header {
	bool there;
	uint32_t size;	     /* of the payload, bytes */
	uint16_t mode_or_us; /* enum rfp_mode; us */
	uint16_t number;
};

struct rfp_answer {
	int32_t status; /* 0 or -errno */
	uint32_t zero;
};

static inline uint64_t rfp_word(const struct rfp_header *h)
{
	return (uint64_t)h->there | (uint64_t)h->size << 1 | (uint64_t)h->mode_or_us << 32 |
	       (uint64_t)h->number << 48;
}

static inline struct rfp_header rfp_header(uint64_t word)
{
	return (struct rfp_header){word & 1, (uint32_t)word >> 1, (uint16_t)(word >> 32),
				   (uint16_t)(word >> 48)};
}

/* Bytes of a buffer for the largest request or answer: whole lines, so that no two share one. */
static inline size_t rfp_request_bytes(const struct tm_params *params)
{
	return kv_round_up(RFP_HEADER + sizeof(struct kv_req) + params->max_vlen, TM_LINE);
}

static inline size_t rfp_answer_bytes(const struct tm_params *params)
{
	return kv_round_up(RFP_HEADER + sizeof(struct rfp_answer) + params->max_vlen, TM_LINE);
}

_Static_assert(RFP_HEADER + sizeof(struct kv_req) == TM_LINE, "a PUT's value begins on a line");

/* tm_store's functions of these names. */
int rfp_serve(const struct tm_env *env);
int rfp_open(const struct tm_env *env, void **out);
int rfp_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int rfp_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int rfp_del(void *client, const void *key, size_t klen);

#endif
