/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reorder buffer of a requester or responder on a lossy link (link.h): a few packets that came
 * ahead of their turn. A packet that was merely late closes the gap, and nothing is sent for it.
 * The gap is a loss when GAP_PACKETS have come after it, or GAP_NS have passed; loss_recovery.c
 * says what follows.
 */
#include "core/rnic/transport/reorder_buffer.h"
#include <assert.h>
#include "core/rnic/count.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/transport/packet.h"

#define REORDER_MOST 256 /* packets of one kind, of a queue pair */
#define GAP_PACKETS  4	 /* more than a switch has change places */
#define GAP_NS	     200000

static uint64_t now_of(const struct rnic_qp *qp)
{
	return ground_now(qp_ground(qp));
}

void reorder_push(struct rnic_qp *qp, struct reorder_buffer *reorder, uint32_t expected,
		  struct packet *pkt)
{
	struct packet **at = &reorder->head;
	int32_t after = -1;
	reorder->seen++;
	while (*at && (after = psn_diff(pkt->psn, (*at)->psn)) > 0)
		at = &(*at)->next;
	if (psn_diff(pkt->psn, expected) >= REORDER_MOST || reorder->count == REORDER_MOST ||
	    (*at && after == 0)) {
		packet_put(qp->hca->net, pkt);
		return;
	}
	COUNT_ONE(qp->hca->net, kept);
	pkt->next = *at;
	*at = pkt;
	reorder->count++;
	assert(reorder->count <= REORDER_MOST && psn_diff(pkt->psn, expected) > 0);
	assert(!pkt->next || psn_diff(pkt->next->psn, pkt->psn) > 0);
}

struct packet *reorder_first(struct rnic_qp *qp, struct reorder_buffer *reorder, uint32_t expected)
{
	while (reorder->head && psn_diff(reorder->head->psn, expected) < 0)
		packet_put(qp->hca->net, reorder_pop(reorder));
	return reorder->head;
}

struct packet *reorder_pop(struct reorder_buffer *reorder)
{
	struct packet *pkt = reorder->head;
	assert(pkt && reorder->count);
	reorder->head = pkt->next;
	reorder->count--;
	return pkt;
}

void reorder_drop(struct rnic_qp *qp, struct reorder_buffer *reorder)
{
	while (reorder->head)
		packet_put(qp->hca->net, reorder_pop(reorder));
	reorder->until = reorder->alarm.at = 0;
}

bool reorder_has_gap(struct rnic_qp *qp, struct reorder_buffer *reorder, uint32_t expected,
		     rnic_event_fn *fire)
{
	if (!reorder_first(qp, reorder, expected)) {
		reorder->until = 0;
		return false;
	}
	if (!reorder->until || reorder->gap != expected) {
		reorder->until = now_of(qp) + GAP_NS;
		reorder->seen = reorder->count == 1;
		reorder->gap = expected;
	}
	if (reorder->seen >= GAP_PACKETS || now_of(qp) >= reorder->until)
		return true;
	alarm_set(qp_ground(qp), &reorder->alarm, CHAIN_OTHER, reorder->until - now_of(qp), fire,
		  qp);
	return false;
}
