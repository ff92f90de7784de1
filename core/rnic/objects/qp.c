/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair as an object: creation, the state machine, destruction.
 *
 * The attributes that a transition needs and allows are the table of IBA vol. 1, 11.2.5.2, below as
 * data. A transition that is not in the table, misses a required attribute, or brings one that it
 * does not allow is EINVAL and changes nothing; every value is checked before the first is taken
 * over.
 *
 * The link layer is Ethernet: without a global route (is_global and a dgid) there
 * is no way to the peer, so INIT->RTR refuses an address vector that has none (ah.c); where
 * the net has a LID, that is one.
 *
 * Numbers are counters: a queue pair's number in the net, and its ordinal on the
 * host, which names it in traces ("c1/qp1"). Nothing depends on addresses. A number is given
 * out again when all have been.
 */
#include "core/rnic/objects/qp.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "core/fail.h"
#include "core/rnic/objects/ah.h"
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/mw.h"
#include "core/rnic/objects/pd.h"
#include "core/rnic/objects/srq.h"
#include "core/rnic/objects/work_queue.h"
#include "core/rnic/objects/wr.h"
#include "core/rnic/transport/landing.h"
#include "core/rnic/transport/loss_recovery.h"
#include "core/rnic/transport/packet.h"
#include "core/rnic/transport/requester.h"
#include "core/rnic/transport/responder.h"
#include "core/rnic/transport/time_wait.h"
#include "core/verbs_compat.h"

/* IBV_ACCESS_ON_DEMAND is about a region's pages: here it means nothing, and does no harm. */
#define QP_ACCESS                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |        \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT | \
	 IBV_ACCESS_ON_DEMAND)

/* What a transition may say about a connection's path, reliable or not. */
#define PATH_OPTIONAL (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

struct transition {
	enum ibv_qp_state from, to;
	/* By service: what only one type of queue pair has. */
	struct {
		int required, optional;
	} rc, uc, ud;
};

/* clang-format off */
static const struct transition transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT,
	 .rc = {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	 .uc = {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	 .ud = {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0}},
	{IBV_QPS_INIT, IBV_QPS_INIT,
	 .rc = {0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	 .uc = {0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	 .ud = {0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY}},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 .rc = {IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER,
		IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	 .uc = {IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	 .ud = {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 .rc = {IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
		PATH_OPTIONAL | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	 .uc = {IBV_QP_SQ_PSN, PATH_OPTIONAL | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
	 .ud = {IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
	{IBV_QPS_RTS, IBV_QPS_RTS,
	 .rc = {0, PATH_OPTIONAL | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	 .uc = {0, PATH_OPTIONAL | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
	 .ud = {0, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
	{IBV_QPS_RTS, IBV_QPS_SQD,
	 .rc = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	 .uc = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	 .ud = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY}},
	{IBV_QPS_SQD, IBV_QPS_RTS,
	 .rc = {0, PATH_OPTIONAL | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	 .uc = {0, PATH_OPTIONAL | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
	 .ud = {0, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
	{IBV_QPS_SQD, IBV_QPS_SQD,
	 .rc = {0, PATH_OPTIONAL | IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			   IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
			   IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER},
	 .uc = {0, PATH_OPTIONAL | IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	 .ud = {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
	/* A reliable connection is never in SQE. */
	{IBV_QPS_SQE, IBV_QPS_RTS,
	 .uc = {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
	 .ud = {0, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
};
/* clang-format on */

static bool caps_allowed(const struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap *cap = &init->cap;
	bool recv = init->srq || (cap->max_recv_wr <= MAX_WR && cap->max_recv_sge <= MAX_SGE);
	return recv && cap->max_send_wr <= MAX_WR && cap->max_send_sge <= MAX_SGE &&
	       cap->max_inline_data <= MAX_INLINE;
}

/* All numbers have been given out: the next one whose queue pair is gone, in turn, so that it is
 * the longest gone. */
static bool number_again(struct rnic_net *net, struct rnic_qp *qp)
{
	for (uint32_t i = 0; i < net->qps; i++) {
		net->qp_cursor = (net->qp_cursor + 1) % net->qps;
		if (!net->qp[net->qp_cursor]) {
			qp->ibv.qp_num = net->qpn_first + net->qp_cursor;
			net->qp[net->qp_cursor] = qp;
			return true;
		}
	}
	return false;
}

/* A number that the host's former process had. */
static bool number_of_before(struct rnic_hca *hca, struct rnic_qp *qp)
{
	while (hca->old_qpn_next < hca->old_qpns) {
		uint32_t number = hca->old_qpn[hca->old_qpn_next++];
		struct rnic_qp **place = &hca->net->qp[number - hca->net->qpn_first];
		if (*place)
			continue;
		qp->ibv.qp_num = number;
		*place = qp;
		return true;
	}
	return false;
}

bool qp_number(struct rnic_net *net, struct rnic_qp *qp)
{
	assert(net->qps <= net->qp_room && net->qps <= net->qpn_limit - net->qpn_first);
	if (net->qps >= net->qpn_limit - net->qpn_first)
		return number_again(net, qp);
	if (net->qps == net->qp_room) {
		uint32_t room = net->qp_room ? 2 * net->qp_room : 16;
		struct rnic_qp **table = ground_alloc(&net->ground,
						      room * sizeof(struct rnic_qp *));
		if (net->qps)
			memcpy(table, net->qp, net->qps * sizeof(struct rnic_qp *));
		net->qp = table;
		net->qp_room = room;
	}
	assert(!net->qp[net->qps]);
	qp->ibv.qp_num = net->qpn_first + net->qps;
	net->qp[net->qps++] = qp;
	return true;
}

enum service qp_service(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? SERVICE_UD : type == IBV_QPT_UC ? SERVICE_UC : SERVICE_RC;
}

/* 0, or an errno. */
static int check_type(const struct rnic_hca *hca, const struct ibv_qp_init_attr *init)
{
	if (init->qp_type < IBV_QPT_RC)
		return EINVAL;
	if (init->qp_type > IBV_QPT_UD)
		return EOPNOTSUPP;
	if (init->srq && init->qp_type == IBV_QPT_UC)
		return EINVAL;
	return init->qp_type != IBV_QPT_RC && hca->hw.transport == TRANSPORT_IWARP ? EOPNOTSUPP : 0;
}

/* On a lossy link the answer to a message may overtake the message's acknowledgement. A program
 * that then posts the next one needs more room than it thought, and gets it, as with cards, whose
 * queues have sizes of their own. */
static uint32_t send_room(const struct rnic_qp *qp, uint32_t max_wr)
{
	return is_lossy(qp) && max_wr && max_wr < LOSSY_ROOM ? LOSSY_ROOM : max_wr;
}

/* The queues; of a queue pair with a shared receive queue, its own takes what that one has. */
static void make_queues(struct rnic_qp *qp, struct ibv_qp_init_attr *init)
{
	assert(!qp->sq.ring && !qp->rq.ring);
	init->cap.max_send_wr = send_room(qp, init->cap.max_send_wr);
	work_queue_init(&qp->sq, sizeof(struct wqe), init->cap.max_send_wr, init->cap.max_send_sge);
	qp->srq = (struct rnic_srq *)init->srq;
	if (!qp->srq) {
		work_queue_init(&qp->rq, sizeof(struct rqe), init->cap.max_recv_wr,
				init->cap.max_recv_sge);
		return;
	}
	assert(!qp->srq->dead);
	qp->srq->users++;
	work_queue_init(&qp->rq, sizeof(struct rqe), 0, qp->srq->rq.max_sge);
}

static bool cq_allowed(const struct rnic_cq *cq, const struct ibv_context *context)
{
	return cq && !cq->dead && cq->ibv.context == context;
}

static struct rnic_qp *get_qp(struct rnic_net *net)
{
	struct rnic_qp *qp = net->free_qp;
	if (!qp)
		return ground_alloc(&net->ground, sizeof(*qp));
	assert(qp->dead);
	assert(!qp->sq.ring && !qp->rq.ring); /* others have these buffers by now */
	net->free_qp = qp->next;
	uint32_t resets = qp->resets;
	clear(qp, sizeof(*qp));
	qp->resets = resets; /* doorbells that are on their way are not for this one */
	return qp;
}

void qp_give_back(struct rnic_qp *qp)
{
	struct rnic_net *net = qp->hca->net;
	assert(qp->dead && qp_find(net, qp->ibv.qp_num) != qp);
	assert(net->free_qp != qp); /* given back twice */
	qp->next = net->free_qp;
	net->free_qp = qp;
}

struct ibv_qp *rnic_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct rnic_hca *hca = to_hca(pd->context);
	const struct rnic_srq *srq = (struct rnic_srq *)init->srq;
	struct rnic_cq *send_cq = (struct rnic_cq *)init->send_cq,
		       *recv_cq = (struct rnic_cq *)init->recv_cq;
	int error = check_type(hca, init);
	if (error)
		return errno_null(error);
	if (!cq_allowed(send_cq, pd->context) || !cq_allowed(recv_cq, pd->context) ||
	    !caps_allowed(init) || (srq && (srq->dead || srq->hca != hca)))
		return errno_null(EINVAL);
	struct rnic_qp *qp = get_qp(hca->net);
	if (ground_fails(&hca->net->ground, FAIL_CREATE_QP) ||
	    (!number_of_before(hca, qp) && !qp_number(hca->net, qp)))
		return errno_null(ENOMEM);
	ground_name(&hca->net->ground, &qp->actor, hca->host, "qp", ++hca->qps);
	qp->hca = hca;
	qp->ibv.context = pd->context;
	qp->ibv.qp_context = init->qp_context;
	qp->ibv.pd = pd;
	qp->ibv.send_cq = init->send_cq;
	qp->ibv.recv_cq = init->recv_cq;
	qp->ibv.srq = init->srq;
	qp->ibv.qp_type = init->qp_type;
	qp->service = qp_service(init->qp_type);
	qp->mtu = hca->hw.mtu; /* a datagram's; a connection has its own from RTR on */
	qp->ibv.state = IBV_QPS_RESET;
	qp->sig_all = init->sq_sig_all;
	qp->max_inline = init->cap.max_inline_data;
	make_queues(qp, init);
	send_cq->users++;
	recv_cq->users++;
	((struct rnic_pd *)pd)->users++;
	hca->objects++;
	assert(qp_find(hca->net, qp->ibv.qp_num) == qp);
	assert(!qp->dead && !qp->batch.open && qp->sq.posted == 0 && qp->rq.posted == 0);
	return &qp->ibv;
}

/* What is there of enum ibv_qp_init_attr_mask. The protection domain is needed; create_flags has no
 * flag. */
#define QP_ATTRS \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

struct ibv_qp *rnic_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	struct ibv_qp_init_attr basic;
	uint32_t mask = init->comp_mask;
	if (mask & ~(uint32_t)QP_ATTRS ||
	    (mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && init->create_flags) ||
	    (mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	     init->send_ops_flags & ~wr_supported(init->qp_type)))
		return errno_null(EOPNOTSUPP);
	if (!(mask & IBV_QP_INIT_ATTR_PD) || !init->pd || init->pd->context != context)
		return errno_null(EINVAL);
	memcpy(&basic, init, sizeof(basic)); /* with which it begins */
	struct ibv_qp *qp = rnic_create_qp(init->pd, &basic);
	init->cap = basic.cap;
	if (qp && mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		wr_enable((struct rnic_qp *)qp, init->send_ops_flags);
	return qp;
}

struct ibv_qp_ex *rnic_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	return qp->extended ? &qp->ex : NULL;
}

struct rnic_qp *qp_find(struct rnic_net *net, uint32_t qpn)
{
	return qpn - net->qpn_first < net->qps ? net->qp[qpn - net->qpn_first] : NULL;
}

void qp_fail(struct rnic_qp *qp)
{
	if (qp->ibv.state == IBV_QPS_ERR)
		return;
	qp->ibv.state = IBV_QPS_ERR;
	req_flush(qp);
	answer_drop_all(qp);
	assert(qp->sq.done == qp->sq.posted && !qp->resp.answers.head);
	/* What was let in still lands, and completes; the rest is flushed after it. */
	if (qp->resp.land.head)
		qp->resp.flush_rq = true;
	else
		resp_flush(qp);
}

void qp_fail_sends(struct rnic_qp *qp)
{
	assert(!qp_is_reliable(qp) && qp->ibv.state != IBV_QPS_ERR);
	qp->ibv.state = IBV_QPS_SQE;
	req_flush(qp);
	assert(qp->sq.done == qp->sq.posted);
}

void qp_reset(struct rnic_qp *qp)
{
	wr_lose(qp);
	land_all(qp, NULL);
	answer_drop_all(qp);
	cq_purge((struct rnic_cq *)qp->ibv.send_cq, qp);
	cq_purge((struct rnic_cq *)qp->ibv.recv_cq, qp);
	req_reset(qp);
	resp_reset(qp);
	assert(qp->sq.posted == qp->sq.freed && qp->rq.posted == qp->rq.freed);
	assert(!qp->batch.built && qp->req.una == qp->req.next_psn);
	qp->ibv.state = IBV_QPS_RESET;
	memset(&qp->attr, 0, sizeof(qp->attr));
}

void qp_event(struct rnic_qp *qp, enum ibv_event_type type)
{
	rnic_event(qp->hca, type, &qp->ibv);
}

int rnic_destroy_qp(struct ibv_qp *ibv)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	if (qp->dead)
		return EINVAL;
	if (is_lossy(qp))
		time_wait_enter(qp);
	if (!MUTANT(&qp->hca->hw, NIC_LAND_AFTER_DESTROY)) {
		qp_reset(qp);
		work_queue_drop(qp->hca->net, &qp->sq);
		work_queue_drop(qp->hca->net, &qp->rq);
	}
	mw_drop_qp(qp);
	assert(qp_find(qp->hca->net, ibv->qp_num) == qp);
	assert(((struct rnic_cq *)ibv->send_cq)->users && ((struct rnic_pd *)ibv->pd)->users);
	assert((!qp->srq || qp->srq->users) && qp->hca->objects);
	ibv->state = IBV_QPS_RESET;
	qp->dead = true;
	qp->hca->net->qp[ibv->qp_num - qp->hca->net->qpn_first] = NULL;
	((struct rnic_cq *)ibv->send_cq)->users--;
	((struct rnic_cq *)ibv->recv_cq)->users--;
	((struct rnic_pd *)ibv->pd)->users--;
	if (qp->srq)
		qp->srq->users--;
	qp->hca->objects--;
	return 0;
}

static int check_transition(const struct rnic_qp *qp, enum ibv_qp_state to, int mask)
{
	enum ibv_qp_state from = qp->ibv.state;
	mask &= ~IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask ? EINVAL : 0;
	for (size_t i = 0; i < sizeof(transitions) / sizeof(*transitions); i++) {
		const struct transition *t = &transitions[i];
		if (t->from != from || t->to != to)
			continue;
		int required = t->rc.required, optional = t->rc.optional;
		if (qp->service == SERVICE_UC)
			required = t->uc.required, optional = t->uc.optional;
		else if (qp->service == SERVICE_UD)
			required = t->ud.required, optional = t->ud.optional;
		return (mask & required) != required || mask & ~(required | optional) ? EINVAL : 0;
	}
	return EINVAL;
}

static int check_values(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != qp->ibv.state)
		return EINVAL;
	if (mask & IBV_QP_PORT && attr->port_num != 1)
		return EINVAL;
	if (mask & IBV_QP_PKEY_INDEX && attr->pkey_index != 0)
		return EINVAL;
	if (mask & IBV_QP_ACCESS_FLAGS && attr->qp_access_flags & ~(unsigned)QP_ACCESS)
		return EINVAL;
	if (mask & IBV_QP_PATH_MTU &&
	    (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096 ||
	     128u << attr->path_mtu > qp->hca->hw.mtu))
		return EINVAL;
	if (mask & IBV_QP_DEST_QPN && attr->dest_qp_num > QPN_LIMIT)
		return EINVAL;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > MAX_RD_ATOMIC)
		return EINVAL;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > MAX_RD_ATOMIC)
		return EINVAL;
	if (mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31)
		return EINVAL;
	if (mask & IBV_QP_TIMEOUT && attr->timeout > 31)
		return EINVAL;
	if ((mask & IBV_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IBV_QP_RNR_RETRY && attr->rnr_retry > 7))
		return EINVAL;
	/* There is one port and one path. */
	if (mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE))
		return EINVAL;
	return 0;
}

static void take_values(struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr *to = &qp->attr;
	if (mask & IBV_QP_PORT)
		to->port_num = attr->port_num;
	if (mask & IBV_QP_PKEY_INDEX)
		to->pkey_index = attr->pkey_index;
	if (mask & IBV_QP_ACCESS_FLAGS)
		to->qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_QKEY)
		to->qkey = attr->qkey;
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & IBV_QP_AV)
		to->ah_attr = attr->ah_attr;
	if (mask & IBV_QP_DEST_QPN)
		to->dest_qp_num = attr->dest_qp_num;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		to->timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		qp->req.retry_left = to->retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		qp->req.rnr_left = to->rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_PATH_MTU) {
		to->path_mtu = attr->path_mtu;
		qp->mtu = 128u << attr->path_mtu;
	}
	if (mask & IBV_QP_RQ_PSN) {
		qp->resp.psn = to->rq_psn = attr->rq_psn & PSN_MASK;
		qp->resp.acked_psn = psn_add(qp->resp.psn, PSN_MASK); /* one less */
	}
	if (mask & IBV_QP_SQ_PSN)
		qp->req.next_psn = qp->req.una = to->sq_psn = attr->sq_psn & PSN_MASK;
	if (mask & IBV_QP_SQ_PSN)
		recovery_reset(qp);
}

int rnic_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	uint32_t peer = qp->peer;
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : ibv->state;
	if (qp->dead)
		return EINVAL;
	int error = check_transition(qp, to, mask);
	if (!error)
		error = check_values(qp, attr, mask);
	if (!error && mask & IBV_QP_AV)
		error = rnic_path(qp->hca, &attr->ah_attr, &peer);
	if (!error && ground_fails(qp_ground(qp), FAIL_MODIFY_QP))
		error = ENOMEM;
	if (error)
		return error;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
		if (to == IBV_QPS_RESET)
			qp_reset(qp);
		else
			qp_fail(qp);
		assert(ibv->state == to);
		return 0;
	}
	take_values(qp, attr, mask);
	/* Before it can send, nothing was posted or has left. */
	assert((to != IBV_QPS_INIT && to != IBV_QPS_RTR) ||
	       (qp->sq.posted == 0 && qp->req.una == qp->req.next_psn));
	qp->peer = peer;
	ibv->state = to;
	if (to == IBV_QPS_RTS)
		req_kick(qp);
	else if (to == IBV_QPS_SQD)
		req_drained(qp);
	return 0;
}

int rnic_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	(void)mask; /* may return more than was asked for */
	if (qp->dead)
		return EINVAL;
	if (ground_fails(qp_ground(qp), FAIL_QUERY))
		return EIO;
	struct ibv_qp_cap cap = {
		.max_send_wr = qp->sq.max_wr,
		.max_recv_wr = qp->rq.max_wr,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->srq ? 0 : qp->rq.max_sge,
		.max_inline_data = qp->max_inline,
	};
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = ibv->state;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->cap = cap;
	attr->sq_draining = ibv->state == IBV_QPS_SQD && qp->req.una != qp->req.next_psn;
	if (init)
		*init = (struct ibv_qp_init_attr){
			.qp_context = ibv->qp_context,
			.send_cq = ibv->send_cq,
			.recv_cq = ibv->recv_cq,
			.srq = ibv->srq,
			.cap = cap,
			.qp_type = ibv->qp_type,
			.sq_sig_all = qp->sig_all,
		};
	return 0;
}
