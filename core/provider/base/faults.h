/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_FAULTS_H
#define TM_PROVIDER_BASE_FAULTS_H
/*
 * What hurts the packets of a live link: rules, in a small language, and what they make of each
 * packet.
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
 *		  | "atomic_write" | "ack" | "nak"
 *
 * docs/nic/guide.md explains it. All conditions of a rule must hold. Messages are numbered from 1
 * for each kind, over the whole process, or with "qp" over that queue pair. A rule that names a
 * message's or packet's number hits what is sent for the first time; retransmissions pass, unless
 *"times" says that they are meant, too.
 *
 * A rule has a generator for each direction, and draws from it once for each packet that meets its
 * other conditions: the same seed, rules and packets have the same fate.
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
	uint32_t odds;	     /* of 2^32 - 1, which is always */
	enum op_class what;
	uint32_t message, packet; /* numbers from 1; 0: any */
	bool has_qp, has_peer;
	uint32_t qp, peer;
	uint64_t after_packets, after_ns, for_ns; /* 0: at once; for ever */
	uint64_t times;				  /* 0: for ever */
	uint64_t amount, jitter; /* packets, ns, bit/s or bytes, as the action has it */
	/* What came of it, by direction. */
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

/* What is to become of a packet. */
struct fault_fate {
	bool lost, corrupt, tear;
	unsigned copies;  /* more than the one */
	unsigned hold;	  /* until so many others have passed */
	uint32_t bit;	  /* corrupt: any number, to choose one by */
	uint32_t tear_at; /* bytes of it that reach memory */
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

/* 0, or -EINVAL and in `why` the word that is wrong and what was expected. Times count from the
 * first packet on. */
int faults_parse(struct faults *faults, const char *text, uint64_t seed, char *why, size_t size);
/* peer: the other end's IPv4 address, or its number in the net. now: ns of any clock that runs
 * on. */
struct fault_fate faults_judge(struct faults *faults, enum fault_direction direction,
			       const struct packet *pkt, uint32_t peer, uint64_t now);

#endif
