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
 * unreachable, and goes on behind the last value that an entry names.
 */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/kv_table.h"

#define CA_TABLE 0 /* exported region: read only */
#define CA_LOG	 1 /* exported region: read and write */

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
	struct rpc_conn conn;
	uint64_t slots;
	uint32_t max_vlen;
};

static uint64_t lines(uint32_t vlen)
{
	return kv_round_up(vlen, KV_LINE) / KV_LINE;
}

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

static size_t table_bytes(const struct tm_params *params)
{
	return kv_table_slots(params) * sizeof(struct kv_entry);
}

static uint64_t log_lines(const struct tm_params *params)
{
	return params->updates * lines(params->max_vlen);
}

static size_t pm_bytes(const struct tm_params *params)
{
	return table_bytes(params) + log_lines(params) * KV_LINE;
}

static unsigned regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	const struct tm_region all[] = {{"table", 0, table_bytes(params)},
					{"log", table_bytes(params), log_lines(params) * KV_LINE}};
	unsigned n = 0;

	for (; n < 2 && n < max; n++)
		out[n] = all[n];
	return n;
}

static void map_pool(struct ca_pool *pool, const struct tm_params *params, uint8_t *pm)
{
	pool->table.entry = (struct kv_entry *)pm;
	pool->table.slots = kv_table_slots(params);
	pool->log = pm + table_bytes(params);
	pool->log_lines = log_lines(params);
}

static int format(const struct tm_env *env)
{
	pmem_persist(env->pm, env->pm_len); /* zeros are an empty store */
	return 0;
}

static bool sane(const struct ca_pool *pool, const struct kv_entry *entry)
{
	uint64_t line = where_line(entry->where), len = lines(where_vlen(entry->where));

	if (!kv_entry_sane(entry))
		return false;
	return !(entry->where & 1) || (line <= pool->log_lines && len <= pool->log_lines - line);
}

static int recover(const struct tm_env *env)
{
	struct ca_pool pool;

	map_pool(&pool, env->params, env->pm);
	for (uint64_t i = 0; i < pool.table.slots; i++) {
		struct kv_entry *entry = &pool.table.entry[i];

		if ((entry->ctl & KV_USED) && !sane(&pool, entry))
			memset(entry, 0, sizeof(*entry));
	}
	/* An entry may have survived where one before it in its probe sequence has not. Moving one
	 * can only bring it nearer to its place, so this ends. */
	for (uint64_t i = 0; i < pool.table.slots; i++) {
		struct kv_entry *entry = &pool.table.entry[i], *to;
		bool found;

		if (!(entry->ctl & KV_USED))
			continue;
		to = kv_table_find(&pool.table, entry->key, &found);
		if (to == entry)
			continue;
		if (!found)
			memcpy(to, entry, sizeof(*to));
		memset(entry, 0, sizeof(*entry));
		i = UINT64_MAX; /* look again from the start: what followed it may have to move
				 * too */
	}
	pmem_persist(pool.table.entry, table_bytes(env->params));
	return 0;
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
	}
}

/* ---------------------------------------------------------------- server */

/* Metadata before data: from here on readers find a value that has not been written (EF 3). */
static int handle_put(struct ca_server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	uint64_t need = lines(req->vlen);
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
	rsp->off = server->tail * KV_LINE;
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

static size_t handle(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct ca_server *server = arg;
	const struct kv_req *req = msg->bytes;
	struct kv_rsp *rsp = reply;

	if (cap < sizeof(*rsp))
		return 0;
	if (msg->has_imm || msg->len != sizeof(*req) || req->klen == 0 || req->klen > TM_MAX_KEY)
		rsp->status = -EPROTO;
	else if (req->op == KV_PUT)
		rsp->status = handle_put(server, req, rsp);
	else if (req->op == KV_DEL)
		rsp->status = handle_del(server, req);
	else
		rsp->status = -EPROTO;
	return sizeof(*rsp);
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
	for (uint64_t i = 0; i < pool->table.slots; i++) {
		uint64_t where = pool->table.entry[i].where;
		uint64_t end = where_line(where) + lines(where_vlen(where));

		if ((where & 1) && end > server->tail)
			server->tail = end;
	}
	rc = rpc_server_init(&server->rpc, env, sizeof(struct kv_req), handle, server);
	if (!rc) /* CA_TABLE */
		rc = rpc_server_export(&server->rpc, pool->table.entry, table_bytes(env->params),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!rc) /* CA_LOG */
		rc = rpc_server_export(&server->rpc, pool->log, pool->log_lines * KV_LINE,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					       IBV_ACCESS_REMOTE_WRITE);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	return rc ? rc : rt_spawn("server", rpc_server_task, &server->rpc);
}

/* ---------------------------------------------------------------- client */

static int open_client(const struct tm_env *env, void **out)
{
	struct ca_client *client = calloc(1, sizeof(*client));
	int rc;

	if (!client)
		return -ENOMEM;
	client->slots = kv_table_slots(env->params);
	client->max_vlen = env->params->max_vlen;
	rc = rpc_open(&client->conn, env, sizeof(struct kv_req),
		      env->params->max_vlen > KV_LINE ? env->params->max_vlen : KV_LINE);
	if (rc)
		free(client);
	else
		*out = client;
	return rc;
}

static int call(struct ca_client *client, enum kv_op op, const void *key, size_t klen, size_t vlen,
		struct kv_rsp *rsp)
{
	struct kv_req req;
	int rc = kv_req_init(&req, op, key, klen);

	req.vlen = (uint32_t)vlen;
	return rc ? rc : kv_call(&client->conn, &req, rsp);
}

static int put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct ca_client *client = arg;
	struct kv_rsp rsp;
	int rc;

	if (vlen > client->max_vlen)
		return -EMSGSIZE;
	rc = call(client, KV_PUT, key, klen, vlen, &rsp);
	if (rc || vlen == 0)
		return rc;
	return rpc_write(&client->conn, CA_LOG, rsp.off, value, vlen);
}

static int get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct ca_client *client = arg;
	uint8_t padded[TM_MAX_KEY];
	struct kv_entry entry;
	const void *data;
	int rc = kv_key_pad(padded, key, klen);

	if (!rc)
		rc = kv_table_read(&client->conn, CA_TABLE, client->slots, padded, &entry);
	if (rc)
		return rc;
	if (!(entry.where & 1))
		return -ENOENT;
	*vlen = where_vlen(entry.where);
	if (*vlen == 0)
		return 0;
	if (*vlen > client->max_vlen)
		return -EBADMSG;
	rc = rpc_read(&client->conn, CA_LOG, where_line(entry.where) * KV_LINE, *vlen, &data);
	if (!rc)
		memcpy(value, data, *vlen < cap ? *vlen : cap);
	return rc;
}

static int del(void *arg, const void *key, size_t klen)
{
	struct kv_rsp rsp;

	return call(arg, KV_DEL, key, klen, 0, &rsp);
}

static const struct tm_knob knobs[] = {{NULL, NULL, NULL}};
static const struct tm_variant variants[] = {{NULL, NULL, NULL, 0}};

const struct tm_store ca_store = {
	.name = "ca",
	.what = "client-active PUTs without persistence: metadata first, unverified GETs (EF 3)",
	.promises = TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK),
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
