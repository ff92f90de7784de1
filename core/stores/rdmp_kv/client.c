/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: PUT, GET, DELETE. See rdmp_kv.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rdma_commit.h"
#include "core/rt/rt.h"
#include "core/stores/kv_small.h"
#include "core/stores/rdmp_kv/rdmp_kv.h"

int rdmp_open(const struct tm_env *env, void **out)
{
	struct kv_client *client = calloc(1, sizeof(*client));
	int rc = client && rdmp_commits(env->params) ? -tm_commit_supported(env->verbs) : 0;

	if (!rc)
		return kv_client_open(
			client, env, rdmp_message_bytes(env->params),
			rdmp_object_bytes(env->params, TM_MAX_KEY, env->params->max_vlen), out);
	free(client);
	return rc;
}

/* Send a request, with `vlen` bytes of a value after it, and wait for the reply. */
static int call(struct kv_client *client, const struct kv_req *req, const void *value, size_t vlen,
		struct rdmp_rsp *rsp)
{
	return kv_call_value(&client->conn, client->msg, req, value, vlen, rsp, sizeof(*rsp));
}

/* An object of which the client has been told where it is. */
struct object {
	uint64_t off, bytes, flags; /* offset in the region; bytes; where in it the flags are */
	uint32_t klen, slot;
};

static int commit(struct kv_client *client, uint64_t off, uint64_t len)
{
	const void *unused;

	if (has_bug(&client->params, commit_skipped))
		return 0;
	if (client->params.knob[COMMIT] == COMMIT_READ)
		return rpc_read(&client->conn, RDMP_OBJECTS, off, len, &unused);
	return rpc_commit(&client->conn, RDMP_OBJECTS, off, len);
}

/* SA: the word that the value is there comes after it, on the same connection. */
static int end_by_server(struct kv_client *client, const struct object *at)
{
	struct rdmp_rsp rsp;
	size_t len = 0;
	int rc = rpc_call_imm(&client->conn, RDMP_OBJECTS, at->off, NULL, 0, at->slot, &rsp,
			      sizeof(rsp), &len);

	return kv_status(rc, len, &rsp, sizeof(rsp));
}

static int end_by_request(struct kv_client *client, const struct kv_req *put,
			  const struct object *at)
{
	struct kv_req req = *put;
	struct rdmp_rsp rsp;
	int rc = commit(client, at->off, at->bytes);

	req.op = KV_COMMIT;
	req.vlen = 0;
	req.off = at->slot;
	return rc ? rc : call(client, &req, NULL, 0, &rsp);
}

static int end_by_immediate(struct kv_client *client, const struct object *at)
{
	struct rdmp_rsp rsp;
	size_t len = 0;
	int rc;

	if (client->params.knob[COMMIT] == COMMIT_READ) {
		rc = commit(client, at->off, at->bytes);
		return rc ? rc : end_by_server(client, at);
	}
	rc = rpc_call_commit(&client->conn, RDMP_OBJECTS, at->off, at->bytes, at->slot, &rsp,
			     sizeof(rsp), &len);
	return kv_status(rc, len, &rsp, sizeof(rsp));
}

static int end_by_payload(struct kv_client *client, const struct object *at)
{
	uint64_t flags = htole64(0x0101); /* PF, VF, and nothing else in their word */
	uint64_t first = has_bug(&client->params, commit_short)
				 ? (at->bytes - 1) / TM_LINE * TM_LINE
				 : 0;
	int rc = 0;

	if (client->params.knob[COMMIT] == COMMIT_NATIVE &&
	    !has_bug(&client->params, flags_overtake))
		return rpc_commit_payload(&client->conn, RDMP_OBJECTS, at->off + first,
					  at->bytes - first, flags);
	if (!has_bug(&client->params, flags_overtake))
		rc = commit(client, at->off, at->bytes);
	if (!rc)
		rc = rpc_write(&client->conn, RDMP_OBJECTS, at->off + at->flags, &flags,
			       sizeof(flags));
	return rc ? rc : commit(client, at->off, at->bytes);
}

/* The value and, in the same WRITE, its flags. */
static int write_object(struct kv_client *client, unsigned region, const struct object *at,
			const void *value, size_t vlen)
{
	size_t len = at->bytes - at->klen;
	uint8_t *bytes = calloc(1, len);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, value, vlen);
	memset(bytes + at->flags - at->klen, 1, 2);
	int rc = rpc_write(&client->conn, region, at->off + at->klen, bytes, len);
	free(bytes);
	return rc;
}

/* Does a client write the copy in DRAM, too? */
static bool client_copies(const struct tm_params *params)
{
	return params->knob[BACKEND] == LOG_IN_PM && params->knob[METHOD] != SA;
}

static int end_put(struct kv_client *client, const struct kv_req *req, const struct object *at)
{
	switch (client->params.knob[METHOD]) {
	case CC_SA:
		return end_by_request(client, req, at);
	case CC_IMM:
		return end_by_immediate(client, at);
	case CC_ADP:
		return end_by_payload(client, at);
	default:
		return end_by_server(client, at);
	}
}

/* As the paper measured CC-ADP: the flags travel with the value. */
static int write_with_flags(struct kv_client *client, const struct object *at, const void *value,
			    size_t vlen)
{
	const void *unused;
	int rc = write_object(client, RDMP_OBJECTS, at, value, vlen);

	return rc ? rc : rpc_read(&client->conn, RDMP_OBJECTS, at->off, at->bytes, &unused);
}

/* The data phase (RK III-B): the value, and whatever makes it durable and sets its flags. */
static int write_value(struct kv_client *client, const struct kv_req *req,
		       const struct rdmp_rsp *rsp, const void *value)
{
	const struct tm_params *params = &client->params;
	struct object at = {.off = rsp->off,
			    .bytes = rdmp_object_bytes(params, req->klen, req->vlen),
			    .flags = rdmp_flags_at(params, req->klen, req->vlen),
			    .klen = req->klen,
			    .slot = rsp->slot};
	int rc = 0;

	if (params->knob[METHOD] == CC_EVALUATED)
		return write_with_flags(client, &at, value, req->vlen);
	if (req->vlen)
		rc = rpc_write_behind(&client->conn, RDMP_OBJECTS, at.off + req->klen, value,
				      req->vlen);
	/* Its flags are the server's to set. The same bytes lie in the buffer for both WRITEs. */
	if (!rc && client_copies(params) && params->knob[COPY] == COPY_FIRST)
		rc = rpc_write(&client->conn, RDMP_COPIES, at.off + req->klen, value, req->vlen);
	if (!rc)
		rc = end_put(client, req, &at);
	if (!rc && client_copies(params) && params->knob[COPY] == COPY_LATE)
		rc = write_object(client, RDMP_COPIES, &at, value, req->vlen);
	return rc;
}

int rdmp_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct kv_client *client = arg;
	struct kv_req req;
	struct rdmp_rsp rsp;
	int rc = kv_put_init(&req, key, klen, vlen, client->params.max_vlen);

	if (rc)
		return rc;
	if (rdmp_is_small(&client->params, vlen))
		return call(client, &req, value, vlen, &rsp);
	rc = call(client, &req, NULL, 0, &rsp);
	return rc ? rc : write_value(client, &req, &rsp, value);
}

static unsigned where_read(const struct tm_params *params)
{
	return params->knob[BACKEND] == LOG_IN_PM ? RDMP_COPIES : RDMP_OBJECTS;
}

/* In the paper's log backend the copy has none. */
static bool looks_at_flags(const struct tm_params *params)
{
	return params->knob[BACKEND] != LOG_IN_PM || !params->knob[COPY_FLAGS];
}

int rdmp_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct kv_client *client = arg;
	unsigned flag = has_bug(&client->params, pf_read) ? 0 : 1;
	const uint8_t *object;
	struct kv_req req;
	struct rdmp_rsp rsp;
	int rc = kv_req_init(&req, KV_GET, key, klen);

	while (!rc) {
		rc = call(client, &req, NULL, 0, &rsp);
		if (!rc)
			rc = rpc_read(&client->conn, where_read(&client->params), rsp.off,
				      rdmp_object_bytes(&client->params, req.klen, rsp.vlen),
				      (const void **)&object);
		if (rc || !looks_at_flags(&client->params) ||
		    rt_check(object[rdmp_flags_at(&client->params, req.klen, rsp.vlen) + flag] ==
			     1))
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
	struct kv_client *client = arg;
	struct kv_req req;
	struct rdmp_rsp rsp;
	int rc = kv_req_init(&req, KV_DEL, key, klen);

	return rc ? rc : call(client, &req, NULL, 0, &rsp);
}
