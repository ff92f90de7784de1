/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' list of devices, and its questions about one: each host has one device, which opens
 * to the context that the store was given (tm_env.verbs).
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "core/fail.h"
#include "core/rnic/host/host.h"
#include "core/rt/process/libc.h"

#define INTERFACE 1 /* number of the network interface */

static struct rnic_hca *hca_of(struct ibv_device *device)
{
	return (struct rnic_hca *)((char *)device - offsetof(struct rnic_hca, device));
}

struct ibv_device **rnic_get_device_list(int *num)
{
	const struct process *process = process_here();
	struct ibv_device **list = sim_calloc(2, sizeof(*list));

	if (num)
		*num = list && process;
	if (!list)
		return errno_null(ENOMEM);
	if (process)
		list[0] = &process->hca->device;
	return list;
}

void rnic_free_device_list(struct ibv_device **list)
{
	sim_free_memory(list);
}

struct ibv_context *rnic_open_device(struct ibv_device *device)
{
	struct ibv_context *context = &hca_of(device)->verbs.context;
	struct process *process = process_of(context);

	if (!host_open_async(process))
		return NULL;
	context->async_fd = process->async.events.fd;
	return context;
}

/* The context stays the store's, even if others have opened the device. */
int rnic_close_device(struct ibv_context *context)
{
	return 0;
}

__be64 rnic_get_device_guid(struct ibv_device *device)
{
	struct ibv_device_attr attr;

	return rnic_query_device(&hca_of(device)->verbs.context, &attr) ? 0 : attr.node_guid;
}

int rnic_get_device_index(struct ibv_device *device)
{
	return 0;
}

int rnic_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	if (flags || port != 1)
		return EINVAL;
	if (index != 0)
		return index < 16 ? ENODATA : EINVAL;
	hca_gid_entry(to_hca(context), INTERFACE, entry, entry_size);
	return 0;
}

ssize_t rnic_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t most, uint32_t flags, size_t entry_size)
{
	if (most < 1 || flags)
		return -EINVAL;
	hca_gid_entry(to_hca(context), INTERFACE, entries, entry_size);
	return 1;
}
