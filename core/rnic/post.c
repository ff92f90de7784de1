/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting work requests.
 *
 * A post is a step of the task: the task may be held before it, and NIC events
 * that are due run. What is posted takes the label of the operation that the task
 * works for, and a number among this queue pair's messages under that label; so
 * its packets have names that do not depend on what others do. Only inline data
 * are copied here; everything else is gathered when the RNIC sends, which is later
 * and may be more than once: a buffer belongs to the RNIC until its completion.
 * The RNIC learns of a request when the doorbell reaches it, behind the stores that
 * the CPU did before (pmem_cpu_post()).
 *
 * Errors that a driver finds are returned at once (EINVAL, ENOMEM for a full
 * queue) with *bad_wr; those that a card finds become work completions.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "core/rnic/device.h"
#include "core/rnic/placement.h"
#include "core/rnic/qp.h"

#define POST_NS 50

/* A free slot for number `posted`; `oldest`: the lowest number still in use. */
static void *slot(struct rnic_qp *qp, struct work_queue *queue, uint32_t oldest)
{
	if (queue->posted - oldest == queue->room) {
		struct work_queue grown = *queue;
		grown.room = queue->room ? 2 * queue->room : 4;
		grown.ring = sim_alloc(qp_sim(qp), (size_t)grown.room * grown.stride);
		for (uint32_t i = oldest; i != queue->posted; i++)
			memcpy(queue_at(&grown, i), queue_at(queue, i), queue->stride);
		*queue = grown;
	}
	return queue_at(queue, queue->posted);
}

/* Copy inline data. The CPU does this, so it needs no key. */
static void copy_inline(struct rnic_qp *qp, struct wqe *wqe, const struct ibv_send_wr *wr)
{
	struct rnic_hca *hca = qp->hca;
	uint64_t pm_off;
	uint8_t *to = wqe->copy = buffer_get(hca->net, (uint32_t)wqe->bytes, &wqe->copy_class);
	for (int i = 0; i < wr->num_sge; i++) {
		uint32_t len = wr->sg_list[i].length;
		void *from = (void *)(uintptr_t)wr->sg_list[i].addr;
		if (!len)
			continue;
		if (hca->pm && pmem_owns(hca->pm, from, len, &pm_off))
			pmem_nic_read(hca->pm, pm_off, to, len);
		else
			memcpy(to, from, len);
		to += len;
	}
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_nonposted(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ || is_atomic(opcode) || opcode == IBV_WR_FLUSH ||
	       opcode == IBV_WR_ATOMIC_WRITE;
}

static bool is_known(enum ibv_wr_opcode opcode)
{
	return opcode <= IBV_WR_SEND_WITH_IMM || is_nonposted(opcode);
}

/* What flush_wr() packed. */
static uint8_t flush_type(const struct ibv_send_wr *wr)
{
	return (uint8_t)wr->wr.atomic.swap;
}

static uint8_t flush_level(const struct ibv_send_wr *wr)
{
	return (uint8_t)(wr->wr.atomic.swap >> 8);
}

static bool flush_allowed(const struct ibv_send_wr *wr)
{
	return wr->num_sge == 0 && flush_type(wr) &&
	       !(flush_type(wr) & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT)) &&
	       flush_level(wr) <= IBV_FLUSH_MR && wr->wr.atomic.compare_add <= UINT32_MAX;
}

static int check_send(const struct rnic_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes)
{
	if (qp->dead || qp->ibv.state == IBV_QPS_RESET || qp->ibv.state == IBV_QPS_INIT ||
	    qp->ibv.state == IBV_QPS_RTR)
		return EINVAL;
	if (!is_known(wr->opcode))
		return EOPNOTSUPP;
	if (wr->num_sge < 0 || (unsigned)wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE &&
	    (bytes > qp->max_inline || (is_nonposted(wr->opcode) && wr->opcode != IBV_WR_ATOMIC_WRITE)))
		return EINVAL;
	if ((is_atomic(wr->opcode) || wr->opcode == IBV_WR_ATOMIC_WRITE) && bytes != 8)
		return EINVAL;
	if (wr->opcode == IBV_WR_FLUSH && !flush_allowed(wr))
		return EINVAL;
	if (qp->sq.posted - qp->sq.freed >= qp->sq.max_wr)
		return ENOMEM;
	return 0;
}

/* The label of the current task, and the message's number under it. */
static void name_wqe(struct rnic_qp *qp, struct wqe *wqe)
{
	static const struct op_label nobody;
	const struct actor *task = sim_actor(qp_sim(qp));
	wqe->op = task ? task->op : nobody;
	wqe->visit = task ? task->visit : 0;
	if (!op_label_equal(qp->label, wqe->op) || qp->label_visit != wqe->visit) {
		qp->label = wqe->op;
		qp->label_visit = wqe->visit;
		actor_label(&qp->actor, wqe->op);
	}
	wqe->message = ++qp->actor.count[COUNT_MESSAGE];
	wqe->round = 1;
}

static void tell(struct rnic_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "WRITE_WITH_IMM",
		[IBV_WR_SEND] = "SEND",
		[IBV_WR_SEND_WITH_IMM] = "SEND_WITH_IMM",
		[IBV_WR_RDMA_READ] = "READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "CMP_AND_SWP",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "FETCH_AND_ADD",
		[IBV_WR_FLUSH] = "FLUSH",
		[IBV_WR_ATOMIC_WRITE] = "ATOMIC_WRITE",
	};
	struct sim *sim = qp_sim(qp);
	const struct actor *who = sim_actor(sim) ? sim_actor(sim) : &qp->actor;
	if (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM) {
		sim_tell(sim, who, 0, "%s: post %s, %lu bytes", qp->actor.name, names[wr->opcode],
			 (unsigned long)bytes);
		return;
	}
	bool atomic_member = is_atomic(wr->opcode) || wr->opcode == IBV_WR_FLUSH;
	uint32_t rkey = atomic_member ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
	uint64_t va = atomic_member ? wr->wr.atomic.remote_addr : wr->wr.rdma.remote_addr;
	char place[64];
	if (wr->opcode == IBV_WR_FLUSH)
		bytes = wr->wr.atomic.compare_add;
	rnic_key_place(qp->hca->net, rkey, va, place, sizeof(place));
	sim_tell(sim, who, 0, "%s: post %s, %lu bytes, %s", qp->actor.name, names[wr->opcode],
		 (unsigned long)bytes, place);
}

static int post_one(struct rnic_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t bytes = wr->num_sge > 0 ? sge_bytes(wr->sg_list, (unsigned)wr->num_sge) : 0;
	int error = check_send(qp, wr, bytes);
	if (error)
		return error;
	/* iWARP completes before the peer has it: then sq.done runs ahead of acked. */
	uint32_t oldest = (int32_t)(qp->sq.done - qp->req.acked) < 0 ? qp->sq.done : qp->req.acked;
	struct wqe *wqe = slot(qp, &qp->sq, oldest);
	clear(wqe, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->nonposted = is_nonposted(wr->opcode);
	wqe->signaled = qp->sig_all || wr->send_flags & IBV_SEND_SIGNALED;
	wqe->fence = wr->send_flags & IBV_SEND_FENCE;
	wqe->solicited = wr->send_flags & IBV_SEND_SOLICITED;
	wqe->imm = wr->imm_data;
	wqe->bytes = bytes;
	wqe->sges = (uint32_t)wr->num_sge;
	if (is_atomic(wr->opcode)) {
		wqe->va = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->swap_add = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? wr->wr.atomic.swap
									: wr->wr.atomic.compare_add;
		wqe->compare = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? wr->wr.atomic.compare_add : 0;
	} else if (wr->opcode == IBV_WR_FLUSH) {
		wqe->va = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->flush_len = (uint32_t)wr->wr.atomic.compare_add;
		wqe->placement = flush_type(wr);
		wqe->selectivity = flush_level(wr);
	} else {
		wqe->va = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
	for (uint32_t i = 0; i < wqe->sges; i++)
		wqe->sge[i] = wr->sg_list[i];
	if (wr->send_flags & IBV_SEND_INLINE && bytes)
		copy_inline(qp, wqe, wr);
	name_wqe(qp, wqe);
	sim_gives(qp_sim(qp), wqe, qp->sq.posted);
	qp->sq.posted++;
	if (sim_telling(qp_sim(qp)))
		tell(qp, wr, bytes);
	return 0;
}

/* --- the doorbell --- */

/* What the RNIC learns of a queue pair's requests. */
struct doorbell {
	struct rnic_qp *qp;
	uint32_t posted, resets; /* of the queue pair when it was rung */
};

static void ring(void *arg)
{
	const struct doorbell *bell = arg;
	struct rnic_qp *qp = bell->qp;
	if (qp->dead || qp->resets != bell->resets)
		return;
	if ((int32_t)(bell->posted - qp->req.rung) > 0)
		qp->req.rung = bell->posted;
	if (qp->ibv.state == IBV_QPS_ERR)
		req_flush(qp);
	else
		req_kick(qp);
}

/* Tell the RNIC: behind the stores of this CPU that are still on their way to memory. */
static void ring_doorbell(struct rnic_qp *qp)
{
	struct doorbell bell = {qp, qp->sq.posted, qp->resets}, *later;
	struct pmem *pm = qp->hca->pm;
	if (!pm || !pmem_has_buffers(pm)) {
		ring(&bell);
		return;
	}
	later = sim_alloc(qp_sim(qp), sizeof(*later));
	*later = bell;
	pmem_cpu_post(pm, ring, later);
}

int rnic_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	int error = 0;
	sim_settle(qp_sim(qp));
	sim_step(qp_sim(qp), STEP_POST, POST_NS);
	for (; wr; wr = wr->next) {
		error = post_one(qp, wr);
		if (error) {
			*bad_wr = wr;
			break;
		}
	}
	ring_doorbell(qp);
	return error;
}

static int check_recv(const struct rnic_qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp->dead || qp->ibv.state == IBV_QPS_RESET)
		return EINVAL;
	if (wr->num_sge < 0 || (unsigned)wr->num_sge > qp->rq.max_sge)
		return EINVAL;
	if (qp->rq.posted - qp->rq.freed >= qp->rq.max_wr)
		return ENOMEM;
	return 0;
}

int rnic_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	int error = 0;
	sim_step(qp_sim(qp), STEP_POST, POST_NS);
	for (; wr; wr = wr->next) {
		error = check_recv(qp, wr);
		if (error) {
			*bad_wr = wr;
			break;
		}
		struct rqe *rqe = slot(qp, &qp->rq, qp->rq.done);
		rqe->wr_id = wr->wr_id;
		rqe->sges = (uint32_t)wr->num_sge;
		for (uint32_t i = 0; i < rqe->sges; i++)
			rqe->sge[i] = wr->sg_list[i];
		qp->rq.posted++;
	}
	if (ibv->state == IBV_QPS_ERR && !qp->resp.flush_rq)
		resp_flush(qp);
	return error;
}
