/* SPDX-License-Identifier: BSD-3-Clause */
/* Records and their acknowledgements. See hydradb_pair.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/hydradb_pair/hydradb_pair.h"

#define PATIENCE_NS   16000	  /* an acknowledgement mostly comes sooner */
#define CONNECTION_NS PAIR_NAP_NS /* see whether the connection still is one */
#define MOST_FAILS    16	  /* of records that the secondary cannot execute */

int pair_ring_open(struct pair *pair)
{
	const uint32_t longest = (uint32_t)sizeof(struct pair_record) + pair->env.params->max_vlen;

	pair->record_params = *pair->env.params;
	pair->record_params.knob[WHOLE] = WHOLE_CRC;
	pair->record_bytes = kv_round_up(hydradb_message_bytes(longest), TM_LINE);
	pair->sent_record = calloc(PAIR_RECORDS, pair->record_bytes);
	pair->ring = aligned_alloc(TM_LINE, PAIR_RECORDS * pair->record_bytes);
	if (!pair->sent_record || !pair->ring)
		return -ENOMEM;
	memset(pair->ring, 0, PAIR_RECORDS * pair->record_bytes);
	return rpc_server_export(&pair->server.rpc, pair->ring, PAIR_RECORDS * pair->record_bytes,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static size_t place_of(const struct pair *pair, uint64_t seq)
{
	return (seq - 1) % PAIR_RECORDS * pair->record_bytes;
}

/* --- the primary --- */

static uint64_t word_of(const struct pair *pair)
{
	return __atomic_load_n((const uint64_t *)pair->conn.own, __ATOMIC_SEQ_CST);
}

static int write_record(struct pair *pair, uint64_t seq, bool waits)
{
	const uint8_t *record = pair->sent_record + place_of(pair, seq);
	uint32_t len;
	int rc = rpc_settle(&pair->conn); /* the one before is in the same buffer */

	memcpy(&len, record, sizeof(len));
	if (rc)
		return rc;
	return (waits ? rpc_write : rpc_write_behind)(&pair->conn, PAIR_RING, place_of(pair, seq),
						      record, hydradb_message_bytes(len));
}

/* From the record on that the secondary could not execute. It may have those after it. */
static int send_again(struct pair *pair, uint64_t word)
{
	int rc = 0;

	if ((word >> 8) + PAIR_RECORDS < pair->sent || (uint8_t)word > MOST_FAILS)
		return -EIO;
	pair->failures = (uint8_t)word;
	for (uint64_t seq = (word >> 8) + 1; seq <= pair->sent && !rc; seq++)
		rc = write_record(pair, seq, true);
	return rc;
}

/* Will the secondary acknowledge what it gets? It may have been away, and be back. */
static bool is_there(const struct pair *pair, const struct rt_config *now)
{
	const uint32_t there = pair->mirrored ? now->alive & now->members : now->alive;

	return now->primary == pair->env.server && there & ~members_bit(&pair->env);
}

/* Wait until so many records are acknowledged. -EIO: the secondary is not there any more. */
static int wait_for(struct pair *pair, uint64_t upto)
{
	uint64_t nap = KV_NAP_NS;
	int rc = 0;

	while (!rc) {
		const uint64_t word = word_of(pair);
		struct rt_config now;

		if ((uint8_t)word != pair->failures) {
			rc = send_again(pair, word);
			continue;
		}
		if (word >> 8 >= upto)
			return 0;
		kv_nap_to(&nap, CONNECTION_NS);
		if (nap <= PATIENCE_NS)
			continue;
		if (!rt_config_get(&now) && !is_there(pair, &now))
			return -EIO;
		if (nap > CONNECTION_NS)
			rc = write_record(pair, pair->sent, false);
	}
	return rc;
}

int pair_ring_wait(struct pair *pair)
{
	return wait_for(pair, pair->sent);
}

int pair_ring_send(struct pair *pair, const struct kv_req *req, uint64_t version, bool asks)
{
	const uint32_t value = req->op == KV_PUT ? req->vlen : 0;
	const uint32_t len = (uint32_t)sizeof(struct pair_record) + value;
	const bool waits = pair->env.params->knob[REPLICATION] == NIC;
	/* The place is free when the record that was there is acknowledged. */
	int rc = pair->sent < PAIR_RECORDS ? 0 : wait_for(pair, pair->sent + 1 - PAIR_RECORDS);

	if (rc)
		return rc;
	const uint64_t seq = ++pair->sent;
	const struct pair_record record = {seq, version, asks || seq % 2 == 0, 0, *req};
	uint8_t *message = pair->sent_record + place_of(pair, seq);
	memset(message, 0, pair->record_bytes);
	memcpy(message + HYDRADB_BODY, &record, sizeof(record));
	memcpy(message + HYDRADB_BODY + sizeof(record), req + 1, value);
	hydradb_mark(message, len, 0, &pair->record_params);
	return write_record(pair, seq, waits);
}

/* --- the secondary --- */

void pair_ring_begin(struct pair *pair)
{
	memset(pair->ring, 0, PAIR_RECORDS * pair->record_bytes);
	pair->executed = pair->word = 0;
	pair->owes_word = false;
}

/* It goes where a client's replies go, from where they come from. Refused: another time. */
void pair_ring_acknowledge(struct pair *pair, unsigned index)
{
	const struct kv_slots *replies = &pair->server.replies;

	if (!pair->owes_word)
		return;
	memcpy(kv_slot(replies, index), &pair->word, sizeof(pair->word));
	pair->owes_word = rpc_server_write(&pair->server.rpc, index, HYDRADB_REPLIES,
					   index * replies->bytes, sizeof(pair->word),
					   0) == -ENOMEM;
}

/* In the ring, where a primary that begins anew may change it. */
static const struct pair_record *next_record(const struct pair *pair, uint32_t *len)
{
	const uint64_t seq = pair->executed + 1;
	const uint8_t *message = pair->ring + place_of(pair, seq);
	const struct pair_record *record = (const struct pair_record *)(message + HYDRADB_BODY);
	const bool front = has_bug(pair->env.params, record_front);

	if (record->seq != seq)
		return NULL;
	if (!hydradb_landed(message, pair->record_bytes,
			    front ? pair->env.params : &pair->record_params, front, len) ||
	    *len < sizeof(*record))
		return NULL;
	*len -= (uint32_t)offsetof(struct pair_record, req);
	return record;
}

bool pair_ring_arrived(struct pair *pair)
{
	uint32_t len;

	return next_record(pair, &len);
}

static int execute(struct pair *pair, const struct pair_record *record, uint32_t len)
{
	struct hydradb_server *server = &pair->server;
	const uint64_t version = server->version;
	struct hydradb_reply reply;
	const void *value;
	uint32_t vlen;

	if (record->req.op == PAIR_CLEAR) {
		hydradb_clear(server);
		return 0;
	}
	server->version = record->version - 1;
	int rc = hydradb_execute(server, &record->req, len, &reply, &value, &vlen);
	server->version = version > record->version ? version : record->version;
	return rc;
}

void pair_ring_execute(struct pair *pair)
{
	uint32_t len;
	const struct pair_record *record = next_record(pair, &len);

	if (!record)
		return;
	int rc = execute(pair, record, len);
	if (rc) { /* it is to come again */
		memset(pair->ring + place_of(pair, pair->executed + 1), 0, HYDRADB_BODY);
		pair->word++;
	} else {
		pair->executed++;
		pair->word = pair->executed << 8 | (uint8_t)pair->word;
	}
	pair->owes_word |= rc || record->asks;
}
