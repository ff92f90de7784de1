/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link between the hosts of one simulation.
 *
 * Each host has one outgoing port. A packet leaves when those before it have
 * left (bytes at line rate), then flies for a fixed time; so without faults the
 * packets of a host arrive in the order in which they were sent, however their
 * sizes differ. Where a NIC has work with each packet, sending takes no less, and a host takes in
 * what comes at that rate and at that of the wire. Every packet is one choice: deliver, lose,
 * deliver twice, or delay for a while, during which later packets pass it. That is reordering and
 * delay; delayed for ever is loss that no counter sees.
 *
 * A packet sits in a pending event while it flies; the event's argument is the
 * packet, which knows where it is going.
 */
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/link.h"
#include "core/rnic/transport/packet.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "core/rnic/sim_ground.h"

struct link_sim {
	struct link link;
	struct rnic_net *net;
	uint64_t free_at[SIM_HOSTS];	/* ns: when the host's port has sent what it has */
	uint64_t busy_until[SIM_HOSTS]; /* likewise, has taken in what is on its way to it */
	uint64_t last_in[SIM_HOSTS];	/* when the last of that is in memory */
};

static void arrive(struct sim *sim, void *arg)
{
	struct packet *pkt = arg;
	/* What its NIC had not begun to send when its host lost its power has not been sent. A
	 * scheduler has no clock: what is on its way has been. */
	const uint64_t off = sim_power_off_at(sim, pkt->from);
	if (!sim_picks(sim) && pkt->sent <= off && off < pkt->left) {
		packet_put(pkt->net, pkt);
		return;
	}
	if (!(opcode_is[pkt->opcode] & IS_RESPONSE))
		sim_reaches(sim, pkt->name.op, pkt->from, pkt->peer);
	rnic_deliver(pkt->net, pkt->peer, pkt);
}

static int resolve(struct link *link, const union ibv_gid *gid)
{
	union ibv_gid ours;
	rnic_gid(RNIC_ADDRESS(0), &ours);
	if (memcmp(ours.raw, gid->raw, 14) || (gid->raw[14] << 8 | gid->raw[15]) == 0)
		return -ENETUNREACH;
	unsigned host = (gid->raw[14] << 8 | gid->raw[15]) - 1;
	return host < SIM_HOSTS ? (int)host : -ENETUNREACH;
}

static void gid_of(struct link *link, uint32_t number, union ibv_gid *gid)
{
	rnic_gid(RNIC_ADDRESS(number), gid);
}

static unsigned ask(struct sim *sim, const struct packet *pkt)
{
	const struct packet_name *name = &pkt->name;
	struct choice_point at = {.kind = CHOICE_PACKET,
				  .who = name->who,
				  .op = name->op,
				  .occurrence = name->occurrence,
				  .a = name->message,
				  .b = name->index,
				  .c = name->round | (uint32_t)name->copy << 16};
	return sim_choose(sim, &at, PACKET_DELAY + DELAYS - 1);
}

static void trace(struct sim *sim, const struct packet *pkt, const char *what)
{
	if (sim_tracing(sim))
		sim_trace(sim, pkt->name.who, 0, "%s, PSN %u, %u bytes: %s",
			  opcode_name(pkt->opcode), pkt->psn, pkt->len, what);
}

/* How much later than `at` a packet is in at its receiver, whose NIC takes one after the other, as
 * fast as the wire is. Its way between memories and NICs takes time, and holds up none but the one
 * after. */
static uint64_t take_in(struct link_sim *me, const struct packet *pkt, uint64_t at,
			uint64_t wire_ns, const struct profile *cost)
{
	const uint64_t least = wire_ns > cost->packet ? wire_ns : cost->packet,
		       begun = at - wire_ns;
	uint64_t *busy = &me->busy_until[pkt->peer], *last = &me->last_in[pkt->peer];
	*busy = (*busy > begun ? *busy : begun) + least;
	const uint64_t in = *busy + pkt->len * (uint64_t)cost->dma / 1000;
	*last = *last > in ? *last : in;
	return *last > at ? *last - at : 0;
}

static void send(struct link *link, unsigned from, struct packet *pkt)
{
	struct link_sim *me = (struct link_sim *)link;
	struct sim *sim = sim_of_ground(&me->net->ground);
	uint64_t now = sim_now(sim);
	const struct profile *cost = ground_cost(&me->net->ground);
	assert(from < SIM_HOSTS && pkt->peer < SIM_HOSTS);
	pkt->from = from;
	if (!sim_has_power(sim, from)) {
		packet_put(me->net, pkt);
		return;
	}
	const uint64_t wire_ns = (HEADER_BYTES + pkt->len) * 1000ull / cost->wire;
	uint64_t start = me->free_at[from] > now ? me->free_at[from] : now;
	pkt->sent = now;
	pkt->left = start;
	me->free_at[from] = start + (wire_ns > cost->packet ? wire_ns : cost->packet);
	uint64_t delay = me->free_at[from] - now + cost->flight;
	if (cost->packet || cost->dma)
		delay += take_in(me, pkt, now + delay, wire_ns, cost);
	uint64_t chain = chain_name(pkt->name.who->name_hash, opcode_is[pkt->opcode] & IS_RESPONSE
								      ? CHAIN_RESPONSES
								      : CHAIN_REQUESTS);
	sim_leaves(sim, from, pkt->left);
	unsigned answer = sim_plain(sim) ? PACKET_DELIVER : ask(sim, pkt);
	if (sim_tracing(sim)) {
		const struct traced about = {.kind = TRACED_PACKET,
					     .occurrence = pkt->name.occurrence,
					     .op = pkt->name.op,
					     .len = packet_wire_bytes(pkt),
					     .code = pkt->opcode};
		sim_trace_event(sim, pkt->name.who, 0, &about, "%s", "");
	}
	unsigned k = choice_delay(CHOICE_PACKET, answer);
	/* The connection manager repeats its datagrams. */
	if (answer == PACKET_LOSE || k)
		sim_packet_lost(sim, from, pkt->peer,
				1u << pkt->service & RELIABLE || pkt->dest_qpn == QPN_MANAGEMENT);
	if (answer == PACKET_LOSE) {
		trace(sim, pkt, "lost");
		packet_put(me->net, pkt);
		return;
	}
	if (answer == PACKET_DUPLICATE) {
		struct packet *copy = packet_copy(me->net, pkt);
		copy->name.copy++;
		trace(sim, pkt, "delivered twice");
		sim_in_chain(sim, chain, delay, arrive, copy);
	}
	if (k)
		trace(sim, pkt, k == DELAY_FOREVER ? "delayed for ever" : "delayed");
	sim_delay(sim, chain, k, delay, arrive, pkt);
}

struct rnic_net *rnic_net_new(struct sim *sim, const struct hardware *hw)
{
	const struct rnic_ground ground = sim_ground(sim);
	struct link_sim *me = sim_alloc(sim, sizeof(*me));
	me->link.resolve = resolve;
	me->link.gid = gid_of;
	me->link.send = send;
	me->net = rnic_net_on(&ground, hw, &me->link, SIM_HOSTS, QPN_FIRST, QPN_LIMIT);
	sim_set_net(sim, me->net);
	return me->net;
}
