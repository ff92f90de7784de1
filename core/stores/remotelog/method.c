/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The methods of RP, tables 2 and 3 and the variants in its text; and three with RDMA Commit. Which
 * of them is sound depends on the hardware: claims.txt and scenarios/taxonomy/taxonomy.txt say
 * where.
 */
#include "core/stores/remotelog/remotelog.h"

/* In the order of the knob's values. */
static const struct append_method methods[] = {
	{"w1", false, DUTY_PERSIST, {APPEND_WRITE_A, APPEND_CALL_A}},
	{"w1n", false, DUTY_NOTHING, {APPEND_WRITE_A, APPEND_CALL_A}},
	{"w2", false, DUTY_NOTHING, {APPEND_WRITE_A, APPEND_FLUSH_RECORD, APPEND_WAIT}},
	{"w3", false, DUTY_NOTHING, {APPEND_WRITE_A, APPEND_WAIT}},
	{"i1", false, DUTY_PERSIST, {APPEND_IMM_CALL_A}},
	{"i2", false, DUTY_NOTHING, {APPEND_IMM_A, APPEND_FLUSH_RECORD, APPEND_WAIT}},
	{"i3", false, DUTY_NOTHING, {APPEND_IMM_A, APPEND_WAIT}},
	{"s1", false, DUTY_COPY_PERSIST, {APPEND_SEND_CALL}},
	{"s2", false, DUTY_COPY, {APPEND_SEND_CALL}},
	{"s3", false, DUTY_COPY_PERSIST, {APPEND_SEND, APPEND_FLUSH_ALL, APPEND_WAIT}},
	{"s4", false, DUTY_COPY_PERSIST, {APPEND_SEND, APPEND_WAIT}},
	{"wc", false, DUTY_NOTHING, {APPEND_WRITE_A, APPEND_COMMIT_RECORD, APPEND_WAIT}},
	{"cw1", true, DUTY_PERSIST, {APPEND_WRITE_A, APPEND_CALL_A, APPEND_WRITE_B, APPEND_CALL_B}},
	{"cw2",
	 true,
	 DUTY_NOTHING,
	 {APPEND_WRITE_A, APPEND_FLUSH_RECORD, APPEND_ATOMIC_B, APPEND_FLUSH_TAIL, APPEND_WAIT}},
	{"cw2p",
	 true,
	 DUTY_NOTHING,
	 {APPEND_WRITE_A, APPEND_FLUSH_RECORD, APPEND_WRITE_B, APPEND_FLUSH_TAIL, APPEND_WAIT}},
	{"cw2c",
	 true,
	 DUTY_NOTHING,
	 {APPEND_WRITE_A, APPEND_FLUSH_RECORD, APPEND_WAIT, APPEND_WRITE_B, APPEND_FLUSH_TAIL,
	  APPEND_WAIT}},
	{"cw2f",
	 true,
	 DUTY_NOTHING,
	 {APPEND_WRITE_A, APPEND_FLUSH_RECORD, APPEND_FENCED_B, APPEND_FLUSH_TAIL, APPEND_WAIT}},
	{"cw3",
	 true,
	 DUTY_NOTHING,
	 {APPEND_WRITE_A, APPEND_WRITE_B, APPEND_FLUSH_ALL, APPEND_WAIT}},
	{"cw4", true, DUTY_NOTHING, {APPEND_WRITE_A, APPEND_WRITE_B, APPEND_WAIT}},
	{"ci1", true, DUTY_PERSIST, {APPEND_IMM_CALL_A, APPEND_IMM_CALL_B}},
	{"ci2",
	 true,
	 DUTY_NOTHING,
	 {APPEND_IMM_A, APPEND_FLUSH_RECORD, APPEND_WAIT, APPEND_IMM_B, APPEND_FLUSH_TAIL,
	  APPEND_WAIT}},
	{"ci3", true, DUTY_NOTHING, {APPEND_IMM_A, APPEND_IMM_B, APPEND_FLUSH_ALL, APPEND_WAIT}},
	{"ci4", true, DUTY_NOTHING, {APPEND_IMM_A, APPEND_IMM_B, APPEND_WAIT}},
	{"cs1", true, DUTY_COPY_PERSIST, {APPEND_SEND_CALL}},
	{"cs1x", true, DUTY_COPY_BOTH_PERSIST, {APPEND_SEND_CALL}},
	{"cs2", true, DUTY_COPY, {APPEND_SEND_CALL}},
	{"cs3", true, DUTY_COPY_PERSIST, {APPEND_SEND, APPEND_FLUSH_ALL, APPEND_WAIT}},
	{"cs4", true, DUTY_COPY_PERSIST, {APPEND_SEND, APPEND_WAIT}},
	{"cwc",
	 true,
	 DUTY_NOTHING,
	 {APPEND_WRITE_A, APPEND_COMMIT_RECORD, APPEND_ATOMIC_B, APPEND_COMMIT_TAIL, APPEND_WAIT}},
	{"cwcp",
	 true,
	 DUTY_NOTHING,
	 {APPEND_WRITE_A, APPEND_COMMIT_RECORD, APPEND_WRITE_B, APPEND_COMMIT_TAIL, APPEND_WAIT}},
};

const struct tm_append_methods rl_methods = {
	.knob = "method",
	.method = methods,
	.methods = sizeof(methods) / sizeof(methods[0]),
	.request_bytes = RL_MSG_HEAD,
	.record_bytes = sizeof(struct rl_record),
	.tail_bytes = rl_tail_bytes,
};

const struct append_method *rl_method(const struct tm_params *params)
{
	return &methods[rl_knobs(params)->method];
}

bool rl_server_unlocks(const struct append_method *method)
{
	return method->step[0] == APPEND_SEND_CALL;
}
