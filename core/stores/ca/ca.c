/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client-active PUTs without persistence: the baseline that eFactory's paper (EF 3) compares
 * latencies with, and unsafe by construction.
 *
 * PUT: the client asks for space; the server allocates it, points the key's entry to it, before
 * there is any data, and replies; the client WRITEs the value and is done. GET: READ the
 * entry, READ the value, return it unverified. Nothing is ever flushed but what recovery
 * mends. So it promises almost nothing: it shows what the other stores' checks are for.
 *
 * Recovery drops entries that cannot be right, moves those that a lost neighbour has made
 * unreachable, and appends after the last value that an entry names.
 */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/kv_pool.h"

enum { BUG = KV_CROWD + 1, KNOBS };
enum { NO_BUG, BUG_UNREACHABLE_LEFT, BUG_TAIL_SHORT, BUG_MOVES_ONCE };

struct ca_server {
	struct tm_params params;
	struct rpc_server rpc;
	struct kv_pool pool;
	uint64_t tail; /* lines */
};

struct ca_client {
	struct kv_client kv;
	struct kv_table table;
};

static int recover(const struct tm_env *env)
{
	struct kv_pool pool = kv_pool_at(env->params, env->pm);
	uint8_t bug = env->params->knob[BUG];

	kv_pool_drop_impossible(&pool);
	while (bug != BUG_UNREACHABLE_LEFT && kv_pool_move_unreachable(&pool) &&
	       bug != BUG_MOVES_ONCE)
		;
	pmem_persist(pool.table.entry, kv_table_bytes(env->params));
	return 0;
}

/* ---------------------------------------------------------------- server */

/* Metadata before data: from here on readers find a value that has not been written (EF 3). There
 * is no commit point. */
static int handle_put(struct ca_server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	uint64_t need = kv_lines(req->vlen);
	bool found;

	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	struct kv_entry *entry = kv_table_find(&server->pool.table, req->key, &found);
	if (!entry || rt_pm_full() || need > server->pool.log_lines - server->tail)
		return -ENOSPC;
	if (!found)
		memcpy(entry->key, req->key, sizeof(entry->key));
	entry->where = kv_where(server->tail, req->vlen);
	if (!found)
		entry->ctl = kv_checked_ctl(req->key, req->klen);
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

static size_t handle_message(void *server, const struct rpc_msg *msg, void *reply, size_t cap)
{
	return kv_handle(handle_request, server, msg, false, reply, cap);
}

/* The seeded bug: the last value does not count. */
static uint64_t last_value(const struct kv_pool *pool)
{
	uint64_t last = 0;

	for (uint64_t i = 0; i < pool->table.slots; i++) {
		uint64_t where = pool->table.entry[i].where;

		if ((where & 1) && kv_where_line(where) > last)
			last = kv_where_line(where);
	}
	return last;
}

static int serve(const struct tm_env *env)
{
	struct ca_server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	struct kv_pool *pool = &server->pool;
	*pool = kv_pool_at(&server->params, env->pm);
	server->tail = env->params->knob[BUG] == BUG_TAIL_SHORT ? last_value(pool)
								: kv_pool_tail(pool);
	int rc = rpc_server_init(&server->rpc, env, sizeof(struct kv_req), handle_message, server);
	if (!rc)
		rc = kv_pool_serve(&server->rpc, pool);
	return rc;
}

/* ---------------------------------------------------------------- client */

static int open_client(const struct tm_env *env, void **out)
{
	struct ca_client *client = calloc(1, sizeof(*client));
	uint32_t max_vlen = env->params->max_vlen;

	if (client)
		client->table = kv_table_at(env->params, NULL);
	return kv_client_open((struct kv_client *)client, env, 0,
			      max_vlen > TM_LINE ? max_vlen : TM_LINE, out);
}

static int put_value(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return kv_client_put(client, KV_POOL_LOG, key, klen, value, vlen, 0);
}

static int get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct ca_client *client = arg;

	return kv_pool_get(&client->kv, &client->table, key, klen, value, cap, vlen);
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

static const struct tm_shape shapes[] = {
	{.name = "crowded"},
	{.name = "line_torn=any"},
	{.name = "calls=fail"},
	{.name = NULL},
};

const struct tm_store ca_store = {
	.name = "ca",
	.what = "client-active PUTs without persistence: metadata first, unverified GETs (EF 3)",
	.fsck_at_rest = true,
	.promises = TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK),
	.knobs = knobs,
	.variants = variants,
	.shapes = shapes,
	.pm_bytes = kv_pool_bytes,
	.regions = kv_pool_regions,
	.format = kv_format,
	.recover = recover,
	.serve = serve,
	.fsck = kv_pool_fsck,
	.open = open_client,
	.put = put_value,
	.get = get,
	.del = kv_client_del,
};
