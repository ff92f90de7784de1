/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: both phases of a PUT, GET, DELETE. See rdmp_kv.h. */
#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/kv_rooms.h"
#include "core/stores/kv_small.h"
#include "core/stores/rdmp_kv/rdmp_kv.h"
#include "core/verbs_compat.h"

struct server {
	struct tm_params params;
	struct rpc_server rpc;
	struct rdmp_pool pool;
	struct rdmp_index index;
	uint8_t *copies;       /* of the objects, in DRAM; NULL: of another backend */
	struct kv_rooms rooms; /* of the objects */
	uint32_t *slot; /* by the connection's number: the record of its PUT between the phases */
	unsigned begun; /* PUTs */
};

/* ----------------------------------------------------------------- lines */

static void mark(struct server *server, uint32_t number, bool used)
{
	const struct rdmp_record *record = rdmp_record(&server->pool, number);

	if (record->kind == RDMP_PUT)
		kv_rooms_mark(&server->rooms, record->off / TM_LINE,
			      rdmp_object_lines(&server->params, record->klen, record->vlen), used);
}

/* ---------------------------------------------------------------- copies */

/* What GETs read in place of the object. */
static uint8_t *copy_of(const struct server *server, const struct rdmp_record *record)
{
	return server->copies + record->off;
}

static void copy_object(struct server *server, const struct rdmp_record *record)
{
	if (server->copies)
		memcpy(copy_of(server, record), rdmp_object(&server->pool, record),
		       rdmp_object_bytes(&server->params, record->klen, record->vlen));
}

static void set_copy_flags(const struct server *server, const struct rdmp_record *record, int to)
{
	if (server->copies)
		memset(copy_of(server, record) +
			       rdmp_flags_at(&server->params, record->klen, record->vlen),
		       to, 2);
}

/* The object has its flags. Its copy is there: the server makes it now; or the client wrote it
 * before it committed, and has no more to do (with copy=late it has, and sets them by itself). */
static void complete_copy(struct server *server, const struct rdmp_record *record, bool committed)
{
	if (!committed)
		copy_object(server, record);
	else if (server->params.knob[COPY] == COPY_FIRST)
		set_copy_flags(server, record, 1);
}

/* ------------------------------------------------------------------- PUT */

/* A record is durable before anything that it is to undo. Without a log it is in DRAM, and the
 * key's entry is durable. */
static void append(struct server *server, const struct kv_req *req, uint64_t off,
		   enum rdmp_kind kind)
{
	uint32_t number = server->index.records + 1;
	struct rdmp_record *record = rdmp_record(&server->pool, number);

	assert(number <= server->pool.records && off < server->pool.lines * TM_LINE);
	memset(record, 0, sizeof(*record));
	memcpy(record->key, req->key, sizeof(record->key));
	record->off = off;
	record->vlen = kind == RDMP_PUT ? req->vlen : 0;
	record->klen = req->klen;
	rdmp_record_set(record, kind);
	if (!server->pool.table && !(kind == RDMP_PUT ? has_bug(&server->params, record_unflushed)
						      : has_bug(&server->params, delete_unflushed)))
		pmem_persist(record, sizeof(*record));
	server->index.records = number;
	rdmp_index_add(&server->index, &server->pool, number);
	if (server->pool.table)
		rdmp_entry_update(&server->pool, &server->index, number);
}

/* The metadata phase (RK III-A): an object without flags that the log can undo. */
static int begin_put(struct server *server, const struct kv_req *req, uint32_t *slot, uint64_t *off)
{
	uint64_t flags = rdmp_flags_at(&server->params, req->klen, req->vlen), line;

	*slot = 0;
	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	if (rt_pm_full() || server->index.records == server->pool.records ||
	    !rdmp_index_find(&server->index, req->key))
		return -ENOSPC;
	int rc = kv_rooms_take(&server->rooms,
			       rdmp_object_lines(&server->params, req->klen, req->vlen), &line);
	if (rc)
		return rc;
	*off = line * TM_LINE;
	uint8_t *object = server->pool.objects + *off;
	memcpy(object, req->key, req->klen);
	pmem_persist(object, req->klen);
	if (!has_bug(&server->params, flags_kept)) {
		memset(object + flags, 0, 2);
		pmem_persist(object + flags, 2);
	}
	append(server, req, *off, RDMP_PUT);
	*slot = server->index.records;
	set_copy_flags(server, rdmp_record(&server->pool, *slot), 0);
	if (server->params.knob[FREE] == FREE_EARLY && server->index.older[*slot])
		mark(server, server->index.older[*slot], false);
	return 0;
}

/* No client is told of the key's older objects from now on; those that were may still read them. */
static void free_older(struct server *server, uint32_t number)
{
	uint32_t *older = &server->index.older[number];

	if (server->params.knob[FREE] != FREE_OLD)
		return;
	while (*older) {
		const struct rdmp_record *record = rdmp_record(&server->pool, *older);

		/* A client may yet write into the object of a PUT in flight. */
		if (record->kind == RDMP_PUT && !rdmp_flags(&server->pool, record)[0])
			return;
		mark(server, *older, false);
		*older = server->index.older[*older];
	}
}

/* The value is there, and with `committed` durable. First it becomes so, then PF, which is the
 * commit point, and only then a GET returns it. The flags' line has the end of the value in it,
 * which was stored before: it cannot come to PM without. */
static void complete(struct server *server, uint32_t number, bool committed)
{
	const struct tm_params *params = &server->params;
	const struct rdmp_record *record = rdmp_record(&server->pool, number);
	uint8_t *object = rdmp_object(&server->pool, record);
	uint8_t *flags = rdmp_flags(&server->pool, record);
	uint64_t before = (uint64_t)(flags - object) / TM_LINE * TM_LINE;

	if (has_bug(params, pf_with_value)) {
		flags[0] = 1;
		pmem_persist(object, rdmp_object_bytes(params, record->klen, record->vlen));
	} else {
		if (before && !committed && !has_bug(params, value_unflushed))
			pmem_persist(object, before);
		flags[0] = 1;
		if (has_bug(params, vf_early))
			flags[1] = 1;
		pmem_persist(flags, 1);
	}
	/* A newer one may have been begun meanwhile: then this is what to go back to. */
	if (server->pool.table)
		rdmp_entry_update(&server->pool, &server->index, number);
	flags[1] = 1;
	complete_copy(server, record, committed);
	free_older(server, number);
}

/* The data phase is over. */
static int end_put(struct server *server, uint32_t *slot, bool committed)
{
	uint32_t number = *slot;

	if (!number)
		return -EPROTO;
	*slot = 0;
	assert(number <= server->index.records);
	complete(server, number, committed);
	return 0;
}

static unsigned slot_of_put(struct server *server, const struct rpc_msg *msg)
{
	unsigned slots = server->params.clients;

	/* A number that is given to the next PUT whatever became of its last one. */
	if (has_bug(&server->params, slot_shared))
		return server->begun++ % (slots < 2 ? slots : 2);
	return msg->index;
}

static int handle_put(struct server *server, const struct rpc_msg *msg, struct rdmp_rsp *rsp)
{
	const struct kv_req *req = msg->bytes;
	uint64_t off;

	rsp->slot = slot_of_put(server, msg);
	uint32_t *slot = &server->slot[rsp->slot];
	int rc = begin_put(server, req, slot, &off);
	if (rc)
		return rc;
	rsp->off = off;
	if (!rdmp_is_small(&server->params, req->vlen))
		return 0;
	memcpy(server->pool.objects + off + req->klen, req + 1, req->vlen);
	return end_put(server, slot, false);
}

/* ------------------------------------------------------- the other requests */

static int handle_get(struct server *server, const struct kv_req *req, struct rdmp_rsp *rsp)
{
	const struct rdmp_key *place = rdmp_index_find(&server->index, req->key);
	unsigned flag = has_bug(&server->params, pf_read) ? 0 : 1;
	uint32_t number = place ? place->newest : 0;

	for (; number; number = server->index.older[number]) {
		const struct rdmp_record *record = rdmp_record(&server->pool, number);

		if (record->kind == RDMP_DEL)
			return -ENOENT;
		if (server->params.knob[GET_PREV] || rdmp_flags(&server->pool, record)[flag]) {
			/* With CC-ADP no message tells the server that they are set. */
			if (rdmp_flags(&server->pool, record)[1])
				complete_copy(server, record, true);
			rsp->off = record->off;
			rsp->vlen = record->vlen;
			return 0;
		}
	}
	return -ENOENT;
}

static int handle_del(struct server *server, const struct kv_req *req)
{
	const struct rdmp_key *place = rdmp_index_find(&server->index, req->key);

	if (!place || !place->newest || rdmp_record(&server->pool, place->newest)->kind == RDMP_DEL)
		return 0;
	if (rt_pm_full() || server->index.records == server->pool.records)
		return -ENOSPC;
	append(server, req, 0, RDMP_DEL);
	return 0;
}

/* The client says that the value of this slot's PUT is there. */
static int end_slot(struct server *server, uint64_t slot)
{
	if (slot >= server->rpc.max_peers)
		return -EPROTO;
	return end_put(server, &server->slot[slot], server->params.knob[METHOD] != SA);
}

static int handle_request(struct server *server, const struct rpc_msg *msg, struct rdmp_rsp *rsp)
{
	const struct kv_req *req = msg->bytes;

	if (msg->has_imm)
		return end_slot(server, msg->imm);
	if (!kv_is_request(msg, rdmp_is_small(&server->params, req->vlen)))
		return -EPROTO;
	switch (req->op) {
	case KV_PUT:
		return handle_put(server, msg, rsp);
	case KV_GET:
		return handle_get(server, req, rsp);
	case KV_DEL:
		return handle_del(server, req);
	default:
		return req->op == KV_COMMIT ? end_slot(server, req->off) : -EPROTO;
	}
}

static size_t handle_message(void *server, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct rdmp_rsp *rsp = reply;

	if (cap < sizeof(*rsp))
		return 0;
	rsp->status = handle_request(server, msg, rsp);
	return sizeof(*rsp);
}

/* After recovery a key has nothing but what is current: the lines of all others are free. */
static void mark_current(struct server *server)
{
	for (uint64_t i = 0; i < server->index.places; i++) {
		uint32_t newest = server->index.key[i].newest;

		if (!newest)
			continue;
		server->index.older[newest] = 0;
		if (!has_bug(&server->params, lines_forgotten))
			mark(server, newest, true);
		if (rdmp_record(&server->pool, newest)->kind == RDMP_PUT &&
		    !has_bug(&server->params, copies_forgotten))
			copy_object(server, rdmp_record(&server->pool, newest));
	}
}

static int start(struct server *server)
{
	size_t len = server->pool.lines * TM_LINE;
	int rc = rpc_server_export(&server->rpc, server->pool.objects, len,
				   IBV_ACCESS_LOCAL_WRITE | (int)server->rpc.qp_access);

	if (!rc && server->copies)
		rc = rpc_server_export(&server->rpc, server->copies, len,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					       IBV_ACCESS_REMOTE_WRITE);
	return rc ? rc : kv_server_listen(&server->rpc);
}

int rdmp_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->pool = rdmp_pool_at(&server->params, env->pm);
	int rc = rdmp_index_build(&server->index, &server->pool);
	if (!rc)
		rc = rpc_server_init(&server->rpc, env, rdmp_message_bytes(env->params),
				     handle_message, server);
	if (rc)
		return rc;
	if (rdmp_commits(&server->params))
		server->rpc.qp_access |= IBV_ACCESS_FLUSH_PERSISTENT;
	server->slot = calloc(server->rpc.max_peers, sizeof(*server->slot));
	if (server->params.knob[BACKEND] == LOG_IN_PM)
		server->copies = calloc(server->pool.lines, TM_LINE);
	if (!server->slot || (!server->copies && server->params.knob[BACKEND] == LOG_IN_PM))
		return -ENOMEM;
	rc = kv_rooms_init(&server->rooms, server->pool.lines);
	if (rc)
		return rc;
	mark_current(server);
	return start(server);
}
