/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RDMA_COMMIT_H
#define TM_RDMA_COMMIT_H
/*
 * RDMA Commit: requests that no card has, as the RDMP-KV paper proposes them (RK III-B). Tidemark's
 * RNICs have them, the simulated one and the one between processes; rdma_rxe does not.
 *
 * A Commit makes durable what its queue pair wrote before it to a range of the peer's PM, wherever
 * that is now, in the peer's caches too: that is what it has over an RDMA FLUSH, which with DDIO
 * leaves data in the L3 cache. Its completion says that this has happened. It is ordered as a
 * FLUSH is. Three kinds:
 *
 *	Commit				the range is durable
 *	Commit with immediate		... and then a receive request of the peer completes, as
 *					IBV_WC_RECV_RDMA_WITH_IMM of 0 bytes
 *	Commit with payload		... and then the last 8 bytes of the range, which are
 *					aligned, become these, visible and durable at one moment
 *					(hardware knob commit_word)
 *
 * The queue pair and the region need IBV_ACCESS_FLUSH_PERSISTENT, a payload needs
 * IBV_ACCESS_REMOTE_WRITE as well. They are posted on reliable connections, in one of two ways:
 *
 *	ibv_post_send()		tm_*_wr() fill `wr`, zeroed but for wr_id, next, send_flags and,
 *				of a payload, its list: 8 bytes, gathered or inline. Never to a
 *				device of another vendor (tm_commit_supported()): rdma_rxe does not
 *				look at what it is given.
 *	ibv_wr_*()		tm_wr_*(), between ibv_wr_start() and ibv_wr_complete(), on a
 *				queue pair that was created with TM_QP_EX_WITH_COMMIT among its
 *				send_ops_flags; another device fails that with EOPNOTSUPP.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include "core/verbs_compat.h"

/* Far from what rdma-core numbers. On the wire: opcodes that the specification leaves to
 * manufacturers (IBA vol. 1, 9.2.1: 0xc0 and above). */
#define TM_WR_COMMIT		  ((enum ibv_wr_opcode)0xf0)
#define TM_WR_COMMIT_WITH_IMM	  ((enum ibv_wr_opcode)0xf1)
#define TM_WR_COMMIT_WITH_PAYLOAD ((enum ibv_wr_opcode)0xf2)
#define TM_WC_COMMIT		  ((enum ibv_wc_opcode)0x70)
#define TM_VENDOR		  0x02746d /* ibv_device_attr.vendor_id */

#define TM_QP_EX_WITH_COMMIT (1u << 31)

/* 0; EOPNOTSUPP: the device has none of them; or what ibv_query_device() says. */
static inline int tm_commit_supported(struct ibv_context *context)
{
	struct ibv_device_attr attr;
	int rc = ibv_query_device(context, &attr);

	return rc ? rc : attr.vendor_id == TM_VENDOR ? 0 : EOPNOTSUPP;
}

/* Commit [remote_addr, remote_addr + len). */
static inline void tm_commit_wr(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr,
				uint32_t len)
{
	wr->opcode = TM_WR_COMMIT;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = len;
}

static inline void tm_commit_imm_wr(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr,
				    uint32_t len, __be32 imm)
{
	tm_commit_wr(wr, rkey, remote_addr, len);
	wr->opcode = TM_WR_COMMIT_WITH_IMM;
	wr->imm_data = imm;
}

static inline void tm_commit_payload_wr(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr,
					uint32_t len)
{
	tm_commit_wr(wr, rkey, remote_addr, len);
	wr->opcode = TM_WR_COMMIT_WITH_PAYLOAD;
}

/* What ibv_qp_to_qp_ex() returns for such a queue pair. */
struct tm_qp_ex_with_commit {
	struct ibv_qp_ex_with_flush older;
	void (*wr_commit)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len);
	void (*wr_commit_imm)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			      __be32 imm);
	void (*wr_commit_payload)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				  size_t len, const void *payload);
};

static inline void tm_wr_commit(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				size_t len)
{
	((struct tm_qp_ex_with_commit *)qp)->wr_commit(qp, rkey, remote_addr, len);
}

static inline void tm_wr_commit_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				    size_t len, __be32 imm)
{
	((struct tm_qp_ex_with_commit *)qp)->wr_commit_imm(qp, rkey, remote_addr, len, imm);
}

/* The 8 bytes at `payload` are copied at once. */
static inline void tm_wr_commit_payload(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
					size_t len, const void *payload)
{
	((struct tm_qp_ex_with_commit *)qp)->wr_commit_payload(qp, rkey, remote_addr, len, payload);
}

#endif
