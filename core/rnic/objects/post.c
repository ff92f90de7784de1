/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting work requests.
 *
 * A post is a step of the task: the task may be delayed before it, and NIC events
 * that are due run. What is posted takes the label of the operation that the task
 * works for, and a number among this queue pair's messages under that label; so
 * its packets have names that do not depend on what others do. Only inline data
 * are copied here; everything else is gathered when the RNIC sends, which is later
 * and may be more than once: a buffer belongs to the RNIC until its completion.
 * The RNIC learns of a request when the doorbell reaches it, after the stores that
 * the CPU did before (struct rnic_memory, post()).
 *
 * A live program that uses a buffer again too early is not found out where the RNIC reads it at
 * once. So in a net that gathers late, doorbells reach the RNIC as late as the program can tell:
 * when it looks for a completion in vain, up to the next request that has one; or after LATE_NS, as
 * it may wait for something else, its peer's answer in memory.
 *
 * Errors that a driver finds are returned at once (EINVAL, ENOMEM for a full
 * queue) with *bad_wr; those that a card finds become work completions.
 */
#include "core/rnic/objects/post.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "core/rnic/objects/ah.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/dma.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/mw.h"
#include "core/rnic/objects/pd.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/work_queue.h"
#include "core/rnic/transport/requester.h"
#include "core/rnic/transport/responder.h"
#include "core/verbs_compat.h"

void work_queue_init(struct work_queue *queue, size_t entry, uint32_t max_wr, uint32_t max_sge)
{
	assert(!queue->ring && !queue->room); /* it would be lost */
	assert(max_wr <= MAX_WR && max_sge <= MAX_SGE);
	*queue = (struct work_queue){
		.stride = (uint32_t)(entry + max_sge * sizeof(struct ibv_sge)),
		.max_wr = max_wr,
		.max_sge = max_sge,
	};
}

void *work_queue_slot(struct rnic_net *net, struct work_queue *queue, uint32_t oldest, uint32_t seq)
{
	assert(seq - oldest <= queue->room);
	assert((queue->room & (queue->room - 1)) == 0); /* a mask finds a request's place */
	if (seq - oldest == queue->room) {
		struct work_queue grown = *queue;
		grown.room = queue->room ? 2 * queue->room : 4;
		grown.ring = buffer_get(net, grown.room * grown.stride, &grown.class);
		for (uint32_t i = oldest; i != seq; i++)
			memcpy(queue_at(&grown, i), queue_at(queue, i), queue->stride);
		work_queue_drop(net, queue);
		*queue = grown;
	}
	return queue_at(queue, seq);
}

void work_queue_drop(struct rnic_net *net, struct work_queue *queue)
{
	assert(!queue->ring == !queue->room);
	if (queue->ring)
		buffer_put(net, queue->ring, queue->class);
	queue->ring = NULL;
	queue->room = 0;
}

uint8_t *post_copy(struct rnic_qp *qp, uint8_t *to, const void *from, size_t len)
{
	if (len)
		hca_load(qp->hca, to, from, len);
	return to + len;
}

uint8_t *post_inline(struct rnic_qp *qp, struct wqe *wqe)
{
	assert(!wqe->copy && wqe->bytes);
	assert(wqe->bytes <= MAX_INLINE);
	return wqe->copy = buffer_get(qp->hca->net, (uint32_t)wqe->bytes, &wqe->copy_class);
}

static bool flush_allowed(const struct wqe *wqe)
{
	return wqe->sges == 0 && wqe->placement &&
	       !(wqe->placement & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT)) &&
	       wqe->selectivity <= IBV_FLUSH_MR &&
	       (wqe->selectivity == IBV_FLUSH_MR || wqe->range_len <= UINT32_MAX);
}

static bool commit_allowed(const struct wqe *wqe)
{
	return wqe->range_len <= UINT32_MAX &&
	       (wqe->opcode == OPERATION_COMMIT_WITH_PAYLOAD || !wqe->sges);
}

int post_enter(struct rnic_qp *qp)
{
	const struct rnic_ground *ground = qp_ground(qp);
	while (qp->batch.open && qp->batch.owner != ground_caller(ground))
		ground_yield(ground);
	return qp->batch.open ? EINVAL : 0;
}

int post_room(const struct rnic_qp *qp, uint32_t ahead)
{
	if (qp->dead || qp->ibv.state == IBV_QPS_RESET || qp->ibv.state == IBV_QPS_INIT ||
	    qp->ibv.state == IBV_QPS_RTR)
		return EINVAL;
	if (qp->sq.posted + ahead - qp->sq.freed >= qp->sq.max_wr)
		return ENOMEM;
	return 0;
}

struct wqe *post_slot(struct rnic_qp *qp, uint32_t ahead, unsigned operation, unsigned flags)
{
	/* iWARP completes before the peer has it: then sq.done runs ahead of acked. */
	uint32_t oldest = (int32_t)(qp->sq.done - qp->req.acked) < 0 ? qp->sq.done : qp->req.acked;
	assert(qp->sq.posted + ahead - qp->sq.freed < qp->sq.max_wr); /* post_room() */
	assert((int32_t)(qp->sq.posted - oldest) >= 0);
	struct wqe *wqe = work_queue_slot(qp->hca->net, &qp->sq, oldest, qp->sq.posted + ahead);
	clear(wqe, sizeof(*wqe));
	wqe->opcode = (uint8_t)operation;
	wqe->nonposted = operation_is(operation, NONPOSTED);
	wqe->signaled = qp->sig_all || flags & IBV_SEND_SIGNALED;
	wqe->fence = flags & IBV_SEND_FENCE;
	wqe->solicited = flags & IBV_SEND_SOLICITED;
	return wqe;
}

/* Does it say where to, beyond what the queue pair knows? */
static bool is_addressed(const struct rnic_qp *qp, const struct wqe *wqe)
{
	return wqe->addressed || qp->service == SERVICE_UC || operation_is(wqe->opcode, NO_PACKET);
}

int post_check(const struct rnic_qp *qp, const struct wqe *wqe)
{
	if (qp->service != SERVICE_RC && !is_addressed(qp, wqe))
		return EINVAL;
	uint8_t class = operations[wqe->opcode].class;
	if (class_rows[class].is & CARRIES_DATA && class_rows[class].word_bytes &&
	    wqe->bytes != class_rows[class].word_bytes)
		return EINVAL;
	if (class == CLASS_FLUSH && !flush_allowed(wqe))
		return EINVAL;
	if ((class == CLASS_COMMIT || class == CLASS_COMMIT_PAYLOAD) && !commit_allowed(wqe))
		return EINVAL;
	return 0;
}

int post_address(struct rnic_qp *qp, struct wqe *wqe, const struct ibv_ah *ibv, uint32_t qpn,
		 uint32_t qkey)
{
	const struct rnic_ah *ah = (const struct rnic_ah *)ibv;
	if (!ah || !ah->live)
		return EINVAL;
	wqe->addressed = true;
	wqe->foreign_address = !same_pd(ibv->pd, qp->ibv.pd);
	wqe->peer = ah->peer;
	wqe->traffic_class = ah->traffic_class;
	wqe->remote_qpn = qpn & QPN_LIMIT;		      /* a packet has no more */
	wqe->remote_qkey = qkey >> 31 ? qp->attr.qkey : qkey; /* IBA vol. 1, 10.2.5 */
	return 0;
}

/* Events of one message are known by it. It is made of what names the message: the numbers of a
 * queue pair begin again with each label. */
static uint64_t message_id(const struct rnic_qp *qp, const struct wqe *wqe)
{
	struct run_state mixed = {.hash = qp->actor.name_hash};
	run_mix(&mixed, wqe->op.client, wqe->op.kind);
	run_mix(&mixed, wqe->op.nth, wqe->occurrence);
	run_mix(&mixed, wqe->message, 0);
	return mixed.hash | 1;
}

/* The label of the current task, and the message's number under it. */
static void name_wqe(struct rnic_qp *qp, struct wqe *wqe)
{
	static const struct op_label none;
	const struct actor *task = ground_task(qp_ground(qp));
	wqe->op = task ? task->op : none;
	wqe->occurrence = task ? task->occurrence : 0;
	if (!op_label_equal(qp->label, wqe->op) || qp->label_occurrence != wqe->occurrence) {
		qp->label = wqe->op;
		qp->label_occurrence = wqe->occurrence;
		ground_label(qp_ground(qp), &qp->actor, wqe->op);
	}
	wqe->message = ++qp->actor.count[COUNT_MESSAGE];
	wqe->id = message_id(qp, wqe);
	wqe->round = 1;
}

static void trace_post(struct rnic_qp *qp, const struct wqe *wqe)
{
	const struct operation *op = &operations[wqe->opcode];
	const struct rnic_ground *ground = qp_ground(qp);
	const struct actor *task = ground_task(ground), *who = task ? task : &qp->actor;
	const struct traced about = {
		.kind = TRACED_POST, .off = wqe->fence, .code = wqe->opcode, .id = wqe->id};
	unsigned long bytes = operation_is(wqe->opcode, NAMES_RANGE) ? wqe->range_len : wqe->bytes;
	if (!operation_is(wqe->opcode, NAMES_MEMORY)) {
		ground_trace(ground, who, &about, "%s: post %s, %lu bytes", qp->actor.name,
			     op->name, bytes);
		return;
	}
	char place[64];
	rnic_key_place(qp->hca->net, wqe->rkey, wqe->va, place, sizeof(place));
	ground_trace(ground, who, &about, "%s: post %s, %lu bytes, %s", qp->actor.name, op->name,
		     bytes, place);
}

void post_commit(struct rnic_qp *qp)
{
	struct wqe *wqe = queue_at(&qp->sq, qp->sq.posted);
	assert(qp->sq.posted - qp->sq.freed < qp->sq.max_wr);
	assert(!wqe->started && !wqe->rung);
	name_wqe(qp, wqe);
	/* Another thread may post to the queue pair, too: which one is first matters. */
	ground_touch(qp_ground(qp), TOUCH_DRAM_WRITE, &qp->sq.posted, sizeof(qp->sq.posted));
	qp->sq.posted++;
	if (ground_traced(qp_ground(qp)))
		trace_post(qp, wqe);
}

/* What the opcode has of its own. */
static int fill(struct rnic_qp *qp, struct wqe *wqe, const struct ibv_send_wr *wr,
		enum ibv_mw_type binds)
{
	const struct operation *op = &operations[wqe->opcode];
	if (qp->service == SERVICE_UD)
		return post_address(qp, wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
				    wr->wr.ud.remote_qkey);
	if (op->with & WITH_INV) {
		wqe->rkey = wr->invalidate_rkey;
		return 0;
	}
	switch (op->class) {
	case CLASS_BIND:
		if (!wr->bind_mw.mw || wr->bind_mw.mw->type != binds)
			return EINVAL;
		return mw_fill(qp, wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	case CLASS_FLUSH:
	case CLASS_COMMIT:
	case CLASS_COMMIT_PAYLOAD:
	case CLASS_ATOMIC:
		wqe->va = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		break;
	default:
		wqe->va = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return 0;
	}
	if (operation_is(wqe->opcode, NAMES_RANGE)) { /* see flush_wr(), tm_commit_wr() */
		wqe->range_len = wr->wr.atomic.compare_add;
		wqe->placement = (uint8_t)wr->wr.atomic.swap;
		wqe->selectivity = (uint8_t)(wr->wr.atomic.swap >> 8);
	} else if (op->with & WITH_COMPARE) {
		wqe->swap_add = wr->wr.atomic.swap;
		wqe->compare = wr->wr.atomic.compare_add;
	} else {
		wqe->swap_add = wr->wr.atomic.compare_add;
	}
	return 0;
}

static void copy_inline(struct rnic_qp *qp, struct wqe *wqe)
{
	uint8_t *to = post_inline(qp, wqe);
	for (uint32_t i = 0; i < wqe->sges; i++)
		to = post_copy(qp, to, (void *)(uintptr_t)wqe->sge[i].addr, wqe->sge[i].length);
}

static int post_one(struct rnic_qp *qp, const struct ibv_send_wr *wr, enum ibv_mw_type binds)
{
	int error = post_room(qp, 0);
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	unsigned number = operation_number(wr->opcode);
	if (error == EINVAL)
		return error;
	if (number == OPERATIONS)
		return EOPNOTSUPP;
	if (!operation_serves(&operations[number], qp->service) || wr->num_sge < 0 ||
	    (unsigned)wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	if (error)
		return error;
	struct wqe *wqe = post_slot(qp, 0, number, wr->send_flags);
	wqe->wr_id = wr->wr_id;
	wqe->imm = wr->imm_data;
	wqe->sges = operation_is(number, NO_PACKET) ? 0 : (uint32_t)wr->num_sge;
	wqe->bytes = sge_bytes(wr->sg_list, wqe->sges);
	for (uint32_t i = 0; i < wqe->sges; i++)
		wqe->sge[i] = wr->sg_list[i];
	error = fill(qp, wqe, wr, binds);
	if (!error)
		error = post_check(qp, wqe);
	if (error)
		return error;
	if (is_inline && (wqe->bytes > qp->max_inline ||
			  (wqe->nonposted && !operation_is(number, CARRIES_DATA))))
		return EINVAL;
	if (is_inline && wqe->bytes)
		copy_inline(qp, wqe);
	post_commit(qp);
	return 0;
}

void post_step(struct rnic_qp *qp)
{
	ground_commit_pending(qp_ground(qp));
	ground_step(qp_ground(qp), STEP_POST, ground_cost(qp_ground(qp))->post);
}

/* --- the doorbell --- */

#define LATE_NS 10000000

/* What the RNIC learns of a queue pair's requests. */
struct doorbell {
	struct rnic_qp *qp;
	uint32_t first, posted, resets; /* of the queue pair when it was rung */
};

/*
 * Several CPUs may post to one queue pair. A request waits for those in front of it, whose
 * doorbells may be after stores of the CPU that posted them.
 */
static void ring(void *arg)
{
	const struct doorbell *bell = arg;
	struct rnic_qp *qp = bell->qp;
	struct wqe *wqe;
	if (qp->dead || qp->resets != bell->resets)
		return;
	assert((int32_t)(qp->sq.posted - qp->req.rung) >= 0);
	assert((int32_t)(qp->sq.posted - bell->posted) >= 0);
	ground_touch(qp_ground(qp), TOUCH_DRAM_WRITE, &qp->req.rung, sizeof(qp->req.rung));
	for (uint32_t i = bell->first; i != bell->posted; i++)
		if ((int32_t)(i - qp->req.rung) >= 0)
			((struct wqe *)queue_at(&qp->sq, i))->rung = true;
	for (; qp->req.rung != qp->sq.posted; qp->req.rung++) {
		wqe = queue_at(&qp->sq, qp->req.rung);
		if (!wqe->rung)
			break;
		ground_gives(qp_ground(qp), &qp->sq, qp->req.rung);
	}
	if (qp->ibv.state == IBV_QPS_ERR || qp->ibv.state == IBV_QPS_SQE)
		req_flush(qp);
	else
		req_kick(qp);
}

static void ring_until(struct rnic_qp *qp, uint32_t until)
{
	ring(&(struct doorbell){qp, qp->req.rung, until, qp->resets});
}

static void fire_late(void *arg)
{
	struct rnic_qp *qp = arg;
	if (alarm_fired(qp_ground(qp), &qp->req.late))
		ring_until(qp, qp->sq.posted);
}

void post_ask(struct rnic_net *net, const struct ibv_cq *cq)
{
	for (uint32_t i = 0; net->gathers_late && i < net->qps; i++) {
		struct rnic_qp *qp = net->qp[i];
		if (!qp || qp->req.rung == qp->sq.posted ||
		    (qp->ibv.send_cq != cq && qp->ibv.recv_cq != cq))
			continue;
		uint32_t until = qp->sq.done;
		while (until != qp->sq.posted &&
		       !((struct wqe *)queue_at(&qp->sq, until++))->signaled)
			;
		/* An answer may be awaited. */
		if (qp->ibv.send_cq != cq)
			until = qp->sq.posted;
		if ((int32_t)(until - qp->req.rung) > 0)
			ring_until(qp, until);
	}
}

/* Tell the RNIC: after the stores of this CPU that are still on their way to memory. */
void post_doorbell(struct rnic_qp *qp)
{
	struct doorbell bell = {qp, qp->req.announced, qp->sq.posted, qp->resets}, *later;
	const struct rnic_hca *hca = qp->hca;
	assert(bell.posted - bell.first <= qp->sq.max_wr);
	qp->req.announced = qp->sq.posted;
	if (hca->net->gathers_late) {
		alarm_set(qp_ground(qp), &qp->req.late, CHAIN_OTHER, LATE_NS, fire_late, qp);
		return;
	}
	if (!hca->memory->post || !hca->memory->has_store_buffers(hca->memory_arg)) {
		ring(&bell);
		return;
	}
	later = ground_alloc(qp_ground(qp), sizeof(*later));
	*later = bell;
	hca->memory->post(hca->memory_arg, ring, later);
}

int post_list(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
	      enum ibv_mw_type binds)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	post_step(qp);
	int error = post_enter(qp);
	if (error)
		*bad_wr = wr;
	for (; wr && !error; wr = wr->next) {
		error = ground_fails(qp_ground(qp), FAIL_POST_SEND) ? ENOMEM
								    : post_one(qp, wr, binds);
		if (error)
			*bad_wr = wr;
	}
	post_doorbell(qp);
	return error;
}

int rnic_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return post_list(qp, wr, bad_wr, IBV_MW_TYPE_2);
}

static int check_recv(const struct rnic_qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp->dead || qp->srq || qp->ibv.state == IBV_QPS_RESET)
		return EINVAL;
	if (wr->num_sge < 0 || (unsigned)wr->num_sge > qp->rq.max_sge)
		return EINVAL;
	if (qp->rq.posted - qp->rq.freed >= qp->rq.max_wr)
		return ENOMEM;
	return 0;
}

void post_rqe(struct rnic_net *net, struct work_queue *queue, uint32_t oldest,
	      const struct ibv_recv_wr *wr)
{
	struct rqe *rqe = work_queue_slot(net, queue, oldest, queue->posted++);
	rqe->wr_id = wr->wr_id;
	rqe->sges = (uint32_t)wr->num_sge;
	assert(rqe->sges <= queue->max_sge);
	assert(queue->posted - oldest <= queue->room);
	for (uint32_t i = 0; i < rqe->sges; i++)
		rqe->sge[i] = wr->sg_list[i];
}

int rnic_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	int error = 0;
	ground_step(qp_ground(qp), STEP_POST, ground_cost(qp_ground(qp))->post);
	for (; wr; wr = wr->next) {
		error = ground_fails(qp_ground(qp), FAIL_POST_RECV) ? ENOMEM : check_recv(qp, wr);
		if (error) {
			*bad_wr = wr;
			break;
		}
		post_rqe(qp->hca->net, &qp->rq, qp->rq.done, wr);
		assert(qp->rq.posted - qp->rq.freed <= qp->rq.max_wr);
	}
	if (ibv->state == IBV_QPS_ERR && !qp->resp.flush_rq && !qp->srq)
		resp_flush(qp);
	return error;
}
