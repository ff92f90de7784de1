/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: requests, and a task that applies records. See redo.h. */
#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/redo_log/redo.h"

struct server {
	struct tm_params params;
	struct rpc_server rpc;
	struct redo_pool pool;
	uint64_t appended, applied; /* the last record of each kind */
};

/* -------------------------------------------------------------- requests */

/* The number of the next record. A slot is given away when its record has been applied, durably. */
static int next_record(struct server *server, uint64_t *seq)
{
	uint64_t early = has_bug(&server->params, slot_early) ? 1 : 0;

	assert(server->applied <= server->appended);
	*seq = server->appended + 1;
	if (rt_pm_full() || *seq > server->pool.records)
		return -ENOSPC;
	if (*seq - server->applied > server->pool.slots + early)
		return -EAGAIN;
	server->appended = *seq;
	return 0;
}

/* The server's own record. The value came with the request. The commit point: it is durable. */
static int append(struct server *server, const struct kv_req *req)
{
	uint64_t seq;

	if (req->op == KV_PUT && !rt_check(req->crc == kv_crc(req + 1, req->vlen)))
		return -EBADMSG;
	int rc = next_record(server, &seq);
	if (rc)
		return rc;
	struct redo_record *record = redo_record(&server->pool, seq);
	redo_fill(record, req, seq, req + 1);
	if (!(req->op == KV_PUT ? has_bug(&server->params, ack_early)
				: has_bug(&server->params, delete_unflushed)))
		pmem_persist(record, sizeof(*record) + record->vlen);
	return 0;
}

static int handle_put(struct server *server, const struct kv_req *req, struct redo_rsp *rsp)
{
	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	if (server->params.knob[METHOD] == METHOD_REDO)
		return append(server, req);
	int rc = next_record(server, &rsp->seq);
	rsp->off = redo_off(&server->pool, rsp->seq);
	return rc;
}

/* The key's newest record that is not applied yet; NULL: there is none. */
static const struct redo_record *find_record(const struct server *server, const uint8_t *key)
{
	const struct redo_record *oldest = NULL;

	if (has_bug(&server->params, log_unread))
		return NULL;
	for (uint64_t seq = server->appended; seq > server->applied; seq--) {
		const struct redo_record *record = redo_record(&server->pool, seq);

		if (!redo_is_whole(&server->pool, seq, &server->params) ||
		    memcmp(record->key, key, TM_MAX_KEY))
			continue;
		oldest = record;
		if (!has_bug(&server->params, oldest_first))
			break;
	}
	return oldest;
}

static int handle_get(const struct server *server, const struct kv_req *req, struct redo_rsp *rsp)
{
	const struct redo_record *record = find_record(server, req->key);
	const struct kv_entry *entry;
	const void *value;
	uint64_t where;
	bool found;

	if (record) {
		/* A client has written it, and what a GET returns is to stay. */
		if (server->params.knob[METHOD] == METHOD_RAW &&
		    !has_bug(&server->params, get_unflushed))
			pmem_persist(record, sizeof(*record) + record->vlen);
		if (record->op == KV_DEL)
			return -ENOENT;
		rsp->vlen = record->vlen;
		value = record + 1;
	} else {
		entry = kv_table_find(&server->pool.pool.table, req->key, &found);
		/* Once: the other task may change it meanwhile. */
		where = found ? __atomic_load_n(&entry->where, __ATOMIC_SEQ_CST) : 0;
		if (!(where & 1))
			return -ENOENT;
		rsp->vlen = kv_where_vlen(where);
		value = server->pool.pool.log + kv_where_line(where) * TM_LINE;
	}
	memcpy(rsp + 1, value, rsp->vlen);
	return 0;
}

static int handle_request(struct server *server, const struct rpc_msg *msg, struct redo_rsp *rsp)
{
	const struct kv_req *req = msg->bytes;

	if (!kv_is_request(msg, server->params.knob[METHOD] == METHOD_REDO))
		return -EPROTO;
	switch (req->op) {
	case KV_PUT:
		return handle_put(server, req, rsp);
	case KV_GET:
		return handle_get(server, req, rsp);
	default:
		return req->op == KV_DEL ? append(server, req) : -EPROTO;
	}
}

static size_t handle_message(void *server, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct redo_rsp *rsp = reply;

	if (cap < redo_message_bytes(&((struct server *)server)->params))
		return 0;
	rsp->status = handle_request(server, msg, rsp);
	return sizeof(*rsp) + (rsp->status ? 0 : rsp->vlen);
}

/* -------------------------------------------------------------- applying */

/* Records are applied in the order of their numbers: one whose client has died holds up the others,
 * which GETs find in the log. */
static void apply_task(void *arg)
{
	struct server *server = arg;
	uint64_t nap = KV_NAP_NS, seen = 0;

	for (;;) {
		uint64_t next = server->applied + 1;
		bool more = next <= server->appended && seen != server->appended;

		if (more && redo_is_whole(&server->pool, next, &server->params)) {
			if (has_bug(&server->params, applied_early))
				server->applied = next;
			redo_apply(&server->pool, next, &server->params);
			server->applied = next;
			nap = KV_NAP_NS;
			continue;
		}
		if (has_bug(&server->params, apply_waits))
			seen = server->appended;
		kv_nap(&nap);
	}
}

int redo_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->pool = redo_pool_at(&server->params, env->pm);
	server->appended = server->applied = *server->pool.applied;
	int rc = rpc_server_init(&server->rpc, env, redo_message_bytes(env->params), handle_message,
				 server);
	if (!rc) /* REDO_RING */
		rc = kv_server_start(&server->rpc, server->pool.ring,
				     server->pool.slots * server->pool.slot_bytes);
	return rc ? rc : rt_spawn("applier", apply_task, server);
}
