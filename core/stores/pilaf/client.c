/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: PUT, GET, DELETE. See pilaf.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/pilaf/pilaf.h"

struct client {
	struct kv_client kv; /* msg: a request with its value */
	struct pilaf_pool pool;
};

int pilaf_open(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));
	uint32_t max_vlen = env->params->max_vlen;

	if (client)
		client->pool = pilaf_pool_at(env->params, NULL);
	return kv_client_open((struct kv_client *)client, env, sizeof(struct kv_req) + max_vlen,
			      kv_round_up(TM_MAX_KEY + max_vlen, TM_LINE), out);
}

int pilaf_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct client *client = arg;
	struct kv_req req;
	struct kv_rsp rsp;
	int rc = kv_put_init(&req, key, klen, vlen, client->kv.params.max_vlen);

	if (rc)
		return rc;
	return kv_call_value(&client->kv.conn, client->kv.msg, &req, value, vlen, &rsp,
			     sizeof(rsp));
}

int pilaf_del(void *client, const void *key, size_t klen)
{
	return kv_client_del(client, key, klen);
}

/* -EAGAIN: it is being changed. */
static int read_entry(struct client *client, uint64_t slot, struct pilaf_entry *entry)
{
	const void *data;
	int rc = rpc_read(&client->kv.conn, PILAF_TABLE, slot * sizeof(*entry), sizeof(*entry),
			  &data);

	if (rc)
		return rc;
	memcpy(entry, data, sizeof(*entry));
	return pilaf_entry_whole(entry, &client->kv.params) ? 0 : -EAGAIN;
}

/* -EAGAIN: it is not the one of which the entry has the CRC, or not yet. */
static int read_pair(struct client *client, const struct pilaf_entry *entry, const uint8_t **pair)
{
	if (!pilaf_in_pool(&client->pool, entry, client->kv.params.max_vlen))
		return -EAGAIN;
	int rc = rpc_read(&client->kv.conn, PILAF_PAIRS, entry->addr,
			  (size_t)entry->klen + entry->vlen, (const void **)pair);
	if (rc || has_bug(&client->kv.params, crc1_unchecked))
		return rc;
	return rt_check(entry->crc1 == pilaf_crc1(*pair, entry)) ? 0 : -EAGAIN;
}

/* Look through the key's entries. The paper does not say where this ends. */
static int look(struct client *client, const uint8_t key[TM_MAX_KEY], size_t klen,
		struct pilaf_entry *entry, const uint8_t **pair)
{
	bool verify = client->kv.params.knob[VERIFY_OBJ_KEY] == 0;
	bool bounded = client->kv.params.knob[PROBE_UNBOUNDED] == 0;
	int rc;

	for (uint64_t i = 0; i < client->pool.probes || !bounded; i++) {
		rc = read_entry(client, pilaf_slot(&client->pool, key, i), entry);
		if (rc)
			return rc;
		if (!entry->used)
			continue;
		rc = read_pair(client, entry, pair);
		if (rc)
			return rc;
		if (!verify || (entry->klen == klen && rt_check(memcmp(*pair, key, klen) == 0)))
			return 0;
	}
	return -ENOENT;
}

int pilaf_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	uint8_t padded[TM_MAX_KEY];
	struct pilaf_entry entry;
	const uint8_t *pair;
	uint64_t nap = KV_NAP_NS;
	int rc = kv_key_pad(padded, key, klen);

	if (rc)
		return rc;
	while ((rc = look(client, padded, klen, &entry, &pair)) == -EAGAIN)
		kv_nap(&nap);
	if (rc)
		return rc;
	*vlen = entry.vlen;
	memcpy(value, pair + entry.klen, entry.vlen < cap ? entry.vlen : cap);
	return 0;
}
