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

#define SPINS 20 /* rounds that find nothing before the server takes a nap */

/* What of an answer is still to be sent. */
enum owed { OWES_NOTHING, OWES_FIRST, OWES_SECOND };

struct server {
	struct tm_params params;
	struct rpc_server rpc;
	struct kv_place place;
	uint8_t *requests, *answers;
	uint8_t *owed; /* enum owed, by the connection's number */
};

static uint8_t *request_of(const struct server *server, unsigned index)
{
	return server->requests + index * rfp_request_bytes(&server->params);
}

static uint8_t *answer_of(const struct server *server, unsigned index)
{
	if (has_bug(&server->params, BUG_ANSWERS_SHARED))
		index = 0;
	return server->answers + index * rfp_answer_bytes(&server->params);
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

/* What the server does without. */
static unsigned lacks(const struct tm_params *params)
{
	unsigned lacks = params->knob[PERSIST] ? KV_LACKS_PERSIST : 0;

	if (has_bug(params, BUG_VALUE_UNFLUSHED))
		lacks |= KV_LACKS_VALUE;
	if (has_bug(params, BUG_ENTRY_FIRST))
		lacks |= KV_LACKS_ORDER;
	if (has_bug(params, BUG_DELETE_UNFLUSHED))
		lacks |= KV_LACKS_DELETE;
	return lacks;
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
	if (!is_request(server, req, size))
		return -EPROTO;
	switch (req->op) {
	case KV_PUT:
		return kv_place_put(&server->place, req, req + 1);
	case KV_GET:
		*value = kv_place_get(&server->place, req->key, vlen);
		return *value ? 0 : -ENOENT;
	case KV_DEL:
		kv_place_del(&server->place, req->key);
		return 0;
	default:
		return -EPROTO;
	}
}

/* ------------------------------------------------------------- answering */

/* Have the client's NIC write what the buffer holds into the client's: payload, then header.
 * Nothing more can be done for a client whose connection has failed. */
static void send_answer(struct server *server, unsigned index)
{
	const uint8_t *answer = answer_of(server, index);
	size_t at = (size_t)(answer - server->answers);
	bool bug = has_bug(&server->params, BUG_WRITTEN_HEADER_FIRST);

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
	int status;

	if (has_bug(params, BUG_ANSWER_EARLY)) {
		store_payload(answer, 0, NULL, 0);
		header_store(answer, &header);
	}
	status = execute(server, (const struct kv_req *)(request + RFP_HEADER), asked->size, &value,
			 &vlen);
	header.size += vlen;
	header.mode_or_us = us_since(begin);
	if (has_bug(params, BUG_STATUS_FIRST))
		header_store(answer, &header);
	store_payload(answer, status, value, vlen);
	header_store(answer, &header);
	/* Not before: the client may change it until then, and after that it fetches once more. */
	if ((has_bug(params, BUG_MODE_EARLY) ? early : mode_load(request)) == RFP_WRITE)
		server->owed[index] = OWES_FIRST;
}

/* Take the request out of its buffer, and answer it. */
static void take_request(struct server *server, unsigned index, const struct rfp_header *asked)
{
	__atomic_store_n((uint32_t *)request_of(server, index), 0, __ATOMIC_SEQ_CST);
	if (server->params.knob[FRESH] == FRESH_TAKEN)
		__atomic_store_n((uint32_t *)answer_of(server, index), 0, __ATOMIC_SEQ_CST);
	serve_request(server, index, asked);
}

/* True: there was something to do for this connection. */
static bool serve_connection(struct server *server, unsigned index)
{
	struct rpc_peer *peer = &server->rpc.peer[index];
	struct rfp_header asked = rfp_header(header_load(request_of(server, index)));
	bool owes = server->owed[index];

	if (!peer->qp || peer->failed || (!owes && !asked.there))
		return false;
	if (!owes && peer->writing) /* the buffer is not free: is it now? */
		return rpc_server_poll(&server->rpc);
	peer->busy = true; /* from here on its client cannot take its place */
	if (!owes)
		take_request(server, index, &asked);
	send_answer(server, index);
	peer->busy = false;
	return true;
}

/* Completions are those of WRITEs, for which the next request of the same client alone waits. All
 * others are taken when there is nothing else to do. */
static void poll_task(void *arg)
{
	struct server *server = arg;
	uint64_t nap = KV_NAP_NS;
	unsigned vain = 0;

	for (;;) {
		bool found = false;

		for (unsigned i = 0; i < server->rpc.peers; i++)
			found |= serve_connection(server, i);
		if (found) {
			nap = KV_NAP_NS;
			vain = 0;
		} else if (vain++ < SPINS) {
			rt_yield();
		} else if (!rpc_server_poll(&server->rpc)) {
			kv_nap(&nap);
		}
	}
}

/* -------------------------------------------------------------- starting */

/* A client's number begins at 1 again. What it finds here of a former self would be its answer. */
static void empty_buffers(void *arg, unsigned index)
{
	struct server *server = arg;

	if (has_bug(&server->params, BUG_BUFFERS_KEPT))
		return;
	memset(request_of(server, index), 0, rfp_request_bytes(&server->params));
	memset(answer_of(server, index), 0, rfp_answer_bytes(&server->params));
	server->owed[index] = OWES_NOTHING;
}

/* All goes by the buffers. */
static size_t handle(void *server, const struct rpc_msg *msg, void *reply, size_t cap)
{
	(void)server;
	(void)msg;
	(void)reply;
	(void)cap;
	return 0;
}

static uint8_t *buffers(size_t bytes)
{
	uint8_t *at = aligned_alloc(TM_LINE, bytes);

	if (at)
		memset(at, 0, bytes);
	return at;
}

/* Regions RFP_REQUESTS and RFP_ANSWERS. */
static int export(struct server *server)
{
	size_t requests = server->rpc.max_peers * rfp_request_bytes(&server->params);
	size_t answers = server->rpc.max_peers * rfp_answer_bytes(&server->params);
	int rc;

	server->requests = buffers(requests);
	server->answers = buffers(answers);
	server->owed = calloc(server->rpc.max_peers, sizeof(*server->owed));
	if (!server->requests || !server->answers || !server->owed)
		return -ENOMEM;
	rc = rpc_server_export(&server->rpc, server->requests, requests,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (rc)
		return rc;
	/* Clients write there with fresh=clear only. */
	return rpc_server_export(&server->rpc, server->answers, answers,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					 IBV_ACCESS_REMOTE_WRITE);
}

int rfp_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));
	int rc;

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->place = kv_place_at(env, lacks(env->params));
	rc = rpc_server_init(&server->rpc, env, RFP_HEADER, handle, server);
	if (rc)
		return rc;
	server->rpc.connected = empty_buffers;
	rc = export(server);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	return rc ? rc : rt_spawn("server", poll_task, server);
}
