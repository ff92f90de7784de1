/* SPDX-License-Identifier: BSD-3-Clause */
/* The servers: one is the primary, which clients ask, the other one its mirror. See mojim.h. */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/mojim/mojim.h"

#define MOST_NAP_NS 20000

/* The exported regions. */
#define LOG  0
#define AREA 1

/* Requests of the other server: send me the area; I have it, up to this record. */
#define JOIN_COPY   101
#define JOIN_COMMIT 102
struct join {
	uint8_t op; /* where a struct kv_req has its own */
	uint8_t zero[3];
	uint32_t alone;
	struct head head;
};
struct joined {
	int32_t status;
	uint32_t alone;
	struct head head;
};

struct server {
	struct tm_params params;
	struct tm_env env;
	struct rpc_server rpc;
	struct mojim_pool pool;
	struct record *record; /* DRAM: the one to send */
	struct head head;      /* the last record that was sent, or is in the area */
	uint32_t alone;	       /* how often the area was changed without a mirror */
	struct rpc_conn mirror;
	bool connected, mirrored; /* to the mirror; it gets each record */
	unsigned under_way;	  /* requests */
	bool serves;		  /* as the primary, ... */
	struct rt_config config;  /* ... since it knew of this configuration */
};

/* --- the configuration --- */

/* Without an answer of the service it may have happened, or not: the server does not serve until it
 * knows (keeper()). */
static int set_members(struct server *server, uint32_t members)
{
	int rc = members_change(&server->env, members);
	server->serves = !rc;
	return rc;
}

/* Is this server the primary still? While its lease lasts nobody has taken over from it. It asks
 * itself this when it knows its answer, and before it gives it. */
static bool is_primary(const struct server *server)
{
	return server->serves &&
	       (has_bug(&server->params, serves_on) || rt_now() < rt_config_lease(&server->config));
}

/* --- the primary --- */

static void flush_area(struct server *server)
{
	pmem_persist(server->pool.area, server->pool.area_bytes);
}

/* The mirror does not answer. From now on what is stored here is persisted. */
static void leave_mirror(struct server *server)
{
	if (server->mirrored && server->params.knob[MIRROR_LOST] == LOST_FLUSHES)
		flush_area(server);
	server->mirrored = false;
}

static int go_on_alone(struct server *server)
{
	leave_mirror(server);
	return set_members(server, members_bit(&server->env));
}

static int connect_mirror(struct server *server)
{
	const struct tm_env env = members_env_other(&server->env);
	if (server->connected)
		rpc_close(&server->mirror);
	server->connected = true;
	return rpc_open(&server->mirror, &env, sizeof(struct joined),
			mojim_record_bytes(&server->params), NULL);
}

static bool flushes(const struct tm_params *params)
{
	return params->knob[MODE] == MODE_ASYNC || params->knob[PRIMARY_FLUSH] == PRIMARY_FLUSHES;
}

/* gmsync: these ranges of the area are at the mirror, all or none. */
static int gmsync(struct server *server, const struct range *range, unsigned n)
{
	const struct tm_params *params = &server->params;
	const size_t bytes = mojim_record_bytes(params);
	const struct head next = {server->head.seq + 1, server->head.epoch};
	const bool waits = params->knob[MODE] == MODE_SYNC && !has_bug(params, posted_only);
	int rc;

	if (server->mirrored ? flushes(params) : !has_bug(params, alone_unflushed))
		for (unsigned i = 0; i < n; i++)
			pmem_persist(server->pool.area + range[i].off, range[i].len);
	server->alone += !server->mirrored;
	if (!server->mirrored)
		return is_primary(server) ? 0 : -EHOSTDOWN;
	if (next.seq > server->pool.records)
		return -ENOSPC;
	mojim_fill(server->record, next, &server->pool, params, range, n);
	server->head = next;
	rc = waits ? 0 : rpc_settle(&server->mirror);
	if (!rc)
		rc = (waits ? rpc_write : rpc_write_behind)(
			&server->mirror, LOG, (next.seq - 1) * bytes, server->record, bytes);
	if (rc)
		return go_on_alone(server);
	/* What the mirror's NIC has acknowledged is there when the mirror takes over. */
	return waits || is_primary(server) ? 0 : -EHOSTDOWN;
}

static struct range range_of(const struct server *server, const void *at, uint32_t len)
{
	return (struct range){.off = (uint64_t)((const uint8_t *)at - server->pool.area),
			      .len = len};
}

/* The value goes to the buffer that is not in use; one word makes it the value. */
static int update(struct server *server, const struct kv_req *req)
{
	struct slot *slot = mojim_slot(&server->pool, &server->params, req->key);
	struct range range[MOJIM_RANGES];
	unsigned n = 0, which;

	if (!slot || rt_pm_full() || server->head.seq + 1 > server->pool.records)
		return -ENOSPC;
	which = !(slot->version & 1);
	if (req->op == KV_PUT) {
		uint8_t *buffer = mojim_buffer(slot, &server->params, which);
		memcpy(buffer, req + 1, req->vlen);
		if (!server->mirrored || flushes(&server->params))
			pmem_persist(buffer, req->vlen);
		range[n++] = range_of(server, buffer, req->vlen);
	}
	if (!slot->version)
		memcpy(slot->key, req->key, sizeof(slot->key));
	slot->vlen[which] = req->op == KV_PUT ? req->vlen : 0;
	__atomic_store_n(&slot->version,
			 ((slot->version >> 2) + 1) << 2 | (req->op == KV_DEL) << 1 | which,
			 __ATOMIC_SEQ_CST);
	range[n++] = range_of(server, slot, sizeof(*slot));
	return gmsync(server, range, n);
}

static int handle_update(struct server *server, const struct kv_req *req)
{
	if (req->vlen > server->params.max_vlen)
		return -EMSGSIZE;
	if (req->op == KV_DEL &&
	    !mojim_has_value(mojim_slot(&server->pool, &server->params, req->key)))
		return is_primary(server) ? 0 : -EHOSTDOWN;
	return update(server, req);
}

static int handle_get(const struct server *server, const struct kv_req *req, struct kv_rsp *rsp)
{
	const struct slot *slot = mojim_slot(&server->pool, &server->params, req->key);
	const bool has = mojim_has_value(slot);
	if (has) {
		const unsigned which = slot->version & 1;
		rsp->vlen = slot->vlen[which];
		memcpy(rsp + 1, mojim_buffer(slot, &server->params, which), rsp->vlen);
	}
	if (!is_primary(server))
		return -EHOSTDOWN;
	return has ? 0 : -ENOENT;
}

/* --- a server that comes back, as the primary sees it --- */

static int copy_area(struct server *server)
{
	const size_t step = mojim_record_bytes(&server->params);
	const void *last;
	int rc = connect_mirror(server);
	for (size_t off = 0; off < server->pool.area_bytes && !rc; off += step) {
		size_t left = server->pool.area_bytes - off;
		rc = rpc_write(&server->mirror, AREA, off, server->pool.area + off,
			       left < step ? left : step);
	}
	/* What is acknowledged may be on its way still, and the mirror flushes when it hears of
	 * the copy on another connection: a READ comes after it. */
	return rc ? rc : rpc_read(&server->mirror, AREA, 0, sizeof(struct slot), &last);
}

static void handle_join(struct server *server, const struct join *join, struct joined *rsp)
{
	if (join->op == JOIN_COPY) {
		struct rt_config now;
		rt_config_get(&now);
		leave_mirror(server);
		rsp->status = copy_area(server);
		server->head.epoch = now.epoch;
	} else if (memcmp(&join->head, &server->head, sizeof(join->head)) ||
		   (join->alone != server->alone && !has_bug(&server->params, joins_blind))) {
		rsp->status = -EAGAIN;
	} else {
		rsp->status = set_members(server, MEMBERS_BOTH);
		server->mirrored = !rsp->status;
	}
	rsp->head = server->head;
	rsp->alone = server->alone;
}

static size_t answer(struct server *server, const struct rpc_msg *msg, void *reply, size_t cap)
{
	const struct kv_req *req = msg->bytes;
	struct kv_rsp *rsp = reply;

	if (cap < mojim_message_bytes(&server->params) || msg->has_imm || !msg->len)
		return 0;
	if (req->op == JOIN_COPY || req->op == JOIN_COMMIT) {
		struct joined *joined = reply;
		joined->status = -EHOSTDOWN;
		if (server->serves && msg->len == sizeof(struct join))
			handle_join(server, msg->bytes, joined);
		return sizeof(*joined);
	}
	if (!server->serves)
		rsp->status = -EHOSTDOWN;
	else if (!kv_is_request(msg, true))
		rsp->status = -EPROTO;
	else if (req->op == KV_GET)
		rsp->status = handle_get(server, req, rsp);
	else
		rsp->status = handle_update(server, req);
	return sizeof(*rsp) + (rsp->status ? 0 : rsp->vlen);
}

static size_t handle(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct server *server = arg;
	server->under_way++;
	size_t len = answer(server, msg, reply, cap);
	server->under_way--;
	return len;
}

/* --- the mirror --- */

static bool apply_next(struct server *server)
{
	const struct record *record = mojim_record(&server->pool, &server->params,
						   server->head.seq + 1);
	if (!record)
		return false;
	mojim_apply(&server->pool, &server->params, record);
	server->head.seq++;
	return true;
}

static void apply_all(struct server *server)
{
	while (!has_bug(&server->params, log_forgotten) && apply_next(server))
		;
}

/* The primary's lease has ended. Nothing that it sends lands any more; then the log has all that it
 * was acknowledged for, and this is durable before the configuration says so. */
static void take_over(struct server *server, const struct rt_config *seen)
{
	const bool early = has_bug(&server->params, serves_early);
	if (!has_bug(&server->params, not_fenced))
		rpc_server_drop(&server->rpc, members_other_client(&server->env));
	if (!early)
		apply_all(server);
	if (members_set(seen, members_bit(&server->env), server->env.server))
		return;
	server->mirrored = false;
	server->config = *seen;
	server->serves = true;
	if (early)
		apply_all(server);
}

/* Ask the primary for a copy of its area; then this is its mirror. */
static int join(struct server *server)
{
	const struct tm_env env = members_env_other(&server->env);
	struct join ask = {.op = JOIN_COPY};
	struct head *head = server->pool.head;
	struct rpc_conn conn = {0};
	struct joined rsp;
	head->epoch = MOJIM_COPYING;
	pmem_persist(head, sizeof(*head));
	int rc = rpc_open(&conn, &env, sizeof(rsp), TM_LINE, NULL);
	if (!rc)
		rc = rpc_call(&conn, &ask, sizeof(ask), &rsp, sizeof(rsp), NULL);
	if (!rc && !(rc = rsp.status)) {
		flush_area(server);
		server->head = rsp.head;
		head->seq = rsp.head.seq; /* before the epoch, with which it counts */
		head->epoch = rsp.head.epoch;
		pmem_persist(head, sizeof(*head));
		ask.op = JOIN_COMMIT;
		ask.head = rsp.head;
		ask.alone = rsp.alone;
		rc = rpc_call(&conn, &ask, sizeof(ask), &rsp, sizeof(rsp), NULL);
		if (!rc)
			rc = rsp.status;
	}
	rpc_close(&conn);
	return rc;
}

/* What a server does besides answering: it applies records, takes over, or joins. */
static void keeper(void *arg)
{
	struct server *server = arg;
	uint64_t nap = KV_NAP_NS;
	for (;;) {
		struct rt_config now;
		if (is_primary(server)) {
			rt_sleep(1000000);
			continue;
		}
		server->serves = false;
		if (apply_next(server)) {
			nap = KV_NAP_NS;
			continue;
		}
		rt_config_get(&now);
		const bool member = now.members & members_bit(&server->env),
			   alive = now.alive >> now.primary & 1;
		if (now.primary == server->env.server || (member && !alive))
			take_over(server, &now);
		else if (!member && alive &&
			 (!server->under_way || has_bug(&server->params, joins_busy)))
			join(server); /* a request to the former primary would store after it */
		kv_nap_to(&nap, MOST_NAP_NS);
	}
}

int mojim_recover(const struct tm_env *env)
{
	const struct mojim_pool pool = mojim_pool_at(env->params, env->pm);
	const struct record *record;
	while ((record = mojim_record(&pool, env->params, pool.head->seq + 1)))
		mojim_apply(&pool, env->params, record);
	return 0;
}

int mojim_serve(const struct tm_env *env)
{
	struct server *server = calloc(1, sizeof(*server));
	struct tm_params more;
	const struct tm_env with = members_env_served(env, 2, &more);
	int rc;

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->env = *env;
	server->env.params = &server->params;
	server->pool = mojim_pool_at(&server->params, env->pm);
	server->record = calloc(1, mojim_record_bytes(&server->params));
	if (!server->record)
		return -ENOMEM;
	server->head = *server->pool.head;
	rc = rpc_server_init(&server->rpc, &with, mojim_message_bytes(env->params), handle, server);
	if (!rc)
		rc = rpc_server_export(&server->rpc, server->pool.log, server->pool.log_bytes,
				       IBV_ACCESS_LOCAL_WRITE | (int)server->rpc.qp_access);
	if (!rc)
		rc = rpc_server_export(&server->rpc, server->pool.area, server->pool.area_bytes,
				       IBV_ACCESS_LOCAL_WRITE | (int)server->rpc.qp_access);
	if (!rc)
		rc = kv_server_listen(&server->rpc);
	if (rc)
		return rc;
	if (!has_bug(&server->params, stays_member))
		members_leave(env); /* first: it takes over from nobody before it has joined */
	rc = rt_spawn("keeper", keeper, server);
	if (!rc)
		members_wait_both(env, &server->serves);
	return rc;
}
