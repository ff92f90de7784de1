/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: decides about each request packet that comes in (IBA vol. 1,
 * 9.7). What is let in takes effect in landing.c.
 *
 * A packet with the expected PSN is checked (order of the message's packets,
 * lengths, rights of the queue pair, key, domain, bounds, a receive request where
 * one is needed) and let in, or answered with a NAK: RNR, which leaves the sequence
 * where it is; invalid request, remote access error, remote operational error,
 * which end the connection. A packet from the future means that some were lost:
 * one NAK, then silence until the gap is closed. A packet from the past is a
 * duplicate: SEND and WRITE are acknowledged again and not executed, a READ is
 * executed again, the others (atomics, FLUSH, ATOMIC WRITE) are answered again with
 * the result that was saved.
 *
 * Acknowledgements are cumulative and must not overtake the answer of a READ,
 * atomic, FLUSH or ATOMIC WRITE before them: while one is pending, they queue after
 * it. When they leave depends on the configuration: on receipt (ack_early: the sender's completion
 * may precede visibility, as on InfiniBand and RoCE) or when the data have landed.
 */
#include "core/rnic/transport/responder.h"
#include <assert.h>
#include <string.h>
#include "core/rnic/count.h"
#include "core/rnic/objects/ah.h"
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/dma.h"
#include "core/rnic/objects/mixed_keys.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/mw.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/srq.h"
#include "core/rnic/objects/work_queue.h"
#include "core/rnic/transport/landing.h"
#include "core/rnic/transport/link.h"
#include "core/rnic/transport/packet.h"
#include "core/rnic/transport/reorder_buffer.h"
#include "core/rnic/transport/time_wait.h"
#include "core/verbs_compat.h"

bool resp_active(const struct rnic_qp *qp)
{
	enum ibv_qp_state state = qp->ibv.state;
	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
	       state == IBV_QPS_SQE;
}

static void drop_received(struct rnic_qp *qp)
{
	struct packet *pkt;
	while ((pkt = queue_pop(&qp->resp.received)))
		packet_put(qp->hca->net, pkt);
}

void resp_reset(struct rnic_qp *qp)
{
	assert(!qp->resp.land.head && !qp->resp.answers.head);
	reorder_drop(qp, &qp->resp.reorder);
	drop_received(qp);
	memset(&qp->resp, 0, sizeof(qp->resp));
	qp_recv_freed(qp, qp->rq.posted);
	qp->rq.posted = qp->rq.next = qp->rq.done = qp->rq.freed = 0;
}

/* --- receive requests --- */

/* Say in the completion which way a datagram came. */
static void take_route(const struct rnic_qp *qp, struct ibv_wc *wc)
{
	wc->slid = qp->hca->net->lid;
	if (wc->slid)
		return; /* within a subnet of InfiniBand: the 40 bytes mean nothing */
	wc->sl = rnic_header_kind(qp->hca);
	wc->wc_flags |= IBV_WC_GRH;
}

void resp_complete(struct rnic_qp *qp, uint32_t seq, enum ibv_wc_status status,
		   const struct packet *pkt)
{
	const struct rqe *rqe = queue_at(&qp->rq, seq);
	struct cqe cqe = {.qp = qp, .seq = seq, .recv = true};
	assert(seq == qp->rq.done && seq != qp->rq.posted);
	qp->rq.done++;
	cqe.wc.wr_id = rqe->wr_id;
	cqe.wc.status = status;
	cqe.wc.opcode = IBV_WC_RECV;
	cqe.wc.qp_num = qp->ibv.qp_num;
	if (pkt) {
		if (!(opcode_is[pkt->opcode] & IS_SEND))
			cqe.wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
		if (opcode_is[pkt->opcode] & HAS_IMM) {
			cqe.wc.imm_data = pkt->imm;
			cqe.wc.wc_flags = IBV_WC_WITH_IMM;
		}
		if (has_invalidate(pkt->opcode)) {
			cqe.wc.invalidated_rkey = pkt->invalidate;
			cqe.wc.wc_flags = IBV_WC_WITH_INV;
		}
		cqe.wc.byte_len = pkt->msg_len;
		cqe.wc.src_qp = qp->attr.dest_qp_num;
		if (qp->service == SERVICE_UD) {
			cqe.wc.src_qp = pkt->src_qpn;
			take_route(qp, &cqe.wc);
		}
		cqe.solicited = pkt->solicited;
		cqe.op = pkt->name.op;
		cqe.message = pkt->name.id;
	}
	cq_push(qp->hca->net, (struct rnic_cq *)qp->ibv.recv_cq, &cqe);
}

static void complete_message(struct rnic_qp *qp, const struct packet *pkt)
{
	resp_complete(qp, pkt->rq_seq, pkt->bad_key ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS, pkt);
}

bool resp_received(struct rnic_qp *qp, struct packet *pkt)
{
	struct packet_queue *received = &qp->resp.received;
	if (pkt->rq_seq != qp->rq.done) {
		queue_push(received, pkt);
		return true;
	}
	complete_message(qp, pkt);
	while (received->head && received->head->rq_seq == qp->rq.done) {
		pkt = queue_pop(received);
		complete_message(qp, pkt);
		packet_put(qp->hca->net, pkt);
	}
	return false;
}

void resp_flush(struct rnic_qp *qp)
{
	enum ibv_wc_status status = qp->resp.recv_status;
	qp->resp.recv_status = IBV_WC_SUCCESS;
	qp->resp.flush_rq = false;
	drop_received(qp);
	qp->resp.in_message = 0;
	while (qp->rq.done != qp->rq.posted) {
		resp_complete(qp, qp->rq.done, status ? status : IBV_WC_WR_FLUSH_ERR, NULL);
		status = IBV_WC_SUCCESS;
	}
	qp->rq.next = qp->rq.posted;
	reorder_drop(qp, &qp->resp.reorder);
	if (qp->srq)
		rnic_event(qp->hca, IBV_EVENT_QP_LAST_WQE_REACHED, &qp->ibv);
}

bool resp_ready(struct rnic_qp *qp)
{
	return qp->rq.next != qp->rq.posted || (qp->srq && srq_take(qp));
}

/* --- answers --- */

struct packet *resp_answer(struct rnic_qp *qp, const struct packet *request, uint8_t opcode,
			   uint32_t len)
{
	struct packet *pkt = packet_to(qp->hca->net, qp->attr.dest_qp_num, len);
	pkt->peer = qp->peer;
	pkt->src_qpn = qp->ibv.qp_num;
	pkt->dest_qpn = qp->attr.dest_qp_num;
	pkt->psn = request->psn;
	pkt->service = qp->service;
	pkt->opcode = opcode;
	pkt->syndrome = AETH_ACK;
	pkt->msn = qp->resp.msn;
	pkt->name = request->name;
	pkt->name.who = &qp->actor;
	pkt->name.index += INDEX_ACK;
	return pkt;
}

static const char *nak_name(uint8_t syndrome)
{
	switch (syndrome) {
	case AETH_NAK_SEQUENCE:
		return "NAK, sequence error";
	case AETH_NAK_INVALID_REQUEST:
		return "NAK, invalid request";
	case AETH_NAK_REMOTE_ACCESS:
		return "NAK, remote access error";
	case AETH_NAK_REMOTE_OPERATION:
		return "NAK, remote operational error";
	default:
		return "NAK, receiver not ready";
	}
}

static void trace_nak(struct rnic_qp *qp, const struct packet *answer)
{
	static const uint8_t status[] = {
		[AETH_NAK_INVALID_REQUEST & ~AETH_KIND] = IBV_WC_REM_INV_REQ_ERR,
		[AETH_NAK_REMOTE_ACCESS & ~AETH_KIND] = IBV_WC_REM_ACCESS_ERR,
		[AETH_NAK_REMOTE_OPERATION & ~AETH_KIND] = IBV_WC_REM_OP_ERR,
	};
	const uint8_t at = answer->syndrome & (uint8_t)~AETH_KIND;
	struct traced about = {.op = answer->name.op, .occurrence = answer->name.occurrence};
	if (!ground_traced(qp_ground(qp)))
		return;
	/* After the others the request is repeated. */
	if ((answer->syndrome & AETH_KIND) == AETH_KIND && at < sizeof(status) && status[at]) {
		about.kind = TRACED_FAILED;
		about.code = status[at];
	}
	ground_trace(qp_ground(qp), &qp->actor, &about, "%s, PSN %u", nak_name(answer->syndrome),
		     answer->psn);
}

/* An error that no receive request's completion tells of is an event (IBA vol. 1, 11.6.3.2). */
static void report_refusal(struct rnic_qp *qp, uint8_t syndrome)
{
	enum ibv_event_type type = IBV_EVENT_QP_FATAL;
	if (syndrome == AETH_NAK_INVALID_REQUEST)
		type = IBV_EVENT_QP_REQ_ERR;
	else if (syndrome == AETH_NAK_REMOTE_ACCESS)
		type = IBV_EVENT_QP_ACCESS_ERR;
	if (qp->ibv.state != IBV_QPS_ERR && qp->resp.recv_status == IBV_WC_SUCCESS &&
	    !qp->resp.told)
		qp_event(qp, type);
}

void resp_send(struct rnic_qp *qp, struct packet *answer)
{
	struct link *link = qp->hca->net->link;
	uint8_t syndrome = answer->syndrome;
	uint32_t psn = answer->psn;
	if (!(syndrome & AETH_KIND)) {
		if (psn_diff(answer->psn, qp->resp.acked_psn) > 0)
			qp->resp.acked_psn = answer->psn;
	} else {
		count_nak(qp->hca->net, syndrome, true);
		trace_nak(qp, answer);
	}
	link->send(link, qp->hca->host, answer);
	if (syndrome == AETH_NAK_INVALID_REQUEST || syndrome == AETH_NAK_REMOTE_ACCESS ||
	    syndrome == AETH_NAK_REMOTE_OPERATION) {
		qp->resp.final_answer.refused_psn = psn;
		qp->resp.final_answer.syndrome = syndrome;
		report_refusal(qp, syndrome);
		qp_fail(qp);
	}
}

/* Send it now, or when those before it have been sent. */
static void in_turn(struct rnic_qp *qp, struct packet *answer)
{
	/* With ack_early=off this is about what lands, and what comes in lines up meanwhile: it
	 * matters which is first, also where nothing waits yet. */
	ground_touch(qp_ground(qp), TOUCH_DRAM_WRITE, &qp->resp.answers, 1);
	if (qp->resp.answers.head)
		answer_push(qp, answer);
	else
		resp_send(qp, answer);
}

void resp_acknowledge(struct rnic_qp *qp, const struct packet *request)
{
	if (!resp_active(qp))
		return;
	struct packet *answer = resp_answer(qp, request, OP_ACKNOWLEDGE, 0);
	answer->psn = psn_add(request->psn, request->more);
	in_turn(qp, answer);
}

static void nak(struct rnic_qp *qp, const struct packet *request, uint32_t psn, uint8_t syndrome)
{
	struct packet *pkt = resp_answer(qp, request, OP_ACKNOWLEDGE, 0);
	pkt->psn = psn;
	pkt->syndrome = syndrome;
	in_turn(qp, pkt);
}

void resp_refuse(struct rnic_qp *qp, const struct packet *request, uint32_t psn,
		 enum syndrome syndrome)
{
	assert((syndrome & AETH_KIND) == AETH_KIND && syndrome != AETH_NAK_SEQUENCE);
	if (!qp_is_reliable(qp)) { /* the peer is not told */
		report_refusal(qp, syndrome);
		qp_fail(qp);
		return;
	}
	qp->resp.failed = true;
	nak(qp, request, psn, syndrome);
}

/* --- checks of a packet whose turn it is --- */

static const struct class_row *class_of(const struct packet *pkt)
{
	return &class_rows[packet_rows[pkt->opcode].class];
}

/* Bytes of the one word that it works on; 0: it works on a range. */
static uint32_t word_bytes(const struct packet *pkt)
{
	return class_of(pkt)->word_bytes;
}

uint64_t resp_word(const struct packet *pkt)
{
	return class_of(pkt)->is & NAMES_RANGE ? pkt->va + pkt->dma_len - word_bytes(pkt) : pkt->va;
}

/* Its place in the message, its length. */
static bool well_formed(const struct rnic_qp *qp, const struct packet *pkt)
{
	uint8_t is = opcode_is[pkt->opcode], kind = is & (IS_SEND | IS_WRITE);
	if (!kind && packet_rows[pkt->opcode].headers & PAYLOAD) {
		uint32_t bytes = word_bytes(pkt);
		return !qp->resp.in_message && pkt->len == bytes &&
		       (class_of(pkt)->is & NAMES_RANGE ? pkt->dma_len >= bytes
							: pkt->dma_len == bytes);
	}
	if (!kind)
		return !qp->resp.in_message && pkt->len == 0;
	if (is & IS_FIRST ? qp->resp.in_message != 0 : qp->resp.in_message != kind)
		return false;
	uint32_t most = (pkt->more + 1) * qp->mtu;
	if (!(is & IS_LAST))
		return pkt->len == most;
	return pkt->len <= most && (pkt->len > most - qp->mtu || (is & IS_FIRST && !pkt->more));
}

uint8_t resp_check_send(struct rnic_qp *qp, const struct packet *pkt)
{
	const struct rqe *rqe = queue_at(&qp->rq, qp->rq.next);
	uint64_t off = opcode_is[pkt->opcode] & IS_FIRST ? 0 : qp->resp.msg_off;
	if (off + pkt->len > sge_bytes(rqe->sge, rqe->sges)) {
		qp->resp.recv_status = IBV_WC_LOC_LEN_ERR;
		return AETH_NAK_INVALID_REQUEST;
	}
	if (!sge_allowed(qp->hca, qp_recv_pd(qp), rqe->sge, rqe->sges, off, pkt->len,
			 IBV_ACCESS_LOCAL_WRITE)) {
		mixed_lkey(qp, qp_recv_pd(qp), rqe->sge, rqe->sges, IBV_ACCESS_LOCAL_WRITE, NULL);
		qp->resp.recv_status = IBV_WC_LOC_PROT_ERR;
		return AETH_NAK_REMOTE_OPERATION;
	}
	return AETH_ACK;
}

static uint8_t check_write(struct rnic_qp *qp, struct packet *pkt)
{
	uint8_t is = opcode_is[pkt->opcode];
	uint64_t va = is & IS_FIRST ? pkt->va : qp->resp.va;
	if (MUTANT(&qp->hca->hw, NIC_PACKET_MISPLACED) && !(is & IS_FIRST))
		va -= qp->resp.msg_off;
	uint32_t left = is & IS_FIRST ? pkt->dma_len : qp->resp.left;
	uint32_t rkey = is & IS_FIRST ? pkt->rkey : qp->resp.rkey;
	int access = class_of(pkt)->right;
	if (!(qp->attr.qp_access_flags & access) || left > MAX_MESSAGE)
		return AETH_NAK_INVALID_REQUEST;
	if (is & IS_LAST ? pkt->len != left : pkt->len >= left)
		return AETH_NAK_INVALID_REQUEST;
	if (!left)
		return AETH_ACK; /* nothing to write needs no key */
	/* From here on to the message's end: the first packet checks all of it. */
	pkt->mr = mr_remote(qp, rkey, access, va, left);
	if (!pkt->mr) {
		count_key(qp, rkey, (unsigned)access);
		mixed_rkey(qp, pkt->opcode, rkey, access, va, left);
		/* The receive request that the immediate data would have taken tells of it
		 * (11.6.2). */
		if (is & HAS_IMM && qp_is_reliable(qp) && resp_ready(qp))
			qp->resp.recv_status = IBV_WC_LOC_ACCESS_ERR;
		return AETH_NAK_REMOTE_ACCESS;
	}
	pkt->host = mr_host(pkt->mr, va);
	if (pkt->mr->region) /* what is on its way no longer depends on the window */
		pkt->mr = pkt->mr->region;
	return AETH_ACK;
}

/* The rights that a request which is not posted needs, of the queue pair and of the region. 0: no
 * request. FLUSH has a right for each placement type, and needs no other. */
static unsigned access_of(const struct packet *pkt)
{
	if (pkt->opcode != OP_FLUSH)
		return class_of(pkt)->right;
	if (pkt->placement & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT) ||
	    pkt->selectivity > IBV_FLUSH_MR)
		return 0;
	return (pkt->placement & IBV_FLUSH_GLOBAL ? IBV_ACCESS_FLUSH_GLOBAL : 0) |
	       (pkt->placement & IBV_FLUSH_PERSISTENT ? IBV_ACCESS_FLUSH_PERSISTENT : 0);
}

struct rnic_mr *resp_region(struct rnic_qp *qp, const struct packet *pkt)
{
	int access = (int)access_of(pkt);
	uint32_t word = word_bytes(pkt);
	if (pkt->opcode == OP_FLUSH && pkt->selectivity == IBV_FLUSH_MR)
		return mr_remote_whole(qp, pkt->rkey, access);
	bool one = word && !(class_of(pkt)->is & NAMES_RANGE);
	return mr_remote(qp, pkt->rkey, access, pkt->va, one ? word : pkt->dma_len);
}

static uint8_t check_nonposted(struct rnic_qp *qp, const struct packet *pkt)
{
	bool is_read = pkt->opcode == OP_READ_REQUEST;
	uint32_t word = word_bytes(pkt);
	unsigned access = access_of(pkt);
	if (!access || (qp->attr.qp_access_flags & access) != access)
		return AETH_NAK_INVALID_REQUEST;
	if (is_read && pkt->dma_len > MAX_MESSAGE)
		return AETH_NAK_INVALID_REQUEST;
	if (!pkt->duplicate && qp->resp.nonposted >= qp->attr.max_dest_rd_atomic)
		return AETH_NAK_INVALID_REQUEST;
	if (word && resp_word(pkt) % word)
		return AETH_NAK_INVALID_REQUEST;
	if (is_read && !pkt->dma_len)
		return AETH_ACK;
	struct rnic_mr *mr = resp_region(qp, pkt);
	if (!mr) {
		count_key(qp, pkt->rkey, access);
		mixed_rkey(qp, pkt->opcode, pkt->rkey, (int)access, pkt->va,
			   word ? word : pkt->dma_len);
		return AETH_NAK_REMOTE_ACCESS;
	}
	if (word && (uintptr_t)mr_host(mr, resp_word(pkt)) % word)
		return AETH_NAK_INVALID_REQUEST;
	return AETH_ACK;
}

uint8_t resp_check(struct rnic_qp *qp, struct packet *pkt)
{
	uint8_t is = opcode_is[pkt->opcode];
	if (!well_formed(qp, pkt)) {
		COUNT_ONE(qp->hca->net, bad_sequence);
		return AETH_NAK_INVALID_REQUEST;
	}
	if ((is & IS_SEND || is & HAS_IMM) && !resp_ready(qp)) {
		COUNT_ONE(qp->hca->net, no_receive);
		return AETH_RNR_NAK | qp->attr.min_rnr_timer;
	}
	if (is & IS_SEND)
		return resp_check_send(qp, pkt);
	if (is & IS_WRITE)
		return check_write(qp, pkt);
	return check_nonposted(qp, pkt);
}

/* --- letting in --- */

static uint32_t psns_of(const struct rnic_qp *qp, const struct packet *pkt)
{
	if (pkt->opcode != OP_READ_REQUEST || pkt->dma_len == 0)
		return 1;
	return (uint32_t)(((uint64_t)pkt->dma_len + qp->mtu - 1) / qp->mtu);
}

/* The bytes are in the RNIC's buffers: the persistence model wants to know. */
static void arrive(struct rnic_qp *qp, const struct packet *pkt)
{
	struct piece piece;
	if (!qp->hca->memory->arrive)
		return;
	if (opcode_is[pkt->opcode] & IS_WRITE) {
		if (pkt->len)
			dma_arrive(qp->hca, pkt->mr, pkt->host, pkt->payload, pkt->len, &pkt->name);
		return;
	}
	const struct rqe *rqe = queue_at(&qp->rq, pkt->rq_seq);
	for (uint32_t off = 0; off < pkt->len; off += piece.len) {
		bool allowed = sge_piece(qp->hca, qp_recv_pd(qp), rqe->sge, rqe->sges,
					 pkt->msg_off + off, pkt->len - off, IBV_ACCESS_LOCAL_WRITE,
					 &piece);
		assert(allowed); /* just checked */
		dma_arrive(qp->hca, piece.mr, piece.host, pkt->payload + off, piece.len,
			   &pkt->name);
	}
}

/* A key that is not the peer's to invalidate: the message has come, and is the last one. */
static void invalidate(struct rnic_qp *qp, struct packet *pkt)
{
	if (mw_may_invalidate(qp, pkt->invalidate))
		mw_invalidate(qp, pkt->invalidate);
	else
		qp->resp.failed = pkt->bad_key = true;
}

static void accept_posted(struct rnic_qp *qp, struct packet *pkt)
{
	struct responder *resp = &qp->resp;
	uint8_t is = opcode_is[pkt->opcode];
	if (is & IS_FIRST) {
		resp->in_message = is & (IS_SEND | IS_WRITE);
		resp->msg_off = 0;
		resp->va = pkt->va;
		resp->rkey = pkt->rkey;
		resp->left = pkt->dma_len;
	}
	assert(!(is & IS_WRITE) || pkt->len <= resp->left);
	assert(!(is & (IS_SEND | HAS_IMM)) || qp->rq.next != qp->rq.posted);
	pkt->rq_seq = qp->rq.next;
	pkt->msg_off = resp->msg_off;
	pkt->name.request = resp->msn + 1;
	resp->psn = psn_add(resp->psn, pkt->more + 1u);
	resp->va += pkt->len;
	resp->left -= pkt->len;
	resp->msg_off += pkt->len;
	pkt->msg_len = resp->msg_off;
	if (is & IS_LAST) {
		resp->in_message = 0;
		resp->msn = psn_add(resp->msn, 1);
		if (is & (IS_SEND | HAS_IMM))
			qp->rq.next++;
		if (has_invalidate(pkt->opcode))
			invalidate(qp, pkt);
	}
	if (MUTANT(&qp->hca->hw, NIC_LAST_LINE) && is & IS_WRITE && pkt->len > LINE)
		pkt->len -= pkt->len % LINE;
	arrive(qp, pkt);
	if (pkt->ack_req && rnic_acks_early(qp) && !pkt->bad_key)
		resp_acknowledge(qp, pkt);
	if (is & IS_LAST && is & (IS_SEND | HAS_IMM) && MUTANT(&qp->hca->hw, NIC_RECEIVE_EARLY) &&
	    pkt->rq_seq == qp->rq.done)
		resp_complete(qp, pkt->rq_seq, IBV_WC_SUCCESS, pkt);
	land_push(qp, pkt);
}

/* The peer is alive: a packet of it was accepted. */
static void establish(struct rnic_qp *qp)
{
	if (qp->ibv.state == IBV_QPS_RTR && !qp->resp.established) {
		qp->resp.established = true;
		if (qp->ibv.qp_type != IBV_QPT_UD)
			qp_event(qp, IBV_EVENT_COMM_EST);
	}
}

void resp_accept(struct rnic_qp *qp, struct packet *pkt)
{
	assert(!qp_is_reliable(qp) || pkt->psn == qp->resp.psn);
	establish(qp);
	pkt->name.who = &qp->actor; /* from here on this queue pair answers for it */
	if (opcode_is[pkt->opcode] & (IS_SEND | IS_WRITE)) {
		accept_posted(qp, pkt);
		return;
	}
	qp->resp.psn = psn_add(qp->resp.psn, psns_of(qp, pkt));
	qp->resp.msn = psn_add(qp->resp.msn, 1);
	qp->resp.nonposted++;
	assert(qp->resp.nonposted <= qp->attr.max_dest_rd_atomic);
	if (opcode_is[pkt->opcode] & HAS_IMM)
		pkt->rq_seq = qp->rq.next++;
	answer_push(qp, pkt);
}

/* --- packets from the past --- */

static bool is_queued(const struct rnic_qp *qp, const struct packet *pkt)
{
	for (const struct packet *other = qp->resp.answers.head; other; other = other->next)
		if (other->opcode == pkt->opcode && other->psn == pkt->psn)
			return true;
	return false;
}

struct packet *resp_result(struct rnic_qp *qp, const struct packet *request, uint64_t original)
{
	bool is_atomic = opcode_is[request->opcode] & IS_ATOMIC;
	struct packet *answer = resp_answer(
		qp, request, is_atomic ? OP_ATOMIC_ACKNOWLEDGE : OP_READ_RESPONSE_ONLY, 0);
	answer->original = original;
	return answer;
}

/* From the newest on: sequence numbers come again. */
static void repeat_result(struct rnic_qp *qp, const struct packet *pkt)
{
	for (unsigned i = 1; i <= MAX_RD_ATOMIC; i++) {
		const struct saved_answer
			*saved = &qp->resp.saved[(qp->resp.saved_next - i) % MAX_RD_ATOMIC];
		if (!saved->used || saved->psn != pkt->psn || saved->opcode != pkt->opcode)
			continue;
		in_turn(qp, resp_result(qp, pkt, saved->original));
		return;
	}
}

/* The peer has not heard that the packet was let in. */
static void acknowledge_again(struct rnic_qp *qp, const struct packet *pkt)
{
	struct packet *last = qp->resp.land.head ? qp->resp.land.tail : NULL;
	if (is_lossy(qp) && last && (!rnic_acks_early(qp) || last->bad_key)) {
		last->ack_req = true;
		return;
	}
	struct packet *answer = resp_answer(qp, pkt, OP_ACKNOWLEDGE, 0);
	if (is_lossy(qp)) {
		answer->psn = psn_add(qp->resp.psn, PSN_MASK);
		in_turn(qp, answer);
	} else {
		answer->psn = qp->resp.acked_psn;
		resp_send(qp, answer); /* says nothing that was not said before: may overtake */
	}
}

static void duplicate(struct rnic_qp *qp, struct packet *pkt)
{
	uint8_t is = opcode_is[pkt->opcode];
	pkt->duplicate = true;
	if (pkt->opcode == OP_READ_REQUEST && pkt->len == 0 && !is_queued(qp, pkt) &&
	    psn_diff(psn_add(pkt->psn, psns_of(qp, pkt)), qp->resp.psn) <= 0 &&
	    check_nonposted(qp, pkt) == AETH_ACK) {
		pkt->name.who = &qp->actor;
		answer_push(qp, pkt);
		return;
	}
	if (MUTANT(&qp->hca->hw, NIC_ATOMIC_REPEATED) && is & IS_ATOMIC && !is_queued(qp, pkt)) {
		pkt->name.who = &qp->actor;
		answer_push(qp, pkt);
		return;
	}
	if (!(is & (IS_SEND | IS_WRITE | IS_READ)) && !is_queued(qp, pkt))
		repeat_result(qp, pkt);
	if (MUTANT(&qp->hca->hw, NIC_DUPLICATE_EXECUTED) && pkt->opcode == OP_WRITE_ONLY &&
	    pkt->len && check_write(qp, pkt) == AETH_ACK) {
		pkt->ack_req = false;
		pkt->name.who = &qp->actor;
		land_push(qp, pkt);
		return;
	}
	if (is & (IS_SEND | IS_WRITE) && pkt->ack_req)
		acknowledge_again(qp, pkt);
	packet_put(qp->hca->net, pkt);
}

/* --- packets from the future --- */

static void nak_gap(struct rnic_qp *qp, const struct packet *pkt)
{
	if (qp->resp.nak_sent)
		return;
	qp->resp.nak_sent = true;
	nak(qp, pkt, qp->resp.psn, AETH_NAK_SEQUENCE);
}

static void fire_gap(void *arg);

/* Lossy link: is a request really missing? */
static void look_for_gap(struct rnic_qp *qp)
{
	struct responder *resp = &qp->resp;
	if (resp_active(qp) && !resp->failed &&
	    reorder_has_gap(qp, &resp->reorder, resp->psn, fire_gap))
		nak_gap(qp, resp->reorder.head);
}

static void fire_gap(void *arg)
{
	struct rnic_qp *qp = arg;
	if (alarm_fired(qp_ground(qp), &qp->resp.reorder.alarm))
		look_for_gap(qp);
}

static void too_early(struct rnic_qp *qp, struct packet *pkt)
{
	struct responder *resp = &qp->resp;
	struct rnic_net *net = qp->hca->net;
	COUNT_ONE(net, psn_gap);
	if (is_lossy(qp) && !resp->not_ready) {
		reorder_push(qp, &resp->reorder, resp->psn, pkt);
		look_for_gap(qp);
		return;
	}
	if (MUTANT(&qp->hca->hw, NIC_ACK_UNACCEPTED) && pkt->ack_req)
		resp_acknowledge(qp, pkt);
	else
		nak_gap(qp, pkt);
	packet_put(net, pkt);
}

/* --- */

/* It cannot be let in. */
static void turn_down(struct rnic_qp *qp, const struct packet *pkt, uint8_t syndrome)
{
	struct responder *resp = &qp->resp;
	if ((syndrome & AETH_KIND) == AETH_RNR_NAK) {
		/* Later packets are out of sequence, as is known: the peer will send all of them
		 * again. */
		resp->nak_sent = resp->not_ready = true;
		reorder_drop(qp, &resp->reorder);
		nak(qp, pkt, pkt->psn, syndrome);
	} else {
		if (syndrome == AETH_NAK_INVALID_REQUEST)
			COUNT_ONE(qp->hca->net, bad_request);
		resp_refuse(qp, pkt, pkt->psn, syndrome);
	}
}

/* The packet's turn has come. */
static void take_request(struct rnic_qp *qp, struct packet *pkt)
{
	struct responder *resp = &qp->resp;
	struct rnic_net *net = qp->hca->net;
	uint8_t syndrome = resp_check(qp, pkt);
	if (syndrome == AETH_ACK) {
		resp->nak_sent = resp->not_ready = false;
		resp_accept(qp, pkt);
		return;
	}
	turn_down(qp, pkt, syndrome);
	packet_put(net, pkt);
}

/* If the next one is there, one answer is enough for both: several would make the peer believe that
 * there are gaps between them. */
static void take_before_reordered(struct rnic_qp *qp, struct packet *pkt)
{
	struct packet *next = qp->resp.reorder.head;
	if (next && next->psn == psn_add(pkt->psn, pkt->more + 1u) &&
	    opcode_is[pkt->opcode] & (IS_SEND | IS_WRITE) &&
	    opcode_is[next->opcode] & (IS_SEND | IS_WRITE)) {
		next->ack_req |= pkt->ack_req;
		pkt->ack_req = false;
	}
	take_request(qp, pkt);
}

/* Take all that was kept and has its turn now. */
static void take_reordered(struct rnic_qp *qp)
{
	struct responder *resp = &qp->resp;
	struct packet *pkt;
	while (resp_active(qp) && !resp->failed &&
	       (pkt = reorder_first(qp, &resp->reorder, resp->psn)) && pkt->psn == resp->psn)
		take_before_reordered(qp, reorder_pop(&resp->reorder));
	look_for_gap(qp);
}

/* --- */

/* A queue pair that serves no more. */
static void repeat_final_answer(struct rnic_qp *qp, struct packet *pkt)
{
	COUNT_ONE(qp->hca->net, qp_state);
	if (is_lossy(qp) && qp->ibv.state == IBV_QPS_ERR)
		time_wait_repeat(qp, pkt);
	packet_put(qp->hca->net, pkt);
}

void resp_request(struct rnic_qp *qp, struct packet *pkt)
{
	struct responder *resp = &qp->resp;
	if (!resp_active(qp) || resp->failed) {
		repeat_final_answer(qp, pkt);
		return;
	}
	int32_t ahead = psn_diff(pkt->psn, resp->psn);
	if (ahead < 0) {
		COUNT_ONE(qp->hca->net, duplicate);
		duplicate(qp, pkt);
		return;
	}
	if (ahead > 0) {
		too_early(qp, pkt);
		return;
	}
	if (!resp->reorder.head) {
		take_request(qp, pkt);
		return;
	}
	take_before_reordered(qp, pkt);
	take_reordered(qp);
}
