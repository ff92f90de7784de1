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
			      mojim_txn_bytes(env->params, TM_TXN_OPS), TM_LINE, out);
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

int mojim_txn(void *arg, struct tm_txn *txn)
{
	struct kv_client *client = arg;
	const struct tm_params *params = &client->params;
	const size_t bytes = mojim_txn_bytes(params, txn->ops);
	struct kv_req *req = (struct kv_req *)client->msg;
	int rc = 0;
	size_t len;

	memset(req, 0, bytes);
	req->op = MOJIM_TXN;
	req->off = txn->ops;
	for (unsigned i = 0; i < txn->ops && !rc; i++) {
		const struct tm_txn_op *o = &txn->op[i];
		struct kv_req *part = mojim_part(params, req, i);
		rc = o->put ? kv_put_init(part, o->key, o->klen, o->vlen, params->max_vlen)
			    : kv_req_init(part, o->del ? KV_DEL : KV_GET, o->key, o->klen);
		if (!rc && o->put)
			memcpy(part + 1, o->value, o->vlen);
	}
	if (!rc)
		rc = rpc_call(&client->conn, req, bytes, req, client->msg_bytes, &len);
	if (rc)
		return rc;
	const struct kv_rsp *rsp = (const struct kv_rsp *)req;
	if (len < sizeof(*rsp) || rsp->status || len != bytes)
		return len >= sizeof(*rsp) && rsp->status ? rsp->status : -EPROTO;
	for (unsigned i = 0; i < txn->ops; i++) {
		struct tm_txn_op *o = &txn->op[i];
		rsp = mojim_part(params, req, i);
		o->found = !o->put && !o->del && !rsp->status;
		if (!o->found)
			continue;
		o->vlen = rsp->vlen;
		memcpy(o->answer, rsp + 1, o->vlen < o->cap ? o->vlen : o->cap);
	}
	return 0;
}
