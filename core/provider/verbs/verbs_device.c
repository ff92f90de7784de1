/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device as libibverbs shows it: opened and queried. Each opened device is a struct rnic_hca;
 * libibverbs' inline functions find our functions in its tables. devices.c lists the devices.
 *
 * There is one port and one P_Key. Its GIDs are made of the link's address (link/gids.h). Nothing
 * is in sysfs; ibv_read_sysfs_file() answers for the device's directories there.
 *
 * Closing the device destroys the queue pairs that are left, as a kernel does: nothing else of a
 * process can be reached from outside.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/fail.h"
#include "core/provider/base/recorded_memory.h"
#include "core/provider/link/gids.h"
#include "core/provider/verbs/context.h"
#include "core/provider/verbs/verbs.h"
#include "core/rnic/objects/qp.h"

#define PKEY	    0xffff /* the default partition, full member */
#define GID_ROCE_V2 1	   /* of ibv_query_gid_type(), which libibverbs' headers do not have */

static unsigned device_of(const struct ibv_context *context)
{
	return nic_device_number(context->device);
}

/* --- queried --- */

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int error = rnic_query_device(context, attr);

	if (!error)
		attr->node_guid = attr->sys_image_guid = htobe64(nic_guid(device_of(context)));
	return nic_error(error);
}

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t len)
{
	struct ibv_device_attr_ex full;
	int error = rnic_query_device_ex(context, input, &full,
					 len < sizeof(full) ? len : sizeof(full));

	if (error)
		return nic_error(error);
	full.orig_attr.node_guid = htobe64(nic_guid(device_of(context)));
	full.orig_attr.sys_image_guid = full.orig_attr.node_guid;
	memset(attr, 0, len);
	memcpy(attr, &full, len < sizeof(full) ? len : sizeof(full));
	return 0;
}

static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	return CALL(rnic_query_rt_values(context, values));
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t len)
{
	struct ibv_port_attr full;
	int error = rnic_query_port_ex(context, port, &full, sizeof(full));

	if (error)
		return nic_error(error);
	full.gid_tbl_len = GIDS;
	if (to_hca(context)->net->lid) {
		full.sm_lid = to_hca(context)->net->lid;
		full.lid = (uint16_t)(full.sm_lid + device_of(context));
		full.link_layer = IBV_LINK_LAYER_INFINIBAND;
		full.port_cap_flags = IBV_PORT_CM_SUP;
		full.flags = 0; /* paths need no GRH */
	}
	memset(attr, 0, len);
	memcpy(attr, &full, len < sizeof(full) ? len : sizeof(full));
	return 0;
}

EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port,
			  struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port, (struct ibv_port_attr *)attr,
			  offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* 0: the entry has a GID; ENODATA: it is empty. */
static int check_gid(const struct rnic_net *net, uint32_t port, uint32_t index)
{
	if (port != 1 || index >= GIDS)
		return EINVAL;
	return index < net->gids ? 0 : ENODATA;
}

void nic_gid(unsigned device, uint32_t index, union ibv_gid *gid)
{
	gid_of_index(nic_address(device), index, gid);
}

uint32_t nic_gid_type(const struct rnic_net *net, uint32_t index)
{
	if (net->lid)
		return IBV_GID_TYPE_IB;
	return gid_is_v2(index) ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
}

/* These two functions return zeros for an empty entry; the others refuse. */
EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	int error = check_gid(to_hca(context)->net, port, (uint32_t)index);

	if (error == EINVAL)
		return errno_minus(error);
	if (error)
		memset(gid, 0, sizeof(*gid));
	else
		nic_gid(device_of(context), (uint32_t)index, gid);
	return 0;
}

EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type)
{
	const struct rnic_net *net = to_hca(context)->net;
	int error = check_gid(net, port, index);

	if (error == EINVAL)
		return errno_minus(error);
	*type = !error && nic_gid_type(net, index) == IBV_GID_TYPE_ROCE_V2 ? GID_ROCE_V2 : 0;
	return 0;
}

uint32_t nic_interface(void)
{
	const uint32_t address = nic_get()->link->address;
	struct ifaddrs *all = NULL;
	uint32_t found = 0;

	if (getifaddrs(&all))
		all = NULL;
	for (struct ifaddrs *at = all; at && !found; at = at->ifa_next) {
		const struct sockaddr_in *in = (const void *)at->ifa_addr;

		if (in && in->sin_family == AF_INET && ntohl(in->sin_addr.s_addr) == address)
			found = if_nametoindex(at->ifa_name);
	}
	freeifaddrs(all);
	return found ? found : if_nametoindex("lo");
}

/* As much of the entry as there is room for. */
static void fill_gid(struct ibv_context *context, uint32_t index, void *entry, size_t size)
{
	struct ibv_gid_entry full = {.gid_index = index,
				     .port_num = 1,
				     .gid_type = nic_gid_type(to_hca(context)->net, index)};

	nic_gid(device_of(context), index, &full.gid);
	if (full.gid_type != IBV_GID_TYPE_IB)
		full.ndev_ifindex = nic_interface();
	memset(entry, 0, size);
	memcpy(entry, &full, size < sizeof(full) ? size : sizeof(full));
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	int error = flags ? EINVAL : check_gid(to_hca(context)->net, port, index);

	if (!error)
		fill_gid(context, index, entry, size);
	return nic_error(error);
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
				    size_t max, uint32_t flags, size_t size)
{
	const uint32_t n = to_hca(context)->net->gids;

	if (max < n || flags)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++)
		fill_gid(context, i, (uint8_t *)entries + i * size, size);
	return n;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	return rnic_query_pkey(context, port, index, pkey);
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	return rnic_get_pkey_index(context, port, pkey);
}

/* IPv4 addresses of the fabric have one network interface each. */
EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				       uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vlan)
{
	uint32_t address;

	if (!gid_to_address(&attr->grh.dgid, &address))
		return nic_error(ENETUNREACH);
	address = htobe32(address);
	memcpy(mac, gid_mac_prefix, sizeof(gid_mac_prefix));
	memcpy(mac + sizeof(gid_mac_prefix), &address, sizeof(address));
	if (vlan)
		*vlan = UINT16_MAX; /* none */
	return 0;
}

/* --- opened --- */

static struct ibv_context *open_context(struct nic *nic, struct async_events *own, unsigned device)
{
	unsigned host = 0;

	while (host < nic->net->hosts && nic->net->hca[host])
		host++;
	if (host == nic->net->hosts)
		return errno_null(EMFILE);
	struct ibv_context *context = rnic_open_on(nic->net, host, process_memory(), NULL);
	if (!context)
		return NULL;
	struct rnic_hca *hca = to_hca(context);
	rnic_gid(nic_address(device), &hca->gid);
	hca->hooks = (struct rnic_hooks){
		.completion = events_completion, .event = events_async, .arg = own};
	hca->verbs.query_port = query_port;
	hca->verbs.query_device_ex = query_device_ex;
	hca->verbs.query_rt_values = query_rt_values;
	hca->verbs.create_cq_ex = nic_create_cq_ex;
	hca->verbs.modify_cq = nic_modify_cq;
	context->device = nic_device(device);
	context->async_fd = own->events.fd;
	/* In place of a kernel's file. Programs duplicate it; importing the device by it is
	 * refused. */
	context->cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	context->ops._compat_query_device = ibv_query_device;
	context->ops._compat_query_port = ibv_query_port;
	context->ops.poll_cq = nic_poll_cq;
	context->ops.req_notify_cq = nic_req_notify_cq;
	nic_data_calls(context);
	pthread_mutex_init(&context->mutex, NULL);
	return context;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct async_events *own;
	unsigned number = nic_device_number(device);

	if (number >= nic_devices())
		return errno_null(ENODEV);
	if (!nic_get())
		return NULL;
	own = calloc(1, sizeof(*own));
	if (!own || !nic_open_events(&own->events)) {
		free(own);
		return NULL;
	}
	struct ibv_context *context = LOCKED(struct ibv_context *, open_context(nic_, own, number));
	if (!context) {
		nic_close_events(&own->events);
		free(own);
	}
	return context;
}

static int close_context(struct ibv_context *context)
{
	struct rnic_hca *hca = to_hca(context);

	if (hca->net->hca[hca->host] != hca)
		return EINVAL;
	rnic_close(context);
	nic_close_events(&((struct async_events *)hca->hooks.arg)->events);
	close(context->cmd_fd);
	context->async_fd = context->cmd_fd = -1;
	return 0;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	return CALL(close_context(context));
}
