/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: it exports index and data, and takes connections. See nessie.h. */
#include <errno.h>
#include <stdlib.h>
#include "core/rdma_commit.h"
#include "core/stores/nessie/nessie.h"

struct server {
	struct rpc_server rpc;
	struct nessie_pool pool;
};

/* No client sends anything. */
static size_t handle_message(void *server, const struct rpc_msg *msg, void *reply, size_t cap)
{
	(void)server;
	(void)msg;
	(void)reply;
	(void)cap;
	return 0;
}

int nessie_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

	if (!server)
		return -ENOMEM;
	struct nessie_pool *pool = &server->pool;
	*pool = nessie_pool_at(env->params, env->pm);
	uint8_t *index = (uint8_t *)pool->index;
	int rc = rpc_server_init(&server->rpc, env, sizeof(uint64_t), handle_message, server);
	if (rc)
		return rc;
	if (nessie_flushes(env->params))
		access |= IBV_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_FLUSH_GLOBAL;
	server->rpc.qp_access |= (unsigned)access | IBV_ACCESS_REMOTE_ATOMIC;
	/* NESSIE_INDEX, NESSIE_DATA */
	rc = rpc_server_export(&server->rpc, index, (size_t)(pool->data - index),
			       access | IBV_ACCESS_REMOTE_ATOMIC);
	if (!rc)
		rc = rpc_server_export(&server->rpc, pool->data,
				       env->pm_len - (size_t)(pool->data - index), access);
	return rc ? rc : kv_server_listen(&server->rpc);
}
