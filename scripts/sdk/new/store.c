/*
 * NAME: a store for Tidemark to test, as simple as a store can be.
 *
 * The server does everything. A client sends a request and waits for the reply. An update becomes a record at the end of a
 * log in persistent memory (PM), and is durable before the reply; a GET looks through the log from its end.
 *
 * Make it yours: what lies in PM, what the server does with a request, what a client does by itself (serve_rdma()). The
 * connections, and who sends what, are in <tidemark/serve.h>.
 * `tidemark crashtest ./NAME.so` then says whether it keeps the promises at the end of this file.
 */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/serve.h>
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

/* --- the server --- */

struct server {
	struct tm_env env;
	struct serve_server serve;
	size_t records; /* in use */
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

static size_t handle(void *arg, const void *request, void *answer)
{
	const struct message *m = request;
	struct message *reply = answer;
	struct server *s = arg;
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
	return sizeof(*reply) + reply->vlen;
}

/* --- a client --- */

static int connect_client(const struct tm_env *env, void **handle)
{
	struct serve_client *c = calloc(1, sizeof(*c));
	*handle = c;
	return c ? serve_connect(c, env, message_bytes(env->params)) : -ENOMEM;
}

static int call(struct serve_client *c, uint32_t op, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct message *m = (struct message *)c->request;
	memset(m, 0, sizeof(*m));
	m->op = op;
	m->klen = (uint32_t)klen;
	m->vlen = (uint32_t)vlen;
	memcpy(m->key, key, klen);
	if (vlen)
		memcpy(m->value, value, vlen);
	int rc = serve_call(c, sizeof(*m) + vlen);
	return rc ? rc : ((const struct message *)c->reply)->status;
}

static int put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return call(client, PUT, key, klen, value, vlen);
}

static int get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct serve_client *c = client;
	const struct message *reply = (const struct message *)c->reply;
	int rc = call(c, GET, key, klen, NULL, 0);
	if (rc)
		return rc;
	*vlen = reply->vlen;
	memcpy(value, reply->value, *vlen < cap ? *vlen : cap);
	return 0;
}

static int del(void *client, const void *key, size_t klen)
{
	return call(client, DEL, key, klen, NULL, 0);
}

/* --- how both begin --- */

static int serve(const struct tm_env *env)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->env = *env;
	while (record_at(env, s->records)->used)
		s->records++;
	int rc = serve_init(&s->serve, env, message_bytes(env->params), handle, s);
	return rc ? rc : serve_start(&s->serve);
}

static int open_client(const struct tm_env *env, void **handle)
{
	return connect_client(env, handle);
}

/* --- its knobs, and what it promises --- */

static const struct tm_knob knobs[] = {
	[KNOB_PERSIST] = {"persist", "both flag", "what is made durable before the reply: the record and its flag, or the flag"},
	{NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"flag_only", "persist=flag", "a seeded bug: the flag may be durable before the record is",
	 TM_BIT(TM_RDA) | TM_BIT(TM_DUR)},
	{NULL, NULL, NULL, 0},
};

#define WHAT "a log that the server appends to"
#define SERVERS 1
#define PROMISES                                                                                                        \
	(TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_MONO) | TM_BIT(TM_KEEP) |        \
	 TM_BIT(TM_NORES) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK))

/* --- what Tidemark knows of it --- */

const struct tm_store NAME_store = {
	.name = "NAME",
	.what = WHAT,
	.promises = PROMISES,
	.servers = SERVERS,
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
