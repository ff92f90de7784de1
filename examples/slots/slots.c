/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slots: a hash table of fixed slots in PM. The server applies PUT and DELETE, asked by SEND; a GET is a READ by the client.
 *
 * An entry is two slots of 256 bytes. Version n of a key lies in slot n & 1, so an update never touches the current one. It
 * is written, made durable, and then `current` (in the entry's first slot) is set to n: clients see it from then on. What
 * `current` is after a power failure does not matter: recovery takes the newest slot whose checksum is right.
 */
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/serve.h>
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

/* --- the server --- */

struct server {
	struct tm_env env;
	struct serve_server serve;
};

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

static size_t handle(void *arg, const void *request, void *answer)
{
	struct message *reply = answer;
	memset(reply, 0, sizeof(*reply));
	reply->status = update(arg, request);
	return sizeof(*reply);
}

static int serve(const struct tm_env *env)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->env = *env;
	int rc = serve_init(&s->serve, env, sizeof(struct message), handle, s);
	if (!rc)
		rc = serve_region(&s->serve, env->pm, env->pm_len, IBV_ACCESS_REMOTE_READ);
	return rc ? rc : serve_start(&s->serve);
}

/* --- a client --- */

struct client {
	const struct tm_params *params;
	struct serve_client link;
	struct ibv_mr *mr;
	struct entry entry; /* a copy */
};

static int open_client(const struct tm_env *env, void **handle)
{
	struct client *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->params = env->params;
	*handle = c;
	int rc = serve_connect(&c->link, env, sizeof(struct message));
	if (!rc && !(c->mr = ibv_reg_mr(c->link.pd, &c->entry, sizeof(c->entry), IBV_ACCESS_LOCAL_WRITE)))
		rc = -errno;
	return rc;
}

static int call(struct client *c, uint32_t op, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct message *m = (struct message *)c->link.request;
	if (klen > TM_MAX_KEY || vlen > MAX_VALUE)
		return -EINVAL;
	memset(m, 0, sizeof(*m));
	m->op = op;
	m->klen = (uint32_t)klen;
	m->vlen = (uint32_t)vlen;
	memcpy(m->key, key, klen);
	if (vlen)
		memcpy(m->value, value, vlen);
	int rc = serve_call(&c->link, sizeof(*m));
	return rc ? rc : ((const struct message *)c->link.reply)->status;
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
	while (tries < n) {
		int rc = serve_rdma(&c->link, IBV_WR_RDMA_READ, c->mr, &c->entry, sizeof(c->entry), i * sizeof(c->entry), true);
		if (rc)
			return rc;
		const uint64_t v = c->entry.slot[0].current;
		const struct slot *s = &c->entry.slot[v & 1];
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
