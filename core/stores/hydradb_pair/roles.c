/* SPDX-License-Identifier: BSD-3-Clause */
/* The primary, which clients ask, and the secondary. See hydradb_pair.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/hydradb_pair/hydradb_pair.h"

/* --- the primary --- */

static void lock(struct pair *pair)
{
	while (pair->locked)
		rt_sleep(KV_NAP_NS);
	pair->locked = true;
}

static void unlock(struct pair *pair)
{
	pair->locked = false;
}

/* The secondary does not answer. */
static int go_on_alone(struct pair *pair)
{
	pair->mirrored = false;
	if (has_bug(&pair->server.params, alone_unsaid))
		return 0;
	int rc = members_change(&pair->env, members_bit(&pair->env));
	pair->serves = !rc;
	return rc;
}

/* Until when it knows that the other server has not taken over. */
static uint64_t leads_until(const struct pair *pair)
{
	return pair->mirrored ? rt_config_lease(&pair->known) : UINT64_MAX;
}

/* May it answer? It asks if it is not sure. */
static int leads(struct pair *pair)
{
	uint64_t end = rt_config_lease(&pair->known);

	if (!pair->serves)
		return -EHOSTDOWN;
	if (rt_now() >= end && !rt_config_get(&pair->known)) {
		pair->serves = pair->known.primary == pair->env.server;
		end = rt_config_lease(&pair->known);
	}
	if (pair->server.params.knob[POINTERS_END] == END_SERVICE)
		pair->server.pointers_end = end;
	return pair->serves && rt_now() < leads_until(pair) ? 0 : -EHOSTDOWN;
}

/* An update that was executed here. */
static int replicate(struct pair *pair, const struct kv_req *req)
{
	const unsigned mode = pair->server.params.knob[REPLICATION];

	if (!pair->mirrored)
		return 0;
	int rc = pair_ring_send(pair, req, pair->server.version, mode == STRICT);
	if (!rc && mode == STRICT)
		rc = pair_ring_wait(pair);
	if (rc)
		return go_on_alone(pair);
	/* Otherwise it has heard of the other server. */
	return mode != RELAXED || rt_now() < leads_until(pair) ? 0 : -EHOSTDOWN;
}

static int execute_locked(struct pair *pair, const struct kv_req *req, uint32_t len,
			  struct hydradb_reply *reply, const void **value, uint32_t *vlen)
{
	const bool updates = req->op == KV_PUT || req->op == KV_DEL,
		   unsure = has_bug(&pair->server.params, lease_unread);
	int rc;

	/* A value that was looked up too late is looked up again. */
	do {
		rc = unsure && pair->serves ? 0 : leads(pair);
		if (rc)
			return rc;
		rc = hydradb_execute(&pair->server, req, len, reply, value, vlen);
	} while (!updates && !unsure && rt_now() >= leads_until(pair));
	return rc || !updates ? rc : replicate(pair, req);
}

static int execute(struct hydradb_server *server, const struct kv_req *req, uint32_t len,
		   struct hydradb_reply *reply, const void **value, uint32_t *vlen)
{
	struct pair *pair = (struct pair *)server;

	lock(pair);
	int rc = execute_locked(pair, req, len, reply, value, vlen);
	unlock(pair);
	return rc;
}

/* --- a copy for the secondary --- */

static int connect_secondary(struct pair *pair)
{
	const struct tm_env env = members_env_other(&pair->env);

	if (pair->connected)
		rpc_close(&pair->conn);
	pair->connected = true;
	pair->sent = pair->failures = 0;
	return rpc_open_own(&pair->conn, &env, 0, pair->record_bytes,
			    hydradb_reply_bytes(&pair->server.params));
}

static int send_item(struct pair *pair, const struct kv_entry *entry, struct kv_req *req)
{
	struct hydradb_item *item = hydradb_item_at(&pair->server.place.pool, entry->where);
	const uint32_t bytes = kv_where_vlen(entry->where);
	int rc;

	if (!hydradb_fits(item, bytes, entry->key))
		return -EIO;
	rc = kv_req_fill(req, KV_PUT, item->bytes, item->klen, item->bytes + item->klen, item->vlen,
			 pair->server.params.max_vlen);
	return rc ? rc
		  : pair_ring_send(pair, req, hydradb_version(*hydradb_guardian(item, bytes)),
				   true);
}

static int send_copy(struct pair *pair)
{
	const struct kv_table *table = &pair->server.place.pool.table;
	struct kv_req *req = calloc(1, sizeof(*req) + pair->server.params.max_vlen);
	int rc;

	if (!req)
		return -ENOMEM;
	req->op = PAIR_CLEAR;
	rc = pair_ring_send(pair, req, 0, true);
	for (uint64_t i = 0; i < table->slots && !rc; i++)
		if (hydradb_names_item(&table->entry[i]))
			rc = send_item(pair, &table->entry[i], req);
	free(req);
	return rc ? rc : pair_ring_wait(pair);
}

/* From now on the secondary gets what this server executes. */
static int take_in(struct pair *pair)
{
	const bool early = has_bug(&pair->server.params, member_early),
		   locks = !has_bug(&pair->server.params, copy_unlocked);
	int rc;

	if (locks)
		lock(pair);
	pair->mirrored = false;
	rc = connect_secondary(pair);
	if (!rc && early)
		rc = members_change(&pair->env, MEMBERS_BOTH);
	if (!rc)
		rc = send_copy(pair);
	if (!rc && !early) {
		rc = members_change(&pair->env, MEMBERS_BOTH);
		/* Without an answer it may be a member, or not. */
		pair->serves = !rc;
	}
	pair->mirrored = !rc;
	if (locks)
		unlock(pair);
	return rc;
}

/* --- the secondary --- */

static void execute_all(struct pair *pair)
{
	while (pair_ring_arrived(pair))
		pair_ring_execute(pair);
}

/* The primary's lease has ended. Nothing that it sends lands any more; then the ring has all that
 * was acknowledged, and what is executed is durable before the configuration says so. */
static void take_over(struct pair *pair, const struct rt_config *seen)
{
	const struct tm_params *params = &pair->server.params;

	lock(pair);
	if (!has_bug(params, not_fenced))
		rpc_server_drop(&pair->server.rpc, members_other_client(&pair->env));
	if (!has_bug(params, skips_ring))
		execute_all(pair);
	pair->serves = !members_set(seen, members_bit(&pair->env), pair->env.server);
	pair->mirrored = false;
	pair->known = *seen;
	unlock(pair);
}

/* A server that has just begun. Without its memory it is no primary either, if the other server has
 * a copy. */
static void begin(struct pair *pair)
{
	struct rt_config now;

	members_leave(&pair->env);
	while (pair->server.params.knob[PERSIST] == PERSIST_OFF &&
	       (rt_config_get(&now) ||
		(now.primary == pair->env.server && now.members == MEMBERS_BOTH &&
		 members_set(&now, now.members & ~members_bit(&pair->env),
			     members_other(&pair->env)))))
		rt_sleep(KV_NAP_NS);
}

/* It watches the configuration. */
static void keeper(void *arg)
{
	struct pair *pair = arg;
	uint64_t nap = KV_NAP_NS;
	struct rt_config now;

	begin(pair);
	for (;;) {
		int rc = rt_config_get(&now);
		const bool member = now.members & members_bit(&pair->env),
			   alive = now.alive >> now.primary & 1;

		pair->serves &= rc || now.primary == pair->env.server;
		if (rc)
			;
		else if (!pair->serves && (now.primary == pair->env.server || (member && !alive)))
			take_over(pair, &now);
		else if (pair->serves && now.alive == MEMBERS_BOTH && now.members != MEMBERS_BOTH)
			rc = take_in(pair);
		else
			rc = rt_config_wait(&now);
		if (rc)
			kv_nap_to(&nap, PAIR_NAP_NS);
		else
			nap = KV_NAP_NS;
	}
}

/* --- starting --- */

/* The other server's connection has a ring instead of a slot. */
static bool is_ring(const struct pair *pair, unsigned index)
{
	return pair->server.rpc.peer[index].client == members_other_client(&pair->env);
}

static void connected(void *arg, unsigned index)
{
	struct pair *pair = arg;

	hydradb_connected(&pair->server, index);
	if (is_ring(pair, index))
		pair_ring_begin(pair);
}

static bool arrived(void *arg, unsigned index)
{
	struct pair *pair = arg;

	if (!is_ring(pair, index))
		return hydradb_calls.arrived(&pair->server, index);
	return !pair->serves && pair_ring_arrived(pair);
}

static void take(void *arg, unsigned index)
{
	struct pair *pair = arg;

	if (!is_ring(pair, index)) {
		hydradb_calls.take(&pair->server, index);
		return;
	}
	lock(pair);
	if (!pair->serves)
		pair_ring_execute(pair);
	unlock(pair);
}

static bool owes(void *arg, unsigned index)
{
	struct pair *pair = arg;

	return is_ring(pair, index) ? pair->owes_word : hydradb_calls.owes(&pair->server, index);
}

static void send(void *arg, unsigned index)
{
	struct pair *pair = arg;

	if (is_ring(pair, index))
		pair_ring_acknowledge(pair, index);
	else
		hydradb_calls.send(&pair->server, index);
}

static const struct kv_slot_calls calls = {arrived, take, owes, send, PAIR_NAP_NS};

int pair_serve(const struct tm_env *env)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	struct tm_params more;
	const struct tm_env with = members_env_served(env, 2, &more);

	if (!pair)
		return -ENOMEM;
	int rc = hydradb_server_open(&pair->server, &with);
	if (rc)
		return rc;
	pair->server.params = *env->params;
	pair->server.calls = &calls;
	pair->server.execute = execute;
	pair->server.rpc.connected = connected;
	pair->env = *env;
	pair->env.params = &pair->server.params;
	rc = pair_ring_open(pair);
	if (!rc)
		rc = hydradb_server_start(&pair->server);
	if (!rc)
		rc = rt_spawn("keeper", keeper, pair);
	if (!rc)
		members_wait_all(env, &pair->serves);
	return rc;
}

int pair_open(const struct tm_env *env, void **client)
{
	const struct tm_env to = members_env_primary(env);

	return hydradb_open(&to, client);
}

int pair_dump(const struct tm_env *env, const void *key, size_t klen, struct tm_dump *out)
{
	const struct tm_params params = hydradb_pool_params(env->params);
	const struct kv_pool pool = kv_pool_at(&params, env->pm);
	uint8_t padded[TM_MAX_KEY];
	int rc = kv_key_pad(padded, key, klen);
	bool found = false;
	const struct kv_entry *entry = rc ? NULL : kv_table_find(&pool.table, padded, &found);

	if (!found || !hydradb_names_item(entry))
		return rc ? rc : -ENOENT;
	struct hydradb_item *item = hydradb_item_at(&pool, entry->where);
	const uint32_t bytes = kv_where_vlen(entry->where);
	if (!hydradb_fits(item, bytes, padded) || item->vlen > out->cap)
		return -EIO;
	out->version = hydradb_version(*hydradb_guardian(item, bytes));
	out->vlen = item->vlen;
	memcpy(out->value, item->bytes + item->klen, item->vlen);
	return 0;
}
