/* SPDX-License-Identifier: BSD-3-Clause */
/* See count.h: what takes more than one line to count. Only called where something is wrong. */

#include "core/rnic/count.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/transport/packet.h"

void count_nak(struct rnic_net *net, uint8_t syndrome, bool sent)
{
	/* In the order of the list of counters. */
	unsigned kind = (syndrome & AETH_KIND) == AETH_RNR_NAK ? 4 : syndrome - AETH_NAK_SEQUENCE;

	if (net->count && kind <= 4)
		net->count[(sent ? COUNT_nak_sequence_sent : COUNT_nak_sequence_received) + kind]++;
}

void count_stray(struct rnic_net *net, const struct rnic_qp *qp, const struct packet *pkt)
{
	if (!qp)
		COUNT_ONE(net, unknown_qp);
	else if (pkt->service != qp->service || pkt->opcode >= OP_CODES || !opcode_is[pkt->opcode])
		COUNT_ONE(net, bad_opcode);
	else
		COUNT_ONE(net, wrong_source);
}

static bool is_key(const struct rnic_hca *hca, uint32_t rkey)
{
	for (uint32_t slot = 1; slot <= hca->mrs; slot++)
		if (hca->mr[slot]->live && hca->mr[slot]->ibv.rkey == rkey)
			return true;
	return false;
}

void count_key(struct rnic_qp *qp, uint32_t rkey, unsigned access)
{
	struct rnic_net *net = qp->hca->net;

	if (!net->count)
		return;
	if (mr_remote_whole(qp, rkey, (int)access))
		COUNT_ONE(net, out_of_bounds);
	else if (mr_remote_whole(qp, rkey, 0))
		COUNT_ONE(net, no_access);
	else if (is_key(qp->hca, rkey))
		COUNT_ONE(net, wrong_pd);
	else
		COUNT_ONE(net, bad_key);
}
