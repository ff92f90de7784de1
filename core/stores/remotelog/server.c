/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server: persists what messages announce, applies records that come in messages,
 * each as the method says, and looks records up (knob get). A message whose record it
 * applies is applied, and durable where the method wants that, before its buffer is
 * posted again: recovery relies on it when receive buffers are in PM. Messages come in turn,
 * whatever client sent them: the lock is given back after the message, on its connection. When
 * none is waiting the server collects (collect.c).
 */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/verbs_compat.h"
#include "core/rt/rt.h"
#include "core/stores/remotelog/remotelog.h"

struct rl_server {
	struct tm_params params;
	struct rpc_server rpc;
	uint8_t *pm;
	struct rl_words *words;
};

static struct rl_record *slot(const struct rl_server *server, uint64_t seq)
{
	return rl_slot(&server->params, server->pm, seq);
}

static void set_tail(const struct rl_server *server, uint64_t seq)
{
	rl_make_tail(&server->params, (uint64_t *)(server->pm + RL_TAIL), seq);
}

static void persist_record(const struct rl_server *server, uint64_t seq)
{
	pmem_persist(slot(server, seq), rl_span(&server->params));
}

static void copy_record(const struct rl_server *server, const struct rl_msg *msg, size_t bytes)
{
	if (rl_knobs(&server->params)->copy)
		pmem_memcpy(slot(server, msg->seq), &msg->record, bytes,
			    PMEM_F_MEM_NONTEMPORAL | PMEM_F_MEM_NODRAIN);
	else
		memcpy(slot(server, msg->seq), &msg->record, bytes);
}

static int apply(const struct rl_server *server, const struct rl_msg *msg, size_t len)
{
	const struct append_method *method = rl_method(&server->params);
	size_t bytes = rl_record_bytes(&msg->record);
	unsigned duty = method->duty;

	if (len < sizeof(*msg) || len - RL_MSG_HEAD != bytes || msg->seq <= server->words->head)
		return -EPROTO;
	if (rl_knobs(&server->params)->bug == RL_REPOST_EARLY)
		duty = DUTY_COPY; /* the collector will make it durable, if there is one */
	copy_record(server, msg, bytes);
	if (duty == DUTY_COPY_PERSIST)
		persist_record(server, msg->seq);
	if (method->compound)
		set_tail(server, msg->seq);
	if (duty == DUTY_COPY_BOTH_PERSIST)
		persist_record(server, msg->seq);
	if (method->compound && duty != DUTY_COPY)
		rl_persist_tail(&server->params, server->pm);
	if (rl_server_unlocks(method))
		__atomic_store_n(&server->words->lock, 2 * (msg->seq + 1), __ATOMIC_RELEASE);
	return 0;
}

/* A message announces a record or the tail, which has landed; and may have been collected since. */
static void told(const struct rl_server *server, uint64_t seq, bool tail)
{
	if (rl_method(&server->params)->duty != DUTY_PERSIST || seq <= server->words->head)
		return;
	if (tail && rl_knobs(&server->params)->bug != RL_TAIL_UNTOLD)
		rl_persist_tail(&server->params, server->pm);
	else
		persist_record(server, seq);
}

/* Before it is visible to any client; earlier records are durable already: appends take turns. */
static void make_durable(const struct rl_server *server, const struct rl_record *record)
{
	if (rl_knobs(&server->params)->get != RL_GET_DURABLE)
		return;
	pmem_persist(record, rl_record_bytes(record));
	if (rl_method(&server->params)->compound)
		rl_persist_tail(&server->params, server->pm);
}

/* The newest record of the key, by the CPU. NULL: none. */
static const struct rl_record *look_up(const struct rl_server *server,
				       const uint8_t key[TM_MAX_KEY])
{
	const struct tm_params *params = &server->params;
	uint64_t head = rl_head(params, server->pm);
	const struct rl_record *record;

	for (uint64_t seq = rl_end(params, server->pm); seq > head; seq--) {
		record = slot(server, seq);
		if (rl_intact(params, record, seq) &&
		    rt_check(memcmp(record->key, key, TM_MAX_KEY) == 0)) {
			make_durable(server, record);
			return record;
		}
	}
	record = rl_ring(params) ? rl_entry(params, server->pm, key) : NULL;
	return record && record->seq && rl_whole(params, record) ? record : NULL;
}

static size_t answer_lookup(const struct rl_server *server, const struct rl_msg *msg,
			    struct rl_msg *reply)
{
	const struct rl_record *record = look_up(server, msg->record.key);

	reply->status = record ? 0 : -ENOENT;
	if (!record)
		return sizeof(*reply);
	memcpy(&reply->record, record, rl_record_bytes(record));
	return sizeof(*reply) + record->len;
}

/* The whole number of which an immediate has the last bits: the one that is nearest to the head. */
static uint64_t whole_number(const struct rl_server *server, uint32_t imm)
{
	uint64_t head = server->words->head, bits = imm / 2, ahead = bits - head;

	if (rl_knobs(&server->params)->bug == RL_IMM_TRUNCATED)
		return bits;
	ahead %= RL_IMM_NUMBERS;
	return ahead < RL_IMM_NUMBERS / 2 ? head + ahead : head + ahead - RL_IMM_NUMBERS;
}

static size_t handle_message(void *arg, const struct rpc_msg *in, void *out, size_t cap)
{
	struct rl_server *server = arg;
	const struct append_method *method = rl_method(&server->params);
	const struct rl_msg *msg = in->bytes;
	struct rl_msg *reply = out;
	uint64_t seq = in->has_imm ? whole_number(server, in->imm) : 0;

	(void)cap; /* rl_msg_bytes(): both ends have it from the parameters */
	if (!in->has_imm && in->len >= RL_MSG_HEAD)
		seq = msg->seq;
	if (!in->has_imm && in->len == sizeof(*msg) && msg->op == RL_LOOKUP)
		return answer_lookup(server, msg, reply);
	if (!seq || seq > server->words->head + rl_slots(&server->params)) {
		reply->status = -EPROTO;
	} else if (in->has_imm) {
		told(server, seq, in->imm & 1);
		return method->step[0] == APPEND_IMM_CALL_A ? RL_MSG_HEAD : 0;
	} else if (msg->op == RL_APPEND) {
		reply->status = apply(server, msg, in->len);
		return method->step[0] == APPEND_SEND_CALL ? RL_MSG_HEAD : 0;
	} else {
		told(server, seq, msg->op == RL_FLUSH_B);
	}
	return RL_MSG_HEAD;
}

/* Is there a record after the head? Compound: one that the tail counts. */
static bool can_collect(const struct rl_server *server)
{
	if (!rl_ring(&server->params))
		return false;
	uint64_t head = rl_head(&server->params, server->pm);
	if (rl_method(&server->params)->compound)
		return head < *(const uint64_t *)(server->pm + RL_TAIL);
	return rl_intact(&server->params, slot(server, head + 1), head + 1);
}

static void serve(void *arg)
{
	struct rl_server *server = arg;

	for (;;) {
		if (rpc_server_poll(&server->rpc))
			continue;
		if (!can_collect(server) || rl_collect(&server->params, server->pm, server->words))
			rt_yield();
	}
}

int rl_serve(const struct tm_env *env)
{
	struct rl_server *server = calloc(1, sizeof(*server));
	const int common = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	uint64_t end = rl_table_end(env->params);

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->pm = env->pm;
	server->words = calloc(1, sizeof(*server->words));
	if (!server->words)
		return -ENOMEM;
	server->words->lock = 2 * (rl_end(&server->params, server->pm) + 1);
	server->words->head = rl_head(&server->params, server->pm);
	int rc = rpc_server_init_in(&server->rpc, env, rl_msg_bytes(env->params), handle_message,
				    server, env->params->rqwrb_pm ? env->pm + end : NULL);
	server->rpc.qp_access |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL |
				 IBV_ACCESS_FLUSH_PERSISTENT;
	if (!rc) /* RL_POOL */
		rc = rpc_server_export(&server->rpc, env->pm, end,
				       common | IBV_ACCESS_FLUSH_GLOBAL |
					       IBV_ACCESS_FLUSH_PERSISTENT);
	if (!rc) /* RL_WORDS */
		rc = rpc_server_export(&server->rpc, server->words, sizeof(*server->words), common);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	if (!rc)
		rc = rt_spawn("server", serve, server);
	return rc;
}
