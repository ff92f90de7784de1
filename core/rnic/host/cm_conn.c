/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's side of a connection: identifiers listen, connect, accept, refuse and disconnect.
 * The protocol for it is in cm_talk.c.
 */
#include <errno.h>
#include "core/rnic/host/cm.h"
#include "core/rnic/objects/qp.h"

static int connect_id(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_message message;
	int rc;

	if (id->state != CM_ROUTE_RESOLVED || id->connect_len > CM_REQ_PRIVATE)
		return -EINVAL;
	rc = cm_check_param(param, CM_REQ_PRIVATE - id->connect_len, cm_limits);
	if (rc)
		return rc;
	if (sim_fails(FAIL_CONNECT))
		return -ECONNREFUSED;
	host_cm_choose_number(id);
	cm_connect_params(&id->conn.local, &id->user, param, cm_limits);
	id->conn.active = true;
	id->state = CM_REQ_SENT;
	message = host_cm_message_of(id, CM_REQ);
	/* The data that came with the service's address goes first. */
	if (id->connect_len)
		memcpy(message.private_data, id->connect_data, id->connect_len);
	if (param && param->private_data_len)
		hca_load(to_hca(id->user.verbs), message.private_data + id->connect_len,
			 param->private_data, param->private_data_len);
	host_cm_send_until_answered(id, &message, host_cm_op(id->host));
	return 0;
}

int sim_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int rc;

	host_call(to_cm(id)->host);
	rc = connect_id(to_cm(id), param);
	return rc ? host_cm_fail(-rc) : host_cm_complete(to_cm(id));
}

static void send_ready(struct cm_id *id)
{
	struct cm_message message = host_cm_message_of(id, CM_RTU);

	host_cm_send(id, &message, host_cm_op(id->host));
	id->state = CM_ESTABLISHED;
}

int sim_rdma_establish(struct rdma_cm_id *user)
{
	struct cm_id *id = to_cm(user);

	host_call(id->host);
	if (user->qp || id->state != CM_REP_RCVD)
		return host_cm_fail(EINVAL);
	send_ready(id);
	return 0;
}

static int refuse(struct cm_id *id, const void *data, uint8_t bytes)
{
	struct cm_message message = host_cm_message_of(id, CM_REJ);

	if ((id->state != CM_REQ_RCVD && id->state != CM_REP_RCVD) || (bytes && !data) ||
	    bytes > CM_REJ_PRIVATE)
		return -EINVAL;
	id->state = CM_OVER;
	message.reason = CM_REJ_CONSUMER;
	if (bytes)
		hca_load(to_hca(id->user.verbs), message.private_data, data, bytes);
	host_cm_answer(id, &message, host_cm_op(id->host));
	return 0;
}

/* The answer has arrived. A queue pair of the identifier is made ready now, by the program's own
 * task. */
static void complete_connection(struct cm_event *event, struct cm_id *id)
{
	int rc;

	if (!id->user.qp)
		return;
	rc = id->state == CM_REP_RCVD ? host_cm_qp_connect(id) : -ECONNRESET;
	if (!rc) {
		send_ready(id);
		event->user.event = RDMA_CM_EVENT_ESTABLISHED;
		return;
	}
	host_cm_qp_error(id);
	if (id->state == CM_REP_RCVD)
		refuse(id, NULL, 0);
	event->user.event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->user.status = rc;
}

void host_cm_retrieved(struct cm_event *event)
{
	struct cm_id *id = to_cm(event->user.id);

	if (event->user.event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		complete_connection(event, id);
	else if (event->user.event == RDMA_CM_EVENT_REJECTED)
		host_cm_qp_error(id);
}

/* --- the passive side --- */

static int listen_at(struct cm_id *id, int backlog)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	int rc = 0;

	if (id->state == CM_IDLE)
		rc = host_cm_bind(id, (struct sockaddr *)&any);
	if (rc || id->state != CM_BOUND)
		return rc ? rc : -EINVAL;
	if (sim_fails(FAIL_LISTEN) ||
	    host_cm_find_listener(id->host, *host_cm_port(&id->user.route.addr.src_storage)))
		return -EADDRINUSE;
	id->backlog = cm_backlog(backlog);
	id->state = CM_LISTEN;
	return 0;
}

int sim_rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int rc;

	host_call(to_cm(id)->host);
	rc = listen_at(to_cm(id), backlog);
	return rc ? host_cm_fail(-rc) : 0;
}

static int accept_id(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_message message;
	int rc = id->state == CM_REQ_RCVD ? cm_check_param(param, CM_REP_PRIVATE, cm_limits)
					  : -EINVAL;

	if (rc)
		return rc;
	if (sim_fails(FAIL_ACCEPT))
		return -EUSERS;
	cm_accept_params(&id->conn.local, &id->user, param);
	rc = host_cm_qp_connect(id);
	if (rc) {
		host_cm_qp_error(id);
		return rc;
	}
	message = host_cm_message_of(id, CM_REP);
	if (param && param->private_data_len)
		hca_load(to_hca(id->user.verbs), message.private_data, param->private_data,
			 param->private_data_len);
	id->state = CM_REP_SENT;
	host_cm_send_until_answered(id, &message, host_cm_op(id->host));
	return 0;
}

int sim_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int rc;

	host_call(to_cm(id)->host);
	rc = accept_id(to_cm(id), param);
	return rc ? host_cm_fail(-rc) : host_cm_complete(to_cm(id));
}

int sim_rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	int rc;

	host_call(to_cm(id)->host);
	rc = refuse(to_cm(id), data, bytes);
	return rc ? host_cm_fail(-rc) : 0;
}

/* Data that arrive before the RTU mean the same. */
int sim_rdma_notify(struct rdma_cm_id *user, enum ibv_event_type event)
{
	struct cm_id *id = to_cm(user);

	host_call(id->host);
	if (event == IBV_EVENT_COMM_EST && id->state == CM_REP_SENT) {
		host_cm_established(id, host_cm_op(id->host));
		return 0;
	}
	return host_cm_fail(event == IBV_EVENT_COMM_EST && id->state == CM_ESTABLISHED ? EISCONN
										       : EINVAL);
}

/* --- disconnecting --- */

/* 0: no event will come; 1: DISCONNECTED will; -errno. */
static int disconnect(struct cm_id *id)
{
	struct cm_message message;

	switch (id->state) {
	case CM_ESTABLISHED:
	case CM_REP_SENT:
		host_cm_qp_error(id);
		message = host_cm_message_of(id, CM_DREQ);
		id->state = CM_DREQ_SENT;
		host_cm_send_until_answered(id, &message, host_cm_op(id->host));
		return 1;
	case CM_REP_RCVD: /* not established yet */
		host_cm_qp_error(id);
		refuse(id, NULL, 0);
		return 0;
	case CM_DREQ_SENT:
	case CM_TIMEWAIT:
	case CM_OVER:
		host_cm_qp_error(id);
		return ((struct cm_channel *)id->user.channel)->first != NULL;
	default:
		return -EINVAL;
	}
}

int sim_rdma_disconnect(struct rdma_cm_id *id)
{
	int rc;

	host_call(to_cm(id)->host);
	rc = disconnect(to_cm(id));
	if (rc < 0)
		return host_cm_fail(-rc);
	return rc ? host_cm_complete(to_cm(id)) : 0;
}
