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
 * Messages may be lost, duplicated, and late. A REQ, REP or DREQ is sent again until it is
 * answered. An MRA gives the other end's program more time. A duplicate is answered again and
 * changes nothing; a DREQ always gets its DREP.
 *
 * A process that ends leaves its kernel, which closes its identifiers: peers get a DREQ, or a REJ
 * of what was not established yet. A machine that dies says nothing: who waits for its answer gives
 * up in the end (UNREACHABLE), and who waits for none does not learn of it.
 *
 * Where a scheduler stands in the clock's place, nothing is lost: no message is sent again, and
 * TIME_WAIT has no end.
 */
#include <assert.h>
#include <errno.h>
#include "core/rnic/host/cm.h"
#include "core/rnic/transport/link.h"

#define AGAIN_NS    268435456ull /* 4.096 us * 2^16 */
#define TRIES	    16		 /* 4.3 s in all */
#define PATIENCE    64		 /* times as many tries after an MRA: 17 s */
#define TIMEWAIT_NS 1000000000ull

/* --- sending --- */

/* The name of the next message that this host sends for the operation. */
static struct packet_name name_of(struct host *host, struct op_label op)
{
	struct actor *actor = &host->cm;

	if (!*actor->name)
		sim_name_actor(host_sim(host), actor, host->number, "cm", 0);
	if (!op_label_equal(actor->op, op))
		actor_label(actor, op);
	return (struct packet_name){.who = actor,
				    .op = op,
				    .occurrence = actor->occurrence,
				    .message = ++actor->count[COUNT_MESSAGE],
				    .index = 1,
				    .round = 1,
				    .operation = IBV_WR_SEND,
				    .send = true};
}

static void transmit(struct host *host, unsigned to, const struct cm_message *message,
		     const struct packet_name *name)
{
	struct rnic_net *net = host->all->net;
	struct packet *pkt;

	if (sim_machine_died(host_sim(host), host->number))
		return;
	pkt = packet_get(net, MAD_BYTES);
	pkt->service = SERVICE_UD;
	pkt->opcode = OP_SEND_ONLY;
	pkt->src_qpn = pkt->dest_qpn = QPN_MANAGEMENT;
	pkt->qkey = MAD_QKEY;
	pkt->psn = host->psn++ & PSN_MASK;
	pkt->peer = to;
	pkt->name = *name;
	memset(pkt->payload, 0, MAD_BYTES);
	memcpy(pkt->payload, message, sizeof(*message));
	net->link->send(net->link, host->number, pkt);
}

static void send_to(struct host *host, unsigned to, const struct cm_message *message,
		    struct op_label op)
{
	struct packet_name name = name_of(host, op);

	transmit(host, to, message, &name);
}

struct cm_message host_cm_message_of(const struct cm_id *id, enum cm_type type)
{
	struct cm_message message = {
		.type = (uint8_t)type,
		.mtu = id->conn.mtu,
		.ack_timeout = cm_ack_timeout(&id->conn),
		.local_id = id->number,
		.remote_id = id->peer_number,
		.remote_qpn = id->conn.remote.qpn,
		.params = id->conn.local,
	};

	if (type == CM_REQ) {
		message.request.source = host_cm_widen(&id->user.route.addr.src_storage);
		message.request.destination = host_cm_widen(&id->user.route.addr.dst_storage);
	}
	return message;
}

void host_cm_send(struct cm_id *id, const struct cm_message *message, struct op_label op)
{
	send_to(id->host, id->peer, message, op);
}

static void timed_out(void *arg);

static void set_alarm(struct cm_id *id, uint64_t ns)
{
	id->alarm.at = 0;
	if (!ground_scheduled(cm_ground(id->host)))
		alarm_set(cm_ground(id->host), &id->alarm, CHAIN_OTHER, ns, timed_out, id);
}

void host_cm_send_until_answered(struct cm_id *id, const struct cm_message *message,
				 struct op_label op)
{
	id->sent = *message;
	id->sent_name = name_of(id->host, op);
	id->tries = 1;
	id->most_tries = TRIES;
	transmit(id->host, id->peer, &id->sent, &id->sent_name);
	set_alarm(id, AGAIN_NS);
}

static void send_again(struct cm_id *id)
{
	id->sent_name.round++;
	transmit(id->host, id->peer, &id->sent, &id->sent_name);
}

void host_cm_answer(struct cm_id *id, const struct cm_message *message, struct op_label op)
{
	id->alarm.at = 0;
	id->sent = *message;
	id->sent_name = name_of(id->host, op);
	transmit(id->host, id->peer, &id->sent, &id->sent_name);
}

void host_cm_choose_number(struct cm_id *id)
{
	id->number = ++id->host->last_number;
	/* As different as those of real ones, and the same in every run. */
	id->conn.local.psn = (id->number * 4096 + id->host->number) & PSN_MASK;
}

/* --- events --- */

/* The connection failed, or has ended. */
static void fail(struct cm_id *id, enum rdma_cm_event_type type, int status,
		 const uint8_t *private_data, struct op_label op)
{
	assert(id->state >= CM_REQ_SENT && id->state <= CM_ESTABLISHED);
	id->state = CM_OVER;
	id->alarm.at = 0;
	if (id->kernels)
		return;
	struct cm_event *event = host_cm_event(id, type, status, op);
	if (private_data) {
		memcpy(event->private_data, private_data, CM_REJ_PRIVATE);
		event->user.param.conn.private_data = event->private_data;
		event->user.param.conn.private_data_len = CM_REJ_PRIVATE;
	}
	host_cm_report(event, id);
}

static void disconnected(struct cm_id *id, int status, struct op_label op)
{
	id->state = CM_TIMEWAIT;
	set_alarm(id, TIMEWAIT_NS);
	host_cm_tell(id, RDMA_CM_EVENT_DISCONNECTED, status, op);
}

void host_cm_established(struct cm_id *id, struct op_label op)
{
	id->alarm.at = 0;
	id->state = CM_ESTABLISHED;
	host_cm_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0, op);
}

/* Show a REQ or REP to the program. */
static void show_params(struct cm_event *event, const struct cm_message *message, uint8_t bytes)
{
	memcpy(event->private_data, message->private_data, bytes);
	cm_show_params(&event->user.param.conn, &message->params, event->private_data, bytes);
}

/* --- a request comes in --- */

static struct cm_id *find_asked(const struct host *host, unsigned from, uint32_t peer_number)
{
	for (struct cm_id *id = host->ids; id; id = id->next)
		if (!id->conn.active && id->peer_number == peer_number && peer_number &&
		    id->peer == from)
			return id;
	return NULL;
}

/* What a message answers, without private data. */
static struct cm_message answer_to(const struct cm_message *message, enum cm_type type)
{
	return (struct cm_message){.type = (uint8_t)type,
				   .local_id = message->remote_id,
				   .remote_id = message->local_id};
}

static void refuse_request(struct host *host, unsigned from, const struct cm_message *request,
			   uint8_t reason, struct op_label op)
{
	struct cm_message message = answer_to(request, CM_REJ);

	message.reason = reason;
	send_to(host, from, &message, op);
}

/* If the request has come before: answer it again. */
static bool was_there(struct host *host, unsigned from, const struct cm_message *request,
		      struct op_label op)
{
	struct cm_id *id = find_asked(host, from, request->local_id);
	struct cm_message patience;

	if (!id)
		return false;
	if (id->state == CM_REQ_RCVD) {
		patience = host_cm_message_of(id, CM_MRA);
		host_cm_send(id, &patience, op);
	} else if (id->state == CM_REP_SENT || id->sent.type == CM_REJ) {
		send_again(id);
	}
	return true;
}

static void remember_peer(struct cm_id *id, const struct cm_message *message)
{
	cm_hear(&id->conn, &message->params, cm_limits);
	id->peer_number = message->local_id;
	rnic_gid(RNIC_ADDRESS(id->peer), &id->user.route.addr.addr.ibaddr.dgid);
	id->path.dgid = id->user.route.addr.addr.ibaddr.dgid;
}

/* A request: make an identifier for it, and an event for the listening one. */
static void take_request(struct host *host, unsigned from, const struct cm_message *message,
			 struct op_label op)
{
	struct cm_id *listener, *id;
	struct cm_event *event;
	struct cm_message patience;

	if (was_there(host, from, message, op))
		return;
	listener = host_cm_find_listener(host, message->request.destination.sin6_port);
	if (!listener)
		sim_refuse(host_sim(host), from);
	if (!listener || listener->waiting >= listener->backlog) {
		refuse_request(host, from, message, listener ? CM_REJ_CONSUMER : CM_REJ_NO_SERVICE,
			       op);
		return;
	}
	id = host_cm_new_id(host, listener->user.channel, listener->user.context,
			    listener->user.ps);
	if (host_cm_bind_device(id)) {
		host_cm_free_id(id);
		refuse_request(host, from, message, CM_REJ_CONSUMER, op);
		return;
	}
	id->state = CM_REQ_RCVD;
	id->peer = from;
	id->conn.options.tos = listener->conn.options.tos;
	id->conn.options.ack_timeout = listener->conn.options.ack_timeout;
	id->conn.mtu = message->mtu;
	id->conn.peer_ack_timeout = message->ack_timeout;
	host_cm_narrow(&id->user.route.addr.src_storage, &message->request.destination);
	host_cm_narrow(&id->user.route.addr.dst_storage, &message->request.source);
	host_cm_choose_number(id); /* now: the program may make its queue pair before it accepts */
	remember_peer(id, message);
	patience = host_cm_message_of(id, CM_MRA);
	host_cm_send(id, &patience, op);
	event = host_cm_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, op);
	event->user.listen_id = &listener->user;
	show_params(event, message, CM_REQ_PRIVATE);
	listener->waiting++;
	host_cm_report(event, listener);
}

/* --- an answer comes in --- */

static void take_response(struct cm_id *id, const struct cm_message *message, struct op_label op)
{
	struct cm_event *event;
	struct cm_message answer;

	if (id->state == CM_ESTABLISHED && id->conn.active) { /* the RTU was lost */
		answer = host_cm_message_of(id, CM_RTU);
		host_cm_send(id, &answer, op);
		return;
	}
	if (id->state == CM_REP_RCVD) {
		answer = host_cm_message_of(id, CM_MRA);
		host_cm_send(id, &answer, op);
		return;
	}
	if (id->state != CM_REQ_SENT)
		return;
	id->alarm.at = 0;
	remember_peer(id, message);
	id->state = CM_REP_RCVD;
	event = host_cm_event(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, op);
	show_params(event, message, CM_REP_PRIVATE);
	host_cm_report(event, id);
}

static void take_refusal(struct cm_id *id, const struct cm_message *message, struct op_label op)
{
	switch (id->state) {
	case CM_REQ_SENT:
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
	fail(id, RDMA_CM_EVENT_REJECTED, message->reason, message->private_data, op);
}

static void take_patience(struct cm_id *id)
{
	if (id->state == CM_REQ_SENT || id->state == CM_REP_SENT)
		id->most_tries = id->tries + PATIENCE;
}

/* --- disconnecting --- */

/* id: the identifier that it is about, or NULL. */
static void take_dreq(struct host *host, unsigned from, struct cm_id *id,
		      const struct cm_message *message, struct op_label op)
{
	struct cm_message answer = answer_to(message, CM_DREP);

	if (id && message->remote_qpn != id->conn.local.qpn)
		return;
	send_to(host, from, &answer, op);
	if (!id)
		return;
	switch (id->state) {
	case CM_REP_SENT: /* the peer was connected: the RTU was lost, or is late */
		host_cm_established(id, op);
		disconnected(id, 0, op);
		break;
	case CM_REP_RCVD:
	case CM_ESTABLISHED:
	case CM_DREQ_SENT: /* both ends disconnect at once */
		disconnected(id, 0, op);
		break;
	default:
		break;
	}
}

/* --- closing --- */

/* The kernel keeps it for a while: duplicates of what it has received may still come. */
static void linger(struct cm_id *id)
{
	if (ground_scheduled(cm_ground(id->host)) || !id->number ||
	    sim_machine_died(host_sim(id->host), id->host->number))
		host_cm_free_id(id);
	else
		set_alarm(id, TIMEWAIT_NS);
}

void host_cm_close(struct cm_id *id, struct op_label op)
{
	enum cm_state state = id->state;
	struct cm_message message = host_cm_message_of(id, CM_REJ);

	assert(!id->kernels && !id->unacked);
	id->kernels = true;
	id->bound = false;
	switch (state) {
	case CM_REQ_SENT: /* the peer's communication ID may not be known yet */
		message.reason = CM_REJ_TIMEOUT;
		id->state = CM_OVER;
		host_cm_send(id, &message, op);
		break;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		message.reason = CM_REJ_CONSUMER;
		id->state = CM_OVER;
		host_cm_answer(id, &message, op);
		break;
	case CM_ESTABLISHED:
		message = host_cm_message_of(id, CM_DREQ);
		id->state = CM_DREQ_SENT;
		host_cm_send_until_answered(id, &message, op);
		return;
	case CM_DREQ_SENT:
		return;
	default:
		if (id->state != CM_TIMEWAIT)
			id->state = CM_OVER;
		break;
	}
	linger(id);
}

void host_cm_process_ended(struct host *host)
{
	const struct op_label none = {0};
	struct cm_id *next;

	for (struct cm_id *id = host->ids; id; id = next) {
		next = id->next;
		if (id->kernels)
			continue;
		id->unacked = 0; /* there is no one who could acknowledge it */
		host_cm_close(id, none);
	}
}

/* --- messages, time --- */

/* The identifier that a message is about; NULL: none. */
static struct cm_id *find_id(const struct host *host, unsigned from,
			     const struct cm_message *message)
{
	struct cm_id *id = host->ids;

	if (message->type == CM_REJ && !message->remote_id && message->reason == CM_REJ_TIMEOUT)
		return find_asked(host, from, message->local_id);
	while (id && (id->number != message->remote_id || !message->remote_id))
		id = id->next;
	if (!id || id->peer != from)
		return NULL;
	/* The active side learns the peer's communication ID from this message, if the peer has
	 * one. */
	if (id->state == CM_REQ_SENT || (message->type == CM_REJ && !message->local_id))
		return id;
	return id->peer_number == message->local_id ? id : NULL;
}

/* Messages that do not fit the state are ignored. */
static void take(struct host *host, unsigned from, const struct cm_message *message,
		 struct op_label op)
{
	struct cm_id *id;

	if (message->type == CM_REQ) {
		take_request(host, from, message, op);
		return;
	}
	id = find_id(host, from, message);
	if (message->type == CM_DREQ) {
		take_dreq(host, from, id, message, op);
		return;
	}
	if (message->type == CM_REP && (!id || id->state == CM_OVER)) {
		/* The active side has closed it, and the message that said so was lost. */
		struct cm_message refusal = answer_to(message, CM_REJ);
		refusal.reason = CM_REJ_NUMBER;
		send_to(host, from, &refusal, op);
		return;
	}
	if (!id)
		return;
	switch (message->type) {
	case CM_MRA:
		take_patience(id);
		break;
	case CM_REP:
		take_response(id, message, op);
		break;
	case CM_RTU:
		if (id->state == CM_REP_SENT)
			host_cm_established(id, op);
		break;
	case CM_REJ:
		take_refusal(id, message, op);
		break;
	case CM_DREP:
		if (id->state == CM_DREQ_SENT)
			disconnected(id, 0, op);
		break;
	default:
		break;
	}
}

/* A datagram for queue pair 1 has come in. */
static void take_packet(struct rnic_net *net, struct packet *pkt)
{
	struct host *host = host_of(net, pkt->peer);
	struct cm_message message;

	assert(pkt->service == SERVICE_UD && pkt->qkey == MAD_QKEY && pkt->len == MAD_BYTES);
	memcpy(&message, pkt->payload, sizeof(message));
	if (!sim_machine_died(host_sim(host), host->number))
		take(host, pkt->from, &message, pkt->name.op);
	packet_put(net, pkt);
}

void host_cm_start(struct rnic_net *net)
{
	net->management = take_packet;
}

static bool is_late(struct cm_id *id)
{
	if (id->tries < id->most_tries)
		return false;
	ground_given_up(cm_ground(id->host), id->host->number, id->peer, TRIES);
	return true;
}

static void timed_out(void *arg)
{
	struct cm_id *id = arg;
	struct op_label op = id->sent_name.op;

	if (!alarm_fired(cm_ground(id->host), &id->alarm) ||
	    sim_machine_died(host_sim(id->host), id->host->number))
		return;
	assert(!id->freed);
	switch (id->state) {
	case CM_REQ_SENT:
	case CM_REP_SENT:
	case CM_DREQ_SENT:
		if (!is_late(id)) {
			id->tries++;
			send_again(id);
			set_alarm(id, AGAIN_NS);
		} else if (id->state == CM_DREQ_SENT) {
			disconnected(id, -ETIMEDOUT, op);
		} else {
			fail(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, op);
		}
		return;
	case CM_TIMEWAIT:
		id->state = CM_OVER;
		host_cm_tell(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, (struct op_label){0});
		break;
	default:
		break;
	}
	if (id->kernels)
		host_cm_free_id(id);
}
