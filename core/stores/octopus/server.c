/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: files, their locks and blocks. It moves no data. See octopus.h. */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/octopus/octopus.h"

#define LEASE_NS 10000000ull /* 10 ms */

/* What the connection's client is doing: it has at most one file. */
struct hold {
	struct kv_entry *file; /* NULL: none */
	bool writes;
	uint64_t where; /* writes: of the file when the data are there */
	uint64_t since; /* rt_now() */
};

struct server {
	struct tm_params params;
	struct rpc_server rpc;
	struct kv_pool pool;
	bool *used;	   /* by block */
	struct hold *hold; /* by the connection's number */
};

static void persist(const struct server *server, const void *from, size_t len)
{
	if (server->params.knob[PERSIST] != PERSIST_NONE)
		pmem_persist(from, len);
}

/* The data, which a client has written. With a READ after the WRITE the client does what there is
 * to do. */
static void persist_data(const struct server *server, uint64_t where)
{
	if (server->params.knob[PERSIST] == PERSIST_CPU &&
	    !has_bug(&server->params, barrier_missed))
		pmem_persist(octopus_data(&server->pool, where), kv_where_vlen(where));
}

/* ---------------------------------------------------------------- blocks */

static uint64_t block_of(const struct server *server, uint64_t where)
{
	return kv_where_line(where) / kv_lines(server->params.max_vlen);
}

static int allocate(struct server *server, uint64_t *line)
{
	for (uint64_t i = 0; !rt_pm_full() && i < server->params.updates; i++) {
		if (server->used[i])
			continue;
		server->used[i] = !has_bug(&server->params, block_shared);
		*line = i * kv_lines(server->params.max_vlen);
		return 0;
	}
	return -ENOSPC;
}

/* ----------------------------------------------------------------- locks */

/* The client that has it is done, or does something else. It may have written; no message will say
 * so, but others will read it. */
static void release(struct server *server, struct hold *hold)
{
	struct kv_entry *file = hold->file;

	if (!file)
		return;
	if (!hold->writes) {
		octopus_unlock_read(&file->lock);
	} else {
		if (file->where & 1)
			persist_data(server, file->where);
		else
			server->used[block_of(server, hold->where)] = false;
		octopus_unlock_write(&file->lock);
	}
	hold->file = NULL;
}

/* Give up on clients that have had the file for too long. What they still send takes no effect. */
static void expire(struct server *server, const struct kv_entry *file)
{
	if (!server->params.knob[LEASE])
		return;
	for (unsigned i = 0; i < server->rpc.max_peers; i++) {
		struct hold *hold = &server->hold[i];

		if (hold->file != file || rt_now() - hold->since < LEASE_NS)
			continue;
		rpc_server_drop(&server->rpc, server->rpc.peer[i].client);
		release(server, hold);
	}
}

static bool lock(struct server *server, struct kv_entry *file, const struct rpc_msg *msg,
		 bool writes)
{
	if (!writes)
		return octopus_lock_read(&file->lock);
	if (has_bug(&server->params, readers_ignored) && file->lock >> 32 == 0)
		return true;
	return octopus_lock_write(&file->lock, msg->client, msg->index);
}

/* -EAGAIN: another client has it. */
static int take_lock(struct server *server, struct kv_entry *file, const struct rpc_msg *msg,
		     bool writes)
{
	if (lock(server, file, msg, writes))
		return 0;
	expire(server, file);
	return lock(server, file, msg, writes) ? 0 : -EAGAIN;
}

/* -------------------------------------------------------------- requests */

static void create(const struct server *server, struct kv_entry *file, const struct kv_req *req)
{
	memcpy(file->key, req->key, sizeof(file->key));
	file->where = 0;
	persist(server, file, sizeof(*file));
	__atomic_store_n(&file->ctl, kv_checked_ctl(req->key, req->klen), __ATOMIC_SEQ_CST);
	persist(server, file, sizeof(*file));
}

static void set_where(const struct server *server, struct kv_entry *file, uint64_t where,
		      bool flush)
{
	__atomic_store_n(&file->where, where, __ATOMIC_SEQ_CST);
	if (flush)
		persist(server, file, sizeof(*file));
}

/* Where the data go: where the file has some already. */
static int begin_put(struct server *server, const struct rpc_msg *msg, struct hold *hold,
		     const struct kv_req *req, uint64_t *off)
{
	bool found;

	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	struct kv_entry *file = kv_table_find(&server->pool.table, req->key, &found);
	if (!file)
		return -ENOSPC;
	if (!found)
		create(server, file, req);
	int rc = take_lock(server, file, msg, true);
	if (rc)
		return rc;
	uint64_t line = kv_where_line(file->where);
	if (!(file->where & 1))
		rc = allocate(server, &line);
	if (rc) {
		octopus_unlock_write(&file->lock);
		return rc;
	}
	*off = line * TM_LINE;
	if (server->params.knob[LOCK] == LOCK_EARLY) {
		set_where(server, file, kv_where(line, req->vlen), true);
		octopus_unlock_write(&file->lock);
		return 0;
	}
	*hold = (struct hold){file, true, kv_where(line, req->vlen), rt_now()};
	return 0;
}

/* The data are there. The commit point: the file's size is set. */
static int end_put(struct server *server, struct hold *hold, const struct kv_req *req)
{
	struct kv_entry *file = hold->file;
	bool found;

	if (server->params.knob[LOCK] == LOCK_EARLY) {
		file = kv_table_find(&server->pool.table, req->key, &found);
		if (found && (file->where & 1))
			persist_data(server, file->where);
		return 0;
	}
	if (!file || !hold->writes)
		return -EPROTO;
	persist_data(server, hold->where);
	set_where(server, file, hold->where, !has_bug(&server->params, size_unflushed));
	octopus_unlock_write(&file->lock);
	hold->file = NULL;
	return 0;
}

static int begin_get(struct server *server, const struct rpc_msg *msg, struct hold *hold,
		     const struct kv_req *req, struct kv_rsp *rsp)
{
	bool found;
	struct kv_entry *file = kv_table_find(&server->pool.table, req->key, &found);
	int rc;

	if (!found)
		return -ENOENT;
	if (server->params.knob[LOCK] == LOCK_HELD && !has_bug(&server->params, read_unlocked)) {
		rc = take_lock(server, file, msg, false);
		if (rc)
			return rc;
		*hold = (struct hold){file, false, 0, rt_now()};
	}
	if (!(file->where & 1)) {
		release(server, hold);
		return -ENOENT;
	}
	rsp->off = kv_where_line(file->where) * TM_LINE;
	rsp->vlen = kv_where_vlen(file->where);
	return 0;
}

static int handle_del(struct server *server, const struct rpc_msg *msg, const struct kv_req *req)
{
	bool found;
	struct kv_entry *file = kv_table_find(&server->pool.table, req->key, &found);

	if (!found)
		return 0;
	int rc = take_lock(server, file, msg, true);
	if (rc)
		return rc;
	if (file->where & 1) {
		server->used[block_of(server, file->where)] = server->params.knob[FREE] ==
							      FREE_NEVER;
		set_where(server, file, 0, !has_bug(&server->params, delete_unflushed));
	} else if (has_bug(&server->params, delete_stays)) {
		return 0;
	}
	octopus_unlock_write(&file->lock);
	return 0;
}

static int handle_request(struct server *server, const struct rpc_msg *msg, struct kv_rsp *rsp)
{
	const struct kv_req *req = msg->bytes;
	struct hold *hold = &server->hold[has_bug(&server->params, hold_shared) ? 0 : msg->index];

	if (!kv_is_request(msg, false))
		return -EPROTO;
	if (req->op == KV_COMMIT)
		return end_put(server, hold, req);
	/* A client does one thing at a time: whatever it had begun is over. */
	if (!has_bug(&server->params, reader_stays))
		release(server, hold);
	switch (req->op) {
	case KV_PUT:
		return begin_put(server, msg, hold, req, &rsp->off);
	case KV_GET:
		return begin_get(server, msg, hold, req, rsp);
	case KV_DEL:
		return handle_del(server, msg, req);
	default:
		return req->op == KV_END ? 0 : -EPROTO;
	}
}

static size_t handle_message(void *server, const struct rpc_msg *msg, void *reply, size_t cap)
{
	const struct kv_req *req = msg->bytes;
	struct kv_rsp *rsp = reply;

	if (cap < sizeof(*rsp))
		return 0;
	rsp->status = handle_request(server, msg, rsp);
	return rsp->status == 0 && req->op == KV_END ? 0 : sizeof(*rsp);
}

/* ----------------------------------------------------------------- start */

static void find_used(struct server *server)
{
	for (uint64_t i = 0; i < server->pool.table.slots; i++) {
		const struct kv_entry *file = &server->pool.table.entry[i];

		if ((file->ctl & KV_USED) && (file->where & 1))
			server->used[block_of(server, file->where)] = true;
	}
}

int octopus_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->pool = kv_pool_at(&server->params, env->pm);
	int rc = rpc_server_init(&server->rpc, env, sizeof(struct kv_req), handle_message, server);
	if (rc)
		return rc;
	server->used = calloc(env->params->updates, sizeof(*server->used));
	server->hold = calloc(server->rpc.max_peers, sizeof(*server->hold));
	if (!server->used || !server->hold)
		return -ENOMEM;
	if (!has_bug(env->params, blocks_forgotten))
		find_used(server);
	return kv_server_start(&server->rpc, server->pool.log, server->pool.log_lines * TM_LINE);
}
