/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Getting over a link that loses packets and changes their order (link.h, lossy). What the
 * specification has for that is one NAK for each gap, everything sent again from there, and else
 * the retry timer: enough for a wire that loses one packet in millions, and hours under 5 % of
 * loss. What is done here more needs nothing of the peer that the specification does not promise.
 *
 * Both ends keep a few packets that came ahead of their turn: the responder requests, the requester
 * answers behind a result that is missing. A packet that was merely late closes the gap, and nobody
 * hears of it. The gap is one when GAP_PACKETS wait behind it, or GAP_NS have passed. Then there is
 * one NAK; or what is missing of a READ, and no more, is asked for again.
 *
 * The requester that learns of a gap, at PSN una, repairs. It does not know whether its peer has
 * kept what came behind the gap. It sends one packet again. An answer that goes beyond it says
 * where the next gap is, of which one packet is sent again, and so on. An answer to just this
 * packet allows one packet more at a time, which doubles the burst with each round trip: the peer
 * keeps nothing, and everything is sent again after all. The repair is over when all that was sent
 * before it is acknowledged. In a repair, results (READ, atomics, FLUSH, ATOMIC WRITE) are asked
 * for again only where it is known that they are missing: they may be on their way.
 *
 * The end of what was sent, a NAK, an answer, and what a repair sent can be lost, too. So a
 * requester that has heard nothing new for a while, `quiet`, twice a round trip and PROBE_NS,
 * begins to repair, and waits twice as long the next time. These probes are no retries: the timeout
 * and its count stay what the queue pair's attributes make of them. A round trip is measured with
 * one packet at a time, none of which was sent twice, and until such a measurement the wait stays
 * what it was.
 *
 * A duplicate is answered with all that was let in, not just with what was acknowledged before: it
 * may be a probe. And who has gone to the error state, or was destroyed, still repeats what it said
 * last to a peer who asks, an acknowledgement or a refusal: the peer must not fail because a
 * program ended.
 */
#include "core/rnic/transport/link.h"
#include "core/rnic/objects/qp.h"

#define KEPT_MOST   256 /* packets of one kind, of a queue pair */
#define GAP_PACKETS 4	/* more than a switch has change places */
#define GAP_NS	    200000
#define REPAIR_NS   10000 /* about what it costs both ends to send a packet for nothing */
#define PROBE_NS    1000000
#define PROBE_MOST  1000000000
#define PARTED	    64 /* queue pairs whose last words are kept */
#define PARTED_NS   10000000000ull

static uint64_t now_of(const struct rnic_qp *qp)
{
	return ground_now(qp_ground(qp));
}

/* --- packets ahead of their turn --- */

void kept_push(struct rnic_qp *qp, struct kept *kept, uint32_t expected, struct packet *pkt)
{
	struct packet **at = &kept->head;
	int32_t after = -1;
	kept->seen++;
	while (*at && (after = psn_diff(pkt->psn, (*at)->psn)) > 0)
		at = &(*at)->next;
	if (psn_diff(pkt->psn, expected) >= KEPT_MOST || kept->count == KEPT_MOST ||
	    (*at && after == 0)) {
		packet_put(qp->hca->net, pkt);
		return;
	}
	COUNT_ONE(qp->hca->net, kept);
	pkt->next = *at;
	*at = pkt;
	kept->count++;
}

struct packet *kept_first(struct rnic_qp *qp, struct kept *kept, uint32_t expected)
{
	while (kept->head && psn_diff(kept->head->psn, expected) < 0)
		packet_put(qp->hca->net, kept_pop(kept));
	return kept->head;
}

struct packet *kept_pop(struct kept *kept)
{
	struct packet *pkt = kept->head;
	kept->head = pkt->next;
	kept->count--;
	return pkt;
}

void kept_drop(struct rnic_qp *qp, struct kept *kept)
{
	while (kept->head)
		packet_put(qp->hca->net, kept_pop(kept));
	kept->until = kept->alarm.at = 0;
}

bool kept_too_long(struct rnic_qp *qp, struct kept *kept, uint32_t expected, rnic_event_fn *fire)
{
	if (!kept_first(qp, kept, expected)) {
		kept->until = 0;
		return false;
	}
	if (!kept->until || kept->gap != expected) {
		kept->until = now_of(qp) + GAP_NS;
		kept->seen = kept->count == 1;
		kept->gap = expected;
	}
	if (kept->seen >= GAP_PACKETS || now_of(qp) >= kept->until)
		return true;
	alarm_set(qp_ground(qp), &kept->alarm, CHAIN_OTHER, kept->until - now_of(qp), fire, qp);
	return false;
}

/* --- the requester --- */

void repair_reset(struct rnic_qp *qp)
{
	struct repair *repair = &qp->req.repair;
	*repair = (struct repair){
		.sent = qp->req.una, .acked_ahead = qp->req.una, .quiet = PROBE_NS};
}

/* What can be sent in the time that an answer takes. */
static uint32_t burst_of(const struct repair *repair)
{
	return 1 + (uint32_t)(repair->round_trip / REPAIR_NS);
}

static void begin(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	struct repair *repair = &req->repair;
	if (!repair->on)
		repair->end = repair->sent;
	repair->on = repair->ask = true;
	repair->from = repair->resent = req->una;
	repair->burst = burst_of(repair);
	repair->sample_at = 0;
}

bool repair_begin(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	struct repair *repair = &req->repair;
	if (repair->on && repair->from == req->una)
		return false;
	begin(qp);
	return true;
}

void repair_again(struct rnic_qp *qp)
{
	begin(qp);
	qp->req.repair.unsure = true;
	qp->req.repair.burst = 1; /* to a peer who may have no time to answer */
}

/* The next silences last so long, but a quarter of the timeout at most. */
static void wait_for(struct rnic_qp *qp, uint64_t ns)
{
	uint64_t most = qp->attr.timeout ? (uint64_t)1024 << qp->attr.timeout : PROBE_MOST;
	if (most > PROBE_MOST)
		most = PROBE_MOST;
	qp->req.repair.quiet = ns < most ? ns : most;
}

void repair_wait_longer(struct rnic_qp *qp)
{
	struct repair *repair = &qp->req.repair;
	wait_for(qp, 2 * repair->quiet);
	repair->probe_at = now_of(qp) + repair->quiet;
}

void repair_sent(struct rnic_qp *qp, const struct packet *pkt, uint32_t psns)
{
	struct requester *req = &qp->req;
	struct repair *repair = &req->repair;
	uint32_t end = psn_add(pkt->psn, psns);
	if (psn_diff(end, repair->sent) > 0)
		repair->sent = end;
	repair->ask = false;
	if (psn_diff(end, repair->resent) > 0)
		repair->resent = end;
	if (pkt->ack_req && !repair->sample_at && !repair->unsure) {
		repair->sample_psn = pkt->psn;
		repair->sample_at = now_of(qp);
	}
	if (!repair->probe_at || pkt->psn == req->una)
		repair->probe_at = now_of(qp) + repair->quiet;
}

void repair_progress(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	struct repair *repair = &req->repair;
	if (repair->sample_at && psn_diff(req->una, repair->sample_psn) > 0) {
		uint64_t took = now_of(qp) - repair->sample_at;
		repair->round_trip += took / 8 - repair->round_trip / 8;
		wait_for(qp, PROBE_NS + 2 * repair->round_trip);
		repair->sample_at = 0;
	}
	if (psn_diff(repair->acked_ahead, req->una) < 0)
		repair->acked_ahead = req->una;
	if (repair->on) {
		if (psn_diff(req->una, repair->end) >= 0)
			repair->on = repair->unsure = false;
		else if (psn_diff(req->una, repair->resent) > 0)
			repair->burst = burst_of(repair);
		else if (++repair->burst < burst_of(repair))
			repair->burst = burst_of(repair);
	}
	if (psn_diff(req->una, repair->resent) > 0) {
		repair->resent = req->una;
		if (repair->on)
			repair->sample_at = 0;
	}
	repair->probe_at = now_of(qp) + repair->quiet;
}

/* --- last words --- */

static struct last_word last_word_of(const struct rnic_qp *qp)
{
	struct last_word word = qp->resp.last_word;
	word.host = qp->hca->host;
	word.qpn = qp->ibv.qp_num;
	word.peer = qp->peer;
	word.peer_qpn = qp->attr.dest_qp_num;
	word.acked_psn = qp->resp.acked_psn;
	return word;
}

static void say(struct rnic_net *net, const struct last_word *word, const struct packet *request)
{
	bool acked = psn_diff(request->psn, word->acked_psn) <= 0;
	bool is_posted = opcode_is[request->opcode] & (IS_SEND | IS_WRITE);
	/* What is before the refused one, and not acknowledged, was let in: the refusal says so. */
	bool asks = acked ? request->ack_req && is_posted
			  : word->syndrome &&
				    (is_posted || psn_diff(request->psn, word->refused_psn) >= 0);
	struct packet *pkt;
	if (!asks)
		return;
	pkt = packet_get(net, 0);
	pkt->peer = word->peer;
	pkt->src_qpn = word->qpn;
	pkt->dest_qpn = word->peer_qpn;
	pkt->service = request->service;
	pkt->psn = acked ? word->acked_psn : word->refused_psn;
	pkt->opcode = OP_ACKNOWLEDGE;
	pkt->syndrome = acked ? AETH_ACK : word->syndrome;
	pkt->name = request->name;
	pkt->name.index += INDEX_ACK;
	net->link->send(net->link, word->host, pkt);
}

void last_word_repeat(struct rnic_qp *qp, const struct packet *request)
{
	struct last_word word = last_word_of(qp);
	say(qp->hca->net, &word, request);
}

void last_word_keep(struct rnic_qp *qp)
{
	struct rnic_net *net = qp->hca->net;
	bool serves = qp->service == SERVICE_RC || qp->ibv.qp_type == IBV_QPT_XRC_RECV;
	if (!serves || (!resp_active(qp) && qp->ibv.state != IBV_QPS_ERR))
		return;
	land_all(qp, NULL);
	if (!net->parted)
		net->parted = ground_alloc(&net->ground, PARTED * sizeof(*net->parted));
	struct last_word *word = &net->parted[net->parted_next++ % PARTED];
	*word = last_word_of(qp);
	word->until = now_of(qp) + PARTED_NS;
}

void last_word_find(struct rnic_net *net, const struct packet *request)
{
	if ((request->service != SERVICE_RC && request->service != SERVICE_XRC) ||
	    request->opcode >= OP_CODES || opcode_is[request->opcode] & IS_RESPONSE)
		return;
	for (unsigned i = 0; net->parted && i < PARTED; i++) {
		const struct last_word *word = &net->parted[i];
		if (word->qpn == request->dest_qpn && word->peer == request->from &&
		    word->until > ground_now(&net->ground))
			say(net, word, request);
	}
}
