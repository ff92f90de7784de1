/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_FAULTS_H
#define TM_PROVIDER_BASE_FAULTS_H
/*
 * Fault injection on a live link: rules in a small language, and what they do to each packet.
 *
 *	rules     = rule { ";" rule }
 *	rule      = [ "out" | "in" | "both" ] action { condition }
 *	action    = "lose" | "drop" | "duplicate" | "reorder" [ "by" N ] | "corrupt"
 *		  | "delay" TIME [ "jitter" TIME ] | "rate" RATE | "partition"
 *		  | "tear" [ "at" N ] | "off"
 *	condition = PERCENT "%" | kind [ N ] | "packet" N | "qp" N
 *		  | "peer" ( ADDRESS | N ) | "after" ( N "packets" | TIME )
 *		  | "for" TIME | "times" N | "once"
 *	kind      = "send" | "write" | "read" | "response" | "atomic" | "flush"
 *		  | "atomic_write" | "commit" | "commit_payload" | "ack" | "nak"
 *
 * docs/nic/guide.md explains it. A rule hits a packet for which all its conditions hold. Messages
 * are numbered from 1 for each kind, over the whole process, or with "qp" over that queue pair. A
 * rule that names the number of a message or packet hits its first transmission; retransmissions
 * pass, unless "times" includes them.
 *
 * A rule has a random generator for each direction, and draws from it once for each packet that
 * meets its other conditions. So the same seed, rules and packets give the same faults.
 */
#include "core/rnic/transport/packet.h"

#define FAULT_RULES  32
#define FAULT_FLOWS  64		/* directions of queue pairs whose messages are counted at a time */
#define FAULT_ALWAYS UINT32_MAX /* odds */
#define FLOW_RECENT  16		/* messages of a flow whose packets may come again */

enum fault_action {
	FAULT_LOSE,
	FAULT_DUPLICATE,
	FAULT_REORDER,
	FAULT_CORRUPT,
	FAULT_DELAY,
	FAULT_RATE,
	FAULT_PARTITION,
	FAULT_TEAR
};

enum fault_direction { FAULT_OUT, FAULT_IN };

struct fault_rule {
	enum fault_action action;
	unsigned directions; /* bits */
	uint32_t odds;	     /* out of 2^32 - 1, which means always */
	enum op_class what;
	uint32_t message, packet; /* numbers from 1; 0: any */
	bool has_qp, has_peer;
	uint32_t qp, peer;
	uint64_t after_packets, after_ns, for_ns; /* 0: at once; for ever */
	uint64_t times;				  /* 0: for ever */
	uint64_t amount, jitter; /* packets, ns, bit/s or bytes, as the action has it */
	/* The state and the hits, by direction. */
	uint64_t random[2], seen[2], hits[2], free_at[2];
};

struct fault_flow {
	bool used;
	uint8_t direction, answers;
	uint32_t src, dest, peer;
	uint32_t last; /* the highest sequence number seen */
	uint32_t count[CLASS_COUNT];
	struct {
		uint32_t psn, number, number_in_flow;
	} recent[FLOW_RECENT];
	unsigned recents;
};

struct faults {
	unsigned rules, flow_cursor;
	bool numbers; /* a rule asks for them */
	uint64_t since;
	uint32_t count[2][CLASS_COUNT];
	struct fault_rule rule[FAULT_RULES];
	struct fault_flow flow[FAULT_FLOWS];
};

/* What is done to a packet. */
struct fault_fate {
	bool lost, corrupt, tear;
	unsigned copies;  /* copies in addition to the packet */
	unsigned hold;	  /* until so many other packets have passed */
	uint32_t bit;	  /* corrupt: a random number that selects the bit */
	uint32_t tear_at; /* bytes of the packet that reach memory */
	uint64_t delay_ns;
};

/* The generators' step (splitmix64). */
static inline uint64_t faults_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* 0, or -EINVAL and in `why` the wrong word and what was expected. Times count from the first
 * packet on. */
int faults_parse(struct faults *faults, const char *text, uint64_t seed, char *why, size_t size);
/* peer: the other end's IPv4 address, or its slot in the fabric. now: ns, by any monotonic
 * clock. */
struct fault_fate faults_judge(struct faults *faults, enum fault_direction direction,
			       const struct packet *pkt, uint32_t peer, uint64_t now);

#endif
