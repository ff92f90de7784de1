/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pairs: a table of keys and values with transactions. The server does everything, one request at a time.
 *
 * What lies in PM is a log. A record has all that one transaction puts; its body is durable before its mark is. A key's
 * version is the number of the last record that has the key, from 1.
 *
 * A transaction is optimistic: the client asks for one key after the other, and then says which versions it has seen, and what
 * it puts. If a version is another one by now, the server says so, and has done nothing: the transaction is aborted.
 */
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/serve.h>
#include <tidemark/tidemark.h>

/* Knobs, by their places in the list at the end. */
enum { KNOB_VALIDATE, KNOB_RECORD };
enum { VALIDATE_FIRST, VALIDATE_WRITERS, VALIDATE_LATE, VALIDATE_NEVER };
enum { RECORD_ONE, RECORD_EACH, RECORD_LATER };

#define MAX_VALUE 160
#define DELETED UINT32_MAX /* in place of a value's length */

/* --- the log in PM --- */

struct put {
	uint32_t klen, vlen;
	uint8_t key[TM_MAX_KEY];
	uint8_t value[MAX_VALUE];
};

/* The log ends at the first that is not used. */
struct record {
	uint32_t used, puts;
	uint8_t pad[TM_LINE - 8];
	struct put put[TM_TXN_OPS];
};

/* One more than there can be: the last one stays unused. */
static size_t records(const struct tm_params *p)
{
	return (size_t)p->updates + p->keys + 1;
}

static size_t pm_bytes(const struct tm_params *p)
{
	return records(p) * sizeof(struct record);
}

static struct record *record_at(const struct tm_env *env, uint64_t i)
{
	return (struct record *)env->pm + i;
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

/* If only the process died, a mark may be in a cache still, and clients are going to see what it marks. */
static int recover(const struct tm_env *env)
{
	pmem_persist(env->pm, env->pm_len);
	return 0;
}

static void fsck(const struct tm_env *env, struct tm_fsck *f)
{
	bool last = false;
	for (size_t i = 0; i < records(env->params); i++) {
		const struct record *r = record_at(env, i);
		last = last || !r->used;
		if (last && r->used)
			f->bad(f, "record %zu is used after the log's end", i);
		for (unsigned k = 0; r->used && k < r->puts; k++)
			if (r->puts > TM_TXN_OPS || r->put[k].klen > TM_MAX_KEY ||
			    (r->put[k].vlen > MAX_VALUE && r->put[k].vlen != DELETED))
				f->bad(f, "record %zu makes no sense", i);
	}
}

/* --- messages --- */

enum { GET, COMMIT };

/* What a transaction has seen of a key, by its version, or puts there; a GET asks for one. */
struct part {
	uint64_t version;
	uint32_t is_put, pad;
	struct put put;
};

struct message {
	uint32_t op, parts;
	int32_t status; /* of a COMMIT -EAGAIN: aborted */
	uint32_t pad;
	struct part part[TM_TXN_OPS];
};

/* --- the server --- */

struct server {
	struct tm_env env;
	struct serve_server serve;
	uint64_t used; /* records */
};

/* The key's version, 0: it has none; and what it is. */
static uint64_t find(const struct server *s, const struct put *key, const struct put **found)
{
	for (uint64_t v = s->used; v > 0; v--) {
		const struct record *r = record_at(&s->env, v - 1);
		for (unsigned k = r->puts; k-- > 0;) {
			*found = &r->put[k];
			if (r->put[k].klen == key->klen && !memcmp(r->put[k].key, key->key, key->klen))
				return v;
		}
	}
	*found = NULL;
	return 0;
}

static bool is_current(const struct server *s, const struct message *m)
{
	const struct put *found;
	for (unsigned i = 0; i < m->parts; i++)
		if (!m->part[i].is_put && find(s, &m->part[i].put, &found) != m->part[i].version)
			return false;
	return true;
}

/* A record of puts from `first` on; returns the number of the next. */
static unsigned append(struct server *s, const struct message *m, unsigned first, unsigned most)
{
	struct record *r = record_at(&s->env, s->used);
	unsigned puts = 0; /* the power may have left another number there */
	for (; first < m->parts && puts < most; first++)
		if (m->part[first].is_put)
			r->put[puts++] = m->part[first].put;
	if (!puts)
		return first;
	r->puts = puts;
	pmem_persist(r, sizeof(*r));
	r->used = 1;
	pmem_persist(&r->used, sizeof(r->used));
	s->used++;
	return first;
}

static int commit(struct server *s, const struct message *m)
{
	const struct tm_params *p = s->env.params;
	const uint8_t validate = p->knob[KNOB_VALIDATE];
	unsigned puts = 0;
	for (unsigned i = 0; i < m->parts; i++)
		puts += m->part[i].is_put;
	bool validates = validate == VALIDATE_FIRST || (validate == VALIDATE_WRITERS && puts);
	if (validates && !is_current(s, m))
		return -EAGAIN;
	if (puts && (rt_pm_full() || s->used + puts >= records(p)))
		return -ENOSPC;
	const bool current = validate != VALIDATE_LATE || is_current(s, m);
	const uint8_t record = p->knob[KNOB_RECORD];
	/* Are there puts where the next record will be? They are of one that the power has torn. */
	const bool each = record == RECORD_EACH || (record == RECORD_LATER && record_at(&s->env, s->used)->puts);
	const unsigned most = each ? 1 : TM_TXN_OPS;
	for (unsigned i = 0; i < m->parts;)
		i = append(s, m, i, most);
	return current ? 0 : -EAGAIN;
}

static size_t handle(void *arg, const void *request, void *answer)
{
	struct server *s = arg;
	const struct message *m = request;
	struct message *reply = answer;
	memset(reply, 0, sizeof(*reply));
	if (m->op == COMMIT) {
		reply->status = commit(s, m);
		return sizeof(*reply);
	}
	const struct put *found;
	reply->part[0].version = find(s, &m->part[0].put, &found);
	if (found && found->vlen != DELETED)
		reply->part[0].put = *found;
	else
		reply->status = -ENOENT;
	return sizeof(*reply);
}

static int serve(const struct tm_env *env)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->env = *env;
	while (record_at(env, s->used)->used)
		s->used++;
	int rc = serve_init(&s->serve, env, sizeof(struct message), handle, s);
	return rc ? rc : serve_start(&s->serve);
}

/* --- a client --- */

static int open_client(const struct tm_env *env, void **handle)
{
	struct serve_client *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*handle = c;
	return serve_connect(c, env, sizeof(struct message));
}

static struct message *begin(struct serve_client *c, uint32_t op)
{
	struct message *m = (struct message *)c->request;
	memset(m, 0, sizeof(*m));
	m->op = op;
	return m;
}

static int add_part(struct message *m, bool is_put, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct part *p = &m->part[m->parts++];
	if (klen > TM_MAX_KEY || (vlen > MAX_VALUE && vlen != DELETED))
		return -EINVAL;
	p->is_put = is_put;
	p->put.klen = (uint32_t)klen;
	p->put.vlen = (uint32_t)vlen;
	memcpy(p->put.key, key, klen);
	if (value)
		memcpy(p->put.value, value, vlen);
	return 0;
}

static int call(struct serve_client *c)
{
	int rc = serve_call(c, sizeof(struct message));
	return rc ? rc : ((const struct message *)c->reply)->status;
}

static int put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	int rc = add_part(begin(client, COMMIT), true, key, klen, value, vlen);
	return rc ? rc : call(client);
}

static int del(void *client, const void *key, size_t klen)
{
	return put(client, key, klen, NULL, DELETED);
}

static int get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct serve_client *c = client;
	int rc = add_part(begin(c, GET), false, key, klen, NULL, 0);
	rc = rc ? rc : call(c);
	if (rc)
		return rc;
	const struct put *found = &((const struct message *)c->reply)->part[0].put;
	*vlen = found->vlen;
	memcpy(value, found->value, *vlen < cap ? *vlen : cap);
	return 0;
}

/* What the transaction has put there, or deleted, itself, or NULL. */
static const struct tm_txn_op *own_put(const struct tm_txn *txn, unsigned before)
{
	const struct tm_txn_op *o = &txn->op[before];
	while (before-- > 0)
		if ((txn->op[before].put || txn->op[before].del) && txn->op[before].klen == o->klen &&
		    !memcmp(txn->op[before].key, o->key, o->klen))
			return &txn->op[before];
	return NULL;
}

static int txn(void *client, struct tm_txn *txn)
{
	struct serve_client *c = client;
	uint64_t version[TM_TXN_OPS];
	for (unsigned i = 0; i < txn->ops; i++) {
		struct tm_txn_op *o = &txn->op[i];
		const struct tm_txn_op *own = own_put(txn, i);
		if (o->put || o->del || (own && own->del))
			continue;
		if (own) {
			o->found = true;
			o->vlen = own->vlen;
			memcpy(o->answer, own->value, o->vlen < o->cap ? o->vlen : o->cap);
			continue;
		}
		int rc = get(c, o->key, o->klen, o->answer, o->cap, &o->vlen);
		if (rc && rc != -ENOENT)
			return rc;
		o->found = !rc;
		version[i] = ((const struct message *)c->reply)->part[0].version;
	}
	struct message *m = begin(c, COMMIT);
	for (unsigned i = 0; i < txn->ops; i++) {
		const struct tm_txn_op *o = &txn->op[i];
		const bool writes = o->put || o->del;
		if (!writes && own_put(txn, i))
			continue;
		int rc = add_part(m, writes, o->key, o->klen, o->put ? o->value : NULL, o->put ? o->vlen : o->del ? DELETED : 0);
		if (rc)
			return rc;
		if (!writes)
			m->part[m->parts - 1].version = version[i];
	}
	int rc = call(c);
	txn->aborted = rc == -EAGAIN;
	return txn->aborted ? 0 : rc;
}

static const struct tm_knob knobs[] = {
	[KNOB_VALIDATE] = {"validate", "first writers late never",
			   "when the server looks whether versions are current: before it puts, not for those that put nothing, "
			   "after, or never"},
	[KNOB_RECORD] = {"record", "one each later",
			 "records of a transaction: one, or one for each put, or that over what the power has left of another one"},
	{NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"unchecked_reads", "validate=writers", "a seeded bug: who only reads is not told that it was overtaken",
	 TM_BIT(TM_SSER) | TM_BIT(TM_ATOM)},
	{"abort_late", "validate=late", "a seeded bug: what is aborted has been put already", TM_BIT(TM_NORES) | TM_BIT(TM_SSER)},
	{"no_validation", "validate=never", "a seeded bug: updates are lost", TM_BIT(TM_SSER)},
	{"two_later", "record=later", "a seeded bug: as two_records, where a record was torn", TM_BIT(TM_ATOM)},
	{"two_records", "record=each", "a seeded bug: the power may leave half of a transaction", TM_BIT(TM_ATOM)},
	{NULL, NULL, NULL, 0},
};

static const struct tm_overhead overheads[] = {{"put", 40, false}, {NULL, 0, false}};

const struct tm_store pairs_store = {
	.name = "pairs",
	.what = "a table with optimistic transactions, each one record of a log",
	.promises = TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_MONO) | TM_BIT(TM_KEEP) |
		    TM_BIT(TM_NORES) | TM_BIT(TM_OK) | TM_BIT(TM_ATOM) | TM_BIT(TM_SSER) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK),
	.fsck_at_rest = true,
	.knobs = knobs,
	.variants = variants,
	.overheads = overheads,
	.max_vlen = MAX_VALUE,
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
	.txn = txn,
};
