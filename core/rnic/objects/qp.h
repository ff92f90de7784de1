/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_QP_H
#define TM_RNIC_OBJECTS_QP_H
/*
 * The queue pair: its two work queues, the requester that works off the send queue, the responder
 * that serves the peer's requests. Packet sequence numbers wrap, as the numbers of work requests
 * do.
 */
#include "core/hardware/mutant.h"
#include "core/rdma_commit.h"
#include "core/verbs_compat.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/work_queue.h"
#include "core/rnic/objects/wr.h"
#include "core/rnic/transport/link.h"
#include "core/rnic/transport/requester.h"
#include "core/rnic/transport/responder.h"

struct rnic_qp {
	union {
		struct ibv_qp ibv; /* .state is the state */
		struct ibv_qp_ex ex;
		struct ibv_qp_ex_with_flush ex_flush;
		struct tm_qp_ex_with_commit ex_commit;
	};
	bool extended;	 /* has ibv_wr_* */
	uint8_t service; /* enum service */
	struct rnic_hca *hca;
	struct actor actor;
	struct op_label label; /* of the task that posted last, with its occurrence */
	uint16_t label_occurrence;
	bool dead, sig_all;
	uint32_t resets; /* how often its queues were emptied */
	uint32_t max_inline;
	uint32_t peer, mtu; /* the link's number of the remote host; bytes */
	struct ibv_qp_attr attr;
	struct work_queue sq, rq;
	struct rnic_srq *srq; /* where rq gets its requests from; NULL: they are posted to it */
	struct rnic_qp *next; /* of those that were given back */
	struct wr_batch batch;
	struct rnic_event land_resumes, answer_resumes; /* a delay that no clock ends is over */
	struct requester req;
	struct responder resp;
};

static inline const struct rnic_ground *qp_ground(const struct rnic_qp *qp)
{
	return &qp->hca->net->ground;
}
/* Does a posted request complete when it has arrived? Else when its data are visible. */
static inline bool rnic_acks_early(const struct rnic_qp *qp)
{
	const struct hardware *hw = &qp->hca->hw;
	return hw->ack_early && !MUTANT(hw, NIC_DONE_IS_VISIBLE);
}
/* Is what it sends acknowledged? */
static inline bool qp_is_reliable(const struct rnic_qp *qp)
{
	return qp->service == SERVICE_RC;
}
static inline uint64_t qp_chain(const struct rnic_qp *qp, enum chain_kind kind)
{
	return chain_name(qp->actor.name_hash, kind);
}
static inline bool is_lossy(const struct rnic_qp *qp)
{
	return qp->hca->net->link->lossy;
}

/* The service of a type of queue pair. */
enum service qp_service(enum ibv_qp_type type);

/* To the error state: flush both queues. */
void qp_fail(struct rnic_qp *qp);
/* A send request of an unreliable service failed: the send queue is flushed, receiving goes on. */
void qp_fail_sends(struct rnic_qp *qp);
/* NULL: there is none with this number. */
struct rnic_qp *qp_find(struct rnic_net *net, uint32_t qpn);
/* It was destroyed, and the program will not look at it any more: the next one may have its place.
 * For grounds that copy events only: there an event that comes late does no harm. */
void qp_give_back(struct rnic_qp *qp);
/* A number for it; false: all are used up. */
bool qp_number(struct rnic_net *net, struct rnic_qp *qp);
/* Back to the beginning: nothing of it is left on the way into memory or in a completion queue. */
void qp_reset(struct rnic_qp *qp);
/* Tell the program of an event of the queue pair. */
void qp_event(struct rnic_qp *qp, enum ibv_event_type type);

#endif
