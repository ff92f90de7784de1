/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' functions over the process's soft RNIC: what a preloaded, or drop-in, library shows to
 * programs. Each takes the NIC's lock and calls core/rnic.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/nic/verbs.h"
#include "core/rnic/link.h"
#include "core/rnic/qp.h"

static struct ibv_device tide0 = {
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.name = "tide0",
	.dev_name = "uverbs0",
	.dev_path = "/sys/class/infiniband_verbs/uverbs0",
	.ibdev_path = "/sys/class/infiniband/tide0",
};

/* --- the device --- */

EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	if (list)
		list[0] = &tide0;
	if (num)
		*num = !!list;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	(void)device;
	return htobe64(0x02746d0000000001u);
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct nic *nic = nic_get();
	int got;

	nic_lock(nic);
	got = rnic_poll_cq(cq, n, wc);
	if (got == 0) {
		nic_poll(nic);
		got = rnic_poll_cq(cq, n, wc);
	}
	nic_polled(nic, got > 0);
	nic_unlock(nic);
	return got;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	return LOCKED(int, rnic_req_notify_cq(cq, solicited));
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return LOCKED(int, rnic_post_send(qp, wr, bad));
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return LOCKED(int, rnic_post_recv(qp, wr, bad));
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	return LOCKED(struct ibv_qp *, rnic_create_qp_ex(context, attr));
}

static struct ibv_context *open_context(struct nic *nic)
{
	struct ibv_context *context = NULL;
	unsigned host = 0;

	while (host < RNIC_HOSTS && nic->net->hca[host])
		host++;
	context = rnic_open(nic->net, host, NULL);
	if (!context)
		return NULL;
	rnic_gid(nic->link->address, &to_hca(context)->gid);
	context->device = &tide0;
	context->ops.poll_cq = poll_cq;
	context->ops.req_notify_cq = req_notify_cq;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	to_hca(context)->verbs.create_qp_ex = create_qp_ex;
	verbs_enable_srq(context);
	pthread_mutex_init(&context->mutex, NULL);
	return context;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	(void)device;
	if (!nic_get())
		return NULL;
	return LOCKED(struct ibv_context *, open_context(nic_));
}

static int close_context(struct ibv_context *context)
{
	struct rnic_hca *hca = to_hca(context);

	hca->net->hca[hca->host] = NULL;
	return 0;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	return LOCKED(int, close_context(context));
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	return LOCKED(int, rnic_query_device(context, attr));
}

EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return LOCKED(int, rnic_query_port(context, port, attr));
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	return LOCKED(int, rnic_query_gid(context, port, index, gid));
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	if (port != 1 || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(0xffff);
	return 0;
}

EXPORT int ibv_fork_init(void)
{
	return 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/* --- protection domains and memory --- */

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	return LOCKED(struct ibv_pd *, rnic_alloc_pd(context));
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return LOCKED(int, rnic_dealloc_pd(pd));
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return LOCKED(struct ibv_mr *, rnic_reg_mr(pd, addr, length, access));
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return LOCKED(struct ibv_mr *, rnic_reg_mr_iova2(pd, addr, length, iova, (unsigned)access));
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access)
{
	return LOCKED(struct ibv_mr *, rnic_reg_mr_iova2(pd, addr, length, iova, access));
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	return LOCKED(int, rnic_dereg_mr(mr));
}

/* --- completion queues --- */

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector)
{
	return LOCKED(struct ibv_cq *, rnic_create_cq(context, cqe, cq_context, channel, comp_vector));
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	return LOCKED(int, rnic_destroy_cq(cq));
}

/* --- queue pairs --- */

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return LOCKED(struct ibv_qp *, rnic_create_qp(pd, attr));
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return LOCKED(struct ibv_qp_ex *, rnic_qp_to_qp_ex(qp));
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	return LOCKED(int, rnic_query_qp(qp, attr, mask, init));
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return LOCKED(int, rnic_modify_qp(qp, attr, mask));
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	return LOCKED(int, rnic_destroy_qp(qp));
}
