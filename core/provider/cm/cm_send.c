/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending messages of the connection manager, again and again until they are answered: requests,
 * answers and their repetition (TIME_WAIT), and the DREQs of identifiers that are destroyed. When
 * to send what is decided in cm_talk.c.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "core/provider/cm/cm.h"

#define TIMEOUT	       18 /* 1.07 s between tries, 17.2 s in all */
#define RETRIES	       15
#define PATIENCE       6  /* 2^6 times as long, after an MRA: 68.7 s */
#define LONGEST	       27 /* 550 s: longer values are cut */
#define AGAIN_MS       20
#define REPLAY_MS      20000
#define LINGER_TRIES   6
#define LINGER_MS      50
#define PKEY	       0xffff
#define LID_PERMISSIVE 0xffff

/* --- time --- */

uint64_t cm_timeout_ms(uint8_t timeout)
{
	uint64_t ms = (4096ull << (timeout < LONGEST ? timeout : LONGEST)) / 1000000;

	return ms ? ms : 1;
}

/* The exponent of the time between tries, as in a REQ. */
static uint8_t own_timeout(void)
{
	const char *text = getenv("TIDEMARK_CM_TIMEOUT");
	unsigned long ms = text ? strtoul(text, NULL, 10) : 0;
	uint8_t timeout = TIMEOUT;

	while (ms && timeout > 8 && cm_timeout_ms(timeout) * (RETRIES + 1) > ms)
		timeout--;
	return timeout;
}

uint64_t cm_answer_ms(void)
{
	return cm_timeout_ms(own_timeout()) * (RETRIES + 1);
}

uint32_t cm_random(void)
{
	uint32_t word = 0;

	if (getrandom(&word, sizeof(word), 0) < 0)
		word = (uint32_t)cm_now_ms() * 2654435761u;
	return word;
}

/* --- sending --- */

int cm_send_message(const union ibv_gid *to, const struct cm_message *message)
{
	uint8_t mad[MAD_BYTES];

	mad_encode(message, mad);
	return cm.mads->send(to, mad);
}

struct cm_message cm_message_of(const struct cm_id *id, enum cm_type type)
{
	const struct rdma_addr *at = &id->user.route.addr;
	uint8_t timeout = own_timeout();
	struct cm_message message = {
		.type = type,
		.tid = id->tid,
		.local_id = id->number,
		.remote_id = id->peer_number,
		.service_id = mad_service_id(
			(uint16_t)id->user.ps,
			sockaddr_port(id->conn.active ? &at->dst_addr : &at->src_addr)),
		.ca_guid = be64toh(cm.device.attr.node_guid),
		.params = id->conn.local,
		.gid = cm.device.gid,
		.peer_gid = id->peer_gid,
		.mtu = id->conn.mtu,
		.ack_timeout = cm_ack_timeout(&id->conn),
		.their_timeout = timeout,
		.our_timeout = timeout,
		.service_timeout = (uint8_t)(timeout + PATIENCE),
		.max_retries = RETRIES,
		.transport = id->user.qp_type == IBV_QPT_UC ? CM_TRANSPORT_UC : CM_TRANSPORT_RC,
		.local_lid = LID_PERMISSIVE,
		.remote_lid = LID_PERMISSIVE,
		.hop_limit = CM_HOP_LIMIT,
		.traffic_class = id->conn.options.tos,
		.rate = IBV_RATE_10_GBPS,
		.pkey = PKEY,
		.remote_qpn = id->conn.remote.qpn,
		.ece = id->ece,
	};

	mad_set_addresses(&message, &at->src_addr, &at->dst_addr);
	return message;
}

void cm_send(struct cm_id *id, enum cm_type type)
{
	struct cm_message message = cm_message_of(id, type);

	message.about = id->state == CM_REP_RCVD ? CM_ABOUT_REP : CM_ABOUT_REQ;
	cm_send_message(&id->peer_gid, &message);
}

/* Wait until the message is due again, or given up. */
static void wait_for_answer(struct cm_id *id)
{
	uint64_t now = cm_now_ms(), left = id->give_up_ms > now ? id->give_up_ms - now : 1;

	cm_set_deadline(id, id->again_ms < left ? id->again_ms : left);
}

void cm_send_again(struct cm_id *id)
{
	assert(cm.locked && id->again_ms);
	cm.mads->send(&id->peer_gid, id->sent);
	wait_for_answer(id);
}

void cm_send_until_answered(struct cm_id *id, const struct cm_message *message)
{
	assert(message->type == CM_REP || message->type == CM_DREQ);
	assert(id->state == (message->type == CM_REP ? CM_REP_SENT : CM_DREQ_SENT));
	mad_encode(message, id->sent);
	id->patient = false;
	if (message->type == CM_DREQ) { /* for a REP the request has set both */
		id->again_ms = cm_timeout_ms(own_timeout());
		id->retries = RETRIES;
	}
	id->give_up_ms = cm_now_ms() + id->again_ms * (id->retries + 1);
	cm_send_again(id);
}

void cm_keep_replay(const struct cm_id *id, bool silent)
{
	struct cm_replay *answer = &cm.replay[cm.replays++ % CM_REPLAYS];

	*answer = (struct cm_replay){.gid = id->peer_gid,
				     .peer_number = id->peer_number,
				     .silent = silent,
				     .until_ms = cm_now_ms() + REPLAY_MS};
	memcpy(answer->mad, id->sent, MAD_BYTES);
}

void cm_answer(struct cm_id *id, const struct cm_message *message)
{
	assert(cm.locked && message->type == CM_REJ);
	mad_encode(message, id->sent);
	cm.mads->send(&id->peer_gid, id->sent);
	cm_keep_replay(id, false);
}

bool cm_replay(const union ibv_gid *to, uint32_t number)
{
	uint64_t now = cm_now_ms();

	for (unsigned i = 0; i < CM_REPLAYS; i++) {
		const struct cm_replay *answer = &cm.replay[i];

		if (!answer->peer_number || answer->peer_number != number ||
		    answer->until_ms < now || !cm_same_gid(&answer->gid, to))
			continue;
		if (!answer->silent)
			cm.mads->send(to, answer->mad);
		return true;
	}
	return false;
}

static bool number_is_taken(uint32_t number)
{
	for (const struct cm_id *id = cm.ids; id; id = id->next)
		if (id->number == number)
			return true;
	for (const struct cm_pending_dreq *dreq = cm.dreqs; dreq; dreq = dreq->next)
		if (dreq->number == number)
			return true;
	return false;
}

void cm_choose_number(struct cm_id *id)
{
	uint32_t number;

	do {
		number = cm.mads->slot << CM_ID_SHIFT | (cm_random() >> (32 - CM_ID_SHIFT));
	} while (number_is_taken(number));
	assert(cm.locked); /* so it is not taken meanwhile */
	assert(number && number >> CM_ID_SHIFT == cm.mads->slot);
	id->number = number;
}

int cm_ask(struct cm_id *id)
{
	unsigned slot = cm_fabric_route((uint16_t)id->user.ps, &id->user.route.addr.dst_addr,
					&id->peer_gid);
	struct cm_message message;
	int rc;

	assert(id->state == CM_REQ_SENT && id->conn.active);
	assert(slot < FABRIC_SLOTS);
	id->peer_slot = 0;
	id->again_ms = 0;
	if (cm_watch(slot)) { /* it has just ended */
		cm_set_deadline(id, AGAIN_MS);
		return 0;
	}
	id->peer_slot = slot;
	/* A new communication ID: late messages of the previous attempt match nothing. */
	cm_choose_number(id);
	id->tid = (uint64_t)cm_random() << 32 | id->number;
	message = cm_message_of(id, CM_REQ);
	memcpy(message.private_data, id->private_data, sizeof(message.private_data));
	mad_encode(&message, id->sent);
	rc = cm.mads->send(&id->peer_gid, id->sent);
	if (rc)
		return rc;
	id->patient = false;
	id->again_ms = cm_timeout_ms(message.their_timeout);
	wait_for_answer(id);
	return 0;
}

/* --- the DREQs of destroyed identifiers --- */

void cm_send_dreq(struct cm_id *id)
{
	struct cm_message message = cm_message_of(id, CM_DREQ);
	struct cm_pending_dreq *dreq = calloc(1, sizeof(*dreq));

	assert(cm.locked && id->number);
	assert(id->state == CM_ESTABLISHED || id->state == CM_DREQ_SENT);
	mad_encode(&message, id->sent);
	cm.mads->send(&id->peer_gid, id->sent);
	if (!dreq)
		return;
	dreq->gid = id->peer_gid;
	dreq->number = id->number;
	dreq->peer_slot = id->peer_slot;
	dreq->again_ms = cm_timeout_ms(own_timeout());
	dreq->deadline_ms = cm_now_ms() + dreq->again_ms;
	dreq->give_up_ms = cm_now_ms() + cm_answer_ms();
	memcpy(dreq->mad, id->sent, MAD_BYTES);
	dreq->next = cm.dreqs;
	cm.dreqs = dreq;
	cm_wake();
}

void cm_forget_dreq(uint32_t number, const union ibv_gid *from)
{
	for (struct cm_pending_dreq **at = &cm.dreqs; *at; at = &(*at)->next) {
		struct cm_pending_dreq *dreq = *at;

		if (dreq->number != number || !cm_same_gid(&dreq->gid, from))
			continue;
		*at = dreq->next;
		free(dreq);
		return;
	}
}

uint64_t cm_resend_dreqs(uint64_t now)
{
	uint64_t first = UINT64_MAX;

	assert(cm.locked);
	for (struct cm_pending_dreq **at = &cm.dreqs; *at;) {
		struct cm_pending_dreq *dreq = *at;

		assert(dreq->again_ms); /* else it is due for ever */
		if (dreq->give_up_ms <= now) {
			*at = dreq->next;
			free(dreq);
			continue;
		}
		if (dreq->deadline_ms <= now) {
			cm.mads->send(&dreq->gid, dreq->mad);
			dreq->deadline_ms = now + dreq->again_ms;
		}
		if (dreq->deadline_ms < first)
			first = dreq->deadline_ms;
		at = &dreq->next;
	}
	return first;
}

/* Processes of this fabric see that this one has ended; other hosts have to be told. */
void cm_linger(void)
{
	for (unsigned n = 0; n < LINGER_TRIES; n++) {
		const struct cm_pending_dreq *dreq = cm.dreqs;

		while (dreq && dreq->peer_slot)
			dreq = dreq->next;
		if (!dreq)
			return;
		cm_unlock();
		usleep(LINGER_MS * 1000);
		cm_lock();
		for (dreq = cm.dreqs; dreq; dreq = dreq->next)
			cm.mads->send(&dreq->gid, dreq->mad);
	}
}
