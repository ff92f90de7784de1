/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester: works off the send queue (IBA vol. 1, 9.7).
 *
 * A work request gets its packet sequence numbers (PSNs) when it starts: one a
 * packet of the path's MTU, for a READ one a response packet. `una` is the oldest
 * unacknowledged PSN, sq.next and `packet` say what is sent next. Everything that
 * goes wrong with a packet ends in the same place, go_back(): send again from una.
 * What leads there: a NAK for a gap in the sequence, an acknowledgement that jumps
 * over a READ whose response is missing, the retry timer, the end of a wait for a
 * receiver that was not ready. Without progress that happens retry_cnt times
 * (rnr_retry for the last one), then the oldest request fails.
 *
 *      acked          sq.next                req.rung             sq.posted
 *   ---- sent, unanswered ---- not sent yet ------ not known yet ------
 *      una                 next_psn
 *
 * Posted requests follow each other without waiting, also after a READ; a
 * fenced one waits until all before it that are not posted (READ, atomics, FLUSH,
 * ATOMIC WRITE) have their results, and one that is not posted waits while
 * max_rd_atomic of them are under way.
 *
 * Where a link has room for so many packets only (link.h, burst), a READ asks for no more at once,
 * and for the rest when that has come: to the responder these are READs of their own.
 *
 * What needs no packet (a window's binding, an invalidation) is done when all before it is
 * acknowledged.
 *
 * Completions come in order. A request that fails locally (protection, length)
 * fails when those before it are acknowledged. InfiniBand completes a request when
 * it is acknowledged; iWARP completes SEND and WRITE when the last packet is handed
 * to the link, for which the data are copied: sq.done then runs ahead of acked.
 *
 * Without acknowledgements (unreliable connection, unreliable datagram) a request is over when its
 * last packet was handed to the link, and una follows at once. A request that fails takes the send
 * queue alone with it (SQE). A link that has no room is waited for, for LINK_PATIENCE_NS at
 * most: then the packets are lost.
 *
 * The retry timer is one event a queue pair, set when something is sent and none
 * is pending; it looks at the deadline when it comes, and is set again if that is
 * still ahead. It fires after the timeout itself, the shortest time that the
 * specification allows.
 */
#include "core/rnic/transport/requester.h"
#include <assert.h>
#include <string.h>
#include "core/rnic/count.h"
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/dma.h"
#include "core/rnic/objects/mixed_keys.h"
#include "core/rnic/objects/mw.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/work_queue.h"
#include "core/rnic/transport/link.h"
#include "core/rnic/transport/loss_recovery.h"
#include "core/rnic/transport/packet.h"
#include "core/rnic/transport/reorder_buffer.h"
#include "core/verbs_compat.h"

#define WINDOW 128 /* packets under way */
#define ACKS   4   /* asked for, of a long message, in a window */

static void fire_tx(void *arg);
static void fire_timer(void *arg);
static void transmit(struct rnic_qp *qp);

static struct wqe *wqe_at(struct rnic_qp *qp, uint32_t seq)
{
	return queue_at(&qp->sq, seq);
}

static bool active(const struct rnic_qp *qp)
{
	return qp->ibv.state == IBV_QPS_RTS || qp->ibv.state == IBV_QPS_SQD;
}

/* Number of packets that may be under way at most. */
static uint32_t window(const struct rnic_qp *qp)
{
	uint32_t burst = qp->hca->net->link->burst;
	return burst && burst < WINDOW ? burst : WINDOW;
}

/* Number of packets that may be under way now. */
static uint32_t limit(const struct rnic_qp *qp)
{
	uint32_t most = window(qp);
	return qp->req.recovery.on && qp->req.recovery.burst < most ? qp->req.recovery.burst : most;
}

static uint64_t timeout_ns(const struct rnic_qp *qp)
{
	uint64_t ns = (uint64_t)4096 << qp->attr.timeout; /* 0 means never: see set_timer() */
	uint64_t least = qp->hca->net->link->silence_ns / (qp->attr.retry_cnt + 1u);
	return ns > least ? ns : least;
}

static bool is_class(const struct wqe *wqe, enum op_class class)
{
	return operations[wqe->opcode].class == class;
}

/* Does it carry its list's bytes to the peer? Else what comes back goes there. */
static bool carries_data(const struct wqe *wqe)
{
	return operation_is(wqe->opcode, CARRIES_DATA);
}

/* --- completions --- */

static void complete(struct rnic_qp *qp, enum ibv_wc_status status)
{
	assert(qp->sq.done != qp->sq.posted);
	const struct wqe *wqe = wqe_at(qp, qp->sq.done);
	struct cqe cqe = {.qp = qp, .seq = qp->sq.done, .op = wqe->op, .message = wqe->id};
	qp->sq.done++;
	if (status == IBV_WC_SUCCESS && !wqe->signaled)
		return;
	cqe.wc.wr_id = wqe->wr_id;
	cqe.wc.status = status;
	cqe.wc.opcode = operations[wqe->opcode].completion;
	cqe.wc.byte_len = (uint32_t)wqe->bytes;
	cqe.wc.qp_num = qp->ibv.qp_num;
	cq_push(qp->hca->net, (struct rnic_cq *)qp->ibv.send_cq, &cqe);
}

void req_drop_copy(struct rnic_qp *qp, struct wqe *wqe)
{
	if (wqe->copy)
		buffer_put(qp->hca->net, wqe->copy, wqe->copy_class);
	wqe->copy = NULL;
}

/* iWARP: what was handed to the link completes, as far as order allows. */
static void complete_early(struct rnic_qp *qp)
{
	if (qp->hca->hw.transport != TRANSPORT_IWARP || MUTANT(&qp->hca->hw, NIC_IWARP_WAITS))
		return;
	while ((int32_t)(qp->sq.next - qp->sq.done) > 0 && !wqe_at(qp, qp->sq.done)->nonposted)
		complete(qp, IBV_WC_SUCCESS);
}

/* The oldest request is acknowledged, its result is there. */
static void retire(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	struct wqe *wqe = wqe_at(qp, req->acked);
	assert(wqe->started && req->acked != qp->sq.posted);
	if (wqe->nonposted) {
		assert(req->nonposted);
		req->nonposted--;
		ground_touch(qp_ground(qp), TOUCH_DRAM_WRITE, &req->nonposted,
			     sizeof(req->nonposted));
	}
	req_drop_copy(qp, wqe);
	if (qp->sq.done == req->acked)
		complete(qp, IBV_WC_SUCCESS);
	req->acked++;
	if ((int32_t)(qp->sq.next - req->acked) < 0) {
		qp->sq.next = req->acked;
		req->packet = 0;
	}
	complete_early(qp);
}

void req_flush(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	for (; req->acked != qp->sq.posted; req->acked++)
		req_drop_copy(qp, wqe_at(qp, req->acked));
	while (qp->sq.done != qp->sq.posted)
		complete(qp, MUTANT(&qp->hca->hw, NIC_FLUSHED_SUCCESS) ? IBV_WC_SUCCESS
								       : IBV_WC_WR_FLUSH_ERR);
	qp->sq.next = req->rung = qp->sq.posted;
	req->packet = 0;
	req->una = req->next_psn;
	req->nonposted = 0;
	req->rnr_until = 0;
	reorder_drop(qp, &req->recovery.reorder);
	req->tx.at = req->timer.at = req->rnr.at = 0;
}

void req_reset(struct rnic_qp *qp)
{
	for (uint32_t i = qp->req.acked; i != qp->sq.posted; i++)
		req_drop_copy(qp, wqe_at(qp, i));
	reorder_drop(qp, &qp->req.recovery.reorder);
	qp->sq.posted = qp->sq.next = qp->sq.done = qp->sq.freed = 0;
	memset(&qp->req, 0, sizeof(qp->req));
	qp->resets++;
}

/* The oldest request fails. */
static void fail(struct rnic_qp *qp, enum ibv_wc_status status)
{
	if (qp->sq.done == qp->req.acked)
		complete(qp, status);
	if (qp_is_reliable(qp))
		qp_fail(qp);
	else
		qp_fail_sends(qp);
}

/* --- sending --- */

static uint64_t until(const struct rnic_qp *qp, uint64_t at, uint64_t if_over)
{
	uint64_t now = ground_now(qp_ground(qp));
	return at > now ? at - now : if_over;
}

/* The timer is to come when the next thing may be due. */
static void set_timer(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	uint64_t ns = UINT64_MAX, probe;
	if (qp->attr.timeout)
		ns = until(qp, req->deadline, timeout_ns(qp));
	if (is_lossy(qp)) {
		probe = until(qp, req->recovery.probe_at, req->recovery.quiet);
		ns = probe < ns ? probe : ns;
	}
	if (ns != UINT64_MAX)
		alarm_set(qp_ground(qp), &req->timer, CHAIN_OTHER, ns, fire_timer, qp);
}

static void arm(struct rnic_qp *qp)
{
	if (is_lossy(qp))
		set_timer(qp);
	else if (qp->attr.timeout && !qp->req.timer.at)
		alarm_set(qp_ground(qp), &qp->req.timer, CHAIN_OTHER, timeout_ns(qp), fire_timer,
			  qp);
}

static enum ibv_wc_status check_local(struct rnic_qp *qp, const struct wqe *wqe)
{
	if (wqe->bytes > (qp->service == SERVICE_UD ? qp->mtu : MAX_MESSAGE))
		return IBV_WC_LOC_LEN_ERR;
	if (wqe->foreign_address)
		return IBV_WC_LOC_QP_OP_ERR;
	if (wqe->nonposted && qp->attr.max_rd_atomic == 0)
		return IBV_WC_LOC_QP_OP_ERR;
	if (is_class(wqe, CLASS_ATOMIC) && wqe->bytes < ATOMIC_BYTES)
		return IBV_WC_LOC_LEN_ERR;
	/* The destination of results is checked when they come. */
	if (carries_data(wqe) && !wqe->copy &&
	    !sge_allowed(qp->hca, qp->ibv.pd, wqe->sge, wqe->sges, 0, wqe->bytes, 0)) {
		mixed_lkey(qp, qp->ibv.pd, wqe->sge, wqe->sges, 0, operations[wqe->opcode].name);
		return IBV_WC_LOC_PROT_ERR;
	}
	return IBV_WC_SUCCESS;
}

/* Give the request sq.next its sequence numbers; false: not now, or it failed. */
static bool start(struct rnic_qp *qp, struct wqe *wqe)
{
	struct requester *req = &qp->req;
	if (qp->ibv.state == IBV_QPS_SQD)
		return false;
	enum ibv_wc_status status = check_local(qp, wqe);
	if (status != IBV_WC_SUCCESS) {
		if (qp->sq.next == req->acked)
			fail(qp, status);
		return false;
	}
	if (is_class(wqe, CLASS_ATOMIC))
		wqe->bytes = ATOMIC_BYTES; /* the list may have room for more */
	bool fence = wqe->fence || MUTANT(&qp->hca->hw, NIC_NEVER_OVERTAKES);
	if (fence || (wqe->nonposted && req->nonposted >= qp->attr.max_rd_atomic))
		ground_touch(qp_ground(qp), TOUCH_DRAM_READ, &req->nonposted,
			     sizeof(req->nonposted));
	if (fence && req->nonposted && !MUTANT(&qp->hca->hw, NIC_FENCE_IGNORED))
		return false;
	if (wqe->nonposted && req->nonposted >= qp->attr.max_rd_atomic)
		return false;
	if (qp->hca->hw.transport == TRANSPORT_IWARP && !wqe->nonposted && wqe->bytes &&
	    !wqe->copy) {
		wqe->copy = buffer_get(qp->hca->net, (uint32_t)wqe->bytes, &wqe->copy_class);
		bool gathered = sge_gather(qp->hca, qp->ibv.pd, wqe->sge, wqe->sges, 0, wqe->copy,
					   (uint32_t)wqe->bytes);
		assert(gathered); /* just checked */
	}
	assert(!wqe->started);
	wqe->started = true;
	wqe->first_psn = req->next_psn;
	wqe->psns = wqe->bytes ? (uint32_t)((wqe->bytes + qp->mtu - 1) / qp->mtu) : 1;
	req->next_psn = psn_add(req->next_psn, wqe->psns);
	req->nonposted += wqe->nonposted;
	assert(!wqe->nonposted || req->nonposted <= qp->attr.max_rd_atomic);
	return true;
}

/* Bytes of a READ that are asked for at once, from packet i on, with `left` missing. A part that is
 * asked for again ends where it ended before: what comes again must not reach beyond what was
 * there. */
static uint32_t read_part(const struct rnic_qp *qp, const struct wqe *wqe, uint32_t i,
			  uint32_t left)
{
	const struct packet *reorder = qp->req.recovery.reorder.head;
	uint32_t packets = MAX_MESSAGE / qp->mtu, psn = psn_add(wqe->first_psn, i);
	if (qp->hca->net->link->burst)
		packets = window(qp) - i % window(qp);
	if (reorder && psn == qp->req.una && (uint32_t)psn_diff(reorder->psn, psn) < packets)
		packets = (uint32_t)psn_diff(reorder->psn, psn);
	return left > packets * qp->mtu ? packets * qp->mtu : left;
}

/* Is a part of the READ sq.next on its way? */
static bool awaits_part(struct rnic_qp *qp, const struct wqe *wqe)
{
	struct requester *req = &qp->req;
	return is_class(wqe, CLASS_READ) && req->packet &&
	       req->una != psn_add(wqe->first_psn, req->packet);
}

/* During loss recovery, where answers are awaited: is this packet the last of a burst, or of a part
 * of it? */
static bool ends_burst(const struct rnic_qp *qp, uint32_t psn)
{
	uint32_t n = (uint32_t)psn_diff(psn, qp->req.una) + 1, burst = limit(qp);
	return qp->req.recovery.on && (n >= burst || n % ((burst + ACKS - 1) / ACKS) == 0);
}

/* What the other services have in their packets' headers. */
static void fill_service(const struct rnic_qp *qp, const struct wqe *wqe, struct packet *pkt)
{
	pkt->ack_req = false;
	if (qp->service == SERVICE_UD) {
		pkt->peer = wqe->peer;
		pkt->dest_qpn = wqe->remote_qpn;
		pkt->qkey = wqe->remote_qkey;
	}
}

/* Packets of the request, from req->packet on, that go together. What is sent again goes one by
 * one: the peer may have some of it. */
static uint32_t segments_of(const struct rnic_qp *qp, const struct wqe *wqe)
{
	uint32_t most = qp->hca->net->link->offload_bytes, n = wqe->psns - qp->req.packet, psn,
		 room;
	if (most <= qp->mtu || n == 1 || wqe->nonposted || wqe->round > 1 || qp->req.recovery.on ||
	    qp->service != SERVICE_RC)
		return 1;
	psn = psn_add(wqe->first_psn, qp->req.packet);
	room = window(qp) - (uint32_t)psn_diff(psn, qp->req.una);
	n = n < room ? n : room;
	n = n < most / qp->mtu ? n : most / qp->mtu;
	return n < SEGMENTS_MOST ? n : SEGMENTS_MOST;
}

/* n packets of the request from req->packet on; NULL: its memory is no longer allowed. */
static struct packet *build(struct rnic_qp *qp, struct wqe *wqe, uint32_t n)
{
	uint32_t i = qp->req.packet, left = (uint32_t)wqe->bytes - i * qp->mtu, off = i * qp->mtu;
	uint32_t len = !carries_data(wqe) ? 0 : left < n * qp->mtu ? left : n * qp->mtu;
	struct packet *pkt = packet_to(qp->hca->net, qp->attr.dest_qp_num, len);
	bool first = i == 0, last = i + n == wqe->psns;
	assert(n >= 1 && n <= SEGMENTS_MOST && i + n <= wqe->psns);
	if (len && wqe->copy) {
		memcpy(pkt->payload, wqe->copy + off, len);
	} else if (len &&
		   !sge_gather(qp->hca, qp->ibv.pd, wqe->sge, wqe->sges, off, pkt->payload, len)) {
		packet_put(qp->hca->net, pkt);
		return NULL;
	}
	pkt->peer = qp->peer;
	pkt->src_qpn = qp->ibv.qp_num;
	pkt->dest_qpn = qp->attr.dest_qp_num;
	pkt->psn = psn_add(wqe->first_psn, i);
	pkt->service = qp->service;
	pkt->opcode = operations[wqe->opcode].packet[packet_place(first, last)];
	pkt->more = (uint8_t)(n - 1);
	pkt->ack_req = last || wqe->nonposted || (i + n) % (window(qp) / ACKS) < n ||
		       ends_burst(qp, pkt->psn);
	pkt->solicited = last && wqe->solicited;
	pkt->rkey = wqe->rkey;
	pkt->va = wqe->va;
	pkt->dma_len = (uint32_t)wqe->bytes;
	if (is_class(wqe, CLASS_READ)) { /* what is still missing */
		pkt->va += off;
		pkt->dma_len = read_part(qp, wqe, i, left);
	}
	if (operation_is(wqe->opcode, NAMES_RANGE))
		pkt->dma_len = (uint32_t)wqe->range_len;
	pkt->placement = wqe->placement;
	pkt->selectivity = wqe->selectivity;
	pkt->swap_add = wqe->swap_add;
	pkt->compare = wqe->compare;
	pkt->imm = wqe->imm;
	if (qp->service != SERVICE_RC)
		fill_service(qp, wqe, pkt);
	pkt->invalidate = operations[wqe->opcode].with & WITH_INV ? wqe->rkey : 0;
	pkt->name = (struct packet_name){.who = &qp->actor,
					 .op = wqe->op,
					 .occurrence = wqe->occurrence,
					 .message = wqe->message,
					 .id = wqe->id,
					 .index = i + 1,
					 .round = wqe->round,
					 .operation = wqe->opcode,
					 .send = is_class(wqe, CLASS_SEND)};
	return pkt;
}

/* The link has room for the request's packet, or was given time enough to make some. */
static bool has_room(struct rnic_qp *qp, const struct wqe *wqe)
{
	struct requester *req = &qp->req;
	struct link *link = qp->hca->net->link;
	bool is_ud = qp->service == SERVICE_UD;
	if (!link->ready || link_ready(link, is_ud ? wqe->peer : qp->peer,
				       is_ud ? wqe->remote_qpn : qp->attr.dest_qp_num,
				       ground_now(qp_ground(qp)), &req->patience))
		return true;
	/* What was not sent need not have been answered. */
	req->deadline = ground_now(qp_ground(qp)) + timeout_ns(qp);
	alarm_set(qp_ground(qp), &req->tx, qp_chain(qp, CHAIN_SEND), LINK_READY_NS, fire_tx, qp);
	return false;
}

/* The packet was handed over: its sender will not learn more. */
static void sent(struct rnic_qp *qp, struct wqe *wqe, uint32_t psn)
{
	struct requester *req = &qp->req;
	assert(psn == req->una && !qp_is_reliable(qp));
	req->una = psn_add(psn, 1);
	if (req->una == psn_add(wqe->first_psn, wqe->psns))
		retire(qp);
}

static bool send_packet(struct rnic_qp *qp, struct wqe *wqe)
{
	struct requester *req = &qp->req;
	struct link *link = qp->hca->net->link;
	if (!has_room(qp, wqe))
		return false;
	uint32_t n = segments_of(qp, wqe);
	struct packet *pkt = build(qp, wqe, n);
	if (!pkt) {
		if (qp->sq.next == req->acked)
			fail(qp, IBV_WC_LOC_PROT_ERR);
		return false;
	}
	uint32_t psns = n;
	if (is_class(wqe, CLASS_READ) && pkt->dma_len)
		psns = (pkt->dma_len + qp->mtu - 1) / qp->mtu;
	if (pkt->psn == req->una && (!is_lossy(qp) || pkt->psn == req->recovery.sent))
		req->deadline = ground_now(qp_ground(qp)) + timeout_ns(qp);
	if (is_lossy(qp))
		recovery_sent(qp, pkt, psns);
	arm(qp);
	req->packet += psns;
	assert(req->packet <= wqe->psns);
	if (req->packet == wqe->psns) {
		qp->sq.next++;
		req->packet = 0;
	}
	uint32_t psn = pkt->psn;
	link->send(link, qp->hca->host, pkt);
	if (!qp_is_reliable(qp))
		sent(qp, wqe, psn);
	complete_early(qp);
	return true;
}

/* The request sq.next, which needs no packet. False: not now, or it failed. */
static bool run_local(struct rnic_qp *qp, struct wqe *wqe)
{
	if (qp->ibv.state == IBV_QPS_SQD || qp->sq.next != qp->req.acked)
		return false;
	enum ibv_wc_status status = mw_execute(qp, wqe);
	if (!active(qp))
		return false; /* by what it had to wait for */
	if (status != IBV_WC_SUCCESS) {
		fail(qp, status);
		return false;
	}
	wqe->started = true;
	wqe->first_psn = qp->req.next_psn;
	qp->sq.next++;
	retire(qp);
	return true;
}

static bool may_send(const struct rnic_qp *qp)
{
	return active(qp) && qp->sq.next != qp->req.rung && !qp->req.rnr_until;
}

/* During loss recovery: the result of the request sq.next, which was sent, may be on its way. */
static bool awaits_result(struct rnic_qp *qp, const struct wqe *wqe)
{
	const struct loss_recovery *recovery = &qp->req.recovery;
	return recovery->on && !recovery->ask && wqe->nonposted &&
	       psn_diff(psn_add(wqe->first_psn, qp->req.packet), recovery->sent) < 0;
}

static void transmit(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	while (may_send(qp)) {
		struct wqe *wqe = wqe_at(qp, qp->sq.next);
		ground_takes(qp_ground(qp), &qp->sq, qp->sq.next);
		if (operation_is(wqe->opcode, NO_PACKET)) {
			if (!run_local(qp, wqe))
				return;
			continue;
		}
		if (!wqe->started && !start(qp, wqe))
			return;
		if (psn_diff(psn_add(wqe->first_psn, req->packet), req->una) >= (int32_t)limit(qp))
			return;
		if (awaits_part(qp, wqe) || awaits_result(qp, wqe))
			return;
		if (!send_packet(qp, wqe))
			return;
		if (ground_scheduled(qp_ground(qp)))
			break;
	}
	/* With a scheduler, one packet an event. */
	if (ground_scheduled(qp_ground(qp)) && may_send(qp))
		req_kick(qp);
}

static void fire_tx(void *arg)
{
	struct rnic_qp *qp = arg;
	if (alarm_fired(qp_ground(qp), &qp->req.tx))
		transmit(qp);
}

void req_kick(struct rnic_qp *qp)
{
	if (active(qp) && qp->sq.next != qp->req.rung)
		alarm_set(qp_ground(qp), &qp->req.tx, qp_chain(qp, CHAIN_SEND),
			  ground_cost(qp_ground(qp))->doorbell, fire_tx, qp);
}

/* --- sending again --- */

/* Point sq.next at una. */
static void go_back(struct rnic_qp *qp, const char *why)
{
	struct requester *req = &qp->req;
	assert(req->una != req->next_psn);
	struct wqe *wqe = wqe_at(qp, req->acked);
	assert(wqe->started);
	qp->sq.next = req->acked;
	req->packet = (uint32_t)psn_diff(req->una, wqe->first_psn);
	for (uint32_t i = req->acked; i != qp->sq.posted && wqe_at(qp, i)->started; i++)
		wqe_at(qp, i)->round++;
	if (ground_traced(qp_ground(qp)))
		ground_trace(qp_ground(qp), &qp->actor, NULL, "%s: retransmits from PSN %u", why,
			     req->una);
}

/* Send again from una on. */
static void again(struct rnic_qp *qp, const char *why)
{
	go_back(qp, why);
	transmit(qp);
}

/* False: that was one too many. */
static bool may_retry(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	if (req->retry_left == 0) {
		COUNT_ONE(qp->hca->net, retry_exceeded);
		ground_given_up(qp_ground(qp), qp->hca->host, qp->peer, qp->attr.retry_cnt + 1u);
		fail(qp, IBV_WC_RETRY_EXC_ERR);
		return false;
	}
	COUNT_ONE(qp->hca->net, retry);
	req->retry_left--;
	return true;
}

/* Was packet una sent, since the last time that all was to be sent again? On a link without room
 * that may take long, and no answer can come before. */
static bool una_is_out(struct rnic_qp *qp)
{
	const struct wqe *wqe = wqe_at(qp, qp->sq.next);
	if (qp->sq.next == qp->sq.posted || !wqe->started || awaits_result(qp, wqe))
		return true;
	return psn_diff(psn_add(wqe->first_psn, qp->req.packet), qp->req.una) > 0;
}

/* There was no news for a while. */
static void probe(struct rnic_qp *qp)
{
	COUNT_ONE(qp->hca->net, probe);
	recovery_again(qp);
	recovery_wait_longer(qp);
	again(qp, "probe");
}

static void time_out(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	COUNT_ONE(qp->hca->net, timeout);
	if (!may_retry(qp))
		return;
	req->deadline = ground_now(qp_ground(qp)) + timeout_ns(qp);
	if (is_lossy(qp))
		recovery_again(qp);
	again(qp, "timeout");
}

/* A NAK for packet una. */
static void take_gap(struct rnic_qp *qp)
{
	if ((is_lossy(qp) && !recovery_begin(qp)) || !may_retry(qp))
		return;
	qp->req.deadline = ground_now(qp_ground(qp)) + timeout_ns(qp);
	again(qp, "NAK");
}

static void fire_timer(void *arg)
{
	struct rnic_qp *qp = arg;
	struct requester *req = &qp->req;
	if (!alarm_fired(qp_ground(qp), &req->timer) || !active(qp) || req->una == req->next_psn)
		return;
	bool waits = !req->rnr_until && una_is_out(qp);
	if (waits && qp->attr.timeout && ground_now(qp_ground(qp)) >= req->deadline) {
		time_out(qp);
	} else if (waits && is_lossy(qp) && ground_now(qp_ground(qp)) >= req->recovery.probe_at) {
		probe(qp);
	}
	if (active(qp) && req->una != req->next_psn)
		set_timer(qp);
}

void req_becomes_lossy(struct rnic_qp *qp)
{
	recovery_reset(
		qp); /* as if nothing were under way: some of it may be sent again for nothing */
	if (active(qp) && qp->req.una != qp->req.next_psn)
		set_timer(qp);
}

static void fire_rnr(void *arg)
{
	struct rnic_qp *qp = arg;
	if (!alarm_fired(qp_ground(qp), &qp->req.rnr))
		return;
	qp->req.rnr_until = 0;
	transmit(qp);
}

/* The receiver was not ready for packet una. */
static void wait_for_receiver(struct rnic_qp *qp, unsigned timer)
{
	/* Table 45: tens of microseconds. */
	static const uint32_t wait_10us[32] = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	 32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024, 1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
	struct requester *req = &qp->req;
	if (req->rnr_until)
		return; /* known */
	if (req->rnr_left == 0) {
		COUNT_ONE(qp->hca->net, rnr_exceeded);
		fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (qp->attr.rnr_retry != 7) /* 7: for ever */
		req->rnr_left--;
	uint64_t ns = (uint64_t)wait_10us[timer & 31] * 10000;
	req->rnr_until = ground_now(qp_ground(qp)) + ns;
	req->deadline = req->rnr_until + timeout_ns(qp);
	go_back(qp, "receiver not ready");
	alarm_set(qp_ground(qp), &req->rnr, CHAIN_OTHER, ns, fire_rnr, qp);
}

void req_drained(struct rnic_qp *qp)
{
	if (qp->ibv.state != IBV_QPS_SQD || !qp->attr.en_sqd_async_notify ||
	    qp->req.una != qp->req.next_psn)
		return;
	qp->attr.en_sqd_async_notify = 0;
	qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

/* --- responses --- */

static void progress(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	req->retry_left = qp->attr.retry_cnt;
	req->rnr_left = qp->attr.rnr_retry;
	req->implied = false;
	req->deadline = ground_now(qp_ground(qp)) + timeout_ns(qp);
	if (is_lossy(qp))
		recovery_progress(qp);
	if (req->acked == qp->sq.next && req->una != req->next_psn) {
		uint32_t packet = (uint32_t)psn_diff(req->una, wqe_at(qp, req->acked)->first_psn);
		if (req->packet < packet)
			req->packet = packet;
	}
}

/* All before `end` is acknowledged. False: not all of it can be, a result is missing. */
static bool advance(struct rnic_qp *qp, uint32_t end)
{
	struct requester *req = &qp->req;
	bool moved = false;
	assert(psn_diff(end, req->next_psn) <= 0);
	while (psn_diff(end, req->una) > 0) {
		struct wqe *wqe = wqe_at(qp, req->acked);
		if (wqe->nonposted)
			break;
		uint32_t wqe_end = psn_add(wqe->first_psn, wqe->psns);
		if (psn_diff(end, wqe_end) >= 0) {
			req->una = wqe_end;
			retire(qp);
		} else {
			req->una = end;
		}
		moved = true;
	}
	if (moved)
		progress(qp);
	if (req->una == end)
		return true;
	if (!req->implied && !is_lossy(qp)) {
		req->implied = true;
		go_back(qp, "missing response");
	}
	return false;
}

static void refused(struct rnic_qp *qp, uint8_t syndrome)
{
	switch (syndrome) {
	case AETH_NAK_SEQUENCE:
		take_gap(qp);
		break;
	case AETH_NAK_INVALID_REQUEST:
		fail(qp, IBV_WC_REM_INV_REQ_ERR);
		break;
	case AETH_NAK_REMOTE_ACCESS:
		fail(qp, IBV_WC_REM_ACCESS_ERR);
		break;
	case AETH_NAK_REMOTE_OPERATION:
		fail(qp, IBV_WC_REM_OP_ERR);
		break;
	default:
		fail(qp, IBV_WC_BAD_RESP_ERR);
	}
}

/* A READ's response packet or the result of an atomic, FLUSH or ATOMIC WRITE, for PSN una. */
static void take_result(struct rnic_qp *qp, const struct packet *pkt)
{
	struct requester *req = &qp->req;
	const struct wqe *wqe = wqe_at(qp, req->acked);
	bool atomic = is_class(wqe, CLASS_ATOMIC);
	const uint8_t *data = atomic ? (const uint8_t *)&pkt->original : pkt->payload;
	uint32_t off = (uint32_t)psn_diff(req->una, wqe->first_psn) * qp->mtu;
	uint32_t left = (uint32_t)wqe->bytes - off, len = atomic ? ATOMIC_BYTES : pkt->len;
	if (!wqe->nonposted || atomic != !!(opcode_is[pkt->opcode] & IS_ATOMIC))
		return;
	if (carries_data(wqe))
		left = 0; /* that was to go there, nothing comes back */
	if (len != (left < qp->mtu ? left : qp->mtu)) {
		fail(qp, IBV_WC_BAD_RESP_ERR);
		return;
	}
	struct packet_name name = pkt->name;
	name.who = &qp->actor;
	name.answer = true;
	if (!sge_scatter(qp->hca, qp->ibv.pd, wqe->sge, wqe->sges, off, data, len, &name)) {
		mixed_lkey(qp, qp->ibv.pd, wqe->sge, wqe->sges, IBV_ACCESS_LOCAL_WRITE,
			   operations[wqe->opcode].name);
		fail(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	req->una = psn_add(req->una, 1);
	if (req->una == psn_add(wqe->first_psn, wqe->psns))
		retire(qp);
	progress(qp);
}

static bool is_awaited(const struct rnic_qp *qp, const struct packet *pkt)
{
	const struct requester *req = &qp->req;
	if (MUTANT(&qp->hca->hw, NIC_PSN_WRAP) && pkt->psn < req->una)
		return false;
	return active(qp) && req->una != req->next_psn && psn_diff(pkt->psn, req->una) >= 0 &&
	       psn_diff(pkt->psn, req->next_psn) < 0; /* else old, or nonsense */
}

static void take_acknowledgement(struct rnic_qp *qp, const struct packet *pkt)
{
	struct requester *req = &qp->req;
	uint8_t kind = pkt->syndrome & AETH_KIND;
	bool positive = kind == (AETH_ACK & AETH_KIND);
	uint32_t end = psn_add(pkt->psn, positive);
	if (!advance(qp, end)) {
		if (is_lossy(qp) && psn_diff(end, req->recovery.acked_ahead) > 0)
			req->recovery.acked_ahead = end;
		return;
	}
	if (positive)
		return;
	count_nak(qp->hca->net, pkt->syndrome, false);
	if (kind == AETH_RNR_NAK)
		wait_for_receiver(qp, pkt->syndrome & 31);
	else
		refused(qp, pkt->syndrome);
}

/* Results whose turn has come, because another one is no longer missing. */
static void take_reordered(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	struct reorder_buffer *reorder = &req->recovery.reorder;
	struct packet *pkt;
	while (active(qp) && (pkt = reorder_first(qp, reorder, req->una)) &&
	       advance(qp, pkt->psn)) {
		reorder_pop(reorder);
		take_result(qp, pkt);
		packet_put(qp->hca->net, pkt);
	}
	if (active(qp) && psn_diff(req->recovery.acked_ahead, req->una) > 0)
		advance(qp, req->recovery.acked_ahead);
}

static void fire_gap(void *arg);

/* Is a result really missing? */
static void look_for_gap(struct rnic_qp *qp)
{
	struct requester *req = &qp->req;
	if (active(qp) && reorder_has_gap(qp, &req->recovery.reorder, req->una, fire_gap) &&
	    recovery_begin(qp))
		again(qp, "missing response");
}

static void fire_gap(void *arg)
{
	struct rnic_qp *qp = arg;
	if (alarm_fired(qp_ground(qp), &qp->req.recovery.reorder.alarm))
		look_for_gap(qp);
}

void req_response(struct rnic_qp *qp, struct packet *pkt)
{
	struct requester *req = &qp->req;
	if (!is_awaited(qp, pkt)) {
		packet_put(qp->hca->net, pkt);
		return;
	}
	if (MUTANT(&qp->hca->hw, NIC_READ_HOLE) && pkt->opcode == OP_READ_RESPONSE_LAST)
		req->una = pkt->psn;
	if (pkt->opcode == OP_ACKNOWLEDGE) {
		take_acknowledgement(qp, pkt);
	} else if (advance(qp, pkt->psn)) {
		take_result(qp, pkt);
	} else if (is_lossy(qp)) {
		reorder_push(qp, &req->recovery.reorder, req->una, pkt);
		pkt = NULL;
	}
	if (pkt)
		packet_put(qp->hca->net, pkt);
	if (is_lossy(qp)) {
		take_reordered(qp);
		look_for_gap(qp);
	}
	if (qp->ibv.state == IBV_QPS_SQD)
		req_drained(qp);
	if (ground_scheduled(qp_ground(qp)))
		req_kick(qp);
	else
		transmit(qp);
}
