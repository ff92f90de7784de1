/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's task for requests (EF 4.3.1, 4.3.3), and its start. */
#include "core/stores/efactory/server.h"

#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"

struct ef_now ef_server_now(const struct ef_server *server)
{
	uint32_t stage = __atomic_load_n(&server->stage, __ATOMIC_SEQ_CST);
	struct ef_now now;

	now.stage = stage / 2;
	now.from = stage & 1;
	now.to = !now.from;
	return now;
}

uint64_t ef_alloc(struct ef_server *server, unsigned log, uint64_t span, uint64_t keep)
{
	uint64_t *tail = &server->tail[log];
	uint64_t at = __atomic_load_n(tail, __ATOMIC_ACQUIRE);

	do {
		if (span + keep > server->pool.log_len - at)
			return 0;
	} while (!__atomic_compare_exchange_n(tail, &at, at + span, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return ef_place(log, at);
}

/* -------------------------------------------------------------- requests */

/* The whole header and the key, in a line that nothing leads to yet. */
static void write_header(struct ef_server *server, struct ef_object *object,
			 const struct kv_req *req, uint32_t stamp)
{
	const struct tm_params *params = &server->params;
	bool tombstone = req->op == KV_DEL;
	bool durable = tombstone || ef_bug(params, EF_BUG_BORN_DURABLE);

	object->vlen = tombstone ? 0 : req->vlen;
	object->crc = tombstone ? 0 : req->crc;
	object->pre = 0;
	object->next = 0;
	object->state = durable ? EF_DURABLE : EF_INFLIGHT;
	object->kind = tombstone ? EF_TOMBSTONE : EF_VALUE;
	object->klen = req->klen;
	object->stamp = stamp;
	memcpy(object->key, req->key, sizeof(object->key));
}

/* Link a version that nothing leads to yet and the one before it, and make the header durable. */
static void link_header(const struct ef_server *server, const struct ef_now *now, uint64_t place,
			uint64_t pre)
{
	const struct tm_params *params = &server->params;
	const struct ef_pool *pool = &server->pool;
	bool unlinked = ef_bug(params, EF_BUG_NO_PRE) || ef_bug(params, EF_BUG_PRE_LATE);
	bool trans = ef_trans(pool, now, pre);
	struct ef_object *object = ef_at(pool, place);

	if (ef_knobs(params)->split_trans) {
		object->pre = unlinked ? 0 : ef_off_of(pre);
		object->kind = (uint8_t)(ef_kind(params, object) | (trans ? EF_KIND_TRANS : 0));
	} else {
		object->pre = unlinked ? 0 : pre | (trans ? EF_TRANS : 0);
	}
	if (pre)
		ef_at(pool, pre)->next = place;
	if (ef_bug(params, EF_BUG_HEADER_UNFLUSHED))
		return;
	if (pre)
		pmem_flush(&ef_at(pool, pre)->next, sizeof(object->next));
	pmem_flush(object, sizeof(*object));
	if (!ef_knobs(params)->meta_one_flush)
		pmem_drain();
}

/* Is the entry that names this version flushed at once? Seeded bugs: never; or not before the
 * value is durable (verifier.c). */
static bool is_flushed(const struct ef_server *server, uint64_t place)
{
	if (ef_bug(&server->params, EF_BUG_ENTRY_LAZY))
		return ef_kind(&server->params, ef_at(&server->pool, place)) == EF_TOMBSTONE;
	return !ef_bug(&server->params, EF_BUG_ENTRY_UNFLUSHED);
}

/* The first version of a key. Its entry's key and offset are durable before the bit that makes it
 * count, which is the commit point. */
static void publish_new(const struct ef_server *server, struct ef_entry *entry,
			const struct kv_req *req, uint64_t place)
{
	const struct tm_params *params = &server->params;
	bool late_key = ef_bug(params, EF_BUG_KEY_UNFLUSHED), split = ef_knobs(params)->split_mark;
	unsigned log = ef_log_of(place);

	if (!late_key)
		memcpy(entry->key, req->key, sizeof(entry->key));
	/* A power failure may have left an entry of the other log's time that does not count. */
	if (entry->off[!log] && !ef_bug(params, EF_BUG_STALE_OFFSET))
		entry->off[!log] = 0;
	entry->off[log] = ef_off_of(place);
	if (!late_key && !ef_knobs(params)->meta_one_flush)
		pmem_persist(entry, sizeof(*entry));
	entry->ctl = EF_USED | (uint64_t)req->klen << EF_KLEN_SHIFT | (split ? 0 : log);
	if (is_flushed(server, place))
		pmem_persist(entry, sizeof(*entry));
	if (split && log) {
		entry->mark = log;
		pmem_persist(&entry->mark, sizeof(entry->mark));
	}
	if (late_key)
		memcpy(entry->key, req->key, sizeof(entry->key));
}

/*
 * The commit point of the next version: the entry names it from now on. False: the entry has
 * changed since `was` was read, because the cleaner has moved the version before.
 */
static bool publish(const struct ef_server *server, struct ef_entry *entry, uint64_t was,
		    uint64_t place)
{
	uint64_t *off = &entry->off[ef_log_of(place)];

	if (!__atomic_compare_exchange_n(off, &was, ef_off_of(place), false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return false;
	if (ef_bug(&server->params, EF_BUG_ENTRY_UNFENCED))
		pmem_flush(entry, sizeof(*entry));
	else if (is_flushed(server, place))
		pmem_persist(entry, sizeof(*entry));
	return true;
}

/* A new version of a known key, linked and published. */
static void append(struct ef_server *server, const struct ef_now *now, struct ef_entry *entry,
		   uint64_t place)
{
	const struct ef_pool *pool = &server->pool;
	const struct ef_now rest = {EF_REST, now->to, now->from};
	uint64_t pre, was;

	do {
		was = __atomic_load_n(&entry->off[ef_log_of(place)], __ATOMIC_ACQUIRE);
		/* For an entry that has been flipped the cleaning is over. */
		if (ef_moving(now) && ef_mark(&server->params, entry) == now->to)
			now = &rest;
		pre = ef_newest(pool, now, entry);
		link_header(server, now, place, pre);
	} while (!publish(server, entry, was, place));
	if (ef_bug(&server->params, EF_BUG_PRE_LATE))
		ef_set_pre(pool, now, ef_at(pool, place), pre);
}

/* Room for an object in the log that takes new ones. 0 or -errno; -EAGAIN: there will be some. */
static int make_room(struct ef_server *server, const struct ef_now *now, uint64_t span,
		     uint64_t *place)
{
	bool merging = now->stage == EF_MERGE;
	unsigned log = merging ? now->to : now->from;
	uint64_t keep = merging ? __atomic_load_n(&server->reserve, __ATOMIC_ACQUIRE) : 0;

	*place = rt_pm_full() ? 0 : ef_alloc(server, log, span, keep);
	if (*place) {
		if (merging)
			__atomic_store_n(&server->put_merging, true, __ATOMIC_RELEASE);
		if (now->stage == EF_REST &&
		    (server->pool.log_len - server->tail[log]) * 4 < server->pool.log_len)
			ef_clean_start(server);
		return 0;
	}
	if (now->stage != EF_REST)
		return -EAGAIN;
	if (server->tail[log] == server->tail_cleaned)
		return -ENOSPC;
	/* A cleaning that could not be done is reported once, to whom it would have helped. */
	int rc = server->clean_error;
	server->clean_error = 0;
	if (!rc)
		rc = ef_clean_start(server);
	return rc && rc != -EALREADY ? rc : -EAGAIN;
}

static bool too_many_pending(const struct ef_server *server)
{
	return server->arrived - __atomic_load_n(&server->first, __ATOMIC_ACQUIRE) ==
	       server->max_pending;
}

/* A new version of a key, up to the point where only its value is missing (EF 4.3.1). 0 or
 * -errno. */
static int new_version(struct ef_server *server, const struct kv_req *req, uint64_t *place)
{
	const struct ef_now now = ef_server_now(server);
	const struct ef_pool *pool = &server->pool;
	bool found;
	struct ef_entry *entry = ef_lookup(pool, req->key, &found);
	if (req->op == KV_DEL && (!entry || !found || !ef_newest(pool, &now, entry)))
		return 0; /* there is nothing to delete */
	if (!entry || (req->op == KV_PUT && too_many_pending(server)))
		return -ENOSPC;
	if (found && ef_bug(&server->params, EF_BUG_FULL_EARLY) &&
	    !ef_crc_ok(ef_at(pool, ef_newest(pool, &now, entry))))
		return -ENOSPC;
	int rc = make_room(server, &now, ef_span(pool, req->op == KV_DEL ? 0 : req->vlen), place);
	if (rc)
		return rc;
	write_header(server, ef_at(pool, *place), req, server->stamp++);
	if (found) {
		append(server, &now, entry, *place);
	} else {
		link_header(server, &now, *place, 0);
		publish_new(server, entry, req, *place);
	}
	return 0;
}

static int handle_put(struct ef_server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	uint64_t now = rt_now();

	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	int rc = new_version(server, req, &rsp->off);
	if (rc)
		return rc;
	struct ef_pending *pending = &server->pending[server->arrived % server->max_pending];
	pending->place = rsp->off;
	pending->received_ns = now;
	__atomic_store_n(&server->arrived, server->arrived + 1, __ATOMIC_RELEASE);
	rsp->vlen = req->vlen;
	return 0;
}

/*
 * The newest version from `place` back that is durable, or intact and durable from
 * now on (EF 4.3.3). *incomplete: the newest one was not.
 */
static uint64_t newest_durable(const struct ef_server *server, const struct ef_now *now,
			       const struct ef_entry *entry, uint64_t place, bool *incomplete)
{
	const struct tm_params *params = &server->params;
	bool waits = ef_bug(params, EF_BUG_GET_WAITS);
	bool any = waits || ef_knobs(params)->ignore_valid;

	*incomplete = false;
	for (; place; place = ef_older(&server->pool, now, entry, place)) {
		struct ef_object *object = ef_at(&server->pool, place);
		uint16_t state = __atomic_load_n(&object->state, __ATOMIC_ACQUIRE);

		if (rt_check(state & EF_FLAG))
			return place;
		if (!any && !rt_check(state & EF_VALID)) {
			if (ef_bug(params, EF_BUG_INVALID_ENDS))
				return 0;
			continue;
		}
		if (!rt_check(ef_crc_ok(object)) && !ef_bug(params, EF_BUG_GET_NO_CRC)) {
			*incomplete = true;
			if (waits || ef_bug(params, EF_BUG_GET_HEAD_ONLY) ||
			    ef_bug(params, EF_BUG_GET_GIVES_UP))
				return 0;
			continue;
		}
		if (ef_make_durable(server, object, false) || any)
			return place;
	}
	return 0;
}

/* Where a GET begins to look. The paper's rule while compressing takes what has been moved for the
 * newest. */
static uint64_t get_from(const struct ef_server *server, const struct ef_now *now,
			 const struct ef_entry *entry)
{
	if (now->stage == EF_COMPRESS && ef_knobs(&server->params)->compress_get &&
	    entry->off[now->to])
		return ef_place(now->to, entry->off[now->to]);
	return ef_newest(&server->pool, now, entry);
}

static int handle_get(const struct ef_server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	const struct ef_now now = ef_server_now(server);
	bool found, incomplete;
	struct ef_entry *entry = ef_lookup(&server->pool, req->key, &found);
	uint64_t place = 0;

	if (found)
		place = newest_durable(server, &now, entry, get_from(server, &now, entry),
				       &incomplete);
	if (found && !place && incomplete && ef_bug(&server->params, EF_BUG_GET_WAITS))
		return -EAGAIN;
	if (found && !place && incomplete && ef_bug(&server->params, EF_BUG_GET_GIVES_UP))
		return -EIO;
	if (!place || ef_kind(&server->params, ef_at(&server->pool, place)) == EF_TOMBSTONE)
		return -ENOENT;
	rsp->off = place;
	rsp->vlen = ef_at(&server->pool, place)->vlen;
	return 0;
}

/* A client has acknowledged a notice, on whichever connection. */
static void handle_ack(struct ef_server *server, const struct rpc_msg *msg, uint64_t number)
{
	for (unsigned i = 0; i < server->rpc.peers; i++) {
		if (server->rpc.peer[i].notices && (server->rpc.peer[i].client == msg->client ||
						    ef_bug(&server->params, EF_BUG_ACK_FOR_ALL)))
			__atomic_store_n(&server->rpc.peer[i].acked, number, __ATOMIC_RELEASE);
	}
}

static int handle_request(struct ef_server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	uint64_t tombstone;

	if (req->op == KV_CLEAN)
		return ef_clean_start(server);
	if (req->klen == 0 || req->klen > TM_MAX_KEY)
		return -EINVAL;
	switch (req->op) {
	case KV_PUT:
		return handle_put(server, req, rsp);
	case KV_DEL:
		return new_version(server, req, &tombstone);
	case KV_GET:
		return handle_get(server, req, rsp);
	default:
		return -EPROTO;
	}
}

static size_t handle_message(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct ef_server *server = arg;
	const struct kv_req *req = msg->bytes;
	struct kv_rsp *rsp = reply;

	if (cap < sizeof(*rsp))
		return 0;
	if (msg->has_imm || msg->len != sizeof(*req)) {
		rsp->status = -EPROTO;
		return sizeof(*rsp);
	}
	if (req->op == KV_ACK) {
		handle_ack(server, msg, req->off);
		return 0;
	}
	__atomic_fetch_add(&server->requests, 1, __ATOMIC_SEQ_CST);
	rsp->status = handle_request(server, req, rsp);
	__atomic_fetch_add(&server->requests, 1, __ATOMIC_SEQ_CST);
	return sizeof(*rsp);
}

/* ----------------------------------------------------------------- start */

/*
 * Where the current log ends, and the next stamp. Every newest version is durable now, so
 * what follows it in its list will not be read again, and is older.
 */
static void find_tail(struct ef_server *server)
{
	const struct ef_pool *pool = &server->pool;
	const struct ef_now now = ef_server_now(server);
	uint64_t *tail = &server->tail[now.from];
	bool any = false;

	*tail = TM_LINE;
	server->stamp = ef_knobs(&server->params)->stamps ? UINT32_MAX : 0;
	for (uint64_t i = 0; i < pool->slots; i++) {
		struct ef_entry *entry = &pool->table[i];

		if (!(entry->ctl & EF_USED))
			continue;
		uint64_t place = ef_newest(pool, &now, entry);
		if (!place || !ef_fits(pool, place))
			continue;
		const struct ef_object *object = ef_at(pool, place);
		uint64_t end = ef_off_of(place) + ef_span(pool, object->vlen);
		if (end > *tail && (ef_kind(&server->params, object) != EF_TOMBSTONE ||
				    !ef_bug(&server->params, EF_BUG_RECOVER_TAIL_LOW)))
			*tail = end;
		if (!any || ef_bug(&server->params, EF_BUG_STAMP_OF_LAST) ||
		    ef_newer(&server->params, object->stamp + 1, server->stamp))
			server->stamp = object->stamp + 1;
		any = true;
	}
}

/* Memory, tables, the two regions. */
static int prepare(struct ef_server *server, const struct tm_env *env)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			   IBV_ACCESS_REMOTE_WRITE;

	server->params = *env->params;
	ef_pool_map(&server->pool, &server->params, env->pm);
	struct ef_now now = ef_pool_now(&server->pool);
	server->stage = EF_REST * 2 + now.from;
	server->max_pending = env->params->updates;
	server->pending = calloc(server->max_pending + 1, sizeof(*server->pending));
	if (!server->pending)
		return -ENOMEM;
	find_tail(server);
	int rc = rpc_server_init(&server->rpc, env, sizeof(struct kv_req), handle_message, server);
	server->rpc.pays_once = ef_bug(&server->params, EF_BUG_REPLY_TRIED_ONCE);
	if (rc)
		return rc;
	if (ef_bug(&server->params, EF_BUG_ONE_PEER))
		server->rpc.max_peers = 2;
	rc = rpc_server_export_at(&server->rpc, EF_TABLE, server->pool.table,
				  server->pool.slots * TM_LINE,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!rc)
		rc = rpc_server_export_at(&server->rpc, EF_LOG + now.from,
					  server->pool.log[now.from], server->pool.log_len, access);
	return rc;
}

int ef_serve(const struct tm_env *env)
{
	struct ef_server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	int rc = prepare(server, env);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	if (!rc)
		rc = rt_spawn("server", rpc_server_task, &server->rpc);
	if (!rc)
		rc = rt_spawn("verifier", ef_verifier, server);
	return rc;
}
