/*
 * NAME: a store for Tidemark to test, as simple as a store can be.
 *
 * The server does everything. A client sends a request and waits for the reply. An update becomes a record at the end of a
 * log in persistent memory (PM), and is durable before the reply; a GET looks through the log from its end.
 *
 * Make it yours: what lies in PM, what the server does with a request, what a client does by itself (RDMA READ and WRITE).
 * `tidemark crashtest ./NAME.so` then says whether it keeps the promises at the end of this file.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/rt.h>
#include <tidemark/tidemark.h>

/* Knobs, by their places in the list at the end. */
enum { KNOB_PERSIST };
enum { PERSIST_BOTH, PERSIST_FLAG };

/* --- the log in PM --- */

#define DELETED UINT32_MAX /* in place of a value's length */

/* All records have the same size. The log ends at the first that is not used. */
struct record {
	uint32_t used;
	uint32_t klen, vlen;
	uint8_t key[TM_MAX_KEY];
	uint8_t value[];
};

static size_t record_bytes(const struct tm_params *p)
{
	size_t bytes = sizeof(struct record) + p->max_vlen;
	return (bytes + TM_LINE - 1) / TM_LINE * TM_LINE;
}

/* One more than there can be: the last one stays unused. */
static size_t pm_bytes(const struct tm_params *p)
{
	return ((size_t)p->updates + p->keys + 1) * record_bytes(p);
}

static struct record *record_at(const struct tm_env *env, size_t i)
{
	return (struct record *)(env->pm + i * record_bytes(env->params));
}

static unsigned regions(const struct tm_params *p, struct tm_region *out, unsigned max)
{
	if (max)
		out[0] = (struct tm_region){"log", 0, pm_bytes(p)};
	return max ? 1 : 0;
}

/* Zeros are an empty log. */
static int format(const struct tm_env *env)
{
	pmem_persist(env->pm, env->pm_len);
	return 0;
}

/*
 * Nothing is to be repaired: a record counts from the moment when `used` is set, and all else of it was durable before. But if
 * only the server's process died, `used` itself may be in a cache still, and clients are going to see the record.
 */
static int recover(const struct tm_env *env)
{
	for (size_t i = 0; record_at(env, i)->used; i++)
		pmem_persist(&record_at(env, i)->used, sizeof(record_at(env, i)->used));
	return 0;
}

static void fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	for (size_t i = 0; record_at(env, i)->used; i++) {
		const struct record *r = record_at(env, i);
		if (r->used != 1 || r->klen > TM_MAX_KEY ||
		    (r->vlen > env->params->max_vlen && r->vlen != DELETED))
			fsck->bad(fsck, "record %zu makes no sense", i);
	}
}

/* --- messages --- */

enum { PUT = 1, GET, DEL };

/* A request, or the reply to one. */
struct message {
	uint32_t op;
	int32_t status; /* 0 or -errno */
	uint32_t klen, vlen;
	uint8_t key[TM_MAX_KEY];
	uint8_t value[];
};

static size_t message_bytes(const struct tm_params *p)
{
	return sizeof(struct message) + p->max_vlen;
}

/* What client and server tell each other when they connect. */
struct greeting {
	uint32_t client, qpn;
	union ibv_gid gid;
};

/* --- queue pairs --- */

static int ready_to_receive(struct ibv_qp *qp, const struct greeting *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
	int rc = ibv_modify_qp(qp, &attr,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc)
		return -rc;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = peer->qpn,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 1};
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.dgid = peer->gid;
	attr.ah_attr.grh.hop_limit = 64;
	attr.ah_attr.port_num = 1;
	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int ready_to_send(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .timeout = 16, /* 0.27 s */
				   .retry_cnt = 6,
				   .rnr_retry = 7, /* for ever */
				   .max_rd_atomic = 1};
	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	return ibv_create_qp(pd, &init);
}

static int greet(struct greeting *g, struct ibv_qp *qp, uint32_t client)
{
	memset(g, 0, sizeof(*g));
	g->client = client;
	g->qpn = qp->qp_num;
	return -ibv_query_gid(qp->context, 1, 0, &g->gid);
}

static int post_receive(struct ibv_qp *qp, uint64_t id, void *at, size_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)at, (uint32_t)bytes, lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
	return -ibv_post_recv(qp, &wr, &bad);
}

static int post_send(struct ibv_qp *qp, uint64_t id, void *at, size_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)at, (uint32_t)bytes, lkey};
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	return -ibv_post_send(qp, &wr, &bad);
}

/* --- the server --- */

struct peer {
	struct ibv_qp *qp;     /* NULL: not connected */
	struct ibv_qp *before; /* of its last connection: the server may be about to post to it */
	uint32_t connects;     /* how often it has connected: completions of an earlier queue pair are stale */
	bool sending;	       /* the last reply has not been acknowledged */
	bool waiting;	       /* a request has come, and can only be answered after that */
	struct message *request, *reply;
};

struct server {
	struct tm_env env;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* of all messages */
	struct peer *peer; /* by client number */
	struct message *now, *reply; /* the request that is handled */
	size_t records;	   /* in use */
};

/* Work requests' ids. */
#define REQUEST 0 /* a receive */
#define REPLY	1
static uint64_t request_id(const struct peer *peer, uint32_t client, unsigned what)
{
	return (uint64_t)peer->connects << 32 | client << 1 | what;
}

static const struct record *find(const struct server *s, const struct message *m)
{
	for (size_t i = s->records; i-- > 0;) {
		const struct record *r = record_at(&s->env, i);
		if (r->klen == m->klen && !memcmp(r->key, m->key, m->klen))
			return r->vlen == DELETED ? NULL : r;
	}
	return NULL;
}

static int append(struct server *s, const struct message *m, uint32_t vlen)
{
	struct record *r = record_at(&s->env, s->records);
	if ((s->records + 2) * record_bytes(s->env.params) > s->env.pm_len || rt_pm_full())
		return -ENOSPC;
	r->klen = m->klen;
	r->vlen = vlen;
	memcpy(r->key, m->key, m->klen);
	if (vlen != DELETED)
		memcpy(r->value, m->value, vlen);
	if (s->env.params->knob[KNOB_PERSIST] == PERSIST_BOTH)
		pmem_persist(r, record_bytes(s->env.params));
	/* From here on it counts. It must not be durable before the rest is. */
	r->used = 1;
	pmem_persist(&r->used, sizeof(r->used));
	s->records++;
	return 0;
}

static void handle(struct server *s, const struct message *m, struct message *reply)
{
	const struct record *r = find(s, m);
	memset(reply, 0, sizeof(*reply));
	if (m->op == PUT) {
		reply->status = append(s, m, m->vlen);
	} else if (!r) {
		reply->status = -ENOENT;
	} else if (m->op == DEL) {
		reply->status = append(s, m, DELETED);
	} else {
		reply->vlen = r->vlen;
		memcpy(reply->value, r->value, r->vlen);
	}
}

/* The client finds out, and connects again. It is said first: it may find out at once. */
static void drop(struct peer *peer, uint32_t client)
{
	rt_client_dropped(client);
	ibv_destroy_qp(peer->qp);
	peer->qp = NULL;
	peer->connects++;
}

static void answer(struct server *s, uint32_t client)
{
	const size_t bytes = message_bytes(s->env.params);
	struct peer *peer = &s->peer[client];
	struct ibv_qp *qp = peer->qp;
	const uint32_t connects = peer->connects;
	/* While it is handled, the client may die, connect again, and send another one. */
	memcpy(s->now, peer->request, bytes);
	handle(s, s->now, s->reply);
	if (connects != peer->connects)
		return;
	memcpy(peer->reply, s->reply, bytes);
	peer->sending = true;
	/* The next request may come as soon as the client has its reply. */
	if (post_receive(qp, request_id(peer, client, REQUEST), peer->request, bytes, s->mr->lkey) ||
	    post_send(qp, request_id(peer, client, REPLY), peer->reply, sizeof(*peer->reply) + s->reply->vlen, s->mr->lkey)) {
		if (connects == peer->connects)
			drop(peer, client);
	}
}

static void server_main(void *arg)
{
	struct server *s = arg;
	struct ibv_wc wc;
	for (;;) {
		if (ibv_poll_cq(s->cq, 1, &wc) < 1) {
			rt_yield();
			continue;
		}
		uint32_t client = (uint32_t)wc.wr_id >> 1;
		struct peer *peer = &s->peer[client];
		if (wc.wr_id >> 32 != peer->connects || wc.status != IBV_WC_SUCCESS)
			continue;
		if ((wc.wr_id & 1) == REPLY)
			peer->sending = false;
		else
			peer->waiting = true;
		if (peer->waiting && !peer->sending) {
			peer->waiting = false;
			answer(s, client);
		}
	}
}

/* A client connects, maybe once more. */
static int accept_client(void *arg, const void *request, size_t request_len, void *reply, size_t reply_len)
{
	struct server *s = arg;
	const struct greeting *g = request;
	if (request_len != sizeof(*g) || reply_len < sizeof(*g) || g->client > s->env.params->clients)
		return -EINVAL;
	struct peer *peer = &s->peer[g->client];
	if (peer->before)
		ibv_destroy_qp(peer->before);
	peer->before = peer->qp;
	peer->connects++;
	peer->sending = peer->waiting = false;
	peer->qp = create_qp(s->pd, s->cq);
	if (!peer->qp)
		return -errno;
	int rc = ready_to_receive(peer->qp, g);
	if (!rc)
		rc = post_receive(peer->qp, request_id(peer, g->client, REQUEST), peer->request,
				  message_bytes(s->env.params), s->mr->lkey);
	if (!rc)
		rc = ready_to_send(peer->qp);
	return rc ? rc : greet(reply, peer->qp, g->client);
}

static int serve(const struct tm_env *env)
{
	const size_t bytes = message_bytes(env->params), clients = env->params->clients + 1;
	struct server *s = calloc(1, sizeof(*s));
	uint8_t *messages = calloc(2 * clients, bytes);
	if (!s || !messages || !(s->peer = calloc(clients, sizeof(*s->peer))) || !(s->now = calloc(1, bytes)) ||
	    !(s->reply = calloc(1, bytes)))
		return -ENOMEM;
	s->env = *env;
	while (record_at(env, s->records)->used)
		s->records++;
	for (size_t c = 0; c < clients; c++) {
		s->peer[c].request = (struct message *)(messages + 2 * c * bytes);
		s->peer[c].reply = (struct message *)(messages + (2 * c + 1) * bytes);
	}
	if (!(s->pd = ibv_alloc_pd(env->verbs)) ||
	    !(s->cq = ibv_create_cq(env->verbs, (int)(8 * clients), NULL, NULL, 0)) ||
	    !(s->mr = ibv_reg_mr(s->pd, messages, 2 * clients * bytes, IBV_ACCESS_LOCAL_WRITE)))
		return -errno;
	int rc = rt_listen(accept_client, s);
	return rc ? rc : rt_spawn("server", server_main, s);
}

/* --- a client --- */

#define SILENCE_NS 1000000 /* without a reply for so long, the client asks its NIC whether the server is there */

struct client {
	const struct tm_params *params;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr; /* of both messages */
	struct message *request, *reply;
	bool broken; /* the connection is */
};

enum { ID_REPLY, ID_REQUEST, ID_PROBE };

static int open_client(const struct tm_env *env, void **handle)
{
	const size_t bytes = message_bytes(env->params);
	struct client *c = calloc(1, sizeof(*c));
	uint8_t *messages = calloc(2, bytes);
	struct greeting own, server;
	if (!c || !messages)
		return -ENOMEM;
	c->params = env->params;
	c->request = (struct message *)messages;
	c->reply = (struct message *)(messages + bytes);
	struct ibv_pd *pd = ibv_alloc_pd(env->verbs);
	if (!pd || !(c->cq = ibv_create_cq(env->verbs, 8, NULL, NULL, 0)) ||
	    !(c->mr = ibv_reg_mr(pd, messages, 2 * bytes, IBV_ACCESS_LOCAL_WRITE)) ||
	    !(c->qp = create_qp(pd, c->cq)))
		return -errno;
	int rc = greet(&own, c->qp, env->client);
	if (!rc)
		rc = rt_connect(&own, sizeof(own), &server, sizeof(server));
	if (!rc)
		rc = ready_to_receive(c->qp, &server);
	if (!rc)
		rc = ready_to_send(c->qp);
	*handle = c;
	return rc;
}

/* An RDMA WRITE of no bytes: it fails if nobody is there. */
static int probe(struct client *c)
{
	struct ibv_send_wr wr = {.wr_id = ID_PROBE, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
	return -ibv_post_send(c->qp, &wr, &bad);
}

/* The reply has come, and the request is acknowledged: its buffer and its place in the queue are free. */
static int wait_for_reply(struct client *c)
{
	uint64_t since = rt_now();
	bool probing = false, sent = false, replied = false;
	struct ibv_wc wc;
	while (!sent || !replied) {
		int n = ibv_poll_cq(c->cq, 1, &wc);
		if (n > 0 && wc.status != IBV_WC_SUCCESS)
			return -EIO;
		sent |= n > 0 && wc.wr_id == ID_REQUEST;
		replied |= n > 0 && wc.wr_id == ID_REPLY;
		if (n > 0 && wc.wr_id == ID_PROBE) {
			probing = false;
			since = rt_now();
		}
		if (n > 0)
			continue;
		rt_yield();
		if (!probing && rt_now() - since > SILENCE_NS)
			probing = !probe(c);
	}
	return 0;
}

static int call(struct client *c, uint32_t op, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct message *m = c->request;
	if (c->broken)
		return -EIO;
	memset(m, 0, sizeof(*m));
	m->op = op;
	m->klen = (uint32_t)klen;
	m->vlen = (uint32_t)vlen;
	memcpy(m->key, key, klen);
	if (vlen)
		memcpy(m->value, value, vlen);
	if (post_receive(c->qp, ID_REPLY, c->reply, message_bytes(c->params), c->mr->lkey) ||
	    post_send(c->qp, ID_REQUEST, m, sizeof(*m) + vlen, c->mr->lkey) || wait_for_reply(c)) {
		c->broken = true;
		return -EIO;
	}
	return c->reply->status;
}

static int put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return call(client, PUT, key, klen, value, vlen);
}

static int get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *c = client;
	int rc = call(c, GET, key, klen, NULL, 0);
	if (rc)
		return rc;
	*vlen = c->reply->vlen;
	memcpy(value, c->reply->value, *vlen < cap ? *vlen : cap);
	return 0;
}

static int del(void *client, const void *key, size_t klen)
{
	return call(client, DEL, key, klen, NULL, 0);
}

/* --- what Tidemark knows of it --- */

static const struct tm_knob knobs[] = {
	[KNOB_PERSIST] = {"persist", "both flag", "what is made durable before the reply: the record and its flag, or the flag"},
	{NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"flag_only", "persist=flag", "a seeded bug: the flag may be durable before the record is",
	 TM_BIT(TM_RDA) | TM_BIT(TM_DUR)},
	{NULL, NULL, NULL, 0},
};

const struct tm_store NAME_store = {
	.name = "NAME",
	.what = "a log that the server appends to",
	.promises = TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_MONO) |
		    TM_BIT(TM_KEEP) | TM_BIT(TM_NORES) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK),
	.knobs = knobs,
	.variants = variants,
	.pm_bytes = pm_bytes,
	.regions = regions,
	.format = format,
	.recover = recover,
	.serve = serve,
	.fsck = fsck,
	.open = open_client,
	.put = put,
	.get = get,
	.del = del,
};
