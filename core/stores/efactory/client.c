/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client: PUT moves its value by itself, GET reads entry and object by
 * itself and asks the server only when the object is not known to be durable
 * (EF 4.3.1, 4.3.3).
 */
#include "core/stores/efactory/efactory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/rpc.h"

struct ef_client {
	struct rpc_conn conn;
	struct tm_params params;
	uint64_t slots, log_len;
	uint32_t number;
	size_t last_vlen; /* of the last value read: an entry does not tell */
};

int ef_open(const struct tm_env *env, void **out)
{
	struct ef_client *client = calloc(1, sizeof(*client));
	int rc;

	if (!client)
		return -ENOMEM;
	client->params = *env->params;
	client->slots = ef_slots(env->params);
	client->log_len = ef_log_len(env->params);
	client->number = env->client;
	client->last_vlen = env->params->max_vlen;
	rc = rpc_open(&client->conn, env, sizeof(struct kv_req),
		      sizeof(struct ef_object) + env->params->max_vlen);
	if (rc) {
		free(client);
		return rc;
	}
	*out = client;
	return 0;
}

/* A request with its key; the caller adds what else it takes. -EINVAL: no such key. */
static int make_req(const struct ef_client *client, struct kv_req *req, enum kv_op op, const void *key,
		    size_t klen)
{
	memset(req, 0, sizeof(*req));
	req->op = (uint8_t)op;
	req->klen = (uint8_t)klen;
	req->client = client->number;
	return kv_key_pad(req->key, key, klen);
}

static int call(struct ef_client *client, const struct kv_req *req, struct kv_rsp *rsp)
{
	size_t len;
	int rc = rpc_call(&client->conn, req, sizeof(*req), rsp, sizeof(*rsp), &len);

	if (rc)
		return rc;
	return len == sizeof(*rsp) ? rsp->status : -EPROTO;
}

int ef_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct ef_client *client = arg;
	struct kv_req req;
	struct kv_rsp rsp;
	int rc = make_req(client, &req, KV_PUT, key, klen);

	if (rc)
		return rc;
	if (vlen > client->params.max_vlen)
		return -EMSGSIZE;
	req.vlen = (uint32_t)vlen;
	req.crc = kv_crc(value, vlen);
	rc = call(client, &req, &rsp);
	if (rc || vlen == 0)
		return rc;
	return rpc_write(&client->conn, EF_LOG, rsp.off + sizeof(struct ef_object), value, vlen);
}

int ef_del(void *arg, const void *key, size_t klen)
{
	struct ef_client *client = arg;
	struct kv_req req;
	struct kv_rsp rsp;
	int rc = make_req(client, &req, KV_DEL, key, klen);

	return rc ? rc : call(client, &req, &rsp);
}

/* Is this the wanted key's object? The paper compares the key in the entry only. */
static bool right_object(const struct ef_client *client, const struct ef_object *object,
			 const struct kv_req *req)
{
	if (ef_knob(&client->params, EF_VERIFY_OBJ_KEY))
		return true;
	return object->klen == req->klen && memcmp(object->key, req->key, sizeof(req->key)) == 0;
}

/* READ the object at `off`, of which vlen bytes are expected; at most up to the end of the log. */
static int read_object(struct ef_client *client, uint64_t off, size_t vlen, const struct ef_object **object,
		       size_t *got)
{
	const void *data;
	int rc;

	if (off > client->log_len - sizeof(**object))
		return -ERANGE;
	*got = client->log_len - sizeof(**object) - off;
	if (*got > vlen)
		*got = vlen;
	rc = rpc_read(&client->conn, EF_LOG, off, sizeof(**object) + *got, &data);
	*object = data;
	return rc;
}

static int take_value(struct ef_client *client, const struct ef_object *object, void *value, size_t cap,
		      size_t *vlen)
{
	size_t len = object->vlen;

	client->last_vlen = len;
	*vlen = len;
	memcpy(value, object->value, len < cap ? len : cap);
	return 0;
}

/*
 * READ entries from the key's place on. 0 with *off (0: no version), -ENOENT: no
 * entry, -EAGAIN: not found so near, the server must look.
 */
static int find_entry(struct ef_client *client, const struct kv_req *req, uint64_t *off)
{
	uint64_t slot = kv_hash(req->key);

	for (unsigned i = 0; i < EF_PROBE && i < client->slots; i++, slot++) {
		uint64_t at = (slot & (client->slots - 1)) * sizeof(struct ef_entry);
		const struct ef_entry *entry;
		const void *data;
		int rc = rpc_read(&client->conn, EF_TABLE, at, sizeof(*entry), &data);

		if (rc)
			return rc;
		entry = data;
		if (!(entry->ctl & EF_USED))
			return -ENOENT;
		if (memcmp(entry->key, req->key, sizeof(req->key)) == 0) {
			*off = entry->off[entry->ctl & EF_MARK];
			return 0;
		}
	}
	return client->slots <= EF_PROBE ? -ENOENT : -EAGAIN;
}

/* Two READs, without the server. -EAGAIN: the version may not be durable yet, or is not what was looked for.
 */
static int get_one_sided(struct ef_client *client, const struct kv_req *req, void *value, size_t cap,
			 size_t *vlen)
{
	const struct ef_object *object;
	size_t got, expect = client->last_vlen;
	uint64_t off;
	int rc = find_entry(client, req, &off);

	if (rc)
		return rc;
	if (!off)
		return -ENOENT;
	for (;;) {
		rc = read_object(client, off, expect, &object, &got);
		if (rc)
			return rc;
		if (!(object->state & EF_FLAG) && !ef_bug(&client->params, EF_BUG_CLIENT_NO_FLAG))
			return -EAGAIN;
		if (!right_object(client, object, req) || object->vlen > client->params.max_vlen)
			return -EAGAIN;
		if (object->kind == EF_TOMBSTONE)
			return -ENOENT;
		if (object->vlen <= got)
			return take_value(client, object, value, cap, vlen);
		if (expect >= object->vlen)
			return -EAGAIN; /* longer than the log */
		expect = object->vlen;
	}
}

/* Ask the server, which names a version that is durable. */
static int get_by_rpc(struct ef_client *client, const struct kv_req *req, void *value, size_t cap,
		      size_t *vlen)
{
	const struct ef_object *object;
	struct kv_rsp rsp;
	size_t got;
	int rc = call(client, req, &rsp);

	while (rc == -EAGAIN) {
		rt_yield();
		rc = call(client, req, &rsp);
	}
	if (rc)
		return rc;
	rc = read_object(client, rsp.off, rsp.vlen, &object, &got);
	if (rc)
		return rc;
	if (object->vlen != rsp.vlen || got != rsp.vlen || !right_object(client, object, req))
		return -EBADMSG;
	return take_value(client, object, value, cap, vlen);
}

int ef_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct ef_client *client = arg;
	struct kv_req req;
	int rc = make_req(client, &req, KV_GET, key, klen);

	if (!rc)
		rc = get_one_sided(client, &req, value, cap, vlen);
	if (rc == -EAGAIN)
		rc = get_by_rpc(client, &req, value, cap, vlen);
	return rc;
}
