/* SPDX-License-Identifier: BSD-3-Clause */
/* What RemoteLog promises, its switches, its sizes, and the way around its pool. See
 * remotelog.h. */
#include <errno.h>
#include <libpmem.h>
#include "core/rt/rt.h"
#include "core/stores/remotelog/remotelog.h"

static const struct tm_knob knobs[] = {
#define X(name, values, what) {#name, values, what},
	RL_KNOBS(X)
#undef X
		{0},
};

static const struct tm_variant variants[] = {
	{"w1n", "method=w1n", "Write, Send, acknowledgement of a server that does not flush", 0},
	{"w2", "method=w2", "Write, Flush", 0},
	{"w3", "method=w3", "Write, completion", 0},
	{"i1", "method=i1", "WriteImm, flush by the server, acknowledgement", 0},
	{"i2", "method=i2", "WriteImm, Flush", 0},
	{"i3", "method=i3", "WriteImm, completion", 0},
	{"s1", "method=s1", "Send, copy and flush by the server, acknowledgement", 0},
	{"s2", "method=s2", "Send, copy by the server, acknowledgement", 0},
	{"s3", "method=s3", "Send, Flush", 0},
	{"s4", "method=s4", "Send, completion", 0},
	{"wc", "method=wc", "Write, Commit", 0},
	{"cw1", "method=cw1", "twice: Write, Send, flush by the server, acknowledgement", 0},
	{"cw2", "method=cw2", "Write, Flush, AtomicWrite of the tail, Flush", 0},
	{"cw2p", "method=cw2p",
	 "the same with a Write of the tail, which may overtake the first Flush", 0},
	{"cw2c", "method=cw2c", "Write, Flush, completion, Write of the tail, Flush", 0},
	{"cw2f", "method=cw2f", "Write, Flush, fenced Write of the tail, Flush", 0},
	{"cw3", "method=cw3", "Write, Write of the tail, Flush", 0},
	{"cw4", "method=cw4", "Write, Write of the tail, completion", 0},
	{"ci1", "method=ci1", "twice: WriteImm, flush by the server, acknowledgement", 0},
	{"ci2", "method=ci2", "twice: WriteImm, Flush, completion", 0},
	{"ci3", "method=ci3", "WriteImm, WriteImm of the tail, Flush", 0},
	{"ci4", "method=ci4", "WriteImm, WriteImm of the tail, completion", 0},
	{"cs1", "method=cs1",
	 "Send of both, copy and flush by the server one after the other, acknowledgement", 0},
	{"cs1x", "method=cs1x",
	 "Send of both, the server copies both and then flushes both, acknowledgement", 0},
	{"cs2", "method=cs2", "Send of both, copies by the server, acknowledgement", 0},
	{"cs3", "method=cs3", "Send of both, Flush", 0},
	{"cs4", "method=cs4", "Send of both, completion", 0},
	{"cwc", "method=cwc", "Write, Commit, AtomicWrite of the tail, Commit", 0},
	{"cwcp", "method=cwcp",
	 "the same with a Write of the tail, which may overtake the first Commit", 0},
	{"ring", "slots=2", "Write, Send, flush, acknowledgement; into a ring of two slots", 0},

	{"durable_get", "get=durable",
	 "A GET asks the server, which makes durable what it returns: DUR holds beside appends.",
	 0},
	{"wrap", "numbers=wrap", "records' numbers begin shortly before an immediate's end", 0},

	{"two_qps", "qps=two",
	 "messages have a queue pair of their own: one that says \"flush this record\" may be "
	 "handled before the record's WRITE has landed",
	 TM_BIT(TM_DUR)},
	{"two_qps_wait", "qps=two_wait",
	 "the same, and the message waits for the WRITE's completion, which does not say that it "
	 "is visible",
	 TM_BIT(TM_DUR)},
	{"imm_truncated", "method=i1 numbers=wrap bug=imm_truncated",
	 "the server takes what an immediate has of a number for all of it: it finds that the "
	 "record "
	 "has been collected, and flushes nothing",
	 TM_BIT(TM_DUR) | TM_BIT(TM_OK)},
	{"seq_unchecked", "slots=2 seq=unchecked",
	 "recovery takes records of the ring's previous lap for new ones: their checksums are "
	 "right",
	 TM_BIT(TM_DUR)},
	{"gc_early", "slots=2 bug=gc_early",
	 "the head passes a record before the applied table has it for good",
	 TM_BIT(TM_DUR) | TM_BIT(TM_FSCK)},
	{"gc_short", "slots=2 bug=gc_short",
	 "of a record in the applied table so many bytes are flushed as its value has: the header "
	 "is not counted",
	 TM_BIT(TM_DUR) | TM_BIT(TM_FSCK)},
	{"gc_dirty", "slots=2 bug=gc_dirty",
	 "a record that is visible but not durable is taken into the table: a power failure leaves "
	 "half of it there and nothing in the log",
	 TM_BIT(TM_DUR) | TM_BIT(TM_FSCK)},
	{"room_early", "method=w2 ddio=off slots=2 bug=room_early",
	 "clients learn that there is room before the head is durable: recovery starts at a record "
	 "that has been overwritten",
	 TM_BIT(TM_DUR) | TM_BIT(TM_FSCK)},
	{"repost_early", "method=s3 rqwrb=pm ddio=off bug=repost_early",
	 "a receive buffer in PM is posted again when its record is in the log, not when it is "
	 "durable there",
	 TM_BIT(TM_DUR)},
	{"recover_head", "slots=2 bug=recover_head",
	 "recovery collects the ring and does not make the new head durable: after a second "
	 "failure "
	 "the log begins at a record that has been overwritten",
	 TM_BIT(TM_DUR) | TM_BIT(TM_FSCK)},
	{"recover_cached", "bug=recover_cached",
	 "recovery counts a record that is in a cache only, as the process alone has died, and "
	 "does "
	 "not make it durable: a power failure leaves a gap before later ones",
	 TM_BIT(TM_DUR)},
	{"tail_untold", "method=cw1 get=durable bug=tail_untold",
	 "a message about the tail makes the record durable once more, and not the tail",
	 TM_BIT(TM_DUR)},
	{"head_first", "method=cw1 slots=2 get=durable bug=head_first",
	 "the head passes a record before the tail that counts it is durable", TM_BIT(TM_FSCK)},
	{"clear_one", "method=w3 bug=clear_one",
	 "recovery clears the first slot after a gap only: a record further on counts again, once "
	 "the gap is filled",
	 TM_BIT(TM_FSCK)},
	{0},
};

uint64_t rl_span(const struct tm_params *params)
{
	return kv_round_up(sizeof(struct rl_record) + params->max_vlen, TM_LINE);
}

bool rl_ring(const struct tm_params *params)
{
	return rl_knobs(params)->slots != 0;
}

uint64_t rl_slots(const struct tm_params *params)
{
	const uint8_t ring[] = {0, 2, 4, 16}; /* in the order of the knob's values */

	return rl_ring(params) ? ring[rl_knobs(params)->slots] : params->updates;
}

uint64_t rl_off(const struct tm_params *params, uint64_t seq)
{
	return RL_LOG + (seq - 1) % rl_slots(params) * rl_span(params);
}

uint64_t rl_log_end(const struct tm_params *params)
{
	return RL_LOG + rl_slots(params) * rl_span(params);
}

uint64_t rl_table_end(const struct tm_params *params)
{
	return rl_log_end(params) + (rl_ring(params) ? params->keys * rl_span(params) : 0);
}

size_t rl_msg_bytes(const struct tm_params *params)
{
	return kv_round_up(sizeof(struct rl_msg) + params->max_vlen, TM_LINE);
}

static size_t pm_bytes(const struct tm_params *params)
{
	size_t buffers = params->rqwrb_pm ? rpc_server_msgs_bytes(params, rl_msg_bytes(params)) : 0;

	return rl_table_end(params) + kv_round_up(buffers, TM_LINE);
}

static unsigned regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	const struct tm_region all[] = {
		{"head", 0, RL_TAIL},
		{"tail", RL_TAIL, RL_LOG - RL_TAIL},
		{"log", RL_LOG, rl_log_end(params) - RL_LOG},
		{"applied", rl_log_end(params), rl_table_end(params) - rl_log_end(params)},
		{"buffers", rl_table_end(params), pm_bytes(params) - rl_table_end(params)},
	};
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].len && n < max)
			out[n] = all[i];
		n += all[i].len != 0;
	}
	return n;
}

uint32_t rl_crc(const struct rl_record *record)
{
	size_t head = offsetof(struct rl_record, value) - offsetof(struct rl_record, len);

	return kv_crc(&record->len, head + record->len);
}

bool rl_whole(const struct tm_params *params, const struct rl_record *record)
{
	if (record->len > params->max_vlen)
		return false;
	return rl_knobs(params)->crc || rt_check(rl_crc(record) == record->crc);
}

bool rl_intact(const struct tm_params *params, const struct rl_record *record, uint64_t seq)
{
	return rt_check(record->seq == seq) && rl_whole(params, record);
}

uint64_t rl_before_first(const struct tm_params *params)
{
	return rl_knobs(params)->numbers ? RL_IMM_NUMBERS - 2 : 0;
}

uint64_t rl_head(const struct tm_params *params, const uint8_t *pm)
{
	return rl_ring(params) ? *(const uint64_t *)(pm + RL_HEAD) : rl_before_first(params);
}

uint64_t rl_end(const struct tm_params *params, uint8_t *pm)
{
	uint64_t head = rl_head(params, pm), end = head;

	if (rl_method(params)->compound) {
		end = *(const uint64_t *)(pm + RL_TAIL);
		return end > head
			       ? end
			       : head; /* the collector's tail is durable, a client's need not be */
	}
	while (end - head < rl_slots(params) &&
	       rl_intact(params, rl_slot(params, pm, end + 1), end + 1))
		end++;
	return end;
}

size_t rl_tail_bytes(const struct tm_params *params)
{
	return rl_knobs(params)->tail ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

void rl_make_tail(const struct tm_params *params, uint64_t tail[2], uint64_t seq)
{
	tail[0] = seq;
	if (rl_knobs(params)->tail)
		tail[1] = seq * rl_span(params);
}

void rl_persist_tail(const struct tm_params *params, uint8_t *pm)
{
	pmem_persist(pm + RL_TAIL, rl_tail_bytes(params));
}

static const struct tm_overhead overheads[] = {
	{"record", sizeof(struct rl_record), false},
	{"message with a record", sizeof(struct rl_msg), false},
	{0},
};

static const struct tm_error errors[] = {
	{-ETIMEDOUT, TM_PUT | TM_DEL,
	 TM_PEER_FAILED | TM_LINK_LOST | TM_CALL_FAILED | TM_SERVER_DIED,
	 "Who dies or fails while it appends never gives the lock back."},
	{0},
};

static const struct tm_shape shapes[] = {
	{.name = "ring"},
	{.name = "wrap"},
	{.name = "ring+wrap"},
	{.name = "durable_get"},
	{.name = "ring+durable_get"},
	{.name = "cw1+ring+durable_get"},
	{.name = "ring+durable_get+calls=fail"},
	{.name = "i1+wrap+durable_get"},
	{.name = "ci1+wrap+durable_get"},
	{.name = "w1n+domain=mhp"},
	{.name = "w2+durable_get+ddio=off"},
	{.name = "w3"},
	{.name = "w3+domain=wsp"},
	{.name = "i1+durable_get"},
	{.name = "i2+durable_get+ddio=off"},
	{.name = "i3+domain=wsp"},
	{.name = "s1+durable_get"},
	{.name = "s2+domain=mhp"},
	{.name = "s3+durable_get+ddio=off+rqwrb=pm"},
	{.name = "s4+rqwrb=pm"},
	{.name = "s4+domain=wsp+rqwrb=pm"},
	{.name = "cw1+durable_get"},
	{.name = "cw2+durable_get+ddio=off"},
	{.name = "cw2p+durable_get+ddio=off"},
	{.name = "cw2c+durable_get+ddio=off"},
	{.name = "cw2f+durable_get+ddio=off"},
	{.name = "cw3+domain=mhp"},
	{.name = "cw4+domain=wsp"},
	{.name = "ci1+durable_get"},
	{.name = "ci2+durable_get+ddio=off"},
	{.name = "ci3+domain=mhp"},
	{.name = "ci4+domain=wsp"},
	{.name = "cs1+durable_get"},
	{.name = "cs1x+durable_get"},
	{.name = "cs2+domain=mhp"},
	{.name = "cs3+durable_get+ddio=off+rqwrb=pm"},
	{.name = "cs4+domain=wsp+rqwrb=pm"},
	{.name = NULL},
};

const struct tm_store remotelog_store = {
	.name = "remotelog",
	.what = "RemoteLog: a log in remote PM, appended to by each method of the remote "
		"persistence taxonomy",
	.fsck_at_rest = true,
	/* Not NORES: a PUT that fails after its record was written may count later. */
	.promises = TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) |
		    TM_BIT(TM_KEEP) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK),
	.knobs = knobs,
	.variants = variants,
	.overheads = overheads,
	.errors = errors,
	/* Each method, on hardware for which it is meant (RP tables 2 and 3). */
	.shapes = shapes,
	.pm_bytes = pm_bytes,
	.regions = regions,
	.format = rl_format,
	.recover = rl_recover,
	.serve = rl_serve,
	.fsck = rl_fsck,
	.open = rl_open,
	.put = rl_put,
	.get = rl_get,
	.del = rl_del,
	.methods = &rl_methods,
};
