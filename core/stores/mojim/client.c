/* SPDX-License-Identifier: BSD-3-Clause */
/* A client asks the server that the configuration names. See mojim.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/stores/mojim/mojim.h"

struct client {
	struct tm_params params;
	struct rpc_conn conn;
	uint8_t *message;
};

int mojim_open(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));
	struct tm_env to = *env;
	struct rt_config config;
	int rc = -ENOMEM;

	if (!client)
		return rc;
	client->params = *env->params;
	client->message = calloc(1, mojim_message_bytes(env->params));
	rt_config_get(&config);
	to.server = config.primary;
	if (client->message)
		rc = rpc_open(&client->conn, &to, mojim_message_bytes(env->params), TM_LINE, NULL);
	*out = client;
	return rc;
}

/* The reply is in client->message when this returns 0, and its length is right. */
static int call(struct client *client, const struct kv_req *req, const void *value, size_t vlen)
{
	const struct kv_rsp *rsp = (const struct kv_rsp *)client->message;
	size_t len;

	memcpy(client->message, req, sizeof(*req));
	if (vlen)
		memcpy(client->message + sizeof(*req), value, vlen);
	int rc = rpc_call(&client->conn, client->message, sizeof(*req) + vlen, client->message,
			  mojim_message_bytes(&client->params), &len);
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
	struct client *client = arg;
	struct kv_req req;
	int rc = kv_put_init(&req, key, klen, vlen, client->params.max_vlen);

	return rc ? rc : call(client, &req, value, vlen);
}

int mojim_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	const struct kv_rsp *rsp = (const struct kv_rsp *)client->message;
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
	struct client *client = arg;
	struct kv_req req;
	int rc = kv_req_init(&req, KV_DEL, key, klen);

	return rc ? rc : call(client, &req, NULL, 0);
}
