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
 * pair that uses the queue goes to the error state (IBA vol. 1, 10.10.2.3). The program is told
 * by events. A queue that was created to ignore overruns loses its oldest entry instead.
 *
 * Events: ibv_req_notify_cq() arms the queue for one event, at the next entry, or the next that is
 * solicited or failed; entries that are there already make none. Armed for both: the next.
 * Moderation keeps the event back until so many entries have come, or so long after the first of
 * them.
 *
 * Polling a receive completion names the work that follows: a server's task
 * works for the client operation whose message it has taken. So that there is one
 * name, such a poll ends before a second message: that one comes a moment later, as
 * it might on a real card.
 */
#include "core/rnic/objects/cq.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "core/fail.h"
#include "core/rnic/count.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/srq.h"

#define NS_PER_US 1000ull

static struct rnic_cq *get_cq(struct rnic_net *net)
{
	struct rnic_cq *cq = net->free_cq;
	if (!cq)
		return ground_alloc(&net->ground, sizeof(*cq));
	assert(cq->dead && !cq->users);
	assert(!cq->ring && !cq->batch); /* others have these buffers by now */
	net->free_cq = cq->next;
	clear(cq, sizeof(*cq));
	return cq;
}

void cq_give_back(struct rnic_cq *cq)
{
	struct rnic_net *net = to_hca(cq->ibv.context)->net;
	assert(cq->dead && !cq->users);
	assert(net->free_cq != cq); /* given back twice */
	cq->next = net->free_cq;
	net->free_cq = cq;
}

struct ibv_cq *rnic_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct rnic_hca *hca = to_hca(context);
	if (cqe < 1 || cqe > MAX_CQE || comp_vector < 0 || comp_vector >= context->num_comp_vectors)
		return errno_null(EINVAL);
	if (channel && (channel->context != context || !hca->hooks.completion))
		return errno_null(channel->context != context ? EINVAL : EOPNOTSUPP);
	if (hca->cqs == MAX_OBJECTS || ground_fails(&hca->net->ground, FAIL_CREATE_CQ))
		return errno_null(ENOMEM);
	struct rnic_cq *cq = get_cq(hca->net);
	cq->ibv.context = context;
	cq->ibv.cq_context = cq_context;
	cq->ibv.cqe = hca->net->link->lossy && cqe < LOSSY_ROOM ? LOSSY_ROOM : cqe; /* see qp.c */
	cq->ibv.channel = channel;
	if (channel)
		channel->refcnt++;
	hca->objects++;
	hca->cqs++;
	assert(hca->cqs <= MAX_OBJECTS && hca_adds_up(hca));
	assert(!cq->users && cq->head == cq->tail);
	return &cq->ibv;
}

static void drop_memory(struct rnic_net *net, struct rnic_cq *cq)
{
	assert(!cq->ring == !cq->room);
	assert(cq->tail - cq->head <= cq->room);
	if (cq->ring)
		buffer_put(net, (uint8_t *)cq->ring, cq->ring_class);
	if (cq->batch)
		buffer_put(net, (uint8_t *)cq->batch, cq->batch->class);
	cq->ring = NULL;
	cq->batch = NULL;
	cq->head = cq->tail = cq->room = 0;
}

int rnic_destroy_cq(struct ibv_cq *ibv)
{
	struct rnic_cq *cq = (struct rnic_cq *)ibv;
	if (cq->dead)
		return EINVAL;
	if (cq->users)
		return EBUSY;
	cq->dead = true;
	drop_memory(to_hca(ibv->context)->net, cq);
	if (ibv->channel)
		ibv->channel->refcnt--;
	assert(!cq->parent || (cq->parent->users && !cq->parent->dead));
	assert(to_hca(ibv->context)->cqs && hca_adds_up(to_hca(ibv->context)));
	if (cq->parent)
		cq->parent->users--;
	to_hca(ibv->context)->objects--;
	to_hca(ibv->context)->cqs--;
	return 0;
}

static void grow(struct rnic_net *net, struct rnic_cq *cq)
{
	uint32_t room = cq->room ? 2 * cq->room : 8;
	uint8_t class;
	struct cqe *ring = (struct cqe *)buffer_get(net, room * (uint32_t)sizeof(*ring), &class);
	assert(cq->tail - cq->head == cq->room); /* full */
	assert((room & (room - 1)) == 0);	 /* a mask finds an entry's place */
	for (uint32_t i = cq->head; i != cq->tail; i++)
		ring[i & (room - 1)] = cq->ring[i & (cq->room - 1)];
	if (cq->ring)
		buffer_put(net, (uint8_t *)cq->ring, cq->ring_class);
	cq->ring = ring;
	cq->ring_class = class;
	cq->room = room;
}

/* An event of its own: cq_push() is called in the middle of a queue pair's work. */
static void fail_users(void *arg)
{
	struct rnic_cq *cq = arg;
	struct rnic_net *net = to_hca(cq->ibv.context)->net;
	if (!cq->overrun)
		return; /* this is another one by now */
	for (uint32_t i = 0; i < net->qps; i++) {
		struct rnic_qp *qp = net->qp[i];
		if (!qp || (qp->ibv.send_cq != &cq->ibv && qp->ibv.recv_cq != &cq->ibv))
			continue;
		if (qp->ibv.state != IBV_QPS_ERR)
			qp_event(qp, IBV_EVENT_QP_FATAL);
		qp_fail(qp);
	}
}

/* The entry is out: its work request is, and the unsignaled ones before it are. */
static void free_request(const struct cqe *cqe)
{
	struct work_queue *sq = &cqe->qp->sq;
	if (!cqe->recv) {
		/* In order, and not before it is complete. */
		assert((int32_t)(cqe->seq - sq->freed) >= 0);
		assert((int32_t)(sq->done - cqe->seq) > 0);
		sq->freed = cqe->seq + 1;
	} else {
		qp_recv_freed(cqe->qp, cqe->seq + 1);
	}
}

static void overrun(struct rnic_net *net, struct rnic_cq *cq, const struct cqe *cqe)
{
	assert(!cq->ignores_overrun);
	assert(cq->tail - cq->head >= (uint32_t)cq->ibv.cqe);
	if (cq->overrun)
		return;
	cq->overrun = true;
	cq->failing = (struct rnic_event){fail_users, cq};
	net->ground.later(net->ground.world, CHAIN_OTHER, 0, &cq->failing);
	rnic_event(to_hca(cq->ibv.context), IBV_EVENT_CQ_ERR, &cq->ibv);
	if (ground_traced(&net->ground))
		ground_trace(&net->ground, &cqe->qp->actor, NULL, "completion queue overrun");
}

static void report(struct rnic_cq *cq)
{
	const struct rnic_hooks *hooks = &to_hca(cq->ibv.context)->hooks;
	assert(cq->armed && !cq->dead);
	assert(cq->withheld); /* one event for these */
	cq->armed = CQ_UNARMED;
	cq->withheld = 0;
	cq->moderation.at = 0;
	if (hooks->completion)
		hooks->completion(cq);
}

static void fire_moderation(void *arg)
{
	struct rnic_cq *cq = arg;
	if (alarm_fired(&to_hca(cq->ibv.context)->net->ground, &cq->moderation) && cq->withheld &&
	    !cq->dead)
		report(cq);
}

/* The queue is armed, and has a new entry. */
static void notify(struct rnic_net *net, struct rnic_cq *cq, const struct cqe *cqe)
{
	const struct ibv_moderate_cq *moderated = &cq->moderated;
	assert(cq->armed && !cq->dead);
	assert(cq->tail != cq->head);
	if (cq->armed == CQ_ARMED_SOLICITED && !cqe->solicited && cqe->wc.status == IBV_WC_SUCCESS)
		return;
	cq->withheld++;
	if (moderated->cq_count ? cq->withheld >= moderated->cq_count : !moderated->cq_period)
		report(cq);
	else if (moderated->cq_period)
		alarm_set(&net->ground, &cq->moderation, CHAIN_OTHER,
			  moderated->cq_period * NS_PER_US, fire_moderation, cq);
}

void cq_push(struct rnic_net *net, struct rnic_cq *cq, const struct cqe *cqe)
{
	uint32_t used = cq->tail - cq->head;
	const struct ibv_wc *wc = &cqe->wc;
	assert(!cq->dead);
	ground_mix(&net->ground,
		   (uint64_t)wc->qp_num << 32 | (uint32_t)wc->status << 16 | (uint32_t)wc->opcode,
		   wc->byte_len);
	if (used >= (uint32_t)cq->ibv.cqe) {
		COUNT_ONE(net, cq_overrun);
		if (!cq->ignores_overrun) {
			overrun(net, cq, cqe);
			return;
		}
		free_request(&cq->ring[cq->head++ & (cq->room - 1)]);
		used--;
	}
	if (used == cq->room)
		grow(net, cq);
	struct cqe *slot = &cq->ring[cq->tail & (cq->room - 1)];
	assert(used < cq->room && used < (uint32_t)cq->ibv.cqe);
	ground_gives(&net->ground, cq, cq->tail);
	*slot = *cqe;
	slot->at_ns = ground_now(&net->ground);
	cq->tail++;
	ground_wake(&net->ground, cq);
	if (cq->ibv.channel)
		ground_touch(&net->ground, TOUCH_DRAM_WRITE, &cq->armed, sizeof(cq->armed));
	if (cq->armed)
		notify(net, cq, cqe);
	if (wc->status != IBV_WC_SUCCESS && ground_traced(&net->ground)) {
		const struct traced about = {.kind = TRACED_FAILED,
					     .op = cqe->op,
					     .code = (uint8_t)wc->status,
					     .id = cqe->message};
		ground_trace(&net->ground, &cqe->qp->actor, &about, "%s completes: %s",
			     cqe->recv ? "receive" : "work request",
			     rnic_wc_status_str(wc->status));
	}
}

void cq_purge(struct rnic_cq *cq, const struct rnic_qp *qp)
{
	uint32_t to = cq->head;
	assert(cq->users && !cq->dead); /* the queue pair is still one of them */
	assert(cq->tail - cq->head <= cq->room);
	for (uint32_t i = cq->head; i != cq->tail; i++) {
		struct cqe *cqe = &cq->ring[i & (cq->room - 1)];
		if (cqe->qp != qp)
			cq->ring[to++ & (cq->room - 1)] = *cqe;
	}
	cq->tail = to;
}

bool cq_step(struct rnic_cq *cq)
{
	const struct rnic_ground *ground = &to_hca(cq->ibv.context)->net->ground;
	if (cq->head == cq->tail) {
		ground_idle(ground, cq);
		return false;
	}
	ground_commit_pending(ground);
	ground_step(ground, STEP_POLL, ground_cost(ground)->poll);
	/* Another thread may poll, too: which one is first matters. */
	ground_touch(ground, TOUCH_DRAM_WRITE, &cq->head, sizeof(cq->head));
	return true;
}

const struct cqe *cq_take(struct rnic_cq *cq, bool *named)
{
	const struct rnic_ground *ground = &to_hca(cq->ibv.context)->net->ground;
	struct actor *actor = ground_task(ground);
	const struct cqe *cqe = &cq->ring[cq->head & (cq->room - 1)];
	if (cq->head == cq->tail)
		return NULL;
	assert(!cq->dead); /* then it is empty */
	assert(cq->tail - cq->head <= cq->room);
	bool names = cqe->recv && cqe->wc.status == IBV_WC_SUCCESS && ground_serves(ground);
	if (names && *named)
		return NULL;
	if (names && cqe->wc.byte_len)
		ground_work(ground, ground_cost(ground)->handle);
	ground_takes(ground, cq, cq->head);
	cq->head++;
	free_request(cqe);
	if (names)
		ground_label(ground, actor, cqe->op);
	*named |= names;
	if (actor && ground_traced(ground)) {
		const struct traced about = {
			.kind = TRACED_TAKEN, .code = (uint8_t)cqe->wc.opcode, .id = cqe->message};
		ground_trace(ground, actor, &about, "%s", "");
	}
	return cqe;
}

int rnic_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct rnic_cq *cq = (struct rnic_cq *)ibv;
	const struct cqe *cqe;
	bool named = false;
	int n = 0;
	if (num_entries < 0)
		return -EINVAL;
	if (!cq_step(cq))
		return 0;
	while (n < num_entries && (cqe = cq_take(cq, &named)))
		wc[n++] = cqe->wc;
	return n;
}

int rnic_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct rnic_cq *cq = (struct rnic_cq *)ibv;
	const struct rnic_ground *ground = &to_hca(ibv->context)->net->ground;
	uint8_t armed = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_NEXT;
	if (cq->dead)
		return EINVAL;
	/* What comes in before the queue is armed makes no event. So this is a step: a program that
	 * does not look once more has to be found out. */
	if (ibv->channel) {
		ground_commit_pending(ground);
		ground_step(ground, STEP_POLL, ground_cost(ground)->poll);
		ground_touch(ground, TOUCH_DRAM_WRITE, &cq->armed, sizeof(cq->armed));
	}
	if (armed > cq->armed)
		cq->armed = armed;
	return 0;
}

int rnic_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct rnic_cq *cq = (struct rnic_cq *)ibv;
	if (cq->dead || cqe < 1 || cqe > MAX_CQE || (uint32_t)cqe < cq->tail - cq->head)
		return EINVAL;
	ibv->cqe = cqe;
	return 0;
}

int rnic_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	struct rnic_cq *cq = (struct rnic_cq *)ibv;
	if (cq->dead || attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	if (attr->attr_mask & IBV_CQ_ATTR_MODERATE)
		cq->moderated = attr->moderate;
	return 0;
}
