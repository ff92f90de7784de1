/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client-active PUTs without persistence: the baseline that eFactory's paper (EF 3) compares
 * latencies with, and unsafe by construction.
 *
 * PUT: the client asks for space; the server allocates it, points the key's entry to it, before
 * there is any data, and replies; the client WRITEs the value and is done. GET: READ the
 * entry, READ the value, return it unverified. Nothing is ever flushed but what recovery
 * mends. So it promises next to nothing: it shows what the other stores' checks are for.
 *
 *	+-------------------------------+-------------------------+
 *	| table: kv_entry[slots]	| log: values, appended -> |
 *	+-------------------------------+-------------------------+
 *
 *	kv_entry.where	bits 63..24 place of the value in the log, in lines
 *			bits 23..1  its length, bytes
 *			bit 0	    1: there is a value
 *
 * Recovery drops entries that cannot be right, moves those that a lost neighbour has made
 * unreachable, and appends after the last value that an entry names.
 */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/kv_small.h"

#define CA_TABLE 0 /* exported region: read only */
#define CA_LOG	 1 /* exported region: read and write */

enum { BUG = KV_CROWD + 1, KNOBS };
enum { NO_BUG, BUG_UNREACHABLE_LEFT, BUG_TAIL_SHORT, BUG_MOVES_ONCE };

struct ca_pool {
	struct kv_table table;
	uint8_t *log;
	uint64_t log_lines;
};

struct ca_server {
	struct tm_params params;
	struct rpc_server rpc;
	struct ca_pool pool;
	uint64_t tail; /* lines */
};

struct ca_client {
	struct kv_client kv;
	struct kv_table table;
};

static uint64_t where_of(uint64_t line, uint32_t vlen)
{
	return line << 24 | (uint64_t)vlen << 1 | 1;
}

static uint64_t where_line(uint64_t where)
{
	return where >> 24;
}

static uint32_t where_vlen(uint64_t where)
{
	return (uint32_t)(where & 0xffffff) >> 1;
}

/* ------------------------------------------------------------------ pool */

static uint64_t log_lines(const struct tm_params *params)
{
	return params->updates * kv_lines(params->max_vlen);
}

static size_t pm_bytes(const struct tm_params *params)
{
	return kv_table_bytes(params) + log_lines(params) * TM_LINE;
}

static unsigned regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	const struct tm_region all[] = {
		{"table", 0, kv_table_bytes(params)},
		{"log", kv_table_bytes(params), log_lines(params) * TM_LINE}};

	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

static void map_pool(struct ca_pool *pool, const struct tm_params *params, uint8_t *pm)
{
	pool->table = kv_table_at(params, pm);
	pool->log = pm + kv_table_bytes(params);
	pool->log_lines = log_lines(params);
}

static bool sane(const struct ca_pool *pool, const struct kv_entry *entry)
{
	uint64_t line = where_line(entry->where), len = kv_lines(where_vlen(entry->where));

	if (!kv_entry_sane(entry))
		return false;
	return !(entry->where & 1) || (line <= pool->log_lines && len <= pool->log_lines - line);
}

static void drop_impossible_entries(struct ca_pool *pool)
{
	for (uint64_t i = 0; i < pool->table.slots; i++) {
		struct kv_entry *entry = &pool->table.entry[i];

		if ((entry->ctl & KV_USED) && !sane(pool, entry))
			kv_entry_clear(entry);
	}
}

/* An entry may have survived where one before it in its probe sequence has not. Moving one can
 * only bring it nearer to its place, so this ends. */
static void move_unreachable_entries(struct ca_pool *pool, const struct tm_params *params)
{
	for (uint64_t i = 0; i < pool->table.slots; i++) {
		struct kv_entry *entry = &pool->table.entry[i], *to;
		bool found;

		if (!(entry->ctl & KV_USED))
			continue;
		to = kv_table_find(&pool->table, entry->key, &found);
		if (to == entry)
			continue;
		if (!found)
			memcpy(to, entry, sizeof(*to));
		kv_entry_clear(entry);
		/* From the start: what followed it may have to move, too. */
		if (params->knob[BUG] != BUG_MOVES_ONCE)
			i = UINT64_MAX;
	}
}

static int recover(const struct tm_env *env)
{
	struct ca_pool pool;

	map_pool(&pool, env->params, env->pm);
	drop_impossible_entries(&pool);
	if (env->params->knob[BUG] != BUG_UNREACHABLE_LEFT)
		move_unreachable_entries(&pool, env->params);
	pmem_persist(pool.table.entry, kv_table_bytes(env->params));
	return 0;
}

/* Lines are handed out once, so no two values share any. */
static void check_shared(const struct ca_pool *pool, uint64_t i, struct tm_fsck *fsck)
{
	uint64_t one = pool->table.entry[i].where, from = where_line(one);
	uint64_t end = from + kv_lines(where_vlen(one));

	for (uint64_t k = 0; k < i && one & 1; k++) {
		uint64_t other = pool->table.entry[k].where, at = where_line(other);

		if (pool->table.entry[k].ctl & KV_USED && other & 1 && at < end &&
		    at + kv_lines(where_vlen(other)) > from)
			fsck->bad(fsck, "table[%llu] and table[%llu]: their values overlap",
				  (unsigned long long)k, (unsigned long long)i);
	}
}

static void fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct ca_pool pool;

	map_pool(&pool, env->params, env->pm);
	for (uint64_t i = 0; i < pool.table.slots; i++) {
		const struct kv_entry *entry = &pool.table.entry[i];
		unsigned long long slot = i;
		bool found;

		if (!(entry->ctl & KV_USED))
			continue;
		if (!sane(&pool, entry))
			fsck->bad(fsck, "table[%llu]: no such key, or its value outside of the log",
				  slot);
		else if (kv_table_find(&pool.table, entry->key, &found) != entry)
			fsck->bad(fsck, "table[%llu]: its key does not lead to it", slot);
		else
			check_shared(&pool, i, fsck);
	}
}

/* ---------------------------------------------------------------- server */

/* Metadata before data: from here on readers find a value that has not been written (EF 3). */
static int handle_put(struct ca_server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	uint64_t need = kv_lines(req->vlen);
	struct kv_entry *entry;
	bool found;

	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	entry = kv_table_find(&server->pool.table, req->key, &found);
	if (!entry || rt_pm_full() || need > server->pool.log_lines - server->tail)
		return -ENOSPC;
	if (!found)
		memcpy(entry->key, req->key, sizeof(entry->key));
	entry->where = where_of(server->tail, req->vlen);
	if (!found)
		entry->ctl = KV_USED | (uint64_t)req->klen << KV_KLEN_SHIFT;
	rsp->off = server->tail * TM_LINE;
	server->tail += need;
	return 0;
}

static int handle_del(struct ca_server *server, const struct kv_req *req)
{
	bool found;
	struct kv_entry *entry = kv_table_find(&server->pool.table, req->key, &found);

	if (found)
		entry->where = 0;
	return 0;
}

static int handle_request(void *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	if (req->op == KV_PUT)
		return handle_put(server, req, rsp);
	return req->op == KV_DEL ? handle_del(server, req) : -EPROTO;
}

static size_t handle(void *server, const struct rpc_msg *msg, void *reply, size_t cap)
{
	return kv_handle(handle_request, server, msg, reply, cap);
}

/* Where the log ends: after the last value that an entry names. */
static uint64_t find_tail(const struct ca_pool *pool, const struct tm_params *params)
{
	uint64_t tail = 0;

	for (uint64_t i = 0; i < pool->table.slots; i++) {
		uint64_t where = pool->table.entry[i].where;
		uint64_t end = where_line(where);

		if (params->knob[BUG] != BUG_TAIL_SHORT)
			end += kv_lines(where_vlen(where));
		if ((where & 1) && end > tail)
			tail = end;
	}
	return tail;
}

static int serve(const struct tm_env *env)
{
	struct ca_server *server = calloc(1, sizeof(*server));
	struct ca_pool *pool;
	int rc;

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	pool = &server->pool;
	map_pool(pool, &server->params, env->pm);
	server->tail = find_tail(pool, env->params);
	rc = rpc_server_init(&server->rpc, env, sizeof(struct kv_req), handle, server);
	if (!rc) /* CA_TABLE */
		rc = rpc_server_export(&server->rpc, pool->table.entry, kv_table_bytes(env->params),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!rc) /* CA_LOG */
		rc = kv_server_start(&server->rpc, pool->log, pool->log_lines * TM_LINE);
	return rc;
}

/* ---------------------------------------------------------------- client */

static int open_client(const struct tm_env *env, void **out)
{
	struct ca_client *client = calloc(1, sizeof(*client));
	uint32_t max_vlen = env->params->max_vlen;

	if (client)
		client->table = kv_table_at(env->params, NULL);
	return kv_client_open((struct kv_client *)client, env,
			      max_vlen > TM_LINE ? max_vlen : TM_LINE, out);
}

static int put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return kv_client_put(client, CA_LOG, key, klen, value, vlen, 0);
}

static int get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct ca_client *client = arg;
	uint8_t padded[TM_MAX_KEY];
	struct kv_entry entry;
	int rc = kv_key_pad(padded, key, klen);

	if (!rc)
		rc = kv_table_read(&client->kv.conn, CA_TABLE, &client->table, padded, &entry);
	if (rc)
		return rc;
	if (!(entry.where & 1))
		return -ENOENT;
	return kv_client_read(&client->kv, CA_LOG, where_line(entry.where) * TM_LINE,
			      where_vlen(entry.where), value, cap, vlen);
}

static const struct tm_knob knobs[] = {
	[KV_CROWD] = KV_CROWD_KNOB,
	[BUG] = {"bug", "none unreachable_left tail_short moves_once",
		 "a seeded bug, see the variants"},
	[KNOBS] = {NULL, NULL, NULL},
};
static const struct tm_variant variants[] = {
	{"crowded", "crowd=on", "all keys collide in a table that has hardly more slots than keys",
	 0},
	{"unreachable_left", "bug=unreachable_left crowd=on",
	 "recovery leaves entries where they are that a lost neighbour has made unreachable: the "
	 "key is gone, and twice in the table after its next PUT",
	 TM_BIT(TM_FSCK)},
	{"moves_once", "bug=moves_once crowd=on",
	 "recovery goes through the table once: an entry before one that it moves may have become "
	 "unreachable by that",
	 TM_BIT(TM_FSCK)},
	{"tail_short", "bug=tail_short",
	 "after a restart the log goes on at the first line of the last value: the next PUT of any "
	 "key overwrites it",
	 TM_BIT(TM_FSCK)},
	{NULL, NULL, NULL, 0},
};

const struct tm_store ca_store = {
	.name = "ca",
	.what = "client-active PUTs without persistence: metadata first, unverified GETs (EF 3)",
	.fsck_at_rest = true,
	.promises = TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK),
	.knobs = knobs,
	.variants = variants,
	.shapes = "crowded calls=fail",
	.pm_bytes = pm_bytes,
	.regions = regions,
	.format = kv_format,
	.recover = recover,
	.serve = serve,
	.fsck = fsck,
	.open = open_client,
	.put = put,
	.get = get,
	.del = kv_client_del,
};
