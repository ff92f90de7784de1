/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: PUT, GET, DELETE. See octopus.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/octopus/octopus.h"

#define REFUSALS 16 /* of the request that gives a lock back: it is worth some tries */

int octopus_open(const struct tm_env *env, void **out)
{
	return kv_client_open(calloc(1, sizeof(struct kv_client)), env, 0, env->params->max_vlen,
			      out);
}

/* Again and again while another client has the file. */
static int call(struct kv_client *client, const struct kv_req *req, struct kv_rsp *rsp)
{
	uint64_t nap = KV_NAP_NS;
	int rc;

	while ((rc = kv_call(&client->conn, req, rsp)) == -EAGAIN)
		kv_nap(&nap);
	return rc;
}

/* KV_COMMIT, or KV_END, which has no reply: the file is others' again. */
static int end(struct kv_client *client, struct kv_req *req, enum kv_op op)
{
	uint64_t nap = KV_NAP_NS;
	struct kv_rsp rsp;
	int rc = 0;

	req->op = (uint8_t)op;
	for (unsigned i = 0; i < REFUSALS; i++) {
		rc = op == KV_END ? rpc_send(&client->conn, req, sizeof(*req))
				  : kv_call(&client->conn, req, &rsp);
		if (rc != -ENOMEM)
			break;
		kv_nap(&nap);
	}
	return rc;
}

/* In place. What the server is told next it is told when the data have arrived: the connection
 * keeps the order. A READ after the WRITE brings them out of the NIC. */
static int write_data(struct kv_client *client, uint64_t off, const void *value, size_t vlen)
{
	struct rpc_conn *conn = &client->conn;
	const void *unused;

	if (!vlen)
		return 0;
	if (!octopus_commits(&client->params))
		return rpc_write(conn, OCTOPUS_BLOCKS, off, value, vlen);
	int rc = rpc_write_behind(conn, OCTOPUS_BLOCKS, off, value, vlen);
	if (rc || client->params.knob[PERSIST] != PERSIST_READ)
		return rc;
	return rpc_read(conn, OCTOPUS_BLOCKS, off, vlen < 8 ? vlen : 8, &unused);
}

int octopus_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct kv_client *client = arg;
	struct kv_req req;
	struct kv_rsp rsp;
	int rc = kv_put_init(&req, key, klen, vlen, client->params.max_vlen);

	if (rc)
		return rc;
	rc = call(client, &req, &rsp);
	if (rc)
		return rc;
	if (has_bug(&client->params, commit_first)) {
		rc = end(client, &req, KV_COMMIT);
		return rc ? rc : write_data(client, rsp.off, value, vlen);
	}
	rc = write_data(client, rsp.off, value, vlen);
	if (!octopus_commits(&client->params))
		return rc;
	if (!rc)
		return end(client, &req, KV_COMMIT);
	end(client, &req, KV_END);
	return rc;
}

int octopus_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct kv_client *client = arg;
	struct kv_req req;
	struct kv_rsp rsp;
	int rc = kv_req_init(&req, KV_GET, key, klen);

	if (!rc)
		rc = call(client, &req, &rsp);
	if (rc)
		return rc;
	rc = kv_client_read(client, OCTOPUS_BLOCKS, rsp.off, rsp.vlen, value, cap, vlen);
	/* If it fails, the file is others' again with this client's next request. */
	if (client->params.knob[LOCK] == LOCK_HELD && !has_bug(&client->params, reader_stays))
		end(client, &req, KV_END);
	return rc;
}

int octopus_del(void *arg, const void *key, size_t klen)
{
	struct kv_client *client = arg;
	struct kv_req req;
	struct kv_rsp rsp;
	int rc = kv_req_init(&req, KV_DEL, key, klen);

	return rc ? rc : call(client, &req, &rsp);
}
