/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server: one task polls the request buffers of all connections, executes what it finds, and
 * writes to those clients that want it. See rfp.h.
 *
 * An answer's buffer is the source of the WRITEs that send it. A client that has fetched the answer
 * meanwhile goes on to its next request, which is taken when they are acknowledged: until then the
 * NIC may have to send them once more, and would find the next answer's header there, with a number
 * that is waited for, before it has sent all of that answer's payload.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/rfp/rfp.h"

/* What of an answer is still to be sent. */
enum owed { OWES_NOTHING, OWES_FIRST, OWES_SECOND };

struct server {
	struct tm_params params;
	struct rpc_server rpc;
	struct kv_place place;
	struct kv_slots requests, answers;
	struct rfp_header asked; /* of the request that was looked at last */
	uint8_t *owed;		 /* enum owed, by the connection's number */
};

static uint8_t *request_of(const struct server *server, unsigned index)
{
	return kv_slot(&server->requests, index);
}

static uint8_t *answer_of(const struct server *server, unsigned index)
{
	if (has_bug(&server->params, answers_shared))
		index = 0;
	return kv_slot(&server->answers, index);
}

static uint64_t header_load(const uint8_t *buffer)
{
	return __atomic_load_n((const uint64_t *)buffer, __ATOMIC_SEQ_CST);
}

static void header_store(uint8_t *buffer, const struct rfp_header *h)
{
	__atomic_store_n((uint64_t *)buffer, rfp_word(h), __ATOMIC_SEQ_CST);
}

/* ------------------------------------------------------------- executing */

/* Steps of persisting that the server leaves out. */
static unsigned lacks(const struct tm_params *params)
{
	return (params->knob[PERSIST] ? KV_LACKS_PERSIST : 0) |
	       (has_bug(params, value_unflushed) ? KV_LACKS_VALUE : 0) |
	       (has_bug(params, entry_first) ? KV_LACKS_ORDER : 0) |
	       (has_bug(params, delete_unflushed) ? KV_LACKS_DELETE : 0);
}

static bool is_request(const struct server *server, const struct kv_req *req, uint32_t size)
{
	const struct rpc_msg msg = {.bytes = req, .len = size};

	return RFP_HEADER + size <= rfp_request_bytes(&server->params) && kv_is_request(&msg, true);
}

/* Returns the status. What a GET has found is *value, *vlen bytes. */
static int execute(struct server *server, const struct kv_req *req, uint32_t size,
		   const void **value, uint32_t *vlen)
{
	return is_request(server, req, size)
		       ? kv_place_execute(&server->place, req, req + 1, value, vlen)
		       : -EPROTO;
}

/* ------------------------------------------------------------- answering */

/* Have the client's NIC write what the buffer holds into the client's: payload, then header.
 * Nothing more can be done for a client whose connection has failed. */
static void send_answer(void *arg, unsigned index)
{
	struct server *server = arg;
	const uint8_t *answer = answer_of(server, index);
	size_t at = (size_t)(answer - server->answers.at);
	bool bug = has_bug(&server->params, written_header_first);

	while (server->owed[index]) {
		bool payload = (server->owed[index] == OWES_FIRST) != bug;
		size_t off = payload ? RFP_HEADER : 0;
		size_t len = payload ? rfp_header(header_load(answer)).size : RFP_HEADER;
		int rc = rpc_server_write(&server->rpc, index, RFP_ANSWERS, at + off, len, off);

		if (rc == -ENOMEM) /* refused: another time */
			return;
		server->owed[index] = rc || server->owed[index] == OWES_SECOND ? OWES_NOTHING
									       : OWES_SECOND;
	}
}

static uint16_t mode_load(const uint8_t *request)
{
	return __atomic_load_n((const uint16_t *)(request + RFP_MODE), __ATOMIC_SEQ_CST);
}

static void store_payload(uint8_t *answer, int status, const void *value, uint32_t vlen)
{
	const struct rfp_answer head = {.status = status};

	memcpy(answer + RFP_HEADER, &head, sizeof(head));
	if (vlen)
		memcpy(answer + RFP_HEADER + sizeof(head), value, vlen);
}

/* Saturating. */
static uint16_t us_since(uint64_t ns)
{
	uint64_t us = (rt_now() - ns) / 1000;

	return us < UINT16_MAX ? (uint16_t)us : UINT16_MAX;
}

/* Execute a request, whose header this is, and answer it. */
static void serve_request(struct server *server, unsigned index, const struct rfp_header *asked)
{
	const struct tm_params *params = &server->params;
	uint8_t *request = request_of(server, index), *answer = answer_of(server, index);
	struct rfp_header header = {true, sizeof(struct rfp_answer), 0, asked->number};
	uint64_t begin = rt_now();
	uint16_t early = mode_load(request);
	const void *value = NULL;
	uint32_t vlen = 0;

	if (has_bug(params, answer_early)) {
		store_payload(answer, 0, NULL, 0);
		header_store(answer, &header);
	}
	int status = execute(server, (const struct kv_req *)(request + RFP_HEADER), asked->size,
			     &value, &vlen);
	header.size += vlen;
	header.mode_or_us = us_since(begin);
	if (has_bug(params, status_first))
		header_store(answer, &header);
	store_payload(answer, status, value, vlen);
	if (has_bug(params, mode_first))
		early = mode_load(request);
	header_store(answer, &header);
	/* Not before: the client may change it until then, and after that it fetches once more. */
	if ((has_bug(params, mode_early) || has_bug(params, mode_first)
		     ? early
		     : mode_load(request)) == RFP_WRITE)
		server->owed[index] = OWES_FIRST;
}

static bool has_arrived(void *arg, unsigned index)
{
	struct server *server = arg;

	server->asked = rfp_header(header_load(request_of(server, index)));
	return server->asked.there;
}

/* Take the request out of its buffer, and answer it. */
static void take_request(void *arg, unsigned index)
{
	struct server *server = arg;

	__atomic_store_n((uint32_t *)request_of(server, index), 0, __ATOMIC_SEQ_CST);
	if (server->params.knob[FRESH] == FRESH_TAKEN)
		__atomic_store_n((uint32_t *)answer_of(server, index), 0, __ATOMIC_SEQ_CST);
	serve_request(server, index, &server->asked);
}

static bool owes_answer(void *arg, unsigned index)
{
	const struct server *server = arg;

	return server->owed[index] != OWES_NOTHING;
}

static void poll_task(void *arg)
{
	static const struct kv_slot_calls calls = {has_arrived, take_request, owes_answer,
						   send_answer, 0};
	struct server *server = arg;

	kv_slots_serve(&server->rpc, &calls, server);
}

/* -------------------------------------------------------------- starting */

/* A client's number begins at 1 again. What it finds here of a former self would be its answer. */
static void empty_buffers(void *arg, unsigned index)
{
	struct server *server = arg;

	if (has_bug(&server->params, buffers_kept))
		return;
	memset(request_of(server, index), 0, rfp_request_bytes(&server->params));
	memset(answer_of(server, index), 0, rfp_answer_bytes(&server->params));
	server->owed[index] = OWES_NOTHING;
}

/* Regions RFP_REQUESTS and RFP_ANSWERS. To the latter clients write with fresh=clear only. */
static int export(struct server *server)
{
	const struct tm_params *params = &server->params;

	server->owed = calloc(server->rpc.max_peers, sizeof(*server->owed));
	if (!server->owed)
		return -ENOMEM;
	int rc = kv_slots_open(&server->requests, &server->rpc, rfp_request_bytes(params),
			       IBV_ACCESS_REMOTE_WRITE);
	return rc ? rc
		  : kv_slots_open(&server->answers, &server->rpc, rfp_answer_bytes(params),
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
}

int rfp_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->place = kv_place_at(env, lacks(env->params));
	int rc = rpc_server_init(&server->rpc, env, RFP_HEADER, kv_no_messages, server);
	if (rc)
		return rc;
	server->rpc.connected = empty_buffers;
	rc = export(server);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	return rc ? rc : rt_spawn("server", poll_task, server);
}
