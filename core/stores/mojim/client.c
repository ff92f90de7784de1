/* SPDX-License-Identifier: BSD-3-Clause */
/* A client asks the server that the configuration names. See mojim.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/stores/mojim/mojim.h"

int mojim_open(const struct tm_env *env, void **out)
{
	const struct tm_env to = members_env_primary(env);

	return kv_client_open(calloc(1, sizeof(struct kv_client)), &to,
			      mojim_message_bytes(env->params), TM_LINE, out);
}

/* The reply is in client->msg when this returns 0, and its length is right. */
static int call(struct kv_client *client, const struct kv_req *req, const void *value, size_t vlen)
{
	const struct kv_rsp *rsp = (const struct kv_rsp *)client->msg;
	size_t len;

	memcpy(client->msg, req, sizeof(*req));
	if (vlen)
		memcpy(client->msg + sizeof(*req), value, vlen);
	int rc = rpc_call(&client->conn, client->msg, sizeof(*req) + vlen, client->msg,
			  client->msg_bytes, &len);
	if (rc)
		return rc;
	if (len < sizeof(*rsp))
		return -EPROTO;
	if (rsp->status)
		return rsp->status;
	return len == sizeof(*rsp) + rsp->vlen ? 0 : -EPROTO;
}

int mojim_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct kv_client *client = arg;
	struct kv_req req;
	int rc = kv_put_init(&req, key, klen, vlen, client->params.max_vlen);

	return rc ? rc : call(client, &req, value, vlen);
}

int mojim_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct kv_client *client = arg;
	const struct kv_rsp *rsp = (const struct kv_rsp *)client->msg;
	struct kv_req req;
	int rc = kv_req_init(&req, KV_GET, key, klen);

	if (!rc)
		rc = call(client, &req, NULL, 0);
	if (rc)
		return rc;
	*vlen = rsp->vlen;
	memcpy(value, rsp + 1, rsp->vlen < cap ? rsp->vlen : cap);
	return 0;
}

int mojim_del(void *arg, const void *key, size_t klen)
{
	struct kv_client *client = arg;
	struct kv_req req;
	int rc = kv_req_init(&req, KV_DEL, key, klen);

	return rc ? rc : call(client, &req, NULL, 0);
}
