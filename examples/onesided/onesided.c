/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store whose server does nothing: clients append to a log in PM, and read it, by one-sided requests alone.
 *
 * A PUT takes a record's place with a fetch-and-add, WRITEs the record, and READs a part of it back: the reply of a READ says
 * that earlier WRITEs of the connection are visible. A GET READs the log and takes the last record of the key that is whole.
 * Whether what is visible is durable, too, depends on the server's hardware: see docs/one-sided.md.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <libpmem.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/rt.h>
#include <tidemark/tidemark.h>

enum { KNOB_FLUSH };
enum { FLUSH_READ, FLUSH_NONE };

/* --- what lies in PM --- */

#define DELETED UINT32_MAX /* in place of a value's length */

struct log {
	uint64_t tail; /* places that are taken */
	uint8_t pad[TM_LINE - 8];
	uint8_t record[];
};

/* It counts if its checksum is right. */
struct record {
	uint32_t crc;	 /* of all that follows */
	uint32_t number; /* its place, from 1 */
	uint32_t klen, vlen;
	uint8_t key[TM_MAX_KEY];
	uint8_t value[];
};

static size_t record_bytes(const struct tm_params *p)
{
	size_t bytes = sizeof(struct record) + p->max_vlen;
	return (bytes + TM_LINE - 1) / TM_LINE * TM_LINE;
}

static size_t places(const struct tm_params *p)
{
	return (size_t)p->updates + p->keys;
}

static size_t pm_bytes(const struct tm_params *p)
{
	return sizeof(struct log) + places(p) * record_bytes(p);
}

static unsigned regions(const struct tm_params *p, struct tm_region *out, unsigned max)
{
	if (max > 1) {
		out[0] = (struct tm_region){"tail", 0, sizeof(struct log)};
		out[1] = (struct tm_region){"log", sizeof(struct log), pm_bytes(p) - sizeof(struct log)};
	}
	return max > 1 ? 2 : 0;
}

static uint32_t checksum(const struct record *r, size_t vlen)
{
	const uint8_t *at = (const uint8_t *)&r->number, *end = r->value + vlen;
	uint32_t crc = UINT32_MAX;
	while (at < end) {
		crc ^= *at++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static struct record *record_at(const void *log, const struct tm_params *p, size_t i)
{
	return (struct record *)((uintptr_t)log + sizeof(struct log) + i * record_bytes(p));
}

static bool is_whole(const struct record *r, const struct tm_params *p, size_t i)
{
	size_t vlen = r->vlen == DELETED ? 0 : r->vlen;
	return r->number == i + 1 && r->klen <= TM_MAX_KEY && vlen <= p->max_vlen && rt_check(r->crc == checksum(r, vlen));
}

static int format(const struct tm_env *env)
{
	pmem_persist(env->pm, env->pm_len);
	return 0;
}

/* The tail may be older than the records, or newer: its line was in a cache like any other. */
static int recover(const struct tm_env *env)
{
	struct log *log = (struct log *)env->pm;
	log->tail = 0;
	for (size_t i = 0; i < places(env->params); i++)
		if (is_whole(record_at(log, env->params, i), env->params, i))
			log->tail = i + 1;
	/* If only the server's process died, records may be in caches still. */
	pmem_persist(env->pm, env->pm_len);
	return 0;
}

static void fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	const struct log *log = (const struct log *)env->pm;
	for (size_t i = log->tail; i < places(env->params); i++)
		if (is_whole(record_at(log, env->params, i), env->params, i))
			fsck->bad(fsck, "record %zu is beyond the tail", i);
}

/* --- connections --- */

struct greeting {
	uint32_t client, qpn;
	union ibv_gid gid;
	uint64_t at; /* the server's log */
	uint32_t rkey, pad;
};

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 4, .max_send_sge = 1}};
	return ibv_create_qp(pd, &init);
}

static int greet(struct greeting *g, struct ibv_qp *qp, uint32_t client, const struct ibv_mr *mr)
{
	memset(g, 0, sizeof(*g));
	g->client = client;
	g->qpn = qp->qp_num;
	g->at = (uintptr_t)mr->addr;
	g->rkey = mr->rkey;
	return -ibv_query_gid(qp->context, 1, 0, &g->gid);
}

static int connect_qp(struct ibv_qp *qp, const struct greeting *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
	int rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc)
		return -rc;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = peer->qpn,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 1,
				    .ah_attr = {.is_global = 1,
						.grh = {.dgid = peer->gid, .hop_limit = 64},
						.port_num = 1}};
	rc = ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc)
		return -rc;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 6, .rnr_retry = 7, .max_rd_atomic = 1};
	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC);
}

/* --- the server --- */

struct server {
	const struct tm_params *params;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* the pool */
	struct ibv_qp **qp; /* by client number */
};

/* A client connects, maybe once more. */
static int accept_client(void *arg, const void *request, size_t request_len, void *reply, size_t reply_len)
{
	struct server *s = arg;
	const struct greeting *g = request;
	if (request_len != sizeof(*g) || reply_len < sizeof(*g) || g->client > s->params->clients)
		return -EINVAL;
	if (s->qp[g->client])
		ibv_destroy_qp(s->qp[g->client]);
	struct ibv_qp *qp = s->qp[g->client] = create_qp(s->pd, s->cq);
	if (!qp)
		return -errno;
	int rc = connect_qp(qp, g);
	return rc ? rc : greet(reply, qp, g->client, s->mr);
}

static int serve(const struct tm_env *env)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s || !(s->qp = calloc(env->params->clients + 1, sizeof(*s->qp))))
		return -ENOMEM;
	s->params = env->params;
	if (!(s->pd = ibv_alloc_pd(env->verbs)) || !(s->cq = ibv_create_cq(env->verbs, 16, NULL, NULL, 0)) ||
	    !(s->mr = ibv_reg_mr(s->pd, env->pm, env->pm_len,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_ATOMIC)))
		return -errno;
	return rt_listen(accept_client, s);
}

/* --- a client --- */

struct client {
	const struct tm_params *params;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;     /* of the two */
	struct log *log;       /* a copy */
	struct record *record; /* that is written */
	struct greeting server;
	bool broken;
};

static int open_client(const struct tm_env *env, void **handle)
{
	const size_t bytes = pm_bytes(env->params), all = bytes + record_bytes(env->params);
	struct client *c = calloc(1, sizeof(*c));
	struct greeting own;
	if (!c || !(c->log = calloc(1, all)))
		return -ENOMEM;
	c->params = env->params;
	c->record = (struct record *)((uint8_t *)c->log + bytes);
	struct ibv_pd *pd = ibv_alloc_pd(env->verbs);
	if (!pd || !(c->cq = ibv_create_cq(env->verbs, 8, NULL, NULL, 0)) ||
	    !(c->mr = ibv_reg_mr(pd, c->log, all, IBV_ACCESS_LOCAL_WRITE)) || !(c->qp = create_qp(pd, c->cq)))
		return -errno;
	int rc = greet(&own, c->qp, env->client, c->mr);
	if (!rc)
		rc = rt_connect(&own, sizeof(own), &c->server, sizeof(c->server));
	if (!rc)
		rc = connect_qp(c->qp, &c->server);
	*handle = c;
	return rc;
}

/* A request of `bytes` at an offset of the server's log. The last one of an operation is waited for. */
static int post(struct client *c, enum ibv_wr_opcode opcode, void *local, uint64_t off, size_t bytes, bool wait)
{
	struct ibv_sge sge = {(uintptr_t)local, (uint32_t)bytes, c->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = wait ? IBV_SEND_SIGNALED : 0},
			   *bad;
	struct ibv_wc wc;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = c->server.at + off;
		wr.wr.atomic.rkey = c->server.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = c->server.at + off;
		wr.wr.rdma.rkey = c->server.rkey;
	}
	c->broken = c->broken || ibv_post_send(c->qp, &wr, &bad);
	if (c->broken)
		return -EIO;
	int n = 0;
	while (wait && !(n = ibv_poll_cq(c->cq, 1, &wc)))
		rt_yield();
	c->broken = n < 0 || (n > 0 && wc.status != IBV_WC_SUCCESS);
	return c->broken ? -EIO : 0;
}

static int update(struct client *c, const void *key, size_t klen, const void *value, uint32_t vlen)
{
	struct record *r = c->record;
	const size_t bytes = vlen == DELETED ? 0 : vlen;
	int rc = post(c, IBV_WR_ATOMIC_FETCH_AND_ADD, &c->log->tail, 0, 8, true);
	if (rc)
		return rc;
	if (c->log->tail >= places(c->params))
		return -ENOSPC;
	memset(r, 0, sizeof(*r));
	r->number = (uint32_t)c->log->tail + 1;
	r->klen = (uint32_t)klen;
	r->vlen = vlen;
	memcpy(r->key, key, klen);
	if (bytes)
		memcpy(r->value, value, bytes);
	r->crc = checksum(r, bytes);
	const uint64_t off = sizeof(struct log) + c->log->tail * record_bytes(c->params);
	const bool reads = c->params->knob[KNOB_FLUSH] == FLUSH_READ;
	rc = post(c, IBV_WR_RDMA_WRITE, r, off, sizeof(*r) + bytes, !reads);
	return rc || !reads ? rc : post(c, IBV_WR_RDMA_READ, r, off, 8, true);
}

static int put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return update(client, key, klen, value, (uint32_t)vlen);
}

static int del(void *client, const void *key, size_t klen)
{
	return update(client, key, klen, NULL, DELETED);
}

static int get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *c = client;
	int rc = post(c, IBV_WR_RDMA_READ, c->log, 0, 8, true);
	size_t n = c->log->tail < places(c->params) ? c->log->tail : places(c->params);
	if (!rc && n)
		rc = post(c, IBV_WR_RDMA_READ, c->log->record, sizeof(struct log), n * record_bytes(c->params), true);
	while (!rc && n-- > 0) {
		const struct record *r = record_at(c->log, c->params, n);
		if (!is_whole(r, c->params, n) || r->klen != klen || memcmp(r->key, key, klen) != 0)
			continue;
		if (r->vlen == DELETED)
			return -ENOENT;
		*vlen = r->vlen;
		memcpy(value, r->value, *vlen < cap ? *vlen : cap);
		return 0;
	}
	return rc ? rc : -ENOENT;
}

/* --- what Tidemark knows of it --- */

static const struct tm_knob knobs[] = {
	[KNOB_FLUSH] = {"flush", "read none", "what a PUT waits for: a READ after its WRITE, or the WRITE alone"},
	{NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"no_read", "flush=none", "a seeded bug: a WRITE that has completed need not be visible",
	 TM_BIT(TM_LIN) | TM_BIT(TM_DUR)},
	{NULL, NULL, NULL, 0},
};

const struct tm_store onesided_store = {
	.name = "onesided",
	.what = "a log that clients append to by one-sided requests",
	.promises = TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_MONO) |
		    TM_BIT(TM_KEEP) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK),
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
