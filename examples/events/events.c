/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events: a store whose server waits for events, as servers with rdma_cm do. Clients connect by rdma_cm; one task of the server
 * sleeps in poll() until somebody connects or leaves, or a request has come (a completion channel).
 *
 * An update becomes a record at the end of a log in PM, with a checksum, and is durable before the reply. Recovery takes the log
 * up to the first record that is not whole.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <libpmem.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/rt.h>
#include <tidemark/tidemark.h>

#define PORT 7471

/* Knobs, by their places in the list at the end. */
enum { KNOB_CHECKSUM, KNOB_REARM };

/* --- the log in PM --- */

#define DELETED UINT32_MAX /* in place of a value's length */

/* All records have the same size. */
struct record {
	uint64_t sum;	 /* of all that follows */
	uint32_t number; /* 1, 2, ...: an older record's bytes are no record */
	uint32_t klen, vlen;
	uint8_t key[TM_MAX_KEY];
	uint8_t value[];
};

static size_t record_bytes(const struct tm_params *p)
{
	size_t bytes = sizeof(struct record) + p->max_vlen;
	return (bytes + TM_LINE - 1) / TM_LINE * TM_LINE;
}

/* One more than there can be: the last one stays empty. */
static size_t pm_bytes(const struct tm_params *p)
{
	return ((size_t)p->updates + p->keys + 1) * record_bytes(p);
}

static struct record *record_at(const struct tm_env *env, size_t i)
{
	return (struct record *)(env->pm + i * record_bytes(env->params));
}

/* FNV-1a. */
static uint64_t sum_of(const struct record *r)
{
	const uint8_t *at = (const uint8_t *)&r->number;
	size_t len = sizeof(*r) - offsetof(struct record, number) + (r->vlen == DELETED ? 0 : r->vlen);
	uint64_t sum = 14695981039346656037u;
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ at[i]) * 1099511628211u;
	return sum;
}

static bool is_whole(const struct tm_env *env, size_t i)
{
	const struct record *r = record_at(env, i);
	return r->number == i + 1 && r->klen <= TM_MAX_KEY && (r->vlen <= env->params->max_vlen || r->vlen == DELETED) &&
	       (env->params->knob[KNOB_CHECKSUM] || rt_check(r->sum == sum_of(r)));
}

static size_t count_records(const struct tm_env *env)
{
	size_t n = 0;
	while (is_whole(env, n))
		n++;
	return n;
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
 * What is whole counts from now on, and may be in a cache still, if only the server's process has died. The record after it may
 * be half of one that was never acknowledged.
 */
static int recover(const struct tm_env *env)
{
	size_t n = count_records(env);
	memset(record_at(env, n), 0, record_bytes(env->params));
	pmem_persist(env->pm, (n + 1) * record_bytes(env->params));
	return 0;
}

static void fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	size_t n = count_records(env);
	if (record_at(env, n)->number)
		fsck->bad(fsck, "record %zu is not whole", n);
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

/* One side of a connection: a queue pair, and a message each way. */
struct side {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct message *in, *out;
	size_t bytes;
};

static int post_receive(struct side *s)
{
	struct ibv_sge sge = {(uintptr_t)s->in, (uint32_t)s->bytes, s->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	return -ibv_post_recv(s->id->qp, &wr, &bad);
}

static int post_send(struct side *s, size_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)s->out, (uint32_t)bytes, s->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	return -ibv_post_send(s->id->qp, &wr, &bad);
}

/* Takes back what side_open() has made. */
static void side_close(struct side *s)
{
	if (s->id->qp)
		rdma_destroy_qp(s->id);
	if (s->cq)
		ibv_destroy_cq(s->cq);
	if (s->mr)
		ibv_dereg_mr(s->mr);
	free(s->in);
}

static int side_open(struct side *s, struct rdma_cm_id *id, struct ibv_comp_channel *channel, size_t bytes)
{
	*s = (struct side){.id = id, .bytes = bytes};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	uint8_t *both = calloc(2, bytes);
	s->in = (struct message *)both;
	if (!both || !(s->cq = ibv_create_cq(id->verbs, 16, s, channel, 0)))
		return -ENOMEM;
	init.send_cq = init.recv_cq = s->cq;
	if (rdma_create_qp(id, NULL, &init) || !(s->mr = ibv_reg_mr(id->pd, both, 2 * bytes, IBV_ACCESS_LOCAL_WRITE)))
		return -errno;
	s->out = (struct message *)(both + bytes);
	return post_receive(s);
}

static const struct rdma_conn_param connection = {
	.responder_resources = 1, .initiator_depth = 1, .retry_count = 6, .rnr_retry_count = 7};

/* --- the server --- */

struct server {
	struct tm_env env;
	struct rdma_event_channel *events;   /* who connects, who leaves */
	struct ibv_comp_channel *completions; /* whose request has come */
	size_t records;			      /* in use */
};

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
	r->number = (uint32_t)s->records + 1;
	r->klen = m->klen;
	r->vlen = vlen;
	memcpy(r->key, m->key, m->klen);
	if (vlen != DELETED)
		memcpy(r->value, m->value, vlen);
	r->sum = sum_of(r);
	pmem_persist(r, record_bytes(s->env.params));
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

/* Somebody wants to connect. Who cannot be served is refused. */
static void accept_client(struct server *s, struct rdma_cm_id *id)
{
	struct side *side = calloc(1, sizeof(*side));
	struct rdma_conn_param param = connection;
	id->context = side;
	if (side && !side_open(side, id, s->completions, message_bytes(s->env.params)) &&
	    !ibv_req_notify_cq(side->cq, 0) && !rdma_accept(id, &param))
		return;
	rdma_reject(id, NULL, 0);
	if (side)
		side_close(side);
	free(side);
	rdma_destroy_id(id);
}

static void on_connection(struct server *s)
{
	struct rdma_cm_event *event;
	while (!rdma_get_cm_event(s->events, &event)) {
		struct rdma_cm_id *id = event->id;
		enum rdma_cm_event_type type = event->event;
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			accept_client(s, id);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_CONNECT_ERROR ||
			   type == RDMA_CM_EVENT_UNREACHABLE || type == RDMA_CM_EVENT_REJECTED) {
			side_close(id->context);
			free(id->context);
			rdma_destroy_id(id);
		}
	}
}

static void on_request(struct server *s)
{
	struct ibv_cq *cq;
	void *context;
	struct ibv_wc wc;
	while (!ibv_get_cq_event(s->completions, &cq, &context)) {
		struct side *side = context;
		ibv_ack_cq_events(cq, 1);
		/* Asked for again before the queue is emptied: what comes in between makes another event. */
		if (!s->env.params->knob[KNOB_REARM] && ibv_req_notify_cq(cq, 0))
			rdma_disconnect(side->id);
		while (ibv_poll_cq(cq, 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_RECV)
				continue;
			handle(s, side->in, side->out);
			if (post_receive(side) || post_send(side, sizeof(*side->out) + side->out->vlen))
				rdma_disconnect(side->id); /* the client would wait for ever */
		}
		if (s->env.params->knob[KNOB_REARM] && ibv_req_notify_cq(cq, 0))
			rdma_disconnect(side->id);
	}
}

static void server_main(void *arg)
{
	struct server *s = arg;
	struct pollfd wait[] = {{.fd = s->events->fd, .events = POLLIN}, {.fd = s->completions->fd, .events = POLLIN}};
	for (;;) {
		if (poll(wait, 2, -1) < 0)
			continue;
		on_connection(s);
		on_request(s);
	}
}

static int serve(const struct tm_env *env)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_cm_id *listener;
	struct server *s = calloc(1, sizeof(*s));
	if (!s || !(s->events = rdma_create_event_channel()) || !(s->completions = ibv_create_comp_channel(env->verbs)))
		return -ENOMEM;
	s->env = *env;
	s->records = count_records(env);
	fcntl(s->events->fd, F_SETFL, O_NONBLOCK);
	fcntl(s->completions->fd, F_SETFL, O_NONBLOCK);
	if (rdma_create_id(s->events, &listener, NULL, RDMA_PS_TCP) || rdma_bind_addr(listener, (struct sockaddr *)&own) ||
	    rdma_listen(listener, TM_MAX_CLIENTS))
		return -errno;
	return rt_spawn("server", server_main, s);
}

/* --- a client --- */

struct client {
	struct rdma_event_channel *events;
	struct side side;
	bool broken; /* the connection is */
};

/* The next event must be this one. */
static int await(struct client *c, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	if (rdma_get_cm_event(c->events, &event))
		return -errno;
	bool is = event->event == type;
	rdma_ack_cm_event(event);
	return is ? 0 : -ECONNREFUSED;
}

static int open_client(const struct tm_env *env, void **handle)
{
	struct sockaddr_in server = {
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = {htonl(0x0a000001)}}; /* 10.0.0.1; any will do here */
	struct rdma_conn_param param = connection;
	struct rdma_cm_id *id;
	struct client *c = calloc(1, sizeof(*c));
	if (!c || !(c->events = rdma_create_event_channel()))
		return -ENOMEM;
	if (rdma_create_id(c->events, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&server, 1000))
		return -errno;
	int rc = await(c, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (!rc)
		rc = rdma_resolve_route(id, 1000) ? -errno : await(c, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (!rc)
		rc = side_open(&c->side, id, NULL, message_bytes(env->params));
	if (!rc)
		rc = rdma_connect(id, &param) ? -errno : await(c, RDMA_CM_EVENT_ESTABLISHED);
	if (!rc)
		fcntl(c->events->fd, F_SETFL, O_NONBLOCK);
	*handle = c;
	return rc;
}

/* The reply has come, or the server has gone. */
static int wait_for_reply(struct client *c)
{
	struct rdma_cm_event *event;
	struct ibv_wc wc;
	for (;;) {
		while (ibv_poll_cq(c->side.cq, 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS)
				return -EIO;
			if (wc.opcode == IBV_WC_RECV)
				return 0;
		}
		if (!rdma_get_cm_event(c->events, &event)) {
			rdma_ack_cm_event(event);
			return -ECONNRESET;
		}
		rt_yield();
	}
}

static int call(struct client *c, uint32_t op, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct message *m = c->side.out;
	if (c->broken)
		return -EIO;
	memset(m, 0, sizeof(*m));
	m->op = op;
	m->klen = (uint32_t)klen;
	m->vlen = (uint32_t)vlen;
	memcpy(m->key, key, klen);
	if (vlen)
		memcpy(m->value, value, vlen);
	if (post_send(&c->side, sizeof(*m) + vlen) || wait_for_reply(c)) {
		c->broken = true;
		return -EIO;
	}
	return c->side.in->status;
}

/* The reply has been looked at: the next one may come. */
static int done(struct client *c, int rc)
{
	if (!c->broken && post_receive(&c->side))
		c->broken = true;
	return rc;
}

static int put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return done(client, call(client, PUT, key, klen, value, vlen));
}

static int get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *c = client;
	int rc = call(c, GET, key, klen, NULL, 0);
	if (!rc) {
		*vlen = c->side.in->vlen;
		memcpy(value, c->side.in->value, *vlen < cap ? *vlen : cap);
	}
	return done(c, rc);
}

static int del(void *client, const void *key, size_t klen)
{
	return done(client, call(client, DEL, key, klen, NULL, 0));
}

/* --- what Tidemark knows of it --- */

static const struct tm_knob knobs[] = {
	[KNOB_CHECKSUM] = {"checksum", "compared ignored", "is a record's checksum compared?"},
	[KNOB_REARM] = {"rearm", "first last", "the next event is asked for before the queue is emptied, or after it"},
	{NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"no_checksum", "checksum=ignored", "recovery takes half a record for a whole one", TM_BIT(TM_RDA)},
	{"late_rearm", "rearm=last", "a request that comes while the queue is emptied makes no event", TM_BIT(TM_LIVE)},
	{NULL, NULL, NULL, 0},
};

const struct tm_store events_store = {
	.name = "events",
	.what = "a log, served from events: rdma_cm and completion channels",
	.promises = TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_MONO) | TM_BIT(TM_KEEP) |
		    TM_BIT(TM_NORES) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK),
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
