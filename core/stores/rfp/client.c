/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: it asks, and fetches the answer or waits for it. See rfp.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/rfp/rfp.h"

struct client {
	struct tm_params params;
	struct rpc_conn conn;
	uint16_t number;  /* of the request that was sent last */
	uint16_t mode;	  /* enum rfp_mode: how the next one is to be answered */
	uint8_t *request; /* header, struct kv_req, value */
	uint8_t *answer;  /* header, struct rfp_answer, value */
	uint32_t size;	  /* of its payload, bytes */
	uint16_t us;	  /* what it took the server */
};

static void drop(struct client *client)
{
	free(client->request);
	free(client->answer);
	free(client);
}

/* Length of the first READ. */
static size_t fetch_bytes(const struct tm_params *params)
{
	size_t all = rfp_answer_bytes(params), first = params->knob[FETCH] ? 256 : TM_LINE;

	return first < all ? first : all;
}

int rfp_open(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));
	size_t request = rfp_request_bytes(env->params), answer = rfp_answer_bytes(env->params);
	int rc = -ENOMEM;

	if (!client)
		return rc;
	client->params = *env->params;
	client->request = calloc(1, request);
	client->answer = calloc(1, answer);
	if (client->request && client->answer)
		rc = rpc_open_own(&client->conn, env, RFP_HEADER,
				  request > answer ? request : answer, answer);
	if (rc)
		drop(client);
	else
		*out = client;
	return rc;
}

static uint64_t request_at(const struct client *client)
{
	return client->conn.index * rfp_request_bytes(&client->params);
}

static uint64_t answer_at(const struct client *client)
{
	unsigned index = has_bug(&client->params, answers_shared) ? 0 : client->conn.index;

	return index * rfp_answer_bytes(&client->params);
}

/* Is this the header of the answer that is waited for? If so, its size is known. */
static bool is_answer(struct client *client, uint64_t word)
{
	struct rfp_header header = rfp_header(word);

	if (!header.there)
		return false;
	if (client->params.knob[FRESH] == FRESH_NUMBER &&
	    !has_bug(&client->params, number_unchecked) &&
	    !rt_check(header.number == client->number))
		return false;
	client->size = header.size;
	client->us = header.mode_or_us;
	return true;
}

/* ---------------------------------------------------------------- asking */

/* What is left of the last answer must not be taken for the next. With numbers it cannot be. */
static int forget_answer(struct client *client)
{
	uint8_t knob = client->params.knob[FRESH];

	if (knob == FRESH_NUMBER)
		return 0;
	memset(client->conn.own, 0, RFP_HEADER);
	return knob == FRESH_CLEAR
		       ? rpc_write_word(&client->conn, RFP_ANSWERS, answer_at(client), 0)
		       : 0;
}

/* In one WRITE, or in two, the first one of `first` bytes. */
static int send_in_front(struct client *client, uint32_t size, size_t first)
{
	uint64_t at = request_at(client);
	size_t all = RFP_HEADER + size;
	int rc = rpc_write(&client->conn, RFP_REQUESTS, at, client->request,
			   first < all ? first : all);

	if (rc || all <= first)
		return rc;
	return rpc_write(&client->conn, RFP_REQUESTS, at + first, client->request + first,
			 all - first);
}

/* The header lands after the payload. */
static int send_request(struct client *client, uint32_t size, uint16_t mode)
{
	struct rpc_conn *conn = &client->conn;
	struct rfp_header header = {true, size, mode, ++client->number};
	uint64_t word = rfp_word(&header), at = request_at(client);
	int rc = forget_answer(client);

	if (rc)
		return rc;
	memcpy(client->request, &word, RFP_HEADER);
	if (client->params.knob[REQUEST] == REQUEST_ONE_WRITE)
		return send_in_front(client, size, SIZE_MAX);
	if (has_bug(&client->params, header_first))
		return send_in_front(client, size, TM_LINE);
	rc = rpc_write_behind(conn, RFP_REQUESTS, at + RFP_HEADER, client->request + RFP_HEADER,
			      size);
	return rc ? rc : rpc_write_word(conn, RFP_REQUESTS, at, word);
}

/* -------------------------------------------------------------- answered */

static int read_answer(struct client *client, size_t off, size_t len, const void **data)
{
	return kv_read_on(&client->conn, RFP_ANSWERS, answer_at(client) + off, len, data);
}

/* One look. -EAGAIN: the answer is not there. */
static int fetch(struct client *client)
{
	size_t first = fetch_bytes(&client->params), bytes;
	const void *data;
	uint64_t word;
	int rc = read_answer(client, 0, first, &data);

	if (rc)
		return rc;
	memcpy(&word, data, sizeof(word));
	if (!is_answer(client, word))
		return -EAGAIN;
	bytes = RFP_HEADER + client->size;
	if (bytes > rfp_answer_bytes(&client->params))
		return -EPROTO;
	memcpy(client->answer, data, bytes < first ? bytes : first);
	if (bytes <= first || has_bug(&client->params, no_second_read))
		return 0;
	rc = read_answer(client, first, bytes - first, &data);
	if (!rc)
		memcpy(client->answer + first, data, bytes - first);
	return rc;
}

static bool is_written(void *arg)
{
	struct client *client = arg;

	return is_answer(client,
			 __atomic_load_n((const uint64_t *)client->conn.own, __ATOMIC_SEQ_CST));
}

/* The server writes the answer: payload, then header. */
static int wait_answer(struct client *client)
{
	int rc = kv_wait_own(&client->conn, RFP_ANSWERS, is_written, client);

	if (rc)
		return rc;
	if (RFP_HEADER + client->size > rfp_answer_bytes(&client->params))
		return -EPROTO;
	memcpy(client->answer, client->conn.own, RFP_HEADER + client->size);
	return 0;
}

/* From now on the server is to write. 0: it will, if the answer is not there when it is fetched
 * once more. -ENOMEM: it was not asked. */
static int switch_mode(struct client *client)
{
	const uint16_t mode = RFP_WRITE;
	int rc = rpc_write(&client->conn, RFP_REQUESTS, request_at(client) + RFP_MODE, &mode,
			   sizeof(mode));

	if (!rc)
		client->mode = mode;
	return rc;
}

/* Fetch until it is there; or, after some in vain, have the server write it. */
static int fetch_answer(struct client *client)
{
	uint64_t nap = KV_NAP_NS;
	unsigned vain = 0;
	int rc;

	for (;;) {
		rc = fetch(client);
		if (rc != -EAGAIN)
			return rc;
		if (++vain < RFP_FETCHES)
			continue;
		if (client->params.knob[HYBRID] == HYBRID_ON) {
			rc = switch_mode(client);
			if (rc != -ENOMEM)
				break;
		}
		kv_nap(&nap);
	}
	if (!rc)
		rc = has_bug(&client->params, switch_blind) ? -EAGAIN : fetch(client);
	return rc == -EAGAIN ? wait_answer(client) : rc;
}

/* Send client->request with `size` bytes of payload; the status. `put`: it changes something. */
static int call(struct client *client, uint32_t size, bool put)
{
	bool write = put && client->params.knob[PUT_REPLY] == PUT_REPLY_WRITE;
	uint16_t mode = write ? RFP_WRITE : client->mode;
	struct rfp_answer answer;
	int rc = send_request(client, size, mode);

	if (!rc)
		rc = mode == RFP_WRITE ? wait_answer(client) : fetch_answer(client);
	if (rc)
		return rc;
	if (client->size < sizeof(answer))
		return -EPROTO;
	if (client->us <= RFP_SHORT_US)
		client->mode = RFP_FETCH;
	memcpy(&answer, client->answer + RFP_HEADER, sizeof(answer));
	return answer.status;
}

static int ask(struct client *client, enum kv_op op, const void *key, size_t klen,
	       const void *value, size_t vlen)
{
	struct kv_req *req = (struct kv_req *)(client->request + RFP_HEADER);
	int rc = kv_req_fill(req, op, key, klen, value, vlen, client->params.max_vlen);

	return rc ? rc : call(client, (uint32_t)(sizeof(*req) + vlen), op != KV_GET);
}

int rfp_put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return ask(client, KV_PUT, key, klen, value, vlen);
}

int rfp_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	const size_t head = sizeof(struct rfp_answer);
	int rc = ask(client, KV_GET, key, klen, NULL, 0);

	if (rc)
		return rc;
	*vlen = client->size - head;
	memcpy(value, client->answer + RFP_HEADER + head, *vlen < cap ? *vlen : cap);
	return 0;
}

int rfp_del(void *client, const void *key, size_t klen)
{
	return ask(client, KV_DEL, key, klen, NULL, 0);
}
