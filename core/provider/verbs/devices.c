/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of devices: tide0, and as many more as the settings ask for (config.h). They are devices
 * of the process's one NIC, on the same link. Each has an address of its own, the one after that of
 * the device before it, and what is made of it: GIDs, GUID, LID. Each leads to all queue pairs.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/provider/base/config.h"
#include "core/provider/verbs/verbs.h"

#define GUID 0x02746d0000000000u

/* Vendors' libraries look for their own mark in the memory that libibverbs has after the public
 * structure. It is zero here. */
static struct shown {
	struct ibv_device device;
	uint64_t none[32];
} shown[CONFIG_DEVICES_MOST];

static void fill(void)
{
	for (unsigned i = 0; i < CONFIG_DEVICES_MOST; i++) {
		struct ibv_device *device = &shown[i].device;

		device->node_type = IBV_NODE_CA;
		device->transport_type = IBV_TRANSPORT_IB;
		snprintf(device->name, sizeof(device->name), NIC_NAME "%u", i);
		snprintf(device->dev_name, sizeof(device->dev_name), NIC_NODE_NAME "%u", i);
		snprintf(device->dev_path, sizeof(device->dev_path),
			 "/sys/class/infiniband_verbs/" NIC_NODE_NAME "%u", i);
		snprintf(device->ibdev_path, sizeof(device->ibdev_path), NIC_SYSFS "%u", i);
	}
}

struct ibv_device *nic_device(unsigned number)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fill);
	return &shown[number].device;
}

unsigned nic_device_number(const struct ibv_device *device)
{
	for (unsigned i = 0; i < CONFIG_DEVICES_MOST; i++)
		if (device == &shown[i].device)
			return i;
	return UINT_MAX;
}

unsigned nic_devices(void)
{
	struct nic_config config;
	char line[300];

	/* If the settings are wrong, a program that opens the device is told. */
	return nic_config_read(&config, line, sizeof(line)) ? 1 : config.devices;
}

uint32_t nic_address(unsigned device)
{
	struct nic *nic = nic_get();

	return nic ? nic->link->address + device : 0;
}

uint64_t nic_guid(unsigned device)
{
	return GUID | nic_address(device);
}

EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
	unsigned n = nic_devices();
	struct ibv_device **list = calloc(n + 1, sizeof(*list));

	for (unsigned i = 0; list && i < n; i++)
		list[i] = nic_device(i);
	if (num)
		*num = list ? (int)n : 0;
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
	return htobe64(nic_guid(nic_device_number(device)));
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return (int)nic_device_number(device);
}
