/* SPDX-License-Identifier: BSD-3-Clause */
/* A client finds records, and asks its server for transactions. See drtm.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/stores/drtm/drtm.h"

#define MOST_NAP_NS 20000
#define TRIES	    6 /* of a transaction, until it counts as aborted */

struct client {
	struct tm_params params;
	struct tm_env env;
	struct rpc_conn conn[DRTM_SERVERS];
	struct drtm_txn *ask, *answer;
	uint8_t key[TM_TXN_OPS][TM_MAX_KEY]; /* of each part */
};

/* A server that is not there comes back. */
static void connect(struct client *client, unsigned server)
{
	struct rpc_conn *conn = &client->conn[server];
	struct tm_env env = client->env;
	uint64_t nap = KV_NAP_NS;
	env.server = server;
	if (conn->qp && !conn->failed)
		return;
	rpc_close(conn);
	while (rpc_open(conn, &env, drtm_txn_bytes(&client->params, TM_TXN_OPS), 8, NULL))
		kv_nap_to(&nap, MOST_NAP_NS);
}

int drtm_open(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	client->params = *env->params;
	client->env = *env;
	client->env.params = &client->params;
	client->ask = calloc(1, drtm_txn_bytes(env->params, TM_TXN_OPS));
	client->answer = calloc(1, drtm_txn_bytes(env->params, TM_TXN_OPS));
	if (!client->ask || !client->answer)
		return -ENOMEM;
	for (unsigned server = 0; server < DRTM_SERVERS; server++)
		connect(client, server);
	*out = client;
	return 0;
}

/* The part of the transaction that is about the key. */
static int find(struct client *client, const void *key, size_t klen, struct drtm_part **part)
{
	struct kv_req req;
	struct kv_rsp rsp = {0};
	int rc = kv_req_init(&req, (enum kv_op)DRTM_FIND, key, klen);
	if (rc)
		return rc;
	for (unsigned i = 0; i < client->ask->n; i++) {
		*part = drtm_part(&client->params, client->ask, i);
		if (!memcmp(client->key[i], req.key, TM_MAX_KEY))
			return 0;
	}
	*part = drtm_part(&client->params, client->ask, client->ask->n);
	memset(*part, 0, sizeof(**part));
	(*part)->server = kv_hash(req.key) % DRTM_SERVERS;
	connect(client, (*part)->server);
	rc = kv_call(&client->conn[(*part)->server], &req, &rsp);
	(*part)->off = rsp.off;
	memcpy(client->key[client->ask->n++], req.key, TM_MAX_KEY);
	return rc;
}

static void begin(struct client *client)
{
	memset(client->ask, 0, drtm_txn_bytes(&client->params, TM_TXN_OPS));
	client->ask->op = DRTM_TXN;
}

static int writes(struct client *client, const void *key, size_t klen, const void *value,
		  uint64_t vlen)
{
	struct drtm_part *part;
	if (vlen != DRTM_ABSENT && vlen > client->params.max_vlen)
		return -EMSGSIZE;
	int rc = find(client, key, klen, &part);
	if (rc)
		return rc;
	part->writes = true;
	part->vlen = vlen;
	if (vlen && vlen != DRTM_ABSENT)
		memcpy(part + 1, value, vlen);
	return 0;
}

/* -EAGAIN: aborted, so many times. */
static int run(struct client *client, unsigned tries)
{
	const size_t bytes = drtm_txn_bytes(&client->params, client->ask->n);
	const unsigned server = (client->env.client - 1) % DRTM_SERVERS;
	uint64_t nap = KV_NAP_NS;
	connect(client, server);
	for (;;) {
		size_t len;
		int rc = rpc_call(&client->conn[server], client->ask, bytes, client->answer, bytes,
				  &len);
		if (!rc)
			rc = len == bytes ? client->answer->status : -EPROTO;
		if (rc != -EAGAIN || !--tries)
			return rc;
		client->ask->tries += client->ask->tries < UINT8_MAX;
		kv_nap_to(&nap, MOST_NAP_NS);
	}
}

int drtm_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct client *client = arg;
	begin(client);
	int rc = writes(client, key, klen, value, vlen);
	return rc ? rc : run(client, UINT32_MAX);
}

int drtm_del(void *arg, const void *key, size_t klen)
{
	struct client *client = arg;
	begin(client);
	int rc = writes(client, key, klen, NULL, DRTM_ABSENT);
	return rc ? rc : run(client, UINT32_MAX);
}

static bool answer(const struct client *client, unsigned i, void *value, size_t cap, size_t *vlen)
{
	const struct drtm_part *part = drtm_part(&client->params, client->answer, i);
	if (part->vlen == DRTM_ABSENT)
		return false;
	*vlen = part->vlen;
	memcpy(value, part + 1, *vlen < cap ? *vlen : cap);
	return true;
}

int drtm_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	struct drtm_part *part;
	begin(client);
	int rc = find(client, key, klen, &part);
	if (!rc)
		rc = run(client, UINT32_MAX);
	if (rc)
		return rc;
	return answer(client, 0, value, cap, vlen) ? 0 : -ENOENT;
}

int drtm_txn(void *arg, struct tm_txn *txn)
{
	struct client *client = arg;
	unsigned from[TM_TXN_OPS];
	begin(client);
	for (unsigned i = 0; i < txn->ops; i++) {
		struct tm_txn_op *op = &txn->op[i];
		struct drtm_part *part;
		int rc = op->put || op->del ? writes(client, op->key, op->klen, op->value,
						     op->del ? DRTM_ABSENT : op->vlen)
					    : find(client, op->key, op->klen, &part);
		if (rc)
			return rc;
		from[i] = TM_TXN_OPS;
		if (op->put || op->del)
			continue;
		if (part->writes) { /* what it has put itself */
			op->found = part->vlen != DRTM_ABSENT;
			if (!op->found)
				continue;
			op->vlen = part->vlen;
			memcpy(op->answer, part + 1, op->vlen < op->cap ? op->vlen : op->cap);
			continue;
		}
		from[i] = (unsigned)(((uint8_t *)part - client->ask->bytes) /
				     (drtm_txn_bytes(&client->params, 1) - sizeof(*client->ask)));
	}
	int rc = run(client, TRIES);
	txn->aborted = rc == -EAGAIN;
	for (unsigned i = 0; i < txn->ops && !rc; i++)
		if (from[i] < TM_TXN_OPS)
			txn->op[i].found = answer(client, from[i], txn->op[i].answer,
						  txn->op[i].cap, &txn->op[i].vlen);
	return txn->aborted ? 0 : rc;
}
