/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forca, as eFactory's paper (EF 5.3.4) has it: client-active PUTs, and the server on the way of
 * every GET. PUT: the server allocates a version, with the CRC that the client computed, links it
 * in front of the older ones, persists that, and replies; the client WRITEs the value and is
 * done. GET: the server looks for the newest version whose value has the right CRC, persists
 * it, and only then tells the client where to READ it. What a GET returns is durable.
 *
 *	+----------------+------------------------------+-------------------------+
 *	| table:	 | meta: 0 unused, 1, 2, ...	| log: values, appended -> |
 *	| kv_entry[]	 | one line each, appended ->	|			  |
 *	+----------------+------------------------------+-------------------------+
 *	kv_entry.where	the newest version: index of its meta, 0 = none
 *
 *	meta	0x00 u64 prev	the older version, 0 = none
 *		0x08 u64 line	place of the value in the log, in lines
 *		0x10 u32 vlen	0x14 u32 crc	of the value
 *		0x18 u8  state	0 in progress, 1 valid (knob cache_valid), 2 invalid: its
 *				writer is dead
 *		0x19 u8  kind	0 value, 1 tombstone
 *
 * The paper checks and persists on each GET; the public code remembers the verdict in the meta
 * (knob cache_valid). A version in progress for longer than a timeout becomes invalid at the next
 * GET that meets it; after a restart all writers count as dead. The public code's delete clears a
 * bit of the entry; here it is a tombstone, as in eFactory.
 *
 * The papers do not speak of old versions, which stay here by default. The public code's collector
 * (knob collect) runs at a PUT. It unlinks the key's invalid versions, and those older than the
 * newest whole one, and gives their room in the log to others, whose memory region is the same:
 *
 * - A writer that was slower than the timeout may still WRITE there; unless, late=dropped, it was
 *   disconnected before its version was invalid.
 * - A reader that was told of it may still READ there; unless, readers=timed, that was not long
 *   ago; and, readers=lease, a client that took longer asks again.
 *
 * Metas are not used again.
 */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/bits.h"
#include "core/stores/kv_rooms.h"
#include "core/stores/kv_small.h"

#define FORCA_LOG 0 /* exported region: read and write; the rest is the server's */

enum { IN_PROGRESS, VALID, INVALID };
enum { VALUE, TOMBSTONE };
enum { CACHE_VALID = KV_CROWD + 1, TIMEOUT, QP, COLLECT, LATE, READERS, BUG, KNOBS };
enum { QP_ONE, QP_SEPARATE };
enum { COLLECT_NEVER, COLLECT_EACH, COLLECT_SIXTH };
enum { LATE_BELIEVED, LATE_DROPPED };
enum { READERS_NONE, READERS_TIMED, READERS_LEASE };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define FORCA_BUGS(X)                                                                              \
	X(tail_reused, "", RDA | FSCK,                                                             \
	  "after a restart a version that never arrived is written over, although its key's "      \
	  "entry names it: the next PUT of another key ends up there")                             \
	X(key_unflushed, "", FSCK,                                                                 \
	  "a new entry's key and its used bit become durable together: where lines are torn the "  \
	  "bit may survive alone")                                                                 \
	X(place_taken, "", RDA,                                                                    \
	  "a client that died and connects again takes its former place while the server still "   \
	  "handles its former request: the next one gets that one's reply")                        \
	X(end_checked, "", RDA,                                                                    \
	  "a value counts as whole when its last bytes are there: they may come first, and a "     \
	  "power failure may keep them alone")                                                     \
	X(unlink_unflushed, " cache_valid=on collect=each", FSCK,                                  \
	  "a version's room is another one's before the list without it is durable")               \
	X(rooms_forgotten, " collect=each", KEEP, "after a restart a new value goes where one is") \
	X(last_collected, " collect=each", KEEP,                                                   \
	  "the collector does not look whether a newer version is whole: the only one goes")
enum { NO_BUG, FORCA_BUGS(KV_BUG_VALUE) };

struct meta {
	uint64_t prev;
	uint64_t line;
	uint32_t vlen;
	uint32_t crc;
	uint8_t state;
	uint8_t kind;
	uint8_t zero[38];
};

_Static_assert(sizeof(struct meta) == TM_LINE, "a meta is a line");

struct pool {
	struct kv_table table;
	struct meta *meta;
	uint64_t metas;
	uint8_t *log;
	uint64_t log_lines;
	bool end_checked; /* a seeded bug: a value counts as whole when its end is there */
};

struct server {
	struct tm_params params;
	struct rpc_server rpc;
	struct pool pool;
	uint64_t next_meta;
	uint64_t tail;	       /* of the log, lines; collect=never */
	struct kv_rooms rooms; /* of the log, if versions are collected */
	uint64_t *received_ns; /* by meta; 0: before this boot */
	uint64_t *named_ns;    /* by meta, when a client was told of it last; 0: never */
	uint64_t *putting; /* by connection: the meta whose value its client may still write; 0: no
			    */
	unsigned asking;   /* the connection whose request is handled */
	uint8_t *updates;  /* by slot of the table, since its versions were collected */
};

/* ------------------------------------------------------------------ pool */

static size_t meta_bytes(const struct tm_params *params)
{
	return (params->updates + 1) * sizeof(struct meta);
}

static size_t log_bytes(const struct tm_params *params)
{
	return params->updates * kv_lines(params->max_vlen) * TM_LINE;
}

static size_t pm_bytes(const struct tm_params *params)
{
	return kv_table_bytes(params) + meta_bytes(params) + log_bytes(params);
}

static unsigned regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	size_t table = kv_table_bytes(params), meta = meta_bytes(params);
	const struct tm_region all[] = {{"table", 0, table},
					{"meta", table, meta},
					{"log", table + meta, log_bytes(params)}};

	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

static void map_pool(struct pool *pool, const struct tm_params *params, uint8_t *pm)
{
	pool->table = kv_table_at(params, pm);
	pool->meta = (struct meta *)(pm + kv_table_bytes(params));
	pool->metas = params->updates + 1;
	pool->log = pm + kv_table_bytes(params) + meta_bytes(params);
	pool->log_lines = log_bytes(params) / TM_LINE;
	pool->end_checked = has_bug(params, end_checked);
}

static bool fits(const struct pool *pool, const struct meta *meta)
{
	return meta->line <= pool->log_lines &&
	       kv_lines(meta->vlen) <= pool->log_lines - meta->line;
}

/* The log was zero there, and is never used again. */
static bool end_is_there(const uint8_t *value, uint32_t vlen)
{
	for (uint32_t i = vlen < 8 ? 0 : vlen - 8; i < vlen; i++)
		if (value[i])
			return true;
	return !vlen;
}

static bool crc_ok(const struct pool *pool, const struct meta *meta)
{
	if (pool->end_checked)
		return end_is_there(pool->log + meta->line * TM_LINE, meta->vlen);
	return kv_crc(pool->log + meta->line * TM_LINE, meta->vlen) == meta->crc;
}

/*
 * All metadata was durable before anything named it, so there is little to do: an entry that was
 * being made when the power failed is taken back. Values are judged when a client asks for them.
 */
static int recover(const struct tm_env *env)
{
	struct pool pool;

	map_pool(&pool, env->params, env->pm);
	/* If the process alone has died, it may be in a cache only. */
	pmem_persist(pool.table.entry, kv_table_bytes(env->params));
	/* So may be that a version was unlinked, whose room is about to be another one's. */
	if (env->params->knob[COLLECT] != COLLECT_NEVER)
		pmem_persist(pool.meta, meta_bytes(env->params));
	for (uint64_t i = 0; i < pool.table.slots; i++) {
		struct kv_entry *entry = &pool.table.entry[i];

		if ((entry->ctl & KV_USED) || (!entry->key[0] && !entry->where))
			continue;
		memset(entry, 0, sizeof(*entry));
		pmem_persist(entry, sizeof(*entry));
	}
	return 0;
}

static void check_versions(const struct pool *pool, const struct kv_entry *entry,
			   struct tm_fsck *fsck)
{
	unsigned long long at = entry->where;

	while (at) {
		const struct meta *meta = &pool->meta[at];

		if (at >= pool->metas || !fits(pool, meta)) {
			fsck->bad(fsck, "meta[%llu]: outside of the pool, or its value is", at);
			return;
		}
		if (meta->state > INVALID || meta->kind > TOMBSTONE)
			fsck->bad(fsck, "meta[%llu]: no such state or kind", at);
		if (meta->state == VALID && !crc_ok(pool, meta))
			fsck->bad(fsck, "meta[%llu]: valid, but its CRC does not agree", at);
		if (meta->prev >= at) {
			fsck->bad(fsck, "meta[%llu]: its previous version is not before it", at);
			return;
		}
		at = meta->prev;
	}
}

static void fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct pool pool;

	map_pool(&pool, env->params, env->pm);
	for (uint64_t i = 0; i < pool.table.slots; i++) {
		const struct kv_entry *entry = &pool.table.entry[i];
		unsigned long long slot = i;
		bool found;

		if (!(entry->ctl & KV_USED))
			continue;
		if (!kv_entry_sane(entry) ||
		    kv_table_find(&pool.table, entry->key, &found) != entry)
			fsck->bad(fsck, "table[%llu]: no key, or it does not lead to it", slot);
		check_versions(&pool, entry, fsck);
	}
}

/* ------------------------------------------------------------- versions */

/* A writer that needs longer is dead; so is a reader, where readers are thought of. */
static uint64_t timeout_ns(const struct tm_params *params)
{
	static const uint64_t ns[] = {10000000000, 1000000};

	return ns[params->knob[TIMEOUT]];
}

static void set_state(struct meta *meta, uint8_t state)
{
	meta->state = state;
	pmem_persist(meta, sizeof(*meta));
}

/* Is all of its value there? Then it is durable when this returns. */
static bool whole(const struct server *server, struct meta *meta)
{
	const struct pool *pool = &server->pool;

	if (!rt_check(crc_ok(pool, meta)))
		return false;
	pmem_persist(pool->log + meta->line * TM_LINE, meta->vlen);
	if (server->params.knob[CACHE_VALID])
		set_state(meta, VALID);
	return true;
}

static bool expired(const struct server *server, uint64_t at)
{
	uint64_t received_ns = server->received_ns[at];

	return !received_ns || rt_now() + 1 - received_ns > timeout_ns(&server->params);
}

/* What the version's client has not written by now never arrives, unless it counts as dead only. */
static void part_with_writer(struct server *server, uint64_t at)
{
	if (server->params.knob[LATE] != LATE_DROPPED)
		return;
	for (unsigned i = 0; i < server->rpc.peers; i++)
		if (server->putting[i] == at)
			rpc_server_drop(&server->rpc, server->rpc.peer[i].client);
}

/* Is this version whole? Then it is durable when this returns. If it will not be any more, it is
 * invalid then. */
static bool usable(struct server *server, uint64_t at)
{
	struct meta *meta = &server->pool.meta[at];

	if (meta->state == INVALID)
		return false;
	if (server->params.knob[CACHE_VALID] && meta->state == VALID)
		return true;
	if (whole(server, meta))
		return true;
	if (!expired(server, at))
		return false;
	part_with_writer(server, at);
	if (server->params.knob[LATE] == LATE_DROPPED && whole(server, meta))
		return true; /* the rest came in between */
	set_state(meta, INVALID);
	return false;
}

/* ------------------------------------------------------------- collector */

static bool being_read(const struct server *server, uint64_t at)
{
	uint64_t named_ns = server->named_ns[at];

	return server->params.knob[READERS] != READERS_NONE && named_ns &&
	       rt_now() + 1 - named_ns < timeout_ns(&server->params);
}

/* Take a version out of its key's list. Its room is free when that is durable. */
static void unlink_version(struct server *server, uint64_t newer, uint64_t at)
{
	struct meta *meta = server->pool.meta;

	meta[newer].prev = meta[at].prev;
	if (!has_bug(&server->params, unlink_unflushed))
		pmem_persist(&meta[newer], sizeof(*meta));
	kv_rooms_mark(&server->rooms, meta[at].line, kv_lines(meta[at].vlen), false);
}

/* The newest of the key's versions has just begun. Unlink the invalid ones, and those that are
 * older than a whole one. */
static void collect(struct server *server, const struct kv_entry *entry)
{
	const struct meta *meta = server->pool.meta;
	uint64_t newer = entry->where, next;
	bool behind = meta[newer].kind == TOMBSTONE || has_bug(&server->params, last_collected);

	for (uint64_t at = meta[newer].prev; at; at = next) {
		bool is_whole = usable(server, at);

		next = meta[at].prev;
		if (meta[at].state == INVALID || (is_whole && behind && !being_read(server, at)))
			unlink_version(server, newer, at);
		else
			newer = at;
		behind |= is_whole;
	}
}

/* At each update of a key, or at every sixth. */
static void collect_sometimes(struct server *server, const struct kv_entry *entry)
{
	static const uint8_t every[] = {[COLLECT_EACH] = 1, [COLLECT_SIXTH] = 6};
	uint8_t *updates = &server->updates[entry - server->pool.table.entry];

	if (server->params.knob[COLLECT] == COLLECT_NEVER ||
	    ++*updates < every[server->params.knob[COLLECT]])
		return;
	*updates = 0;
	collect(server, entry);
}

/* ---------------------------------------------------------------- server */

/* Room for a value: after the others, or where one was. */
static int find_room(struct server *server, uint32_t vlen, uint64_t *line)
{
	uint64_t need = kv_lines(vlen);

	*line = server->tail;
	if (server->params.knob[COLLECT] != COLLECT_NEVER)
		return need ? kv_rooms_take(&server->rooms, need, line) : 0;
	if (need > server->pool.log_lines - server->tail)
		return -ENOSPC;
	server->tail += need;
	return 0;
}

/* A new version in front of the others: durable before the entry names it, and that before the
 * reply. */
static int new_version(struct server *server, const struct kv_req *req, uint64_t *line)
{
	struct pool *pool = &server->pool;
	bool found, tombstone = req->op == KV_DEL;
	struct kv_entry *entry = kv_table_find(&pool->table, req->key, &found);
	struct meta *meta = &pool->meta[server->next_meta];

	if (tombstone && (!found || !entry->where))
		return 0; /* there is nothing to delete */
	if (!entry || rt_pm_full() || server->next_meta == pool->metas)
		return -ENOSPC;
	int rc = find_room(server, req->vlen, line);
	if (rc)
		return rc;
	memset(meta, 0, sizeof(*meta));
	meta->prev = found ? entry->where : 0;
	meta->line = *line;
	meta->vlen = req->vlen;
	meta->crc = req->crc;
	meta->kind = tombstone ? TOMBSTONE : VALUE;
	pmem_persist(meta, sizeof(*meta));
	/* The commit point: the entry names it. Whether its value has come a GET finds out. */
	if (!found) {
		memcpy(entry->key, req->key, sizeof(entry->key));
		entry->where = server->next_meta;
		if (!has_bug(&server->params, key_unflushed))
			pmem_persist(entry, sizeof(*entry));
		entry->ctl = KV_USED | (uint64_t)req->klen << KV_KLEN_SHIFT;
	} else {
		entry->where = server->next_meta;
	}
	pmem_persist(entry, sizeof(*entry));
	server->received_ns[server->next_meta] = rt_now() + 1;
	server->putting[server->asking] = server->next_meta;
	server->next_meta++;
	collect_sometimes(server, entry);
	return 0;
}

static int handle_put(struct server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	uint64_t line = 0;

	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	int rc = new_version(server, req, &line);
	rsp->off = line * TM_LINE;
	return rc;
}

static int handle_get(struct server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	const struct pool *pool = &server->pool;
	bool found;
	const struct kv_entry *entry = kv_table_find(&pool->table, req->key, &found);
	uint64_t at = found ? entry->where : 0;

	while (at && !usable(server, at))
		at = pool->meta[at].prev;
	if (!at || pool->meta[at].kind == TOMBSTONE)
		return -ENOENT;
	server->named_ns[at] = rt_now() + 1;
	rsp->off = pool->meta[at].line * TM_LINE;
	rsp->vlen = pool->meta[at].vlen;
	return 0;
}

static int handle_request(void *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	uint64_t line;

	switch (req->op) {
	case KV_PUT:
		return handle_put(server, req, rsp);
	case KV_GET:
		return handle_get(server, req, rsp);
	case KV_DEL:
		return new_version(server, req, &line);
	default:
		return -EPROTO;
	}
}

static size_t handle_message(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct server *server = arg;

	server->asking = msg->index;
	server->putting[msg->index] = 0; /* a client does one thing at a time */
	return kv_handle(handle_request, server, msg, false, reply, cap);
}

/* What a client had begun is over when it connects again. */
static void forget_put(void *server, unsigned index)
{
	((struct server *)server)->putting[index] = 0;
}

/* The rooms of all versions that an entry leads to. */
static void mark_rooms(struct server *server)
{
	const struct pool *pool = &server->pool;

	if (has_bug(&server->params, rooms_forgotten))
		return;
	for (uint64_t i = 0; i < pool->table.slots; i++)
		for (uint64_t at = pool->table.entry[i].where; at; at = pool->meta[at].prev)
			kv_rooms_mark(&server->rooms, pool->meta[at].line,
				      kv_lines(pool->meta[at].vlen), true);
}

/* Where metas and log end: after the newest version of some key, for both are appended in one
 * order. */
static void find_tails(struct server *server)
{
	const struct pool *pool = &server->pool;

	uint64_t newest = 0;

	server->next_meta = 1;
	for (uint64_t i = 0; i < pool->table.slots; i++) {
		if (pool->table.entry[i].where > newest)
			newest = pool->table.entry[i].where;
	}
	if (!newest)
		return;
	server->next_meta = newest + 1;
	server->tail = pool->meta[newest].line + kv_lines(pool->meta[newest].vlen);
	/* A seeded bug: a value that never arrived needs no place. */
	if (has_bug(&server->params, tail_reused) && !crc_ok(pool, &pool->meta[newest])) {
		server->next_meta = newest;
		server->tail = pool->meta[newest].line;
	}
}

/* What of the server is in DRAM. */
static int remember(struct server *server)
{
	const struct pool *pool = &server->pool;

	server->received_ns = calloc(pool->metas, sizeof(*server->received_ns));
	server->named_ns = calloc(pool->metas, sizeof(*server->named_ns));
	server->updates = calloc(pool->table.slots, sizeof(*server->updates));
	server->putting = calloc(server->rpc.max_peers, sizeof(*server->putting));
	if (!server->received_ns || !server->named_ns || !server->updates || !server->putting)
		return -ENOMEM;
	find_tails(server);
	if (server->params.knob[COLLECT] == COLLECT_NEVER)
		return 0;
	if (kv_rooms_init(&server->rooms, pool->log_lines))
		return -ENOMEM;
	mark_rooms(server);
	return 0;
}

static int serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	map_pool(&server->pool, &server->params, env->pm);
	int rc = rpc_server_init(&server->rpc, env, sizeof(struct kv_req), handle_message, server);
	server->rpc.connected = forget_put;
	server->rpc.takes_busy = has_bug(&server->params, place_taken);
	if (!rc)
		rc = remember(server);
	/* Those to whom a former process named a version read it no longer than that. */
	if (env->params->knob[READERS] == READERS_LEASE)
		rt_sleep(timeout_ns(env->params));
	if (!rc) /* FORCA_LOG */
		rc = kv_server_start(&server->rpc, server->pool.log,
				     server->pool.log_lines * TM_LINE);
	return rc;
}

/* ---------------------------------------------------------------- client */

static int open_client(const struct tm_env *env, void **out)
{
	struct kv_client *client = calloc(1, sizeof(*client));
	int rc = kv_client_open(client, env, 0, env->params->max_vlen, out);

	if (rc || env->params->knob[QP] == QP_ONE)
		return rc;
	rc = kv_client_open_data(client, env, env->params->max_vlen);
	if (rc) {
		kv_client_close(client);
		free(client);
	}
	return rc;
}

static int put_value(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return kv_client_put(client, FORCA_LOG, key, klen, value, vlen, kv_crc(value, vlen));
}

/* The server has checked and persisted what it names; nothing more is looked at, but the clock:
 * the server leaves the value where it is for no longer than that. */
static int get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct kv_client *client = arg;
	struct kv_req req;
	struct kv_rsp rsp;
	uint64_t began;
	int rc = kv_req_init(&req, KV_GET, key, klen);

	if (rc)
		return rc;
	do {
		began = rt_now();
		rc = kv_call(&client->conn, &req, &rsp);
		if (!rc)
			rc = kv_client_read(client, FORCA_LOG, rsp.off, rsp.vlen, value, cap, vlen);
	} while (client->params.knob[READERS] == READERS_LEASE && !rc &&
		 rt_now() - began >= timeout_ns(&client->params));
	return rc;
}

static const struct tm_knob knobs[] = {
	[KV_CROWD] = KV_CROWD_KNOB,
	[CACHE_VALID] = {"cache_valid", "off on",
			 "a GET's verdict is remembered in PM, as in the public code, not found "
			 "anew each time"},
	[TIMEOUT] = {"timeout", "10s 1ms",
		     "a writer that needs longer is dead, its version invalid"},
	[QP] = {"qp", "one separate",
		"whether values travel on the connection of the requests, or on a further one, as "
		"in the public code"},
	[COLLECT] =
		{"collect", "never each sixth",
		 "when a key's versions that are not needed give their room away: never; at each "
		 "update of the key; or at every sixth, as in the public code"},
	[LATE] = {"late", "believed dropped",
		  "a writer that is slower than the timeout is believed to be dead, as in the "
		  "public code; or disconnected before its version is invalid"},
	[READERS] = {"readers", "none timed lease",
		     "what keeps a version's room while it is read: nothing, as in the public "
		     "code; the timeout; or the timeout, and a GET that took as long asks again"},
	[BUG] = KV_BUG_KNOB(FORCA_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"cached", "cache_valid=on", "a version is checked and persisted once", 0},
	{"public", "cache_valid=on timeout=1ms qp=separate collect=sixth",
	 "the public code, but for its timeout of 10 s, which no stall here reaches", 0},
	{"public_each", "cache_valid=on timeout=1ms qp=separate collect=each",
	 "likewise, and it collects at each update", 0},
	{"collected", "cache_valid=on timeout=1ms collect=each late=dropped readers=lease",
	 "versions are collected when no client can reach their room any more", 0},
	{"crowded", "crowd=on", "all keys collide in a table that has hardly more slots than keys",
	 0},
	{"short_timeout", "timeout=1ms",
	 "the timeout is shorter than a client's stall: an acknowledged PUT is invalid", LIN},
	KV_BUG_VARIANTS(FORCA_BUGS)};

static const struct tm_shape shapes[] = {
	{.name = "crowded"},	   {.name = "cached"},	   {.name = "collected"},
	{.name = "line_torn=any"}, {.name = "calls=fail"}, {.name = NULL},
};

const struct tm_store forca_store = {
	.name = "forca",
	.what = "Forca (EF 5.3.4): one-sided PUT, each GET checked and persisted by the server",
	.fsck_at_rest = true,
	.promises = RDA | LIN | MONO | KEEP | OK | LIVE | FSCK,
	.knobs = knobs,
	.variants = variants,
	.shapes = shapes,
	.pm_bytes = pm_bytes,
	.regions = regions,
	.format = kv_format,
	.recover = recover,
	.serve = serve,
	.fsck = fsck,
	.open = open_client,
	.put = put_value,
	.get = get,
	.del = kv_client_del,
};
