/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's side of a connection: identifiers listen, connect, accept, refuse and disconnect;
 * their options. The protocol for it is in cm_talk.c.
 */
#include <errno.h>
#include <string.h>
#include "core/provider/cm/cm.h"

/* The error that there is no listener is delayed: a server that closes its port and listens
 * again at once is in time on real fabrics, where a request takes that long to arrive. */
#define NO_LISTENER_MS 1000

static int connect_id(struct cm_id *id, const struct rdma_conn_param *param)
{
	int rc;

	if (id->state != CM_ROUTE_RESOLVED || id->connect_len > CM_REQ_PRIVATE)
		return -EINVAL;
	rc = cm_check_param(param, CM_REQ_PRIVATE - id->connect_len, cm_limits());
	if (rc)
		return rc;
	cm_connect_params(&id->conn.local, &id->user, param, cm_limits());
	id->conn.local.psn = cm_random() & 0xffffff;
	id->conn.mtu = (uint8_t)cm.device.port.active_mtu;
	/* The data that came with the service's address goes first. */
	memset(id->private_data, 0, sizeof(id->private_data));
	if (id->connect_len)
		memcpy(id->private_data, id->connect_data, id->connect_len);
	if (param && param->private_data_len)
		memcpy(id->private_data + id->connect_len, param->private_data,
		       param->private_data_len);
	id->conn.active = true;
	id->give_up_ms = cm_now_ms() + cm_answer_ms();
	id->no_listener_ms = cm_now_ms() + NO_LISTENER_MS;
	cm_to_state(id, CM_REQ_SENT);
	rc = cm_ask(id);
	if (rc)
		cm_to_state(id, CM_ROUTE_RESOLVED);
	return rc;
}

EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int rc;

	cm_lock();
	rc = connect_id(to_cm(id), param);
	cm_unlock();
	return rc ? cm_fail(-rc) : cm_complete(to_cm(id));
}

EXPORT int rdma_establish(struct rdma_cm_id *user)
{
	struct cm_id *id = to_cm(user);
	int rc = -EINVAL;

	cm_lock();
	if (!user->qp && id->state == CM_REP_RCVD) {
		cm_send(id, CM_RTU);
		cm_to_state(id, CM_ESTABLISHED);
		rc = 0;
	}
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

/* The answer has arrived. A queue pair of the identifier is made ready now, in the program's own
 * thread. */
static void complete_connection(struct cm_event *event, struct cm_id *id)
{
	int rc;

	if (!id->user.qp)
		return;
	rc = id->state == CM_REP_RCVD ? cm_qp_connect(id) : -ECONNRESET;
	if (!rc) {
		cm_send(id, CM_RTU);
		cm_to_state(id, CM_ESTABLISHED);
		event->user.event = RDMA_CM_EVENT_ESTABLISHED;
		return;
	}
	cm_qp_error(id);
	if (id->state == CM_REP_RCVD) {
		cm_tell_peer(id);
		cm_to_state(id, CM_OVER);
	}
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
	const struct sockaddr *at = &id->user.route.addr.src_addr;
	int rc = 0;

	if (id->state == CM_IDLE)
		rc = cm_bind(id, (struct sockaddr *)&any);
	if (!rc && id->state != CM_BOUND)
		rc = -EINVAL;
	if (!rc)
		rc = cm_claim_listen(id);
	if (rc)
		return rc;
	id->backlog = cm_backlog(backlog);
	rc = cm_fabric_listen((uint16_t)id->user.ps, at, id->conn.options.v6_only);
	if (rc)
		cm_to_state(id, CM_BOUND);
	return rc;
}

EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int rc;

	cm_lock();
	rc = listen_at(to_cm(id), backlog);
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

static int accept_id(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_message message;
	int rc = id->state == CM_REQ_RCVD ? cm_check_param(param, CM_REP_PRIVATE, cm_limits())
					  : -EINVAL;

	if (rc)
		return rc;
	cm_accept_params(&id->conn.local, &id->user, param);
	rc = cm_qp_connect(id);
	if (rc) {
		cm_qp_error(id);
		return rc;
	}
	message = cm_message_of(id, CM_REP);
	if (param && param->private_data_len)
		memcpy(message.private_data, param->private_data, param->private_data_len);
	cm_to_state(id, CM_REP_SENT);
	cm_send_until_answered(id, &message);
	return 0;
}

EXPORT int rdma_accept(struct rdma_cm_id *user, struct rdma_conn_param *param)
{
	struct cm_id *id = to_cm(user);
	int rc;

	cm_lock();
	rc = accept_id(id, param);
	cm_unlock();
	if (rc)
		return cm_fail(-rc);
	return cm_complete(id);
}

static int reject(struct cm_id *id, const void *data, uint8_t bytes, uint16_t reason)
{
	struct cm_message message = cm_message_of(id, CM_REJ);

	if ((id->state != CM_REQ_RCVD && id->state != CM_REP_RCVD) || (bytes && !data) ||
	    bytes > CM_REJ_PRIVATE)
		return -EINVAL;
	message.about = id->state == CM_REQ_RCVD ? CM_ABOUT_REQ : CM_ABOUT_REP;
	cm_to_state(id, CM_OVER);
	message.reason = reason;
	if (bytes)
		memcpy(message.private_data, data, bytes);
	cm_answer(id, &message);
	return 0;
}

EXPORT int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	int rc;

	cm_lock();
	rc = reject(to_cm(id), data, bytes, CM_REJ_CONSUMER);
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	int rc;

	cm_lock();
	rc = reject(to_cm(id), data, bytes, CM_REJ_ECE);
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

/* Data that arrive before the RTU mean the same. */
EXPORT int rdma_notify(struct rdma_cm_id *user, enum ibv_event_type event)
{
	struct cm_id *id = to_cm(user);
	int rc = -EINVAL;

	cm_lock();
	if (event == IBV_EVENT_COMM_EST && id->state == CM_REP_SENT) {
		cm_established(id);
		rc = 0;
	} else if (event == IBV_EVENT_COMM_EST && id->state == CM_ESTABLISHED) {
		rc = -EISCONN;
	}
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

/* --- disconnecting --- */

/* 0: no event will come; 1: DISCONNECTED will; -errno. */
static int disconnect(struct cm_id *id)
{
	struct cm_message message;

	switch (id->state) {
	case CM_ESTABLISHED:
	case CM_REP_SENT:
		cm_qp_error(id);
		message = cm_message_of(id, CM_DREQ);
		cm_to_state(id, CM_DREQ_SENT);
		cm_send_until_answered(id, &message);
		return 1;
	case CM_REP_RCVD: /* not established yet */
		cm_qp_error(id);
		cm_tell_peer(id);
		cm_to_state(id, CM_OVER);
		return 0;
	case CM_DREQ_SENT:
	case CM_TIMEWAIT:
	case CM_OVER:
		cm_qp_error(id);
		return ((struct cm_channel *)id->user.channel)->first != NULL;
	default:
		return -EINVAL;
	}
}

EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	int rc;

	cm_lock();
	rc = disconnect(to_cm(id));
	cm_unlock();
	if (rc < 0)
		return cm_fail(-rc);
	return rc ? cm_complete(to_cm(id)) : 0;
}

/* --- options, extended connection establishment --- */

/* The program cannot choose a path: there is only one. */
EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	int rc = -ENOSYS;

	if (!value)
		return cm_fail(EINVAL);
	cm_lock();
	if (level == RDMA_OPTION_ID)
		rc = cm_set_option(&to_cm(id)->conn.options, to_cm(id)->state, name, value, len);
	else if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH)
		rc = -EINVAL;
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return cm_fail(EINVAL);
	cm_lock();
	to_cm(id)->ece = *ece;
	cm_unlock();
	return 0;
}

EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece)
		return cm_fail(EINVAL);
	cm_lock();
	*ece = to_cm(id)->peer_ece;
	cm_unlock();
	return 0;
}
