/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of libibverbs that the soft RNIC does not support. They are refused with the errors
 * that the manual pages give.
 *
 * libibverbs keeps private data after its public structures. Its own functions would look for that
 * data in our structures, so each function has to be replaced here. The functions that are inline
 * in the headers find no entry in the context's table and refuse by themselves.
 *
 * The second half is for drivers: libraries of vendors, which programs link for their extensions.
 * They register with libibverbs when they are loaded, and must be loadable. The functions that they
 * register are never called.
 */
#include <errno.h>
#include <string.h>
#include "core/fail.h"
#include "core/provider/verbs/verbs.h"

/* --- other processes' objects, memory of devices --- */

EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	return errno_null(EOPNOTSUPP);
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	return errno_null(EOPNOTSUPP);
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	return errno_null(EOPNOTSUPP);
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	return errno_null(EOPNOTSUPP);
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access)
{
	return errno_null(EOPNOTSUPP);
}

/* --- multicast --- */

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return nic_error(EOPNOTSUPP);
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return nic_error(EOPNOTSUPP);
}

/* --- queue pairs --- */

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return nic_error(EOPNOTSUPP);
}

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	memset(ece, 0, sizeof(*ece));
	return nic_error(EOPNOTSUPP);
}

/* The lines of a packet are written in no guaranteed order. */
EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

/* --- fork(): a child has no NIC (nic.h), and nothing is pinned --- */

EXPORT int ibv_fork_init(void)
{
	return 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

/* --- for drivers --- */

/* Commands to a kernel driver, which does not exist. */
#define COMMAND(name)              \
	int name(void);            \
	EXPORT int name(void)      \
	{                          \
		return EOPNOTSUPP; \
	}

COMMAND(execute_ioctl)
COMMAND(ibv_cmd_advise_mr)
COMMAND(ibv_cmd_alloc_dm)
COMMAND(ibv_cmd_alloc_mw)
COMMAND(ibv_cmd_alloc_pd)
COMMAND(ibv_cmd_attach_mcast)
COMMAND(ibv_cmd_close_xrcd)
COMMAND(ibv_cmd_create_ah)
COMMAND(ibv_cmd_create_counters)
COMMAND(ibv_cmd_create_cq)
COMMAND(ibv_cmd_create_cq_ex)
COMMAND(ibv_cmd_create_cq_ex2)
COMMAND(ibv_cmd_create_flow)
COMMAND(ibv_cmd_create_flow_action_esp)
COMMAND(ibv_cmd_create_qp)
COMMAND(ibv_cmd_create_qp_ex)
COMMAND(ibv_cmd_create_qp_ex2)
COMMAND(ibv_cmd_create_rwq_ind_table)
COMMAND(ibv_cmd_create_srq)
COMMAND(ibv_cmd_create_srq_ex)
COMMAND(ibv_cmd_create_wq)
COMMAND(ibv_cmd_dealloc_mw)
COMMAND(ibv_cmd_dealloc_pd)
COMMAND(ibv_cmd_dereg_mr)
COMMAND(ibv_cmd_destroy_ah)
COMMAND(ibv_cmd_destroy_counters)
COMMAND(ibv_cmd_destroy_cq)
COMMAND(ibv_cmd_destroy_flow)
COMMAND(ibv_cmd_destroy_flow_action)
COMMAND(ibv_cmd_destroy_qp)
COMMAND(ibv_cmd_destroy_rwq_ind_table)
COMMAND(ibv_cmd_destroy_srq)
COMMAND(ibv_cmd_destroy_wq)
COMMAND(ibv_cmd_detach_mcast)
COMMAND(ibv_cmd_free_dm)
COMMAND(ibv_cmd_get_context)
COMMAND(ibv_cmd_modify_cq)
COMMAND(ibv_cmd_modify_flow_action_esp)
COMMAND(ibv_cmd_modify_qp)
COMMAND(ibv_cmd_modify_qp_ex)
COMMAND(ibv_cmd_modify_srq)
COMMAND(ibv_cmd_modify_wq)
COMMAND(ibv_cmd_open_qp)
COMMAND(ibv_cmd_open_xrcd)
COMMAND(ibv_cmd_poll_cq)
COMMAND(ibv_cmd_post_recv)
COMMAND(ibv_cmd_post_send)
COMMAND(ibv_cmd_post_srq_recv)
COMMAND(ibv_cmd_query_context)
COMMAND(ibv_cmd_query_device_any)
COMMAND(ibv_cmd_query_mr)
COMMAND(ibv_cmd_query_port)
COMMAND(ibv_cmd_query_qp)
COMMAND(ibv_cmd_query_srq)
COMMAND(ibv_cmd_read_counters)
COMMAND(ibv_cmd_reg_dm_mr)
COMMAND(ibv_cmd_reg_dmabuf_mr)
COMMAND(ibv_cmd_reg_mr)
COMMAND(ibv_cmd_req_notify_cq)
COMMAND(ibv_cmd_rereg_mr)
COMMAND(ibv_cmd_resize_cq)
COMMAND(ibv_read_ibdev_sysfs_file)

/* Functions that do nothing. They return nothing either, so they cannot refuse. */
#define SILENT(name)           \
	void name(void);       \
	EXPORT void name(void) \
	{                      \
	}

SILENT(__verbs_log)
SILENT(ibv_copy_ah_attr_from_kern)
SILENT(ibv_copy_path_rec_from_kern)
SILENT(ibv_copy_path_rec_to_kern)
SILENT(ibv_copy_qp_attr_from_kern)
SILENT(verbs_init_cq)
SILENT(verbs_register_driver_34)
SILENT(verbs_set_ops)
SILENT(verbs_uninit_context)

/* Devices of drivers cannot be opened. */
#define OBJECT(name)                           \
	void *name(void);                      \
	EXPORT void *name(void)                \
	{                                      \
		return errno_null(EOPNOTSUPP); \
	}

OBJECT(_verbs_init_and_alloc_context)
OBJECT(verbs_open_device)

extern bool verbs_allow_disassociate_destroy;
EXPORT bool verbs_allow_disassociate_destroy;

unsigned __ioctl_final_num_attrs(unsigned number, const void *link);
EXPORT unsigned __ioctl_final_num_attrs(unsigned number, const void *link)
{
	return number;
}
