/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving without acknowledgements: the responders of unreliable connections and of unreliable
 * datagrams (IBA vol. 1, 9.8). The peer does not learn of what is dropped here. The requester is
 * that of all services (requester.c): there a request is over when its last packet was handed to
 * the link.
 *
 * Unreliable connection. A packet sequence number that is not the expected one means that packets
 * are missing. The message that they belonged to is given up; what comes up to the next message's
 * first packet is dropped; that one is taken, whatever its number. A receive request that a lost
 * message had begun to fill serves the next message. The same happens with a request that is
 * refused (rights, keys, lengths; class D of 9.9.3).
 *
 * Unreliable datagram. One packet a message, SEND only. It needs the queue pair's Q_Key and is
 * dropped without a receive request, or with one that is too short, which then serves the next one
 * (class D), unless it was taken out of a shared queue. What else the receiver finds wrong with its
 * own receive request (class E) completes that with an error and ends in the error state, for both
 * services: a list that is not allowed, one out of a shared queue that is too short.
 */
#include "core/rnic/transport/unreliable.h"
#include <string.h>
#include "core/rnic/count.h"
#include "core/rnic/objects/ah.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/transport/packet.h"
#include "core/rnic/transport/responder.h"

/* The packet is dropped; a macro counts by name. */
#define DROP(qp, pkt, why)                         \
	do {                                       \
		COUNT_ONE((qp)->hca->net, why);    \
		packet_put((qp)->hca->net, (pkt)); \
	} while (0)

static void take_connected(struct rnic_qp *qp, struct packet *pkt)
{
	struct responder *resp = &qp->resp;
	uint8_t is = opcode_is[pkt->opcode];
	if (is & IS_FIRST) {
		if (pkt->psn != resp->psn)
			COUNT_ONE(qp->hca->net, psn_gap);
		resp->in_message = 0;
		resp->psn = pkt->psn;
	} else if (!resp->in_message || pkt->psn != resp->psn) {
		resp->in_message = 0;
		DROP(qp, pkt, psn_gap);
		return;
	}
	uint8_t syndrome = resp_check(qp, pkt);
	if (syndrome == AETH_ACK) {
		resp_accept(qp, pkt);
		return;
	}
	if (syndrome == AETH_NAK_INVALID_REQUEST)
		COUNT_ONE(qp->hca->net, bad_request);
	resp->in_message = 0;
	packet_put(qp->hca->net, pkt);
	if (resp->recv_status == IBV_WC_LOC_LEN_ERR)
		resp->recv_status = IBV_WC_SUCCESS;
	if (resp->recv_status != IBV_WC_SUCCESS)
		qp_fail(qp);
}

/* The same datagram after the 40 bytes that say where it comes from. */
static struct packet *with_grh(struct rnic_qp *qp, struct packet *pkt)
{
	struct packet *longer = packet_copy_after(qp->hca->net, pkt, GRH_BYTES);
	rnic_put_grh(qp->hca, pkt, longer->payload);
	packet_put(qp->hca->net, pkt);
	return longer;
}

static void take_datagram(struct rnic_qp *qp, struct packet *pkt)
{
	if (pkt->qkey != qp->attr.qkey) {
		DROP(qp, pkt, bad_qkey);
	} else if (pkt->len > qp->mtu) {
		DROP(qp, pkt, bad_length);
	} else if (!resp_ready(qp)) {
		DROP(qp, pkt, no_receive);
	} else {
		pkt = with_grh(qp, pkt);
		if (resp_check_send(qp, pkt) == AETH_ACK) {
			resp_accept(qp, pkt);
			return;
		}
		packet_put(qp->hca->net, pkt);
		if (qp->resp.recv_status == IBV_WC_LOC_LEN_ERR && !qp->srq) {
			qp->resp.recv_status = IBV_WC_SUCCESS;
			COUNT_ONE(qp->hca->net, bad_length);
			return;
		}
		qp_fail(qp);
	}
}

void unreliable_take(struct rnic_qp *qp, struct packet *pkt)
{
	pkt->ack_req = false; /* means nothing here */
	/* The second copy is not dropped: its lines land, too, and have names of their own. */
	if (pkt->name.copy)
		pkt->name.index += INDEX_COPY;
	if (!resp_active(qp))
		DROP(qp, pkt, qp_state);
	else if (!opcode_serves(pkt->opcode, qp->service))
		DROP(qp, pkt, bad_opcode);
	else if (qp->service == SERVICE_UD)
		take_datagram(qp, pkt);
	else
		take_connected(qp, pkt);
}
