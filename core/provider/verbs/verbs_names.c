/* SPDX-License-Identifier: BSD-3-Clause */
/* libibverbs' functions that translate enumerations of its headers: names and rates. */
#include "core/provider/verbs/verbs.h"
#include "core/rnic/rnic.h"
#include "core/verbs_compat.h"

#define NAMES(array) (sizeof(array) / sizeof(*(array)))

EXPORT const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_WR_FLUSH_ERR ? "Work Request Flushed Error"
					     : rnic_wc_status_str(status);
}

EXPORT const char *ibv_node_type_str(enum ibv_node_type type)
{
	return rnic_node_type_str(type);
}

EXPORT const char *ibv_port_state_str(enum ibv_port_state state)
{
	return rnic_port_state_str(state);
}

EXPORT const char *ibv_event_type_str(enum ibv_event_type type)
{
	return rnic_event_type_str(type);
}

/* For drivers: which words a newer libibverbs has for the requests. */
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);
EXPORT const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "rdma-write",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "rdma-write-with-imm",
		[IBV_WR_SEND] = "send",
		[IBV_WR_SEND_WITH_IMM] = "send-with-imm",
		[IBV_WR_RDMA_READ] = "rdma-read",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "atomic-cmp-and-swp",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "atomic-fetch-and-add",
		[IBV_WR_LOCAL_INV] = "local-inv",
		[IBV_WR_BIND_MW] = "bind-mw",
		[IBV_WR_SEND_WITH_INV] = "send-with-inv",
		[IBV_WR_TSO] = "tso",
		[IBV_WR_DRIVER1] = "driver1",
		[IBV_WR_FLUSH] = "flush",
		[IBV_WR_ATOMIC_WRITE] = "atomic-write",
	};
	return opcode < NAMES(names) && names[opcode] ? names[opcode] : "unknown";
}

/* --- rates --- */

/* Each rate as a multiple of 2.5 Gbit/s, where it is a whole one, and in Mbit/s. */
static const struct rate {
	int multiple, mbps;
} rates[] = {
	[IBV_RATE_2_5_GBPS] = {1, 2500},       [IBV_RATE_5_GBPS] = {2, 5000},
	[IBV_RATE_10_GBPS] = {4, 10000},       [IBV_RATE_20_GBPS] = {8, 20000},
	[IBV_RATE_30_GBPS] = {12, 30000},      [IBV_RATE_40_GBPS] = {16, 40000},
	[IBV_RATE_60_GBPS] = {24, 60000},      [IBV_RATE_80_GBPS] = {32, 80000},
	[IBV_RATE_120_GBPS] = {48, 120000},    [IBV_RATE_14_GBPS] = {0, 14062},
	[IBV_RATE_56_GBPS] = {0, 56250},       [IBV_RATE_112_GBPS] = {0, 112500},
	[IBV_RATE_168_GBPS] = {0, 168750},     [IBV_RATE_25_GBPS] = {0, 25781},
	[IBV_RATE_100_GBPS] = {0, 103125},     [IBV_RATE_200_GBPS] = {0, 206250},
	[IBV_RATE_300_GBPS] = {0, 309375},     [IBV_RATE_28_GBPS] = {11, 28125},
	[IBV_RATE_50_GBPS] = {20, 53125},      [IBV_RATE_400_GBPS] = {160, 425000},
	[IBV_RATE_600_GBPS] = {240, 637500},   [IBV_RATE_800_GBPS] = {320, 850000},
	[IBV_RATE_1200_GBPS] = {480, 1275000},
};

EXPORT int ibv_rate_to_mult(enum ibv_rate rate)
{
	return (size_t)rate < NAMES(rates) && rates[rate].multiple ? rates[rate].multiple : -1;
}

EXPORT enum ibv_rate mult_to_ibv_rate(int multiple)
{
	for (size_t i = 0; i < NAMES(rates); i++)
		if (multiple > 0 && rates[i].multiple == multiple)
			return (enum ibv_rate)i;
	return IBV_RATE_MAX;
}

EXPORT int ibv_rate_to_mbps(enum ibv_rate rate)
{
	return (size_t)rate < NAMES(rates) && rates[rate].mbps ? rates[rate].mbps : -1;
}

EXPORT enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	for (size_t i = 0; i < NAMES(rates); i++)
		if (mbps > 0 && rates[i].mbps == mbps)
			return (enum ibv_rate)i;
	return IBV_RATE_MAX;
}
