/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda's server (Erda paper 4): one task that hands out log space and updates hash
 * entries. It never touches a value, and it flushes nothing on the way of a PUT to
 * an existing key; only a new key is made durable before its atomic region names it.
 */
#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include "core/rt/rt.h"
#include "core/stores/erda/layout.h"
#include "core/stores/erda/wire.h"

#define TIMEOUT_NS	 10000000000ull /* 10 s: a writer that takes longer is taken for dead */
#define SHORT_TIMEOUT_NS 1000000ull
#define NARROW_BYTES	 256 /* a seeded bug: what offsets can express */

struct server {
	struct erda_geo geo;
	struct rpc_server rpc;
	struct erda_index index;
	uint8_t *pm;
	uint64_t tail[ERDA_MAX_HEADS];	/* last-written address: bytes from the head's region */
	bool recovered[ERDA_MAX_HEADS]; /* the tail is the one that recovery found */
	uint64_t moves;			/* displacement counter, exported */
	uint64_t timeout_ns;
	struct erda_req *slot; /* request slots, by client number; exported */
	unsigned slots;
	bool pending; /* knob reply_first: the update below has been answered, not done */
	struct erda_req pending_req;
	uint32_t pending_off;
};

static uint8_t *log_of(struct server *server, unsigned head)
{
	return server->pm + erda_heads(server->pm)[head].region[0];
}

/*
 * Space for an object behind a head: at the last-written address, or at the start
 * of the next segment if it would span two. Offset in units, or -ENOSPC.
 */
static int reserve(struct server *server, unsigned head, size_t len, uint64_t *at, uint64_t *tail)
{
	const struct erda_geo *geo = &server->geo;

	len = (len + geo->align - 1) / geo->align * geo->align;
	*at = server->tail[head];
	if (*at % geo->seg_len + len > geo->seg_len)
		*at += geo->seg_len - *at % geo->seg_len;
	if (*at + len > geo->region_len || (*at + len) / geo->unit >= ERDA_NO_OFFSET)
		return -ENOSPC;
	*tail = *at + len;
	return 0;
}

/* Step 3 of a PUT: one 8-byte store makes `off` the newest version. Not flushed. */
static void commit(struct server *server, uint32_t slot, uint32_t off)
{
	const struct erda_geo *geo = &server->geo;
	struct erda_entry *entry = &server->index.entry[slot];
	uint64_t m = entry->region;

	/* The public code has 0 for "no previous version", which is also the log's first position. */
	if (m == ERDA_EMPTY && geo->knob[ERDA_OLD_ZERO])
		m = 0;
	switch (geo->bug) {
	case BUG_WRONG_HALF:
		entry->region = erda_set_half(m ^ 1ull << 63, m >> 63, off);
		break;
	case BUG_NO_FLIP:
		entry->region = erda_set_half(m, m >> 63, off);
		break;
	case BUG_TWO_STORES:
		entry->region = m ^ 1ull << 63;
		entry->region = erda_put_off(m, off);
		break;
	case BUG_NARROW_OFFSET:
		entry->region = erda_put_off(m, off % (NARROW_BYTES / geo->unit));
		break;
	default:
		entry->region = erda_put_off(m, off);
	}
	server->index.since[slot] = rt_now() + 1;
}

/* A new key in a free entry: the key is durable before the region that commits it. */
static void create(struct server *server, uint32_t slot, const struct erda_req *req, unsigned head,
		   uint32_t off)
{
	struct erda_entry *entry = &server->index.entry[slot];

	if (server->geo.bug == BUG_CREATE_UNORDERED)
		commit(server, slot, off);
	memcpy(entry->key, req->key, req->klen);
	entry->klen = req->klen;
	entry->head = (uint8_t)head;
	if (server->geo.bug == BUG_CREATE_UNORDERED)
		return;
	pmem_persist(entry, offsetof(struct erda_entry, unused));
	commit(server, slot, off);
}

/* Find or insert the entry and point it to the object's place. */
static int update(struct server *server, const struct erda_req *req, const struct erda_place *place,
		  uint32_t off)
{
	int slot = erda_find(&server->index, place->home, req->key, req->klen);

	if (slot >= 0) {
		commit(server, (uint32_t)slot, off);
		return 0;
	}
	slot = erda_make_room(&server->index, place->home);
	if (slot < 0)
		return slot;
	create(server, (uint32_t)slot, req, place->head, off);
	return 0;
}

static void finish_pending(struct server *server)
{
	struct erda_place place;

	if (!server->pending)
		return;
	server->pending = false;
	erda_place(&server->geo, server->pending_req.key, server->pending_req.klen, &place);
	update(server, &server->pending_req, &place, server->pending_off);
}

/* The first object of this boot: fsck() may no longer take recovery's tail for the log's end. */
static void leave_boot(struct server *server, unsigned head)
{
	uint64_t *tail = &erda_boot(server->pm)->tail[head];

	if (!server->recovered[head])
		return;
	server->recovered[head] = false;
	*tail |= ERDA_TAIL_MOVED;
	pmem_persist(tail, sizeof(*tail));
}

/* PUT and DELETE, steps 2 to 4. A DELETE of a key that has no entry has nothing to do. */
static int handle_update(struct server *server, const struct erda_req *req, struct erda_rsp *rsp)
{
	const struct erda_geo *geo = &server->geo;
	uint64_t at, tail;
	struct erda_place place;
	int rc;

	rsp->off = ERDA_NO_OFFSET;
	if (req->vlen > geo->max_vlen)
		return -EMSGSIZE;
	erda_place(geo, req->key, req->klen, &place);
	if (req->op == ERDA_OP_DEL && erda_find(&server->index, place.home, req->key, req->klen) < 0)
		return 0;
	rc = reserve(server, place.head, ERDA_HEADER + req->klen + (size_t)req->vlen, &at, &tail);
	if (rc)
		return rc;
	if (geo->knob[ERDA_REPLY_FIRST]) {
		server->pending = true;
		memcpy(&server->pending_req, req, sizeof(*req));
		server->pending_off = (uint32_t)(at / geo->unit);
	} else {
		rc = update(server, req, &place, (uint32_t)(at / geo->unit));
		if (rc)
			return rc;
	}
	server->tail[place.head] = tail;
	leave_boot(server, place.head);
	rsp->head = place.head;
	rsp->off = (uint32_t)(at / geo->unit);
	return 0;
}

/*
 * A reader found no intact object at the newest offset and used the previous one
 * (Erda paper 4.2): make the previous version the newest. The reader cannot tell a
 * dead writer from a slow one, so by default this waits until no writer is that slow.
 */
static void handle_repair(struct server *server, const struct erda_req *req)
{
	enum erda_repair mode = server->geo.knob[ERDA_REPAIR];
	struct erda_entry *entry;
	struct erda_place place;
	uint64_t m, since;
	int slot;

	erda_place(&server->geo, req->key, req->klen, &place);
	slot = erda_find(&server->index, place.home, req->key, req->klen);
	if (slot < 0)
		return;
	entry = &server->index.entry[slot];
	m = entry->region;
	if (erda_oldoff(m) == ERDA_NO_OFFSET)
		return;
	if (mode != REPAIR_UNCONDITIONAL && erda_newoff(m) != req->bad)
		return;
	since = server->index.since[slot];
	if (mode == REPAIR_COND_RECHECK_AGE && since && rt_now() + 1 - since < server->timeout_ns)
		return;
	if (mode <= REPAIR_COND_RECHECK && erda_object_at(&server->geo, log_of(server, place.head), req->bad,
							  req->key, req->klen) == OBJECT_GOOD)
		return;
	entry->region = erda_revert(m);
}

/* The request's bytes: in the message, or in the client's slot. */
static int take_request(struct server *server, const struct rpc_msg *msg, struct erda_req *req)
{
	const void *from = msg->bytes;
	size_t len = msg->len;

	memset(req, 0, sizeof(*req));
	if (msg->has_imm) {
		if (msg->imm >= server->slots)
			return -EPROTO;
		from = &server->slot[msg->imm];
	}
	if (len < ERDA_REQ_BYTES(1) || len > sizeof(*req))
		return -EPROTO;
	memcpy(req, from, len);
	return req->klen && ERDA_REQ_BYTES(req->klen) == len ? 0 : -EPROTO;
}

static size_t handle(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct server *server = arg;
	struct erda_rsp *rsp = reply;
	struct erda_req req;
	int rc;

	assert(cap >= sizeof(*rsp));
	finish_pending(server);
	rc = take_request(server, msg, &req);
	if (!rc && req.op == ERDA_OP_REPAIR) {
		handle_repair(server, &req);
		return 0;
	}
	if (!rc)
		rc = req.op == ERDA_OP_PUT || req.op == ERDA_OP_DEL ? handle_update(server, &req, rsp)
								    : -EPROTO;
	rsp->status = rc;
	return sizeof(*rsp);
}

static void server_task(void *arg)
{
	struct server *server = arg;

	for (;;) {
		unsigned n = rpc_server_poll(&server->rpc);

		finish_pending(server);
		if (!n)
			rt_yield();
	}
}

int erda_format(const struct tm_env *env)
{
	struct erda_geo geo;
	struct erda_head *heads = erda_heads(env->pm);
	struct erda_entry *entry;

	erda_geo(&geo, env->params);
	if (env->pm_len < geo.pool_len)
		return -ENOSPC;
	for (unsigned h = 0; h < geo.heads; h++) {
		heads[h].region[0] = geo.log_off + h * geo.region_len;
		heads[h].region[1] = ERDA_NO_REGION;
		heads[h].region_len = geo.region_len;
		heads[h].seg_len = geo.seg_len;
	}
	entry = erda_table(&geo, env->pm);
	for (uint32_t i = 0; i < geo.entries; i++)
		entry[i].region = ERDA_EMPTY;
	erda_boot(env->pm)->magic = ERDA_MAGIC;
	pmem_persist(env->pm, geo.log_off);
	return 0;
}

static int export_all(struct server *server)
{
	const struct erda_geo *geo = &server->geo;
	struct rpc_server *rpc = &server->rpc;
	int rc;

	rc = rpc_server_export(rpc, server->pm, geo->log_off, IBV_ACCESS_REMOTE_READ);
	if (!rc)
		rc = rpc_server_export(rpc, server->pm + geo->log_off, geo->pool_len - geo->log_off,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					       IBV_ACCESS_REMOTE_WRITE);
	if (!rc)
		rc = rpc_server_export(rpc, server->slot, server->slots * sizeof(*server->slot),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!rc)
		rc = rpc_server_export(rpc, &server->moves, sizeof(server->moves), IBV_ACCESS_REMOTE_READ);
	return rc;
}

int erda_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));
	struct erda_geo *geo;
	int rc;

	if (!server)
		return -ENOMEM;
	geo = &server->geo;
	erda_geo(geo, env->params);
	if (env->pm_len < geo->pool_len || erda_boot(env->pm)->magic != ERDA_MAGIC) {
		free(server);
		return -EINVAL;
	}
	server->pm = env->pm;
	server->timeout_ns = geo->knob[ERDA_TIMEOUT] ? SHORT_TIMEOUT_NS : TIMEOUT_NS;
	server->slots = env->params->clients + 1;
	server->slot = calloc(server->slots, sizeof(*server->slot));
	server->index.geo = geo;
	server->index.entry = erda_table(geo, env->pm);
	server->index.since = calloc(geo->entries, sizeof(*server->index.since));
	server->index.moves = &server->moves;
	if (!server->slot || !server->index.since)
		return -ENOMEM;
	for (unsigned h = 0; h < geo->heads; h++) {
		uint64_t tail = erda_boot(env->pm)->tail[h];

		server->tail[h] = tail & ~ERDA_TAIL_BITS;
		server->recovered[h] = (tail & ERDA_TAIL_BITS) == ERDA_TAIL_FOUND;
	}
	rc = rpc_server_init(&server->rpc, env, sizeof(struct erda_req), handle, server);
	if (!rc)
		rc = export_all(server);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	return rc ? rc : rt_spawn("server", server_task, server);
}
