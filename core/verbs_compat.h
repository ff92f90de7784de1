/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_VERBS_COMPAT_H
#define TM_VERBS_COMPAT_H
/*
 * RDMA FLUSH and ATOMIC WRITE as store code posts them (InfiniBand Architecture
 * Specification, annex A19, memory placement extensions).
 *
 * rdma-core has names for both, and newer ones than many systems install: what
 * follows has its names, its values and its signatures. TM_VERBS_FLUSH says that
 * <infiniband/verbs.h> has them already (cmake/Dependencies.cmake looks).
 *
 * The way to post them is the extended API, ibv_wr_flush() and
 * ibv_wr_atomic_write(). Here ibv_post_send() takes them, too: an ATOMIC WRITE is
 * a work request like a WRITE of 8 bytes, gathered or inline, to an address that
 * is a multiple of 8; a FLUSH has no member of its own in struct ibv_send_wr, and
 * flush_wr() fills the one of the atomics.
 */
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#ifdef TM_VERBS_FLUSH

#define ibv_qp_ex_with_flush ibv_qp_ex

#else

#define IBV_WR_FLUSH		    ((enum ibv_wr_opcode)14)
#define IBV_WC_FLUSH		    ((enum ibv_wc_opcode)8)
#define IBV_QP_EX_WITH_FLUSH	    (1 << 11)

/* Rights of a queue pair, and of a region. A region with the second must lie in PM. */
#define IBV_ACCESS_FLUSH_GLOBAL	    (1 << 8)
#define IBV_ACCESS_FLUSH_PERSISTENT (1 << 9)

/* Placement types, at least one: visible to all; durable. */
enum ibv_placement_type { IBV_FLUSH_GLOBAL = 1u << 0, IBV_FLUSH_PERSISTENT = 1u << 1 };

/* Selectivity: the range; or all of the region, then address and length are not looked at. */
enum ibv_selectivity_level { IBV_FLUSH_RANGE = 0, IBV_FLUSH_MR };

/* A newer header's struct ibv_qp_ex: it has grown at its end. */
struct ibv_qp_ex_with_flush {
	struct ibv_qp_ex older;
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			 uint8_t type, uint8_t level);
};

static inline void ibv_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				size_t len, uint8_t type, uint8_t level)
{
	((struct ibv_qp_ex_with_flush *)qp)->wr_flush(qp, rkey, remote_addr, len, type, level);
}

#endif

/* Bits of ibv_device_attr_ex.device_cap_flags_ex. The kernel's header has them as enumerators, or
 * is older: these are good for both. */
#define IB_UVERBS_DEVICE_FLUSH_GLOBAL	  (1ull << 38)
#define IB_UVERBS_DEVICE_FLUSH_PERSISTENT (1ull << 39)
#define IB_UVERBS_DEVICE_ATOMIC_WRITE	  (1ull << 40)

/* Make `wr` (zeroed but for wr_id, next, send_flags) a FLUSH; the arguments are those of
 * ibv_wr_flush(). */
static inline void flush_wr(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr,
			    uint32_t len, uint8_t type, uint8_t level)
{
	wr->opcode = IBV_WR_FLUSH;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = len;
	wr->wr.atomic.swap = (uint64_t)level << 8 | type;
}

#endif
