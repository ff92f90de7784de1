/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: one task polls the slots, executes what it finds, and WRITEs the reply. See
 * hydradb.h. */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/hydradb/server.h"

/* ----------------------------------------------------------------- items */

static struct hydradb_item *item_at(const struct hydradb_server *server, uint64_t where)
{
	return hydradb_item_at(&server->place.pool, where);
}

/* Where the key's item is; 0: there is none. */
static uint64_t where_of(const struct hydradb_server *server, const uint8_t key[TM_MAX_KEY])
{
	bool found;
	const struct kv_entry *entry = kv_table_find(&server->place.pool.table, key, &found);

	return found && (entry->where & 1) ? entry->where : 0;
}

static void mark(struct hydradb_server *server, uint64_t where, bool used)
{
	kv_rooms_mark(&server->rooms, kv_where_line(where), kv_lines(kv_where_vlen(where)), used);
}

/* No client is told of the item any more; one that was, may READ it until its lease ends. */
static void evict_later(struct hydradb_server *server, uint64_t where)
{
	uint64_t since = item_at(server, where)->lease_end;

	if (has_bug(&server->params, free_now)) {
		mark(server, where, false);
		return;
	}
	if (server->params.knob[LEASE] == LEASE_OFF)
		since = rt_now();
	kv_rooms_free_at(&server->rooms, kv_where_line(where), kv_lines(kv_where_vlen(where)),
			 since + HYDRADB_DELAY_NS);
}

/* The item is no longer the key's: clients that READ it see that. Not flushed, as after a power
 * failure no client has a pointer to it. */
static void kill_item(const struct hydradb_server *server, uint64_t where)
{
	uint64_t *guardian = hydradb_guardian(item_at(server, where), kv_where_vlen(where));

	__atomic_store_n(guardian, *guardian & ~1ull, __ATOMIC_SEQ_CST);
}

static void outdate(struct hydradb_server *server, uint64_t where)
{
	if (!where)
		return;
	kill_item(server, where);
	evict_later(server, where);
}

/* ----------------------------------------------------------- PUT, DELETE */

/* In a new place; what names it comes later. */
static void write_item(struct hydradb_server *server, const struct kv_req *req, uint64_t line)
{
	uint32_t bytes = hydradb_item_bytes(req->klen, req->vlen);
	struct hydradb_item *item = item_at(server, kv_where(line, bytes));
	uint64_t guardian = ++server->version * 2 + 1;

	item->klen = req->klen;
	item->vlen = req->vlen;
	item->lease_end = 0;
	memcpy(item->bytes, req->key, req->klen);
	memcpy(item->bytes + req->klen, req + 1, req->vlen);
	memcpy(hydradb_guardian(item, bytes), &guardian, sizeof(guardian));
}

/* Is there an entry for the key, and room for the item? */
static int find_room(struct hydradb_server *server, const struct kv_req *req,
		     struct kv_placed *placed)
{
	bool found;

	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	if (!kv_table_find(&server->place.pool.table, req->key, &found) || rt_pm_full())
		return -ENOSPC;
	*placed = (struct kv_placed){.klen = req->klen,
				     .vlen = hydradb_item_bytes(req->klen, req->vlen)};
	memcpy(placed->key, req->key, sizeof(placed->key));
	return kv_rooms_take(&server->rooms, kv_lines(placed->vlen), &placed->line);
}

static int handle_put(struct hydradb_server *server, const struct kv_req *req)
{
	uint64_t old = where_of(server, req->key);
	struct kv_placed placed;
	int rc = find_room(server, req, &placed);

	if (rc)
		return rc;
	write_item(server, req, placed.line);
	if (old && has_bug(&server->params, dead_first)) {
		kill_item(server, old);
		pmem_persist(item_at(server, old), kv_where_vlen(old));
	}
	rc = kv_place_commit(&server->place,
			     &placed); /* the item, then what names it: the commit point */
	if (rc)
		return rc;
	if (has_bug(&server->params, guardian_late))
		server->late = old;
	else
		outdate(server, old);
	return 0;
}

static int handle_del(struct hydradb_server *server, const struct kv_req *req)
{
	uint64_t old = where_of(server, req->key);

	if (!old)
		return 0;
	kv_place_del(&server->place, req->key);
	if (has_bug(&server->params, delete_stays))
		evict_later(server, old);
	else
		outdate(server, old);
	return 0;
}

void hydradb_clear(struct hydradb_server *server)
{
	struct kv_table *table = &server->place.pool.table;

	for (uint64_t i = 0; i < table->slots; i++) {
		uint64_t where = hydradb_names_item(&table->entry[i]) ? table->entry[i].where : 0;

		if (!where)
			continue;
		kv_place_del(&server->place, table->entry[i].key);
		mark(server, where, false);
	}
}

/* ------------------------------------------------------------------- GET */

/* The lease of a client that has READ the item so often since it got the pointer. */
static uint64_t lease_ns(uint32_t accesses)
{
	return HYDRADB_LEASE_NS * (accesses < HYDRADB_LONGEST ? accesses + 1 : HYDRADB_LONGEST);
}

static void lease(struct hydradb_server *server, const struct kv_req *req,
		  struct hydradb_item *item, struct hydradb_pointer *pointer)
{
	if (server->params.knob[LEASE] == LEASE_OFF)
		return;
	pointer->lease_ns = lease_ns(req->op == KV_RENEW ? req->vlen : 0);
	const uint64_t now = rt_now();
	if (now >= server->pointers_end) { /* time has passed since handle_get() looked */
		memset(pointer, 0, sizeof(*pointer));
		return;
	}
	uint64_t end = now + pointer->lease_ns;
	if (end > server->pointers_end) {
		end = server->pointers_end;
		pointer->lease_ns = end - now;
	}
	if (req->op == KV_RENEW && server->params.knob[RENEWAL] == RENEWAL_UNNOTED)
		return;
	if (end > item->lease_end)
		__atomic_store_n(&item->lease_end, end, __ATOMIC_SEQ_CST);
}

/* The reply names the item; its value is *value, unless the client has it (KV_RENEW). */
static int handle_get(struct hydradb_server *server, const struct kv_req *req,
		      struct hydradb_reply *reply, const void **value, uint32_t *vlen)
{
	uint64_t where = where_of(server, req->key);
	uint32_t bytes = kv_where_vlen(where);

	if (!where)
		return -ENOENT;
	struct hydradb_item *item = item_at(server, where);
	if (!hydradb_fits(item, bytes, req->key))
		return -EIO;
	if (server->params.knob[POINTERS] == POINTERS_CACHED && rt_now() < server->pointers_end) {
		reply->pointer.off = kv_where_line(where) * TM_LINE;
		reply->pointer.bytes = bytes;
		reply->pointer.version = hydradb_version(*hydradb_guardian(item, bytes));
		lease(server, req, item, &reply->pointer);
	}
	if (req->op == KV_GET) {
		*value = item->bytes + item->klen;
		*vlen = item->vlen;
	}
	return 0;
}

/* --------------------------------------------------------------- serving */

static bool is_request(const struct kv_req *req, uint32_t len)
{
	const struct rpc_msg msg = {.bytes = req, .len = len};

	return kv_is_request(&msg, true);
}

int hydradb_execute(struct hydradb_server *server, const struct kv_req *req, uint32_t len,
		    struct hydradb_reply *reply, const void **value, uint32_t *vlen)
{
	if (!is_request(req, len))
		return -EPROTO;
	switch (req->op) {
	case KV_PUT:
		return handle_put(server, req);
	case KV_DEL:
		return handle_del(server, req);
	case KV_GET:
	case KV_RENEW:
		return handle_get(server, req, reply, value, vlen);
	default:
		return -EPROTO;
	}
}

static bool has_arrived(void *arg, unsigned index)
{
	struct hydradb_server *server = arg;
	bool front = has_bug(&server->params, request_front);

	return hydradb_landed(kv_slot(&server->requests, index), server->requests.bytes,
			      &server->params, front, &server->len);
}

static bool owes_reply(void *arg, unsigned index)
{
	const struct hydradb_server *server = arg;

	return server->owed[index];
}

/* Refused: another time. Nothing more can be done for a client whose connection has failed. */
static void send_reply(void *arg, unsigned index)
{
	struct hydradb_server *server = arg;

	if (!server->owed[index])
		return;
	int rc = rpc_server_write(&server->rpc, index, HYDRADB_REPLIES,
				  index * server->replies.bytes, server->owed[index], 0);
	if (rc == -ENOMEM)
		return;
	server->owed[index] = 0;
	if (server->late)
		outdate(server, server->late);
	server->late = 0;
}

static void make_reply(struct hydradb_server *server, unsigned index,
		       const struct hydradb_reply *reply, const void *value, uint32_t vlen,
		       uint32_t number)
{
	uint8_t *message = kv_slot(&server->replies, index);
	uint32_t len = (uint32_t)sizeof(*reply) + vlen;

	memcpy(message + HYDRADB_BODY, reply, sizeof(*reply));
	if (vlen)
		memcpy(message + HYDRADB_BODY + sizeof(*reply), value, vlen);
	hydradb_mark(message, len, number, &server->params);
	server->owed[index] = (uint32_t)hydradb_message_bytes(len);
}

/* Execute a request and have its reply ready; then its slot is empty. */
static void take_request(void *arg, unsigned index)
{
	struct hydradb_server *server = arg;
	uint8_t *message = kv_slot(&server->requests, index);
	const struct kv_req *req = (const struct kv_req *)(message + HYDRADB_BODY);
	struct hydradb_reply reply;
	const void *value = NULL;
	uint32_t vlen = 0, number;

	memset(&reply, 0, sizeof(reply));
	memcpy(&number, message + sizeof(uint32_t), sizeof(number));
	if (req->op != KV_GET && has_bug(&server->params, reply_first)) {
		make_reply(server, index, &reply, NULL, 0, number);
		send_reply(server, index);
		server->execute(server, req, server->len, &reply, &value, &vlen);
	} else {
		reply.status = server->execute(server, req, server->len, &reply, &value, &vlen);
		make_reply(server, index, &reply, value, vlen, number);
	}
	memset(message, 0, hydradb_message_bytes(server->len));
}

const struct kv_slot_calls hydradb_calls = {has_arrived, take_request, owes_reply, send_reply, 0};

static void poll_task(void *arg)
{
	struct hydradb_server *server = arg;

	kv_slots_serve(&server->rpc, server->calls, server);
}

/* -------------------------------------------------------------- starting */

/* What a client's former self has left in the slot is not a request of this one. */
void hydradb_connected(void *arg, unsigned index)
{
	struct hydradb_server *server = arg;

	memset(kv_slot(&server->requests, index), 0, server->requests.bytes);
	server->owed[index] = 0;
}

/* Steps of persisting that the server leaves out. */
static unsigned lacks(const struct tm_params *params)
{
	unsigned lacks = params->knob[PERSIST] == PERSIST_OFF ? KV_LACKS_PERSIST : 0;

	if (has_bug(params, item_unflushed))
		lacks |= KV_LACKS_VALUE;
	if (has_bug(params, index_first))
		lacks |= KV_LACKS_ORDER;
	if (has_bug(params, index_unflushed))
		lacks |= KV_LACKS_ENTRY;
	if (has_bug(params, delete_unflushed))
		lacks |= KV_LACKS_DELETE;
	return lacks;
}

/* Only DRAM knows which room is free: all that no entry names. */
static void mark_items(struct hydradb_server *server)
{
	const struct kv_table *table = &server->place.pool.table;

	for (uint64_t i = 0; i < table->slots; i++) {
		const struct kv_entry *entry = &table->entry[i];
		uint64_t where = entry->where;

		if (!(entry->ctl & KV_USED) || !(where & 1))
			continue;
		uint64_t version = hydradb_version(
			*hydradb_guardian(item_at(server, where), kv_where_vlen(where)));
		if (version > server->version)
			server->version = version;
		if (!has_bug(&server->params, rooms_forgotten))
			mark(server, where, true);
	}
}

static int make_room(struct hydradb_server *server, const struct tm_env *env)
{
	struct tm_params params = hydradb_pool_params(env->params);
	struct tm_env pool_env = *env;

	pool_env.params = &params;
	server->params = *env->params;
	server->place = kv_place_at(&pool_env, lacks(env->params));
	int rc = kv_rooms_init(&server->rooms, server->place.pool.log_lines);
	if (!rc)
		mark_items(server);
	return rc;
}

static int export(struct hydradb_server *server)
{
	const struct kv_pool *pool = &server->place.pool;

	server->owed = calloc(server->rpc.max_peers, sizeof(*server->owed));
	if (!server->owed)
		return -ENOMEM;
	int rc = rpc_server_export(&server->rpc, pool->log, pool->log_lines * TM_LINE,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!rc)
		rc = kv_slots_open(&server->requests, &server->rpc,
				   hydradb_request_bytes(&server->params), IBV_ACCESS_REMOTE_WRITE);
	if (!rc)
		rc = kv_slots_open(&server->replies, &server->rpc,
				   hydradb_reply_bytes(&server->params), 0);
	return rc;
}

int hydradb_server_open(struct hydradb_server *server, const struct tm_env *env)
{
	int rc = make_room(server, env);
	if (!rc)
		rc = rpc_server_init(&server->rpc, env, TM_LINE, kv_no_messages, server);
	if (rc)
		return rc;
	server->pointers_end = UINT64_MAX;
	server->calls = &hydradb_calls;
	server->execute = hydradb_execute;
	server->rpc.connected = hydradb_connected;
	return export(server);
}

int hydradb_server_start(struct hydradb_server *server)
{
	int rc = rpc_server_listen(&server->rpc);
	return rc ? rc : rt_spawn("server", poll_task, server);
}

int hydradb_serve(const struct tm_env *env)
{
	struct hydradb_server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	int rc = hydradb_server_open(server, env);
	return rc ? rc : hydradb_server_start(server);
}
