/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs of the connection manager: making them for an identifier, with completion queues if
 * the program gives none, and their transitions, with the parameters that both ends have agreed on.
 * Endpoints, which do several steps in one call.
 */
#include <assert.h>
#include "core/cm/calls.h"
#include "core/cm/ground.h"

int cm_init_qp_attr(struct rdma_cm_id *user, struct ibv_qp_attr *attr, int *mask)
{
	struct cm_id *id = to_cm(user);

	if (!attr || !mask)
		return errno_minus(EINVAL);
	return cm_result(CM_LOCKED(id, cm_qp_attr(user, id->state, &id->conn, attr, mask)));
}

/* --- transitions --- */

static int to_state(struct cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask, rc = cm_qp_attr(&id->user, id->state, &id->conn, &attr, &mask);

	return rc ? rc : -cm_ground->modify_qp(qp, &attr, mask);
}

int cm_qp_connect(struct cm_id *id)
{
	int rc = 0;

	assert(id->state == CM_REQ_RCVD || id->state == CM_REP_RCVD); /* it is our turn */
	if (!id->user.qp)
		return 0;
	rc = to_state(id, id->user.qp, IBV_QPS_RTR);
	return rc ? rc : to_state(id, id->user.qp, IBV_QPS_RTS);
}

void cm_qp_error(struct cm_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (id->user.qp)
		cm_ground->modify_qp(id->user.qp, &attr, IBV_QP_STATE);
}

/* --- creation --- */

static int make_cq(struct rdma_cm_id *id, uint32_t entries, struct ibv_comp_channel **channel,
		   struct ibv_cq **cq)
{
	*channel = cm_ground->create_comp_channel(id->verbs);
	if (!*channel)
		return -errno;
	*cq = cm_ground->create_cq(id->verbs, entries ? (int)entries : 1, id, *channel, 0);
	return *cq ? 0 : -errno;
}

static void free_cqs(struct cm_id *id)
{
	struct rdma_cm_id *user = &id->user;

	if (id->own_recv_cq && user->recv_cq)
		cm_ground->destroy_cq(user->recv_cq);
	if (id->own_recv_cq && user->recv_cq_channel)
		cm_ground->destroy_comp_channel(user->recv_cq_channel);
	if (id->own_send_cq && user->send_cq)
		cm_ground->destroy_cq(user->send_cq);
	if (id->own_send_cq && user->send_cq_channel)
		cm_ground->destroy_comp_channel(user->send_cq_channel);
	user->recv_cq = user->send_cq = NULL;
	user->recv_cq_channel = user->send_cq_channel = NULL;
	id->own_recv_cq = id->own_send_cq = false;
}

static int make_cqs(struct cm_id *id, struct ibv_qp_init_attr_ex *init)
{
	int rc = 0;

	if (!init->recv_cq) {
		id->own_recv_cq = true;
		rc = make_cq(&id->user, init->cap.max_recv_wr, &id->user.recv_cq_channel,
			     &id->user.recv_cq);
		init->recv_cq = id->user.recv_cq;
	}
	if (!rc && !init->send_cq) {
		id->own_send_cq = true;
		rc = make_cq(&id->user, init->cap.max_send_wr, &id->user.send_cq_channel,
			     &id->user.send_cq);
		init->send_cq = id->user.send_cq;
	}
	return rc;
}

static int create_qp(struct cm_id *id, struct ibv_qp_init_attr_ex *init)
{
	int rc = cm_settle_init(&id->user, init);
	if (rc)
		return rc;
	rc = make_cqs(id, init);
	if (rc) {
		free_cqs(id);
		return rc;
	}
	struct ibv_qp *qp = cm_ground->create_qp(id->user.verbs, init);
	rc = qp ? to_state(id, qp, IBV_QPS_INIT) : -errno;
	if (rc) {
		if (qp)
			cm_ground->destroy_qp(qp);
		free_cqs(id);
		return rc;
	}
	id->user.pd = init->pd;
	id->user.qp = qp;
	return 0;
}

int cm_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *init)
{
	return init ? cm_result(create_qp(to_cm(id), init)) : errno_minus(EINVAL);
}

int cm_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex ex = {.pd = pd};

	if (!init)
		return errno_minus(EINVAL);
	memcpy(&ex, init, sizeof(*init)); /* with which it begins, and the mask is in its padding */
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	int rc = create_qp(to_cm(id), &ex);
	if (!rc)
		memcpy(init, &ex, sizeof(*init));
	return cm_result(rc);
}

void cm_destroy_qp(struct rdma_cm_id *id)
{
	cm_lock(to_cm(id)->cm);
	struct ibv_qp *qp = id->qp;
	id->qp = NULL;
	cm_unlock(to_cm(id)->cm);
	if (!qp)
		return;
	cm_ground->destroy_qp(qp);
	free_cqs(to_cm(id));
}

/* --- shared receive queues --- */

int cm_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (!attr || id->srq || !id->verbs || (pd && pd->context != id->verbs))
		return errno_minus(EINVAL);
	pd = pd ? pd : id->pd;
	id->srq = cm_ground->create_srq(pd, attr);
	if (!id->srq)
		return -1;
	id->pd = pd;
	return 0;
}

void cm_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		cm_ground->destroy_srq(id->srq);
	id->srq = NULL;
}

/* --- endpoints --- */

int cm_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
		 struct ibv_qp_init_attr *init)
{
	struct rdma_cm_id *id;
	int error;

	if (!out || !res)
		return errno_minus(EINVAL);
	int rc = cm_create_id(NULL, &id, NULL, (enum rdma_port_space)res->ai_port_space);
	if (rc)
		return rc;
	if (res->ai_qp_type)
		id->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	if (init)
		init->qp_type = id->qp_type;
	if (res->ai_flags & RAI_PASSIVE) {
		rc = cm_bind_addr(id, res->ai_src_addr);
		to_cm(id)->ep_pd = pd;
		if (!rc && !cm_keep((void **)&to_cm(id)->qp_init, init, sizeof(*init)))
			rc = -1;
	} else {
		rc = cm_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, 2000);
		if (!rc)
			rc = cm_resolve_route(id, 2000);
		if (!rc && init)
			rc = cm_create_qp(id, pd, init);
		to_cm(id)->connect_len = res->ai_connect ? res->ai_connect_len : 0;
		if (!rc && !cm_keep(&to_cm(id)->connect_data, res->ai_connect, res->ai_connect_len))
			rc = -1;
	}
	if (rc) {
		error = errno;
		cm_destroy_ep(id);
		return errno_minus(error);
	}
	*out = id;
	return 0;
}

void cm_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		cm_destroy_qp(id);
	if (id->srq)
		cm_destroy_srq(id);
	cm_destroy_id(id);
}
