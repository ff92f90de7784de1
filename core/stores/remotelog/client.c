/* SPDX-License-Identifier: BSD-3-Clause */
/* The client: PUT and DELETE append a record, GET looks for the newest record of its key. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/remotelog/remotelog.h"

#define READ_BYTES 4096 /* what a GET reads of the log at once, if records are not longer */

int rl_open(const struct tm_env *env, void **out)
{
	struct rl_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->params = *env->params;
	client->head = rl_before_first(env->params);
	client->next = client->head + 1;
	client->chunk = (uint32_t)(READ_BYTES / rl_span(env->params));
	if (!client->chunk)
		client->chunk = 1;
	client->msg = calloc(1, rl_msg_bytes(env->params));
	int rc = client->msg ? 0 : -ENOMEM;
	if (!rc)
		rc = rpc_open_ex(&client->conn, env, rl_msg_bytes(env->params),
				 rl_buffer_bytes(client), rl_send_ops(env->params));
	if (!rc && (rl_knobs(env->params)->flush == RL_FLUSH_READ_OTHER_QP ||
		    rl_knobs(env->params)->qps != RL_QPS_ONE))
		rc = rpc_open_further(&client->other, env, rl_msg_bytes(env->params),
				      sizeof(uint64_t));
	if (rc) {
		rpc_close(&client->conn);
		free(client->msg);
		free(client);
		return rc;
	}
	client->qp = ibv_qp_to_qp_ex(client->conn.qp);
	*out = client;
	return 0;
}

/* client->msg becomes a record without number, or a question. */
static int fill(struct rl_client *client, enum rl_kind kind, const void *key, size_t klen,
		const void *value, size_t vlen)
{
	struct rl_record *record = &client->msg->record;

	memset(client->msg, 0, sizeof(*client->msg));
	if (vlen > client->params.max_vlen)
		return -EMSGSIZE;
	record->len = (uint32_t)vlen;
	record->klen = (uint8_t)klen;
	record->kind = (uint8_t)kind;
	memcpy(record->value, value, vlen);
	return kv_key_pad(record->key, key, klen);
}

static int append(struct rl_client *client)
{
	struct rl_msg *msg = client->msg;
	int rc = rl_lock(client);

	if (rc)
		return rc;
	rc = rl_room(client);
	if (rc) {
		rl_unlock(client);
		return rc;
	}
	msg->seq = msg->record.seq = client->next;
	msg->record.crc = rl_crc(&msg->record);
	rc = rl_append(client);
	if (rc)
		return rc;
	client->next++;
	return rl_server_unlocks(rl_method(&client->params)) ? 0 : rl_unlock(client);
}

int rl_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct rl_client *client = arg;
	int rc = fill(client, RL_VALUE, key, klen, value, vlen);

	return rc ? rc : append(client);
}

int rl_del(void *arg, const void *key, size_t klen)
{
	struct rl_client *client = arg;
	int rc = fill(client, RL_TOMBSTONE, key, klen, NULL, 0);

	return rc ? rc : append(client);
}

/* --- GET --- */

/* The number of the last record that there may be: compound: the tail that is visible now;
 * singleton: as many as there is room for. -EAGAIN: the head that was read is too old. */
static int read_end(struct rl_client *client, uint64_t head, uint64_t *end)
{
	uint64_t room_end = head + rl_slots(&client->params);
	const void *data;

	*end = room_end;
	if (!rl_method(&client->params)->compound)
		return 0;
	int rc = rpc_read(&client->conn, RL_POOL, RL_TAIL, sizeof(uint64_t), &data);
	if (rc)
		return rc;
	memcpy(end, data, sizeof(*end));
	if (*end <= room_end)
		return 0;
	return rl_ring(&client->params) ? -EAGAIN : -EBADMSG;
}

/* Keep the record if it is the key's. */
static void keep(struct rl_client *client, const struct rl_record *record,
		 const uint8_t key[TM_MAX_KEY])
{
	if (!rt_check(memcmp(record->key, key, TM_MAX_KEY) == 0))
		return;
	client->found = true;
	memcpy(&client->msg->record, record, rl_record_bytes(record));
}

/* Number of records from this one on that lie side by side and can be read at once. */
static uint64_t side_by_side(const struct rl_client *client, uint64_t seq, uint64_t end)
{
	uint64_t slots = rl_slots(&client->params), n = end - seq + 1,
		 to_edge = slots - (seq - 1) % slots;

	if (n > to_edge)
		n = to_edge;
	return n < client->chunk ? n : client->chunk;
}

/* Through the whole log, from its start. */
static int find_in_log(struct rl_client *client, const uint8_t key[TM_MAX_KEY], uint64_t head)
{
	const struct tm_params *params = &client->params;
	bool compound = rl_method(params)->compound;
	uint64_t end, span = rl_span(params);
	int rc = read_end(client, head, &end);

	for (uint64_t seq = head + 1; !rc && seq <= end;) {
		uint64_t n = side_by_side(client, seq, end);
		const void *data;

		rc = rpc_read(&client->conn, RL_POOL, rl_off(params, seq), n * span, &data);
		for (uint64_t i = 0; i < n && !rc; i++, seq++) {
			const struct rl_record *record = (const void *)((const uint8_t *)data +
									i * span);

			if (rl_intact(params, record, seq))
				keep(client, record, key);
			else if (!compound)
				return 0;
		}
	}
	return rc;
}

/* -EAGAIN: an entry is being written. */
static int find_in_table(struct rl_client *client, const uint8_t key[TM_MAX_KEY])
{
	const struct tm_params *params = &client->params;
	unsigned first = rl_first_entry(params, key);

	for (unsigned i = 0; i < params->keys && !client->found; i++) {
		const void *data;
		int rc = rpc_read(&client->conn, RL_POOL, rl_entry_off(params, first + i),
				  rl_span(params), &data);

		if (rc)
			return rc;
		const struct rl_record *record = data;
		if (!record->seq)
			return 0;
		if (!rl_whole(params, record))
			return -EAGAIN;
		keep(client, record, key);
	}
	return 0;
}

/*
 * In a ring, what is newer may take the place of what is being read, but only when the
 * head has moved; and a record may leave the log before it is read there, but then it is in
 * the table before the head moves. So a head that has not moved proves the reading.
 * -EBADMSG: an entry stays half-written.
 */
static int find_by_read(struct rl_client *client, const uint8_t key[TM_MAX_KEY])
{
	uint64_t head = 0, now = 0, nap = 0;
	int rc, again;

	if (!rl_ring(&client->params))
		return find_in_log(client, key, rl_before_first(&client->params));
	do {
		rc = rl_read_head(client, &head);
		if (rc)
			return rc;
		client->found = false;
		again = find_in_log(client, key, head);
		if (!again && !client->found)
			again = find_in_table(client, key);
		if (again && again != -EAGAIN)
			return again;
		rc = rl_read_head(client, &now);
		if (!rc && now == head && again && !rl_nap(&nap))
			rc = -EBADMSG;
	} while (!rc && (now != head || again));
	return rc;
}

static int find_by_server(struct rl_client *client)
{
	client->msg->op = RL_LOOKUP;
	int rc = rpc_call(rl_messages(client), client->msg, sizeof(*client->msg), client->msg,
			  rl_msg_bytes(&client->params), NULL);
	if (rc)
		return rc;
	client->found = client->msg->status == 0;
	return client->found || client->msg->status == -ENOENT ? 0 : client->msg->status;
}

int rl_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct rl_client *client = arg;
	const struct rl_record *record = &client->msg->record;
	uint8_t padded[TM_MAX_KEY];
	int rc = fill(client, RL_VALUE, key, klen, NULL, 0);

	if (rc)
		return rc;
	memcpy(padded, record->key, sizeof(padded));
	client->found = false;
	rc = rl_knobs(&client->params)->get != RL_GET_CLIENT ? find_by_server(client)
							     : find_by_read(client, padded);
	if (rc)
		return rc;
	if (!client->found || record->kind == RL_TOMBSTONE)
		return -ENOENT;
	*vlen = record->len;
	memcpy(value, record->value, record->len < cap ? record->len : cap);
	return 0;
}
