/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: PUT and DELETE. See pilaf.h. */
#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/kv_rooms.h"
#include "core/stores/pilaf/pilaf.h"

struct server {
	struct tm_params params;
	struct rpc_server rpc;
	struct pilaf_pool pool;
	struct kv_rooms rooms;	  /* of the pairs */
	struct pilaf_entry freed; /* not used: nothing; else its pair's room is free when the
				     request has been answered */
	struct pilaf_entry *late; /* a seeded bug's: it is cleared then */
};

/* --------------------------------------------------------------- entries */

static void persist(const struct server *server, const void *from, size_t len)
{
	if (server->params.knob[FLUSH] == FLUSH_ORDERED)
		pmem_persist(from, len);
}

/* From here on recovery can take back what is done to the entry. */
static void save(const struct server *server, const struct pilaf_entry *entry)
{
	struct pilaf_entry *undo = server->pool.undo, former = *entry;

	if (server->params.knob[FLUSH] == FLUSH_NONE)
		return;
	former.undoes = (uint64_t)(entry - server->pool.entry) + 1;
	assert(former.undoes <= server->pool.table.slots);
	memcpy(undo, &former, sizeof(*undo));
	if (!has_bug(&server->params, undo_unflushed))
		pmem_persist(undo, sizeof(*undo));
	if (has_bug(&server->params, undo_cleared)) {
		undo->undoes = 0;
		pmem_persist(undo, sizeof(*undo));
	}
}

/* The commit point: the entry becomes `to`: all but its checksums, crc1, crc2. A client that READs
 * it meanwhile finds that crc2 is wrong. */
static void change(const struct server *server, struct pilaf_entry *entry,
		   const struct pilaf_entry *to)
{
	save(server, entry);
	memcpy(entry, to, offsetof(struct pilaf_entry, crc1));
	if (has_bug(&server->params, crc2_first))
		entry->crc2 = pilaf_crc2(entry);
	__atomic_store_n(&entry->crc1, to->crc1, __ATOMIC_RELEASE);
	if (!has_bug(&server->params, crc2_first))
		__atomic_store_n(&entry->crc2, pilaf_crc2(entry), __ATOMIC_RELEASE);
	if (!(to->used ? has_bug(&server->params, entry_unflushed)
		       : has_bug(&server->params, delete_unflushed)))
		persist(server, entry, sizeof(*entry));
}

static void clear(const struct server *server, struct pilaf_entry *entry)
{
	struct pilaf_entry unused = *entry;

	unused.used = 0;
	change(server, entry, &unused);
}

/* ----------------------------------------------------------------- rooms */

static void mark(struct server *server, const struct pilaf_entry *entry, bool used)
{
	kv_rooms_mark(&server->rooms, entry->addr / TM_LINE, kv_lines(entry->cap), used);
}

/* What was left of the last update when it was answered. */
static void finish(struct server *server)
{
	if (server->late)
		clear(server, server->late);
	server->late = NULL;
	if (server->freed.used)
		mark(server, &server->freed, false);
	server->freed.used = 0;
	if (server->pool.undo->undoes)
		server->pool.undo->undoes = 0;
}

/* ------------------------------------------------------------------- PUT */

/* The key's entry; else, and *found is false, the first one in which it may be that is not used.
 * NULL: there is none. */
static struct pilaf_entry *find(const struct server *server, const struct kv_req *req, bool *found,
				uint8_t *probe)
{
	const struct pilaf_pool *pool = &server->pool;
	struct pilaf_entry *unused = NULL;

	*found = false;
	for (uint64_t i = 0; i < pool->probes; i++) {
		struct pilaf_entry *entry = &pool->entry[pilaf_slot(pool, req->key, i)];

		if (entry->used && entry->klen == req->klen &&
		    rt_check(memcmp(pool->pairs + entry->addr, req->key, req->klen) == 0)) {
			*found = true;
			*probe = (uint8_t)i;
			return entry;
		}
		if (!entry->used && !unused) {
			unused = entry;
			*probe = (uint8_t)i;
			if (has_bug(&server->params, first_free))
				break;
		}
	}
	return unused;
}

/* The pair is no longer that of which its entry has the CRC. */
static void break_key(const struct server *server, const struct pilaf_entry *entry)
{
	uint8_t *pair = server->pool.pairs + entry->addr;

	pair[0]++;
	persist(server, pair, 1);
}

/* Where the pair goes: `to` gets its addr and cap. `old`: the key's pair; NULL: there is none. */
static int find_room(struct server *server, const struct pilaf_entry *old, struct pilaf_entry *to)
{
	bool in_place = server->params.knob[PLACE] == PLACE_IN_PLACE;
	uint32_t need = to->klen + to->vlen;
	uint64_t line;

	if (in_place && old && need <= old->cap) {
		to->addr = old->addr;
		to->cap = old->cap;
		return 0;
	}
	to->cap = in_place ? need + need / 4 : need;
	if (old && has_bug(&server->params, room_early))
		mark(server, old, false);
	int rc = kv_rooms_take(&server->rooms, kv_lines(to->cap), &line);
	if (rc)
		return rc;
	to->addr = line * TM_LINE;
	assert(to->cap >= need && to->addr + to->cap <= server->pool.lines * TM_LINE);
	if (!old)
		return 0;
	if (in_place)
		break_key(server, old);
	if (!has_bug(&server->params, room_early))
		server->freed = *old;
	return 0;
}

static void write_pair(const struct server *server, const struct kv_req *req,
		       const struct pilaf_entry *to)
{
	uint8_t *pair = server->pool.pairs + to->addr;

	memcpy(pair, req->key, req->klen);
	memcpy(pair + req->klen, req + 1, req->vlen);
	if (!has_bug(&server->params, pair_unflushed))
		persist(server, pair, (size_t)req->klen + req->vlen);
}

static int handle_put(struct server *server, const struct kv_req *req)
{
	struct pilaf_entry to = {.klen = req->klen, .vlen = req->vlen, .used = 1};
	bool found;

	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	struct pilaf_entry *entry = find(server, req, &found, &to.hash);
	if (!entry || rt_pm_full())
		return -ENOSPC;
	int rc = find_room(server, found ? entry : NULL, &to);
	if (rc)
		return rc;
	write_pair(server, req, &to);
	struct pilaf_entry summed = to;
	if (found && has_bug(&server->params, old_vlen))
		summed.vlen = entry->vlen;
	to.crc1 = pilaf_crc1(server->pool.pairs + to.addr, &summed);
	change(server, entry, &to);
	return 0;
}

/* ---------------------------------------------------------------- DELETE */

static int handle_del(struct server *server, const struct kv_req *req)
{
	uint8_t probe;
	bool found;
	struct pilaf_entry *entry = find(server, req, &found, &probe);
	if (!entry || !found)
		return 0;
	if (has_bug(&server->params, freed_first)) {
		mark(server, entry, false);
		server->late = entry;
		return 0;
	}
	if (server->params.knob[DELETE] == DELETE_KEY_FIRST)
		break_key(server, entry);
	server->freed = *entry;
	clear(server, entry);
	return 0;
}

/* --------------------------------------------------------------- serving */

static int handle_request(void *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	(void)rsp;
	finish(server);
	if (req->op == KV_PUT)
		return handle_put(server, req);
	return req->op == KV_DEL ? handle_del(server, req) : -EPROTO;
}

static size_t handle_message(void *server, const struct rpc_msg *msg, void *reply, size_t cap)
{
	return kv_handle(handle_request, server, msg, true, reply, cap);
}

/* The allocator is in DRAM. */
static void mark_pairs(struct server *server)
{
	if (has_bug(&server->params, rooms_forgotten))
		return;
	for (uint64_t i = 0; i < server->pool.table.slots; i++)
		if (server->pool.entry[i].used)
			mark(server, &server->pool.entry[i], true);
}

int pilaf_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	struct pilaf_pool *pool = &server->pool;
	*pool = pilaf_pool_at(&server->params, env->pm);
	int rc = kv_rooms_init(&server->rooms, pool->lines);
	if (rc)
		return rc;
	mark_pairs(server);
	rc = rpc_server_init(&server->rpc, env, sizeof(struct kv_req) + env->params->max_vlen,
			     handle_message, server);
	if (!rc) /* PILAF_TABLE */
		rc = rpc_server_export(&server->rpc, pool->entry,
				       pool->table.slots * sizeof(*pool->entry), access);
	if (!rc) /* PILAF_PAIRS */
		rc = rpc_server_export(&server->rpc, pool->pairs, pool->lines * TM_LINE, access);
	return rc ? rc : kv_server_listen(&server->rpc);
}
