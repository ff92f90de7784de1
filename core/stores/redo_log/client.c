/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: PUT, GET, DELETE. See redo.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/redo_log/redo.h"

struct client {
	struct tm_params params;
	struct rpc_conn conn;
	uint8_t *msg;		    /* a request with its value; a reply with its value */
	struct redo_record *record; /* raw: with its value */
};

static void drop(struct client *client)
{
	free(client->msg);
	free(client->record);
	free(client);
}

int redo_open(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));
	size_t bytes = redo_message_bytes(env->params), slot = redo_slot_bytes(env->params);
	int rc = -ENOMEM;

	if (!client)
		return rc;
	client->params = *env->params;
	client->msg = calloc(1, bytes);
	client->record = calloc(1, slot);
	if (client->msg && client->record)
		rc = rpc_open(&client->conn, env, bytes, slot, NULL);
	if (rc)
		drop(client);
	else
		*out = client;
	return rc;
}

/* Send what is in client->msg. The reply is there when this returns 0, and its length is right. */
static int call_once(struct client *client, size_t bytes, struct redo_rsp *rsp)
{
	size_t len;
	int rc = rpc_call(&client->conn, client->msg, bytes, client->msg,
			  redo_message_bytes(&client->params), &len);

	if (rc)
		return rc;
	if (len < sizeof(*rsp))
		return -EPROTO;
	memcpy(rsp, client->msg, sizeof(*rsp));
	if (rsp->status)
		return rsp->status;
	return len == sizeof(*rsp) + rsp->vlen ? 0 : -EPROTO;
}

/* Again and again while the ring is full. */
static int call(struct client *client, const struct kv_req *req, const void *value, size_t vlen,
		struct redo_rsp *rsp)
{
	uint64_t nap = KV_NAP_NS;
	int rc;

	for (;;) {
		memcpy(client->msg, req, sizeof(*req));
		if (vlen)
			memcpy(client->msg + sizeof(*req), value, vlen);
		rc = call_once(client, sizeof(*req) + vlen, rsp);
		if (rc != -EAGAIN)
			return rc;
		kv_nap(&nap);
	}
}

/* A READ does not overtake what was written before it on the same connection: when it is back, the
 * record has left the NIC, which is the commit point. */
static int put_by_raw(struct client *client, const struct kv_req *req, const void *value)
{
	struct rpc_conn *conn = &client->conn;
	const void *unused;
	struct redo_rsp rsp;
	int rc = call(client, req, value, 0, &rsp);
	size_t bytes = sizeof(*client->record) + req->vlen;

	if (rc)
		return rc;
	redo_fill(client->record, req, rsp.seq, value);
	if (has_bug(&client->params, read_skipped))
		return rpc_write(conn, REDO_RING, rsp.off, client->record, bytes);
	rc = rpc_write_behind(conn, REDO_RING, rsp.off, client->record, bytes);
	return rc ? rc : rpc_read(conn, REDO_RING, rsp.off, 8, &unused);
}

int redo_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct client *client = arg;
	struct kv_req req;
	struct redo_rsp rsp;
	int rc = kv_put_init(&req, key, klen, vlen, client->params.max_vlen);

	if (rc)
		return rc;
	if (client->params.knob[METHOD] == METHOD_RAW)
		return put_by_raw(client, &req, value);
	req.crc = kv_crc(value, vlen);
	return call(client, &req, value, vlen, &rsp);
}

int redo_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	struct kv_req req;
	struct redo_rsp rsp;
	int rc = kv_req_init(&req, KV_GET, key, klen);

	if (!rc)
		rc = call(client, &req, NULL, 0, &rsp);
	if (rc)
		return rc;
	*vlen = rsp.vlen;
	memcpy(value, client->msg + sizeof(rsp), rsp.vlen < cap ? rsp.vlen : cap);
	return 0;
}

int redo_del(void *arg, const void *key, size_t klen)
{
	struct client *client = arg;
	struct kv_req req;
	struct redo_rsp rsp;
	int rc = kv_req_init(&req, KV_DEL, key, klen);

	return rc ? rc : call(client, &req, NULL, 0, &rsp);
}
