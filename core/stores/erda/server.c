/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda's server (Erda paper 4): one task that hands out log space and updates hash
 * entries. It never touches a value, and it flushes nothing on the way of a PUT to
 * an existing key; only a new key is made durable before its atomic region names it.
 * While a log is cleaned clients leave the objects to it: it then writes them, and
 * reads them for GETs. A second task cleans (clean.c).
 */
#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include "core/rt/rt.h"
#include "core/stores/erda/server.h"

#define TIMEOUT_NS	 10000000000ull /* 10 s: a writer that takes longer is taken for dead */
#define SHORT_TIMEOUT_NS 1000000ull

/*
 * Step 3 of a PUT, the commit point: one 8-byte store makes `off` the newest version. Not
 * flushed. Returns what the entry was.
 */
static uint64_t set_newest(struct server *server, struct erda_entry *entry, const struct log *log,
			   uint32_t off)
{
	uint64_t m = entry->region, to;

	if (log->phase <= PHASE_INFORM) {
		entry->region = clean_put_off(server, log, m, off);
		return m;
	}
	/* The cleaner changes entries, too. */
	do {
		to = clean_put_off(server, log, m, off);
	} while (!__atomic_compare_exchange_n(&entry->region, &m, to, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return m;
}

static void commit(struct server *server, uint32_t slot, unsigned head, uint32_t off)
{
	struct erda_entry *entry = &server->index.entry[slot];
	struct log *log = &server->log[head];
	uint64_t m, unit = server->geo.unit;

	off &= server->geo.off_mask;
	if (server->geo.bug == BUG_TWO_STORES) {
		m = entry->region;
		entry->region = m ^ 1ull << 63;
		entry->region = clean_put_off(server, log, m, off);
	} else {
		m = set_newest(server, entry, log, off);
	}
	server->index.since[slot] = rt_now() + 1;
	/* The version that no entry names any more; should both others be lost, cleaning finds
	 * it. */
	if (log->phase <= PHASE_INFORM && erda_oldoff(m) != ERDA_NO_OFFSET &&
	    erda_oldoff(m) * unit < log->boot_tail)
		log_made(log, erda_oldoff(m));
}

/* A new key in a free entry: the key is durable before the region that commits it. */
static void create(struct server *server, uint32_t slot, const struct erda_req *req, unsigned head,
		   uint32_t off)
{
	struct erda_entry *entry = &server->index.entry[slot];
	bool ordered = !server->geo.knob.create;

	if (!ordered)
		commit(server, slot, head, off);
	memcpy(entry->key, req->key, req->klen);
	entry->klen = req->klen;
	entry->head = (uint8_t)head;
	if (!ordered)
		return;
	pmem_persist(entry, offsetof(struct erda_entry, unused));
	commit(server, slot, head, off);
}

/* Find or insert the entry and point it to the object's place. */
static int update(struct server *server, const struct erda_req *req, const struct erda_place *place,
		  uint32_t off)
{
	int slot = erda_find(&server->index, place->home, req->key, req->klen);

	if (slot >= 0) {
		commit(server, (uint32_t)slot, place->head, off);
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

/* No room: ask again, if a cleaning can help. */
static int full(struct server *server, unsigned head)
{
	struct log *log = &server->log[head];

	if (log->phase != PHASE_IDLE || log->wanted)
		return -EBUSY;
	if (log->tail[log->region] == log->cleaned_tail)
		return -ENOSPC;
	clean_want(server, head);
	return -EBUSY;
}

/* Is it time to clean? Not again before half of what the last cleaning left has been used. */
static void look_at_room(struct server *server, unsigned head)
{
	struct log *log = &server->log[head];
	uint64_t tail = log->tail[log->region], last = log->cleaned_tail;

	if (log->phase != PHASE_IDLE || tail < server->geo.clean_at)
		return;
	if (last == UINT64_MAX || (tail - last) * 2 >= server->geo.region_len - last)
		clean_want(server, head);
}

/* Reserve space in a head's log; its place goes into the reply. */
static int reserve(struct server *server, unsigned head, size_t len, struct erda_rsp *rsp)
{
	struct log *log = &server->log[head];
	unsigned region = clean_put_region(log);
	uint64_t limit = log->phase <= PHASE_INFORM ? server->geo.region_len : log->limit, at, tail;

	/* For the object, and for the version that its entry will no longer name. */
	if (log_room_for(log, 2))
		return -ENOMEM;
	if (rt_pm_full() || log_place(server, log, region, len, limit, &at, &tail))
		return full(server, head);
	/* Before that is durable no other client may get the space. */
	log->tail[region] = tail;
	log_use(server, head, region, tail);
	rsp->head = (uint16_t)head;
	rsp->region = (uint16_t)region;
	rsp->off = (uint32_t)(at / server->geo.unit);
	if (log->phase < PHASE_REPLICATE)
		log_made(log, rsp->off);
	return 0;
}

/* The server writes the object, as it does while the log is cleaned. */
static void write_object(struct server *server, const struct erda_req *req, const uint8_t *value,
			 const struct erda_rsp *rsp)
{
	const struct erda_geo *geo = &server->geo;
	size_t len = erda_object_build(geo, server->object, req->op == ERDA_OP_DEL, req->key,
				       req->klen, value, req->vlen);
	uint8_t *to = log_at(server, rsp->head, rsp->region) + (uint64_t)rsp->off * geo->unit;

	memcpy(to, server->object, len);
	/* The entry will know no other version, so this one has to stay. */
	if (!geo->knob.clean_put && server->log[rsp->head].phase >= PHASE_PREPARE)
		pmem_persist(to, len);
}

/* PUT and DELETE, steps 2 to 4. A DELETE of a key that has no entry has nothing to do. */
static int handle_update(struct server *server, const struct erda_req *req, const uint8_t *value,
			 struct erda_rsp *rsp)
{
	const struct erda_geo *geo = &server->geo;
	struct erda_place place;

	rsp->off = ERDA_NO_OFFSET;
	if (req->vlen > geo->max_vlen)
		return -EMSGSIZE;
	erda_place(geo, req->key, req->klen, &place);
	struct log *log = &server->log[place.head];
	if (req->op == ERDA_OP_DEL &&
	    erda_find(&server->index, place.home, req->key, req->klen) < 0)
		return 0;
	/* No client gets an address of a log that none may use. */
	if (!req->inline_object && !geo->knob.clean_wait && log->phase >= PHASE_PREPARE)
		return -EBUSY;
	int rc = reserve(server, place.head, ERDA_HEADER + req->klen + (size_t)req->vlen, rsp);
	if (rc)
		return rc;
	if (req->inline_object)
		write_object(server, req, value, rsp);
	if (geo->knob.reply_first && !req->inline_object) {
		server->pending = true;
		memcpy(&server->pending_req, req, sizeof(*req));
		server->pending_off = rsp->off;
	} else {
		rc = update(server, req, &place, rsp->off);
	}
	look_at_room(server, place.head);
	if (req->inline_object)
		rsp->off = ERDA_NO_OFFSET;
	return rc;
}

/* A GET by message: the server looks for the version, and sends the value along. */
static size_t handle_get(struct server *server, const struct erda_req *req, struct erda_rsp *rsp)
{
	struct erda_place place;
	struct version version[2];
	struct erda_object object;
	const struct log *log;
	unsigned n;
	int slot;

	rsp->status = -ENOENT;
	erda_place(&server->geo, req->key, req->klen, &place);
	log = &server->log[place.head];
	slot = erda_find(&server->index, place.home, req->key, req->klen);
	if (slot < 0)
		return sizeof(*rsp);
	n = clean_versions(server, log, server->index.entry[slot].region, version);
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *at = log_at(server, place.head, version[i].region);

		if (erda_object_at(&server->geo, at, version[i].off, req->key, req->klen,
				   &object) != OBJECT_GOOD)
			continue;
		if (object.tag && server->geo.bug != BUG_TAG_IGNORED)
			return sizeof(*rsp);
		rsp->status = 0;
		rsp->vlen = object.vlen;
		memcpy(rsp + 1,
		       at + (uint64_t)version[i].off * server->geo.unit + ERDA_HEADER + object.klen,
		       object.vlen);
		return sizeof(*rsp) + object.vlen;
	}
	/* A first version that has not arrived is none; otherwise the cleaner may still find an
	 * older one. */
	if (n > 1 || log->phase >= PHASE_PREPARE)
		rsp->status = -EAGAIN;
	return sizeof(*rsp);
}

/*
 * A reader found no intact object at the newest offset and used the previous one
 * (Erda paper 4.2): make the previous version the newest. The reader cannot tell a
 * dead writer from a slow one, so by default this waits until no writer is that slow.
 */
static void handle_repair(struct server *server, const struct erda_req *req)
{
	enum erda_repair mode = server->geo.knob.repair;
	struct erda_place place;

	erda_place(&server->geo, req->key, req->klen, &place);
	int slot = erda_find(&server->index, place.home, req->key, req->klen);
	if (slot < 0)
		return;
	struct erda_entry *entry = &server->index.entry[slot];
	uint64_t m = entry->region;
	if (erda_oldoff(m) == ERDA_NO_OFFSET)
		return;
	/* While its log is cleaned an entry has no previous version. */
	if (mode != REPAIR_UNCONDITIONAL && server->log[place.head].phase >= PHASE_PREPARE)
		return;
	if (mode != REPAIR_UNCONDITIONAL && erda_newoff(m) != req->bad)
		return;
	uint64_t since = server->index.since[slot];
	if (mode == REPAIR_COND_RECHECK_AGE && since && rt_now() + 1 - since < server->timeout_ns)
		return;
	if (mode <= REPAIR_COND_RECHECK &&
	    erda_object_at(&server->geo,
			   log_at(server, place.head,
				  erda_region_of(&server->geo, m, server->log[place.head].region)),
			   req->bad, req->key, req->klen, NULL) == OBJECT_GOOD)
		return;
	entry->region = erda_revert(m);
}

/* The request's bytes: in the message, with a value perhaps, or in the client's slot. */
static int take_request(struct server *server, const struct rpc_msg *msg, struct erda_req *req,
			const uint8_t **value)
{
	const uint8_t *from = msg->bytes;
	size_t len = msg->len;

	memset(req, 0, sizeof(*req));
	if (msg->has_imm) {
		if (msg->imm >= server->slots)
			return -EPROTO;
		from = (const uint8_t *)&server->slot[msg->imm];
	}
	if (len < ERDA_REQ_BYTES(0) || (msg->has_imm && len > sizeof(*req)))
		return -EPROTO;
	memcpy(req, from, len < sizeof(*req) ? len : sizeof(*req));
	size_t bytes = ERDA_REQ_BYTES(req->klen);
	if (req->klen > TM_MAX_KEY || len != bytes + (req->inline_object ? req->vlen : 0))
		return -EPROTO;
	memset(&req->key[req->klen], 0, sizeof(req->key) - req->klen);
	*value = from + bytes;
	return req->klen || req->op >= ERDA_OP_CLEAN ? 0 : -EPROTO;
}

static int handle_clean(struct server *server)
{
	int rc = -EALREADY;

	for (unsigned h = 0; h < server->geo.heads; h++) {
		if (clean_want(server, h) == 0)
			rc = 0;
	}
	return rc;
}

static size_t answer(struct server *server, const struct rpc_msg *msg, struct erda_rsp *rsp)
{
	const uint8_t *value;
	struct erda_req req;

	rsp->status = take_request(server, msg, &req, &value);
	if (rsp->status)
		return sizeof(*rsp);
	switch (req.op) {
	case ERDA_OP_PUT:
	case ERDA_OP_DEL:
		rsp->status = handle_update(server, &req, value, rsp);
		return sizeof(*rsp);
	case ERDA_OP_GET:
		return handle_get(server, &req, rsp);
	case ERDA_OP_REPAIR:
		handle_repair(server, &req);
		return 0;
	case ERDA_OP_CLEAN:
		rsp->status = handle_clean(server);
		return sizeof(*rsp);
	case ERDA_OP_ACK:
		/* Any other answer is of a cleaning that has not waited for it. */
		if (msg->client < server->slots && req.bad == server->begins)
			server->acked[msg->client] = req.bad;
		return 0;
	default:
		rsp->status = -EPROTO;
		return sizeof(*rsp);
	}
}

static size_t handle_message(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct server *server = arg;

	assert(cap >= sizeof(struct erda_rsp) + server->geo.max_vlen);
	server->handling = true;
	finish_pending(server);
	size_t len = answer(server, msg, reply);
	server->handling = false;
	return len;
}

static void server_task(void *arg)
{
	struct server *server = arg;

	for (;;) {
		unsigned n = rpc_server_poll(&server->rpc);

		server->handling = true;
		finish_pending(server);
		server->handling = false;
		if (!n)
			rt_yield();
	}
}

int erda_format(const struct tm_env *env)
{
	struct erda_geo geo;
	struct erda_head *heads = erda_heads(env->pm);

	erda_geo(&geo, env->params);
	if (env->pm_len < geo.pool_len)
		return -ENOSPC;
	for (unsigned h = 0; h < geo.heads; h++) {
		for (unsigned r = 0; r < ERDA_REGIONS; r++)
			heads[h].region[r] = erda_region_off(&geo, h, r);
		heads[h].region_len = geo.region_len;
		heads[h].seg_len = geo.seg_len;
	}
	struct erda_entry *entry = erda_table(&geo, env->pm);
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
	int rc = rpc_server_export(rpc, server->pm, geo->log_off, IBV_ACCESS_REMOTE_READ);
	if (!rc)
		rc = rpc_server_export(rpc, server->slot, server->slots * sizeof(*server->slot),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!rc)
		rc = rpc_server_export(rpc, &server->moves, sizeof(server->moves),
				       IBV_ACCESS_REMOTE_READ);
	for (unsigned h = 0; h < geo->heads && !rc; h++) {
		rc = log_export(server, h, server->log[h].region);
		/* Where notices are not acknowledged, both can be reached at any time. */
		if (!rc && geo->knob.clean_wait)
			rc = log_export(server, h, !server->log[h].region);
	}
	return rc;
}

static void start_log(struct server *server, unsigned head)
{
	const struct erda_head *from = head_of(server, head);
	struct log *log = &server->log[head];

	log->region = erda_state_region(from->state);
	log->tail[log->region] = log->boot_tail = from->used[log->region];
	log->cleaned_tail = UINT64_MAX;
	server->rpc.word |= erda_word(head, false, log->region);
}

int erda_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	struct erda_geo *geo = &server->geo;
	erda_geo(geo, env->params);
	if (env->pm_len < geo->pool_len || erda_boot(env->pm)->magic != ERDA_MAGIC) {
		free(server);
		return -EINVAL;
	}
	server->pm = env->pm;
	server->timeout_ns = geo->knob.timeout ? SHORT_TIMEOUT_NS : TIMEOUT_NS;
	server->begins = geo->knob.notices ? UINT32_MAX : 0;
	server->slots = env->params->clients + 1;
	server->slot = calloc(server->slots, sizeof(*server->slot));
	server->acked = calloc(server->slots, sizeof(*server->acked));
	server->object = calloc(1, geo->max_obj);
	for (unsigned i = 0; server->acked && i < server->slots; i++)
		server->acked[i] = server->begins;
	server->index.geo = geo;
	server->index.entry = erda_table(geo, env->pm);
	server->index.since = calloc(geo->entries, sizeof(*server->index.since));
	server->index.moves = &server->moves;
	if (!server->slot || !server->acked || !server->object || !server->index.since)
		return -ENOMEM;
	int rc = rpc_server_init(&server->rpc, env, erda_msg_bytes(geo), handle_message, server);
	server->rpc.leaks = geo->bug == BUG_PLACE_LEAKED;
	for (unsigned h = 0; h < geo->heads; h++)
		start_log(server, h);
	if (!rc)
		rc = export_all(server);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	return rc ? rc : rt_spawn("server", server_task, server);
}
