/* SPDX-License-Identifier: BSD-3-Clause */
/* See kv_small.h. */
#include "core/stores/kv_small.h"

#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"

uint64_t kv_lines(uint32_t vlen)
{
	return kv_round_up(vlen, TM_LINE) / TM_LINE;
}

size_t kv_table_bytes(const struct tm_params *params)
{
	return kv_table_at(params, NULL).slots * sizeof(struct kv_entry);
}

int kv_format(const struct tm_env *env)
{
	pmem_persist(env->pm, env->pm_len);
	return 0;
}

unsigned kv_regions(const struct tm_region *all, unsigned n, struct tm_region *out, unsigned max)
{
	if (n > max)
		n = max;
	for (unsigned i = 0; i < n; i++)
		out[i] = all[i];
	return n;
}

bool kv_is_request(const struct rpc_msg *msg, bool values)
{
	const struct kv_req *req = msg->bytes;

	if (msg->has_imm || msg->len < sizeof(*req) || req->klen == 0 || req->klen > TM_MAX_KEY)
		return false;
	return msg->len - sizeof(*req) == (values && req->op == KV_PUT ? req->vlen : 0);
}

size_t kv_handle(kv_handler *handler, void *arg, const struct rpc_msg *msg, bool values,
		 void *reply, size_t cap)
{
	const struct kv_req *req = msg->bytes;
	struct kv_rsp *rsp = reply;

	if (cap < sizeof(*rsp))
		return 0;
	rsp->status = kv_is_request(msg, values) ? handler(arg, req, rsp) : -EPROTO;
	return sizeof(*rsp);
}

int kv_server_listen(struct rpc_server *rpc)
{
	int rc = rpc_server_listen(rpc);

	return rc ? rc : rt_spawn("server", rpc_server_task, rpc);
}

int kv_server_start(struct rpc_server *rpc, void *log, size_t len)
{
	int rc = rpc_server_export(rpc, log, len, IBV_ACCESS_LOCAL_WRITE | (int)rpc->qp_access);

	return rc ? rc : kv_server_listen(rpc);
}

int kv_client_open(struct kv_client *client, const struct tm_env *env, size_t msg_bytes,
		   size_t data_bytes, void **out)
{
	int rc = -ENOMEM;

	if (!client)
		return rc;
	client->params = *env->params;
	client->msg_bytes = msg_bytes;
	client->msg = msg_bytes ? calloc(1, msg_bytes) : NULL;
	if (client->msg || !msg_bytes)
		rc = rpc_open(&client->conn, env, msg_bytes ? msg_bytes : sizeof(struct kv_req),
			      data_bytes, NULL);
	if (!rc) {
		*out = client;
		return 0;
	}
	free(client->msg);
	free(client);
	return rc;
}

int kv_client_open_data(struct kv_client *client, const struct tm_env *env, size_t data_bytes)
{
	struct rpc_conn *data = malloc(sizeof(*data));

	if (!data)
		return -ENOMEM;
	int rc = rpc_open_further(data, env, sizeof(struct kv_req), data_bytes);
	if (rc)
		free(data);
	else
		client->data = data;
	return rc;
}

struct rpc_conn *kv_client_data(struct kv_client *client)
{
	return client->data ? client->data : &client->conn;
}

void kv_client_close(struct kv_client *client)
{
	rpc_close(&client->conn);
	if (client->data)
		rpc_close(client->data);
	free(client->data);
}

int kv_client_put(struct kv_client *client, unsigned log, const void *key, size_t klen,
		  const void *value, size_t vlen, uint32_t crc)
{
	struct kv_req req;
	struct kv_rsp rsp;
	int rc = kv_req_init(&req, KV_PUT, key, klen);

	if (rc)
		return rc;
	if (vlen > client->params.max_vlen)
		return -EMSGSIZE;
	req.vlen = (uint32_t)vlen;
	req.crc = crc;
	rc = kv_call(&client->conn, &req, &rsp);
	if (rc || vlen == 0)
		return rc;
	return rpc_write(kv_client_data(client), log, rsp.off, value, vlen);
}

int kv_client_read(struct kv_client *client, unsigned log, uint64_t off, size_t vlen, void *value,
		   size_t cap, size_t *out_vlen)
{
	const void *data;

	*out_vlen = vlen;
	if (vlen == 0)
		return 0;
	if (vlen > client->params.max_vlen)
		return -EBADMSG;
	int rc = rpc_read(kv_client_data(client), log, off, vlen, &data);
	if (!rc)
		memcpy(value, data, vlen < cap ? vlen : cap);
	return rc;
}

int kv_client_del(void *client, const void *key, size_t klen)
{
	struct kv_client *kv = client;
	struct kv_req req;
	struct kv_rsp rsp;
	int rc = kv_req_init(&req, KV_DEL, key, klen);

	return rc ? rc : kv_call(&kv->conn, &req, &rsp);
}
