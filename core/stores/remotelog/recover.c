/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An empty pool, a pool after a power failure, and its check.
 *
 * Singleton: the log begins after the durable head and ends before the first record that
 * is not intact or has not the number that comes next. Compound: the tail says where the log
 * ends, and is trusted; that each record up to it is intact is what the methods promise,
 * and what the check checks.
 *
 * With receive buffers in PM, messages that the server never applied may still be in
 * some: the intact record with the number that comes next is applied, and durable, and so
 * on, before the buffers are posted again.
 *
 * What lies after the end, in slots and in buffers, is cleared, or else it would count
 * again once the gap is filled.
 *
 * Whatever counts is made durable before anything is built on it: if the process alone has died, it
 * may be in a cache only.
 *
 * A ring's log is collected to its end. The first record's entry may be half-written, and
 * must be written again in any case.
 */
#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include "core/stores/remotelog/remotelog.h"

int rl_format(const struct tm_env *env)
{
	const struct tm_params *params = env->params;

	*(uint64_t *)env->pm = RL_MAGIC;
	if (rl_ring(params) && rl_before_first(params))
		*(uint64_t *)(env->pm + RL_HEAD) = rl_before_first(params);
	pmem_persist(env->pm, RL_HEAD + sizeof(uint64_t));
	return 0;
}

/* The last record's number, as the pool alone says. */
static uint64_t scan(const struct tm_params *params, uint8_t *pm)
{
	uint64_t head = rl_head(params, pm), end = head;

	if (!rl_knobs(params)->seq || rl_method(params)->compound)
		return rl_end(params, pm);
	while (end - head < rl_slots(params) && rl_whole(params, rl_slot(params, pm, end + 1)))
		end++;
	return end;
}

/* --- receive buffers --- */

/* The first one's message, the one after it; NULL: no more. */
static struct rl_msg *next_buffer(const struct tm_env *env, const struct rl_msg *msg)
{
	const struct tm_params *params = env->params;
	uint8_t *next = msg ? (uint8_t *)msg + rl_msg_bytes(params)
			    : env->pm + rl_table_end(params);

	if (!params->rqwrb_pm || rl_knobs(params)->scan_buffers)
		return NULL;
	return next < env->pm + env->pm_len ? (struct rl_msg *)next : NULL;
}

/* The record number seq; NULL: none has it. */
static const struct rl_record *in_buffers(const struct tm_env *env, uint64_t seq)
{
	for (const struct rl_msg *msg = NULL; (msg = next_buffer(env, msg));)
		if (rl_intact(env->params, &msg->record, seq))
			return &msg->record;
	return NULL;
}

/* Messages with records after the last one will never be applied. */
static void clear_buffers(const struct tm_env *env, uint64_t last)
{
	for (struct rl_msg *msg = NULL; (msg = next_buffer(env, msg));) {
		if (msg->record.seq <= last)
			continue;
		msg->record.seq = 0;
		pmem_persist(&msg->record.seq, sizeof(msg->record.seq));
	}
}

static void apply(const struct tm_env *env, const struct rl_record *record, uint64_t seq)
{
	struct rl_record *to = rl_slot(env->params, env->pm, seq);

	memcpy(to, record, rl_record_bytes(record));
	pmem_persist(to, rl_record_bytes(record));
	if (!rl_method(env->params)->compound)
		return;
	rl_make_tail(env->params, (uint64_t *)(env->pm + RL_TAIL), seq);
	rl_persist_tail(env->params, env->pm);
}

/* --- recovery --- */

static void clear_behind(const struct tm_env *env, uint64_t head, uint64_t end)
{
	const struct tm_params *params = env->params;

	for (uint64_t seq = end + 1; seq - head <= rl_slots(params); seq++) {
		struct rl_record *later = rl_slot(params, env->pm, seq);

		if (rl_knobs(params)->bug == RL_CLEAR_ONE && seq > end + 1)
			break;
		if (later->seq <= end)
			continue;
		later->seq = 0;
		pmem_persist(&later->seq, sizeof(later->seq));
	}
}

/* A record that is not intact, but that the tail counts, stays for the check to see. */
static int collect_all(const struct tm_env *env, uint64_t end)
{
	const struct tm_params *params = env->params;
	int rc = 0;

	for (uint64_t seq = rl_head(params, env->pm) + 1; !rc && seq <= end; seq++) {
		if (!rl_knobs(params)->seq &&
		    !rl_intact(params, rl_slot(params, env->pm, seq), seq))
			break;
		rc = rl_collect(params, env->pm, NULL);
	}
	return rc;
}

static void persist_all(const struct tm_env *env, uint64_t head, uint64_t end)
{
	const struct tm_params *params = env->params;

	if (rl_knobs(params)->bug == RL_RECOVER_CACHED)
		return;
	for (uint64_t seq = head + 1; seq <= end; seq++) {
		struct rl_record *record = rl_slot(params, env->pm, seq);

		if (rl_intact(params, record, seq))
			pmem_persist(record, rl_record_bytes(record));
	}
	if (rl_method(params)->compound)
		rl_persist_tail(params, env->pm);
}

int rl_recover(const struct tm_env *env)
{
	const struct tm_params *params = env->params;
	const struct rl_record *record;

	if (*(uint64_t *)env->pm != RL_MAGIC)
		return -EINVAL;
	uint64_t head = rl_head(params, env->pm);
	uint64_t end = scan(params, env->pm);
	if (end - head > rl_slots(params))
		return -EINVAL;
	while (end - head < rl_slots(params) && (record = in_buffers(env, end + 1)))
		apply(env, record, ++end);
	persist_all(env, head, end);
	if (!rl_method(params)->compound)
		clear_behind(env, head, end);
	clear_buffers(env, end);
	return rl_ring(params) ? collect_all(env, end) : 0;
}

/* --- the check --- */

static void check_table(const struct tm_env *env, struct tm_fsck *fsck)
{
	const struct tm_params *params = env->params;

	for (unsigned i = 0; i < params->keys; i++) {
		unsigned long long off = rl_entry_off(params, i) - rl_log_end(params);
		const struct rl_record *entry = (const void *)(env->pm + rl_entry_off(params, i));

		if (entry->seq && !rl_whole(params, entry))
			fsck->bad(fsck, "applied+%#llx: half an entry", off);
		else if (entry->seq > rl_head(params, env->pm))
			fsck->bad(fsck, "applied+%#llx: a record that the head has not passed",
				  off);
	}
}

/* The collector makes the tail durable before the head passes what it counts. */
static void check_head(const struct tm_env *env, struct tm_fsck *fsck)
{
	uint64_t head = rl_head(env->params, env->pm);
	uint64_t tail = *(const uint64_t *)(env->pm + RL_TAIL);

	if (head > tail && head > rl_before_first(env->params))
		fsck->bad(fsck, "head+%#x: it has passed record %llu, the tail counts %llu",
			  RL_HEAD, (unsigned long long)head, (unsigned long long)tail);
}

/* A later message would be taken for the record with its number, when that is due. */
static void check_buffers(const struct tm_env *env, uint64_t end, struct tm_fsck *fsck)
{
	for (struct rl_msg *msg = NULL; (msg = next_buffer(env, msg));)
		if (msg->record.seq > end && rl_intact(env->params, &msg->record, msg->record.seq))
			fsck->bad(fsck, "buffers+%#llx: a record after the end of the log",
				  (unsigned long long)((uint8_t *)msg - env->pm -
						       rl_table_end(env->params)));
}

static void check_tail(const struct tm_env *env, struct tm_fsck *fsck)
{
	const uint64_t *tail = (const uint64_t *)(env->pm + RL_TAIL);
	uint64_t right[2] = {0, 0};

	rl_make_tail(env->params, right, tail[0]);
	if (tail[1] != right[1])
		fsck->bad(fsck,
			  "tail+0x8: %llu bytes are not the bytes of %llu records: half a tail",
			  (unsigned long long)tail[1], (unsigned long long)tail[0]);
}

void rl_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	const struct tm_params *params = env->params;
	bool compound = rl_method(params)->compound;
	uint64_t head = rl_head(params, env->pm), end = rl_end(params, env->pm);

	if (*(const uint64_t *)env->pm != RL_MAGIC)
		fsck->bad(fsck, "head+0: not a RemoteLog pool");
	if (end - head > rl_slots(params))
		fsck->bad(fsck, "tail+0: %llu records, there is room for %llu",
			  (unsigned long long)(end - head), (unsigned long long)rl_slots(params));
	for (uint64_t seq = head + 1; seq - head <= rl_slots(params); seq++) {
		unsigned long long off = rl_off(params, seq) - RL_LOG;
		const struct rl_record *record = rl_slot(params, env->pm, seq);

		if (seq <= end && !rl_intact(params, record, seq))
			fsck->bad(
				fsck,
				"log+%#llx: the tail is ahead of this record, which is not intact",
				off);
		if (seq > end && !compound && record->seq > end)
			fsck->bad(fsck, "log+%#llx: a record after the end of the log", off);
	}
	if (rl_ring(params))
		check_table(env, fsck);
	if (rl_ring(params) && compound)
		check_head(env, fsck);
	check_buffers(env, end, fsck);
	if (compound && rl_knobs(params)->tail)
		check_tail(env, fsck);
}
