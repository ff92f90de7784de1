/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server: persists what it is told about, applies records that come in messages,
 * each as the method says, and looks records up (knob get). A message whose record it
 * applies is applied, and durable where the method wants that, before its buffer is
 * posted again: recovery relies on it when receive buffers are in PM.
 */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rnic/placement.h"
#include "core/rt/rt.h"
#include "core/stores/remotelog/remotelog.h"

struct rl_server {
	struct tm_params params;
	struct rpc_server rpc;
	uint8_t *pm;
	uint64_t *lock;
};

static struct rl_record *slot(const struct rl_server *server, uint64_t seq)
{
	return (struct rl_record *)(server->pm + rl_off(&server->params, seq));
}

static void set_tail(const struct rl_server *server, uint64_t seq)
{
	*(uint64_t *)(server->pm + RL_TAIL) = seq;
}

static void persist_record(const struct rl_server *server, uint64_t seq)
{
	pmem_persist(slot(server, seq), rl_span(&server->params));
}

static void persist_tail(const struct rl_server *server)
{
	pmem_persist(server->pm + RL_TAIL, sizeof(uint64_t));
}

static int apply(const struct rl_server *server, const struct rl_msg *msg, size_t len)
{
	const struct rl_method *method = rl_method(&server->params);
	size_t bytes = sizeof(msg->record) + msg->record.len;

	if (len < sizeof(*msg) || len - RL_MSG_HEAD != bytes)
		return -EPROTO;
	memcpy(slot(server, msg->seq), &msg->record, bytes);
	if (method->duty == RL_COPY_PERSIST)
		persist_record(server, msg->seq);
	if (method->compound)
		set_tail(server, msg->seq);
	if (method->duty == RL_COPY_BOTH_PERSIST)
		persist_record(server, msg->seq);
	if (method->compound && method->duty != RL_COPY)
		persist_tail(server);
	__atomic_store_n(server->lock, 2 * (msg->seq + 1), __ATOMIC_RELEASE);
	return 0;
}

/* Told of a record or of the tail, which has landed. */
static void told(const struct rl_server *server, uint64_t seq, bool tail)
{
	if (rl_method(&server->params)->duty != RL_PERSIST)
		return;
	if (tail)
		persist_tail(server);
	else
		persist_record(server, seq);
}

/* The newest record of the key, by the CPU. NULL: none. */
static const struct rl_record *look_up(const struct rl_server *server, const uint8_t key[TM_MAX_KEY])
{
	for (uint64_t seq = rl_count(&server->params, server->pm); seq; seq--) {
		const struct rl_record *record = slot(server, seq);

		if (rl_intact(&server->params, record, seq) && memcmp(record->key, key, TM_MAX_KEY) == 0)
			return record;
	}
	return NULL;
}

static size_t answer_lookup(const struct rl_server *server, const struct rl_msg *msg, struct rl_msg *reply)
{
	const struct rl_record *record = look_up(server, msg->record.key);

	reply->status = record ? 0 : -ENOENT;
	if (!record)
		return sizeof(*reply);
	memcpy(&reply->record, record, sizeof(*record) + record->len);
	return sizeof(*reply) + record->len;
}

static size_t handle(void *arg, const struct rpc_msg *in, void *out, size_t cap)
{
	struct rl_server *server = arg;
	const struct rl_method *method = rl_method(&server->params);
	const struct rl_msg *msg = in->bytes;
	struct rl_msg *reply = out;
	uint64_t seq = in->has_imm ? in->imm / 2 : 0;

	(void)cap; /* rl_msg_bytes(): both ends have it from the parameters */
	if (!in->has_imm && in->len >= RL_MSG_HEAD)
		seq = msg->seq;
	if (!in->has_imm && in->len == sizeof(*msg) && msg->op == RL_LOOKUP)
		return answer_lookup(server, msg, reply);
	if (seq == 0 || seq > server->params.updates) {
		reply->status = -EPROTO;
	} else if (in->has_imm) {
		told(server, seq, in->imm & 1);
		return method->step[0] == RL_IMM_CALL_A ? RL_MSG_HEAD : 0;
	} else if (msg->op == RL_APPEND) {
		reply->status = apply(server, msg, in->len);
		return method->step[0] == RL_SEND_CALL ? RL_MSG_HEAD : 0;
	} else {
		told(server, seq, msg->op == RL_FLUSH_B);
	}
	return RL_MSG_HEAD;
}

int rl_serve(const struct tm_env *env)
{
	struct rl_server *server = calloc(1, sizeof(*server));
	const int common = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_ATOMIC;
	uint64_t log_end = rl_log_end(env->params);
	int rc;

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->pm = env->pm;
	server->lock = calloc(1, sizeof(*server->lock));
	if (!server->lock)
		return -ENOMEM;
	*server->lock = 2 * (rl_count(&server->params, server->pm) + 1);
	rc = rpc_server_init_in(&server->rpc, env, rl_msg_bytes(env->params), handle, server,
				env->params->rqwrb_pm ? env->pm + log_end : NULL);
	server->rpc.qp_access |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL |
				 IBV_ACCESS_FLUSH_PERSISTENT;
	if (!rc) /* RL_POOL */
		rc = rpc_server_export(&server->rpc, env->pm, log_end,
				       common | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT);
	if (!rc) /* RL_LOCK */
		rc = rpc_server_export(&server->rpc, server->lock, sizeof(*server->lock), common);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	if (!rc)
		rc = rt_spawn("server", rpc_server_task, &server->rpc);
	return rc;
}
