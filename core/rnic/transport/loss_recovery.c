/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recovery of a requester on a link that loses packets and changes their order (link.h, lossy). The
 * specification offers one NAK for each gap, everything sent again from there, and otherwise the
 * retry timer. That is enough for a wire that loses one packet in millions, and takes hours under 5
 * % of loss. The means below need nothing of the peer that the specification does not promise.
 *
 * Both ends keep a few packets that came ahead of their turn (reorder_buffer.c): the responder
 * keeps requests, the requester keeps answers that come after a missing result. For a gap there is
 * one NAK; of a READ only what is missing is asked for again.
 *
 * A requester that learns of a gap, at PSN una, begins to recover. It does not know whether its
 * peer has kept what came after the gap. It sends one packet again. An answer that goes beyond it
 * says where the next gap is; one packet of that is sent again, and so on. An answer to just this
 * packet allows one packet more at a time, which doubles the burst with each round trip: the peer
 * keeps nothing, and everything is sent again after all. The recovery is over when all that was
 * sent before it is acknowledged. Meanwhile results (READ, atomics, FLUSH, ATOMIC WRITE) are asked
 * for again only where it is known that they are missing: they may be on their way.
 *
 * The end of what was sent, a NAK, an answer, and what a recovery sent can be lost, too. So a
 * requester that has had no news for a while (`quiet`: twice a round trip and PROBE_NS) begins to
 * recover, and waits twice as long the next time. These probes are no retries: the timeout and its
 * count stay what the queue pair's attributes make of them. A round trip is measured with one
 * packet at a time, none of which was sent twice, and until such a measurement the wait stays what
 * it was.
 *
 * A responder answers a duplicate with all that was let in, not just with what was acknowledged
 * before: the duplicate may be a probe.
 */
#include "core/rnic/transport/loss_recovery.h"
#include <assert.h>
#include "core/rnic/objects/qp.h"
#include "core/rnic/transport/packet.h"

#define RESEND_NS  10000 /* about what it costs both ends to send a packet for nothing */
#define PROBE_NS   1000000
#define PROBE_MOST 1000000000

static uint64_t now_of(const struct rnic_qp *qp)
{
	return ground_now(qp_ground(qp));
}

void recovery_reset(struct rnic_qp *qp)
{
	struct loss_recovery *recovery = &qp->req.recovery;
	*recovery = (struct loss_recovery){
		.sent = qp->req.una, .acked_ahead = qp->req.una, .quiet = PROBE_NS};
}

/* What can be sent in the time that an answer takes. */
static uint32_t burst_of(const struct loss_recovery *recovery)
{
	return 1 + (uint32_t)(recovery->round_trip / RESEND_NS);
}

static void begin(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	struct loss_recovery *recovery = &req->recovery;
	assert(req->una != req->next_psn && psn_diff(recovery->sent, req->una) >= 0);
	if (!recovery->on)
		recovery->end = recovery->sent;
	recovery->on = recovery->ask = true;
	recovery->from = recovery->resent = req->una;
	recovery->burst = burst_of(recovery);
	recovery->sample_at = 0;
}

bool recovery_begin(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	struct loss_recovery *recovery = &req->recovery;
	if (recovery->on && recovery->from == req->una)
		return false;
	begin(qp);
	return true;
}

void recovery_again(struct rnic_qp *qp)
{
	begin(qp);
	qp->req.recovery.unsure = true;
	qp->req.recovery.burst = 1; /* the peer may have no time to answer */
}

/* The next silences last so long, but a quarter of the timeout at most. */
static void wait_for(struct rnic_qp *qp, uint64_t ns)
{
	uint64_t most = qp->attr.timeout ? (uint64_t)1024 << qp->attr.timeout : PROBE_MOST;
	if (most > PROBE_MOST)
		most = PROBE_MOST;
	qp->req.recovery.quiet = ns < most ? ns : most;
}

void recovery_wait_longer(struct rnic_qp *qp)
{
	struct loss_recovery *recovery = &qp->req.recovery;
	wait_for(qp, 2 * recovery->quiet);
	recovery->probe_at = now_of(qp) + recovery->quiet;
}

void recovery_sent(struct rnic_qp *qp, const struct packet *pkt, uint32_t psns)
{
	struct requester *req = &qp->req;
	struct loss_recovery *recovery = &req->recovery;
	uint32_t end = psn_add(pkt->psn, psns);
	assert(psns && psn_diff(pkt->psn, req->una) >= 0);
	if (psn_diff(end, recovery->sent) > 0)
		recovery->sent = end;
	recovery->ask = false;
	if (psn_diff(end, recovery->resent) > 0)
		recovery->resent = end;
	if (pkt->ack_req && !recovery->sample_at && !recovery->unsure) {
		recovery->sample_psn = pkt->psn;
		recovery->sample_at = now_of(qp);
	}
	if (!recovery->probe_at || pkt->psn == req->una)
		recovery->probe_at = now_of(qp) + recovery->quiet;
}

void recovery_progress(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	struct loss_recovery *recovery = &req->recovery;
	assert(psn_diff(req->una, req->next_psn) <= 0);
	if (recovery->sample_at && psn_diff(req->una, recovery->sample_psn) > 0) {
		uint64_t took = now_of(qp) - recovery->sample_at;
		recovery->round_trip += took / 8 - recovery->round_trip / 8;
		wait_for(qp, PROBE_NS + 2 * recovery->round_trip);
		recovery->sample_at = 0;
	}
	if (psn_diff(recovery->acked_ahead, req->una) < 0)
		recovery->acked_ahead = req->una;
	if (recovery->on) {
		if (psn_diff(req->una, recovery->end) >= 0)
			recovery->on = recovery->unsure = false;
		else if (psn_diff(req->una, recovery->resent) > 0)
			recovery->burst = burst_of(recovery);
		else if (++recovery->burst < burst_of(recovery))
			recovery->burst = burst_of(recovery);
	}
	if (psn_diff(req->una, recovery->resent) > 0) {
		recovery->resent = req->una;
		if (recovery->on)
			recovery->sample_at = 0;
	}
	recovery->probe_at = now_of(qp) + recovery->quiet;
}
