/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_INJECTED_H
#define TM_LIVE_INJECTED_H
/*
 * What explains that an operation fails in the live world, as far as a process can know it: counts
 * that only grow while it lives. A recording has them with each operation that failed
 * (checker/live/recording.h); contract OK is judged by them.
 */
#include <stdint.h>

struct injected {
	uint32_t calls;	   /* that libfiu has let fail, in the whole process */
	uint32_t links;	   /* connections that the NIC gave up: nobody answered its retries */
	uint32_t dropped;  /* of a server: how often it has closed this client's connections */
	uint32_t departed; /* of a server: clients that have gone away */
};

#endif
