/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store whose server does nothing: clients append to a log in PM, and read it, by one-sided requests alone.
 *
 * A PUT takes a record's place with a fetch-and-add, WRITEs the record, and READs a part of it back: the reply of a READ says
 * that earlier WRITEs of the connection are visible. A GET READs the log and takes the last record of the key that is whole.
 * Whether what is visible is durable, too, depends on the server's hardware: see docs/one-sided.md.
 */
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/serve.h>
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

/* --- the server, which does nothing --- */

static int serve(const struct tm_env *env)
{
	struct serve_server *s = calloc(1, sizeof(*s));
	int rc = s ? serve_init(s, env, 0, NULL, NULL) : -ENOMEM;
	if (!rc)
		rc = serve_region(s, env->pm, env->pm_len,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
					  IBV_ACCESS_REMOTE_ATOMIC);
	return rc ? rc : serve_start(s);
}

/* --- a client --- */

struct client {
	const struct tm_params *params;
	struct serve_client link;
	struct ibv_mr *mr;     /* of the two */
	struct log *log;       /* a copy */
	struct record *record; /* that is written */
};

static int open_client(const struct tm_env *env, void **handle)
{
	const size_t bytes = pm_bytes(env->params), all = bytes + record_bytes(env->params);
	struct client *c = calloc(1, sizeof(*c));
	if (!c || !(c->log = calloc(1, all)))
		return -ENOMEM;
	c->params = env->params;
	c->record = (struct record *)((uint8_t *)c->log + bytes);
	*handle = c;
	int rc = serve_connect(&c->link, env, 0);
	if (!rc && !(c->mr = ibv_reg_mr(c->link.pd, c->log, all, IBV_ACCESS_LOCAL_WRITE)))
		rc = -errno;
	return rc;
}

/* A request of `bytes` at an offset of the server's log. The last one of an operation is waited for. */
static int post(struct client *c, enum ibv_wr_opcode opcode, void *local, uint64_t off, size_t bytes, bool wait)
{
	return serve_rdma(&c->link, opcode, c->mr, local, bytes, off, wait);
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
