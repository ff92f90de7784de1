/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication manager's protocol (IBA vol. 1, 12.9): what messages, timeouts and the end of a
 * process do to identifiers.
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
 * after the identifier is destroyed, too: it is kept for a while, and a DREQ is always answered.
 *
 * A connection ends by a DREQ only after it was established. A passive side that disconnects before
 * it has the RTU sends its DREQ when the RTU has come. An active side that gets a DREQ before it
 * has sent the RTU is connected first, and then disconnected.
 *
 * A process that ends leaves its kernel, which closes its identifiers: peers get a DREQ, or a REJ
 * of what was not established yet. A machine that dies says nothing: whoever waits for its answer
 * gives up in the end (UNREACHABLE), and whoever waits for none does not learn of it.
 *
 * A message belongs to a connection if it has the communication IDs that both ends have chosen, and
 * comes from the peer's address.
 */
#include <assert.h>
#include <endian.h>
#include "core/cm/ground.h"
#include "core/cm/sockaddr.h"

#define TRIES	       16
#define PATIENCE       6  /* 2^6 times as long, after an MRA */
#define LONGEST	       27 /* 550 s: longer values are cut */
#define TIMEWAIT_NS    1000000000ull
#define ASK_AGAIN_NS   20000000ull
#define PKEY	       0xffff
#define LID_PERMISSIVE 0xffff

/* --- sending --- */

uint64_t cm_timeout_ns(uint8_t timeout)
{
	return 4096ull << (timeout < LONGEST ? timeout : LONGEST);
}

struct cm_message cm_message_of(const struct cm_id *id, enum cm_type type)
{
	const struct rdma_addr *at = &id->user.route.addr;
	uint8_t timeout = cm_ground->timeout();
	struct cm_message message = {
		.type = type,
		.tid = id->tid,
		.local_id = id->number,
		.remote_id = id->peer_number,
		.service_id = mad_service_id(
			(uint16_t)id->user.ps,
			sockaddr_port(id->conn.active ? &at->dst_addr : &at->src_addr)),
		.ca_guid = id->cm->guid,
		.params = id->conn.local,
		.gid = id->cm->gid,
		.peer_gid = id->peer_gid,
		.mtu = id->conn.mtu,
		.ack_timeout = cm_ack_timeout(&id->conn),
		.their_timeout = timeout,
		.our_timeout = timeout,
		.service_timeout = (uint8_t)(timeout + PATIENCE),
		.max_retries = TRIES - 1,
		.transport = id->user.qp_type == IBV_QPT_UC ? CM_TRANSPORT_UC : CM_TRANSPORT_RC,
		.local_lid = LID_PERMISSIVE,
		.remote_lid = LID_PERMISSIVE,
		.hop_limit = CM_HOP_LIMIT,
		.traffic_class = id->conn.options.tos,
		.rate = IBV_RATE_10_GBPS,
		.pkey = PKEY,
		.about = id->state == CM_REQ_RCVD   ? CM_ABOUT_REQ
			 : id->state == CM_REP_RCVD ? CM_ABOUT_REP
						    : CM_ABOUT_OTHER,
		.remote_qpn = id->conn.remote.qpn,
		.ece = id->ece,
	};

	mad_set_addresses(&message, &at->src_addr, &at->dst_addr);
	return message;
}

static void send_once(struct cm_id *id, enum cm_type type)
{
	struct cm_message message = cm_message_of(id, type);

	cm_ground->send(id->cm, NULL, &id->peer_gid, &message);
}

/* What answers a message, if no identifier does. */
static void answer(struct cm *cm, const union ibv_gid *to, const struct cm_message *message,
		   enum cm_type type, uint16_t reason)
{
	struct cm_message reply = {
		.type = type,
		.tid = message->tid,
		.local_id = message->remote_id,
		.remote_id = message->local_id,
		.service_id = message->service_id,
		.about = message->type == CM_REP ? CM_ABOUT_REP : CM_ABOUT_REQ,
		.reason = reason,
	};

	if (reason == CM_REJ_MTU) {
		reply.info_len = 1;
		reply.info[0] = (uint8_t)(cm->mtu << 4);
	}
	cm_ground->send(cm, NULL, to, &reply);
}

static int send_kept(struct cm_id *id)
{
	int rc = cm_ground->send(id->cm, id, &id->peer_gid, &id->sent);

	id->sends++;
	return rc;
}

int cm_send_until_answered(struct cm_id *id, const struct cm_message *message)
{
	id->sent = *message;
	id->sends = 0;
	id->tries = 1;
	id->patient = false;
	if (message->type != CM_REP) { /* for a REP the request has set both */
		id->again_ns = cm_timeout_ns(cm_ground->timeout());
		id->most_tries = TRIES;
	}
	int rc = send_kept(id);
	if (!rc || message->type != CM_REQ)
		cm_ground->alarm(id, id->again_ns);
	return rc;
}

/* 0 or -errno */
static int ask_later(struct cm_id *id)
{
	if (id->asks++ >= id->cm->most_asks)
		return -ETIMEDOUT;
	id->asks_anew = true;
	cm_ground->alarm(id, ASK_AGAIN_NS);
	return 0;
}

int cm_ask(struct cm_id *id)
{
	int rc = cm_ground->route(id, &id->peer_gid, NULL);

	assert(id->state == CM_REQ_SENT && id->conn.active);
	if (rc)
		return rc;
	id->asks_anew = cm_ground->watch && !cm_ground->watch(id, 0);
	if (id->asks_anew) /* it has just ended */
		return ask_later(id);
	/* A new communication ID: late messages of the previous attempt match nothing. */
	cm_ground->choose_number(id);
	struct cm_message message = cm_message_of(id, CM_REQ);
	memcpy(message.private_data, id->sent.private_data, sizeof(message.private_data));
	return cm_send_until_answered(id, &message);
}

/* --- events --- */

/* The connection failed. */
static void fail(struct cm_id *id, enum rdma_cm_event_type type, int status,
		 const uint8_t *private_data)
{
	struct cm_event *event = id->kernels ? NULL : cm_event(id, type, status);

	assert(id->state >= CM_REQ_SENT && id->state <= CM_ESTABLISHED);
	cm_to_state(id, CM_OVER);
	cm_ground->alarm(id, 0);
	if (!event)
		return;
	if (private_data) {
		memcpy(event->private_data, private_data, CM_REJ_PRIVATE);
		event->user.param.conn.private_data = event->private_data;
		event->user.param.conn.private_data_len = CM_REJ_PRIVATE;
	}
	cm_report(event, id);
}

/* The kernel keeps it for a while: duplicates of what it has received may still come. */
static void linger(struct cm_id *id)
{
	assert(id->kernels);
	if (!id->number || !cm_ground->alarm(id, id->cm->linger_ns)) {
		cm_free_id(id);
		return;
	}
	id->cm->lingering += !id->lingers;
	id->lingers = true;
}

static void disconnected(struct cm_id *id, int status)
{
	cm_to_state(id, CM_TIMEWAIT);
	if (id->kernels) {
		linger(id);
		return;
	}
	cm_ground->alarm(id, TIMEWAIT_NS);
	cm_tell(id, RDMA_CM_EVENT_DISCONNECTED, status);
}

void cm_established(struct cm_id *id)
{
	cm_ground->alarm(id, 0);
	cm_to_state(id, CM_ESTABLISHED);
	cm_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	if (id->parts)
		cm_send_dreq(id);
}

void cm_send_ready(struct cm_id *id)
{
	send_once(id, CM_RTU);
	cm_to_state(id, CM_ESTABLISHED);
	if (id->parted)
		disconnected(id, 0);
}

/* Show a REQ or REP to the program. */
static void show_params(struct cm_event *event, const struct cm_message *message, uint8_t bytes)
{
	memcpy(event->private_data, message->private_data, bytes);
	cm_show_params(&event->user.param.conn, &message->params, event->private_data, bytes);
}

/* --- a request comes in --- */

/* The identifier that a request has created; NULL: there is none, or no longer. */
static struct cm_id *find_asked(const struct cm *cm, const union ibv_gid *from,
				uint32_t peer_number)
{
	for (struct cm_id *id = cm->ids; id; id = id->next)
		if (id->peer_number == peer_number && peer_number && !id->conn.active &&
		    cm_same_gid(&id->peer_gid, from))
			return id;
	return NULL;
}

/* If the request has come before: answer it again. */
static bool was_there(struct cm *cm, const union ibv_gid *from, const struct cm_message *request)
{
	struct cm_id *id = find_asked(cm, from, request->local_id);

	if (!id)
		return false;
	if (id->state == CM_REQ_RCVD)
		send_once(id, CM_MRA);
	else if (id->state == CM_REP_SENT || id->sent.type == CM_REJ)
		send_kept(id);
	return true;
}

static void remember_peer(struct cm_id *id, const struct cm_message *message)
{
	cm_hear(&id->conn, &message->params, id->cm->limits);
	id->peer_number = message->local_id;
	id->peer_ece = message->ece;
	id->user.route.addr.addr.ibaddr.dgid = id->peer_gid;
	id->path.dgid = id->peer_gid;
}

static struct cm_id *find_listener(struct cm *cm, const union ibv_gid *from,
				   const struct cm_message *request)
{
	struct sockaddr_storage src, dst;
	uint16_t port_space, port;
	struct cm_id *listener = NULL;

	mad_get_addresses(request, &src, &dst);
	if (src.ss_family && request->local_id &&
	    mad_service(request->service_id, &port_space, &port))
		listener = cm_find_listener(cm, port_space, (const struct sockaddr *)&dst);
	if (!listener && cm_ground->no_listener)
		cm_ground->no_listener(cm, from);
	return listener;
}

/* The reason to refuse this request; 0: none. */
static uint16_t check_request(const struct cm_id *listener, const struct cm_message *request)
{
	if (!listener)
		return CM_REJ_NO_SERVICE;
	if (request->transport != CM_TRANSPORT_RC && request->transport != CM_TRANSPORT_UC)
		return CM_REJ_TRANSPORT;
	if (!request->mtu || request->mtu > listener->cm->mtu)
		return CM_REJ_MTU;
	return listener->waiting >= listener->backlog ? CM_REJ_CONSUMER : 0;
}

static void fill_asked(struct cm_id *id, const struct cm_id *listener,
		       const struct cm_message *request)
{
	assert(!id->conn.active && !id->number && !id->bound); /* a new one */
	id->conn.options.tos = listener->conn.options.tos;
	id->conn.options.ack_timeout = listener->conn.options.ack_timeout;
	id->conn.mtu = request->mtu;
	id->conn.peer_ack_timeout = request->ack_timeout;
	id->again_ns = cm_timeout_ns(request->our_timeout);
	id->most_tries = request->max_retries + 1u;
	if (request->transport == CM_TRANSPORT_UC)
		id->user.qp_type = IBV_QPT_UC;
	mad_get_addresses(request, &id->user.route.addr.dst_storage,
			  &id->user.route.addr.src_storage);
	/* Chosen now: the program may make its queue pair before it accepts. */
	cm_ground->choose_number(id);
	id->tid = request->tid;
	cm_to_state(id, CM_REQ_RCVD);
	remember_peer(id, request);
}

/* A request: make an identifier for it, and an event for the listening one. */
static void take_request(struct cm *cm, const union ibv_gid *from, const struct cm_message *message)
{
	struct cm_id *id = NULL;
	struct cm_event *event = NULL;

	if (was_there(cm, from, message))
		return;
	struct cm_id *listener = find_listener(cm, from, message);
	uint16_t refusal = check_request(listener, message);
	if (!refusal)
		id = cm_new_id(cm, listener->user.channel, listener->user.context,
			       listener->user.ps);
	if (id && !cm_bind_device(id))
		event = cm_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	if (!event) {
		if (id)
			cm_free_id(id);
		answer(cm, from, message, CM_REJ, refusal ? refusal : CM_REJ_CONSUMER);
		return;
	}
	id->peer_gid = *from;
	bool gone = cm_ground->watch && !cm_ground->watch(id, message->local_id);
	fill_asked(id, listener, message);
	send_once(id, CM_MRA);
	event->user.listen_id = &listener->user;
	show_params(event, message, CM_REQ_PRIVATE);
	listener->waiting++;
	assert(listener->state == CM_LISTEN && listener->waiting <= listener->backlog);
	cm_report(event, listener);
	if (gone)
		cm_peer_ended(id);
}

/* --- an answer comes in --- */

static void take_response(struct cm_id *id, const struct cm_message *message)
{
	if (id->state == CM_ESTABLISHED && id->conn.active) {
		send_once(id, CM_RTU); /* the RTU was lost */
		return;
	}
	if (id->state == CM_REP_RCVD) {
		send_once(id, CM_MRA);
		return;
	}
	if (id->state != CM_REQ_SENT)
		return;
	struct cm_event *event = cm_event(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	if (!event)
		return;
	cm_ground->alarm(id, 0);
	bool gone = cm_ground->watch && !cm_ground->watch(id, message->local_id);
	remember_peer(id, message);
	show_params(event, message, CM_REP_PRIVATE);
	cm_to_state(id, CM_REP_RCVD);
	cm_report(event, id);
	if (gone)
		cm_peer_ended(id);
}

/* Is there another way to ask? */
static bool asks_again(struct cm_id *id, const struct cm_message *message)
{
	uint8_t mtu = message->info[0] >> 4;

	/* A server that closes its port and listens again at once is in time on real fabrics,
	 * where a request takes that long to arrive. */
	if (message->reason == CM_REJ_NO_SERVICE && !ask_later(id))
		return true;
	/* The peer says which MTU it can use. */
	if (message->reason == CM_REJ_MTU && message->info_len && mtu && mtu < id->conn.mtu) {
		id->conn.mtu = mtu;
		return !cm_ask(id);
	}
	return false;
}

static void take_refusal(struct cm_id *id, const struct cm_message *message)
{
	if (id->state < CM_REQ_SENT || id->state > CM_ESTABLISHED)
		return;
	/* Only this end is connected: the RTU was lost, and the peer has given up. Other messages
	 * are late ones from before. */
	if (id->state == CM_ESTABLISHED &&
	    (!id->conn.active || !message->local_id || message->reason == CM_REJ_NUMBER))
		return;
	if (id->state == CM_REQ_SENT && asks_again(id, message))
		return;
	fail(id, RDMA_CM_EVENT_REJECTED, message->reason, message->private_data);
}

static void take_patience(struct cm_id *id, const struct cm_message *message)
{
	if (id->patient || (id->state != CM_REQ_SENT && id->state != CM_REP_SENT))
		return;
	id->patient = true;
	id->most_tries = id->tries +
			 (unsigned)(cm_timeout_ns(message->service_timeout) / id->again_ns);
}

/* --- disconnecting --- */

void cm_send_dreq(struct cm_id *id)
{
	struct cm_message message = cm_message_of(id, CM_DREQ);

	cm_to_state(id, CM_DREQ_SENT);
	cm_send_until_answered(id, &message);
}

/* id: the identifier that it is about, or NULL. */
static void take_dreq(struct cm *cm, const union ibv_gid *from, struct cm_id *id,
		      const struct cm_message *message)
{
	if (id && message->remote_qpn != id->conn.local.qpn)
		return;
	answer(cm, from, message, CM_DREP, 0);
	if (!id)
		return;
	switch (id->state) {
	case CM_REP_SENT: /* the peer was connected: the RTU was lost, or is late */
		id->parts = false;
		cm_established(id);
		disconnected(id, 0);
		break;
	case CM_REP_RCVD:
		id->parted = true;
		break;
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

	message.reason = CM_REJ_TIMEOUT;
	message.info_len = sizeof(guid);
	memcpy(message.info, &guid, sizeof(guid));
	cm_ground->send(id->cm, NULL, &id->peer_gid, &message);
}

/* Send a REJ: the last answer to a request or a REP. */
void cm_refuse(struct cm_id *id, uint16_t reason, const void *private_data, size_t bytes)
{
	struct cm_message message = cm_message_of(id, CM_REJ);

	message.reason = reason;
	cm_to_state(id, CM_OVER);
	if (bytes)
		cm_ground->load(id, message.private_data, private_data, bytes);
	cm_ground->alarm(id, 0);
	id->sent = message;
	id->sends = 0;
	send_kept(id);
}

bool cm_part(struct cm_id *id)
{
	if (cm_ground->release)
		cm_ground->release(id);
	id->bound = false;
	switch (id->state) {
	case CM_REQ_SENT:
		withdraw(id);
		break;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		cm_refuse(id, CM_REJ_CONSUMER, NULL, 0);
		break;
	case CM_ESTABLISHED:
		cm_send_dreq(id);
		return false;
	case CM_DREQ_SENT:
		return false;
	default:
		break;
	}
	if (id->state != CM_TIMEWAIT)
		cm_to_state(id, CM_OVER);
	return true;
}

void cm_close(struct cm_id *id)
{
	assert(!id->kernels && !id->unacked);
	id->kernels = true;
	if (cm_part(id))
		linger(id);
}

/* --- messages, time, death --- */

/* The identifier that a message is about; NULL: none. */
static struct cm_id *find_id(const struct cm *cm, const union ibv_gid *from,
			     const struct cm_message *message)
{
	struct cm_id *id = cm->ids;

	if (message->type == CM_REJ && !message->remote_id && message->reason == CM_REJ_TIMEOUT)
		return find_asked(cm, from, message->local_id);
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

/* A message about an identifier. Those that do not fit the state are ignored. */
static void take_message(struct cm_id *id, const struct cm_message *message)
{
	switch (message->type) {
	case CM_MRA:
		take_patience(id, message);
		break;
	case CM_REP:
		take_response(id, message);
		break;
	case CM_RTU:
		if (id->state == CM_REP_SENT)
			cm_established(id);
		break;
	case CM_REJ:
		take_refusal(id, message);
		break;
	case CM_DREP:
		if (id->state == CM_DREQ_SENT)
			disconnected(id, 0);
		break;
	default:
		break;
	}
}

/* A REP for an identifier that the active side has closed: the message that said so was lost. */
static void refuse_answer(struct cm *cm, const union ibv_gid *from, struct cm_id *id,
			  const struct cm_message *message)
{
	if (id && id->sent.type == CM_REJ)
		send_kept(id);
	else
		answer(cm, from, message, CM_REJ, CM_REJ_NUMBER);
}

void cm_take(struct cm *cm, const union ibv_gid *from, const uint8_t mad[MAD_BYTES])
{
	struct cm_message message;

	if (mad_decode(&message, mad))
		return;
	if (message.type == CM_REQ) {
		take_request(cm, from, &message);
		return;
	}
	struct cm_id *id = find_id(cm, from, &message);
	if (message.type == CM_DREQ)
		take_dreq(cm, from, id, &message);
	else if (message.type == CM_REP && (!id || id->state == CM_OVER))
		refuse_answer(cm, from, id, &message);
	else if (id)
		take_message(id, &message);
}

/* The message was sent, and not answered in time. */
static void not_answered(struct cm_id *id)
{
	if (id->tries < id->most_tries) {
		id->tries++;
		send_kept(id);
		cm_ground->alarm(id, id->again_ns);
		return;
	}
	if (cm_ground->given_up)
		cm_ground->given_up(id);
	if (id->state == CM_DREQ_SENT)
		disconnected(id, -ETIMEDOUT);
	else
		fail(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
}

void cm_timed_out(struct cm_id *id)
{
	switch (id->state) {
	case CM_REQ_SENT:
		if (!id->asks_anew)
			not_answered(id);
		else if (cm_ask(id))
			fail(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		return;
	case CM_REP_SENT:
	case CM_DREQ_SENT:
		not_answered(id);
		return;
	case CM_TIMEWAIT:
		cm_to_state(id, CM_OVER);
		cm_tell(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		break;
	default:
		break;
	}
	if (id->kernels)
		cm_free_id(id);
}

void cm_peer_ended(struct cm_id *id)
{
	if (id->state == CM_ESTABLISHED || id->state == CM_DREQ_SENT)
		disconnected(id, 0);
	else if (id->state >= CM_REQ_SENT && id->state <= CM_REP_RCVD)
		fail(id, RDMA_CM_EVENT_REJECTED,
		     id->state == CM_REQ_RCVD ? CM_REJ_TIMEOUT : CM_REJ_CONSUMER, NULL);
}
