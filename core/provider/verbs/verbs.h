/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_VERBS_VERBS_H
#define TM_PROVIDER_VERBS_VERBS_H
/* What the files with libibverbs' functions (verbs*.c) have in common. */
#include <errno.h>
#include "core/provider/base/export.h"
#include "core/provider/nic.h"
#include "core/rnic/objects/mr.h"

/* A kernel driver's device node, and its directory: the device's number follows. */
#define NIC_NODE_NAME "uverbs"
#define NIC_NODE      "/dev/infiniband/" NIC_NODE_NAME
#define NIC_NAME      "tide"
#define NIC_SYSFS     "/sys/class/infiniband/" NIC_NAME

/* Devices by their numbers (devices.c), which are below nic_devices(). */
unsigned nic_devices(void);
struct ibv_device *nic_device(unsigned number);
/* UINT_MAX: it is none of ours. */
unsigned nic_device_number(const struct ibv_device *device);
uint32_t nic_address(unsigned device); /* IPv4, host byte order; 0: there is no NIC */
uint64_t nic_guid(unsigned device);

/*
 * An object's handle, by which a kernel knows it. When a program has overwritten an object or its
 * context, the calls for which a driver would ask the kernel fail with ENOENT, as if there were no
 * such object. The handle of a region or window is its slot.
 */
static inline uint32_t nic_handle(const void *object, const struct ibv_context *context)
{
	uint64_t bits = ((uintptr_t)object >> 4) + ((uintptr_t)context >> 4) * 31;

	return (uint32_t)((bits * 0x9e3779b97f4a7c15u) >> 32);
}

#define NAMED(object)                                                         \
	({                                                                    \
		__typeof__(object) named_ = (object);                         \
		if (named_)                                                   \
			named_->handle = nic_handle(named_, named_->context); \
		named_;                                                       \
	})
#define IS_NAMED(object) ((object)->handle == nic_handle(object, (object)->context))

static inline bool nic_has_mr(const struct ibv_mr *mr)
{
	const struct rnic_hca *hca = to_hca(mr->context);

	return mr->handle && mr->handle <= hca->mrs && &hca->mr[mr->handle]->ibv == mr;
}

static inline bool nic_has_mw(const struct ibv_mw *mw)
{
	const struct rnic_hca *hca = to_hca(mw->context);

	return mw->handle && mw->handle <= hca->mrs && &hca->mr[mw->handle]->mw == mw;
}

/* Are the objects valid that a queue pair is made of? 0 or ENOENT. */
static inline int nic_check_queues(const struct ibv_pd *pd, const struct ibv_cq *send,
				   const struct ibv_cq *recv, const struct ibv_srq *srq)
{
	return (!pd || IS_NAMED(pd)) && (!send || IS_NAMED(send)) && (!recv || IS_NAMED(recv)) &&
			       (!srq || IS_NAMED(srq))
		       ? 0
		       : ENOENT;
}

/* An entry of a card's send queue has room for inline data wherever it has room for a
 * scatter/gather element. There are programs that count on it. */
#define SGE_INLINE 16 /* bytes */

static inline void nic_grant(struct ibv_qp_cap *cap)
{
	if (cap->max_send_sge <= MAX_SGE && cap->max_inline_data < SGE_INLINE * cap->max_send_sge)
		cap->max_inline_data = SGE_INLINE * cap->max_send_sge;
}

#define GIDS 8 /* entries of a port's table; the last ones are empty */
/* Entry `index` of it, which must be filled; and its type, enum ibv_gid_type. */
void nic_gid(unsigned device, uint32_t index, union ibv_gid *gid);
uint32_t nic_gid_type(const struct rnic_net *net, uint32_t index);

/* The index of the network interface that has the port's address; else that of the loopback. */
uint32_t nic_interface(void);
/* The contents of a file below the device's directory in sysfs, without a newline, and their
 * length; -1 and ENOENT: there is none of this name. Other errors are those of reading it. */
int nic_say_file(unsigned device, const char *file, char *buf, size_t size);

/* The result of a call that makes something from `object`; NULL and ENOENT if the object is not
 * valid. */
#define MADE_OF(object, call) (IS_NAMED(object) ? (call) : (errno = ENOENT, NULL))

/* Calls that return an error number set errno to it, too, as they do where a kernel driver refuses
 * them: programs print either. */
static inline int nic_error(int error)
{
	if (error > 0)
		errno = error;
	return error;
}

#define CALL(call) nic_error(LOCKED(int, call))
/* The same for a call about `object`; ENOENT if that is not valid. */
#define CALL_OF(object, call) nic_error(IS_NAMED(object) ? LOCKED(int, call) : ENOENT)

/* Set the functions of shared receive queues in the context's table (verbs_srq.c). */
void verbs_enable_srq(struct ibv_context *context);

/* Set the functions for memory (verbs_memory.c), and fault-safe access to the program's memory. */
void verbs_enable_memory(struct ibv_context *context);

/* libibverbs' headers have macros of these names. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#endif
