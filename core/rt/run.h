/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_RUN_H
#define TM_RT_RUN_H
/*
 * What code outside of the scheduler sees of a run: its clock, how it is explored, and its event
 * hash, all of which hot paths use at every step; and the kinds of events of a trace.
 */
#include "core/rt/choose.h"

struct profile; /* core/hardware/profile.h */

struct run_state {
	uint64_t now;	/* ns */
	bool plain;	/* every choice is answered with 0: none need be asked */
	bool scheduled; /* a struct scheduler says what comes next, not the clock */
	bool traced;
	bool calls_fail;	    /* failure points are choices; else no call is made to fail */
	const struct profile *cost; /* of what takes time */
	uint64_t hash;		    /* of what has happened so far: equal runs have equal hashes */
};

/* Into the event hash. */
static inline void run_mix(struct run_state *run, uint64_t a, uint64_t b)
{
	run->hash = (run->hash ^ (a * 0x9e3779b97f4a7c15u + b)) * 0xd6e8feb86659fd93u;
	run->hash ^= run->hash >> 29;
}

enum traced_kind {
	TRACED_WORDS, /* only that */
	TRACED_CALL,  /* an operation begins; it returns */
	TRACED_RETURN,
	TRACED_STORE, /* the CPU stores to PM, loads from it, flushes */
	TRACED_LOAD,
	TRACED_FLUSH,
	TRACED_FENCE, /* and what the task flushed is durable */
	TRACED_LAND,  /* the NIC writes to PM, reads it. code: for which operation (opcode.h) */
	TRACED_FETCH,
	TRACED_EFFECT,	 /* a FLUSH or Commit of these bytes takes effect, or a READ or an atomic of
			    other memory. code: as above */
	TRACED_DRAIN,	 /* bytes from the NIC become durable without the CPU. code: as above */
	TRACED_SURVIVED, /* the first touch of a line that the power failure left undecided */
	TRACED_POST, /* a task has posted a request. code: enum ibv_wr_opcode; off: is it fenced? */
	TRACED_TAKEN,	/* a task has taken a completion. code: enum ibv_wc_opcode */
	TRACED_PACKET,	/* a packet goes on the wire. len: all its bytes there; code: enum opcode */
	TRACED_CHECK,	/* rt_check(). code: does it hold? */
	TRACED_REFUSED, /* a call of the store returns an error */
	TRACED_FAILED,	/* a request has ended with an error. code: enum ibv_wc_status */
	TRACED_KINDS
};

/* An event of a trace, besides its words. */
struct traced {
	uint8_t kind; /* enum traced_kind */
	uint16_t occurrence;
	struct op_label op; /* kind 0: the one that the actor works for */
	uint64_t off, len;  /* bytes of the pool */
	uint8_t code;
	bool failed; /* a compare-and-swap does not write; a FLUSH is for visibility alone */
	uint64_t id; /* of a message: the same in all its events; 0: no message */
};

#endif
