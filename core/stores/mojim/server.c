/* SPDX-License-Identifier: BSD-3-Clause */
/* The servers: one is the primary, which clients ask, the other one its mirror. See mojim.h. */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/mojim/mojim.h"

#define MOST_NAP_NS 20000

/* The exported regions. */
#define LOG  0
#define AREA 1

/* Requests of the other server: send me the area; I have it, up to this record. */
#define JOIN_COPY   101
#define JOIN_COMMIT 102
/* The primary's to the mirror: your log has records up to this one; are they at the backup? */
#define FORWARD 103
struct join {
	uint8_t op; /* where a struct kv_req has its own */
	uint8_t server;
	uint8_t zero[2];
	uint32_t alone;
	struct head head;
};
struct joined {
	int32_t status;
	uint32_t alone;
	struct head head;
};

struct server {
	struct tm_params params;
	struct tm_env env;
	struct rpc_server rpc;
	struct mojim_pool pool;
	struct record *record; /* DRAM: the one to send */
	struct head head;      /* the last record that was made, or is in the area */
	struct head sent;      /* the last that the follower has, and the epoch of its records */
	uint32_t alone;	       /* how often the area was changed without a mirror */
	/* Its follower gets each record: the primary's is the mirror, and the mirror's the backup,
	 * if there is one. */
	struct rpc_conn mirror;
	unsigned follower;
	bool connected, mirrored; /* to the follower; it gets each record */
	bool busy;		  /* a message is being handled */
	bool applies, applying;	  /* what comes into the log; at this moment */
	bool serves;		  /* as the primary, ... */
	struct rt_config config;  /* ... since it knew of this configuration */
};

static bool has_backup(const struct server *server)
{
	return server->params.knob[MODE] == MODE_SYNCSEC;
}

/* --- the configuration --- */

static bool has_lease(const struct server *server)
{
	return rt_now() < rt_config_lease(&server->config);
}

/* Is this server the primary still? While its lease lasts nobody has taken over from it. It asks
 * itself this when it knows its answer, and before it gives it. */
static bool is_primary(const struct server *server)
{
	return server->serves && (has_bug(&server->params, serves_on) || has_lease(server));
}

/* The primary's. Without an answer of the service it may have happened, or not: it is asked until
 * the lease ends, and then this server does not serve until it is heard (keeper()). */
static int set_members(struct server *server, uint32_t members)
{
	struct rt_config now;
	while (has_lease(server)) {
		if (rt_config_get(&now))
			continue;
		if (now.primary != server->env.server)
			break;
		if (!members_set(&now, members, now.primary))
			return 0;
	}
	return -EHOSTDOWN;
}

/* --- the primary --- */

static void flush_area(struct server *server)
{
	pmem_persist(server->pool.area, server->pool.area_bytes);
}

/* The mirror does not answer. From now on what is stored here is persisted. */
static void leave_mirror(struct server *server)
{
	if (server->mirrored && server->params.knob[MIRROR_LOST] == LOST_FLUSHES)
		flush_area(server);
	server->mirrored = false;
}

static int go_on_alone(struct server *server)
{
	leave_mirror(server);
	return set_members(server, members_bit(&server->env));
}

static int connect_mirror(struct server *server)
{
	const struct tm_env env = members_env(&server->env, server->follower);
	if (server->connected)
		rpc_close(&server->mirror);
	server->connected = true;
	return rpc_open(&server->mirror, &env, sizeof(struct joined),
			TM_TXN_OPS * mojim_record_bytes(&server->params), NULL);
}

static bool flushes(const struct tm_params *params)
{
	return params->knob[MODE] == MODE_ASYNC || params->knob[PRIMARY_FLUSH] == PRIMARY_FLUSHES;
}

/* The follower's answer comes when it sees the record, and its own has all, too, or is left out. */
static int ask_forwarded(struct server *server)
{
	const struct join ask = {
		.op = FORWARD, .server = (uint8_t)server->env.server, .head = server->sent};
	struct joined rsp;
	int rc = rpc_call(&server->mirror, &ask, sizeof(ask), &rsp, sizeof(rsp), NULL);
	return rc ? rc : rsp.status;
}

/* gmsync: these ranges of the area are at the mirror, all or none. */
static int gmsync(struct server *server, const struct source *source, unsigned n, unsigned updates)
{
	const struct tm_params *params = &server->params;
	const size_t bytes = mojim_record_bytes(params);
	const struct head next = {server->head.seq + 1, server->sent.epoch};
	const bool waits = params->knob[MODE] != MODE_ASYNC && !has_bug(params, posted_only);
	int rc;

	server->alone += !server->mirrored;
	if (!server->mirrored)
		return is_primary(server) ? 0 : -EHOSTDOWN;
	if (server->head.seq + updates > server->pool.records)
		return -ENOSPC;
	mojim_fill(server->record, next, params, source, n, updates);
	server->head.seq = server->sent.seq = server->head.seq + updates;
	rc = waits ? 0 : rpc_settle(&server->mirror);
	if (!rc)
		rc = (waits ? rpc_write : rpc_write_behind)(&server->mirror, LOG,
							    (next.seq - 1) * bytes, server->record,
							    updates * bytes);
	if (!rc && has_backup(server))
		rc = ask_forwarded(server);
	if (rc)
		return go_on_alone(server);
	/* What the mirror's NIC has acknowledged is there when the mirror takes over. */
	return waits || is_primary(server) ? 0 : -EHOSTDOWN;
}

/* Does this server persist what it stores now? */
static bool persists(const struct server *server)
{
	return server->mirrored ? flushes(&server->params)
				: !has_bug(&server->params, alone_unflushed);
}

/* `bytes`, which are at `at` in the area, or are going to be. */
static struct source source_of(const struct server *server, const void *at, const void *bytes,
			       uint32_t len)
{
	const uint64_t off = (uint64_t)((const uint8_t *)at - server->pool.area);
	return (struct source){{.off = off, .len = len}, bytes};
}

/* The value goes to the buffer that is not in use; one word makes it the value. */
static int update(struct server *server, const struct kv_req *req)
{
	struct slot *slot = mojim_slot(&server->pool, &server->params, req->key);
	struct source source[MOJIM_RANGES];
	unsigned n = 0, which;

	if (!slot || rt_pm_full() || server->head.seq + 1 > server->pool.records)
		return -ENOSPC;
	which = !(slot->version & 1);
	if (req->op == KV_PUT) {
		uint8_t *buffer = mojim_buffer(slot, &server->params, which);
		memcpy(buffer, req + 1, req->vlen);
		if (!server->mirrored || flushes(&server->params))
			pmem_persist(buffer, req->vlen);
		source[n++] = source_of(server, buffer, buffer, req->vlen);
	}
	if (!slot->version)
		memcpy(slot->key, req->key, sizeof(slot->key));
	slot->vlen[which] = req->op == KV_PUT ? req->vlen : 0;
	__atomic_store_n(&slot->version,
			 ((slot->version >> 2) + 1) << 2 | (req->op == KV_DEL) << 1 | which,
			 __ATOMIC_SEQ_CST);
	source[n++] = source_of(server, slot, slot, sizeof(*slot));
	for (unsigned i = 0; i < n && persists(server); i++)
		pmem_persist(source[i].bytes, source[i].range.len);
	return gmsync(server, source, n, 1);
}

static int handle_update(struct server *server, const struct kv_req *req)
{
	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	if (req->op == KV_DEL &&
	    !mojim_has_value(mojim_slot(&server->pool, &server->params, req->key)))
		return is_primary(server) ? 0 : -EHOSTDOWN;
	return update(server, req);
}

static int handle_get(const struct server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	const struct slot *slot = mojim_slot(&server->pool, &server->params, req->key);
	const bool has = mojim_has_value(slot);
	if (has) {
		const unsigned which = slot->version & 1;
		rsp->vlen = slot->vlen[which];
		memcpy(rsp + 1, mojim_buffer(slot, &server->params, which), rsp->vlen);
	}
	if (!is_primary(server))
		return -EHOSTDOWN;
	return has ? 0 : -ENOENT;
}

/* --- the primary: transactions --- */

/* What a transaction makes of slots: they stay as they are until all of it is in a record. */
struct changes {
	unsigned n;
	struct change {
		struct slot *slot, now;
	} of[TM_TXN_OPS];
};

/* The key's slot: as the transaction has changed it, or as it is; in an unused one if it is new. */
static struct change *change_of(const struct server *server, struct changes *all,
				const uint8_t *key)
{
	struct slot *slot = mojim_slot(&server->pool, &server->params, key);
	unsigned used = 0; /* by the transaction, of those that are free */
	for (unsigned i = 0; i < all->n; i++) {
		if (!memcmp(all->of[i].now.key, key, TM_MAX_KEY))
			return &all->of[i];
		used += !all->of[i].slot->version;
	}
	if (slot && !slot->version)
		slot = mojim_slot_after(&server->pool, &server->params, slot, used);
	struct change *change = slot ? &all->of[all->n] : NULL;
	if (change)
		*change = (struct change){slot, *slot};
	if (change && !slot->version)
		memcpy(change->now.key, key, TM_MAX_KEY);
	return change;
}

static int do_part(struct server *server, struct changes *all, const struct kv_req *req,
		   struct kv_rsp *rsp)
{
	struct change *change = change_of(server, all, req->key);
	if (req->op == KV_GET) {
		const bool has = change && mojim_has_value(&change->now);
		const unsigned which = has ? change->now.version & 1 : 0;
		rsp->status = has ? 0 : -ENOENT;
		rsp->vlen = has ? change->now.vlen[which] : 0;
		if (has)
			memcpy(rsp + 1, mojim_buffer(change->slot, &server->params, which),
			       rsp->vlen);
		return 0;
	}
	if (!change)
		return -ENOSPC;
	struct slot *slot = change->slot, *now = &change->now;
	const unsigned which = !(slot->version & 1);
	uint8_t *buffer = mojim_buffer(slot, &server->params, which);
	if (req->op == KV_PUT)
		memcpy(buffer, req + 1, req->vlen);
	if (req->op == KV_PUT && has_bug(&server->params, in_place))
		pmem_persist(buffer, req->vlen);
	now->vlen[which] = req->op == KV_PUT ? req->vlen : 0;
	now->version = ((slot->version >> 2) + 1) << 2 | (uint64_t)(req->op == KV_DEL) << 1 | which;
	all->n += change == &all->of[all->n];
	return 0;
}

/* The slots change at this server, too. It has no copy elsewhere of what is half done, so where it
 * persists at all it makes a record in its own log. */
static void change_slots(struct server *server, const struct changes *all,
			 const struct source *source, unsigned n)
{
	const struct mojim_pool *pool = &server->pool;
	const struct head next = {pool->head->seq + 1, pool->head->epoch};
	struct record *own = (struct record *)(pool->log +
					       pool->head->seq *
						       mojim_record_bytes(&server->params));
	if (persists(server) && !has_bug(&server->params, in_place)) {
		mojim_fill(server->record, next, &server->params, source, n, all->n);
		memcpy(own, server->record, all->n * mojim_record_bytes(&server->params));
		mojim_apply(pool, &server->params, own);
		return;
	}
	for (unsigned i = 0; i < all->n; i++)
		memcpy(all->of[i].slot, &all->of[i].now, sizeof(struct slot));
	for (unsigned i = 0; i < n && persists(server); i++)
		pmem_persist(pool->area + source[i].range.off, source[i].range.len);
}

static bool is_txn(const struct server *server, const struct rpc_msg *msg)
{
	const struct kv_req *req = msg->bytes;
	if (req->op != MOJIM_TXN || !req->off || req->off > TM_TXN_OPS ||
	    msg->len != mojim_txn_bytes(&server->params, (unsigned)req->off))
		return false;
	for (unsigned i = 0; i < req->off; i++) {
		const struct kv_req *part = mojim_part(&server->params, req, i);
		if (part->vlen > server->params.max_vlen || part->op < KV_PUT || part->op > KV_DEL)
			return false;
	}
	return true;
}

static int transact(struct server *server, const struct kv_req *req, void *reply)
{
	struct source source[MOJIM_RANGES * TM_TXN_OPS];
	struct changes all = {0};
	unsigned n = 0;
	int rc = rt_pm_full() || server->head.seq + req->off > server->pool.records ||
				 server->pool.head->seq + req->off > server->pool.records
			 ? -ENOSPC
			 : 0;
	for (unsigned i = 0; i < req->off && !rc; i++)
		rc = do_part(server, &all, mojim_part(&server->params, req, i),
			     (struct kv_rsp *)mojim_part(&server->params, reply, i));
	if (rc || !all.n)
		return rc ? rc : is_primary(server) ? 0 : -EHOSTDOWN;
	for (unsigned i = 0; i < all.n; i++) {
		struct change *change = &all.of[i];
		const unsigned which = change->now.version & 1;
		const uint8_t *buffer = mojim_buffer(change->slot, &server->params, which);
		if (mojim_has_value(&change->now))
			source[n++] = source_of(server, buffer, buffer, change->now.vlen[which]);
		source[n++] = source_of(server, change->slot, &change->now, sizeof(change->now));
	}
	change_slots(server, &all, source, n);
	return gmsync(server, source, n, all.n);
}

/* --- the mirror's follower, the backup --- */

/* It is a member, or not. Either is decided while this server is one, too. */
static int set_follower(struct server *server, bool member)
{
	const uint32_t bit = 1u << server->follower;
	struct rt_config now;
	int rc;
	do {
		rc = rt_config_get(&now);
		if (rc || !(now.members & members_bit(&server->env)))
			return -EHOSTDOWN;
		const uint32_t members = member ? now.members | bit : now.members & ~bit;
		if (members != now.members)
			rc = members_set(&now, members, now.primary);
	} while (rc == -EAGAIN);
	return rc ? -EHOSTDOWN : 0;
}

/* What the log has up to this record and the backup has not. One that does not answer is no member
 * any more when this returns 0: then all members have what is acknowledged. */
static int forward(struct server *server, uint64_t last)
{
	const size_t bytes = mojim_record_bytes(&server->params);
	const struct record *record;
	while (server->mirrored && server->sent.seq < last &&
	       (record = mojim_record(&server->pool, &server->params, server->sent.seq + 1))) {
		const struct head next = {record->seq, server->sent.epoch};
		const uint64_t updates = record->updates;
		mojim_for_log(server->record, record, &server->params, next);
		int rc = rpc_write(&server->mirror, LOG, server->sent.seq * bytes, server->record,
				   updates * bytes);
		server->sent.seq += updates;
		if (!rc)
			rc = ask_forwarded(server);
		if (rc) {
			server->mirrored = false;
			return set_follower(server, false);
		}
	}
	return 0;
}

/* The primary's NIC knows that the record is here, on the connection on which it asks this. */
static int handle_forward(struct server *server, uint64_t last)
{
	const bool early = has_bug(&server->params, answers_first);
	int rc = forward(server, early ? last - 1 : last);
	return rc || early || !server->mirrored || server->sent.seq >= last ? rc : -EIO;
}

/* --- a server that comes back, as the last one sees it that is a member --- */

static int copy_area(struct server *server)
{
	const size_t step = mojim_record_bytes(&server->params);
	const void *last;
	int rc = connect_mirror(server);
	for (size_t off = 0; off < server->pool.area_bytes && !rc; off += step) {
		size_t left = server->pool.area_bytes - off;
		rc = rpc_write(&server->mirror, AREA, off, server->pool.area + off,
			       left < step ? left : step);
	}
	/* What is acknowledged may be on its way still, and the mirror flushes when it hears of
	 * the copy on another connection: a READ comes after it. */
	return rc ? rc : rpc_read(&server->mirror, AREA, 0, sizeof(struct slot), &last);
}

/* From now on it gets each record. Whether the service has made it a member is not always known; it
 * asks again if not. */
static int let_in(struct server *server)
{
	if (server->serves) {
		int rc = set_members(server, members_bit(&server->env) | 1u << server->follower);
		server->mirrored = !rc;
		return rc;
	}
	server->mirrored = true;
	int rc = forward(server, UINT64_MAX);
	return rc || server->mirrored ? rc ? rc : set_follower(server, true) : -EIO;
}

static void handle_join(struct server *server, const struct join *join, struct joined *rsp)
{
	if (join->op == JOIN_COPY) {
		struct rt_config now;
		rt_config_get(&now);
		leave_mirror(server);
		server->follower = join->server;
		rsp->status = copy_area(server);
		server->sent = (struct head){server->head.seq, now.epoch};
	} else if (join->server != server->follower ||
		   memcmp(&join->head, &server->sent, sizeof(join->head)) ||
		   (join->alone != server->alone && !has_bug(&server->params, joins_blind))) {
		rsp->status = -EAGAIN;
	} else {
		rsp->status = let_in(server);
	}
	rsp->head = server->sent;
	rsp->alone = server->alone;
}

/* Is this the last member? The primary, or a mirror that has a place for a backup. */
static bool is_last(const struct server *server)
{
	struct rt_config now;
	if (server->serves || !has_backup(server))
		return server->serves;
	return !rt_config_get(&now) && now.primary != server->env.server &&
	       now.members & members_bit(&server->env);
}

static bool is_join(const struct server *server, const struct rpc_msg *msg)
{
	const struct join *join = msg->bytes;
	return msg->len == sizeof(*join) && join->server < server->env.servers &&
	       join->server != server->env.server;
}

/* Of another server. */
static void handle_other(struct server *server, const struct rpc_msg *msg, struct joined *rsp)
{
	const struct join *join = msg->bytes;
	rsp->status = -EHOSTDOWN;
	if (!is_join(server, msg))
		return;
	if (join->op == FORWARD)
		rsp->status = handle_forward(server, join->head.seq);
	else if (is_last(server))
		handle_join(server, join, rsp);
}

/* The service names this server, and hears it again: it will be ready soon (keeper()). */
static void wait_to_serve(const struct server *server)
{
	struct rt_config now;
	while (!is_primary(server) && !rt_config_get(&now) && now.primary == server->env.server)
		rt_sleep(KV_NAP_NS);
}

static bool is_to_server(const struct kv_req *req)
{
	return req->op == JOIN_COPY || req->op == JOIN_COMMIT || req->op == FORWARD;
}

static size_t answer(struct server *server, const struct rpc_msg *msg, void *reply)
{
	const struct kv_req *req = msg->bytes;
	struct kv_rsp *rsp = reply;

	if (is_to_server(req)) {
		handle_other(server, msg, reply);
		return sizeof(struct joined);
	}
	if (!server->serves)
		rsp->status = -EHOSTDOWN;
	else if (is_txn(server, msg))
		rsp->status = transact(server, req, reply);
	else if (!kv_is_request(msg, true))
		rsp->status = -EPROTO;
	else if (req->op == KV_GET)
		rsp->status = handle_get(server, req, rsp);
	else
		rsp->status = handle_update(server, req);
	if (req->op == MOJIM_TXN && !rsp->status)
		return msg->len;
	return sizeof(*rsp) + (rsp->status ? 0 : rsp->vlen);
}

static size_t handle(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct server *server = arg;

	if (cap < mojim_txn_bytes(&server->params, TM_TXN_OPS) || msg->has_imm || !msg->len)
		return 0;
	if (!is_to_server(msg->bytes))
		wait_to_serve(server);
	server->busy = true;
	while (server->applying)
		rt_sleep(KV_NAP_NS);
	size_t len = answer(server, msg, reply);
	server->busy = false;
	return len;
}

/* --- the mirror --- */

static bool apply_next(struct server *server)
{
	const struct record *record = mojim_record(&server->pool, &server->params,
						   server->head.seq + 1);
	if (!record)
		return false;
	mojim_apply(&server->pool, &server->params, record);
	server->head.seq = server->pool.head->seq;
	return true;
}

static void apply_all(struct server *server)
{
	while (!has_bug(&server->params, log_forgotten) && apply_next(server))
		;
}

static void drop_others(struct server *server)
{
	for (unsigned i = 0; i < server->env.servers; i++)
		if (i != server->env.server)
			rpc_server_drop(&server->rpc, members_client(&server->params, i));
}

/* The primary's lease has ended. Nothing that it sends lands any more; then the log has all that it
 * was acknowledged for, and this is durable before the configuration says so. */
static void take_over(struct server *server, const struct rt_config *seen)
{
	const bool early = has_bug(&server->params, serves_early);
	if (!has_bug(&server->params, not_fenced))
		drop_others(server);
	if (!early)
		apply_all(server);
	/* A backup that has all of it, too, is the mirror now. */
	if (seen->primary == server->env.server || !(seen->members >> server->follower & 1))
		leave_mirror(server);
	if (!has_bug(&server->params, keeps_blind) && forward(server, server->head.seq))
		return;
	if (members_set(seen,
			members_bit(&server->env) | (uint32_t)server->mirrored << server->follower,
			server->env.server))
		return;
	server->config = *seen;
	server->serves = true;
	if (early)
		apply_all(server);
}

/* Ask the last member for a copy of its area; then this is its mirror, or its backup. */
static int join(struct server *server, const struct rt_config *now)
{
	const uint32_t others = now->members & ~(1u << now->primary);
	const struct tm_env env = members_env(&server->env, others ? (unsigned)__builtin_ctz(others)
								   : now->primary);
	struct join ask = {.op = JOIN_COPY, .server = (uint8_t)server->env.server};
	struct head *head = server->pool.head;
	struct rpc_conn conn = {0};
	struct joined rsp;
	server->mirrored = false;
	head->epoch = MOJIM_COPYING;
	pmem_persist(head, sizeof(*head));
	int rc = rpc_open(&conn, &env, sizeof(rsp), TM_LINE, NULL);
	if (!rc)
		rc = rpc_call(&conn, &ask, sizeof(ask), &rsp, sizeof(rsp), NULL);
	if (!rc && !(rc = rsp.status)) {
		flush_area(server);
		server->head = rsp.head;
		head->seq = rsp.head.seq; /* before the epoch, with which it counts */
		head->epoch = rsp.head.epoch;
		pmem_persist(head, sizeof(*head));
		ask.op = JOIN_COMMIT;
		ask.head = rsp.head;
		ask.alone = rsp.alone;
		rc = rpc_call(&conn, &ask, sizeof(ask), &rsp, sizeof(rsp), NULL);
		if (!rc)
			rc = rsp.status;
	}
	rpc_close(&conn);
	return rc;
}

/* Is it this server that takes over? Rather one that has a follower; all have what was
 * acknowledged. */
static bool is_heir(const struct server *server, const struct rt_config *now)
{
	const uint32_t me = members_bit(&server->env), members = now->members & now->alive;
	return now->members & me && (server->mirrored || !(members & (me - 1)));
}

/* Is it no member, and its turn to join? One after the other. */
static bool is_next(const struct server *server, const struct rt_config *now)
{
	const uint32_t me = members_bit(&server->env);
	return !(now->members & me) && !(now->alive & ~now->members & (me - 1));
}

/* Is all as it should be, so that only another configuration changes it? If not, do what this
 * server can do about it; `waited`: it could not for a while. */
static bool settle(struct server *server, const struct rt_config *now, bool waited)
{
	const bool alive = now->alive >> now->primary & 1,
		   mine = now->primary == server->env.server;
	if (is_primary(server) && (mine || has_bug(&server->params, serves_on)))
		return true;
	server->serves = false;
	const bool takes_over = mine || (!alive && is_heir(server, now)),
		   joins = alive && is_next(server, now);
	if (!takes_over && !joins) {
		/* It may have been let in without hearing so. */
		server->applies = now->members & members_bit(&server->env);
		return true;
	}
	/* What was begun in another role is brought to an end first: a request to the former
	 * primary would store after it. */
	if ((server->busy && !(joins && has_bug(&server->params, joins_busy))) ||
	    server->applying) {
		if (waited && server->connected)
			rpc_break(&server->mirror);
		return false;
	}
	server->applies = false;
	if (takes_over)
		take_over(server, now);
	server->applies = takes_over ? !mine && !server->serves : !join(server, now);
	return server->applies || server->serves;
}

/* What a server does besides answering: it takes over, or joins. */
static void keeper(void *arg)
{
	struct server *server = arg;
	uint64_t nap = KV_NAP_NS;
	struct rt_config now;
	for (;;) {
		if (!rt_config_get(&now) && settle(server, &now, nap >= MOST_NAP_NS) &&
		    !rt_config_wait(&now))
			nap = KV_NAP_NS;
		else
			kv_nap_to(&nap, MOST_NAP_NS);
	}
}

static bool has_next(const struct server *server)
{
	return server->applies && !server->busy &&
	       mojim_record(&server->pool, &server->params, server->head.seq + 1);
}

/* The mirror, or the backup, applies records. */
static void applier(void *arg)
{
	struct server *server = arg;
	uint64_t nap = KV_NAP_NS;
	for (;;) {
		if (!has_next(server)) {
			kv_nap_to(&nap, MOST_NAP_NS);
			continue;
		}
		nap = KV_NAP_NS;
		server->applying = server->applies && !server->busy;
		if (server->applying)
			apply_next(server);
		server->applying = false;
	}
}

int mojim_recover(const struct tm_env *env)
{
	const struct mojim_pool pool = mojim_pool_at(env->params, env->pm);
	const struct record *record;
	while ((record = mojim_record(&pool, env->params, pool.head->seq + 1)))
		mojim_apply(&pool, env->params, record);
	return 0;
}

int mojim_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));
	struct tm_params more;
	const struct tm_env with = members_env_served(env, env->servers, &more);
	int rc;

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->env = *env;
	server->env.params = &server->params;
	server->pool = mojim_pool_at(&server->params, env->pm);
	server->record = calloc(TM_TXN_OPS, mojim_record_bytes(&server->params));
	if (!server->record)
		return -ENOMEM;
	server->head = *server->pool.head;
	rc = rpc_server_init(&server->rpc, &with, mojim_txn_bytes(env->params, TM_TXN_OPS), handle,
			     server);
	if (!rc)
		rc = rpc_server_export(&server->rpc, server->pool.log, server->pool.log_bytes,
				       IBV_ACCESS_LOCAL_WRITE | (int)server->rpc.qp_access);
	if (!rc)
		rc = rpc_server_export(&server->rpc, server->pool.area, server->pool.area_bytes,
				       IBV_ACCESS_LOCAL_WRITE | (int)server->rpc.qp_access);
	if (!rc)
		rc = kv_server_listen(&server->rpc);
	if (rc)
		return rc;
	if (!has_bug(&server->params, stays_member))
		members_leave(env); /* first: it takes over from nobody before it has joined */
	rc = rt_spawn("keeper", keeper, server);
	if (!rc)
		rc = rt_spawn("applier", applier, server);
	if (!rc)
		members_wait_all(env, &server->serves);
	return rc;
}
