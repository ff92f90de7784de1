/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server: a task that answers requests, and the verifier, the one background
 * task that makes arrived values durable (EF 4.3.2).
 *
 * Both may look at one object at the same time. Who settles it, durable or
 * invalid, is decided by a compare-and-swap of its state.
 *
 * The verifier's list has a place for every object of this server's life; the
 * request task appends, the verifier takes away.
 */
#include "core/stores/efactory/efactory.h"

#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/rpc.h"

#define NAP_MIN_NS 20000    /* the verifier's pause after a round that settled something */
#define NAP_MAX_NS 64000000 /* doubled up to this while nothing happens */

/* An object whose value is awaited. */
struct pending {
	uint64_t off; /* 0: settled */
	uint64_t received_ns;
};

struct ef_server {
	struct tm_params params;
	struct ef_pool pool;
	struct rpc_server rpc;
	uint64_t tail;	/* where the next object goes */
	uint32_t stamp; /* of the next object */
	struct pending *pending;
	uint64_t max_pending;
	uint64_t arrived; /* how many were appended, ever: written by the request task */
	uint64_t first;	  /* all before it are settled: the verifier's */
	uint64_t seen;	  /* how many the last round looked at: the verifier's */
};

/* ------------------------------------------------------------ durability */

/*
 * INFLIGHT becomes `to`. True if that is what the object now is, by whomever.
 * The paper's plain stores know nothing of each other (EF 4.3.2).
 */
static bool settle(const struct ef_server *server, struct ef_object *object, uint16_t to)
{
	uint16_t was = EF_INFLIGHT;
	uint8_t *flag = (uint8_t *)&object->state, *valid = flag + 1;

	if (!ef_knob(&server->params, EF_BG_PLAIN_STORE))
		return __atomic_compare_exchange_n(&object->state, &was, to, false, __ATOMIC_ACQ_REL,
						   __ATOMIC_ACQUIRE) ||
		       was == to;
	if (to == EF_DURABLE)
		*flag = 1;
	else
		*valid = 0;
	return true;
}

static void persist_value(const struct ef_server *server, const struct ef_object *object, bool verifier)
{
	const struct tm_params *params = &server->params;

	if (ef_bug(params, verifier ? EF_BUG_BG_NO_FLUSH : EF_BUG_GET_NO_FLUSH))
		return;
	if (!verifier && ef_bug(params, EF_BUG_GET_FLUSH_HEADER)) {
		pmem_persist(object, sizeof(*object));
		return;
	}
	pmem_flush(object->value, object->vlen);
	if (verifier || !ef_bug(params, EF_BUG_GET_NO_FENCE))
		pmem_drain();
}

/*
 * The object is intact: persist its value, then flag it. The flag itself need not
 * be durable before anything else, so nobody waits for it.
 * False: it was invalidated meanwhile.
 */
static bool make_durable(const struct ef_server *server, struct ef_object *object, bool verifier)
{
	bool settled;

	if (ef_knob(&server->params, EF_FLAG_BEFORE_VALUE)) {
		settled = settle(server, object, EF_DURABLE);
		pmem_persist(&object->state, sizeof(object->state));
		persist_value(server, object, verifier);
		return settled;
	}
	persist_value(server, object, verifier);
	settled = settle(server, object, EF_DURABLE);
	pmem_flush(&object->state, sizeof(object->state));
	return settled;
}

/* -------------------------------------------------------------- verifier */

/* True if the object needs no more attention. */
static bool verify(const struct ef_server *server, const struct pending *pending)
{
	struct ef_object *object = ef_at(&server->pool, pending->off);

	if (__atomic_load_n(&object->state, __ATOMIC_ACQUIRE) != EF_INFLIGHT)
		return true;
	if (ef_crc_ok(object)) {
		make_durable(server, object, true);
		return true;
	}
	if (rt_now() - pending->received_ns <= ef_timeout_ns(&server->params))
		return false;
	settle(server, object, EF_INVALID);
	pmem_flush(&object->state, sizeof(object->state));
	return true;
}

/* One pass over what is pending. True if something was settled, or is new. */
static bool verify_round(struct ef_server *server)
{
	uint64_t arrived = __atomic_load_n(&server->arrived, __ATOMIC_ACQUIRE);
	bool news = arrived != server->seen;

	server->seen = arrived;
	for (uint64_t i = server->first; i < arrived; i++) {
		struct pending *pending = &server->pending[i];

		if (pending->off && verify(server, pending)) {
			pending->off = 0;
			news = true;
		}
		if (pending->off && ef_knob(&server->params, EF_BG_BLOCKS))
			break;
	}
	while (server->first < arrived && !server->pending[server->first].off)
		server->first++;
	return news;
}

static void verifier(void *arg)
{
	struct ef_server *server = arg;
	uint64_t nap_max = ef_timeout_ns(&server->params) / 4;
	uint64_t nap = NAP_MIN_NS;

	if (nap_max > NAP_MAX_NS)
		nap_max = NAP_MAX_NS;
	for (;;) {
		rt_sleep(nap);
		nap = verify_round(server) ? NAP_MIN_NS : 2 * nap;
		if (nap > nap_max)
			nap = nap_max;
	}
}

/* -------------------------------------------------------------- requests */

/* The whole header and the key, in a line that nobody can reach yet. */
static void write_header(struct ef_server *server, struct ef_object *object, const struct kv_req *req,
			 uint64_t pre)
{
	const struct tm_params *params = &server->params;
	bool tombstone = req->op == KV_DEL;
	bool unlinked = ef_bug(params, EF_BUG_NO_PRE) || ef_bug(params, EF_BUG_PRE_LATE);
	bool durable = tombstone || ef_bug(params, EF_BUG_BORN_DURABLE);

	object->vlen = tombstone ? 0 : req->vlen;
	object->crc = tombstone ? 0 : req->crc;
	object->pre = unlinked ? 0 : pre;
	object->next = 0;
	object->state = durable ? EF_DURABLE : EF_INFLIGHT;
	object->kind = tombstone ? EF_TOMBSTONE : EF_VALUE;
	object->klen = req->klen;
	object->stamp = server->stamp++;
	memcpy(object->key, req->key, sizeof(object->key));
}

/*
 * Publish a version: the entry names it from now on. A new entry's key and offset
 * are durable before the bit that makes it count.
 */
static void publish(const struct ef_server *server, struct ef_entry *entry, bool found,
		    const struct kv_req *req, uint64_t off)
{
	const struct tm_params *params = &server->params;
	bool late_key = ef_bug(params, EF_BUG_KEY_UNFLUSHED);
	bool flush = !ef_bug(params, EF_BUG_ENTRY_UNFLUSHED);

	if (!found) {
		if (!late_key)
			memcpy(entry->key, req->key, sizeof(entry->key));
		entry->off[0] = off;
		if (!late_key && !ef_knob(params, EF_META_ONE_FLUSH))
			pmem_persist(entry, sizeof(*entry));
		entry->ctl = EF_USED | (uint64_t)req->klen << EF_KLEN_SHIFT;
	} else {
		*ef_head(entry) = off;
	}
	if (flush)
		pmem_persist(entry, sizeof(*entry));
	if (!found && late_key)
		memcpy(entry->key, req->key, sizeof(entry->key));
}

/* A new version of a key, up to the point where only its value is missing (EF 4.3.1). 0 or -errno. */
static int new_version(struct ef_server *server, const struct kv_req *req, uint64_t *off)
{
	const struct tm_params *params = &server->params;
	const struct ef_pool *pool = &server->pool;
	uint64_t span = ef_span(pool, req->op == KV_DEL ? 0 : req->vlen);
	struct ef_object *object;
	struct ef_entry *entry;
	uint64_t pre;
	bool found;

	entry = ef_lookup(pool, req->key, &found);
	if (req->op == KV_DEL && (!entry || !found || !*ef_head(entry)))
		return 0; /* there is nothing to delete */
	if (!entry || span > pool->log_len - server->tail)
		return -ENOSPC;
	if (req->op == KV_PUT && server->arrived == server->max_pending)
		return -ENOSPC;
	*off = server->tail;
	server->tail += span;
	pre = found ? *ef_head(entry) : 0;
	object = ef_at(pool, *off);
	write_header(server, object, req, pre);
	if (pre) {
		ef_at(pool, pre)->next = *off;
		if (!ef_bug(params, EF_BUG_HEADER_UNFLUSHED))
			pmem_flush(&ef_at(pool, pre)->next, sizeof(object->next));
	}
	if (!ef_bug(params, EF_BUG_HEADER_UNFLUSHED)) {
		pmem_flush(object, sizeof(*object));
		if (!ef_knob(params, EF_META_ONE_FLUSH))
			pmem_drain();
	}
	publish(server, entry, found, req, *off);
	if (ef_bug(params, EF_BUG_PRE_LATE)) {
		object->pre = pre;
		pmem_persist(&object->pre, sizeof(object->pre));
	}
	return 0;
}

static int handle_put(struct ef_server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	uint64_t now = rt_now();
	struct pending *pending;
	int rc;

	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	rc = new_version(server, req, &rsp->off);
	if (rc)
		return rc;
	pending = &server->pending[server->arrived];
	pending->off = rsp->off;
	pending->received_ns = now;
	__atomic_store_n(&server->arrived, server->arrived + 1, __ATOMIC_RELEASE);
	rsp->vlen = req->vlen;
	return 0;
}

/*
 * The newest version from `off` back that is durable, or intact and durable from
 * now on (EF 4.3.3). *incomplete: the newest one was not.
 */
static uint64_t newest_durable(const struct ef_server *server, uint64_t off, bool *incomplete)
{
	const struct tm_params *params = &server->params;
	bool waits = ef_bug(params, EF_BUG_GET_WAITS);
	bool any = waits || ef_knob(params, EF_IGNORE_VALID);

	*incomplete = false;
	for (; off; off = ef_older(&server->pool, off)) {
		struct ef_object *object = ef_at(&server->pool, off);
		uint16_t state = __atomic_load_n(&object->state, __ATOMIC_ACQUIRE);

		if (state & EF_FLAG)
			return off;
		if (!any && !(state & EF_VALID))
			continue;
		if (!ef_crc_ok(object) && !ef_bug(params, EF_BUG_GET_NO_CRC)) {
			*incomplete = true;
			if (waits || ef_bug(params, EF_BUG_GET_HEAD_ONLY))
				return 0;
			continue;
		}
		if (make_durable(server, object, false) || any)
			return off;
	}
	return 0;
}

static int handle_get(const struct ef_server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	bool found, incomplete;
	struct ef_entry *entry = ef_lookup(&server->pool, req->key, &found);
	uint64_t off = 0;

	if (found)
		off = newest_durable(server, *ef_head(entry), &incomplete);
	if (found && !off && incomplete && ef_bug(&server->params, EF_BUG_GET_WAITS))
		return -EAGAIN;
	if (!off || ef_at(&server->pool, off)->kind == EF_TOMBSTONE)
		return -ENOENT;
	rsp->off = off;
	rsp->vlen = ef_at(&server->pool, off)->vlen;
	return 0;
}

static size_t handle(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct ef_server *server = arg;
	const struct kv_req *req = msg->bytes;
	struct kv_rsp *rsp = reply;
	uint64_t tombstone;

	if (cap < sizeof(*rsp))
		return 0;
	if (msg->has_imm || msg->len != sizeof(*req))
		rsp->status = -EPROTO;
	else if (req->klen == 0 || req->klen > TM_MAX_KEY)
		rsp->status = -EINVAL;
	else if (req->op == KV_PUT)
		rsp->status = handle_put(server, req, rsp);
	else if (req->op == KV_DEL)
		rsp->status = new_version(server, req, &tombstone);
	else if (req->op == KV_GET)
		rsp->status = handle_get(server, req, rsp);
	else
		rsp->status = -EPROTO;
	return sizeof(*rsp);
}

/* ----------------------------------------------------------------- start */

/*
 * Where the log ends, and the next stamp: after the last newest version, since
 * older versions have lower offsets and stamps.
 */
static void find_tail(struct ef_server *server)
{
	const struct ef_pool *pool = &server->pool;

	server->tail = KV_LINE;
	for (uint64_t i = 0; i < pool->slots; i++) {
		struct ef_entry *entry = &pool->table[i];
		const struct ef_object *object;
		uint64_t off;

		if (!(entry->ctl & EF_USED))
			continue;
		off = *ef_head(entry);
		if (off < server->tail || !ef_fits(pool, off))
			continue;
		object = ef_at(pool, off);
		server->tail = off + ef_span(pool, object->vlen);
		server->stamp = object->stamp + 1;
	}
}

int ef_serve(const struct tm_env *env)
{
	struct ef_server *server = calloc(1, sizeof(*server));
	int rc;

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	ef_pool_map(&server->pool, &server->params, env->pm);
	server->max_pending = env->params->updates;
	server->pending = calloc(server->max_pending + 1, sizeof(*server->pending));
	if (!server->pending)
		return -ENOMEM;
	find_tail(server);
	rc = rpc_server_init(&server->rpc, env, sizeof(struct kv_req), handle, server);
	if (!rc) /* EF_TABLE */
		rc = rpc_server_export(&server->rpc, server->pool.table, server->pool.slots * KV_LINE,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!rc) /* EF_LOG */
		rc = rpc_server_export(&server->rpc, server->pool.log, server->pool.log_len,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					       IBV_ACCESS_REMOTE_WRITE);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	if (!rc)
		rc = rt_spawn("server", rpc_server_task, &server->rpc);
	if (!rc)
		rc = rt_spawn("verifier", verifier, server);
	return rc;
}
