/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients: each operation is a transaction, and one of the servers coordinates all of a client. See
 * octopus_tx.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/stores/octopus_tx/octopus_tx.h"

struct client {
	struct tm_params params;
	struct rpc_conn conn; /* to its coordinator */
	struct octx_txn *msg; /* the transaction; then what its items were */
};

int octx_open(const struct tm_env *env, void **out)
{
	const size_t bytes = octx_txn_bytes(env->params, TM_TXN_OPS);
	struct client *client = calloc(1, sizeof(*client));
	struct tm_env to = *env;
	uint64_t nap = KV_NAP_NS;
	int rc = 0;

	if (!client)
		return -ENOMEM;
	client->params = *env->params;
	client->msg = calloc(1, bytes);
	if (!client->msg)
		rc = -ENOMEM;
	to.server = env->client % OCTX_SERVERS;
	while (!rc && (rc = rpc_open(&client->conn, &to, bytes, TM_LINE, NULL)) == -ECONNREFUSED) {
		rc = 0; /* it has lost its power, and will be back */
		kv_nap(&nap);
	}
	*out = client;
	return rc;
}

/* The key's item of the transaction, which is new if there is none. */
static int add(struct client *client, const void *key, size_t klen, struct octx_item **out)
{
	struct octx_item *item = octx_item(&client->params, client->msg, client->msg->n);
	int rc;

	memset(item, 0, sizeof(*item));
	rc = kv_key_pad(item->key, key, klen);
	if (rc)
		return rc;
	item->klen = (uint32_t)klen;
	item->len = OCTX_NONE;
	*out = item;
	for (unsigned i = 0; i < client->msg->n; i++) {
		struct octx_item *other = octx_item(&client->params, client->msg, i);
		if (other->klen == klen && !memcmp(other->key, item->key, TM_MAX_KEY)) {
			*out = other;
			return 0;
		}
	}
	client->msg->n++;
	return 0;
}

static int add_write(struct client *client, const void *key, size_t klen, const void *value,
		     uint32_t vlen, struct octx_item **out)
{
	int rc = add(client, key, klen, out);

	if (rc)
		return rc;
	if (value && vlen > client->params.max_vlen)
		return -EMSGSIZE;
	(*out)->writes = 1;
	(*out)->len = value ? vlen : OCTX_NONE;
	if (value)
		memcpy((*out)->data, value, vlen);
	return 0;
}

static void begin(struct client *client)
{
	memset(client->msg, 0, sizeof(*client->msg));
	client->msg->op = OCTX_TXN;
}

static int call(struct client *client)
{
	struct octx_txn *msg = client->msg;
	const unsigned n = msg->n;
	size_t len;
	int rc = rpc_call(&client->conn, msg, octx_txn_bytes(&client->params, n), msg,
			  octx_txn_bytes(&client->params, TM_TXN_OPS), &len);

	if (rc)
		return rc;
	if (len < sizeof(*msg))
		return -EPROTO;
	return !msg->status && msg->n != n ? -EPROTO : msg->status;
}

/* Write it; `value` NULL: delete it. Others may have locked it. */
static int write_one(struct client *client, const void *key, size_t klen, const void *value,
		     size_t vlen)
{
	uint64_t nap = KV_NAP_NS;
	struct octx_item *item;
	int rc;

	for (;;) {
		begin(client);
		rc = add_write(client, key, klen, value, (uint32_t)vlen, &item);
		if (!rc)
			rc = call(client);
		if (rc != -EAGAIN)
			return rc;
		kv_nap(&nap);
	}
}

int octx_put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return write_one(client, key, klen, value, vlen);
}

int octx_del(void *client, const void *key, size_t klen)
{
	return write_one(client, key, klen, NULL, 0);
}

static bool take(const struct octx_item *item, void *value, size_t cap, size_t *vlen)
{
	if (item->len == OCTX_NONE)
		return false;
	*vlen = item->len;
	memcpy(value, item->data, item->len < cap ? item->len : cap);
	return true;
}

int octx_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	uint64_t nap = KV_NAP_NS;
	struct octx_item *item;
	int rc;

	for (;;) {
		begin(client);
		rc = add(client, key, klen, &item);
		if (!rc)
			rc = call(client);
		if (rc != -EAGAIN)
			break;
		kv_nap(&nap);
	}
	if (rc)
		return rc;
	return take(octx_item(&client->params, client->msg, 0), value, cap, vlen) ? 0 : -ENOENT;
}

int octx_transact(void *arg, struct tm_txn *txn)
{
	struct octx_item
		*item[TM_TXN_OPS]; /* by operation; the answer has them in the same places */
	struct client *client = arg;
	int rc = 0;

	begin(client);
	for (unsigned i = 0; i < txn->ops && !rc; i++) {
		const struct tm_txn_op *o = &txn->op[i];
		rc = o->put || o->del ? add_write(client, o->key, o->klen, o->del ? NULL : o->value,
						  (uint32_t)o->vlen, &item[i])
				      : add(client, o->key, o->klen, &item[i]);
	}
	if (!rc)
		rc = call(client);
	txn->aborted = rc == -EAGAIN;
	for (unsigned i = 0; i < txn->ops && !rc; i++) {
		struct tm_txn_op *o = &txn->op[i];
		const struct tm_txn_op *own = NULL;
		for (unsigned k = 0; k < i; k++)
			if ((txn->op[k].put || txn->op[k].del) && item[k] == item[i])
				own = &txn->op[k];
		if (o->put || o->del)
			continue;
		o->found = own ? own->put : take(item[i], o->answer, o->cap, &o->vlen);
		if (own && own->put) {
			o->vlen = own->vlen;
			memcpy(o->answer, own->value, o->vlen < o->cap ? o->vlen : o->cap);
		}
	}
	return txn->aborted ? 0 : rc;
}
