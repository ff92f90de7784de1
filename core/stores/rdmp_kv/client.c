/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: PUT, GET, DELETE. See rdmp_kv.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/rdmp_kv/rdmp_kv.h"

struct client {
	struct tm_params params;
	struct rpc_conn conn;
	uint8_t *msg; /* a request with its value */
};

int rdmp_open(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));
	size_t bytes = rdmp_message_bytes(env->params);
	int rc;

	if (!client)
		return -ENOMEM;
	client->params = *env->params;
	client->msg = calloc(1, bytes);
	rc = client->msg ? rpc_open(&client->conn, env, bytes,
				    rdmp_object_bytes(TM_MAX_KEY, env->params->max_vlen), NULL)
			 : -ENOMEM;
	if (!rc) {
		*out = client;
		return 0;
	}
	free(client->msg);
	free(client);
	return rc;
}

/* What became of a request: `rc`, of which `len` bytes came back. */
static int status_of(int rc, size_t len, const struct rdmp_rsp *rsp)
{
	if (rc)
		return rc;
	return len == sizeof(*rsp) ? rsp->status : -EPROTO;
}

/* Send a request, with `vlen` bytes of a value behind it, and wait for the reply. */
static int call(struct client *client, const struct kv_req *req, const void *value, size_t vlen,
		struct rdmp_rsp *rsp)
{
	size_t len;
	int rc;

	memcpy(client->msg, req, sizeof(*req));
	if (vlen)
		memcpy(client->msg + sizeof(*req), value, vlen);
	rc = rpc_call(&client->conn, client->msg, sizeof(*req) + vlen, rsp, sizeof(*rsp), &len);
	return status_of(rc, len, rsp);
}

/* The value, and after it, on the same connection, the word that it is there. */
static int write_value(struct client *client, const struct kv_req *req, const struct rdmp_rsp *at,
		       const void *value)
{
	struct rpc_conn *conn = &client->conn;
	struct rdmp_rsp rsp;
	size_t len = 0;
	int rc = 0;

	if (req->vlen)
		rc = rpc_write_behind(conn, RDMP_OBJECTS, at->off + req->klen, value, req->vlen);
	if (!rc)
		rc = rpc_call_imm(conn, RDMP_OBJECTS, at->off, NULL, 0, at->slot, &rsp, sizeof(rsp),
				  &len);
	return status_of(rc, len, &rsp);
}

int rdmp_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct client *client = arg;
	struct kv_req req;
	struct rdmp_rsp rsp;
	int rc = kv_req_init(&req, KV_PUT, key, klen);

	if (rc)
		return rc;
	if (vlen > client->params.max_vlen)
		return -EMSGSIZE;
	req.vlen = (uint32_t)vlen;
	if (rdmp_is_small(&client->params, vlen))
		return call(client, &req, value, vlen, &rsp);
	rc = call(client, &req, NULL, 0, &rsp);
	return rc ? rc : write_value(client, &req, &rsp, value);
}

int rdmp_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	unsigned flag = has_bug(&client->params, BUG_PF_READ) ? 0 : 1;
	const uint8_t *object;
	struct kv_req req;
	struct rdmp_rsp rsp;
	int rc = kv_req_init(&req, KV_GET, key, klen);

	while (!rc) {
		rc = call(client, &req, NULL, 0, &rsp);
		if (!rc)
			rc = rpc_read(&client->conn, RDMP_OBJECTS, rsp.off,
				      rdmp_object_bytes(req.klen, rsp.vlen),
				      (const void **)&object);
		if (rc || rt_check(object[rdmp_flags_at(req.klen, rsp.vlen) + flag] == 1))
			break;
		/* Its PUT is under way: ask again. */
		rt_yield();
	}
	if (rc)
		return rc;
	*vlen = rsp.vlen;
	memcpy(value, object + req.klen, rsp.vlen < cap ? rsp.vlen : cap);
	return 0;
}

int rdmp_del(void *arg, const void *key, size_t klen)
{
	struct client *client = arg;
	struct kv_req req;
	struct rdmp_rsp rsp;
	int rc = kv_req_init(&req, KV_DEL, key, klen);

	return rc ? rc : call(client, &req, NULL, 0, &rsp);
}
