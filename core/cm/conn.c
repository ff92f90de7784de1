/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's side of a connection: identifiers listen, connect, accept, refuse and disconnect.
 * The protocol for it is in talk.c.
 */
#include <assert.h>
#include "core/cm/calls.h"
#include "core/cm/ground.h"

static int connect_id(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_limits limits = id->cm->limits;
	uint8_t *data = id->sent.private_data;

	if (id->state != CM_ROUTE_RESOLVED || id->connect_len > CM_REQ_PRIVATE)
		return -EINVAL;
	int rc = cm_check_param(param, CM_REQ_PRIVATE - id->connect_len, limits);
	if (rc)
		return rc;
	if (cm_ground->fails(FAIL_CONNECT))
		return -ECONNREFUSED;
	cm_connect_params(&id->conn.local, &id->user, param, limits);
	/* The data that came with the service's address goes first. */
	memset(data, 0, CM_MAX_PRIVATE);
	if (id->connect_len)
		memcpy(data, id->connect_data, id->connect_len);
	if (param && param->private_data_len)
		cm_ground->load(id, data + id->connect_len, param->private_data,
				param->private_data_len);
	id->conn.active = true;
	id->asks = 0;
	cm_to_state(id, CM_REQ_SENT);
	rc = cm_ask(id);
	if (rc)
		cm_to_state(id, CM_ROUTE_RESOLVED);
	return rc;
}

int cm_connect(struct rdma_cm_id *user, struct rdma_conn_param *param)
{
	struct cm_id *id = to_cm(user);

	return cm_complete(id, CM_CALLED(id, connect_id(id, param)));
}

static int establish(struct cm_id *id)
{
	if (id->user.qp || id->state != CM_REP_RCVD)
		return -EINVAL;
	cm_send_ready(id);
	return 0;
}

int cm_establish(struct rdma_cm_id *user)
{
	return cm_result(CM_CALLED(to_cm(user), establish(to_cm(user))));
}

/* The answer has arrived. A queue pair of the identifier is made ready now, by the program's own
 * task. */
static void complete_connection(struct cm_event *event, struct cm_id *id)
{
	if (!id->user.qp)
		return;
	int rc = id->state == CM_REP_RCVD ? cm_qp_connect(id) : -ECONNRESET;
	if (!rc) {
		cm_send_ready(id);
		event->user.event = RDMA_CM_EVENT_ESTABLISHED;
		return;
	}
	cm_qp_error(id);
	if (id->state == CM_REP_RCVD)
		cm_refuse(id, CM_REJ_CONSUMER, NULL, 0);
	event->user.event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->user.status = rc;
}

void cm_retrieved(struct cm_event *event)
{
	struct cm_id *id = to_cm(event->user.id);

	if (event->user.event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		complete_connection(event, id);
	else if (event->user.event == RDMA_CM_EVENT_REJECTED)
		cm_qp_error(id);
}

/* --- the passive side --- */

static int listen_at(struct cm_id *id, int backlog)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	int rc = 0;

	if (id->state == CM_IDLE)
		rc = cm_bind(id, (struct sockaddr *)&any);
	if (rc || id->state != CM_BOUND)
		return rc ? rc : -EINVAL;
	if (cm_ground->fails(FAIL_LISTEN))
		return -EADDRINUSE;
	cm_to_state(id, CM_LISTEN);
	id->backlog = cm_backlog(backlog);
	rc = cm_ground->listen(id);
	if (rc)
		cm_to_state(id, CM_BOUND);
	return rc;
}

int cm_listen(struct rdma_cm_id *user, int backlog)
{
	return cm_result(CM_CALLED(to_cm(user), listen_at(to_cm(user), backlog)));
}

static int accept_id(struct cm_id *id, const struct rdma_conn_param *param)
{
	int rc = id->state == CM_REQ_RCVD ? cm_check_param(param, CM_REP_PRIVATE, id->cm->limits)
					  : -EINVAL;

	if (rc)
		return rc;
	if (cm_ground->fails(FAIL_ACCEPT))
		return -EUSERS;
	cm_accept_params(&id->conn.local, &id->user, param);
	rc = cm_qp_connect(id);
	if (rc) {
		cm_qp_error(id);
		return rc;
	}
	struct cm_message message = cm_message_of(id, CM_REP);
	if (param && param->private_data_len)
		cm_ground->load(id, message.private_data, param->private_data,
				param->private_data_len);
	cm_to_state(id, CM_REP_SENT);
	cm_send_until_answered(id, &message);
	return 0;
}

int cm_accept(struct rdma_cm_id *user, struct rdma_conn_param *param)
{
	struct cm_id *id = to_cm(user);

	return cm_complete(id, CM_CALLED(id, accept_id(id, param)));
}

static int reject(struct cm_id *id, const void *data, uint8_t bytes, uint16_t reason)
{
	if ((id->state != CM_REQ_RCVD && id->state != CM_REP_RCVD) || (!data && bytes) ||
	    bytes > CM_REJ_PRIVATE)
		return -EINVAL;
	cm_refuse(id, reason, data, bytes);
	return 0;
}

int cm_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	return cm_result(CM_CALLED(to_cm(id), reject(to_cm(id), data, bytes, CM_REJ_CONSUMER)));
}

int cm_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	return cm_result(CM_CALLED(to_cm(id), reject(to_cm(id), data, bytes, CM_REJ_ECE)));
}

/* Data that arrive before the RTU mean the same. */
static int notify(struct cm_id *id, enum ibv_event_type event)
{
	if (event != IBV_EVENT_COMM_EST || id->state != CM_REP_SENT)
		return event == IBV_EVENT_COMM_EST && id->state == CM_ESTABLISHED ? -EISCONN
										  : -EINVAL;
	cm_established(id);
	return 0;
}

int cm_notify(struct rdma_cm_id *user, enum ibv_event_type event)
{
	return cm_result(CM_CALLED(to_cm(user), notify(to_cm(user), event)));
}

/* --- disconnecting --- */

/* 0: no event will come; 1: DISCONNECTED will; -errno. */
static int disconnect(struct cm_id *id)
{
	switch (id->state) {
	case CM_ESTABLISHED:
		cm_qp_error(id);
		cm_send_dreq(id);
		return 1;
	case CM_REP_SENT: /* the DREQ is sent when the RTU has come: before, the peer ignores it */
		cm_qp_error(id);
		id->parts = true;
		return 1;
	case CM_REP_RCVD: /* not established yet */
		cm_qp_error(id);
		cm_refuse(id, CM_REJ_CONSUMER, NULL, 0);
		return 0;
	case CM_DREQ_SENT:
	case CM_TIMEWAIT:
	case CM_OVER:
		cm_qp_error(id);
		return to_channel(id->user.channel)->first != NULL;
	default:
		return -EINVAL;
	}
}

int cm_disconnect(struct rdma_cm_id *user)
{
	int rc = CM_CALLED(to_cm(user), disconnect(to_cm(user)));

	return rc > 0 ? cm_complete(to_cm(user), 0) : cm_result(rc);
}
