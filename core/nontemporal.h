/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_NONTEMPORAL_H
#define TM_NONTEMPORAL_H
/* Which of libpmem's copies are made by non-temporal stores: in the simulation, and in recordings,
 * whose builds need not have <libpmem.h>. The flags are PMEM_F_MEM_*, or PMEM2_F_MEM_*. */
#include <stdbool.h>
#include <stddef.h>

enum {
	COPY_NODRAIN = 1 << 0,
	COPY_NONTEMPORAL = 1 << 1,
	COPY_TEMPORAL = 1 << 2,
	COPY_WC = 1 << 3,
	COPY_WB = 1 << 4,
	COPY_NOFLUSH = 1 << 5
};

#define NT_FROM 256 /* bytes: without a flag, copies as long as that are */

static inline bool copies_nontemporally(size_t len, unsigned flags)
{
	if (!len || flags & COPY_NOFLUSH)
		return false;
	return flags & (COPY_NONTEMPORAL | COPY_WC) ||
	       (len >= NT_FROM && !(flags & (COPY_TEMPORAL | COPY_WB)));
}

#endif
