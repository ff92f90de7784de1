/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_WR_H
#define TM_RNIC_OBJECTS_WR_H
/* The extended API for posting, ibv_wr_*(), as a queue pair has it: wr.c. */
#include "core/rnic/opcode.h"

struct rnic_qp;

/* Work requests that ibv_wr_* builds, between ibv_wr_start() and ibv_wr_complete(). */
struct wr_batch {
	bool open;
	const void *owner; /* the task that opened it */
	int error;	   /* the first one; nothing more is built */
	uint32_t built;	   /* requests, in the send queue's slots from `posted` on */
	bool takes_data;   /* the last one may be given its data */
	bool takes_inline;
};

/* clang-format off */
/*
 * The builders: X(member of struct ibv_qp_ex, operation, parameters, arguments). The one of FLUSH
 * is a member of its own structure where the system's header is older (core/verbs_compat.h).
 */
#define WR_BUILDERS(X) \
	X(wr_rdma_write, RDMA_WRITE, (struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va), (qp, rkey, va)) \
	X(wr_rdma_write_imm, RDMA_WRITE_WITH_IMM, (struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va, __be32 imm), \
	  (qp, rkey, va, imm)) \
	X(wr_rdma_read, RDMA_READ, (struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va), (qp, rkey, va)) \
	X(wr_send, SEND, (struct ibv_qp_ex *qp), (qp)) \
	X(wr_send_imm, SEND_WITH_IMM, (struct ibv_qp_ex *qp, __be32 imm), (qp, imm)) \
	X(wr_send_inv, SEND_WITH_INV, (struct ibv_qp_ex *qp, uint32_t rkey), (qp, rkey)) \
	X(wr_local_inv, LOCAL_INV, (struct ibv_qp_ex *qp, uint32_t rkey), (qp, rkey)) \
	X(wr_bind_mw, BIND_MW, (struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, \
				const struct ibv_mw_bind_info *info), (qp, mw, rkey, info)) \
	X(wr_atomic_cmp_swp, ATOMIC_CMP_AND_SWP, (struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va, \
						  uint64_t compare, uint64_t swap), (qp, rkey, va, compare, swap)) \
	X(wr_atomic_fetch_add, ATOMIC_FETCH_AND_ADD, (struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va, uint64_t add), \
	  (qp, rkey, va, add)) \
	X(wr_atomic_write, ATOMIC_WRITE, (struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va, const void *data), \
	  (qp, rkey, va, data))
/* clang-format on */

/* Give the queue pair the functions of these enum ibv_qp_create_send_ops_flags. */
void wr_enable(struct rnic_qp *qp, uint64_t send_ops);
/* In each queue pair's table. */
int rnic_wr_complete(struct ibv_qp_ex *qp);
/* All enum ibv_qp_create_send_ops_flags that this type of queue pair has. */
uint64_t wr_supported(enum ibv_qp_type type);
/* The queue pair is reset: what was built and not posted is lost. */
void wr_lose(struct rnic_qp *qp);

#endif
