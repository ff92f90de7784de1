/* SPDX-License-Identifier: BSD-3-Clause */
/* See pcap.h. Link type 1, Ethernet; the stations' addresses are made of the IPv4 addresses. */
#include "core/provider/link/pcap.h"
#include "core/provider/base/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define ETHERNET   1
#define ETH_BYTES  14
#define SNAP_BYTES 65535

struct file_head {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snap_bytes, link_type;
};

struct record_head {
	uint32_t s, ns, stored, len;
};

/* The first process to open the file writes its header. */
static int begin(int fd)
{
	const struct file_head ours = {.magic = CONFIG_PCAP_MAGIC,
				       .major = 2,
				       .minor = 4,
				       .snap_bytes = SNAP_BYTES,
				       .link_type = ETHERNET};
	struct file_head head;
	struct stat is;
	int rc = 0;

	if (flock(fd, LOCK_EX))
		return -errno;
	if (fstat(fd, &is))
		rc = -errno;
	else if (!S_ISREG(is.st_mode) || !is.st_size)
		rc = write(fd, &ours, sizeof(ours)) == sizeof(ours) ? 0 : -EIO;
	else if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
		 memcmp(&head, &ours, sizeof(head)))
		rc = -EINVAL;
	flock(fd, LOCK_UN);
	return rc;
}

int pcap_open(const char *name)
{
	const char *number = strstr(name, "%p");
	char path[PATH_MAX];
	int fd, rc, n;

	if (number)
		n = snprintf(path, sizeof(path), "%.*s%d%s", (int)(number - name), name, getpid(),
			     number + 2);
	else
		n = snprintf(path, sizeof(path), "%s", name);
	if (n >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = begin(fd);
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

static void put_station(uint8_t *at, uint32_t address)
{
	const uint8_t station[6] = {0x02,
				    0x74,
				    (uint8_t)(address >> 24),
				    (uint8_t)(address >> 16),
				    (uint8_t)(address >> 8),
				    (uint8_t)address};

	memcpy(at, station, sizeof(station));
}

void pcap_write(int fd, const struct wire_ends *ends, const uint8_t *bytes, size_t len)
{
	uint8_t head[ETH_BYTES + WIRE_IP_UDP];
	uint32_t frame = (uint32_t)(sizeof(head) + len);
	struct record_head record = {.stored = frame, .len = frame};
	struct iovec parts[] = {
		{&record, sizeof(record)}, {head, sizeof(head)}, {(void *)(uintptr_t)bytes, len}};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	record.s = (uint32_t)now.tv_sec;
	record.ns = (uint32_t)now.tv_nsec;
	put_station(head, ends->dst);
	put_station(head + 6, ends->src);
	head[12] = 0x08; /* IPv4 */
	head[13] = 0x00;
	wire_ip_udp(ends, len, head + ETH_BYTES);
	/* A full disk must not stop the traffic. */
	if (writev(fd, parts, 3) < 0)
		return;
}
