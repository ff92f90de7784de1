/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_INJECTED_H
#define TM_LIVE_INJECTED_H
/*
 * What explains that an operation fails in the live world, as far as a process can know it: counts
 * that only grow while it lives. A recording has them with each operation that failed
 * (checker/live/recording.h); contract OK is judged by them. And what the NIC said, which explains
 * nothing, but shows whose fault the error is.
 */
#include <stdint.h>

struct injected {
	uint32_t calls;	   /* that libfiu has let fail, in the whole process */
	uint32_t links;	   /* connections that the NIC gave up: its retries were not answered */
	uint32_t dropped;  /* of a server: how often it has closed this client's connections */
	uint32_t departed; /* of a server: clients that have gone away */
};

/* The first completion with an error that a host has got. It does not say which operation
 * failed. */
struct bad_completion {
	uint8_t status; /* enum ibv_wc_status; 0: there was none */
	uint8_t posted; /* enum ibv_wr_opcode: the last request on its queue pair; POSTED_UNKNOWN */
	uint32_t vendor;
};
#define POSTED_UNKNOWN UINT8_MAX

#endif
