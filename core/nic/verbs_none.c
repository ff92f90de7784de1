/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libibverbs has and the soft RNIC has not: refused, by the errors that the manual pages give.
 *
 * libibverbs keeps private data behind its structures. A function that we left to it would look for them in
 * ours, so each has to be here. Functions of the inline kind find no entry in the context's table and refuse
 * by themselves.
 *
 * The second half is for drivers: libraries of vendors, which programs link for their extensions, register
 * with libibverbs when they are loaded, and want to be loadable. Nobody calls what they register.
 */
#include <errno.h>
#include <string.h>
#include "core/nic/verbs.h"

/* --- other processes' objects, memory of devices --- */

static void *none(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	(void)cmd_fd;
	return none();
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	(void)context;
	(void)handle;
	return none();
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	(void)pd;
	(void)handle;
	return none();
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	(void)context;
	(void)handle;
	return none();
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm;
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
					int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	return none();
}

/* --- queue pairs --- */

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	memset(ece, 0, sizeof(*ece));
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

/* The lines of a packet are written in no order that anybody promises. */
EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
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
	(void)base;
	(void)size;
	return 0;
}

EXPORT int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

/* --- for drivers --- */

/* Commands to the kernel: there is none. */
#define COMMANDS(X)                                                                                                              \
	X(execute_ioctl)                                                                                                         \
	X(ibv_cmd_advise_mr) X(ibv_cmd_alloc_dm) X(ibv_cmd_alloc_mw) X(ibv_cmd_alloc_pd) X(ibv_cmd_attach_mcast) X(              \
		ibv_cmd_close_xrcd) X(ibv_cmd_create_ah) X(ibv_cmd_create_counters) X(ibv_cmd_create_cq) X(ibv_cmd_create_cq_ex) \
		X(ibv_cmd_create_flow) X(ibv_cmd_create_flow_action_esp) X(ibv_cmd_create_qp) X(ibv_cmd_create_qp_ex) X(         \
			ibv_cmd_create_qp_ex2) X(ibv_cmd_create_rwq_ind_table) X(ibv_cmd_create_srq) X(ibv_cmd_create_srq_ex)    \
			X(ibv_cmd_create_wq) X(ibv_cmd_dealloc_mw) X(ibv_cmd_dealloc_pd) X(ibv_cmd_dereg_mr) X(                  \
				ibv_cmd_destroy_ah) X(ibv_cmd_destroy_counters) X(ibv_cmd_destroy_cq) X(ibv_cmd_destroy_flow)    \
				X(ibv_cmd_destroy_flow_action) X(ibv_cmd_destroy_qp) X(ibv_cmd_destroy_rwq_ind_table) X(         \
					ibv_cmd_destroy_srq) X(ibv_cmd_destroy_wq) X(ibv_cmd_detach_mcast)                       \
					X(ibv_cmd_free_dm) X(ibv_cmd_get_context) X(ibv_cmd_modify_cq) X(                        \
						ibv_cmd_modify_flow_action_esp) X(ibv_cmd_modify_qp) X(ibv_cmd_modify_qp_ex)     \
						X(ibv_cmd_modify_srq) X(ibv_cmd_modify_wq) X(ibv_cmd_open_qp) X(                 \
							ibv_cmd_open_xrcd) X(ibv_cmd_poll_cq) X(ibv_cmd_post_recv)               \
							X(ibv_cmd_post_send) X(ibv_cmd_post_srq_recv) X(                         \
								ibv_cmd_query_context) X(ibv_cmd_query_device_any)               \
								X(ibv_cmd_query_mr) X(ibv_cmd_query_port) X(                     \
									ibv_cmd_query_qp) X(ibv_cmd_query_srq)                   \
									X(ibv_cmd_read_counters) X(                              \
										ibv_cmd_reg_dm_mr) X(ibv_cmd_reg_dmabuf_mr)      \
										X(ibv_cmd_reg_mr) X(                             \
											ibv_cmd_req_notify_cq)                   \
											X(ibv_cmd_rereg_mr) X(                   \
												ibv_cmd_resize_cq)               \
												X(ibv_read_ibdev_sysfs_file)

#define COMMAND(name)              \
	int name(void);            \
	EXPORT int name(void)      \
	{                          \
		return EOPNOTSUPP; \
	}

/* Nothing is done, nothing is said. */
#define SILENT(X) \
	X(__verbs_log) X(verbs_init_cq) X(verbs_register_driver_34) X(verbs_set_ops) X(verbs_uninit_context)

#define QUIET(name)            \
	void name(void);       \
	EXPORT void name(void) \
	{                      \
	}

/* No driver's device is opened. */
#define OBJECTS(X) X(_verbs_init_and_alloc_context) X(verbs_open_device)

#define OBJECT(name)            \
	void *name(void);       \
	EXPORT void *name(void) \
	{                       \
		return none();  \
	}

COMMANDS(COMMAND)
SILENT(QUIET)
OBJECTS(OBJECT)

extern bool verbs_allow_disassociate_destroy;
EXPORT bool verbs_allow_disassociate_destroy;

unsigned __ioctl_final_num_attrs(unsigned number, const void *link);
EXPORT unsigned __ioctl_final_num_attrs(unsigned number, const void *link)
{
	(void)link;
	return number;
}
