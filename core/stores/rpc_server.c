/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's end of rpc.h: one completion queue for all clients; a work request's
 * id names the slot, and so the connection. A slot's life:
 *
 *	posted -> message arrived -> handled -> reply sent -> reply acknowledged -> posted
 *
 * (without a reply: handled -> posted), so its two buffers are never overwritten
 * while the NIC may still read them for a retransmission.
 *
 * On a connection for notices the server speaks first. A notice has a buffer of its
 * own per connection, which is free again when the client's NIC has acknowledged it.
 *
 * When a client connects again, its old queue pairs are destroyed and the new ones take
 * over their slots. Completions of the old ones may still be in the queue, as not every NIC
 * takes them out: the id also has the connection's generation.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/kv.h"
#include "core/stores/rpc_qp.h"

#define POLL_BATCH   4
#define REFUSALS     16 /* in a row, of one client */
#define NOTICE_BYTES 64 /* the longest notice */
/* Bits of a work request's id, which has the number of the connection instead of a slot. */
#define NOTICE	   (1ull << 31)
#define WRITTEN	   (1ull << 30) /* rpc_server_write() */
#define GENERATION 32		/* from this bit on */

static uint8_t *slot_msg(const struct rpc_server *server, uint64_t slot)
{
	return server->msgs + slot * server->msg_bytes;
}

static uint8_t *slot_reply(const struct rpc_server *server, uint64_t slot)
{
	return server->replies + slot * server->msg_bytes;
}

static uint64_t wr_id(const struct rpc_peer *peer, uint64_t what)
{
	return (uint64_t)peer->generation << GENERATION | what;
}

/* Make a slot ready for the client's next message. */
static int slot_post(struct rpc_server *server, uint64_t slot)
{
	struct rpc_peer *peer = &server->peer[slot / RPC_SLOTS];

	if (!peer->qp) /* dropped while its message was handled */
		return -EIO;
	return rpc_qp_recv(peer->qp, wr_id(peer, slot), slot_msg(server, slot), server->msg_bytes,
			   server->msg_mr->lkey);
}

static int slot_send(struct rpc_server *server, uint64_t slot, size_t len)
{
	struct rpc_peer *peer = &server->peer[slot / RPC_SLOTS];

	assert(len <= server->msg_bytes);
	if (!peer->qp)
		return -EIO;
	return rpc_qp_send(peer->qp, wr_id(peer, slot), slot_reply(server, slot), len,
			   server->reply_mr->lkey);
}

/*
 * The next in a slot's life: its reply is sent, or, `len` 0, it is posted. A request that
 * the queue pair refuses (ENOMEM) is owed. A client to which nothing can be posted any more
 * is dropped: its NIC does not know of what was refused, and the client would wait for ever.
 */
static void slot_go_on(struct rpc_server *server, uint64_t slot, size_t len)
{
	struct rpc_peer *peer = &server->peer[slot / RPC_SLOTS];
	int rc = len ? slot_send(server, slot, len) : slot_post(server, slot);

	server->owed[slot] = 0;
	if (!rc) {
		peer->refused = 0;
	} else if (!peer->qp) {
		peer->failed = true;
	} else if (peer->refused++ < REFUSALS) {
		server->owed[slot] = (uint32_t)len + 1;
		server->owing = true;
	} else {
		rpc_server_drop(server, peer->client);
	}
}

static unsigned max_peers(const struct tm_params *params)
{
	return 2 * params->clients;
}

size_t rpc_server_msgs_bytes(const struct tm_params *params, size_t msg_bytes)
{
	return max_peers(params) * RPC_SLOTS * kv_round_up(msg_bytes, 8);
}

int rpc_server_init_in(struct rpc_server *server, const struct tm_env *env, size_t msg_bytes,
		       rpc_handler *handler, void *arg, void *msgs)
{
	size_t bytes = rpc_server_msgs_bytes(env->params, msg_bytes);

	memset(server, 0, sizeof(*server));
	server->verbs = env->verbs;
	server->handler = handler;
	server->arg = arg;
	server->msg_bytes = kv_round_up(msg_bytes, 8);
	server->max_peers = max_peers(env->params);
	server->clients = env->params->clients;
	assert((uint64_t)server->max_peers * RPC_SLOTS <= WRITTEN); /* so a slot is no notice */
	server->qp_access = QP_ACCESS;
	server->msgs = msgs ? msgs : calloc(1, bytes);
	size_t reply_bytes = bytes + server->max_peers * NOTICE_BYTES;
	server->replies = calloc(1, reply_bytes);
	server->peer = calloc(server->max_peers, sizeof(*server->peer));
	server->owed = calloc((size_t)server->max_peers * RPC_SLOTS, sizeof(*server->owed));
	if (!server->msgs || !server->replies || !server->peer || !server->owed)
		return -ENOMEM;
	server->pd = ibv_alloc_pd(env->verbs);
	if (!server->pd)
		return -ENOMEM;
	server->msg_mr = ibv_reg_mr(server->pd, server->msgs, bytes, IBV_ACCESS_LOCAL_WRITE);
	server->reply_mr = ibv_reg_mr(server->pd, server->replies, reply_bytes,
				      IBV_ACCESS_LOCAL_WRITE);
	server->cq = ibv_create_cq(env->verbs, (int)(server->max_peers * 2 * SQ_DEPTH), NULL, NULL,
				   0);
	return server->msg_mr && server->reply_mr && server->cq ? 0 : -ENOMEM;
}

int rpc_server_init(struct rpc_server *server, const struct tm_env *env, size_t msg_bytes,
		    rpc_handler *handler, void *arg)
{
	return rpc_server_init_in(server, env, msg_bytes, handler, arg, NULL);
}

int rpc_server_export_at(struct rpc_server *server, unsigned region, void *addr, size_t len,
			 int access)
{
	if (region >= RPC_REGIONS || server->export_mr[region])
		return -EINVAL;
	struct ibv_mr *mr = ibv_reg_mr(server->pd, addr, len, access);
	if (!mr)
		return -ENOMEM;
	server->export_mr[region] = mr;
	server->region[region].base = (uintptr_t)addr;
	server->region[region].len = len;
	server->region[region].rkey = mr->rkey;
	if (server->regions <= region)
		server->regions = region + 1;
	return 0;
}

int rpc_server_export(struct rpc_server *server, void *addr, size_t len, int access)
{
	return rpc_server_export_at(server, server->regions, addr, len, access);
}

void rpc_server_unexport(struct rpc_server *server, unsigned region)
{
	assert(server->export_mr[region]);
	ibv_dereg_mr(server->export_mr[region]);
	server->export_mr[region] = NULL;
	memset(&server->region[region], 0, sizeof(server->region[region]));
}

static void close_peer(struct rpc_peer *peer)
{
	if (!peer->qp)
		return;
	ibv_destroy_qp(peer->qp);
	peer->qp = NULL;
	peer->failed = true;
}

static void close_client(struct rpc_server *server, uint32_t client)
{
	for (unsigned i = 0; i < server->peers; i++) {
		if (server->peer[i].client == client)
			close_peer(&server->peer[i]);
	}
}

/*
 * The place of a client's connection of this kind: its former one's, or a new one. The first that
 * a client opens closes all that it had: it may have had any of its connections only, if the
 * server's process died while it connected.
 */
static int find_peer(struct rpc_server *server, const struct rpc_greeting *hello, unsigned *index)
{
	uint32_t client = hello->client;
	unsigned i = 0;

	for (unsigned k = 0; k < server->peers; k++) {
		if (server->peer[k].client == client && server->peer[k].busy && !server->takes_busy)
			return -EAGAIN;
	}
	while (i < server->peers && (server->leaks || server->peer[i].client != client ||
				     server->peer[i].kind != hello->kind))
		i++;
	if (i == server->max_peers)
		return -EUSERS;
	if (hello->first && !server->leaks)
		close_client(server, client);
	if (i < server->peers) {
		close_peer(&server->peer[i]);
		server->peer[i].generation++;
	} else {
		server->peers++;
	}
	assert(i < server->peers && server->peers <= server->max_peers && !server->peer[i].qp);
	*index = i;
	return 0;
}

/* A queue pair for the client, and its slots posted. */
static int peer_connect(struct rpc_server *server, unsigned index, const struct rpc_greeting *hello,
			struct rpc_greeting *own)
{
	struct rpc_peer *peer = &server->peer[index];

	peer->qp = rpc_qp_create(server->pd, server->cq, 0);
	if (!peer->qp)
		return -ENOMEM;
	int rc = rpc_hello(own, peer->qp, 0, RPC_REQUESTS);
	if (!rc)
		rc = rpc_qp_init(peer->qp, server->qp_access);
	for (unsigned i = 0; i < RPC_SLOTS && !rc; i++)
		rc = slot_post(server, index * RPC_SLOTS + i);
	if (!rc)
		rc = rpc_qp_rtr(peer->qp, own, hello, RPC_RNR_SERVER);
	if (!rc)
		rc = rpc_qp_rts(peer->qp, own->psn);
	/* Another task may have dropped the client while its slots were posted. */
	if (rc && peer->qp) {
		ibv_destroy_qp(peer->qp);
		peer->qp = NULL;
	}
	return rc;
}

/* A client connects. */
static int server_accept(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	struct rpc_server *server = arg;
	struct rpc_welcome welcome;
	struct rpc_greeting hello;
	unsigned index;

	if (req_len != sizeof(hello) || rsp_len < sizeof(welcome))
		return -EPROTO;
	memcpy(&hello, req, sizeof(hello));
	if (server->others && hello.client > server->clients)
		return server_accept(server->others, req, req_len, rsp, rsp_len);
	memset(&welcome, 0, sizeof(welcome));
	int rc = find_peer(server, &hello, &index);
	if (rc)
		return rc;
	struct rpc_peer *peer = &server->peer[index];
	peer->client = hello.client;
	peer->kind = hello.kind;
	peer->notices = hello.kind == RPC_NOTICES;
	peer->notifying = peer->failed = false;
	peer->writing = 0;
	peer->own = hello.own;
	peer->told = peer->acked = 0;
	peer->refused = 0;
	peer->since = rt_now();
	memset(&server->owed[index * RPC_SLOTS], 0, RPC_SLOTS * sizeof(*server->owed));
	if (server->connected)
		server->connected(server->arg, index);
	rc = peer_connect(server, index, &hello, &welcome.server);
	if (rc)
		return rc;
	welcome.regions = server->regions;
	welcome.word = server->word;
	welcome.index = index;
	memcpy(welcome.region, server->region, sizeof(welcome.region));
	memcpy(rsp, &welcome, sizeof(welcome));
	return 0;
}

int rpc_server_listen(struct rpc_server *server)
{
	return rt_listen(server_accept, server);
}

/* A message is in its slot: handle it and send the reply, if there is one. */
static void server_message(struct rpc_server *server, uint64_t slot, const struct ibv_wc *wc)
{
	struct rpc_msg msg;
	size_t len;

	memset(&msg, 0, sizeof(msg));
	msg.index = (unsigned)(slot / RPC_SLOTS);
	msg.client = server->peer[msg.index].client;
	msg.notices = server->peer[msg.index].notices;
	msg.len = wc->byte_len;
	msg.has_imm = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	if (msg.has_imm)
		msg.imm = be32toh(wc->imm_data);
	else
		msg.bytes = slot_msg(server, slot);
	memset(slot_reply(server, slot), 0, server->msg_bytes);
	len = server->handler(server->arg, &msg, slot_reply(server, slot), server->msg_bytes);
	slot_go_on(server, slot, len);
}

/* What was refused is tried again. */
static void pay_owed(struct rpc_server *server)
{
	server->owing = false;
	for (uint64_t slot = 0; slot < (uint64_t)server->peers * RPC_SLOTS; slot++) {
		struct rpc_peer *peer = &server->peer[slot / RPC_SLOTS];

		peer->busy = true;
		if (server->owed[slot])
			slot_go_on(server, slot, server->owed[slot] - 1);
		peer->busy = false;
	}
	if (server->pays_once)
		server->owing = false;
}

/* `what`: of the work request's id. */
static void server_completion(struct rpc_server *server, struct rpc_peer *peer, uint64_t what,
			      const struct ibv_wc *wc)
{
	/* A failed connection stays silent; its client learns it from its own NIC. */
	if (wc->status != IBV_WC_SUCCESS)
		peer->failed = true;
	if (peer->failed)
		return;
	if (what & NOTICE)
		peer->notifying = false;
	else if (what & WRITTEN)
		peer->writing--;
	else if (wc->opcode & IBV_WC_RECV)
		server_message(server, what, wc);
	else
		slot_go_on(server, what, 0); /* the reply has been acknowledged */
}

unsigned rpc_server_poll(struct rpc_server *server)
{
	struct ibv_wc wc[POLL_BATCH];
	int n;

	if (server->owing)
		pay_owed(server);
	n = ibv_poll_cq(server->cq, POLL_BATCH, wc);
	for (int i = 0; i < n; i++) {
		uint64_t what = (uint32_t)wc[i].wr_id;
		struct rpc_peer *peer = &server->peer[what & (NOTICE | WRITTEN)
							      ? what & ~(NOTICE | WRITTEN)
							      : what / RPC_SLOTS];

		assert((size_t)(peer - server->peer) < server->peers);
		peer->busy = true; /* from here on its client cannot take its place */
		if (wc[i].wr_id >> GENERATION == peer->generation)
			server_completion(server, peer, what, &wc[i]);
		peer->busy = false;
	}
	return n > 0 ? (unsigned)n : 0;
}

int rpc_server_notify(struct rpc_server *server, unsigned index, const void *msg, size_t len)
{
	struct rpc_peer *peer = &server->peer[index];
	uint8_t *buf = slot_reply(server, server->max_peers * RPC_SLOTS) + index * NOTICE_BYTES;
	int rc;

	assert(index < server->peers && peer->notices && len <= NOTICE_BYTES);
	if (peer->failed)
		return -EIO;
	if (peer->notifying)
		return -EBUSY;
	memcpy(buf, msg, len);
	rc = rpc_qp_send(peer->qp, wr_id(peer, NOTICE | index), buf, len, server->reply_mr->lkey);
	if (rc)
		rpc_server_drop(server, peer->client); /* it would go on without the notice */
	peer->notifying = !rc;
	peer->since = rt_now();
	return rc ? -EIO : 0;
}

int rpc_server_write(struct rpc_server *server, unsigned index, unsigned region, uint64_t off,
		     size_t len, uint64_t to)
{
	struct rpc_peer *peer = &server->peer[index];
	const struct rpc_region *from = &server->region[region];

	assert(index < server->peers && region < server->regions && server->export_mr[region]);
	if (!peer->qp || peer->failed)
		return -EIO;
	if (off > from->len || len > from->len - off || to > peer->own.len ||
	    len > peer->own.len - to)
		return -ERANGE;
	peer->writing++;
	int rc = rpc_qp_write(peer->qp, wr_id(peer, WRITTEN | index),
			      (uint8_t *)(uintptr_t)from->base + off, len,
			      server->export_mr[region]->lkey, peer->own.base + to, peer->own.rkey);
	if (rc)
		peer->writing--;
	return rc;
}

void rpc_server_drop(struct rpc_server *server, uint32_t client)
{
	rt_client_dropped(client);
	close_client(server, client);
}

void rpc_server_task(void *server)
{
	for (;;) {
		if (!rpc_server_poll(server))
			rt_yield();
	}
}
