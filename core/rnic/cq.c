/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues.
 *
 * A ring that starts small and grows up to the size that was asked for: worlds
 * that live for one crash state never pay for a queue of thousands. An entry
 * carries, besides the work completion, the number of its work request: taking
 * the entry out frees that request and the unsignaled ones before it. That is
 * when a send queue gets its slots back, so a program that never signals, or
 * never polls, runs full here as on a real card.
 *
 * Overrun: the entry is lost, the entries that are there stay, and every queue
 * pair that uses the queue goes to the error state (IBA vol. 1, 10.10.2.3).
 *
 * Polling a receive completion names the work that follows: a server's task
 * works for the client operation whose message it has taken. So that there is one
 * name, such a poll ends before a second message: that one comes a moment later, as
 * it might on a real card.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "core/rnic/device.h"
#include "core/rnic/qp.h"

#define POLL_NS 20

struct ibv_cq *rnic_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct rnic_hca *hca = to_hca(context);
	if (cqe < 1 || cqe > MAX_CQE || comp_vector < 0 || comp_vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	if (channel) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (sim_fails(FAIL_CREATE_CQ)) {
		errno = ENOMEM;
		return NULL;
	}
	struct rnic_cq *cq = sim_alloc(hca->net->sim, sizeof(*cq));
	cq->ibv.context = context;
	cq->ibv.cq_context = cq_context;
	cq->ibv.cqe = cqe;
	hca->objects++;
	return &cq->ibv;
}

int rnic_destroy_cq(struct ibv_cq *ibv)
{
	struct rnic_cq *cq = (struct rnic_cq *)ibv;
	if (cq->dead)
		return EINVAL;
	if (cq->users)
		return EBUSY;
	cq->dead = true;
	to_hca(ibv->context)->objects--;
	return 0;
}

static void grow(struct rnic_net *net, struct rnic_cq *cq)
{
	uint32_t room = cq->room ? 2 * cq->room : 8;
	struct cqe *ring = sim_alloc(net->sim, room * sizeof(*ring));
	for (uint32_t i = cq->head; i != cq->tail; i++)
		ring[i & (room - 1)] = cq->ring[i & (cq->room - 1)];
	cq->ring = ring;
	cq->room = room;
}

/* Not at once: whoever pushes is in the middle of a queue pair's work. */
static void fail_users(struct sim *sim, void *arg)
{
	struct rnic_cq *cq = arg;
	struct rnic_net *net = to_hca(cq->ibv.context)->net;
	(void)sim;
	for (uint32_t i = 0; i < net->qps; i++) {
		struct rnic_qp *qp = net->qp[i];
		if (qp && (qp->ibv.send_cq == &cq->ibv || qp->ibv.recv_cq == &cq->ibv))
			qp_fail(qp);
	}
}

void cq_push(struct rnic_net *net, struct rnic_cq *cq, const struct cqe *cqe)
{
	uint32_t used = cq->tail - cq->head;
	const struct ibv_wc *wc = &cqe->wc;
	assert(!cq->dead);
	sim_mix(net->sim, (uint64_t)wc->qp_num << 32 | (uint32_t)wc->status << 16 | (uint32_t)wc->opcode,
		wc->byte_len);
	if (used == (uint32_t)cq->ibv.cqe) {
		COUNT(net, cq_overrun);
		if (!cq->overrun) {
			cq->overrun = true;
			sim_at(net->sim, 0, fail_users, cq);
			if (sim_telling(net->sim))
				sim_tell(net->sim, &cqe->qp->actor, 0, "completion queue overrun");
		}
		return;
	}
	if (used == cq->room)
		grow(net, cq);
	sim_gives(net->sim, cq, cq->tail);
	cq->ring[cq->tail++ & (cq->room - 1)] = *cqe;
	sim_wake(net->sim, cq);
	if (to_hca(cq->ibv.context)->hooks.completion)
		to_hca(cq->ibv.context)->hooks.completion(cq);
	if (wc->status != IBV_WC_SUCCESS && sim_telling(net->sim))
		sim_tell(net->sim, &cqe->qp->actor, 0, "%s completes: %s",
			 cqe->recv ? "receive" : "work request", rnic_wc_status_str(wc->status));
}

void cq_purge(struct rnic_cq *cq, const struct rnic_qp *qp)
{
	uint32_t to = cq->head;
	for (uint32_t i = cq->head; i != cq->tail; i++) {
		struct cqe *cqe = &cq->ring[i & (cq->room - 1)];
		if (cqe->qp != qp)
			cq->ring[to++ & (cq->room - 1)] = *cqe;
	}
	cq->tail = to;
}

int rnic_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct rnic_cq *cq = (struct rnic_cq *)ibv;
	struct sim *sim = to_hca(ibv->context)->net->sim;
	struct actor *actor = sim_actor(sim);
	bool works = actor && sim_host(sim) == HOST_SERVER, named = false;
	int n = 0;
	if (num_entries < 0)
		return -EINVAL;
	if (cq->head == cq->tail) {
		sim_burn(sim);
		sim_idle_on(sim, cq);
		return 0;
	}
	sim_settle(sim);
	sim_step(sim, STEP_POLL, POLL_NS);
	/* Another thread may poll, too: which one is first matters. */
	sim_touch_state(sim, TOUCH_DRAM_WRITE, &cq->head, sizeof(cq->head));
	for (; n < num_entries && cq->head != cq->tail; n++) {
		struct cqe *cqe = &cq->ring[cq->head & (cq->room - 1)];
		bool names = works && cqe->recv && cqe->wc.status == IBV_WC_SUCCESS;
		if (names && named)
			break;
		sim_takes(sim, cq, cq->head);
		cq->head++;
		wc[n] = cqe->wc;
		if (cqe->recv)
			qp_recv_freed(cqe->qp, cqe->seq + 1);
		else
			cqe->qp->sq.freed = cqe->seq + 1;
		if (names)
			actor_label(actor, cqe->op);
		named |= names;
		if (actor && sim_telling(sim)) {
			const struct told about = {.kind = TOLD_TAKEN, .code = (uint8_t)cqe->wc.opcode};
			sim_tell_about(sim, actor, 0, &about, "%s", "");
		}
	}
	return n;
}

/* Completion channels are a later story; arming a queue without one has no effect. */
int rnic_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	(void)ibv;
	(void)solicited_only;
	return 0;
}
