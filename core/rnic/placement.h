/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PLACEMENT_H
#define TM_PLACEMENT_H
/*
 * RDMA FLUSH and ATOMIC WRITE as store code posts them (InfiniBand Architecture
 * Specification, annex A19, memory placement extensions).
 *
 * rdma-core has names for both, and newer ones than many systems install: what
 * follows has its names and its values. They are macros, so that they also work
 * with a <infiniband/verbs.h> that has them as enumerators.
 *
 * Both are posted through ibv_post_send(). An ATOMIC WRITE is a work request like
 * a WRITE of 8 bytes, gathered or inline, to an address that is a multiple of 8.
 * A FLUSH has no member of its own in struct ibv_send_wr; flush_wr() fills the one
 * of the atomics.
 */
#include <infiniband/verbs.h>

#define IBV_WR_FLUSH	    ((enum ibv_wr_opcode)14)
#define IBV_WR_ATOMIC_WRITE ((enum ibv_wr_opcode)15)
#define IBV_WC_FLUSH	    ((enum ibv_wc_opcode)8)
#define IBV_WC_ATOMIC_WRITE ((enum ibv_wc_opcode)9)

/* Rights of a queue pair, and of a region. A region with the second must lie in PM. */
#define IBV_ACCESS_FLUSH_GLOBAL	    (1 << 8)
#define IBV_ACCESS_FLUSH_PERSISTENT (1 << 9)

/* Placement types, at least one: visible to all; durable. */
#define IBV_FLUSH_GLOBAL     (1u << 0)
#define IBV_FLUSH_PERSISTENT (1u << 1)

/* Selectivity: the range; or all of the region, then address and length are not looked at. */
#define IBV_FLUSH_RANGE 0
#define IBV_FLUSH_MR	1

/* Make `wr` (zeroed but for wr_id, next, send_flags) a FLUSH; the arguments are those of ibv_wr_flush(). */
static inline void flush_wr(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr, uint32_t len,
			    uint8_t type, uint8_t level)
{
	wr->opcode = IBV_WR_FLUSH;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = len;
	wr->wr.atomic.swap = (uint64_t)level << 8 | type;
}

#endif
