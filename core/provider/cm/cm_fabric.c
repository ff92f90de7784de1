/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric, as the connection manager uses it: its addresses, the ports in use, the listeners,
 * and the processes that have died.
 *
 * A port is a range of the file cm-ports in the fabric's directory. The file has no bytes, only
 * locks, which the kernel releases with their process. The names of listeners (listeners.h) are not
 * removed with their process. A process that gets the lock of an address and finds a name there
 * removes the name.
 *
 * Where a request is sent: for an address of another host, to that address; for one of this host,
 * to the process of this fabric that listens there. With --link udp --address, another fabric may
 * use another address of this host.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/provider/cm/cm.h"
#include "core/provider/base/config.h"
#include "core/provider/cm/listeners.h"
#include "core/provider/base/fabric_dir.h"

static struct nic_config config;
static char directory[CONFIG_FABRIC_BYTES]; /* config.fabric, once it is known to exist */
static int ports = -1;			    /* the file of locks */
static pid_t ports_pid;

/* Can hosts be reached that are not processes of this fabric? */
static bool has_others(void)
{
	return config.link == LINK_UDP && config.has_address;
}

static int find_directory(void)
{
	char line[200];
	struct stat is;
	int rc;

	if (*directory)
		return 0;
	rc = nic_config_read(&config, line, sizeof(line));
	if (rc)
		return rc;
	/* The NIC has made it and checked its owner, when it entered the fabric. */
	if (lstat(config.fabric, &is) || !S_ISDIR(is.st_mode) || is.st_uid != geteuid() ||
	    is.st_mode & 077)
		return -EPERM;
	strcpy(directory, config.fabric);
	return 0;
}

/* False: it is a native IPv6 address, without an IPv4 one. */
static bool ipv4_of(const struct sockaddr *addr, uint32_t *ipv4)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;
	__be32 word;

	if (addr->sa_family == AF_INET)
		word = ((const struct sockaddr_in *)addr)->sin_addr.s_addr;
	else if (IN6_IS_ADDR_V4MAPPED(in6))
		memcpy(&word, &in6->s6_addr[12], sizeof(word));
	else
		return false;
	*ipv4 = ntohl(word);
	return true;
}

bool cm_fabric_is_own(const struct sockaddr *addr)
{
	struct sockaddr_storage at;

	memcpy(&at, addr, sockaddr_len(addr));
	if (at.ss_family == AF_INET)
		((struct sockaddr_in *)&at)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&at)->sin6_port = 0;
	int fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	int rc = bind(fd, (struct sockaddr *)&at, sockaddr_len(addr));
	close(fd);
	return !rc;
}

bool cm_fabric_reaches(const struct sockaddr *addr)
{
	uint32_t address;

	return cm_fabric_is_own(addr) ||
	       (!find_directory() && has_others() && ipv4_of(addr, &address));
}

/* --- ports --- */

/* A process that cleans up briefly locks the whole file, which distinguishes it from the owner
 * of a port. */
#define LOCK_TRIES  10
#define CLEAN_TRIES 5000 /* 10 s: the process that cleans up may be waiting for a CPU */
#define LOCK_NAP_US 2000

static int lock_range(short type, uint64_t from, uint64_t len)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)from, .l_len = (off_t)len};

	return fcntl(ports, F_SETLK, &lock) ? -errno : 0;
}

static bool is_cleaned(uint64_t from, uint64_t len)
{
	struct flock lock = {.l_type = F_WRLCK,
			     .l_whence = SEEK_SET,
			     .l_start = (off_t)from,
			     .l_len = (off_t)len};

	return !fcntl(ports, F_GETLK, &lock) && lock.l_type == F_WRLCK && !lock.l_start &&
	       !lock.l_len;
}

/* Is the open file still the one in the directory? The last process of the fabric removes it. */
static bool ports_are_there(const char *path)
{
	struct stat is, at;

	return ports >= 0 && ports_pid == getpid() && !fstat(ports, &is) && !stat(path, &at) &&
	       is.st_ino == at.st_ino && is.st_dev == at.st_dev;
}

/* POSIX locks belong to the process, and closing any descriptor of the file releases them all.
 * So one descriptor is kept; a child of fork() opens its own. */
static int reserve(uint64_t from, uint64_t len, bool shared, unsigned tries)
{
	unsigned patience = tries > 1 ? CLEAN_TRIES : 0;
	char path[300];
	int rc = find_directory();

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/cm-ports", directory);
	for (unsigned n = 0; n < tries;) {
		if (!ports_are_there(path)) {
			if (ports >= 0)
				close(ports);
			ports = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
			ports_pid = getpid();
			if (ports < 0)
				return -errno;
		}
		rc = lock_range(shared ? F_RDLCK : F_WRLCK, from, len);
		if (rc && rc != -EAGAIN && rc != -EACCES)
			return rc;
		if (!rc && ports_are_there(path))
			return 0;
		if (rc && patience && is_cleaned(from, len))
			patience--;
		else
			n++;
		if (rc && n < tries)
			usleep(LOCK_NAP_US);
	}
	return -EADDRINUSE;
}

int cm_fabric_reserve(uint64_t from, uint64_t len, bool shared)
{
	return reserve(from, len, shared, LOCK_TRIES);
}

void cm_fabric_release(uint64_t from, uint64_t len)
{
	if (ports >= 0 && ports_pid == getpid())
		lock_range(F_UNLCK, from, len);
}

/* If the port of such a name is not locked, its process is dead. This process has no ports yet. */
void cm_fabric_sweep(void)
{
	struct dirent *entry;

	if (find_directory())
		return;
	DIR *dir = opendir(directory);
	while (dir && (entry = readdir(dir))) {
		unsigned port;

		if (sscanf(entry->d_name, "cm-%*x-%u-", &port) != 1)
			continue;
		uint64_t from = cm_port_range((uint16_t)port);
		if (reserve(from, CM_PORT_RANGE, false, 1)) /* most ports are in use: do not wait */
			continue;
		unlinkat(dirfd(dir), entry->d_name, 0);
		cm_fabric_release(from, CM_PORT_RANGE);
	}
	if (dir)
		closedir(dir);
}

void cm_fabric_leave(void)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/cm-ports", directory);
	/* When the whole file is locked, no process has a port, and a process that is about to
	 * reserve one checks the file again. */
	if (ports_are_there(path) && !lock_range(F_WRLCK, 0, 0))
		unlink(path);
	if (ports >= 0 && ports_pid == getpid())
		close(ports);
	ports = -1;
}

void cm_fabric_in_child(void)
{
	if (ports >= 0)
		close(ports);
	ports = -1;
	*directory = 0;
}

/* --- listeners --- */

static void gid_of(uint32_t address, union ibv_gid *gid)
{
	__be32 word = htonl(address);

	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &word, sizeof(word));
}

static struct listener_place own_place(void)
{
	return (struct listener_place){manager.mads->slot, manager.mads->address};
}

int cm_fabric_listen(uint16_t port_space, const struct sockaddr *addr, bool v6_only)
{
	struct listener_place place = own_place();
	int rc = find_directory();

	return rc ? rc : listeners_add(directory, port_space, addr, v6_only, &place);
}

void cm_fabric_unlisten(uint16_t port_space, const struct sockaddr *addr, bool v6_only)
{
	listeners_remove(directory, port_space, addr, v6_only);
}

static bool is_loopback(uint32_t address)
{
	return address >> 24 == IN_LOOPBACKNET;
}

unsigned cm_fabric_route(uint16_t port_space, const struct sockaddr *dst, union ibv_gid *gid)
{
	struct listener_place place = own_place();
	bool here = !has_others() || cm_fabric_is_own(dst);
	uint32_t address;

	here = here && !find_directory() &&
	       listeners_find(directory, port_space, dst, manager.mads->slot, &place);
	if (!here)
		place = own_place();
	if (!here && has_others() && ipv4_of(dst, &address) &&
	    is_loopback(address) == is_loopback(config.address) && address != config.address)
		place = (struct listener_place){.address = address};
	/* No listener: this process refuses the request itself. */
	gid_of(place.address, gid);
	return place.slot;
}

unsigned cm_fabric_slot(const union ibv_gid *gid, uint32_t id)
{
	union ibv_gid own;

	gid_of(manager.mads->address, &own);
	return has_others() && !cm_same_gid(gid, &own) ? 0 : id >> CM_ID_SHIFT;
}

int cm_fabric_watch(unsigned slot)
{
	pid_t pid = fabric_dir_slot_owner(directory, slot);

	if (!pid)
		return -ESRCH;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	/* The process ID may have been given to another process. */
	if (fabric_dir_slot_owner(directory, slot) == pid)
		return fd;
	close(fd);
	return -ESRCH;
}
