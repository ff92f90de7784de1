/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_FLUSH_H
#define TM_LIVE_FLUSH_H
/*
 * RDMA FLUSH in the live world. A library that has ibv_wr_flush() is called; for rdma_rxe, whose
 * kernel part knows FLUSH and whose library does not, the request is written here. live_flush.c
 * says how.
 */
#include "core/verbs_compat.h"

/* Like ibv_create_qp_ex(); may be asked for IBV_QP_EX_WITH_FLUSH wherever live_wr_flush() can do
 * it. */
struct ibv_qp *live_flush_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* Like ibv_wr_flush(). Where it cannot be done, ibv_wr_complete() fails. */
void live_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
		   uint8_t type, uint8_t level);

#endif
