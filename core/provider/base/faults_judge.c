/* SPDX-License-Identifier: BSD-3-Clause */
/* See faults.h: which packets a rule hits, and what it does to them. */
#include "core/provider/base/faults.h"

#include <assert.h>
#include <string.h>

#define BACKLOG_NS 200000000 /* longer backlogs at a rate limit are dropped */
/* In sequence numbers: a packet further back is not a retransmission, but of a new connection. */
#define FAR_REQUEST 4096
#define FAR_ANSWER  (1 << 19)
#define LEAST_MTU   4096 /* the MTU with the fewest packets for a READ's answer */

/* --- which flow, which message --- */

struct place {
	enum op_class what;
	uint32_t message, message_in_flow, packet; /* numbers from 1; 0: not known */
	bool again;
};

static enum op_class what_is(const struct packet *pkt)
{
	enum op_class class = pkt->opcode < OP_CODES ? packet_rows[pkt->opcode].class : CLASS_ANY;

	return class == CLASS_ACK && pkt->syndrome & AETH_KIND ? CLASS_NAK : class;
}

static struct fault_flow *flow_of(struct faults *faults, enum fault_direction direction,
				  const struct packet *pkt, uint32_t peer, bool answers)
{
	struct fault_flow *flow;

	for (unsigned i = 0; i < FAULT_FLOWS; i++) {
		flow = &faults->flow[i];
		if (flow->used && flow->direction == direction && flow->answers == answers &&
		    flow->src == pkt->src_qpn && flow->dest == pkt->dest_qpn && flow->peer == peer)
			return flow;
	}
	flow = &faults->flow[faults->flow_cursor++ % FAULT_FLOWS];
	*flow = (struct fault_flow){.used = true,
				    .direction = (uint8_t)direction,
				    .answers = answers,
				    .src = pkt->src_qpn,
				    .dest = pkt->dest_qpn,
				    .peer = peer,
				    .last = psn_add(pkt->psn, PSN_MASK)};
	return flow;
}

/* The message that has this sequence number. */
static void find_message(const struct fault_flow *flow, uint32_t psn, struct place *place)
{
	unsigned n = flow->recents < FLOW_RECENT ? flow->recents : FLOW_RECENT;

	for (unsigned i = 1; i <= n; i++) {
		unsigned at = (flow->recents - i) % FLOW_RECENT;

		if (psn_diff(psn, flow->recent[at].psn) < 0)
			continue;
		place->message = flow->recent[at].number;
		place->message_in_flow = flow->recent[at].number_in_flow;
		place->packet = (uint32_t)psn_diff(psn, flow->recent[at].psn) + 1;
		return;
	}
}

static struct place place_of(struct faults *faults, enum fault_direction direction,
			     const struct packet *pkt, uint32_t peer)
{
	struct place place = {.what = what_is(pkt)};
	uint8_t is = pkt->opcode < OP_CODES ? opcode_is[pkt->opcode] : 0;
	bool answers = is & IS_RESPONSE;

	if (!faults->numbers)
		return place;
	struct fault_flow *flow = flow_of(faults, direction, pkt, peer, answers);
	if (place.what == CLASS_ACK || place.what == CLASS_NAK) {
		place.packet = 1;
		place.message = ++faults->count[direction][place.what];
		place.message_in_flow = ++flow->count[place.what];
		return place;
	}
	int32_t ahead = psn_diff(pkt->psn, flow->last);
	if (ahead <= 0 && ahead > -(answers ? FAR_ANSWER : FAR_REQUEST)) {
		place.again = true;
		find_message(flow, pkt->psn, &place);
		return place;
	}
	flow->last = pkt->psn;
	if (pkt->opcode == OP_READ_REQUEST && pkt->dma_len)
		flow->last = psn_add(pkt->psn, (pkt->dma_len - 1) / LEAST_MTU);
	if (!(is & (IS_SEND | IS_WRITE | IS_READ)) || is & IS_FIRST ||
	    pkt->opcode == OP_READ_REQUEST) {
		unsigned at = flow->recents++ % FLOW_RECENT;

		flow->recent[at].psn = pkt->psn;
		flow->recent[at].number = ++faults->count[direction][place.what];
		flow->recent[at].number_in_flow = ++flow->count[place.what];
	}
	find_message(flow, pkt->psn, &place);
	return place;
}

/* --- applying the rules --- */

static bool concerns(const struct fault_rule *rule, const struct packet *pkt, uint32_t peer,
		     const struct place *place)
{
	if (rule->what && rule->what != place->what)
		return false;
	if (rule->action == FAULT_TEAR && place->what != CLASS_WRITE && place->what != CLASS_SEND)
		return false;
	if (rule->has_qp && rule->qp != pkt->src_qpn && rule->qp != pkt->dest_qpn)
		return false;
	if (rule->has_peer && rule->peer != peer)
		return false;
	if (rule->message &&
	    rule->message != (rule->has_qp ? place->message_in_flow : place->message))
		return false;
	if (rule->packet && rule->packet != place->packet)
		return false;
	return !(place->again && (rule->message || rule->packet) && !rule->times);
}

static bool is_time_for(const struct fault_rule *rule, uint64_t age)
{
	return age >= rule->after_ns && (!rule->for_ns || age - rule->after_ns < rule->for_ns);
}

static uint64_t draw(struct fault_rule *rule, enum fault_direction direction)
{
	rule->random[direction] += 0x9e3779b97f4a7c15;
	return faults_mix(rule->random[direction]);
}

static void limit_rate(struct fault_rule *rule, enum fault_direction direction,
		       const struct packet *pkt, uint64_t now, struct fault_fate *fate)
{
	uint64_t *free_at = &rule->free_at[direction];
	uint64_t start = *free_at > now ? *free_at : now;

	assert(rule->amount); /* bit/s: the parser refuses 0 */
	if (start - now > BACKLOG_NS) {
		fate->lost = true;
		return;
	}
	*free_at = start + (uint64_t)((double)packet_wire_bytes(pkt) * 8e9 / (double)rule->amount);
	assert(*free_at >= now);
	if (fate->delay_ns < *free_at - now)
		fate->delay_ns = *free_at - now;
}

static void hit(struct fault_rule *rule, enum fault_direction direction, const struct packet *pkt,
		uint64_t now, uint32_t random, struct fault_fate *fate)
{
	switch (rule->action) {
	case FAULT_LOSE:
	case FAULT_PARTITION:
		fate->lost = true;
		break;
	case FAULT_DUPLICATE:
		fate->copies++;
		break;
	case FAULT_REORDER:
		fate->hold = (unsigned)rule->amount;
		break;
	case FAULT_CORRUPT:
		fate->corrupt = true;
		fate->bit = random;
		break;
	case FAULT_DELAY:
		fate->delay_ns += rule->amount + (rule->jitter ? (uint64_t)((double)rule->jitter *
									    random / FAULT_ALWAYS)
							       : 0);
		break;
	case FAULT_RATE:
		limit_rate(rule, direction, pkt, now, fate);
		break;
	case FAULT_TEAR:
		fate->tear = true;
		/* Memory is written in words. */
		fate->tear_at = rule->amount < pkt->len ? (uint32_t)rule->amount
							: random % (pkt->len / 8 + 1) * 8;
		if (rule->amount != UINT64_MAX && rule->amount >= pkt->len)
			fate->tear_at = pkt->len;
		assert(fate->tear_at <= pkt->len);
		break;
	}
}

struct fault_fate faults_judge(struct faults *faults, enum fault_direction direction,
			       const struct packet *pkt, uint32_t peer, uint64_t now)
{
	struct fault_fate fate = {0};

	if (!faults->rules)
		return fate;
	if (!faults->since)
		faults->since = now;
	struct place place = place_of(faults, direction, pkt, peer);
	for (unsigned i = 0; i < faults->rules; i++) {
		struct fault_rule *rule = &faults->rule[i];

		if (!(rule->directions >> direction & 1) || !concerns(rule, pkt, peer, &place))
			continue;
		if (rule->seen[direction]++ < rule->after_packets ||
		    !is_time_for(rule, now - faults->since))
			continue;
		uint64_t random = draw(rule, direction);
		if (rule->odds != FAULT_ALWAYS && (uint32_t)random >= rule->odds)
			continue;
		if (rule->times && rule->hits[direction] >= rule->times)
			continue;
		rule->hits[direction]++;
		hit(rule, direction, pkt, now, (uint32_t)(random >> 32), &fate);
	}
	return fate;
}
