/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: it asks the server, and READs by itself where it has a pointer. See hydradb.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/hydradb/hydradb.h"

#define POINTERS_MAX 1024 /* pointers that a client remembers */

/* Where a key's item is. A key has one place, which others may take from it. */
struct cached {
	uint8_t key[TM_MAX_KEY];
	struct hydradb_pointer pointer;
	uint64_t end;	   /* on this client's clock */
	uint32_t accesses; /* since the lease began */
};

struct client {
	struct tm_params params;
	struct rpc_conn conn;
	uint32_t number;  /* of the request that was sent last */
	uint64_t sent_at; /* rt_now() */
	uint8_t *request;
	uint32_t len; /* of the reply's body */
	struct cached *cached;
	uint64_t mask; /* their number - 1 */
};

static void drop(struct client *client)
{
	free(client->request);
	free(client->cached);
	free(client);
}

static size_t largest(size_t a, size_t b)
{
	return a > b ? a : b;
}

int hydradb_open(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));
	size_t request = hydradb_request_bytes(env->params);
	size_t item = kv_round_up(hydradb_item_bytes(TM_MAX_KEY, env->params->max_vlen), TM_LINE);
	uint64_t pointers = kv_pow2(2 * (uint64_t)env->params->keys + 1);
	int rc = -ENOMEM;

	if (!client)
		return rc;
	if (pointers > POINTERS_MAX)
		pointers = POINTERS_MAX;
	client->params = *env->params;
	client->mask = pointers - 1;
	client->request = calloc(1, request);
	client->cached = calloc(pointers, sizeof(*client->cached));
	if (client->request && client->cached)
		rc = rpc_open_own(&client->conn, env, 0, largest(request, item),
				  hydradb_reply_bytes(env->params));
	if (rc)
		drop(client);
	else
		*out = client;
	return rc;
}

/* ---------------------------------------------------------------- asking */

static bool has_reply(void *arg)
{
	struct client *client = arg;
	bool front = has_bug(&client->params, reply_front);

	return hydradb_landed(client->conn.own, hydradb_reply_bytes(&client->params),
			      &client->params, front, &client->len);
}

/* Send the request in client->request and wait for the reply, which stays in conn->own until the
 * next request. */
static int call(struct client *client, struct hydradb_reply *reply)
{
	const struct kv_req *req = (const struct kv_req *)(client->request + HYDRADB_BODY);
	uint32_t value = req->op == KV_PUT ? req->vlen : 0;
	uint32_t len = (uint32_t)sizeof(*req) + value;
	struct rpc_conn *conn = &client->conn;

	memset(conn->own, 0, hydradb_message_bytes(client->len));
	client->len = 0;
	if (!++client->number)
		client->number = 1;
	hydradb_mark(client->request, len, client->number, &client->params);
	client->sent_at = rt_now();
	int rc = rpc_write(conn, HYDRADB_REQUESTS,
			   conn->index * hydradb_request_bytes(&client->params), client->request,
			   hydradb_message_bytes(len));
	if (!rc)
		rc = kv_wait_own(conn, HYDRADB_ITEMS, has_reply, client);
	if (rc)
		return rc;
	if (client->len < sizeof(*reply))
		return -EPROTO;
	memcpy(reply, conn->own + HYDRADB_BODY, sizeof(*reply));
	return reply->status;
}

static int ask(struct client *client, enum kv_op op, const void *key, size_t klen,
	       const void *value, size_t vlen, struct hydradb_reply *reply)
{
	struct kv_req *req = (struct kv_req *)(client->request + HYDRADB_BODY);
	int rc = kv_req_fill(req, op, key, klen, value, vlen, client->params.max_vlen);

	return rc ? rc : call(client, reply);
}

/* -------------------------------------------------------------- pointers */

/* Where the key's pointer is remembered. */
static struct cached *place_of(struct client *client, const uint8_t key[TM_MAX_KEY])
{
	return &client->cached[kv_hash(key) & client->mask];
}

static void forget(struct client *client, const void *key, size_t klen)
{
	uint8_t padded[TM_MAX_KEY];

	if (!kv_key_pad(padded, key, klen))
		place_of(client, padded)->pointer.bytes = 0;
}

/* By how much the client's clock is late when it looks whether a lease has ended. */
static uint64_t skew_ns(const struct tm_params *params)
{
	static const uint64_t ns[] = {0, HYDRADB_NEAR_NS, HYDRADB_FAR_NS};

	return ns[params->knob[SKEW]];
}

/* The server counts from later on. */
static void remember(struct client *client, struct cached *cached, const uint8_t key[TM_MAX_KEY],
		     const struct hydradb_pointer *pointer)
{
	memcpy(cached->key, key, TM_MAX_KEY);
	cached->pointer = *pointer;
	cached->accesses = 0;
	cached->end = UINT64_MAX;
	if (pointer->lease_ns)
		cached->end = client->sent_at + pointer->lease_ns + skew_ns(&client->params);
}

static bool is_usable(const struct client *client, const struct cached *cached,
		      const uint8_t key[TM_MAX_KEY])
{
	if (!cached->pointer.bytes || rt_now() >= cached->end)
		return false;
	return has_bug(&client->params, key_assumed) || !memcmp(cached->key, key, TM_MAX_KEY);
}

/* Most of the lease is over: have it begin again. If that fails the value is there all the same. */
static void renew(struct client *client, struct cached *cached, const void *key, size_t klen)
{
	const struct hydradb_pointer *pointer = &cached->pointer;
	struct kv_req *req = (struct kv_req *)(client->request + HYDRADB_BODY);
	struct hydradb_reply reply;

	if (!pointer->lease_ns || cached->end - rt_now() > pointer->lease_ns / 2 ||
	    kv_req_init(req, KV_RENEW, key, klen))
		return;
	req->vlen = cached->accesses;
	if (call(client, &reply))
		cached->pointer.bytes = 0;
	else
		remember(client, cached, req->key, &reply.pointer);
}

/* ------------------------------------------------------------------- GET */

/* Is it the key's item, and was it while it was READ? */
static bool is_current(const struct client *client, const struct cached *cached, const void *item,
		       const uint8_t key[TM_MAX_KEY])
{
	const struct hydradb_pointer *pointer = &cached->pointer;
	const struct tm_params *params = &client->params;
	uint64_t guardian;

	if (params->knob[CHECK] == CHECK_AFTER && rt_now() >= cached->end)
		return false;
	memcpy(&guardian, (const uint8_t *)item + pointer->bytes - sizeof(guardian),
	       sizeof(guardian));
	if (params->knob[MATCH] == MATCH_VERSION && hydradb_version(guardian) != pointer->version)
		return false;
	if (!has_bug(params, guardian_unread) && !rt_check(hydradb_live(guardian)))
		return false;
	return has_bug(params, key_assumed) || hydradb_fits(item, pointer->bytes, key);
}

/* By a READ. -EAGAIN: it is not the key's any more. */
static int read_item(struct client *client, struct cached *cached, const uint8_t key[TM_MAX_KEY],
		     void *value, size_t cap, size_t *vlen)
{
	const struct hydradb_item *item;
	int rc = rpc_read(&client->conn, HYDRADB_ITEMS, cached->pointer.off, cached->pointer.bytes,
			  (const void **)&item);

	if (rc)
		return rc;
	if (!is_current(client, cached, item, key))
		return -EAGAIN;
	cached->accesses++;
	*vlen = item->vlen;
	memcpy(value, item->bytes + item->klen, *vlen < cap ? *vlen : cap);
	return 0;
}

/* From the server, with a pointer for the next time. */
static int ask_value(struct client *client, struct cached *cached, const void *key, size_t klen,
		     void *value, size_t cap, size_t *vlen)
{
	const struct kv_req *req = (const struct kv_req *)(client->request + HYDRADB_BODY);
	struct hydradb_reply reply;
	int rc = ask(client, KV_GET, key, klen, NULL, 0, &reply);

	cached->pointer.bytes = 0;
	if (rc)
		return rc;
	remember(client, cached, req->key, &reply.pointer);
	*vlen = client->len - sizeof(reply);
	memcpy(value, client->conn.own + HYDRADB_BODY + sizeof(reply), *vlen < cap ? *vlen : cap);
	return 0;
}

int hydradb_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	uint8_t padded[TM_MAX_KEY];
	struct cached *cached;
	int rc = kv_key_pad(padded, key, klen);

	if (rc)
		return rc;
	cached = place_of(client, padded);
	if (!is_usable(client, cached, padded))
		return ask_value(client, cached, key, klen, value, cap, vlen);
	rc = read_item(client, cached, padded, value, cap, vlen);
	if (rc == -EAGAIN)
		return ask_value(client, cached, key, klen, value, cap, vlen);
	if (!rc)
		renew(client, cached, key, klen);
	return rc;
}

/* ----------------------------------------------------------- PUT, DELETE */

int hydradb_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct client *client = arg;
	struct hydradb_reply reply;

	forget(client, key, klen);
	return ask(client, KV_PUT, key, klen, value, vlen, &reply);
}

int hydradb_del(void *arg, const void *key, size_t klen)
{
	struct client *client = arg;
	struct hydradb_reply reply;

	forget(client, key, klen);
	return ask(client, KV_DEL, key, klen, NULL, 0, &reply);
}
