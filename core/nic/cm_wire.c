/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager's messages, and the sockets between processes that carry them.
 *
 * On the shm link these are unix sockets in the net's directory, one file per listening identifier:
 *
 *   cm-SPACE-PORT-ADDRESS   the socket; ADDRESS is "any4", "any6" or "any" for wildcards
 *   cm-ports                no bytes, only locks: a range of it is a port of a port space at an address
 *
 * A socket file outlives its process, a lock does not: whoever holds the lock of an address and finds a file
 * there removes it.
 *
 * On the udp link with an address, other hosts are reached by TCP, at their address and RoCEv2's port number.
 * The processes of a host that listen share that port. The kernel gives a connection to one of them; if
 * the request is for another one, the connection is handed on to it, through the unix socket.
 *
 * A message has a fixed size and big-endian fields. A real fabric would carry the same as CM MADs between
 * queue pairs 1; nothing outside of this file knows.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "core/nic/cm.h"
#include "core/nic/config.h"

#define MAGIC	 0x544d434du
#define TCP_PORT 4791
#define BACKLOG	 1024

struct wire_address {
	uint8_t family; /* 4, 6, 0: none */
	uint8_t unused;
	__be16 port;
	uint8_t bytes[16];
} __attribute__((packed));

struct wire_message {
	__be32 magic;
	uint8_t type, mtu, ack_timeout, srq;
	__be16 port_space, reason;
	uint8_t responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count;
	uint8_t unused[3];
	__be32 qpn, qkey, psn;
	__be32 ece_vendor, ece_options, ece_mask;
	uint8_t gid[16];
	struct wire_address src, dst;
	uint8_t private_data[CM_MAX_PRIVATE];
} __attribute__((packed));
_Static_assert(sizeof(struct wire_message) == CM_WIRE_BYTES, "cm.h says how long a message is");

static struct nic_config config;
static char directory[CONFIG_NET_BYTES]; /* config.net, once it is known to be there */
static int ports = -1;			 /* the file of locks */
static pid_t ports_pid;

/* Are there others beside the processes of this net? */
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
	/* The NIC has made it, and looked whose it is, when it took its place in the net. */
	if (lstat(config.net, &is) || !S_ISDIR(is.st_mode) || is.st_uid != geteuid() || is.st_mode & 077)
		return -EPERM;
	strcpy(directory, config.net);
	return 0;
}

/* --- names --- */

/* Which file a listener at this address has; the wildcards' names are not addresses. */
static void name_listener(uint16_t port_space, uint16_t port, const char *address, char *buf, size_t size)
{
	snprintf(buf, size, "cm-%x-%u-%s", port_space, port, address);
}

static const char *address_text(const struct sockaddr *addr, bool v6_only, char buf[INET6_ADDRSTRLEN])
{
	if (cm_addr_any(addr))
		return addr->sa_family == AF_INET ? "any4" : v6_only ? "any6" : "any";
	if (addr->sa_family == AF_INET) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)addr)->sin_addr, buf, INET6_ADDRSTRLEN);
	} else {
		const struct in6_addr *in6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;

		if (IN6_IS_ADDR_V4MAPPED(in6))
			inet_ntop(AF_INET, &in6->s6_addr[12], buf, INET6_ADDRSTRLEN);
		else
			inet_ntop(AF_INET6, in6, buf, INET6_ADDRSTRLEN);
	}
	return buf;
}

/* The directory's name may be too long for a socket's address: go by way of a descriptor then. */
static int unix_address(const char *name, struct sockaddr_un *un, int *dir)
{
	*dir = -1;
	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	if ((size_t)snprintf(un->sun_path, sizeof(un->sun_path), "%s/%s", directory, name) <
	    sizeof(un->sun_path))
		return 0;
	*dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dir < 0)
		return -errno;
	snprintf(un->sun_path, sizeof(un->sun_path), "/proc/self/fd/%d/%.60s", *dir, name);
	return 0;
}

/* --- sockets --- */

static int unix_listen(const char *name)
{
	struct sockaddr_un un;
	int dir, rc = unix_address(name, &un, &dir);
	int fd = rc ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!rc && fd < 0)
		rc = -errno;
	if (!rc) {
		/* Its port is ours, so the one who left this is dead. */
		unlink(un.sun_path);
		/* Not by the process's umask, which other threads share. */
		if (fchmod(fd, 0600) || bind(fd, (struct sockaddr *)&un, sizeof(un)) || listen(fd, BACKLOG))
			rc = -errno;
	}
	if (dir >= 0)
		close(dir);
	if (rc && fd >= 0)
		close(fd);
	return rc ? rc : fd;
}

static int unix_connect(const char *name)
{
	struct sockaddr_un un;
	int dir, rc = unix_address(name, &un, &dir);
	int fd = rc ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!rc && fd < 0)
		rc = -errno;
	if (!rc && connect(fd, (struct sockaddr *)&un, sizeof(un)))
		rc = errno == ENOENT ? -ECONNREFUSED : -errno;
	if (dir >= 0)
		close(dir);
	if (rc && fd >= 0)
		close(fd);
	return rc ? rc : fd;
}

int cm_wire_listen(uint16_t port_space, const struct sockaddr *addr, bool v6_only)
{
	char text[INET6_ADDRSTRLEN], name[80];
	int rc = find_directory();

	if (rc)
		return rc;
	name_listener(port_space, cm_addr_port(addr), address_text(addr, v6_only, text), name, sizeof(name));
	return unix_listen(name);
}

void cm_wire_unlisten(uint16_t port_space, const struct sockaddr *addr, bool v6_only)
{
	char text[INET6_ADDRSTRLEN], name[80], path[300];

	name_listener(port_space, cm_addr_port(addr), address_text(addr, v6_only, text), name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	unlink(path);
}

/* Who listens in this net for a request to `dst`: at the address, at all of the family, at all. */
static int connect_here(uint16_t port_space, const struct sockaddr *dst)
{
	char text[INET6_ADDRSTRLEN], name[80];
	const char *address = address_text(dst, false, text);
	const char *tries[] = {address, strchr(address, ':') ? "any6" : "any4", "any"};
	int fd = -ECONNREFUSED;

	for (size_t i = 0; i < 3 && fd == -ECONNREFUSED; i++) {
		name_listener(port_space, cm_addr_port(dst), tries[i], name, sizeof(name));
		fd = unix_connect(name);
	}
	return fd;
}

static int tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd < 0 ? -errno : fd;
}

static struct sockaddr_in tcp_address(uint32_t address, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
}

/* From the address that is our GID: the other end looks. */
static int connect_there(uint32_t address, bool *connecting)
{
	struct sockaddr_in from = tcp_address(config.address, 0), to = tcp_address(address, TCP_PORT);
	int fd = tcp_socket(), rc = 0;

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)))
		rc = -errno;
	else if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		rc = errno == EINPROGRESS ? 0 : -errno;
	*connecting = true;
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

/* False: it has none, being an IPv6 address proper. */
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

int cm_wire_connect(uint16_t port_space, const struct sockaddr *dst, struct cm_place *place)
{
	uint32_t address = 0;
	int fd = find_directory();

	*place = (struct cm_place){0};
	if (fd)
		return fd;
	if (!has_others() || cm_wire_is_own(dst))
		fd = connect_here(port_space, dst);
	else
		fd = -ECONNREFUSED;
	if (fd == -ECONNREFUSED && has_others() && ipv4_of(dst, &address) && address != config.address) {
		fd = connect_there(address, &place->connecting);
		place->peer = address;
	}
	return fd;
}

int cm_wire_listen_far(void)
{
	struct sockaddr_in at;
	int fd, one = 1, rc = find_directory();

	if (rc || !has_others())
		return rc ? rc : -ENODEV;
	at = tcp_address(config.address, TCP_PORT);
	fd = tcp_socket();
	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, BACKLOG))
		rc = -errno;
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

int cm_wire_accept(int listener, struct cm_place *place)
{
	struct sockaddr_storage from = {0};
	socklen_t len = sizeof(from);
	int fd = accept4(listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK), one = 1;

	*place = (struct cm_place){0};
	if (fd < 0)
		return -errno;
	if (from.ss_family == AF_INET) {
		ipv4_of((struct sockaddr *)&from, &place->peer);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	return fd;
}

bool cm_wire_is_own(const struct sockaddr *addr)
{
	struct sockaddr_storage at;
	int fd, rc;

	memcpy(&at, addr, cm_addr_len(addr));
	if (at.ss_family == AF_INET)
		((struct sockaddr_in *)&at)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&at)->sin6_port = 0;
	fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	rc = bind(fd, (struct sockaddr *)&at, cm_addr_len(addr));
	close(fd);
	return !rc;
}

bool cm_wire_reaches(const struct sockaddr *addr)
{
	uint32_t address;

	return cm_wire_is_own(addr) || (!find_directory() && has_others() && ipv4_of(addr, &address));
}

/* --- ports --- */

/* Whoever cleans up holds locks for a moment, and no port. */
#define LOCK_TRIES  10
#define LOCK_NAP_US 2000

static int lock_range(short type, uint64_t from, uint64_t len)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)from, .l_len = (off_t)len};

	return fcntl(ports, F_SETLK, &lock) ? -errno : 0;
}

/* Is the open file still the one that others find? The last process of the net removes it. */
static bool ports_are_there(const char *path)
{
	struct stat is, at;

	return ports >= 0 && ports_pid == getpid() && !fstat(ports, &is) && !stat(path, &at) &&
	       is.st_ino == at.st_ino && is.st_dev == at.st_dev;
}

/* Locks of this kind belong to the process: all of it go with any descriptor of the file that is closed. So
 * there is one, kept; a child of fork() makes its own. */
int cm_wire_reserve(uint64_t from, uint64_t len, bool shared)
{
	char path[300];
	int rc = find_directory();

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/cm-ports", directory);
	for (unsigned n = 0; n < LOCK_TRIES; n++) {
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
		if (rc)
			usleep(LOCK_NAP_US);
	}
	return -EADDRINUSE;
}

void cm_wire_release(uint64_t from, uint64_t len)
{
	if (ports >= 0 && ports_pid == getpid())
		lock_range(F_UNLCK, from, len);
}

/* Nobody holds the port of such a file: it is a dead process's. This one has no port now. */
void cm_wire_sweep(void)
{
	struct dirent *entry;
	DIR *dir;

	if (find_directory())
		return;
	dir = opendir(directory);
	while (dir && (entry = readdir(dir))) {
		unsigned port_space, port;
		uint64_t from;

		if (sscanf(entry->d_name, "cm-%x-%u-", &port_space, &port) != 2)
			continue;
		from = cm_port_range((uint16_t)port_space, (uint16_t)port);
		if (cm_wire_reserve(from, CM_PORT_RANGE, false))
			continue;
		unlinkat(dirfd(dir), entry->d_name, 0);
		cm_wire_release(from, CM_PORT_RANGE);
	}
	if (dir)
		closedir(dir);
}

void cm_wire_leave(void)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/cm-ports", directory);
	/* With all of it locked nobody has a port, and who is about to take one looks again. */
	if (ports_are_there(path) && !lock_range(F_WRLCK, 0, 0))
		unlink(path);
	if (ports >= 0 && ports_pid == getpid())
		close(ports);
	ports = -1;
}

void cm_wire_in_child(void)
{
	if (ports >= 0)
		close(ports);
	ports = -1;
	*directory = 0;
}

/* --- messages --- */

static void put_address(struct wire_address *to, const struct sockaddr_storage *from)
{
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;

		to->family = 4;
		to->port = in->sin_port;
		memcpy(to->bytes, &in->sin_addr, 4);
	} else if (from->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

		to->family = 6;
		to->port = in6->sin6_port;
		memcpy(to->bytes, &in6->sin6_addr, 16);
	}
}

static void get_address(const struct wire_address *from, struct sockaddr_storage *to)
{
	memset(to, 0, sizeof(*to));
	if (from->family == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)to;

		in->sin_family = AF_INET;
		in->sin_port = from->port;
		memcpy(&in->sin_addr, from->bytes, 4);
	} else if (from->family == 6) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = from->port;
		memcpy(&in6->sin6_addr, from->bytes, 16);
	}
}

static void encode(struct wire_message *to, const struct cm_message *from)
{
	*to = (struct wire_message){
		.magic = htobe32(MAGIC),
		.type = (uint8_t)from->type,
		.mtu = from->mtu,
		.ack_timeout = from->ack_timeout,
		.srq = from->params.srq,
		.port_space = htobe16(from->port_space),
		.reason = htobe16(from->reason),
		.responder_resources = from->params.responder_resources,
		.initiator_depth = from->params.initiator_depth,
		.flow_control = from->params.flow_control,
		.retry_count = from->params.retry_count,
		.rnr_retry_count = from->params.rnr_retry_count,
		.qpn = htobe32(from->params.qpn),
		.qkey = htobe32(from->params.qkey),
		.psn = htobe32(from->params.psn),
		.ece_vendor = htobe32(from->ece.vendor_id),
		.ece_options = htobe32(from->ece.options),
		.ece_mask = htobe32(from->ece.comp_mask),
	};
	memcpy(to->gid, &from->gid, sizeof(to->gid));
	put_address(&to->src, &from->src);
	put_address(&to->dst, &from->dst);
	memcpy(to->private_data, from->private_data, CM_MAX_PRIVATE);
}

/* Whatever came: nothing in it is used before it is within its bounds. */
static int decode(struct cm_message *to, const struct wire_message *from)
{
	if (be32toh(from->magic) != MAGIC || !from->type || from->type >= CM_TYPES ||
	    from->mtu > IBV_MTU_4096 || from->ack_timeout > 31)
		return -EPROTO;
	*to = (struct cm_message){
		.type = from->type,
		.port_space = be16toh(from->port_space),
		.reason = be16toh(from->reason),
		.params = {.responder_resources = from->responder_resources,
			   .initiator_depth = from->initiator_depth,
			   .flow_control = from->flow_control & 1,
			   .retry_count = from->retry_count & 7,
			   .rnr_retry_count = from->rnr_retry_count & 7,
			   .srq = from->srq & 1,
			   .qpn = be32toh(from->qpn) & 0xffffff,
			   .qkey = be32toh(from->qkey),
			   .psn = be32toh(from->psn) & 0xffffff},
		.mtu = from->mtu,
		.ack_timeout = from->ack_timeout,
		.ece = {.vendor_id = be32toh(from->ece_vendor),
			.options = be32toh(from->ece_options),
			.comp_mask = be32toh(from->ece_mask)},
	};
	memcpy(&to->gid, from->gid, sizeof(to->gid));
	get_address(&from->src, &to->src);
	get_address(&from->dst, &to->dst);
	memcpy(to->private_data, from->private_data, CM_MAX_PRIVATE);
	return 0;
}

int cm_wire_flush(struct cm_wire *wire)
{
	while (wire->out_len) {
		ssize_t n = send(wire->fd, wire->out, wire->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		wire->out_len -= (size_t)n;
		memmove(wire->out, wire->out + n, wire->out_len);
	}
	return 0;
}

int cm_wire_send(struct cm_wire *wire, const struct cm_message *message)
{
	/* No conversation has more messages than there are types. */
	if (wire->out_len + CM_WIRE_BYTES > CM_TYPES * CM_WIRE_BYTES)
		return -ENOBUFS;
	encode((struct wire_message *)(wire->out + wire->out_len), message);
	wire->out_len += CM_WIRE_BYTES;
	return wire->place.connecting ? 0 : cm_wire_flush(wire);
}

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int))];
};

/* A connection that another process of the net has handed on takes the place of the socket that it came by.
 */
static void adopt(struct cm_wire *wire, struct msghdr *header)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(header);
	struct sockaddr_storage from = {0};
	socklen_t len = sizeof(from);
	int fd;

	if (!control || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS ||
	    control->cmsg_len != CMSG_LEN(sizeof(fd)))
		return;
	memcpy(&fd, CMSG_DATA(control), sizeof(fd));
	if (wire->adopted < 0 && !getpeername(fd, (struct sockaddr *)&from, &len) &&
	    from.ss_family == AF_INET) {
		ipv4_of((struct sockaddr *)&from, &wire->place.peer);
		wire->adopted = fd;
	} else {
		close(fd);
	}
}

int cm_wire_hand_on(struct cm_wire *wire, const struct cm_message *request)
{
	int fd = connect_here(request->port_space, (const struct sockaddr *)&request->dst);
	struct wire_message message;
	struct iovec part = {.iov_base = &message, .iov_len = sizeof(message)};
	union control control = {0};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = control.room,
				.msg_controllen = sizeof(control.room)};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
	int rc;

	if (fd < 0)
		return fd;
	encode(&message, request);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(wire->fd));
	memcpy(CMSG_DATA(rights), &wire->fd, sizeof(wire->fd));
	rc = sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(message) ? 0 : -EAGAIN;
	close(fd);
	return rc;
}

static ssize_t receive_some(struct cm_wire *wire)
{
	struct iovec part = {.iov_base = wire->in + wire->in_len, .iov_len = CM_WIRE_BYTES - wire->in_len};
	union control control = {0};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = control.room,
				.msg_controllen = sizeof(control.room)};
	ssize_t n = recvmsg(wire->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n > 0)
		adopt(wire, &header);
	return n;
}

/* What comes from another host is about that host: its GID is what it has sent from. */
static bool is_about_sender(const struct cm_wire *wire, const struct cm_message *message)
{
	const uint8_t *raw = message->gid.raw;
	uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
	__be32 address = htonl(wire->place.peer);

	/* An answer that refuses says nothing of its sender. */
	if (!wire->place.peer || message->type == CM_REJ || message->type == CM_SIDR_REP)
		return !wire->place.peer || message->reason || !memcmp(raw + 12, &address, 4);
	return !memcmp(raw, prefix, 12) && !memcmp(raw + 12, &address, 4);
}

int cm_wire_receive(struct cm_wire *wire, struct cm_message *message)
{
	while (wire->in_len < CM_WIRE_BYTES) {
		ssize_t n = receive_some(wire);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0)
			return -EPIPE;
		wire->in_len += (size_t)n;
	}
	wire->in_len = 0;
	int rc = decode(message, (const struct wire_message *)wire->in);

	if (!rc && !is_about_sender(wire, message))
		rc = -EPROTO;
	return rc ? rc : 1;
}
