/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the device's directory in sysfs would have, if it existed: ibv_read_sysfs_file() answers for
 * it, and sysfs.c where programs look by themselves.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/provider/verbs/verbs.h"

#define PORT "ports/1/"

EXPORT const char *ibv_get_sysfs_path(void)
{
	const char *path = getenv("SYSFS_PATH");

	return path ? path : "/sys";
}

__attribute__((format(printf, 3, 4))) static int say(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	return (size_t)len < size ? len : -1;
}

static int say_gid(unsigned device, uint32_t index, char *buf, size_t size)
{
	union ibv_gid gid = {0};
	char text[40];
	size_t at = 0;

	if (index < nic_get()->net->gids)
		nic_gid(device, index, &gid);
	for (size_t i = 0; i < sizeof(gid.raw); i += 2)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x%02x", i ? ":" : "",
				       gid.raw[i], gid.raw[i + 1]);
	return say(buf, size, "%s", text);
}

/* Those of an entry of the table of GIDs. */
static int say_attribute(const char *file, uint32_t index, char *buf, size_t size)
{
	const struct rnic_net *net = nic_get()->net;
	char name[IF_NAMESIZE];

	if (index < net->gids && !strcmp(file, "gid_attrs/types/"))
		return say(buf, size, "%s",
			   nic_gid_type(net, index) == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2"
									    : "IB/RoCE v1");
	if (index < net->gids && !net->lid && !strcmp(file, "gid_attrs/ndevs/") &&
	    if_indextoname(nic_interface(), name))
		return say(buf, size, "%s", name);
	errno = EINVAL; /* as of a kernel: the entry is empty */
	return -1;
}

/* The contents of a file of the port, some of which are numbered by the table of GIDs. 0: there is
 * none of this name. */
static int say_port_file(unsigned device, const char *file, char *buf, size_t size)
{
	static const char *const numbered[] = {"gids/", "gid_attrs/types/", "gid_attrs/ndevs/"};
	bool is_lid = !strcmp(file, "lid"), is_layer = !strcmp(file, "link_layer");
	unsigned lid;

	for (size_t i = 0; i < sizeof(numbered) / sizeof(*numbered); i++) {
		const char *rest = file + strlen(numbered[i]);

		if (strncmp(file, numbered[i], strlen(numbered[i])) != 0 || *rest < '0' ||
		    *rest >= '0' + GIDS || rest[1])
			continue;
		if (!nic_get())
			return -1;
		return i ? say_attribute(numbered[i], (uint32_t)(*rest - '0'), buf, size)
			 : say_gid(device, (uint32_t)(*rest - '0'), buf, size);
	}
	if (!is_lid && !is_layer && strcmp(file, "sm_lid") != 0)
		return 0;
	if (!nic_get())
		return -1;
	lid = nic_get()->net->lid;
	if (is_layer)
		return say(buf, size, "%s", lid ? "InfiniBand" : "Ethernet");
	return say(buf, size, "0x%x", lid && is_lid ? (lid + device) & 0xffff : lid);
}

int nic_say_file(unsigned device, const char *file, char *buf, size_t size)
{
	int len = 0;
	static const struct {
		const char *file, *text;
	} texts[] = {
		{"node_type", "1: CA"},
		{"node_desc", "tidemark"},
		{"fw_ver", "tidemark"},
		{"hca_type", "tidemark"},
		{"board_id", "tidemark"},
		{"abi_version", "1"},
		{"ports/1/state", "4: ACTIVE"},
		{"ports/1/phys_state", "5: LinkUp"},
		{"ports/1/rate", "100 Gb/sec (4X EDR)"},
		{"ports/1/pkeys/0", "0xffff"},
	};

	while (*file == '/')
		file++;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!strcmp(file, texts[i].file))
			return say(buf, size, "%s", texts[i].text);
	if (!strcmp(file, "node_guid") || !strcmp(file, "sys_image_guid")) {
		uint64_t guid = nic_guid(device);
		return say(buf, size, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48) & 0xffff,
			   (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
			   (unsigned)guid & 0xffff);
	}
	if (!strcmp(file, "ibdev"))
		return say(buf, size, "%s", nic_device(device)->name);
	if (!strncmp(file, PORT, strlen(PORT)))
		len = say_port_file(device, file + strlen(PORT), buf, size);
	if (!len) {
		errno = ENOENT;
		len = -1;
	}
	return len;
}

static int read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	ssize_t len = read(fd, buf, size);
	close(fd);
	if (len <= 0)
		return -1;
	if (buf[len - 1] == '\n')
		buf[--len] = '\0';
	else if ((size_t)len < size)
		buf[len] = '\0';
	else
		return -1;
	return (int)len;
}

/* What follows the directory in the path; NULL: it is not in the directory. */
static const char *below(const char *path, const char *directory)
{
	size_t len = strlen(directory);

	return !strncmp(path, directory, len) && path[len] == '/' ? path + len : NULL;
}

EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[2 * IBV_SYSFS_PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%s", dir, file);

	if (len < 0 || (size_t)len >= sizeof(path))
		return -1;
	for (unsigned i = 0; i < nic_devices(); i++) {
		const struct ibv_device *device = nic_device(i);
		const char *rest = below(path, device->ibdev_path);

		if (!rest)
			rest = below(path, device->dev_path);
		if (rest)
			return nic_say_file(i, rest, buf, size);
	}
	return read_file(path, buf, size);
}
