/* SPDX-License-Identifier: BSD-3-Clause */
/* A client appends at the pipeline's head, and READs from one of its nodes. See nvfs.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/stores/nvfs/nvfs.h"

#define MOST_NAP_NS 20000

struct client {
	struct tm_params params;
	struct tm_env env;
	unsigned head; /* the server that conn[] of this number goes to */
	struct rpc_conn conn[NVFS_NODES];
	bool open[NVFS_NODES];
	uint8_t *record;
	uint8_t key[TM_MAX_KEY]; /* of the last GET; and where it was (written_end) */
	struct nvfs_found found;
};

static int connect(struct client *client, unsigned node)
{
	struct tm_env env = client->env;
	env.server = node;
	if (client->open[node] && !client->conn[node].failed)
		return 0;
	if (client->open[node])
		rpc_close(&client->conn[node]);
	int rc = rpc_open(&client->conn[node], &env, sizeof(struct kv_req),
			  nvfs_block_bytes(&client->params), NULL);
	client->open[node] = !rc;
	return rc;
}

int nvfs_open(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));
	struct rt_config config;
	int rc;
	if (!client)
		return -ENOMEM;
	client->params = *env->params;
	client->env = *env;
	client->env.params = &client->params;
	client->record = calloc(1, nvfs_record_bytes(env->params->max_vlen));
	if (!client->record)
		return -ENOMEM;
	*out = client;
	rt_config_get(&config);
	do {
		client->head = config.primary;
		rc = connect(client, client->head);
		if (rc)
			rt_config_get(&config);
	} while (rc && config.primary != client->head);
	return rc;
}

/* Ask the head, until it is one. -EHOSTDOWN: another node is, and nothing has been done. */
static int ask(struct client *client, const struct kv_req *req, struct nvfs_found *found)
{
	uint64_t nap = KV_NAP_NS;
	for (;;) {
		size_t len;
		int rc = rpc_call(&client->conn[client->head], req, sizeof(*req), found,
				  sizeof(*found), &len);
		rc = kv_status(rc, len, found, sizeof(*found));
		if (rc != -EHOSTDOWN && rc != -EBUSY)
			return rc;
		kv_nap_to(&nap, MOST_NAP_NS);
		if (rc == -EHOSTDOWN) {
			struct rt_config now;
			rt_config_get(&now);
			if (now.primary != client->head) {
				client->head = now.primary;
				rc = connect(client, client->head);
				return rc ? rc : -EHOSTDOWN;
			}
		}
	}
}

static int append(struct client *client, enum kv_op op, const void *key, size_t klen,
		  const void *value, size_t vlen)
{
	const size_t n = nvfs_record_bytes(vlen);
	struct nvfs_found found;
	struct kv_req req;
	int rc = kv_put_init(&req, key, klen, vlen, client->params.max_vlen);
	if (rc)
		return rc;
	nvfs_record(client->record, op, value, (uint32_t)vlen);
	req.vlen = (uint32_t)n;
	req.crc = kv_crc(client->record, n);
	do {
		req.op = KV_PUT;
		rc = ask(client, &req, &found);
		if (rc)
			continue;
		req.op = KV_COMMIT;
		req.off = found.off;
		rc = rpc_write_behind(&client->conn[client->head], 0, found.off, client->record, n);
		if (!rc)
			rc = ask(client, &req, &found);
	} while (rc == -EHOSTDOWN);
	return rc;
}

int nvfs_put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return append(client, KV_PUT, key, klen, value, vlen);
}

int nvfs_del(void *client, const void *key, size_t klen)
{
	return append(client, KV_DEL, key, klen, NULL, 0);
}

/* READ the block's records from a node. *end: what of them is right. */
static int read_at(struct client *client, unsigned node, const struct nvfs_found *found,
		   const struct record **last, size_t *end)
{
	const size_t whole = nvfs_block_bytes(&client->params);
	const bool all = has_bug(&client->params, written_end);
	const void *data;
	int rc = connect(client, node);
	if (!rc && all)
		rc = rpc_read(&client->conn[node], 0, found->off - sizeof(struct block), whole,
			      &data);
	else if (!rc)
		rc = rpc_read(&client->conn[node], 0, found->off, found->len, &data);
	if (rc)
		return rc;
	const struct block *block = data;
	*last = all ? nvfs_last((const uint8_t *)(block + 1), block->len, end)
		    : nvfs_last(data, found->len, end);
	return 0;
}

int nvfs_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	const struct record *last;
	struct nvfs_found found = client->found;
	struct kv_req req;
	size_t end;
	int rc = kv_req_init(&req, KV_GET, key, klen);
	if (rc)
		return rc;
	if (!has_bug(&client->params, written_end) || memcmp(client->key, req.key, TM_MAX_KEY)) {
		do
			rc = ask(client, &req, &found);
		while (rc == -EHOSTDOWN);
		if (rc)
			return rc;
		client->found = found;
		memcpy(client->key, req.key, sizeof(client->key));
	}
	/* Each client has its own; if that does not answer, or the bytes are wrong, the head. */
	const unsigned node = nvfs_place(found.members, found.head, found.head,
					 1 + (client->env.client - 1) % NVFS_NODES);
	rc = read_at(client, node, &found, &last, &end);
	if ((rc || end < found.len) && node != client->head)
		rc = read_at(client, client->head, &found, &last, &end);
	if (rc)
		return rc;
	if (!last || last->op == KV_DEL)
		return -ENOENT;
	*vlen = last->vlen;
	memcpy(value, last + 1, last->vlen < cap ? last->vlen : cap);
	return 0;
}
