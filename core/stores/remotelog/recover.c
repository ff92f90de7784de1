/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An empty pool, a pool after a power failure, and its check.
 *
 * Singleton: the log ends before the first record that is not intact. What lies behind
 * is cleared, or else it would count again once the gap is filled. Compound: the tail
 * says where the log ends, and is trusted; that each record before it is intact is what
 * the methods promise, and what the check checks.
 *
 * With receive buffers in PM, a message that the server never applied may still be in
 * one: an intact record with the number that comes next is applied, in turn, and durable
 * before the buffers are posted again.
 */
#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include "core/stores/remotelog/remotelog.h"

int rl_format(const struct tm_env *env)
{
	*(uint64_t *)env->pm = RL_MAGIC;
	pmem_persist(env->pm, sizeof(uint64_t));
	return 0;
}

/* The record number seq in a receive buffer; NULL: there is none. */
static const struct rl_record *in_buffers(const struct tm_env *env, uint64_t seq)
{
	const struct tm_params *params = env->params;
	const uint8_t *end = env->pm + env->pm_len;

	if (!params->rqwrb_pm || rl_knob(params, RL_SCAN_BUFFERS))
		return NULL;
	for (const uint8_t *buf = env->pm + rl_log_end(params); buf < end; buf += rl_msg_bytes(params)) {
		const struct rl_msg *msg = (const struct rl_msg *)buf;

		if (rl_intact(params, &msg->record, seq))
			return &msg->record;
	}
	return NULL;
}

static void apply(const struct tm_env *env, const struct rl_record *record, uint64_t seq)
{
	uint8_t *to = env->pm + rl_off(env->params, seq);

	memcpy(to, record, sizeof(*record) + record->len);
	pmem_persist(to, sizeof(*record) + record->len);
	if (!rl_method(env->params)->compound)
		return;
	*(uint64_t *)(env->pm + RL_TAIL) = seq;
	pmem_persist(env->pm + RL_TAIL, sizeof(uint64_t));
}

int rl_recover(const struct tm_env *env)
{
	const struct tm_params *params = env->params;
	const struct rl_record *record;
	uint64_t count;

	if (*(uint64_t *)env->pm != RL_MAGIC)
		return -EINVAL;
	count = rl_count(params, env->pm);
	if (count > params->updates)
		return -EINVAL;
	while (count < params->updates && (record = in_buffers(env, count + 1)))
		apply(env, record, ++count);
	if (rl_method(params)->compound)
		return 0;
	for (uint64_t seq = count + 1; seq <= params->updates; seq++) {
		struct rl_record *behind = (struct rl_record *)(env->pm + rl_off(params, seq));

		if (!behind->seq)
			continue;
		behind->seq = 0;
		pmem_persist(&behind->seq, sizeof(behind->seq));
	}
	return 0;
}

void rl_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	const struct tm_params *params = env->params;
	bool compound = rl_method(params)->compound;
	uint64_t count = rl_count(params, env->pm);

	if (*(const uint64_t *)env->pm != RL_MAGIC)
		fsck->bad(fsck, "magic+0: not a RemoteLog pool");
	if (count > params->updates)
		fsck->bad(fsck, "tail+0: %llu records, there is room for %u", (unsigned long long)count,
			  params->updates);
	for (uint64_t seq = 1; seq <= params->updates; seq++) {
		unsigned long long off = rl_off(params, seq) - RL_LOG;
		const struct rl_record *record = (const struct rl_record *)(env->pm + RL_LOG + off);

		if (seq <= count && !rl_intact(params, record, seq))
			fsck->bad(fsck, "log+%#llx: the tail is ahead of this record, which is not intact",
				  off);
		if (seq > count && !compound && record->seq)
			fsck->bad(fsck, "log+%#llx: a record behind the end of the log", off);
	}
}
