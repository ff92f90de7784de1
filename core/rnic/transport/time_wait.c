/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On a lossy link the last answer of a queue pair may be lost, and the queue pair be in the error
 * state or destroyed when its peer asks again. The peer must not fail because a program ended: the
 * final answer, an acknowledgement or a refusal, is repeated to a peer that asks, for TIME_WAIT_NS
 * after the queue pair was destroyed (as TCP's TIME_WAIT does it).
 */
#include "core/rnic/transport/time_wait.h"
#include <assert.h>
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/transport/landing.h"
#include "core/rnic/transport/packet.h"
#include "core/rnic/transport/responder.h"

#define TIME_WAITS   64 /* queue pairs whose final answers are kept */
#define TIME_WAIT_NS 10000000000ull

static struct final_answer final_answer_of(const struct rnic_qp *qp)
{
	struct final_answer word = qp->resp.final_answer;
	word.host = qp->hca->host;
	word.qpn = qp->ibv.qp_num;
	word.peer = qp->peer;
	word.peer_qpn = qp->attr.dest_qp_num;
	word.acked_psn = qp->resp.acked_psn;
	return word;
}

static void say(struct rnic_net *net, const struct final_answer *word, const struct packet *request)
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

void time_wait_repeat(struct rnic_qp *qp, const struct packet *request)
{
	struct final_answer word = final_answer_of(qp);
	say(qp->hca->net, &word, request);
}

void time_wait_enter(struct rnic_qp *qp)
{
	struct rnic_net *net = qp->hca->net;
	bool serves = qp->service == SERVICE_RC;
	if (!serves || (!resp_active(qp) && qp->ibv.state != IBV_QPS_ERR))
		return;
	land_all(qp, NULL);
	assert(!qp->resp.land.head); /* what was let in is acknowledged */
	if (!net->time_wait)
		net->time_wait = ground_alloc(&net->ground, TIME_WAITS * sizeof(*net->time_wait));
	struct final_answer *word = &net->time_wait[net->time_wait_next++ % TIME_WAITS];
	*word = final_answer_of(qp);
	word->until = ground_now(qp_ground(qp)) + TIME_WAIT_NS;
}

void time_wait_answer(struct rnic_net *net, const struct packet *request)
{
	if (request->service != SERVICE_RC || request->opcode >= OP_CODES ||
	    opcode_is[request->opcode] & IS_RESPONSE)
		return;
	for (unsigned i = 0; net->time_wait && i < TIME_WAITS; i++) {
		const struct final_answer *word = &net->time_wait[i];
		if (word->qpn == request->dest_qpn && word->peer == request->from &&
		    word->until > ground_now(&net->ground))
			say(net, word, request);
	}
}
