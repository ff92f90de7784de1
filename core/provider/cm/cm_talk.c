/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication manager's protocol (IBA vol. 1, 12.9): what messages and timeouts do to
 * identifiers.
 *
 *      active                                  passive
 *      ROUTE_RESOLVED                          LISTEN
 *      rdma_connect()   -- REQ ------------->  a new identifier: CONNECT_REQUEST
 *      REQ_SENT         <------------- MRA --  REQ_RCVD
 *                       <------------- REP --  rdma_accept(): the queue pair can receive and send
 *      REP_RCVD                                REP_SENT
 *      CONNECT_RESPONSE is retrieved: the queue pair can receive and send;
 *      without a queue pair: rdma_establish()
 *      ESTABLISHED      -- RTU ------------->  ESTABLISHED
 *
 *      rdma_disconnect() -- DREQ ----------->  DISCONNECTED
 *      DISCONNECTED      <---------- DREP --   TIMEWAIT
 *      TIMEWAIT
 *      after a while: TIMEWAIT_EXIT at both
 *
 * Messages may be lost, duplicated, and late. A REQ, REP or DREQ is sent again at an interval that
 * the REQ names, until it is answered, or as often as the REQ says. An MRA gives the other end's
 * program more time. The message is still sent again meanwhile, so that a lost answer costs one
 * interval and not all of that time. A duplicate is answered again and changes nothing. That holds
 * after the identifier is destroyed, too: a DREQ is always answered, and a refusal is kept for a
 * while to be repeated.
 *
 * A message belongs to a connection if it has the communication IDs that both ends have chosen, and
 * comes from the peer's address. The IDs are random.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "core/provider/cm/cm.h"

#define TIMEWAIT_MS 1000
#define AGAIN_MS    20

/* --- events --- */

static struct cm_event *tell(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *event = cm_event(id, type, status);

	if (event)
		cm_report(event, id);
	return event;
}

/* The connection failed, or has ended. */
static void fail(struct cm_id *id, enum rdma_cm_event_type type, int status,
		 const uint8_t *private_data, uint8_t bytes)
{
	struct cm_event *event = cm_event(id, type, status);

	assert(id->state >= CM_REQ_SENT && id->state <= CM_ESTABLISHED);
	cm_to_state(id, CM_OVER);
	id->deadline_ms = 0;
	if (!event)
		return;
	assert(bytes <= sizeof(event->private_data));
	if (private_data) {
		memcpy(event->private_data, private_data, bytes);
		event->user.param.conn.private_data = event->private_data;
		event->user.param.conn.private_data_len = bytes;
	}
	cm_report(event, id);
}

static void refused(struct cm_id *id, uint16_t reason, const uint8_t *private_data)
{
	fail(id, RDMA_CM_EVENT_REJECTED, reason, private_data, CM_REJ_PRIVATE);
}

static void disconnected(struct cm_id *id, int status)
{
	cm_to_state(id, CM_TIMEWAIT);
	cm_set_deadline(id, TIMEWAIT_MS);
	tell(id, RDMA_CM_EVENT_DISCONNECTED, status);
}

void cm_established(struct cm_id *id)
{
	id->deadline_ms = 0;
	cm_to_state(id, CM_ESTABLISHED);
	tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* Show a REQ or REP to the program. */
static void show_params(struct cm_event *event, const struct cm_message *message, uint8_t bytes)
{
	memcpy(event->private_data, message->private_data, bytes);
	cm_show_params(&event->user.param.conn, &message->params, event->private_data, bytes);
}

/* --- a request comes in --- */

static void refuse_request(const struct cm_message *request, const union ibv_gid *from,
			   uint16_t reason)
{
	struct cm_message message = {.type = CM_REJ,
				     .tid = request->tid,
				     .remote_id = request->local_id,
				     .service_id = request->service_id,
				     .about = CM_ABOUT_REQ,
				     .reason = reason};

	if (reason == CM_REJ_MTU) {
		message.info_len = 1;
		message.info[0] = (uint8_t)(cm.device.port.active_mtu << 4);
	}
	cm_send_message(from, &message);
}

/* The identifier that a request has created; NULL: there is none, or no longer. */
static struct cm_id *find_asked(const union ibv_gid *from, uint32_t peer_number)
{
	for (struct cm_id *id = cm.ids; id; id = id->next)
		if (!id->conn.active && id->peer_number == peer_number && peer_number &&
		    cm_same_gid(&id->peer_gid, from))
			return id;
	return NULL;
}

/* If the request has come before: answer it again. */
static bool was_there(const struct cm_message *request, const union ibv_gid *from)
{
	struct cm_id *id = find_asked(from, request->local_id);

	if (!id || id->state == CM_OVER)
		return cm_replay(from, request->local_id) || id != NULL;
	if (id->state == CM_REQ_RCVD)
		cm_send(id, CM_MRA);
	else if (id->state == CM_REP_SENT)
		cm.mads->send(&id->peer_gid, id->sent);
	return true;
}

static void remember_peer(struct cm_id *id, const struct cm_message *message)
{
	cm_hear(&id->conn, &message->params, cm_limits());
	id->peer_ece = message->ece;
	id->user.route.addr.addr.ibaddr.dgid = id->peer_gid;
	id->path.dgid = id->peer_gid;
}

/* The reason to refuse this request; 0: none. */
static uint16_t check_request(const struct cm_message *request)
{
	if (request->transport != CM_TRANSPORT_RC && request->transport != CM_TRANSPORT_UC)
		return CM_REJ_TRANSPORT;
	if (!request->mtu || request->mtu > cm.device.port.active_mtu)
		return CM_REJ_MTU;
	return 0;
}

static struct cm_id *find_listener(const struct cm_message *request,
				   const struct sockaddr_storage *src,
				   const struct sockaddr_storage *dst)
{
	uint16_t port_space, port;
	if (!src->ss_family || !request->local_id ||
	    !mad_service(request->service_id, &port_space, &port))
		return NULL;
	return cm_find_listener(port_space, (const struct sockaddr *)dst);
}

static void fill_asked(struct cm_id *id, const struct cm_message *request,
		       const union ibv_gid *from)
{
	assert(!id->conn.active && !id->number && !id->reserved); /* a new one */
	cm_choose_number(id);
	cm_to_state(id, CM_REQ_RCVD);
	id->peer_number = request->local_id;
	id->peer_gid = *from;
	id->peer_slot = cm_fabric_slot(from, request->local_id);
	id->tid = request->tid;
	id->conn.mtu = request->mtu;
	id->conn.peer_ack_timeout = request->ack_timeout;
	id->again_ms = cm_timeout_ms(request->our_timeout);
	id->retries = request->max_retries;
	if (request->transport == CM_TRANSPORT_UC)
		id->user.qp_type = IBV_QPT_UC;
	mad_get_addresses(request, &id->user.route.addr.dst_storage,
			  &id->user.route.addr.src_storage);
	cm_bind_device(id);
	remember_peer(id, request);
	id->conn.local.psn =
		cm_random() &
		0xffffff; /* chosen now: the program may make its queue pair before it accepts */
}

/* A request: make an identifier for it, and an event for the listening one. */
static void take_request(const struct cm_message *message, const union ibv_gid *from)
{
	struct cm_id *listener, *id = NULL;
	struct sockaddr_storage src, dst;
	struct cm_event *event;
	uint16_t refusal;
	bool gone;

	if (was_there(message, from))
		return;
	mad_get_addresses(message, &src, &dst);
	listener = find_listener(message, &src, &dst);
	refusal = listener ? check_request(message) : CM_REJ_NO_SERVICE;
	if (!refusal && listener->waiting < listener->backlog)
		id = cm_new_id(listener->user.channel, listener->user.context, listener->user.ps,
			       listener->user.qp_type);
	event = id ? cm_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;
	if (!event) {
		if (id)
			cm_free_id(id);
		refuse_request(message, from, refusal ? refusal : CM_REJ_CONSUMER);
		return;
	}
	id->conn.options.tos = listener->conn.options.tos;
	id->conn.options.ack_timeout = listener->conn.options.ack_timeout;
	gone = cm_watch(cm_fabric_slot(from, message->local_id));
	fill_asked(id, message, from);
	event->user.listen_id = &listener->user;
	show_params(event, message, CM_REQ_PRIVATE);
	cm_send(id, CM_MRA);
	listener->waiting++;
	assert(listener->state == CM_LISTEN && listener->waiting <= listener->backlog);
	cm_report(event, listener);
	if (gone)
		refused(id, CM_REJ_TIMEOUT, NULL);
}

/* --- an answer comes in --- */

/* There is no listener for our request. Is there time to try again? */
static bool looks_again(struct cm_id *id)
{
	if (id->state != CM_REQ_SENT || cm_now_ms() >= id->no_listener_ms)
		return false;
	id->again_ms = 0;
	cm_set_deadline(id, AGAIN_MS);
	return true;
}

static void take_response(struct cm_id *id, const struct cm_message *message)
{
	struct cm_event *event;

	if (id->state == CM_ESTABLISHED && id->conn.active &&
	    id->peer_number == message->local_id) {
		cm_send(id, CM_RTU); /* the RTU was lost */
		return;
	}
	if (id->state == CM_REP_RCVD && id->peer_number == message->local_id) {
		cm_send(id, CM_MRA);
		return;
	}
	if (id->state != CM_REQ_SENT)
		return;
	event = cm_event(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	if (!event)
		return;
	id->deadline_ms = 0;
	id->peer_number = message->local_id;
	id->peer_slot = cm_fabric_slot(&id->peer_gid, message->local_id);
	remember_peer(id, message);
	show_params(event, message, CM_REP_PRIVATE);
	cm_to_state(id, CM_REP_RCVD);
	cm_report(event, id);
}

static void take_refusal(struct cm_id *id, const struct cm_message *message)
{
	uint8_t mtu = message->info[0] >> 4;

	switch (id->state) {
	case CM_REQ_SENT:
		if (message->reason == CM_REJ_NO_SERVICE && looks_again(id))
			return;
		/* The peer says which MTU it can use. */
		if (message->reason == CM_REJ_MTU && message->info_len && mtu &&
		    mtu < id->conn.mtu) {
			id->conn.mtu = mtu;
			if (!cm_ask(id))
				return;
		}
		break;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		break;
	case CM_ESTABLISHED: /* only at this end: the RTU was lost, and the peer has given up */
		if (!id->conn.active || !message->local_id || message->reason == CM_REJ_NUMBER)
			return; /* a late message from before */
		break;
	default:
		return;
	}
	refused(id, message->reason, message->private_data);
}

static void take_patience(struct cm_id *id, const struct cm_message *message)
{
	if (id->patient || !((id->state == CM_REQ_SENT && message->about == CM_ABOUT_REQ) ||
			     (id->state == CM_REP_SENT && message->about == CM_ABOUT_REP)))
		return;
	id->patient = true;
	id->give_up_ms = cm_now_ms() + cm_timeout_ms(message->service_timeout);
}

/* --- disconnecting --- */

/* A DREQ. id: the identifier that it is about, or NULL. */
static void take_dreq(struct cm_id *id, const struct cm_message *message, const union ibv_gid *from)
{
	struct cm_message answer = {.type = CM_DREP,
				    .tid = message->tid,
				    .local_id = message->remote_id,
				    .remote_id = message->local_id};

	if (id && message->remote_qpn != id->conn.local.qpn)
		return;
	cm_send_message(from, &answer);
	if (!id)
		return;
	switch (id->state) {
	case CM_REP_SENT: /* the peer was connected: the RTU was lost, or is late */
		cm_established(id);
		disconnected(id, 0);
		break;
	case CM_REP_RCVD:
	case CM_ESTABLISHED:
	case CM_DREQ_SENT: /* both ends disconnect at once */
		disconnected(id, 0);
		break;
	default:
		break;
	}
}

/* Withdraw a request; the peer's communication ID may not be known yet. */
static void withdraw(struct cm_id *id)
{
	struct cm_message message = cm_message_of(id, CM_REJ);
	uint64_t guid = htobe64(message.ca_guid);

	message.about = CM_ABOUT_OTHER;
	message.reason = CM_REJ_TIMEOUT;
	message.info_len = sizeof(guid);
	memcpy(message.info, &guid, sizeof(guid));
	cm_send_message(&id->peer_gid, &message);
}

static void refuse(struct cm_id *id)
{
	struct cm_message message = cm_message_of(id, CM_REJ);

	message.reason = CM_REJ_CONSUMER;
	message.about = id->state == CM_REQ_RCVD   ? CM_ABOUT_REQ
			: id->state == CM_REP_RCVD ? CM_ABOUT_REP
						   : CM_ABOUT_OTHER;
	cm_answer(id, &message);
}

void cm_tell_peer(struct cm_id *id)
{
	switch (id->state) {
	case CM_REQ_SENT:
		withdraw(id);
		break;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		refuse(id);
		break;
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
		cm_send_dreq(id);
		if (!id->conn.active)
			cm_keep_replay(id, true);
		break;
	case CM_TIMEWAIT:
		if (!id->conn.active)
			cm_keep_replay(id, true);
		break;
	default:
		break;
	}
}

/* --- messages, time, death --- */

/* The identifier that a message is about; NULL: none. */
static struct cm_id *find_id(const struct cm_message *message, const union ibv_gid *from)
{
	struct cm_id *id = cm.ids;

	if (message->type == CM_REJ && !message->remote_id && message->reason == CM_REJ_TIMEOUT)
		return find_asked(from, message->local_id);
	while (id && (id->number != message->remote_id || !message->remote_id))
		id = id->next;
	if (!id || !cm_same_gid(&id->peer_gid, from))
		return NULL;
	/* The active side learns the peer's communication ID from this message, if the peer has
	 * one. */
	if (id->state == CM_REQ_SENT || (message->type == CM_REJ && !message->local_id))
		return id;
	return id->peer_number == message->local_id ? id : NULL;
}

/* A REP for no identifier: the active side has closed it, and the message that said so was lost. */
static void refuse_answer(const struct cm_message *answer, const union ibv_gid *from)
{
	struct cm_message message = {.type = CM_REJ,
				     .tid = answer->tid,
				     .local_id = answer->remote_id,
				     .remote_id = answer->local_id,
				     .about = CM_ABOUT_REP,
				     .reason = CM_REJ_NUMBER};

	cm_send_message(from, &message);
}

/* Messages that do not fit the state are ignored. */
void cm_take(const uint8_t mad[MAD_BYTES], const union ibv_gid *from)
{
	struct cm_message message;
	struct cm_id *id;

	assert(cm.locked);
	if (mad_decode(&message, mad))
		return;
	if (message.type == CM_REQ) {
		take_request(&message, from);
		return;
	}
	id = find_id(&message, from);
	if (message.type == CM_REP && (!id || id->state == CM_OVER) &&
	    !cm_replay(from, message.local_id))
		refuse_answer(&message, from);
	if (message.type == CM_DREQ)
		take_dreq(id, &message, from);
	else if (message.type == CM_DREP)
		cm_forget_dreq(message.remote_id, from);
	if (!id)
		return;
	switch (message.type) {
	case CM_MRA:
		take_patience(id, &message);
		break;
	case CM_REP:
		take_response(id, &message);
		break;
	case CM_RTU:
		if (id->state == CM_REP_SENT)
			cm_established(id);
		break;
	case CM_REJ:
		take_refusal(id, &message);
		break;
	case CM_DREP:
		if (id->state == CM_DREQ_SENT)
			disconnected(id, 0);
		break;
	default:
		break;
	}
}

void cm_timed_out(struct cm_id *id)
{
	bool late = cm_now_ms() >= id->give_up_ms;

	assert(cm.locked && !id->deadline_ms); /* it has passed */
	/* No other state has a deadline. */
	assert(id->state == CM_REQ_SENT || id->state == CM_REP_SENT || id->state == CM_DREQ_SENT ||
	       id->state == CM_TIMEWAIT);
	switch (id->state) {
	case CM_REQ_SENT:
		if (!late && id->again_ms)
			cm_send_again(id);
		else if (late || cm_ask(id))
			fail(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
		break;
	case CM_REP_SENT:
		if (late)
			fail(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
		else
			cm_send_again(id);
		break;
	case CM_DREQ_SENT:
		if (late)
			disconnected(id, -ETIMEDOUT);
		else
			cm_send_again(id);
		break;
	case CM_TIMEWAIT:
		if (!id->conn.active)
			cm_keep_replay(id, true);
		cm_to_state(id, CM_OVER);
		tell(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		break;
	default:
		break;
	}
}

void cm_peer_died(unsigned slot)
{
	assert(cm.locked && slot); /* slot 0: not of this fabric */
	for (struct cm_id *id = cm.ids; id; id = id->next) {
		if (id->peer_slot != slot)
			continue;
		switch (id->state) {
		case CM_REQ_SENT:
		case CM_REP_SENT:
		case CM_REP_RCVD:
			refused(id, CM_REJ_CONSUMER, NULL);
			break;
		case CM_REQ_RCVD:
			refused(id, CM_REJ_TIMEOUT, NULL);
			break;
		case CM_ESTABLISHED:
		case CM_DREQ_SENT:
			disconnected(id, 0);
			break;
		default:
			break;
		}
	}
	for (struct cm_pending_dreq *dreq = cm.dreqs; dreq; dreq = dreq->next)
		if (dreq->peer_slot == slot)
			dreq->give_up_ms = 0;
}
