/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC domains that several processes of a host have open (core/rnic/objects/xrc.c: those of one
 * process).
 *
 * Each process has a NIC of its own, so a request may come to a target of process J and be for a
 * shared receive queue of process I: where that is, its number says. J, in whose sequence the
 * packet stands, passes it on to I and waits for the answer; then it answers the sender, and looks
 * at the next packet.
 *
 *      sender ---- SEND, SRQ of I ---> target in J ---- the same, and whose it is ---> I: request,
 * CQ, PD sender <--- ACK, NAK ---------- target in J <--- ACK, NAK -------------------- I
 *
 * What they say is a packet of SERVICE_HOST, a `note` and behind it the payload. It goes through
 * shared memory, past what may be done to packets on a wire, and none comes from a wire: nothing of
 * it is lost or comes twice, and its sender is a process of this net. That one can say only what it
 * could have sent itself: what comes for a target must be from the target's process, an answer from
 * the process that was asked.
 *
 * I believes what the note says of the message, and checks the rest: that its domain of this file
 * has the queue, that there is a receive request, and that the payload fits into it. Of a message
 * of several packets it has a `half`: the receive request, and how far it is filled. The half is
 * over when J says so, because its target has failed or is no more, or when J has died: then the
 * request completes, flushed.
 *
 * J does not wait for ever. A process that has died is noticed at once, one that was stopped after
 * a while; one that only had no CPU is waited for (peer.h). While J waits it does not count its
 * turns: its own peers are not to believe that it could have answered.
 *
 * SENDs only, without invalidate. The others would need J's rights and I's keys at one place.
 */
#include "core/provider/link/xrc_relay.h"

#include <errno.h>
#include <string.h>
#include "core/provider/link/link_shm.h"
#include "core/rnic/objects/qp.h"

#define WATCH_NS     1000000	/* how often it is asked what has become of an answer */
#define LATE_NS	     10000000	/* more between two looks, and it was us who had no CPU */
#define SILENCE_NS   2000000000 /* of a process that lives, and does nothing */
#define OWNER_NS     100000000	/* how often it is looked whether a message's process still lives */
#define SLOT(number) ((number) >> SHM_QPN_SHIFT)

/* J: a message that is another process's. */
struct xrc_away {
	struct xrc_away *next; /* of those that are free */
	struct rnic_qp *target;
	struct packet
		*pkt; /* waits for the answer; NULL: the message's next one has not come yet */
	uint32_t srqn, serial;
	bool passed;		  /* else there was no room yet */
	uint64_t due;		  /* ns: when the answer should have been there */
	uint64_t looked, silence; /* ns: when it was asked last, and for how long it has been */
	struct link_watch watch;
	struct alarm alarm;
};

/* I: a message that has come by half, or is just being taken. */
struct half {
	struct half *next;
	struct rnic_srq *srq;
	uint32_t target, source;
	uint32_t owner; /* the target's process (link.h) */
	uint32_t off;	/* bytes so far */
	_Alignas(struct rqe) uint8_t request[sizeof(struct rqe) + MAX_SGE * sizeof(struct ibv_sge)];
};

struct relay {
	struct xrc_relay calls; /* first: what the transport knows */
	struct rnic_net *net;
	struct rnic_qp stranger; /* a queue pair of another process, to completion queues */
	uint32_t serial;
	struct xrc_away *free_away;
	struct half *halves, *free_half;
	struct alarm alarm;
};

static struct relay *relay_of(const struct rnic_net *net)
{
	return (struct relay *)net->relay;
}

/* Takes the payload's packet. 0, or as link.pass. */
static int send_note(struct rnic_net *net, uint32_t to, const struct xrc_note *note,
		     struct packet *pkt)
{
	int rc;

	memcpy(pkt->payload, note, sizeof(*note));
	pkt->service = SERVICE_HOST;
	pkt->dest_qpn = to;
	rc = net->link->pass(net->link, pkt);
	if (rc)
		packet_put(net, pkt);
	return rc;
}

/* --- J: the target's process --- */

static void fire_watch(struct sim *sim, void *arg);

static struct xrc_away *get_away(struct rnic_qp *target, uint32_t srqn)
{
	struct relay *relay = relay_of(target->hca->net);
	struct xrc_away *away = relay->free_away;

	if (away)
		relay->free_away = away->next;
	else
		away = sim_alloc(relay->net->sim, sizeof(*away));
	*away = (struct xrc_away){.target = target, .srqn = srqn};
	target->resp.away = away;
	return away;
}

static void put_away(struct rnic_qp *target)
{
	struct relay *relay = relay_of(target->hca->net);
	struct xrc_away *away = target->resp.away;

	target->resp.away = NULL;
	away->target = NULL;
	away->alarm.at = 0;
	away->next = relay->free_away;
	relay->free_away = away;
}

static struct xrc_note note_of(const struct xrc_away *away, enum xrc_note_kind kind)
{
	struct xrc_note note = {.kind = kind,
				.serial = away->serial,
				.target = away->target->ibv.qp_num,
				.source = away->target->attr.dest_qp_num,
				.srqn = away->srqn};

	xrc_file(away->target, &note.device, &note.inode);
	return note;
}

/* 0, or as link.pass. */
static int pass_on(struct xrc_away *away)
{
	struct rnic_net *net = away->target->hca->net;
	struct xrc_note note = note_of(away, XRC_NOTE_REQUEST);
	int rc = send_note(net, away->srqn, &note,
			   packet_copy_behind(net, away->pkt, sizeof(note)));

	away->passed = !rc;
	return rc;
}

static void watch(struct xrc_away *away)
{
	alarm_set(qp_sim(away->target), &away->alarm, CHAIN_OTHER,
		  away->passed ? WATCH_NS : LINK_READY_NS, fire_watch, away);
}

static uint8_t pass(struct rnic_qp *target, struct packet *pkt)
{
	struct rnic_net *net = target->hca->net;
	struct relay *relay = relay_of(net);
	struct xrc_away *away = target->resp.away;

	/* What is before it is acknowledged first. */
	land_all(target, NULL);
	if (!resp_active(target) || target->resp.failed) {
		packet_put(net, pkt);
		return AETH_WAITS;
	}
	if (!away)
		away = get_away(target, pkt->srqn);
	away->pkt = pkt;
	away->serial = ++relay->serial;
	away->looked = sim_now(net->sim);
	away->silence = 0;
	away->due = away->looked + WATCH_NS;
	if (pass_on(away) == -ESRCH) {
		COUNT_ONE(net, bad_srq);
		away->pkt = NULL;
		return AETH_NAK_INVALID_REQUEST;
	}
	target->resp.waits = true;
	relay->calls.waiting++;
	watch(away);
	return AETH_WAITS;
}

/* The packet waits no longer. */
static struct packet *stop_waiting(struct rnic_qp *target)
{
	struct xrc_away *away = target->resp.away;
	struct packet *pkt = away->pkt;

	away->pkt = NULL;
	away->alarm.at = 0;
	target->resp.waits = false;
	relay_of(target->hca->net)->calls.waiting--;
	return pkt;
}

static void decide(struct rnic_qp *target, uint8_t syndrome)
{
	struct packet *pkt = stop_waiting(target);
	bool is_last = opcode_is[pkt->opcode] & IS_LAST;

	/* The message is over, or has not begun. After an error the target fails, which tells the
	 * other process, too: it may find the packet later. */
	if (syndrome == AETH_ACK ? is_last : (syndrome & AETH_KIND) == AETH_RNR_NAK)
		put_away(target);
	resp_decided(target, pkt, syndrome);
}

/* Did whoever has it just have no CPU? */
static bool is_worth_waiting(struct xrc_away *away)
{
	struct rnic_net *net = away->target->hca->net;
	uint64_t now = sim_now(net->sim), since = now - away->looked;

	away->looked = now;
	away->silence += since < LATE_NS ? since : LATE_NS;
	if (!net->link->owner(net->link, away->srqn))
		return false;
	return away->silence < SILENCE_NS ||
	       link_starves(net->link, LINK_THIS_HOST, away->srqn, now, away->serial, away->due,
			    WATCH_NS, &away->watch);
}

static void fire_watch(struct sim *sim, void *arg)
{
	struct xrc_away *away = arg;

	if (!alarm_fired(sim, &away->alarm))
		return;
	if ((away->passed || pass_on(away) != -ESRCH) && is_worth_waiting(away))
		watch(away);
	else
		decide(away->target, AETH_NAK_INVALID_REQUEST);
}

static void end(struct rnic_qp *target)
{
	struct rnic_net *net = target->hca->net;
	struct xrc_away *away = target->resp.away;
	struct xrc_note note = note_of(away, XRC_NOTE_END);

	if (target->resp.waits)
		packet_put(net, stop_waiting(target));
	send_note(net, away->srqn, &note,
		  packet_get(net, sizeof(note))); /* as an answer, it finds room */
	put_away(target);
}

static void take_answer(struct rnic_net *net, const struct packet *pkt, const struct xrc_note *note)
{
	struct rnic_qp *target = qp_find(net, note->target);
	const struct xrc_away *away = target ? target->resp.away : NULL;
	uint8_t syndrome = AETH_NAK_INVALID_REQUEST;

	if (!away || !away->pkt || away->serial != note->serial ||
	    SLOT(pkt->src_qpn) != SLOT(away->srqn))
		return;
	if (note->syndrome == AETH_ACK || note->syndrome == AETH_NAK_REMOTE_OPERATION)
		syndrome = (uint8_t)note->syndrome;
	else if (note->syndrome == AETH_RNR_NAK && opcode_is[away->pkt->opcode] & IS_FIRST)
		syndrome = AETH_RNR_NAK | target->attr.min_rnr_timer;
	decide(target, syndrome);
}

/* --- I: the shared receive queue's process --- */

static void fire_owner(struct sim *sim, void *arg);

static struct rqe *request_of(struct half *half)
{
	return (struct rqe *)half->request;
}

static struct half **find_half(struct relay *relay, uint32_t target)
{
	struct half **at = &relay->halves;

	while (*at && (*at)->target != target)
		at = &(*at)->next;
	return at;
}

static void put_half(struct relay *relay, struct half **at)
{
	struct half *half = *at;

	*at = half->next;
	half->next = relay->free_half;
	relay->free_half = half;
}

/* Its receive request is over, and so is the half. False: the completion was lost. */
static bool complete(struct relay *relay, struct half **at, enum ibv_wc_status status,
		     const struct packet *pkt)
{
	struct half *half = *at;
	struct rnic_cq *cq = half->srq->cq;
	struct cqe cqe = {.qp = &relay->stranger,
			  .seq = half->srq->number,
			  .recv = true,
			  .xrc = true,
			  .wc = {.wr_id = request_of(half)->wr_id,
				 .status = status,
				 .opcode = IBV_WC_RECV,
				 .qp_num = half->target}};

	relay->stranger.hca = half->srq->hca;
	if (pkt) {
		cqe.wc.byte_len = half->off;
		cqe.wc.src_qp = half->source;
		cqe.solicited = pkt->solicited;
		if (opcode_is[pkt->opcode] & HAS_IMM) {
			cqe.wc.imm_data = pkt->imm;
			cqe.wc.wc_flags = IBV_WC_WITH_IMM;
		}
	}
	cq_push(relay->net, cq, &cqe);
	put_half(relay, at);
	return !cq->overrun;
}

static void watch_owners(struct relay *relay)
{
	if (relay->halves)
		alarm_set(relay->net->sim, &relay->alarm, CHAIN_OTHER, OWNER_NS, fire_owner, relay);
}

/* Messages of processes that have died. */
static void fire_owner(struct sim *sim, void *arg)
{
	struct relay *relay = arg;
	struct link *link = relay->net->link;
	struct half **at = &relay->halves;

	if (!alarm_fired(sim, &relay->alarm))
		return;
	while (*at)
		if (link->owner(link, (*at)->target) == (*at)->owner)
			at = &(*at)->next;
		else
			complete(relay, at, IBV_WC_WR_FLUSH_ERR, NULL);
	watch_owners(relay);
}

/* A message begins. NULL: there is no receive request for it. */
static struct half **begin(struct relay *relay, const struct packet *pkt,
			   const struct xrc_note *note, struct rnic_srq *srq)
{
	struct link *link = relay->net->link;
	const struct rqe *rqe = srq_pop(srq);
	struct half *half = relay->free_half;

	if (!rqe)
		return NULL;
	if (half)
		relay->free_half = half->next;
	else
		half = sim_alloc(relay->net->sim, sizeof(*half));
	memcpy(half->request, rqe, sizeof(*rqe) + rqe->sges * sizeof(*rqe->sge));
	half->srq = srq;
	half->target = note->target;
	half->source = note->source;
	half->off = 0;
	half->next = relay->halves;
	relay->halves = half;
	if (!(opcode_is[pkt->opcode] & IS_LAST)) {
		half->owner = link->owner(link, note->target);
		watch_owners(relay);
	}
	return &relay->halves;
}

/* The payload goes where it belongs; a syndrome. */
static uint8_t place(struct relay *relay, struct half **at, const struct packet *pkt,
		     const uint8_t *payload, uint32_t len)
{
	struct half *half = *at;
	const struct rqe *rqe = request_of(half);
	const struct rnic_srq *srq = half->srq;
	struct packet_name name = {.who = &relay->stranger.actor, .send = true};

	if ((uint64_t)half->off + len > sge_bytes(rqe->sge, rqe->sges)) {
		complete(relay, at, IBV_WC_LOC_LEN_ERR, NULL);
		return AETH_NAK_INVALID_REQUEST;
	}
	if (!sge_scatter(srq->hca, srq->ibv.pd, rqe->sge, rqe->sges, half->off, payload, len,
			 &name)) {
		complete(relay, at, IBV_WC_LOC_PROT_ERR, NULL);
		return AETH_NAK_REMOTE_OPERATION;
	}
	half->off += len;
	if (opcode_is[pkt->opcode] & IS_LAST && !complete(relay, at, IBV_WC_SUCCESS, pkt))
		return AETH_NAK_REMOTE_OPERATION;
	return AETH_ACK;
}

static uint8_t take_packet(struct relay *relay, const struct packet *pkt,
			   const struct xrc_note *note)
{
	struct rnic_srq *srq = xrc_srq_of_file(relay->net, note->srqn, note->device, note->inode);
	struct half **at = find_half(relay, note->target);
	bool is_first = opcode_is[pkt->opcode] & IS_FIRST;

	if (!srq) {
		COUNT_ONE(relay->net, bad_srq);
		return AETH_NAK_INVALID_REQUEST;
	}
	if (is_first && *at)
		complete(relay, at, IBV_WC_WR_FLUSH_ERR, NULL);
	if (is_first)
		at = begin(relay, pkt, note, srq);
	if (!at) {
		COUNT_ONE(relay->net, no_receive);
		return AETH_RNR_NAK;
	}
	if (!*at || (*at)->srq != srq)
		return AETH_NAK_INVALID_REQUEST;
	return place(relay, at, pkt, pkt->payload + sizeof(*note),
		     pkt->len - (uint32_t)sizeof(*note));
}

/* For the answer there is room: each target has one question under way, and long packets leave some
 * of the
 * ring. */
static void take_request(struct relay *relay, const struct packet *pkt, const struct xrc_note *note)
{
	struct xrc_note answer = {
		.kind = XRC_NOTE_ANSWER, .serial = note->serial, .target = note->target};

	if (pkt->opcode >= OP_CODES || !(opcode_is[pkt->opcode] & IS_SEND) ||
	    has_invalidate(pkt->opcode))
		return;
	answer.syndrome = take_packet(relay, pkt, note);
	send_note(relay->net, note->target, &answer, packet_get(relay->net, sizeof(answer)));
}

static void drop(struct rnic_net *net, const struct rnic_srq *srq)
{
	struct half **at = &relay_of(net)->halves;

	while (*at)
		if ((*at)->srq == srq)
			put_half(relay_of(net), at);
		else
			at = &(*at)->next;
}

/* --- both --- */

static void take(struct rnic_net *net, struct packet *pkt)
{
	struct relay *relay = relay_of(net);
	struct half **at;
	struct xrc_note note;
	bool by_owner;

	if (pkt->len < sizeof(note)) {
		COUNT_ONE(net, bad_length);
		packet_put(net, pkt);
		return;
	}
	memcpy(&note, pkt->payload, sizeof(note));
	by_owner = SLOT(note.target) == SLOT(pkt->src_qpn);
	if (note.kind == XRC_NOTE_ANSWER)
		take_answer(net, pkt, &note);
	else if (note.kind == XRC_NOTE_REQUEST && by_owner)
		take_request(relay, pkt, &note);
	else if (note.kind == XRC_NOTE_END && by_owner && *(at = find_half(relay, note.target)))
		complete(relay, at, IBV_WC_WR_FLUSH_ERR, NULL);
	packet_put(net, pkt);
}

void xrc_relay_open(struct rnic_net *net)
{
	struct relay *relay = sim_alloc(net->sim, sizeof(*relay));

	*relay = (struct relay){.calls = {.pass = pass, .take = take, .end = end, .drop = drop},
				.net = net,
				.serial = (uint32_t)sim_now(net->sim)};
	net->relay = &relay->calls;
}
