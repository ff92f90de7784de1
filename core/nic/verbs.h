/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_NIC_VERBS_H
#define TM_NIC_VERBS_H
/* What the files that show libibverbs' functions (verbs*.c) have in common. */
#include "core/nic/nic.h"

#define EXPORT __attribute__((visibility("default")))

/* Where a kernel's driver would have its node. */
#define NIC_NODE_NAME "uverbs0"
#define NIC_NODE      "/dev/infiniband/" NIC_NODE_NAME

/* Call core/rnic under the lock; what becomes due by it runs, too. */
#define LOCKED(type, call)                    \
	({                                    \
		struct nic *nic_ = nic_get(); \
		nic_lock(nic_);               \
		type result_ = (call);        \
		nic_run(nic_);                \
		nic_unlock(nic_);             \
		result_;                      \
	})

/* The context's table has the functions of shared receive queues (verbs_srq.c). */
void verbs_enable_srq(struct ibv_context *context);

/* The context's table has the functions of XRC (verbs_xrc.c). */
void verbs_enable_xrc(struct ibv_context *context);

/* The context's table has the functions for memory (verbs_memory.c), and its memory is the program's. */
void verbs_enable_memory(struct ibv_context *context);

/* libibverbs' headers have macros of these names. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#endif
