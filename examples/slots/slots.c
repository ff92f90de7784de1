/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slots: a hash table of fixed slots in PM. The server applies PUT and DELETE, asked by SEND; a GET is a READ by the client.
 *
 * An entry is two slots of 256 bytes. Version n of a key lies in slot n & 1, so an update never touches the current one. It
 * is written, made durable, and then `current` (in the entry's first slot) is set to n: clients see it from then on. What
 * `current` is after a power failure does not matter: recovery takes the newest slot whose checksum is right.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/rt.h>
#include <tidemark/tidemark.h>

enum { KNOB_HASH, KNOB_BUG };
enum { HASH_FNV, HASH_ONE };
enum { BUG_NONE, BUG_NO_FLUSH, BUG_FLAG_FIRST, BUG_NO_CHECK, BUG_HALF_FLUSH, BUG_IN_PLACE };

#define MAX_VALUE 160
#define DELETED UINT32_MAX

struct slot {
	uint64_t sum, version;
	uint32_t klen, vlen;
	uint64_t current; /* in an entry's first slot */
	uint8_t key[TM_MAX_KEY];
	uint8_t value[MAX_VALUE];
	uint8_t pad[32];
};
_Static_assert(sizeof(struct slot) == 256, "slot");
struct entry {
	struct slot slot[2];
};

static uint64_t hash(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h ^ h >> 29;
}

static uint64_t slot_sum(const struct slot *s)
{
	uint64_t h = hash(0xcbf29ce484222325ull, &s->version, sizeof(s->version));
	h = hash(h, &s->klen, sizeof(s->klen));
	h = hash(h, &s->vlen, sizeof(s->vlen));
	h = hash(h, s->key, s->klen);
	return hash(h, s->value, s->vlen == DELETED ? 0 : s->vlen);
}

static bool slot_ok(const struct slot *s)
{
	if (!s->version || s->klen > TM_MAX_KEY || (s->vlen > MAX_VALUE && s->vlen != DELETED))
		return false;
	return rt_check(s->sum == slot_sum(s));
}

static size_t entries(const struct tm_params *p)
{
	return p->keys + p->keys / 2 + 2;
}

static size_t home(const struct tm_params *p, const void *key, size_t klen)
{
	return p->knob[KNOB_HASH] == HASH_ONE ? entries(p) - 2 : hash(7, key, klen) % entries(p);
}

static size_t pm_bytes(const struct tm_params *p)
{
	return entries(p) * sizeof(struct entry);
}

static struct entry *entry_at(const struct tm_env *env, size_t i)
{
	return (struct entry *)env->pm + i;
}

static unsigned regions(const struct tm_params *p, struct tm_region *out, unsigned max)
{
	if (max)
		out[0] = (struct tm_region){"table", 0, pm_bytes(p)};
	return max ? 1 : 0;
}

static int format(const struct tm_env *env)
{
	pmem_persist(env->pm, env->pm_len);
	return 0;
}

static uint64_t newest(const struct entry *e)
{
	uint64_t v = 0;
	for (int i = 0; i < 2; i++)
		if (e->slot[i].version > v && (e->slot[i].version & 1) == (unsigned)i && slot_ok(&e->slot[i]))
			v = e->slot[i].version;
	return v;
}

static int recover(const struct tm_env *env)
{
	for (size_t i = 0; i < entries(env->params); i++) {
		struct entry *e = entry_at(env, i);
		uint64_t v = newest(e);
		if (v) /* if only the process died it may be in the cache still */
			pmem_persist(&e->slot[v & 1], sizeof(struct slot));
		if (e->slot[0].current != v)
			e->slot[0].current = v;
	}
	return 0;
}

static void fsck(const struct tm_env *env, struct tm_fsck *f)
{
	const size_t n = entries(env->params);
	for (size_t i = 0; i < n; i++) {
		const struct entry *e = entry_at(env, i);
		uint64_t v = newest(e);
		if (e->slot[0].current != v)
			f->bad(f, "entry %zu: current %llu, newest %llu", i, (unsigned long long)e->slot[0].current,
			       (unsigned long long)v);
		if (!v)
			continue;
		const struct slot *s = &e->slot[v & 1];
		size_t j = home(env->params, s->key, s->klen);
		for (; j != i; j = (j + 1) % n) {
			const struct entry *o = entry_at(env, j);
			uint64_t ov = newest(o);
			const struct slot *os = &o->slot[ov & 1];
			if (!ov)
				f->bad(f, "entry %zu cannot be reached: %zu is empty", i, j);
			else if (os->klen == s->klen && !memcmp(os->key, s->key, s->klen))
				f->bad(f, "entries %zu and %zu have the same key", i, j);
		}
	}
}

/* --- messages --- */

enum { PUT = 1, DEL };
struct message {
	uint32_t op;
	int32_t status;
	uint32_t klen, vlen;
	uint8_t key[TM_MAX_KEY];
	uint8_t value[MAX_VALUE];
};
struct greeting {
	uint32_t client, qpn, rkey, base;
	union ibv_gid gid;
};

static int to_rtr(struct ibv_qp *qp, const struct greeting *peer)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
	int rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc)
		return -rc;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qpn,
				 .max_dest_rd_atomic = 1, .min_rnr_timer = 1};
	a.ah_attr.is_global = 1;
	a.ah_attr.grh.dgid = peer->gid;
	a.ah_attr.grh.hop_limit = 64;
	a.ah_attr.port_num = 1;
	return -ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 6, .rnr_retry = 7, .max_rd_atomic = 1};
	return -ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	return ibv_create_qp(pd, &init);
}

static int post_recv(struct ibv_qp *qp, uint64_t id, struct message *m, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)m, sizeof(*m), lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
	return -ibv_post_recv(qp, &wr, &bad);
}

static int post_send(struct ibv_qp *qp, uint64_t id, struct message *m, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)m, sizeof(*m), lkey};
	struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;
	return -ibv_post_send(qp, &wr, &bad);
}

/* --- the server --- */

struct peer {
	struct ibv_qp *qp, *old[8]; /* the server's task may be posting to an old one: it destroys them */
	unsigned olds;
	uint32_t connects;
	bool replying, waiting; /* the last reply is under way still; a request waits for that */
	struct message *request, *reply;
};
struct server {
	struct tm_env env;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr, *table;
	struct peer *peer;
	struct message now;
};

enum { REQUEST, REPLY };
static uint64_t wr_id(const struct peer *p, uint32_t client, unsigned what)
{
	return (uint64_t)p->connects << 32 | client << 1 | what;
}

static int update(struct server *s, const struct message *m)
{
	const struct tm_params *p = s->env.params;
	const unsigned bug = p->knob[KNOB_BUG];
	const size_t n = entries(p);
	struct entry *e = NULL;
	size_t i = home(p, m->key, m->klen), tries = 0;
	uint64_t v = 0;
	for (; tries < n; tries++, i = (i + 1) % n) {
		e = entry_at(&s->env, i);
		v = e->slot[0].current;
		if (!v || (e->slot[v & 1].klen == m->klen && !memcmp(e->slot[v & 1].key, m->key, m->klen)))
			break;
	}
	if (m->op == DEL && (tries == n || !v || e->slot[v & 1].vlen == DELETED))
		return -ENOENT;
	if (tries == n || rt_pm_full())
		return -ENOSPC;
	uint64_t to = bug == BUG_IN_PLACE && v ? v : v + 1;
	struct slot *to_slot = &e->slot[to & 1];
	if (bug == BUG_FLAG_FIRST)
		e->slot[0].current = to;
	to_slot->version = to;
	to_slot->klen = m->klen;
	to_slot->vlen = m->op == DEL ? DELETED : m->vlen;
	memcpy(to_slot->key, m->key, m->klen);
	if (m->op == PUT)
		memcpy(to_slot->value, m->value, m->vlen);
	to_slot->sum = slot_sum(to_slot);
	if (bug == BUG_HALF_FLUSH)
		pmem_persist(to_slot, TM_LINE);
	else if (bug != BUG_NO_FLUSH)
		pmem_persist(to_slot, sizeof(*to_slot));
	e->slot[0].current = to;
	return 0;
}

/* Closes the connection, if it is still this one. */
static void drop(struct server *s, uint32_t client, uint32_t connects)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
	struct peer *peer = &s->peer[client];
	if (connects == peer->connects)
		rt_client_dropped(client);
	while (connects == peer->connects && ibv_modify_qp(peer->qp, &a, IBV_QP_STATE))
		rt_sleep(10000);
}

static void handle(struct server *s, uint32_t client)
{
	struct peer *peer = &s->peer[client];
	const uint32_t connects = peer->connects;
	peer->waiting = false;
	s->now = *peer->request;
	int32_t status = update(s, &s->now);
	if (connects != peer->connects)
		return;
	memset(peer->reply, 0, sizeof(*peer->reply));
	peer->reply->status = status;
	peer->replying = true;
	struct ibv_qp *qp = peer->qp;
	int rc;
	for (int tries = 0; (rc = post_recv(qp, wr_id(peer, client, REQUEST), peer->request, s->mr->lkey)) && tries < 9; tries++)
		rt_sleep(1000);
	if (connects != peer->connects)
		return;
	for (int tries = 0; !rc && tries < 10; tries++) {
		rc = post_send(qp, wr_id(peer, client, REPLY), peer->reply, s->mr->lkey);
		if (!rc || connects != peer->connects)
			break;
		rc = tries < 9 ? 0 : rc;
		rt_sleep(1000);
	}
	if (rc)
		drop(s, client, connects);
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
			peer->replying = false;
		else
			peer->waiting = true;
		if (peer->waiting && !peer->replying)
			handle(s, client);
		while (peer->olds)
			ibv_destroy_qp(peer->old[--peer->olds]);
	}
}

static int on_connect(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	struct server *s = arg;
	const struct greeting *g = req;
	struct greeting *r = rsp;
	if (req_len != sizeof(*g) || rsp_len < sizeof(*g) || g->client > s->env.params->clients)
		return -EINVAL;
	struct peer *peer = &s->peer[g->client];
	peer->connects++;
	peer->replying = peer->waiting = false;
	if (peer->qp && peer->olds == 8)
		return -EAGAIN;
	if (peer->qp)
		peer->old[peer->olds++] = peer->qp;
	peer->qp = make_qp(s->pd, s->cq);
	if (!peer->qp)
		return -errno;
	int rc = to_rtr(peer->qp, g);
	if (!rc)
		rc = post_recv(peer->qp, wr_id(peer, g->client, REQUEST), peer->request, s->mr->lkey);
	if (!rc)
		rc = to_rts(peer->qp);
	if (rc)
		return rc;
	memset(r, 0, sizeof(*r));
	r->client = g->client;
	r->qpn = peer->qp->qp_num;
	r->rkey = s->table->rkey;
	r->base = (uintptr_t)s->env.pm & 4095;
	return -ibv_query_gid(peer->qp->context, 1, 0, &r->gid);
}

static int serve(const struct tm_env *env)
{
	const size_t clients = env->params->clients + 1;
	struct server *s = calloc(1, sizeof(*s));
	struct message *m = calloc(2 * clients, sizeof(*m));
	if (!s || !m || !(s->peer = calloc(clients, sizeof(*s->peer))))
		return -ENOMEM;
	s->env = *env;
	for (size_t c = 0; c < clients; c++) {
		s->peer[c].request = &m[2 * c];
		s->peer[c].reply = &m[2 * c + 1];
	}
	if (!(s->pd = ibv_alloc_pd(env->verbs)) ||
	    !(s->cq = ibv_create_cq(env->verbs, (int)(8 * clients), NULL, NULL, 0)) ||
	    !(s->mr = ibv_reg_mr(s->pd, m, 2 * clients * sizeof(*m), IBV_ACCESS_LOCAL_WRITE)) ||
	    !(s->table = ibv_reg_mr_iova2(s->pd, env->pm, env->pm_len, (uintptr_t)env->pm & 4095,
					  IBV_ACCESS_REMOTE_READ)))
		return -errno;
	int rc = rt_listen(on_connect, s);
	return rc ? rc : rt_spawn("server", server_main, s);
}

/* --- a client --- */

struct client {
	const struct tm_params *params;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint32_t rkey, base;
	bool broken, receiving; /* a receive is posted */
	struct buffers {
		struct message request, reply;
		struct entry entry;
	} *b;
};

enum { ID_REPLY = 1, ID_REQUEST = 2, ID_READ = 4, ID_PROBE = 8 };

static int open_client(const struct tm_env *env, void **handle)
{
	struct client *c = calloc(1, sizeof(*c));
	struct greeting own, server;
	if (!c || !(c->b = calloc(1, sizeof(*c->b))))
		return -ENOMEM;
	c->params = env->params;
	struct ibv_pd *pd = ibv_alloc_pd(env->verbs);
	if (!pd || !(c->cq = ibv_create_cq(env->verbs, 16, NULL, NULL, 0)) ||
	    !(c->mr = ibv_reg_mr(pd, c->b, sizeof(*c->b), IBV_ACCESS_LOCAL_WRITE)) || !(c->qp = make_qp(pd, c->cq)))
		return -errno;
	memset(&own, 0, sizeof(own));
	own.client = env->client;
	own.qpn = c->qp->qp_num;
	int rc = -ibv_query_gid(env->verbs, 1, 0, &own.gid);
	if (!rc)
		rc = rt_connect(&own, sizeof(own), &server, sizeof(server));
	if (!rc)
		rc = to_rtr(c->qp, &server);
	if (!rc)
		rc = to_rts(c->qp);
	c->rkey = server.rkey;
	c->base = server.base;
	*handle = c;
	return rc;
}

static int post_read(struct client *c, uint64_t id, void *at, uint64_t off, size_t len)
{
	struct ibv_sge sge = {(uintptr_t)at, (uint32_t)len, c->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = len ? 1 : 0, .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;
	wr.wr.rdma.remote_addr = c->base + off;
	wr.wr.rdma.rkey = c->rkey;
	return -ibv_post_send(c->qp, &wr, &bad);
}

/* Wait for all of `what`. Now and then ask the NIC, by a READ of nothing, whether the server is there. */
static int wait_for(struct client *c, unsigned what)
{
	uint64_t since = rt_now();
	bool probing = false;
	struct ibv_wc wc;
	while (what) {
		if (ibv_poll_cq(c->cq, 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS)
				return -EIO;
			what &= ~(unsigned)wc.wr_id;
			if (wc.wr_id == ID_PROBE) {
				probing = false;
				since = rt_now();
			}
			continue;
		}
		rt_yield();
		if (!probing && rt_now() - since > 1000000) {
			since = rt_now();
			if (!post_read(c, ID_PROBE, c->b, 0, 0)) {
				probing = true;
				what |= ID_PROBE;
			}
		}
	}
	return 0;
}

static int call(struct client *c, uint32_t op, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct message *m = &c->b->request;
	if (c->broken)
		return -EIO;
	if (klen > TM_MAX_KEY || vlen > MAX_VALUE)
		return -EINVAL;
	memset(m, 0, sizeof(*m));
	m->op = op;
	m->klen = (uint32_t)klen;
	m->vlen = (uint32_t)vlen;
	memcpy(m->key, key, klen);
	if (vlen)
		memcpy(m->value, value, vlen);
	if (!c->receiving && post_recv(c->qp, ID_REPLY, &c->b->reply, c->mr->lkey))
		return -ENOMEM;
	c->receiving = true;
	if (post_send(c->qp, ID_REQUEST, m, c->mr->lkey))
		return -ENOMEM; /* nothing was sent */
	if (wait_for(c, ID_REPLY | ID_REQUEST)) {
		c->broken = true;
		return -EIO;
	}
	c->receiving = false;
	return c->b->reply.status;
}

static int put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return call(client, PUT, key, klen, value, vlen);
}

static int del(void *client, const void *key, size_t klen)
{
	return call(client, DEL, key, klen, NULL, 0);
}

static int get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *c = client;
	const struct tm_params *p = c->params;
	const size_t n = entries(p);
	size_t i = home(p, key, klen), tries = 0;
	if (c->broken)
		return -EIO;
	while (tries < n) {
		if (post_read(c, ID_READ, &c->b->entry, i * sizeof(struct entry), sizeof(struct entry)))
			return -ENOMEM;
		if (wait_for(c, ID_READ)) {
			c->broken = true;
			return -EIO;
		}
		const uint64_t v = c->b->entry.slot[0].current;
		const struct slot *s = &c->b->entry.slot[v & 1];
		if (!v)
			return -ENOENT;
		if (p->knob[KNOB_BUG] != BUG_NO_CHECK && (s->version != v || !slot_ok(s)))
			continue; /* overtaken by two updates: once more */
		if (s->klen == klen && !memcmp(s->key, key, klen)) {
			if (s->vlen == DELETED)
				return -ENOENT;
			*vlen = s->vlen;
			memcpy(value, s->value, *vlen < cap ? *vlen : cap);
			return 0;
		}
		i = (i + 1) % n;
		tries++;
	}
	return -ENOENT;
}

static const struct tm_knob knobs[] = {
	[KNOB_HASH] = {"hash", "fnv one", "where a key's search begins: by its hash, or all near the table's end"},
	[KNOB_BUG] = {"bug", "none no_flush flag_first no_check half_flush in_place", "a bug put in on purpose"},
	{NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"collide", "hash=one", "all keys collide, and the search goes round the table's end", 0},
	{"no_flush", "bug=no_flush", "the slot is not made durable", TM_BIT(TM_DUR)},
	{"flag_first", "bug=flag_first", "the slot is current before it is written and durable", TM_BIT(TM_MONO) | TM_BIT(TM_LIN)},
	{"no_check", "bug=no_check", "a GET looks at neither version nor checksum", TM_BIT(TM_RDA)},
	{"half_flush", "bug=half_flush", "only the slot's first line is made durable", TM_BIT(TM_DUR)},
	{"in_place", "bug=in_place", "an update overwrites the current slot", TM_BIT(TM_KEEP) | TM_BIT(TM_DUR)},
	{NULL, NULL, NULL, 0},
};

static const struct tm_overhead overheads[] = {{"slot", 64, false}, {"message", 48, false}, {NULL, 0, false}};
static const struct tm_shape shapes[] = {{"collide", 0, NULL}, {"calls=fail", 0, NULL}, {NULL, 0, NULL}};

const struct tm_store slots_store = {
	.name = "slots",
	.what = "a hash table of fixed slots, two for each key, read by one-sided READs",
	.promises = TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_MONO) |
		    TM_BIT(TM_KEEP) | TM_BIT(TM_NORES) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK),
	.fsck_at_rest = true,
	.knobs = knobs,
	.variants = variants,
	.overheads = overheads,
	.max_vlen = MAX_VALUE,
	.shapes = shapes,
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
