/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server: one task polls all clients' slots, executes what it finds, and sends the replies. See
 * herd.h. A reply that could not be sent is as good as lost: the client repeats its request.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/herd/herd.h"

#define IMM_RECVS  2 /* of a client */
#define POLL_BATCH 4
/* Bits of a work request's id. */
#define RECEIVE	   (1ull << 31)
#define GENERATION 32 /* from this bit on; below it the client's index */

struct peer {
	struct ibv_qp *qp; /* NULL: it is about to connect */
	struct ibv_ah *ah;
	uint32_t client, replies; /* its number; its queue pair for replies */
	uint32_t generation;	  /* how often it has connected */
	uint32_t part;		  /* bytes of a value in one datagram */
	uint32_t done;		  /* its last request that was executed; 0: none */
	unsigned parts;		  /* datagrams of the reply to that */
	size_t last;		  /* bytes of the last of them */
	unsigned sending;	  /* its NIC has not sent so many datagrams yet */
	unsigned posted;	  /* receives for immediates */
	bool called;		  /* an immediate has come */
	bool busy;		  /* what it sent is being handled */
};

struct server {
	struct tm_params params;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *replies;
	struct rpc_greeting replies_hello;
	struct ibv_mr *slots_mr, *out_mr;
	uint8_t *slots;
	uint8_t *out; /* by client: HERD_PARTS datagrams */
	struct peer *peer;
	unsigned peers;
	struct kv_place place;
	struct herd_undo *undo;
};

/* A task of the server, and the value of the request that it executes. */
struct worker {
	struct server *server;
	uint8_t value[HERD_MAX_VALUE];
};

static uint8_t *slot_of(const struct server *server, unsigned index)
{
	return server->slots + (size_t)index * HERD_SLOT;
}

/* A client's lie one after the other, each as long as the largest. */
static uint8_t *datagram_of(const struct server *server, unsigned index, unsigned part)
{
	return server->out + ((size_t)index * HERD_PARTS + part) * HERD_LARGEST;
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

/* Returns the status. What a GET has found is *found, *vlen bytes. */
static int execute(struct server *server, const struct kv_req *req, const void *value,
		   const void **found, uint32_t *vlen)
{
	const struct tm_params *params = &server->params;

	if (params->knob[BACKEND] == BACKEND_TX && req->op == KV_PUT)
		return herd_tx_put(&server->place, server->undo, params, req, value);
	if (params->knob[BACKEND] == BACKEND_TX && req->op == KV_DEL) {
		herd_tx_del(&server->place, server->undo, params, req->key);
		return 0;
	}
	return kv_place_execute(&server->place, req, value, found, vlen);
}

/* --------------------------------------------------------------- replying */

static void make_reply(struct server *server, unsigned index, int status, const uint8_t *value,
		       uint32_t vlen)
{
	struct peer *peer = &server->peer[index];
	struct herd_reply head = {.number = peer->done, .status = status, .vlen = vlen};
	uint32_t len;

	peer->parts = 0;
	do {
		uint8_t *datagram = datagram_of(server, index, peer->parts++);

		len = vlen - head.from < peer->part ? vlen - head.from : peer->part;
		memcpy(datagram, &head, sizeof(head));
		if (len)
			memcpy(datagram + sizeof(head), value + head.from, len);
		head.from += len;
	} while (head.from < vlen);
	peer->last = sizeof(head) + len;
}

static void send_reply(struct server *server, unsigned index)
{
	struct peer *peer = &server->peer[index];
	uint64_t id = (uint64_t)peer->generation << GENERATION | index;

	assert(peer->parts <= HERD_PARTS && peer->last <= HERD_LARGEST);
	for (unsigned i = 0; i < peer->parts; i++) {
		size_t len = i + 1 < peer->parts ? sizeof(struct herd_reply) + peer->part
						 : peer->last;

		if (!rpc_qp_send_to(server->replies, id, datagram_of(server, index, i), len,
				    server->out_mr->lkey, peer->ah, peer->replies))
			peer->sending++;
	}
}

/* --------------------------------------------------------------- requests */

static uint64_t *word_of(const struct server *server, unsigned index)
{
	return (uint64_t *)(slot_of(server, index) + herd_head_at(&server->params) +
			    offsetof(struct herd_head, word));
}

/* Copy the request, which its client may write again at any time. Is it whole? */
static bool copy_request(struct worker *worker, unsigned index, struct herd_head *head)
{
	const struct tm_params *params = &worker->server->params;
	const uint8_t *slot = slot_of(worker->server, index);

	memcpy(head, slot + herd_head_at(params), sizeof(*head));
	if (head->req.vlen > HERD_MAX_VALUE || head->req.klen == 0 || head->req.klen > TM_MAX_KEY)
		return false;
	memcpy(worker->value, slot + herd_value_at(params, head->req.vlen), head->req.vlen);
	return params->knob[CHECK] == CHECK_WORD ||
	       rt_check(head->req.crc == herd_crc(head, worker->value));
}

/* A request that has not been executed. */
static void serve_new(struct server *server, unsigned index, const struct herd_head *head,
		      const uint8_t *value)
{
	struct peer *peer = &server->peer[index];
	const void *found = NULL;
	uint32_t vlen = 0;

	peer->done = (uint32_t)(head->word >> 32);
	if (server->params.knob[REPLY_FIRST] && head->req.op != KV_GET) {
		make_reply(server, index, 0, NULL, 0);
		send_reply(server, index);
		execute(server, &head->req, value, &found, &vlen);
		return;
	}
	int status = execute(server, &head->req, value, &found, &vlen);
	make_reply(server, index, status, found, vlen);
	send_reply(server, index);
}

/* A number that is not above the last one: the request was executed, or given up by its client. */
static void serve_request(struct server *server, unsigned index, const struct herd_head *head,
			  const uint8_t *value)
{
	struct peer *peer = &server->peer[index];
	uint32_t number = (uint32_t)(head->word >> 32);
	bool repeated = server->params.knob[NUMBERS] != NUMBERS_OFF &&
			!rt_check((int32_t)(number - peer->done) > 0);

	if (!repeated || (has_bug(&server->params, repeat_executes) && number == peer->done))
		serve_new(server, index, head, value);
	else if (number == peer->done)
		send_reply(server, index);
}

/* True: there was something to do for this client. */
static bool serve_client(struct worker *worker, unsigned index)
{
	struct server *server = worker->server;
	struct peer *peer = &server->peer[index];
	uint64_t *word = word_of(server, index);
	struct herd_head head;

	if (!peer->qp || peer->sending ||
	    (server->params.knob[REQUEST] == REQUEST_IMM && !peer->called) ||
	    !(__atomic_load_n(word, __ATOMIC_SEQ_CST) & 1))
		return false;
	peer->busy = true; /* from here on its client cannot take its place */
	peer->called = false;
	bool whole = copy_request(worker, index, &head);
	if (whole) {
		__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
		serve_request(server, index, &head, worker->value);
	}
	peer->busy = false;
	return whole;
}

/* -------------------------------------------------------------- completions */

/* For the client's immediates. A call that fails is made up for later. */
static void post_receives(struct server *server, unsigned index)
{
	struct peer *peer = &server->peer[index];
	uint64_t id = (uint64_t)peer->generation << GENERATION | RECEIVE | index;

	while (server->params.knob[REQUEST] == REQUEST_IMM && peer->posted < IMM_RECVS &&
	       !rpc_qp_recv(peer->qp, id, slot_of(server, index), HERD_SLOT,
			    server->slots_mr->lkey))
		peer->posted++;
}

static void take_completion(struct server *server, const struct ibv_wc *wc)
{
	uint32_t what = (uint32_t)wc->wr_id;
	struct peer *peer = &server->peer[what & ~RECEIVE];

	if (wc->wr_id >> GENERATION != peer->generation || !peer->qp)
		return;
	if (!(what & RECEIVE)) {
		peer->sending--;
		return;
	}
	peer->posted--;
	peer->called = wc->status == IBV_WC_SUCCESS;
}

static unsigned poll_completions(struct server *server)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(server->cq, POLL_BATCH, wc);

	for (int i = 0; i < n; i++)
		take_completion(server, &wc[i]);
	return n > 0 ? (unsigned)n : 0;
}

static void poll_task(void *arg)
{
	struct worker *worker = arg;
	struct server *server = worker->server;
	struct kv_idle idle = {0};

	for (;;) {
		bool found = poll_completions(server);

		for (unsigned i = 0; i < server->peers; i++) {
			found |= serve_client(worker, i);
			if (server->peer[i].qp)
				post_receives(server, i);
		}
		if (kv_idle_yield(&idle, found))
			continue;
		if (server->params.knob[REQUEST] == REQUEST_IMM)
			rt_yield();
		else
			kv_idle_nap(&idle);
	}
}

/* -------------------------------------------------------------- connecting */

static void close_peer(struct peer *peer)
{
	if (peer->qp)
		ibv_destroy_qp(peer->qp);
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	peer->qp = NULL;
	peer->ah = NULL;
}

/* The client's index; server->peers: it has never connected. */
static unsigned index_of(const struct server *server, uint32_t client)
{
	unsigned i = 0;

	while (i < server->peers && server->peer[i].client != client)
		i++;
	return i;
}

/* The client's place: its former self's, or a new one. */
static int find_peer(struct server *server, uint32_t client, unsigned *index)
{
	*index = index_of(server, client);
	if (*index == server->params.clients)
		return -EUSERS;
	if (*index == server->peers)
		server->peers++;
	assert(*index < server->peers && server->peers <= server->params.clients);
	return server->peer[*index].busy ? -EAGAIN : 0;
}

/* Its numbers begin again, and its slot holds a request of its former self. */
static void forget_client(struct server *server, unsigned index, const struct herd_hello *hello)
{
	struct peer *peer = &server->peer[index];

	close_peer(peer);
	peer->client = hello->writes.client;
	peer->replies = hello->replies.qpn;
	peer->generation++;
	peer->part = herd_part(&server->replies_hello, &hello->replies);
	assert((size_t)peer->part * HERD_PARTS >= HERD_MAX_VALUE);
	peer->sending = peer->posted = 0;
	peer->called = false;
	if (!has_bug(&server->params, client_kept)) {
		peer->done = hello->number;
		peer->parts = 0;
	}
	memset(slot_of(server, index), 0, HERD_SLOT);
}

static int connect_peer(struct server *server, unsigned index, const struct herd_hello *hello,
			struct herd_welcome *welcome)
{
	struct peer *peer = &server->peer[index];

	peer->ah = rpc_address(server->pd, &server->replies_hello, &hello->replies);
	if (!peer->ah)
		return -ENOMEM;
	struct ibv_qp *qp = herd_qp_open(server->pd, server->cq, false, 0, 0,
					 &welcome->server.writes);
	if (!qp)
		return -ENOMEM;
	int rc = herd_qp_ready(qp, &welcome->server.writes, &hello->writes);
	if (rc)
		ibv_destroy_qp(qp);
	else
		peer->qp = qp;
	return rc;
}

static bool has_connection(const struct server *server, const struct herd_hello *hello)
{
	unsigned i = index_of(server, hello->writes.client);

	return i < server->peers && server->peer[i].qp &&
	       server->peer[i].generation == hello->connection;
}

/* A client connects, or asks whether it is connected. */
static int server_accept(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	struct server *server = arg;
	struct herd_hello hello;
	struct herd_welcome welcome;
	unsigned index;

	if (req_len != sizeof(hello) || rsp_len < sizeof(welcome))
		return -EPROTO;
	memcpy(&hello, req, sizeof(hello));
	memset(&welcome, 0, sizeof(welcome));
	if (hello.connection)
		return has_connection(server, &hello) ? 0 : -ENOTCONN;
	int rc = find_peer(server, hello.writes.client, &index);
	if (rc)
		return rc;
	forget_client(server, index, &hello);
	rc = connect_peer(server, index, &hello, &welcome);
	if (rc)
		return rc;
	post_receives(server, index);
	welcome.server.replies = server->replies_hello;
	welcome.slot.base = (uintptr_t)slot_of(server, index);
	welcome.slot.len = HERD_SLOT;
	welcome.slot.rkey = server->slots_mr->rkey;
	welcome.index = index;
	welcome.connection = server->peer[index].generation;
	memcpy(rsp, &welcome, sizeof(welcome));
	return 0;
}

/* ---------------------------------------------------------------- starting */

static int make_buffers(struct server *server, const struct tm_env *env)
{
	size_t clients = env->params->clients, slots = clients * HERD_SLOT;
	size_t out = clients * HERD_PARTS * HERD_LARGEST;

	server->slots = aligned_alloc(HERD_SLOT, slots);
	server->out = calloc(1, out);
	server->peer = calloc(clients, sizeof(*server->peer));
	server->pd = ibv_alloc_pd(env->verbs);
	if (!server->slots || !server->out || !server->peer || !server->pd)
		return -ENOMEM;
	memset(server->slots, 0, slots);
	server->slots_mr = ibv_reg_mr(server->pd, server->slots, slots,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	server->out_mr = ibv_reg_mr(server->pd, server->out, out, IBV_ACCESS_LOCAL_WRITE);
	server->cq = ibv_create_cq(env->verbs, (int)(clients * 8 * HERD_PARTS), NULL, NULL, 0);
	return server->slots_mr && server->out_mr && server->cq ? 0 : -ENOMEM;
}

static int start_worker(struct server *server, const char *name)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return -ENOMEM;
	worker->server = server;
	return rt_spawn(name, poll_task, worker);
}

int herd_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->place = kv_place_at(env, lacks(env->params));
	server->undo = herd_undo_at(env->params, env->pm);
	int rc = make_buffers(server, env);
	if (rc)
		return rc;
	server->replies = herd_qp_open(server->pd, server->cq, true,
				       env->params->clients * HERD_PARTS, 0,
				       &server->replies_hello);
	if (!server->replies)
		return -ENOMEM;
	rc = herd_qp_ready(server->replies, &server->replies_hello, NULL);
	if (!rc)
		rc = rt_listen(server_accept, server);
	if (!rc && has_bug(env->params, two_workers))
		rc = start_worker(server, "second");
	return rc ? rc : start_worker(server, "server");
}
