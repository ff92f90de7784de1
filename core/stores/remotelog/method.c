/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The methods of RP, tables 2 and 3 and the variants in its text. Which of them is
 * sound depends on the hardware: claims.txt and tests/core/stores/test_remotelog.c say
 * where.
 */
#include "core/stores/remotelog/remotelog.h"

/* In the order of the knob's values. */
static const struct rl_method methods[] = {
	{"w1", false, RL_PERSIST, {RL_WRITE_A, RL_CALL_A}},
	{"w1n", false, RL_NOTHING, {RL_WRITE_A, RL_CALL_A}},
	{"w2", false, RL_NOTHING, {RL_WRITE_A, RL_FLUSH_RECORD, RL_WAIT}},
	{"w3", false, RL_NOTHING, {RL_WRITE_A, RL_WAIT}},
	{"i1", false, RL_PERSIST, {RL_IMM_CALL_A}},
	{"i2", false, RL_NOTHING, {RL_IMM_A, RL_FLUSH_RECORD, RL_WAIT}},
	{"i3", false, RL_NOTHING, {RL_IMM_A, RL_WAIT}},
	{"s1", false, RL_COPY_PERSIST, {RL_SEND_CALL}},
	{"s2", false, RL_COPY, {RL_SEND_CALL}},
	{"s3", false, RL_COPY_PERSIST, {RL_SEND, RL_FLUSH_ALL, RL_WAIT}},
	{"s4", false, RL_COPY_PERSIST, {RL_SEND, RL_WAIT}},
	{"cw1", true, RL_PERSIST, {RL_WRITE_A, RL_CALL_A, RL_WRITE_B, RL_CALL_B}},
	{"cw2",
	 true,
	 RL_NOTHING,
	 {RL_WRITE_A, RL_FLUSH_RECORD, RL_ATOMIC_B, RL_FLUSH_TAIL, RL_WAIT}},
	{"cw2p",
	 true,
	 RL_NOTHING,
	 {RL_WRITE_A, RL_FLUSH_RECORD, RL_WRITE_B, RL_FLUSH_TAIL, RL_WAIT}},
	{"cw2c",
	 true,
	 RL_NOTHING,
	 {RL_WRITE_A, RL_FLUSH_RECORD, RL_WAIT, RL_WRITE_B, RL_FLUSH_TAIL, RL_WAIT}},
	{"cw2f",
	 true,
	 RL_NOTHING,
	 {RL_WRITE_A, RL_FLUSH_RECORD, RL_FENCED_B, RL_FLUSH_TAIL, RL_WAIT}},
	{"cw3", true, RL_NOTHING, {RL_WRITE_A, RL_WRITE_B, RL_FLUSH_ALL, RL_WAIT}},
	{"cw4", true, RL_NOTHING, {RL_WRITE_A, RL_WRITE_B, RL_WAIT}},
	{"ci1", true, RL_PERSIST, {RL_IMM_CALL_A, RL_IMM_CALL_B}},
	{"ci2",
	 true,
	 RL_NOTHING,
	 {RL_IMM_A, RL_FLUSH_RECORD, RL_WAIT, RL_IMM_B, RL_FLUSH_TAIL, RL_WAIT}},
	{"ci3", true, RL_NOTHING, {RL_IMM_A, RL_IMM_B, RL_FLUSH_ALL, RL_WAIT}},
	{"ci4", true, RL_NOTHING, {RL_IMM_A, RL_IMM_B, RL_WAIT}},
	{"cs1", true, RL_COPY_PERSIST, {RL_SEND_CALL}},
	{"cs1x", true, RL_COPY_BOTH_PERSIST, {RL_SEND_CALL}},
	{"cs2", true, RL_COPY, {RL_SEND_CALL}},
	{"cs3", true, RL_COPY_PERSIST, {RL_SEND, RL_FLUSH_ALL, RL_WAIT}},
	{"cs4", true, RL_COPY_PERSIST, {RL_SEND, RL_WAIT}},
};

const struct rl_method *rl_method(const struct tm_params *params)
{
	return &methods[rl_knob(params, RL_METHOD)];
}

bool rl_server_unlocks(const struct rl_method *method)
{
	return method->step[0] == RL_SEND_CALL;
}
