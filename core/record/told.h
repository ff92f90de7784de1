/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RECORD_TOLD_H
#define TM_RECORD_TOLD_H
/*
 * What the Valgrind tool tells the recorder in the program that runs under it: a client request, of
 * which the CPU makes nothing otherwise. The tool includes this file, too, and knows no libc.
 */
#include <stdint.h>

#define TOLD_REQUEST 0x54500000u /* VG_USERREQ_TOOL_BASE('T', 'P') */
#define TOLD_FRAMES  3

enum told_kind { TOLD_STORE, TOLD_FLUSH, TOLD_FENCE };

struct told {
	uint64_t at;
	uint64_t value;		  /* STORE: its bytes */
	uint64_t ip[TOLD_FRAMES]; /* of the calls, the innermost first; 0: no more */
	uint32_t len;		  /* bytes; of a store at most 8 */
	uint32_t thread;	  /* as the kernel numbers it */
	uint32_t kind;
	uint32_t unused;
};

#endif
