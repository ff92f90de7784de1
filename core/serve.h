/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SERVE_H
#define TM_SERVE_H
/*
 * A server that answers messages, and its clients: the part of a store that is the same in most.
 * Each client has a reliable connection, sends a request, and waits for the reply; the server's one
 * task takes a request at a time. Clients may also READ and WRITE a region of the server.
 *
 *	server:  serve_init(), if clients are to reach a region: serve_region(), then serve_start()
 *	client:  serve_connect(), then each time: fill c->request, serve_call(), read c->reply
 *
 * A client whose process dies connects again, and the server may be about to answer its last
 * request then. Completions name the connection that they are of, and those of an earlier one are
 * stale; a queue pair is destroyed at the connection after the next.
 *
 * All code is in this header, so that it is compiled like the store: copy it, change what you like.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/tidemark.h"

/* What client and server tell each other when they connect. */
struct serve_hello {
	uint32_t client, qpn;
	union ibv_gid gid;
	uint64_t at;   /* the server's region, */
	uint32_t rkey; /* and its key; 0: there is none */
	uint32_t pad;
};

/* --- queue pairs --- */

static inline struct ibv_qp *serve_create_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init;
	memset(&init, 0, sizeof(init));
	init.send_cq = init.recv_cq = cq;
	init.qp_type = IBV_QPT_RC;
	init.cap.max_send_wr = 4;
	init.cap.max_recv_wr = 4;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	return ibv_create_qp(pd, &init);
}

static inline int serve_ready_to_receive(struct ibv_qp *qp, const struct serve_hello *peer)
{
	struct ibv_qp_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_ATOMIC;
	int rc = ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc)
		return -rc;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = peer->qpn;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.dgid = peer->gid;
	attr.ah_attr.grh.hop_limit = 64;
	attr.ah_attr.port_num = 1;
	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
}

static inline int serve_ready_to_send(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 16; /* 0.27 s */
	attr.retry_cnt = 6;
	attr.rnr_retry = 7; /* for ever */
	attr.max_rd_atomic = 1;
	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline int serve_greet(struct serve_hello *hello, struct ibv_qp *qp, uint32_t client)
{
	hello->client = client;
	hello->qpn = qp->qp_num;
	return -ibv_query_gid(qp->context, 1, 0, &hello->gid);
}

static inline int serve_post_receive(struct ibv_qp *qp, uint64_t id, void *at, size_t bytes,
				     uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)at, (uint32_t)bytes, lkey};
	struct ibv_recv_wr wr, *bad;
	memset(&wr, 0, sizeof(wr));
	wr.wr_id = id;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	return -ibv_post_recv(qp, &wr, &bad);
}

/* `remote` and `rkey`: of a READ, a WRITE, or a fetch-and-add of 1. `id` 0: no completion is asked
 * for. */
static inline int serve_post(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode opcode, void *at,
			     size_t bytes, uint32_t lkey, uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)at, (uint32_t)bytes, lkey};
	struct ibv_send_wr wr, *bad;
	memset(&wr, 0, sizeof(wr));
	wr.wr_id = id;
	wr.sg_list = &sge;
	wr.num_sge = bytes ? 1 : 0;
	wr.opcode = opcode;
	wr.send_flags = id ? IBV_SEND_SIGNALED : 0;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	return -ibv_post_send(qp, &wr, &bad);
}

/* --- the server --- */

/* Answers a request; returns the reply's length. */
typedef size_t serve_handler(void *arg, const void *request, void *reply);

struct serve_peer {
	struct ibv_qp *qp;     /* NULL: not connected */
	struct ibv_qp *before; /* of its last connection: the server may be about to post to it */
	uint32_t connects;     /* how often it has connected */
	bool sending;	       /* the last reply has not been acknowledged */
	bool waiting;	       /* a request has come, and can only be answered after that */
	uint8_t *request, *reply;
};

struct serve_server {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;     /* of all messages */
	struct ibv_mr *region; /* that clients reach; NULL: none */
	struct serve_hello hello;
	size_t bytes; /* of a message, at most */
	uint32_t clients;
	struct serve_peer *peer;	 /* by client number */
	uint8_t *messages, *now, *reply; /* `now`: the request that is handled */
	serve_handler *handle;
	void *arg;
};

/* Work requests' ids. */
enum { SERVE_REQUEST, SERVE_REPLY };
static inline uint64_t serve_id(const struct serve_peer *peer, uint32_t client, unsigned what)
{
	return (uint64_t)peer->connects << 32 | client << 1 | what;
}

/* The client finds out, and connects again. Say so first: it may find out at once. */
static inline void serve_drop(struct serve_peer *peer, uint32_t client)
{
	rt_client_dropped(client);
	ibv_destroy_qp(peer->qp);
	peer->qp = NULL;
	peer->connects++;
}

static inline void serve_answer(struct serve_server *s, uint32_t client)
{
	struct serve_peer *peer = &s->peer[client];
	struct ibv_qp *qp = peer->qp;
	const uint32_t connects = peer->connects;
	/* While it is handled, the client may die, connect again, and send another one. */
	memcpy(s->now, peer->request, s->bytes);
	const size_t len = s->handle(s->arg, s->now, s->reply);
	if (connects != peer->connects)
		return;
	memcpy(peer->reply, s->reply, len);
	peer->sending = true;
	/* The next request may come as soon as the client has its reply. */
	if (serve_post_receive(qp, serve_id(peer, client, SERVE_REQUEST), peer->request, s->bytes,
			       s->mr->lkey) ||
	    serve_post(qp, serve_id(peer, client, SERVE_REPLY), IBV_WR_SEND, peer->reply, len,
		       s->mr->lkey, 0, 0)) {
		if (connects == peer->connects)
			serve_drop(peer, client);
	}
}

static inline void serve_main(void *arg)
{
	struct serve_server *s = (struct serve_server *)arg;
	struct ibv_wc wc;
	for (;;) {
		if (ibv_poll_cq(s->cq, 1, &wc) < 1) {
			rt_yield();
			continue;
		}
		uint32_t client = (uint32_t)wc.wr_id >> 1;
		struct serve_peer *peer = &s->peer[client];
		if (wc.wr_id >> 32 != peer->connects || wc.status != IBV_WC_SUCCESS)
			continue;
		if ((wc.wr_id & 1) == SERVE_REPLY)
			peer->sending = false;
		else
			peer->waiting = true;
		if (peer->waiting && !peer->sending) {
			peer->waiting = false;
			serve_answer(s, client);
		}
	}
}

/* A client connects, maybe once more. */
static inline int serve_accept(void *arg, const void *request, size_t request_len, void *reply,
			       size_t reply_len)
{
	struct serve_server *s = (struct serve_server *)arg;
	const struct serve_hello *theirs = (const struct serve_hello *)request;
	if (request_len != sizeof(*theirs) || reply_len < sizeof(*theirs) ||
	    theirs->client > s->clients)
		return -EINVAL;
	struct serve_peer *peer = &s->peer[theirs->client];
	if (peer->before)
		ibv_destroy_qp(peer->before);
	peer->before = peer->qp;
	peer->connects++;
	peer->sending = peer->waiting = false;
	peer->qp = serve_create_qp(s->pd, s->cq);
	if (!peer->qp)
		return -errno;
	int rc = serve_ready_to_receive(peer->qp, theirs);
	if (!rc && s->bytes)
		rc = serve_post_receive(peer->qp, serve_id(peer, theirs->client, SERVE_REQUEST),
					peer->request, s->bytes, s->mr->lkey);
	if (!rc)
		rc = serve_ready_to_send(peer->qp);
	if (!rc)
		rc = serve_greet(&s->hello, peer->qp, theirs->client);
	memcpy(reply, &s->hello, sizeof(s->hello));
	return rc;
}

/* Messages of at most `bytes`; 0: there are none, the server does nothing. 0 or -errno. */
static inline int serve_init(struct serve_server *s, const struct tm_env *env, size_t bytes,
			     serve_handler *handle, void *arg)
{
	const size_t peers = env->params->clients + 1;
	memset(s, 0, sizeof(*s));
	s->bytes = bytes;
	s->clients = env->params->clients;
	s->handle = handle;
	s->arg = arg;
	s->peer = (struct serve_peer *)calloc(peers, sizeof(*s->peer));
	s->messages = (uint8_t *)calloc(2 * peers + 2, bytes + 1);
	if (!s->peer || !s->messages)
		return -ENOMEM;
	for (size_t c = 0; c < peers; c++) {
		s->peer[c].request = s->messages + 2 * c * bytes;
		s->peer[c].reply = s->peer[c].request + bytes;
	}
	s->now = s->messages + 2 * peers * bytes;
	s->reply = s->now + bytes;
	if (!(s->pd = ibv_alloc_pd(env->verbs)) ||
	    !(s->cq = ibv_create_cq(env->verbs, (int)(8 * peers), NULL, NULL, 0)))
		return -errno;
	if (bytes &&
	    !(s->mr = ibv_reg_mr(s->pd, s->messages, 2 * peers * bytes, IBV_ACCESS_LOCAL_WRITE)))
		return -errno;
	return 0;
}

/* Clients may do what `access` allows in `len` bytes at `at`. They give the address that their
 * serve_hello has. */
static inline int serve_region(struct serve_server *s, void *at, size_t len, int access)
{
	s->region = ibv_reg_mr(s->pd, at, len, access);
	if (!s->region)
		return -errno;
	s->hello.at = (uintptr_t)at;
	s->hello.rkey = s->region->rkey;
	return 0;
}

/* From now on clients connect, and are answered. `s` stays where it is. */
static inline int serve_start(struct serve_server *s)
{
	int rc = rt_listen(serve_accept, s);
	return rc || !s->bytes ? rc : rt_spawn("server", serve_main, s);
}

/* --- a client --- */

/* Without a completion for so long, the client asks its NIC whether the server is there. */
#define SERVE_SILENCE_NS 1000000

struct serve_client {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr; /* of both messages */
	size_t bytes;
	uint8_t *request, *reply;
	struct serve_hello server;
	bool broken; /* the connection is */
};

/* Work requests' ids. */
enum { SERVE_GOT = 1, SERVE_SENT = 2, SERVE_DONE = 4, SERVE_PROBE = 8 };

/* Of several servers: to env->server. 0 or -errno. */
static inline int serve_connect(struct serve_client *c, const struct tm_env *env, size_t bytes)
{
	struct serve_hello own;
	memset(c, 0, sizeof(*c));
	memset(&own, 0, sizeof(own));
	c->bytes = bytes;
	c->request = (uint8_t *)calloc(2, bytes + 1);
	if (!c->request)
		return -ENOMEM;
	c->reply = c->request + bytes;
	if (!(c->pd = ibv_alloc_pd(env->verbs)) ||
	    !(c->cq = ibv_create_cq(env->verbs, 16, NULL, NULL, 0)))
		return -errno;
	if (bytes && !(c->mr = ibv_reg_mr(c->pd, c->request, 2 * bytes, IBV_ACCESS_LOCAL_WRITE)))
		return -errno;
	if (!(c->qp = serve_create_qp(c->pd, c->cq)))
		return -errno;
	int rc = serve_greet(&own, c->qp, env->client);
	if (!rc)
		rc = rt_connect_to(env->server, &own, sizeof(own), &c->server, sizeof(c->server));
	if (!rc)
		rc = serve_ready_to_receive(c->qp, &c->server);
	return rc ? rc : serve_ready_to_send(c->qp);
}

/* Until all of `what` is done. An RDMA WRITE of no bytes fails if the server is gone. */
static inline int serve_wait(struct serve_client *c, unsigned what)
{
	uint64_t since = rt_now();
	bool probing = false;
	struct ibv_wc wc;
	while (what) {
		int n = ibv_poll_cq(c->cq, 1, &wc);
		if (n > 0 && wc.status != IBV_WC_SUCCESS)
			return -EIO;
		if (n > 0)
			what &= ~(unsigned)wc.wr_id;
		if (n > 0 && wc.wr_id == SERVE_PROBE) {
			probing = false;
			since = rt_now();
		}
		if (n > 0)
			continue;
		rt_yield();
		if (!probing && rt_now() - since > SERVE_SILENCE_NS)
			probing = !serve_post(c->qp, SERVE_PROBE, IBV_WR_RDMA_WRITE, NULL, 0, 0, 0,
					      0);
	}
	return 0;
}

/* Send the request of `bytes`, and wait for the reply. The request is acknowledged then, too: its
 * buffer and its place in the queue are free. 0, or -EIO: the connection is broken. */
static inline int serve_call(struct serve_client *c, size_t bytes)
{
	if (c->broken)
		return -EIO;
	c->broken = serve_post_receive(c->qp, SERVE_GOT, c->reply, c->bytes, c->mr->lkey) ||
		    serve_post(c->qp, SERVE_SENT, IBV_WR_SEND, c->request, bytes, c->mr->lkey, 0,
			       0) ||
		    serve_wait(c, SERVE_GOT | SERVE_SENT);
	return c->broken ? -EIO : 0;
}

/* A READ, a WRITE or a fetch-and-add of 1 between `mr`, at `at`, and the server's region, `off`
 * bytes from its beginning. If it is not waited for, the next one of the connection is. */
static inline int serve_rdma(struct serve_client *c, enum ibv_wr_opcode opcode,
			     const struct ibv_mr *mr, void *at, size_t bytes, uint64_t off,
			     bool wait)
{
	if (c->broken)
		return -EIO;
	c->broken = serve_post(c->qp, wait ? SERVE_DONE : 0, opcode, at, bytes, mr->lkey,
			       c->server.at + off, c->server.rkey) ||
		    (wait && serve_wait(c, SERVE_DONE));
	return c->broken ? -EIO : 0;
}

#endif
