/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How identifiers listen, connect, accept, and part.
 *
 *      active                                  passive
 *      ROUTE_RESOLVED                          LISTEN
 *      rdma_connect()   -- REQ ------------->  a new identifier: CONNECT_REQUEST
 *      REQ_SENT         <------------- MRA --  REQ_RCVD
 *                       <------------- REP --  rdma_accept(): the queue pair can receive and send
 *      REP_RCVD                                REP_SENT
 *      CONNECT_RESPONSE is retrieved: the queue pair can receive and send, or, without one, rdma_establish()
 *      ESTABLISHED      -- RTU ------------->  ESTABLISHED
 *
 *      rdma_disconnect() -- DREQ ----------->  DISCONNECTED
 *      DISCONNECTED      <---------- DREP --   TIMEWAIT
 *      TIMEWAIT
 *      after a while: TIMEWAIT_EXIT at both
 *
 * Datagrams: SIDR_REQ and SIDR_REP, then both are as good as established, and the socket is closed. A socket
 * that ends on the way stands for REJ before both are established, and for DREQ then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "core/nic/cm.h"

#define ANSWER_MS   17000 /* what InfiniBand's four tries of 4.3 s are */
#define PATIENT	    4	  /* as much more once the peer has said that its program thinks */
#define TIMEWAIT_MS 1000
#define AGAIN_MS    20
/* Nobody listens is said after a while: a server that closes its port and listens again at once has always
 * been in time, on fabrics where a request needs as long to get there. */
#define NOBODY_MS   250
#define MAX_BACKLOG 1024

/* How long an answer may take. */
static uint64_t answer_ms(void)
{
	const char *text = getenv("TIDEMARK_CM_TIMEOUT");
	unsigned long ms = text ? strtoul(text, NULL, 10) : 0;

	return ms ? ms : ANSWER_MS;
}

/* --- events --- */

static struct cm_event *tell(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *event = cm_event(id, type, status);

	if (event)
		cm_report(event, id);
	return event;
}

static void end_wire(struct cm_id *id)
{
	if (id->wire)
		cm_drop(id->wire);
	id->wire = NULL;
}

/* It did not come to a connection, or to none any more. */
static void fail(struct cm_id *id, enum rdma_cm_event_type type, int status, const uint8_t *private_data)
{
	struct cm_event *event = cm_event(id, type, status);

	end_wire(id);
	id->state = CM_OVER;
	id->deadline_ms = 0;
	if (!event)
		return;
	if (private_data) {
		memcpy(event->private_data, private_data, CM_REJ_PRIVATE);
		event->user.param.conn.private_data = event->private_data;
		event->user.param.conn.private_data_len = CM_REJ_PRIVATE;
	}
	cm_report(event, id);
}

static void refuse(struct cm_id *id, uint16_t reason, const uint8_t *private_data)
{
	if (cm_is_ud(id))
		fail(id, RDMA_CM_EVENT_UNREACHABLE,
		     reason == CM_REJ_NO_SERVICE ? CM_SIDR_UNSUPPORTED : CM_SIDR_REJECT, NULL);
	else
		fail(id, RDMA_CM_EVENT_REJECTED, reason, private_data);
}

static void disconnected(struct cm_id *id, int status)
{
	end_wire(id);
	id->state = CM_TIMEWAIT;
	cm_set_deadline(id, TIMEWAIT_MS);
	tell(id, RDMA_CM_EVENT_DISCONNECTED, status);
}

/* What a REQ or a REP tells the program: what the peer gives is what we may ask for, and the other way round.
 */
static void show_params(struct cm_event *event, const struct cm_message *message, uint8_t bytes)
{
	struct rdma_conn_param *conn = &event->user.param.conn;

	memcpy(event->private_data, message->private_data, bytes);
	*conn = (struct rdma_conn_param){
		.private_data = event->private_data,
		.private_data_len = bytes,
		.responder_resources = message->params.initiator_depth,
		.initiator_depth = message->params.responder_resources,
		.flow_control = message->params.flow_control,
		.retry_count = message->params.retry_count,
		.rnr_retry_count = message->params.rnr_retry_count,
		.srq = message->params.srq,
		.qp_num = message->params.qpn,
	};
}

static void show_datagram(struct cm_event *event, const struct cm_id *id, const struct cm_message *message,
			  uint8_t bytes)
{
	struct rdma_ud_param *ud = &event->user.param.ud;

	memcpy(event->private_data, message->private_data, bytes);
	*ud = (struct rdma_ud_param){
		.private_data = event->private_data,
		.private_data_len = bytes,
		.ah_attr = cm_path(id),
		.qp_num = message->params.qpn,
		.qkey = message->params.qkey,
	};
}

/* --- messages --- */

static struct cm_message message_of(const struct cm_id *id, enum cm_type type)
{
	struct cm_message message = {
		.type = type,
		.port_space = (uint16_t)id->user.ps,
		.params = id->local,
		.gid = cm.device.gid,
		.mtu = (uint8_t)cm.device.port.active_mtu,
		.ack_timeout = cm_ack_timeout(id),
		.src = id->user.route.addr.src_storage,
		.dst = id->user.route.addr.dst_storage,
		.ece = id->ece,
	};

	return message;
}

/* One that cannot be sent has lost its socket, of which the thread will hear. */
static void say(struct cm_id *id, enum cm_type type)
{
	struct cm_message message = message_of(id, type);

	if (id->wire)
		cm_wire_send(id->wire, &message);
}

static void remember_peer(struct cm_id *id, const struct cm_message *message)
{
	id->remote = message->params;
	id->peer_gid = message->gid;
	id->peer_mtu = message->mtu;
	id->peer_ack_timeout = message->ack_timeout;
	id->peer_ece = message->ece;
	id->user.route.addr.addr.ibaddr.dgid = message->gid;
	id->path.dgid = message->gid;
	/* What the program may have; at the passive end, unless it wants less. */
	id->local.responder_resources = message->params.initiator_depth;
	id->local.initiator_depth = message->params.responder_resources;
	cm_limit(&id->local);
}

static uint32_t random_psn(void)
{
	uint32_t psn = 0;

	if (getrandom(&psn, sizeof(psn), 0) < 0)
		psn = (uint32_t)cm_now_ms();
	return psn & 0xffffff;
}

static void refuse_stranger(struct cm_wire *wire, const struct cm_message *request, uint16_t reason)
{
	bool ud = request->type == CM_SIDR_REQ;
	struct cm_message message = {.type = ud ? CM_SIDR_REP : CM_REJ, .reason = reason};

	if (ud)
		message.reason = reason == CM_REJ_NO_SERVICE ? CM_SIDR_UNSUPPORTED : CM_SIDR_REJECT;
	cm_wire_send(wire, &message);
	cm_drop(wire);
}

/* A request: an identifier for it, and an event for the one that listens. */
static void take_request(struct cm_wire *wire, const struct cm_message *message)
{
	const struct sockaddr *dst = (const struct sockaddr *)&message->dst;
	bool ud = message->type == CM_SIDR_REQ;
	struct cm_id *listener = NULL, *id = NULL;
	struct cm_event *event;

	if ((message->type == CM_REQ || ud) && cm_addr_len(dst) &&
	    cm_addr_len((const struct sockaddr *)&message->src))
		listener = cm_find_listener(message->port_space, dst);
	if (!listener && wire->place.peer && !cm_wire_hand_on(wire, message)) {
		cm_drop(wire);
		return;
	}
	if (!listener || cm_is_ud(listener) != ud) {
		refuse_stranger(wire, message, CM_REJ_NO_SERVICE);
		return;
	}
	if (listener->waiting < listener->backlog)
		id = cm_new_id(listener->user.channel, listener->user.context, listener->user.ps,
			       listener->user.qp_type);
	event = id ? cm_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;
	if (!event) {
		if (id)
			cm_free_id(id);
		refuse_stranger(wire, message, CM_REJ_CONSUMER);
		return;
	}
	wire->id = id;
	wire->deadline_ms = 0;
	id->wire = wire;
	id->state = CM_REQ_RCVD;
	id->tos = listener->tos;
	id->ack_timeout = listener->ack_timeout;
	id->user.route.addr.src_storage = message->dst;
	id->user.route.addr.dst_storage = message->src;
	cm_bind_device(id);
	remember_peer(id, message);
	id->local.psn = random_psn(); /* now: the program may make its queue pair before it accepts */
	event->user.listen_id = &listener->user;
	if (ud) {
		show_datagram(event, id, message, CM_SIDR_REQ_PRIVATE);
	} else {
		show_params(event, message, CM_REQ_PRIVATE);
		say(id, CM_MRA);
	}
	listener->waiting++;
	cm_report(event, listener);
}

static void take_response(struct cm_id *id, const struct cm_message *message)
{
	struct cm_event *event = cm_event(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);

	if (!event)
		return;
	id->deadline_ms = 0;
	remember_peer(id, message);
	show_params(event, message, CM_REP_PRIVATE);
	id->state = CM_REP_RCVD;
	cm_report(event, id);
}

/* Of a request that has found nobody; is there time left to look once more? */
static bool looks_again(struct cm_id *id)
{
	if (id->state != CM_REQ_SENT || cm_now_ms() >= id->nobody_ms)
		return false;
	end_wire(id);
	cm_set_deadline(id, AGAIN_MS);
	return true;
}

static void take_datagram_response(struct cm_id *id, const struct cm_message *message)
{
	struct cm_event *event;

	if (message->reason == CM_SIDR_UNSUPPORTED && looks_again(id))
		return;
	if (message->reason != CM_SIDR_OK) {
		fail(id, RDMA_CM_EVENT_UNREACHABLE, message->reason, NULL);
		return;
	}
	event = cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	if (!event)
		return;
	id->deadline_ms = 0;
	remember_peer(id, message);
	show_datagram(event, id, message, CM_SIDR_REP_PRIVATE);
	end_wire(id);
	id->state = CM_ESTABLISHED;
	cm_report(event, id);
}

static void established(struct cm_id *id)
{
	id->deadline_ms = 0;
	id->state = CM_ESTABLISHED;
	tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static bool is_connected(const struct cm_id *id)
{
	return id->state == CM_ESTABLISHED || id->state == CM_REP_SENT || id->state == CM_REP_RCVD;
}

/* Messages that the state does not ask for are passed over. */
void cm_take_message(struct cm_wire *wire, const struct cm_message *message)
{
	struct cm_id *id = wire->id;

	if (!id) {
		take_request(wire, message);
		return;
	}
	switch (message->type) {
	case CM_MRA:
		if (id->state == CM_REQ_SENT)
			cm_set_deadline(id, PATIENT * answer_ms());
		break;
	case CM_REP:
		if (id->state == CM_REQ_SENT && !cm_is_ud(id))
			take_response(id, message);
		break;
	case CM_SIDR_REP:
		if (id->state == CM_REQ_SENT && cm_is_ud(id))
			take_datagram_response(id, message);
		break;
	case CM_RTU:
		if (id->state == CM_REP_SENT)
			established(id);
		break;
	case CM_REJ:
		if (message->reason == CM_REJ_NO_SERVICE && looks_again(id))
			break;
		if (id->state == CM_REQ_SENT || id->state == CM_REQ_RCVD || id->state == CM_REP_SENT ||
		    id->state == CM_REP_RCVD)
			refuse(id, message->reason, message->private_data);
		break;
	case CM_DREQ:
	case CM_DREP:
		if (message->type == CM_DREQ && is_connected(id)) {
			say(id, CM_DREP);
			disconnected(id, 0);
			break;
		}
		/* Both may have begun at once. */
		if (id->state == CM_DREQ_SENT)
			disconnected(id, 0);
		break;
	default:
		break;
	}
}

void cm_wire_ended(struct cm_wire *wire, int error)
{
	struct cm_id *id = wire->id;

	if (!id) {
		cm_drop(wire);
		return;
	}
	/* It never got there. */
	if (wire->place.connecting) {
		if (error != -ECONNREFUSED)
			fail(id, RDMA_CM_EVENT_UNREACHABLE, error, NULL);
		else if (!looks_again(id))
			refuse(id, CM_REJ_NO_SERVICE, NULL);
		return;
	}
	switch (id->state) {
	case CM_REQ_SENT:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		refuse(id, CM_REJ_CONSUMER, NULL);
		break;
	case CM_REQ_RCVD:
		/* A datagram's sender is gone: to answer it does no harm. */
		if (cm_is_ud(id))
			end_wire(id);
		else
			refuse(id, CM_REJ_TIMEOUT, NULL);
		break;
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
		disconnected(id, 0);
		break;
	default:
		end_wire(id);
	}
}

/* --- to connect --- */

static int send_request(struct cm_id *id)
{
	struct cm_place place;
	int fd = cm_wire_connect((uint16_t)id->user.ps, &id->user.route.addr.dst_addr, &place), rc;
	struct cm_message message = message_of(id, cm_is_ud(id) ? CM_SIDR_REQ : CM_REQ);

	if (fd == -EAGAIN || (fd == -ECONNREFUSED && cm_now_ms() < id->nobody_ms)) {
		cm_set_deadline(id, AGAIN_MS);
		return 0;
	}
	if (fd == -ECONNREFUSED) {
		refuse(id, CM_REJ_NO_SERVICE, NULL);
		return 0;
	}
	if (fd < 0)
		return fd;
	rc = cm_watch(fd, false, &place, id, &id->wire);
	if (rc)
		return rc;
	memcpy(message.private_data, id->private_data, sizeof(message.private_data));
	cm_wire_send(id->wire, &message);
	cm_set_deadline(id, answer_ms());
	return 0;
}

void cm_timed_out(struct cm_id *id)
{
	switch (id->state) {
	case CM_REQ_SENT:
		if (!id->wire && cm_now_ms() < id->give_up_ms && !send_request(id))
			break;
		fail(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		break;
	case CM_REP_SENT:
		fail(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		break;
	case CM_DREQ_SENT:
		disconnected(id, -ETIMEDOUT);
		break;
	case CM_TIMEWAIT:
		id->state = CM_OVER;
		tell(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		break;
	default:
		break;
	}
}

/* What the program asks for has to be possible here. */
static int check_params(const struct cm_id *id, const struct rdma_conn_param *param, size_t most)
{
	if (!param)
		return 0;
	if (param->private_data_len > most || (param->private_data_len && !param->private_data))
		return -EINVAL;
	if (cm_is_ud(id))
		return 0;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > cm.device.attr.max_qp_rd_atom)
		return -EINVAL;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > cm.device.attr.max_qp_init_rd_atom)
		return -EINVAL;
	return 0;
}

static void set_qp(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct ibv_qp *qp = id->user.qp;

	id->local.qpn = qp ? qp->qp_num : param ? param->qp_num & 0xffffff : 0;
	id->local.srq = qp ? !!qp->srq : param ? !!param->srq : 0;
	id->local.qkey = RDMA_UDP_QKEY;
}

static int connect_id(struct cm_id *id, const struct rdma_conn_param *param)
{
	size_t most = cm_is_ud(id) ? CM_SIDR_REQ_PRIVATE : CM_REQ_PRIVATE;
	int rc;

	if (id->state != CM_ROUTE_RESOLVED || id->connect_len > most)
		return -EINVAL;
	rc = check_params(id, param, most - id->connect_len);
	if (rc)
		return rc;
	id->local = (struct cm_params){
		.responder_resources = param ? param->responder_resources : RDMA_MAX_RESP_RES,
		.initiator_depth = param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH,
		.flow_control = param ? param->flow_control : 1,
		.retry_count = param ? (param->retry_count < 7 ? param->retry_count : 7) : 7,
		.rnr_retry_count = param ? (param->rnr_retry_count < 7 ? param->rnr_retry_count : 7) : 7,
	};
	cm_limit(&id->local);
	set_qp(id, param);
	id->local.psn = random_psn();
	/* What a service's address brought goes first. */
	memset(id->private_data, 0, sizeof(id->private_data));
	if (id->connect_len)
		memcpy(id->private_data, id->connect_data, id->connect_len);
	if (param && param->private_data_len)
		memcpy(id->private_data + id->connect_len, param->private_data, param->private_data_len);
	id->active = true;
	id->give_up_ms = cm_now_ms() + answer_ms();
	id->nobody_ms = cm_now_ms() + NOBODY_MS;
	id->state = CM_REQ_SENT;
	rc = cm_start_thread();
	if (!rc)
		rc = send_request(id);
	if (rc)
		id->state = CM_ROUTE_RESOLVED;
	return rc;
}

CM_EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int rc;

	cm_lock();
	rc = connect_id(to_cm(id), param);
	cm_unlock();
	return rc ? cm_fail(-rc) : cm_complete(to_cm(id));
}

CM_EXPORT int rdma_establish(struct rdma_cm_id *user)
{
	struct cm_id *id = to_cm(user);
	int rc = -EINVAL;

	cm_lock();
	if (!user->qp && id->state == CM_REP_RCVD) {
		say(id, CM_RTU);
		id->state = CM_ESTABLISHED;
		rc = 0;
	}
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

/* The answer is there. With a queue pair it is made ready now, in the program's own thread. */
static void complete_connection(struct cm_event *event, struct cm_id *id)
{
	int rc;

	if (!id->user.qp)
		return;
	rc = id->state == CM_REP_RCVD ? cm_qp_connect(id) : -ECONNRESET;
	if (!rc) {
		say(id, CM_RTU);
		id->state = CM_ESTABLISHED;
		event->user.event = RDMA_CM_EVENT_ESTABLISHED;
		return;
	}
	cm_qp_error(id);
	if (id->state == CM_REP_RCVD) {
		end_wire(id);
		id->state = CM_OVER;
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

/* --- to be connected --- */

static int listen_at(struct cm_id *id, int backlog)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	const struct sockaddr *at = &id->user.route.addr.src_addr;
	int rc = 0, fd;

	if (id->state == CM_IDLE)
		rc = cm_bind(id, (struct sockaddr *)&any);
	if (!rc && id->state != CM_BOUND)
		rc = -EINVAL;
	if (!rc)
		rc = cm_claim_listen(id);
	if (rc)
		return rc;
	id->backlog = backlog > 0 && backlog < MAX_BACKLOG ? backlog : MAX_BACKLOG;
	rc = cm_listen_far();
	fd = rc ? rc : cm_wire_listen((uint16_t)id->user.ps, at, id->v6_only);
	rc = fd < 0 ? fd : cm_watch(fd, true, NULL, id, &id->wire);
	if (rc)
		id->state = CM_BOUND;
	return rc;
}

CM_EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int rc;

	cm_lock();
	rc = listen_at(to_cm(id), backlog);
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

static void answer_datagram(struct cm_id *id, uint16_t reason, const void *data, size_t bytes)
{
	struct cm_message message = message_of(id, CM_SIDR_REP);

	message.reason = reason;
	if (bytes)
		memcpy(message.private_data, data, bytes);
	if (id->wire)
		cm_wire_send(id->wire, &message);
	end_wire(id);
}

static int accept_id(struct cm_id *id, const struct rdma_conn_param *param)
{
	size_t most = cm_is_ud(id) ? CM_SIDR_REP_PRIVATE : CM_REP_PRIVATE;
	struct cm_message message;
	int rc = id->state == CM_REQ_RCVD ? check_params(id, param, most) : -EINVAL;

	if (rc)
		return rc;
	set_qp(id, param);
	if (cm_is_ud(id)) {
		id->state = CM_ESTABLISHED;
		answer_datagram(id, CM_SIDR_OK, param ? param->private_data : NULL,
				param ? param->private_data_len : 0);
		return 0;
	}
	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		id->local.responder_resources = param->responder_resources;
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->local.initiator_depth = param->initiator_depth;
	id->local.flow_control = param ? param->flow_control : 1;
	id->local.rnr_retry_count = param ? (param->rnr_retry_count < 7 ? param->rnr_retry_count : 7) : 7;
	rc = cm_qp_connect(id);
	if (rc) {
		cm_qp_error(id);
		return rc;
	}
	message = message_of(id, CM_REP);
	if (param && param->private_data_len)
		memcpy(message.private_data, param->private_data, param->private_data_len);
	id->state = CM_REP_SENT;
	if (id->wire)
		cm_wire_send(id->wire, &message);
	cm_set_deadline(id, PATIENT * answer_ms());
	return 0;
}

CM_EXPORT int rdma_accept(struct rdma_cm_id *user, struct rdma_conn_param *param)
{
	struct cm_id *id = to_cm(user);
	int rc;

	cm_lock();
	rc = accept_id(id, param);
	cm_unlock();
	if (rc)
		return cm_fail(-rc);
	return cm_is_ud(id) ? 0 : cm_complete(id);
}

static int reject(struct cm_id *id, const void *data, uint8_t bytes, uint16_t reason)
{
	struct cm_message message = message_of(id, CM_REJ);

	if ((id->state != CM_REQ_RCVD && id->state != CM_REP_RCVD) || (bytes && !data) ||
	    bytes > (cm_is_ud(id) ? CM_SIDR_REP_PRIVATE : CM_REJ_PRIVATE))
		return -EINVAL;
	id->state = CM_OVER;
	if (cm_is_ud(id)) {
		answer_datagram(id, CM_SIDR_REJECT, data, bytes);
		return 0;
	}
	message.reason = reason;
	if (bytes)
		memcpy(message.private_data, data, bytes);
	if (id->wire)
		cm_wire_send(id->wire, &message);
	end_wire(id);
	return 0;
}

CM_EXPORT int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	int rc;

	cm_lock();
	rc = reject(to_cm(id), data, bytes, CM_REJ_CONSUMER);
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

CM_EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	int rc;

	cm_lock();
	rc = reject(to_cm(id), data, bytes, CM_REJ_ECE);
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

/* Data have come before the RTU: that says the same. */
CM_EXPORT int rdma_notify(struct rdma_cm_id *user, enum ibv_event_type event)
{
	struct cm_id *id = to_cm(user);
	int rc = -EINVAL;

	cm_lock();
	if (event == IBV_EVENT_COMM_EST && id->state == CM_REP_SENT) {
		established(id);
		rc = 0;
	} else if (event == IBV_EVENT_COMM_EST && id->state == CM_ESTABLISHED) {
		rc = -EISCONN;
	}
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

/* --- to part --- */

/* 0: nothing will be reported of it; 1: DISCONNECTED will be; -errno. */
static int disconnect(struct cm_id *id)
{
	switch (id->state) {
	case CM_ESTABLISHED:
	case CM_REP_SENT:
		cm_qp_error(id);
		if (cm_is_ud(id)) {
			id->state = CM_OVER;
			return 0;
		}
		id->state = CM_DREQ_SENT;
		say(id, CM_DREQ);
		cm_set_deadline(id, answer_ms());
		return 1;
	case CM_REP_RCVD: /* not ours yet */
		cm_qp_error(id);
		end_wire(id);
		id->state = CM_OVER;
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

CM_EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	int rc;

	cm_lock();
	rc = disconnect(to_cm(id));
	cm_unlock();
	if (rc < 0)
		return cm_fail(-rc);
	return rc ? cm_complete(to_cm(id)) : 0;
}

/* --- options, extended connection establishment, multicast --- */

static int set_id_option(struct cm_id *id, int name, const void *value, size_t len)
{
	int flag = 0;
	uint8_t byte = 0;

	if (len == sizeof(flag))
		memcpy(&flag, value, len);
	else if (len == sizeof(byte))
		memcpy(&byte, value, len);
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (len != sizeof(byte))
			return -EINVAL;
		id->tos = byte;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		if (len != sizeof(flag) || id->state != CM_IDLE)
			return -EINVAL;
		id->reuse = flag;
		return 0;
	case RDMA_OPTION_ID_AFONLY:
		if (len != sizeof(flag) || id->state != CM_IDLE)
			return -EINVAL;
		id->v6_only = flag;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (len != sizeof(byte) || byte > 31 || cm_is_ud(id))
			return -EINVAL;
		id->ack_timeout = byte;
		return 0;
	default:
		return -ENOSYS;
	}
}

/* A path is not the program's to choose: there is one. */
CM_EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	int rc = -ENOSYS;

	if (!value)
		return cm_fail(EINVAL);
	cm_lock();
	if (level == RDMA_OPTION_ID)
		rc = set_id_option(to_cm(id), name, value, len);
	else if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH)
		rc = -EINVAL;
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

CM_EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return cm_fail(EINVAL);
	cm_lock();
	to_cm(id)->ece = *ece;
	cm_unlock();
	return 0;
}

CM_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece)
		return cm_fail(EINVAL);
	cm_lock();
	*ece = to_cm(id)->peer_ece;
	cm_unlock();
	return 0;
}

/* The device has no multicast groups (max_mcast_grp is 0). */
CM_EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	(void)id;
	(void)addr;
	(void)context;
	return cm_fail(EOPNOTSUPP);
}

CM_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
				     void *context)
{
	(void)id;
	(void)attr;
	(void)context;
	return cm_fail(EOPNOTSUPP);
}

CM_EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	return cm_fail(EADDRNOTAVAIL);
}
