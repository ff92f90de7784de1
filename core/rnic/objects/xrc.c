/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended reliable connections (IBA vol. 1, annex A14): one connection from a process reaches all
 * shared receive queues of a domain.
 *
 * A queue pair sends (IBV_QPT_XRC_SEND) or receives (IBV_QPT_XRC_RECV: a target). Each request
 * packet says which shared receive queue it is for; to that belong the receive requests, the
 * completion queue, and the protection domain of all keys. A target has nothing of these. So before
 * it works on a packet it is given what the packet's shared receive queue has, for as long as that
 * work takes (xrc_select()); in between, of a READ that waits for instance, other packets may come
 * in for others. What the sender does is as with a reliable connection.
 *
 *      sender ---- packet, SRQ 7 ---> target   in domain    SRQ 7: requests, CQ, PD
 *      sender ---- packet, SRQ 9 ---> target                SRQ 9: requests, CQ, PD
 *
 * A packet whose shared receive queue is not in the target's domain, or is another one than that of
 * the message which it continues, is an invalid request.
 *
 * A target belongs to its domain: programs hold handles of it, by ibv_create_qp_ex() and
 * ibv_open_qp(), and it goes with the last one. Each handle of whatever context can modify and
 * query it, and hears of its events. The target itself is in the net's table, where packets find
 * it.
 *
 * A domain that was opened for a file is the same for all programs that open it for that file, in
 * all contexts of the net.
 *
 * Numbers of shared receive queues are places in a table of the net's, counted as queue pairs'
 * numbers are. A number is given out again when all have been.
 */
#include "core/rnic/objects/xrc.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "core/rnic/count.h"
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/srq.h"
#include "core/rnic/objects/work_queue.h"
#include "core/rnic/transport/landing.h"
#include "core/rnic/transport/packet.h"
#include "core/rnic/transport/requester.h"
#include "core/rnic/transport/responder.h"
#include "core/rnic/transport/time_wait.h"
#include "core/verbs_compat.h"

struct xrc_domain {
	struct xrc_domain *next;
	uint64_t device, inode; /* 0, 0: no file's */
	unsigned handles;
};

struct xrc {
	struct xrc_domain *domains; /* those that are open */
	struct rnic_srq **srq;	    /* by number - qpn_first; NULL: destroyed */
	uint32_t srqs, room, cursor;
};

struct xrc_handle {
	struct rnic_qp qp; /* first: what the program holds */
	struct xrc_handle *next;
	struct rnic_xrcd *xrcd;
};

struct xrc_target {
	struct rnic_qp qp; /* first */
	struct xrc_domain *domain;
	struct xrc_handle *handles;
	uint32_t srqn; /* of the message that is coming in */
};

static struct rnic_xrcd *to_xrcd(struct ibv_xrcd *ibv)
{
	return (struct rnic_xrcd *)ibv;
}

static struct xrc_target *to_target(struct rnic_qp *qp)
{
	return (struct xrc_target *)qp;
}

/* --- domains --- */

static struct xrc *xrc_of(struct rnic_net *net)
{
	if (!net->xrc)
		net->xrc = ground_alloc(&net->ground, sizeof(*net->xrc));
	return net->xrc;
}

static struct xrc_domain *find_domain(const struct xrc *xrc, uint64_t device, uint64_t inode)
{
	struct xrc_domain *domain = xrc->domains;
	if (!device && !inode)
		return NULL;
	while (domain && (domain->device != device || domain->inode != inode))
		domain = domain->next;
	return domain;
}

struct ibv_xrcd *xrc_open(struct ibv_context *context, uint64_t device, uint64_t inode, int oflags)
{
	struct rnic_net *net = to_hca(context)->net;
	struct xrc *xrc = xrc_of(net);
	struct xrc_domain *domain = find_domain(xrc, device, inode);
	if (domain ? oflags & O_EXCL : (device || inode) && !(oflags & O_CREAT)) {
		errno = domain ? EINVAL : EAGAIN;
		return NULL;
	}
	assert(!domain || domain->handles); /* only what is open is listed */
	if (!domain) {
		domain = ground_alloc(&net->ground, sizeof(*domain));
		*domain = (struct xrc_domain){
			.next = xrc->domains, .device = device, .inode = inode};
		xrc->domains = domain;
	}
	struct rnic_xrcd *xrcd = ground_alloc(&net->ground, sizeof(*xrcd));
	xrcd->ibv.context = context;
	xrcd->domain = domain;
	domain->handles++;
	to_hca(context)->objects++;
	assert(hca_adds_up(to_hca(context)));
	return &xrcd->ibv;
}

/* What of ibv_open_xrcd()'s attributes does not depend on the file. */
int xrc_check(const struct ibv_context *context, const struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	if (to_hca((struct ibv_context *)context)->net->hw.transport == TRANSPORT_IWARP ||
	    attr->comp_mask & ~needed)
		return EOPNOTSUPP;
	return attr->comp_mask != needed || attr->oflags & ~(O_CREAT | O_EXCL) ? EINVAL : 0;
}

struct ibv_xrcd *rnic_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	int error = xrc_check(context, attr);
	if (!error && attr->fd != -1)
		error = EBADF;
	if (error) {
		errno = error;
		return NULL;
	}
	return xrc_open(context, 0, 0, attr->oflags);
}

int rnic_close_xrcd(struct ibv_xrcd *ibv)
{
	struct rnic_xrcd *xrcd = to_xrcd(ibv);
	struct rnic_hca *hca = to_hca(ibv->context);
	struct xrc_domain **at = &hca->net->xrc->domains;
	if (xrcd->dead)
		return EINVAL;
	if (xrcd->users)
		return EBUSY;
	assert(xrcd->domain->handles && hca->objects);
	xrcd->dead = true;
	hca->objects--;
	if (--xrcd->domain->handles)
		return 0;
	while (*at != xrcd->domain) {
		assert(*at); /* it was listed */
		at = &(*at)->next;
	}
	*at = xrcd->domain->next;
	return 0;
}

static bool is_open(const struct ibv_xrcd *xrcd, const struct ibv_context *context)
{
	return xrcd && !((const struct rnic_xrcd *)xrcd)->dead && xrcd->context == context;
}

/* --- shared receive queues --- */

/* A place in the table; as many as there are numbers: none is free. */
static uint32_t find_place(struct rnic_net *net, struct xrc *xrc)
{
	uint32_t most = net->qpn_limit - net->qpn_first;
	assert(xrc->srqs <= xrc->room && xrc->srqs <= most);
	for (uint32_t i = 0; xrc->srqs == most && i < most; i++) {
		xrc->cursor = (xrc->cursor + 1) % most;
		if (!xrc->srq[xrc->cursor])
			return xrc->cursor;
	}
	if (xrc->srqs == xrc->room && xrc->srqs < most) {
		uint32_t room = xrc->room ? 2 * xrc->room : 8;
		struct rnic_srq **table = ground_alloc(&net->ground,
						       room * sizeof(struct rnic_srq *));
		if (xrc->srqs)
			memcpy(table, xrc->srq, xrc->srqs * sizeof(struct rnic_srq *));
		xrc->srq = table;
		xrc->room = room;
	}
	return xrc->srqs < most ? xrc->srqs++ : most;
}

int xrc_add_srq(struct rnic_srq *srq, struct ibv_xrcd *xrcd, struct ibv_cq *ibv_cq)
{
	struct rnic_net *net = srq->hca->net;
	struct rnic_cq *cq = (struct rnic_cq *)ibv_cq;
	struct xrc *xrc = xrc_of(net);
	uint32_t place;
	if (!is_open(xrcd, srq->ibv.context) || !cq || cq->dead ||
	    cq->ibv.context != srq->ibv.context)
		return EINVAL;
	place = find_place(net, xrc);
	if (place == net->qpn_limit - net->qpn_first)
		return ENOMEM;
	assert(place < xrc->srqs && !xrc->srq[place]);
	assert(!srq->xrcd && !srq->users);
	xrc->srq[place] = srq;
	srq->number = net->qpn_first + place;
	srq->xrcd = to_xrcd(xrcd);
	srq->cq = cq;
	srq->xrcd->users++;
	cq->users++;
	return 0;
}

struct rnic_srq *xrc_srq(const struct rnic_net *net, uint32_t srqn)
{
	uint32_t place = srqn - net->qpn_first;
	struct rnic_srq *srq = place < net->xrc->srqs ? net->xrc->srq[place] : NULL;
	assert(!srq || (srq->number == srqn && !srq->dead));
	return srq;
}

/* What has come in for it lands and completes; of the completions none is left. A message that has
 * come in by half is refused with its next packet. */
void xrc_remove_srq(struct rnic_srq *srq)
{
	struct rnic_net *net = srq->hca->net;
	for (uint32_t i = 0; i < net->qps; i++) {
		struct rnic_qp *qp = net->qp[i];
		if (!qp || qp->ibv.qp_type != IBV_QPT_XRC_RECV ||
		    to_target(qp)->domain != srq->xrcd->domain)
			continue;
		land_all(qp, NULL);
		if (qp->srq != srq)
			continue;
		qp->srq = NULL;
		qp->ibv.recv_cq = NULL;
	}
	assert(xrc_srq(net, srq->number) == srq);
	assert(srq->cq->users && srq->xrcd->users);
	cq_purge_srq(srq->cq, srq->number);
	net->xrc->srq[srq->number - net->qpn_first] = NULL;
	srq->cq->users--;
	srq->xrcd->users--;
}

/* --- targets and their handles --- */

static struct ibv_qp *add_handle(struct xrc_target *target, struct ibv_xrcd *xrcd, void *qp_context)
{
	struct rnic_hca *hca = to_hca(xrcd->context);
	struct xrc_handle *handle = ground_alloc(&hca->net->ground, sizeof(*handle));
	assert(!target->qp.dead && target->domain == to_xrcd(xrcd)->domain);
	handle->qp.hca = hca;
	handle->qp.service = SERVICE_XRC;
	handle->qp.target = &target->qp;
	handle->qp.ibv.context = xrcd->context;
	handle->qp.ibv.qp_context = qp_context;
	handle->qp.ibv.qp_num = target->qp.ibv.qp_num;
	handle->qp.ibv.qp_type = IBV_QPT_XRC_RECV;
	handle->qp.ibv.state = target->qp.ibv.state;
	handle->xrcd = to_xrcd(xrcd);
	handle->xrcd->users++;
	handle->next = target->handles;
	target->handles = handle;
	hca->objects++;
	assert(handle->xrcd->domain->handles && hca_adds_up(hca));
	return &handle->qp.ibv;
}

struct ibv_qp *xrc_create_target(struct ibv_context *context,
				 const struct ibv_qp_init_attr_ex *init)
{
	struct rnic_hca *hca = to_hca(context);
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !is_open(init->xrcd, context)) {
		errno = EINVAL;
		return NULL;
	}
	struct xrc_target *target = ground_alloc(&hca->net->ground, sizeof(*target));
	if (ground_fails(&hca->net->ground, FAIL_CREATE_QP) || !qp_number(hca->net, &target->qp)) {
		errno = ENOMEM;
		return NULL;
	}
	ground_name(&hca->net->ground, &target->qp.actor, hca->host, "qp", ++hca->qps);
	target->domain = to_xrcd(init->xrcd)->domain;
	target->qp.hca = hca;
	target->qp.service = SERVICE_XRC;
	target->qp.mtu = hca->net->hw.mtu;
	target->qp.ibv.context = context;
	target->qp.ibv.qp_type = IBV_QPT_XRC_RECV;
	target->qp.ibv.state = IBV_QPS_RESET;
	work_queue_init(&target->qp.rq, sizeof(struct rqe), 0, MAX_SGE);
	return add_handle(target, init->xrcd, init->qp_context);
}

struct ibv_qp *rnic_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
				IBV_QP_OPEN_ATTR_TYPE;
	uint32_t mask = attr->comp_mask;
	struct rnic_qp *qp = NULL;
	if (mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if ((mask & needed) == needed && attr->qp_type == IBV_QPT_XRC_RECV &&
	    is_open(attr->xrcd, context))
		qp = qp_find(to_hca(context)->net, attr->qp_num);
	if (!qp || qp->ibv.qp_type != IBV_QPT_XRC_RECV ||
	    to_target(qp)->domain != to_xrcd(attr->xrcd)->domain) {
		errno = EINVAL;
		return NULL;
	}
	return add_handle(to_target(qp), attr->xrcd,
			  mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL);
}

int xrc_modify_qp(struct rnic_qp *handle, struct ibv_qp_attr *attr, int mask)
{
	assert(!handle->target->dead); /* it lives as long as a handle does */
	assert(!handle->target->target && to_target(handle->target)->handles);
	int error = rnic_modify_qp(&handle->target->ibv, attr, mask);
	handle->ibv.state = handle->target->ibv.state;
	return error;
}

int xrc_query_qp(struct rnic_qp *handle, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	int error = rnic_query_qp(&handle->target->ibv, attr, mask, NULL);
	if (error)
		return error;
	memset(&attr->cap, 0, sizeof(attr->cap));
	handle->ibv.state = attr->qp_state;
	if (init)
		*init = (struct ibv_qp_init_attr){.qp_context = handle->ibv.qp_context,
						  .qp_type = IBV_QPT_XRC_RECV};
	return 0;
}

static void destroy_target(struct xrc_target *target)
{
	struct rnic_qp *qp = &target->qp;
	assert(!target->handles && !qp->dead);
	assert(qp_find(qp->hca->net, qp->ibv.qp_num) == qp);
	if (is_lossy(qp))
		time_wait_enter(qp);
	qp_reset(qp);
	work_queue_drop(qp->hca->net, &qp->rq);
	qp->dead = true;
	qp->hca->net->qp[qp->ibv.qp_num - qp->hca->net->qpn_first] = NULL;
}

int xrc_destroy_qp(struct rnic_qp *qp)
{
	struct xrc_handle *handle = (struct xrc_handle *)qp, **at;
	struct xrc_target *target = to_target(qp->target);
	for (at = &target->handles; *at != handle; at = &(*at)->next)
		assert(*at); /* its target lists it */
	assert(handle->xrcd->users && qp->hca->objects);
	*at = handle->next;
	handle->xrcd->users--;
	qp->ibv.state = IBV_QPS_RESET;
	qp->dead = true;
	qp->hca->objects--;
	if (!target->handles)
		destroy_target(target);
	return 0;
}

void xrc_close_qp(struct rnic_qp *qp, const struct ibv_context *context)
{
	struct xrc_handle *handle = to_target(qp)->handles, *next;
	for (; handle; handle = next) {
		next = handle->next;
		if (handle->qp.ibv.context == context)
			xrc_destroy_qp(&handle->qp);
	}
}

void xrc_event(struct rnic_qp *qp, enum ibv_event_type type)
{
	for (struct xrc_handle *handle = to_target(qp)->handles; handle; handle = handle->next)
		rnic_event(handle->qp.hca, type, &handle->qp.ibv);
}

void xrc_reset_qp(struct rnic_qp *qp)
{
	assert(qp->rq.posted - qp->rq.done <= qp->rq.room);
	for (uint32_t i = qp->rq.done; i != qp->rq.posted; i++) {
		struct rnic_srq *srq = xrc_srq(qp->hca->net,
					       ((struct rqe *)queue_at(&qp->rq, i))->srqn);
		assert(!srq || srq->taken);
		if (srq)
			srq->taken--;
	}
	qp->srq = NULL;
}

/* --- packets --- */

static void work_for(struct rnic_qp *qp, struct rnic_srq *srq)
{
	assert(qp->ibv.qp_type == IBV_QPT_XRC_RECV && !qp->target);
	assert(srq->xrcd && !srq->cq->dead);
	qp->srq = srq;
	qp->hca = srq->hca;
	qp->ibv.pd = srq->ibv.pd;
	qp->ibv.recv_cq = &srq->cq->ibv;
}

bool xrc_select(struct rnic_qp *qp, uint32_t srqn)
{
	struct rnic_srq *srq = xrc_srq(qp->hca->net, srqn);
	if (!srq || srq->xrcd->domain != to_target(qp)->domain)
		return false;
	work_for(qp, srq);
	return true;
}

bool xrc_turn(struct rnic_qp *qp, const struct packet *pkt)
{
	struct xrc_target *target = to_target(qp);
	bool goes_on = qp->resp.in_message;
	if ((goes_on && pkt->srqn != target->srqn) || !xrc_select(qp, pkt->srqn)) {
		COUNT_ONE(qp->hca->net, bad_srq);
		return false;
	}
	target->srqn = pkt->srqn;
	return true;
}

/* A READ that comes again needs its key looked at again. */
static bool is_read_again(const struct rnic_qp *qp, const struct packet *pkt)
{
	return pkt->opcode == OP_READ_REQUEST && psn_diff(pkt->psn, qp->resp.psn) < 0;
}

void xrc_take(struct rnic_qp *qp, struct packet *pkt)
{
	bool is_response = opcode_is[pkt->opcode] & IS_RESPONSE;
	bool is_target = qp->ibv.qp_type == IBV_QPT_XRC_RECV;
	if (is_response == is_target) {
		COUNT_ONE(qp->hca->net, bad_opcode);
		packet_put(qp->hca->net, pkt);
	} else if (!is_target) {
		req_response(qp, pkt);
	} else if (is_read_again(qp, pkt) && !xrc_select(qp, pkt->srqn)) {
		packet_put(qp->hca->net, pkt);
	} else {
		resp_request(qp, pkt);
	}
}
