/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stores whose server persists a value before it answers (EF 3): the sound baselines, in three
 * methods.
 *
 *	saw	send after write (EF 5.3.1). The client asks for room, WRITEs the value, and SENDs
 *		"persist this" after it; the server persists the value, then the entry that names
 *		it, and replies
 *	imm	write with immediate (EF 5.3.2). The WRITE itself says where the value is: one
 *		message less
 *	rpc	the value travels in the request. The server copies it into the log; GET is a
 *		request, too
 *
 *	client            server                     client            server
 *	  | PUT k, vlen -->  | reserve                 | PUT k, vlen -->  | reserve
 *	  | <-- offset       |                         | <-- offset       |
 *	  | WRITE value -->  |                         | WRITE_WITH_IMM -->
 *	  | COMMIT offset -> | persist value, entry    |                  | persist value, entry
 *	  | <-- done         |                         | <-- done         |
 *
 * The pool is that of kv_pool.h; kv_place.c has how the server places values in it, and the
 * commit point. A reader by
 * READ may see an entry before it is durable: what such a GET returned a power failure may take
 * back (the paper does not say so), so MONO is not promised, and DUR of what was acknowledged
 * alone. `rpc` and get=request, where the server answers only when it has persisted what it names,
 * keep both. With persist=off nothing is flushed.
 *
 * The room of a value that was replaced or deleted is given away where the knob `reuse` says so,
 * of which EF 3 does not speak. A reader by READ may have an old entry in hand then: with
 * reuse=lease it looks at its clock when it has READ the value, and begins again if its GET took
 * longer than the server waits before it gives the room away.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/bits.h"
#include "core/stores/kv_place.h"

enum { METHOD = KV_CROWD + 1, GET, PERSIST, IMM_OFFSET, REUSE, BUG, KNOBS };
enum { METHOD_SAW, METHOD_IMM, METHOD_RPC };
enum { IMM_LINES, IMM_BYTES, IMM_BYTES8 };
enum { REUSE_OFF, REUSE_AT_ONCE, REUSE_GRACE, REUSE_LEASE, REUSE_LEASE_LONG };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define SAW_BUGS(X)                                                                                \
	X(entry_first, "", RDA, "the entry names the value, durably, before the value is durable") \
	X(value_unflushed, "", RDA | DUR, "only the entry is flushed")                             \
	X(entry_unflushed, "", DUR, "only the value is flushed")                                   \
	X(first_line, "", RDA | DUR, "of a value the first line is flushed")                       \
	X(delete_unflushed, "", DUR, "a DELETE is not flushed")                                    \
	X(one_reserved, "", OK,                                                                    \
	  "what one client has reserved is forgotten when another one reserves")                   \
	X(commit_first, "", RDA | DUR, "\"persist this\" is sent before the value")                \
	X(tail_forgotten, "", FSCK,                                                                \
	  "after a restart the log begins at its start again: the next PUTs overwrite old values") \
	X(room_early, " reuse=lease", RDA | KEEP,                                                  \
	  "the room of a key's value is free when its next PUT begins: it is overwritten in "      \
	  "place")
enum { NO_BUG, SAW_BUGS(KV_BUG_VALUE) };

/* Room that a client may write to. */
struct reserved {
	bool open;
	struct kv_placed value;
};

struct saw_server {
	struct tm_params params;
	struct rpc_server rpc;
	struct kv_place place;
	struct reserved *reserved; /* by the connection's number */
};

struct saw_client {
	struct kv_client kv; /* msg: rpc: a request with its value, a reply with its value */
	struct kv_table table;
};

/* Does a GET ask the server? */
static bool gets_by_request(const struct tm_params *params)
{
	return params->knob[METHOD] == METHOD_RPC || params->knob[GET];
}

/* Length of the longest message: a request or a reply, and a value where one may be in it. */
static size_t message_bytes(const struct tm_params *params)
{
	return sizeof(struct kv_req) + (gets_by_request(params) ? params->max_vlen : 0);
}

/* ---------------------------------------------------------------- server */

/* Steps of persisting that the server leaves out. */
static unsigned lacks(const struct tm_params *params)
{
	static const uint8_t by_bug[] = {
		[BUG_entry_first] = KV_LACKS_ORDER,	  [BUG_value_unflushed] = KV_LACKS_VALUE,
		[BUG_entry_unflushed] = KV_LACKS_ENTRY,	  [BUG_first_line] = KV_LACKS_LINES,
		[BUG_delete_unflushed] = KV_LACKS_DELETE, [BUG_tail_forgotten] = 0,
		[BUG_room_early] = KV_LACKS_PATIENCE,
	};

	return by_bug[params->knob[BUG]] | (params->knob[PERSIST] ? KV_LACKS_PERSIST : 0);
}

/* The value is where the client was told. */
static int commit(struct saw_server *server, struct reserved *reserved, uint64_t line)
{
	if (!reserved->open || reserved->value.line != line)
		return -EPROTO;
	assert(reserved->value.vlen <= server->params.max_vlen); /* as it was reserved */
	reserved->open = false;
	return kv_place_commit(&server->place, &reserved->value);
}

/* The same, told by an immediate. One that counts bytes is what the entry gets: who has it has no
 * need to remember where the value went. */
static int commit_at(struct saw_server *server, struct reserved *reserved, uint32_t imm)
{
	uint64_t line = imm / TM_LINE;

	if (server->params.knob[IMM_OFFSET] == IMM_LINES)
		return commit(server, reserved, imm);
	if (line + kv_lines(reserved->value.vlen) > server->place.pool.log_lines)
		return -EPROTO;
	reserved->value.line = line;
	return commit(server, reserved, line);
}

static int handle_get(const struct saw_server *server, const struct kv_req *req, struct kv_rsp *rsp,
		      size_t cap)
{
	const void *value = kv_place_get(&server->place, req->key, &rsp->vlen);

	if (!value)
		return -ENOENT;
	if (rsp->vlen > cap - sizeof(*rsp))
		return -EMSGSIZE;
	memcpy(rsp + 1, value, rsp->vlen);
	return 0;
}

static int handle_request(struct saw_server *server, const struct rpc_msg *msg,
			  struct reserved *reserved, struct kv_rsp *rsp, size_t cap)
{
	const struct kv_req *req = msg->bytes;
	bool rpc = server->params.knob[METHOD] == METHOD_RPC;
	int rc;

	if (msg->has_imm)
		return commit_at(server, reserved, msg->imm);
	if (!kv_is_request(msg, rpc))
		return -EPROTO;
	switch (req->op) {
	case KV_PUT:
		if (rpc)
			return kv_place_put(&server->place, req, req + 1);
		rc = kv_place_reserve(&server->place, &reserved->value, req);
		reserved->open |= !rc;
		rsp->off = reserved->value.line * TM_LINE;
		return rc;
	case KV_COMMIT:
		return commit(server, reserved, req->off / TM_LINE);
	case KV_DEL:
		kv_place_del(&server->place, req->key);
		return 0;
	default:
		return req->op == KV_GET ? handle_get(server, req, rsp, cap) : -EPROTO;
	}
}

static size_t handle_message(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct saw_server *server = arg;
	unsigned who = has_bug(&server->params, one_reserved) ? 0 : msg->index;
	struct kv_rsp *rsp = reply;

	if (cap < sizeof(*rsp))
		return 0;
	rsp->status = handle_request(server, msg, &server->reserved[who], rsp, cap);
	return sizeof(*rsp) + (rsp->status ? 0 : rsp->vlen);
}

static enum kv_reuse reuse(const struct tm_params *params)
{
	static const uint8_t by_knob[] = {[REUSE_OFF] = KV_REUSE_OFF,
					  [REUSE_AT_ONCE] = KV_REUSE_AT_ONCE,
					  [REUSE_GRACE] = KV_REUSE_GRACE,
					  [REUSE_LEASE] = KV_REUSE_GRACE,
					  [REUSE_LEASE_LONG] = KV_REUSE_GRACE};

	return by_knob[params->knob[REUSE]];
}

static int serve(const struct tm_env *env)
{
	struct saw_server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->place = kv_place_at(env, lacks(env->params));
	if (has_bug(env->params, tail_forgotten))
		server->place.tail = 0;
	int rc = kv_place_reuse(&server->place, reuse(env->params));
	if (!rc)
		rc = rpc_server_init(&server->rpc, env, message_bytes(env->params), handle_message,
				     server);
	if (rc)
		return rc;
	server->reserved = calloc(server->rpc.max_peers, sizeof(*server->reserved));
	/* A reader that a former process's entry sent to a room is there no longer than that. */
	if (env->params->knob[REUSE] >= REUSE_LEASE)
		rt_sleep(KV_LEASE_NS);
	return server->reserved ? kv_pool_serve(&server->rpc, &server->place.pool) : -ENOMEM;
}

/* ---------------------------------------------------------------- client */

static int open_client(const struct tm_env *env, void **out)
{
	struct saw_client *client = calloc(1, sizeof(*client));
	uint32_t max_vlen = env->params->max_vlen;

	if (client)
		client->table = kv_table_at(env->params, NULL);
	return kv_client_open((struct kv_client *)client, env, message_bytes(env->params),
			      max_vlen > TM_LINE ? max_vlen : TM_LINE, out);
}

/* Say that the value is there after it was written, on the same connection: it has arrived then. */
static int put_by_saw(struct saw_client *client, struct kv_req *req, uint64_t off,
		      const void *value)
{
	struct rpc_conn *conn = &client->kv.conn;
	bool first = has_bug(&client->kv.params, commit_first);
	uint32_t vlen = req->vlen;
	struct kv_rsp rsp;
	int rc = 0;

	if (vlen && !first)
		rc = rpc_write_behind(conn, KV_POOL_LOG, off, value, vlen);
	req->op = KV_COMMIT;
	req->off = off;
	if (!rc)
		rc = kv_call(conn, req, &rsp);
	if (!rc && vlen && first)
		rc = rpc_write(conn, KV_POOL_LOG, off, value, vlen);
	return rc;
}

/* In 32 bits: enough for 256 GiB in lines, for 4 GiB in bytes. In 8 bits, which no NIC has, a small
 * pool is larger than that. */
static uint32_t imm_of(const struct tm_params *params, uint64_t off)
{
	switch (params->knob[IMM_OFFSET]) {
	case IMM_LINES:
		return (uint32_t)(off / TM_LINE);
	case IMM_BYTES:
		return (uint32_t)off;
	default:
		return (uint8_t)off;
	}
}

static int put_by_imm(struct saw_client *client, const struct kv_req *req, uint64_t off,
		      const void *value)
{
	struct kv_rsp rsp;
	size_t len;
	int rc = rpc_call_imm(&client->kv.conn, KV_POOL_LOG, off, value, req->vlen,
			      imm_of(&client->kv.params, off), &rsp, sizeof(rsp), &len);

	return kv_status(rc, len, &rsp, sizeof(rsp));
}

static int put_value(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct saw_client *client = arg;
	struct kv_req req;
	struct kv_rsp rsp;
	int rc = kv_put_init(&req, key, klen, vlen, client->kv.params.max_vlen);

	if (rc)
		return rc;
	if (client->kv.params.knob[METHOD] == METHOD_RPC)
		return kv_call_value(&client->kv.conn, client->kv.msg, &req, value, vlen, &rsp,
				     sizeof(rsp));
	rc = kv_call(&client->kv.conn, &req, &rsp);
	if (rc)
		return rc;
	if (client->kv.params.knob[METHOD] == METHOD_IMM)
		return put_by_imm(client, &req, rsp.off, value);
	return put_by_saw(client, &req, rsp.off, value);
}

static int get_by_request(struct saw_client *client, const void *key, size_t klen, void *value,
			  size_t cap, size_t *vlen)
{
	struct kv_req req;
	struct kv_rsp rsp;
	size_t len;
	int rc = kv_req_init(&req, KV_GET, key, klen);

	if (!rc)
		rc = rpc_call(&client->kv.conn, &req, sizeof(req), client->kv.msg,
			      client->kv.msg_bytes, &len);
	if (rc)
		return rc;
	memcpy(&rsp, client->kv.msg, sizeof(rsp));
	if (len < sizeof(rsp) || len > client->kv.msg_bytes)
		return -EPROTO;
	if (rsp.status)
		return rsp.status;
	*vlen = len - sizeof(rsp);
	memcpy(value, client->kv.msg + sizeof(rsp), *vlen < cap ? *vlen : cap);
	return 0;
}

static int get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct saw_client *client = arg;
	const bool is_long = client->kv.params.knob[REUSE] == REUSE_LEASE_LONG;
	uint64_t began, lease_ns = is_long ? 4 * KV_LEASE_NS : KV_LEASE_NS;
	int rc;

	if (gets_by_request(&client->kv.params))
		return get_by_request(client, key, klen, value, cap, vlen);
	do { /* what was READ when the lease had ended may be another value's */
		began = rt_now();
		rc = kv_pool_get(&client->kv, &client->table, key, klen, value, cap, vlen);
	} while (client->kv.params.knob[REUSE] >= REUSE_LEASE && !rc &&
		 rt_now() - began >= rt_duration(lease_ns));
	return rc;
}

static const struct tm_knob knobs[] = {
	[KV_CROWD] = KV_CROWD_KNOB,
	[METHOD] = {"method", "saw imm rpc", "how the value gets to the server, and it is told"},
	[GET] = {"get", "read request",
		 "who reads: the client by READ; or the server, which answers when all is durable"},
	[PERSIST] = {"persist", "on off", "does the server flush anything?"},
	[IMM_OFFSET] = {"imm_offset", "lines bytes bytes8",
			"what the immediate counts: lines; bytes, of which 32 bits reach 4 GiB; "
			"or bytes in 8 bits, which reach the end of no pool"},
	[REUSE] = {"reuse", "off at_once grace lease lease_long",
		   "when a replaced value's room is another one's: never; at once; after 1 ms; "
		   "after 1 ms, and a GET that took as long begins anew; or if it took 4 ms, which "
		   "is too long"},
	[BUG] = KV_BUG_KNOB(SAW_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};
static const struct tm_variant variants[] = {
	{"imm", "method=imm", "the WRITE's immediate says where the value is", 0},
	{"rpc", "method=rpc", "values travel in messages, both ways", 0},
	{"get_asks", "get=request", "GETs ask the server: what one returns is durable", 0},
	{"volatile", "persist=off", "nothing is flushed", 0},
	{"rpc_volatile", "method=rpc persist=off", "values travel in messages, nothing is flushed",
	 0},
	{"crowded", "crowd=on", "all keys collide in a table that has hardly more slots than keys",
	 0},
	{"imm_bytes8", "method=imm imm_offset=bytes8",
	 "the immediate counts bytes, and the pool is larger than it can say", 0},
	{"recycled", "reuse=at_once", "a replaced value's room is another one's at once", 0},
	{"leased", "reuse=lease",
	 "a replaced value's room is another one's when no client can READ it any more", 0},
	KV_BUG_VARIANTS(SAW_BUGS)};

static const struct tm_shape shapes[] = {
	{.name = "imm"},
	{.name = "rpc"},
	{.name = "get_asks"},
	{.name = "leased"},
	{.name = "crowded"},
	{.name = "calls=fail", .often = "w1"},
	{.name = "imm+calls=fail"},
	{.name = "rpc+calls=fail"},
	{.name = NULL},
};

const struct tm_store saw_imm_store = {
	.name = "saw_imm",
	.what = "SAW, IMM and RPC (EF 3): the server persists a value before it answers",
	.fsck_at_rest = true,
	.promises = TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) |
		    TM_BIT(TM_KEEP) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK),
	.knobs = knobs,
	.variants = variants,
	.shapes = shapes,
	.pm_bytes = kv_pool_bytes,
	.regions = kv_pool_regions,
	.format = kv_format,
	.recover = kv_place_recover,
	.serve = serve,
	.fsck = kv_pool_fsck,
	.open = open_client,
	.put = put_value,
	.get = get,
	.del = kv_client_del,
};
