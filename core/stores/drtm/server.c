/* SPDX-License-Identifier: BSD-3-Clause */
/* A server: its clients' messages, and what it does when it begins. See drtm.h. */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include "core/rt/rt.h"
#include "core/stores/drtm/drtm.h"

/* --- messages --- */

static bool is_txn(const struct drtm_server *server, const struct rpc_msg *msg)
{
	struct drtm_txn *txn = (struct drtm_txn *)msg->bytes;
	if (txn->op != DRTM_TXN || msg->len < sizeof(*txn) || txn->n > TM_TXN_OPS ||
	    msg->len != drtm_txn_bytes(&server->params, txn->n))
		return false;
	for (unsigned i = 0; i < txn->n; i++) {
		const struct drtm_part *part = drtm_part(&server->params, txn, i);
		if (!drtm_is_place(&server->pool, part->server, part->off) ||
		    (part->vlen > server->params.max_vlen && part->vlen != DRTM_ABSENT))
			return false;
	}
	return true;
}

static int handle_find(void *arg, const struct kv_req *req, struct kv_rsp *rsp)
{
	struct drtm_server *server = arg;
	const struct record *record = drtm_find(&server->pool, req->key);
	if (!record)
		return -ENOSPC;
	rsp->off = (uint64_t)((const uint8_t *)record - server->pool.records_at);
	return 0;
}

static size_t handle(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct drtm_server *server = arg;
	struct drtm_txn *out = reply;
	if (msg->has_imm || !msg->len || cap < drtm_txn_bytes(&server->params, TM_TXN_OPS))
		return 0;
	if (*(const uint8_t *)msg->bytes == DRTM_FIND)
		return kv_handle(handle_find, server, msg, false, reply, cap);
	out->status = is_txn(server, msg) ? drtm_execute(server, (struct drtm_txn *)msg->bytes, out)
					  : -EPROTO;
	return msg->len;
}

/* --- the start --- */

/* What is locked in this server's name, and not in its log. Nobody else frees it. */
static int free_locked(struct drtm_server *server, unsigned at)
{
	const uint64_t locked = drtm_own_lock(server);
	const size_t bytes = server->pool.record_bytes;
	struct rpc_conn *conn = &server->conn[at];
	const void *all;
	uint64_t found;
	int rc = rpc_read(conn, 0, 0, server->pool.records * bytes, &all);
	for (uint32_t i = 0; i < server->pool.records && !rc; i++) {
		const struct record *record = (const void *)((const uint8_t *)all + i * bytes);
		if (record->state == locked)
			rc = rpc_cas(conn, 0, i * bytes, locked, 0, &found);
	}
	return rc;
}

/* Leases go on: who has one does not hear of this server's failure. One that ends later than any
 * can was given when all clocks were other ones. */
int drtm_recover(const struct tm_env *env)
{
	const struct drtm_pool pool = drtm_pool_at(env->params, env->pm);
	if (pool.log->state > LOG_COMMITTED || pool.log->n > TM_TXN_OPS)
		pool.log->state = pool.log->n = 0;
	if (has_bug(env->params, undone) && pool.log->state)
		pool.log->state = LOG_LOCKS;
	for (uint32_t i = 0; i < pool.records; i++) {
		struct record *record = drtm_record(&pool, i);
		if (!(record->state & DRTM_LOCKED) && record->state > drtm_last_lease())
			record->state = 0;
	}
	pmem_persist(env->pm, env->pm_len);
	return 0;
}

int drtm_serve(const struct tm_env *env)
{
	struct drtm_server *server = calloc(1, sizeof(*server));
	struct tm_params more;
	const struct tm_env with = members_env_served(env, DRTM_SERVERS, &more);
	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->env = *env;
	server->env.params = &server->params;
	server->pool = drtm_pool_at(&server->params, env->pm);
	int rc = rpc_server_init(&server->rpc, &with, drtm_txn_bytes(env->params, TM_TXN_OPS),
				 handle, server);
	if (rc)
		return rc;
	server->rpc.qp_access |= IBV_ACCESS_REMOTE_ATOMIC;
	rc = rpc_server_export(&server->rpc, server->pool.records_at,
			       server->pool.records * server->pool.record_bytes,
			       IBV_ACCESS_LOCAL_WRITE | (int)server->rpc.qp_access);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	if (rc)
		return rc;
	for (unsigned to = 0; to < DRTM_SERVERS; to++)
		drtm_connect(server, to);
	drtm_finish(server, server->pool.log->state == LOG_COMMITTED, true);
	for (unsigned to = 0; to < DRTM_SERVERS && !has_bug(&server->params, locks_kept); to++)
		while (free_locked(server, to))
			drtm_connect(server, to);
	return rt_spawn("server", rpc_server_task, &server->rpc);
}
