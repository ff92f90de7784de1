/* SPDX-License-Identifier: BSD-3-Clause */
/* A server: recovery of what is its own, its start, and the requests of clients. See octopus_tx.h.
 */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/octopus_tx/octopus_tx.h"

/* An item that was never written is free: somebody wanted to lock its key. */
static void free_unwritten(const struct octx_pool *pool)
{
	const size_t stride = octx_txn_bytes(pool->params, 1) - sizeof(struct octx_txn);

	for (size_t off = 0; off < pool->items_bytes; off += stride) {
		struct octx_item *item = octx_item_at(pool, off);
		if (!item->version)
			item->klen = 0;
		pmem_persist(item, sizeof(*item));
	}
}

int octx_recover(const struct tm_env *env)
{
	const struct octx_pool pool = octx_pool_at(env->params, env->pm);

	if (!has_bug(env->params, locks_kept))
		octx_free_locks(&pool, OCTX_SERVERS);
	free_unwritten(&pool);
	for (uint64_t i = 0; i < pool.entries; i++) {
		struct octx_txn *entry = octx_entry(&pool, i);
		const struct octx_tail *tail = octx_tail(&pool, entry);
		if (octx_to_redo(&pool, entry, env->server) ||
		    (has_bug(env->params, in_doubt_kept) && tail->prepared && !tail->ended))
			octx_apply(env, &pool, entry, true);
	}
	return 0;
}

static bool is_transaction(const struct octx_server *server, const struct rpc_msg *msg)
{
	struct octx_txn *txn = (struct octx_txn *)msg->bytes;

	if (msg->has_imm || msg->len < sizeof(*txn) || txn->op != OCTX_TXN || !txn->n ||
	    txn->n > TM_TXN_OPS || msg->len != octx_txn_bytes(&server->params, txn->n))
		return false;
	for (unsigned i = 0; i < txn->n; i++) {
		const struct octx_item *item = octx_item(&server->params, txn, i);
		if (!item->klen || item->klen > TM_MAX_KEY ||
		    (item->len > server->params.max_vlen && item->len != OCTX_NONE))
			return false;
	}
	return true;
}

static size_t handle(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct octx_server *server = arg;
	struct octx_txn *rsp = reply;

	if (cap < octx_txn_bytes(&server->params, TM_TXN_OPS))
		return 0;
	rsp->status = is_transaction(server, msg)
			      ? octx_coordinate(server, (struct octx_txn *)msg->bytes, rsp)
			      : -EPROTO;
	rsp->n = rsp->status ? 0 : rsp->n;
	return octx_txn_bytes(&server->params, rsp->n);
}

/* Requests of clients and of the other server have a task each: a coordinator waits for the other
 * one, and that one may coordinate as well. */
static int listen(struct octx_server *server)
{
	const size_t bytes = octx_txn_bytes(&server->params, TM_TXN_OPS);
	struct tm_params params = server->params;
	struct tm_env env = server->env;
	int rc = rpc_server_init(&server->rpc, &env, bytes, handle, server);

	params.clients = 1;
	env.params = &params;
	if (!rc)
		rc = rpc_server_init(&server->others, &env, bytes, octx_participate, server);
	if (!rc)
		rc = rpc_server_export(&server->others, server->pool.items,
				       server->pool.items_bytes,
				       IBV_ACCESS_LOCAL_WRITE | (int)server->others.qp_access);
	server->rpc.others = &server->others;
	if (!rc)
		rc = rt_spawn("participant", rpc_server_task, &server->others);
	return rc ? rc : rpc_server_listen(&server->rpc);
}

int octx_serve(const struct tm_env *env)
{
	struct octx_server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->env = *env;
	server->env.params = &server->params;
	server->pool = octx_pool_at(&server->params, env->pm);
	server->ask = calloc(1, octx_txn_bytes(&server->params, TM_TXN_OPS));
	if (!server->ask)
		return -ENOMEM;
	for (uint64_t i = 0; i < server->pool.entries; i++)
		if (octx_entry(&server->pool, i)->op)
			server->used = i + 1;
	int rc = listen(server);
	if (rc)
		return rc;
	octx_resume(server);
	return rt_spawn("server", rpc_server_task, &server->rpc);
}
