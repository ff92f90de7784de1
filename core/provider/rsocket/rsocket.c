/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets: their descriptors, names and end, and how a call sleeps. See rsocket.h.
 *
 * The program's descriptor is an epoll of all that an rsocket waits for, so it has a number that
 * nothing else has, and becomes readable when there is something to look after; that there is
 * something to read it does not mean.
 *
 * A child of fork() has none of its parent's: the connections stay the parent's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "core/provider/rsocket/rsocket.h"

/* --- which descriptor is which --- */

static struct {
	pthread_mutex_t mutex;
	struct rsocket **of; /* by descriptor */
	size_t size;
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void lock_table(void)
{
	pthread_mutex_lock(&table.mutex);
}

static void unlock_table(void)
{
	pthread_mutex_unlock(&table.mutex);
}

/* What the parent's other threads were doing with them is not known: they stay as they are,
 * unused. */
static void in_child(void)
{
	table.of = NULL;
	table.size = 0;
	pthread_mutex_init(&table.mutex, NULL);
}

static void at_first(void)
{
	pthread_atfork(lock_table, unlock_table, in_child);
}

static int rs_show_locked(struct rsocket *rs)
{
	size_t size = (size_t)rs->fd + 64;
	struct rsocket **of;

	if ((size_t)rs->fd >= table.size) {
		of = realloc(table.of, size * sizeof(struct rsocket *));
		if (!of)
			return -ENOMEM;
		memset(of + table.size, 0, (size - table.size) * sizeof(struct rsocket *));
		table.of = of;
		table.size = size;
	}
	table.of[rs->fd] = rs;
	return 0;
}

int rs_show(struct rsocket *rs)
{
	int rc;

	lock_table();
	rc = rs_show_locked(rs);
	unlock_table();
	return rc;
}

static struct rsocket *find_locked(int fd)
{
	return fd >= 0 && (size_t)fd < table.size ? table.of[fd] : NULL;
}

struct rsocket *rs_hold(int fd)
{
	struct rsocket *rs;

	lock_table();
	rs = find_locked(fd);
	if (rs)
		rs->refs++;
	unlock_table();
	return rs;
}

static void free_rsocket(struct rsocket *rs)
{
	struct rdma_cm_event *event;

	if (rs->id && rs->id->qp)
		rdma_destroy_qp(rs->id);
	rs_free_stream(rs);
	if (rs->id) {
		rdma_destroy_id(rs->id);
		/* There is none: but a channel that another thread has read last may not be given
		 * back. */
		if (!rdma_get_cm_event(rs->events, &event))
			rdma_ack_cm_event(event);
	}
	if (rs->events)
		rdma_destroy_event_channel(rs->events);
	if (rs->wake >= 0)
		close(rs->wake);
	if (rs->fd >= 0)
		close(rs->fd);
	for (unsigned call = 0; call < RS_CALLS; call++)
		pthread_mutex_destroy(&rs->calls[call]);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}

void rs_drop(struct rsocket *rs)
{
	bool last;

	lock_table();
	last = !--rs->refs;
	unlock_table();
	if (last)
		free_rsocket(rs);
}

struct rsocket *rs_get(int fd)
{
	struct rsocket *rs = rs_hold(fd);

	if (rs)
		pthread_mutex_lock(&rs->lock);
	return rs;
}

void rs_put(struct rsocket *rs)
{
	pthread_mutex_unlock(&rs->lock);
	rs_drop(rs);
}

/* --- creation --- */

#define SETTINGS "/etc/rdma/rsocket/"

/* What the host's administrator has set, as rsocket(7) has it. */
static uint32_t setting(const char *name, uint32_t usual, uint32_t least, uint32_t most)
{
	char path[64];
	unsigned value;
	FILE *file;
	int n = 0;

	snprintf(path, sizeof(path), SETTINGS "%s", name);
	file = fopen(path, "re");
	if (file) {
		n = fscanf(file, "%u", &value);
		fclose(file);
	}
	return n != 1 ? usual : value < least ? least : value > most ? most : value;
}

static void set_options(struct rsocket *rs, const struct rsocket *like)
{
	if (like) {
		rs->send_bytes = like->send_bytes;
		rs->receive_bytes = like->receive_bytes;
		rs->send_requests = like->send_requests;
		rs->receive_requests = like->receive_requests;
		rs->inline_bytes = like->inline_bytes;
		rs->iomaps = like->iomaps;
		rs->family = like->family;
		return;
	}
	rs->send_bytes = setting("wmem_default", 1 << 17, RS_ENOUGH, RS_MOST_BYTES);
	rs->receive_bytes = setting("mem_default", 1 << 17, 2, RS_MOST_BYTES);
	rs->send_requests = setting("sqsize_default", 384, RS_LEAST_REQUESTS, RS_MOST_REQUESTS);
	rs->receive_requests = setting("rqsize_default", 384, RS_LEAST_REQUESTS, RS_MOST_REQUESTS);
	rs->inline_bytes = setting("inline_default", 64, 0, UINT16_MAX);
	rs->iomaps = rs_iomaps_of(rs_iomaps_code(setting("iomap_size", 0, 0, UINT16_MAX)));
}

/* What comes there wakes those who look at the rsocket's descriptor. */
static int listen_to(struct rsocket *rs, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(rs->fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int rs_listen_to_completions(struct rsocket *rs)
{
	if (fcntl(rs->completions->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	return listen_to(rs, rs->completions->fd);
}

struct rsocket *rs_new(const struct rsocket *like)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct rsocket *rs = calloc(1, sizeof(*rs));
	int error;

	if (!rs)
		return NULL;
	pthread_once(&once, at_first);
	rs->refs = 1;
	rs->can_read = rs->can_write = rs->lingers = true;
	rs->linger_s = -1;
	rs->keepalive_ms = RS_NEVER;
	for (unsigned call = 0; call < RS_CALLS; call++)
		pthread_mutex_init(&rs->calls[call], NULL);
	pthread_mutex_init(&rs->lock, NULL);
	set_options(rs, like);
	rs->wake = -1;
	rs->fd = epoll_create1(EPOLL_CLOEXEC);
	if (rs->fd >= 0)
		rs->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rs->wake >= 0)
		rs->events = rdma_create_event_channel();
	if (rs->events && !fcntl(rs->events->fd, F_SETFL, O_NONBLOCK) && !listen_to(rs, rs->wake) &&
	    !listen_to(rs, rs->events->fd))
		return rs;
	error = errno;
	free_rsocket(rs);
	errno = error;
	return NULL;
}

/* Streams of IP addresses; datagrams are not there. */
CM_EXPORT int rsocket(int domain, int type, int protocol)
{
	struct rsocket *rs;
	int rc = 0, fd;

	if ((domain != AF_INET && domain != AF_INET6) || type != SOCK_STREAM ||
	    (protocol && protocol != IPPROTO_TCP))
		return cm_fail(ENOTSUP);
	rs = rs_new(NULL);
	if (!rs)
		return -1;
	rs->family = (sa_family_t)domain;
	if (rdma_create_id(rs->events, &rs->id, NULL, RDMA_PS_TCP))
		rc = -errno;
	if (!rc)
		rc = rs_show(rs);
	fd = rs->fd;
	if (rc) {
		rs_drop(rs);
		return cm_fail(-rc);
	}
	return fd;
}

/* --- sleep --- */

void rs_lie_down(struct rsocket *rs)
{
	rs->sleepers++;
	if (rs->to_wake)
		rs->to_wake++; /* it wakes him, too, at once */
}

void rs_get_up(struct rsocket *rs)
{
	uint64_t count;

	rs->sleepers--;
	if (rs->to_wake && !--rs->to_wake && read(rs->wake, &count, sizeof(count)) < 0)
		return; /* it has been empty */
}

void rs_wake(struct rsocket *rs)
{
	uint64_t one = 1;

	if (!rs->sleepers || rs->to_wake)
		return;
	rs->to_wake = rs->sleepers;
	if (write(rs->wake, &one, sizeof(one)) < 0)
		return; /* it is full */
}

/* Whole milliseconds until then, for poll(). */
int rs_ms_until(uint64_t until_ms)
{
	uint64_t now = cm_now_ms();

	if (until_ms == RS_NEVER)
		return -1;
	return until_ms <= now ? 0 : until_ms - now < INT32_MAX ? (int)(until_ms - now) : INT32_MAX;
}

int rs_sleep(struct rsocket *rs, uint64_t until_ms)
{
	uint64_t until = until_ms < rs->keepalive_ms ? until_ms : rs->keepalive_ms;
	struct pollfd fd = {.fd = rs->fd, .events = POLLIN};
	int rc;

	if (until_ms <= cm_now_ms())
		return -EAGAIN;
	rs_lie_down(rs);
	pthread_mutex_unlock(&rs->lock);
	rc = poll(&fd, 1, rs_ms_until(until)) < 0 ? -errno : 0;
	pthread_mutex_lock(&rs->lock);
	rs_get_up(rs);
	rs_keep_alive(rs);
	return rc;
}

int rs_wait(struct rsocket *rs, bool (*ready)(const struct rsocket *), bool nonblocking,
	    uint64_t until_ms)
{
	for (;;) {
		bool some = rs_progress(rs, !nonblocking);
		int rc = 0;

		if (ready(rs))
			return 0;
		if (!some)
			rc = nonblocking ? -EAGAIN : rs_sleep(rs, until_ms);
		if (rc)
			return rc;
	}
}

/* --- names --- */

static socklen_t size_of(sa_family_t family)
{
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

int rs_check_address(const struct rsocket *rs, const struct sockaddr *addr, socklen_t len)
{
	if (!addr || len < sizeof(addr->sa_family) || len < size_of(addr->sa_family))
		return -EINVAL;
	return addr->sa_family == rs->family ? 0 : -EAFNOSUPPORT;
}

/* As much as there is room for; *len: how much there is. */
static void tell_address(const struct rsocket *rs, const struct sockaddr *from, struct sockaddr *to,
			 socklen_t *len)
{
	struct sockaddr_storage none = {.ss_family = rs->family};
	socklen_t size;

	if (from->sa_family != AF_INET && from->sa_family != AF_INET6)
		from = (struct sockaddr *)&none;
	size = size_of(from->sa_family);
	memcpy(to, from, *len < size ? *len : size);
	*len = size;
}

void rs_tell_peer(const struct rsocket *rs, struct sockaddr *addr, socklen_t *len)
{
	tell_address(rs, &rs->id->route.addr.dst_addr, addr, len);
}

CM_EXPORT int rbind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct rsocket *rs = rs_get(fd);
	int rc;

	if (!rs)
		return cm_fail(EBADF);
	rc = rs->state != RS_NEW || rs->bound ? -EINVAL : rs_check_address(rs, addr, len);
	if (!rc && rdma_bind_addr(rs->id, (struct sockaddr *)(uintptr_t)addr))
		rc = -errno;
	if (!rc)
		rs->bound = true;
	rs_put(rs);
	return rc ? cm_fail(-rc) : 0;
}

CM_EXPORT int rgetsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct rsocket *rs = rs_get(fd);

	if (!rs)
		return cm_fail(EBADF);
	tell_address(rs, &rs->id->route.addr.src_addr, addr, len);
	rs_put(rs);
	return 0;
}

CM_EXPORT int rgetpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct rsocket *rs = rs_get(fd);
	int rc = 0;

	if (!rs)
		return cm_fail(EBADF);
	if (rs->state == RS_NEW || rs->state == RS_LISTENING)
		rc = -ENOTCONN;
	else
		rs_tell_peer(rs, addr, len);
	rs_put(rs);
	return rc ? cm_fail(-rc) : 0;
}

CM_EXPORT int rfcntl(int fd, int cmd, ...)
{
	struct rsocket *rs = rs_get(fd);
	int rc = 0;
	va_list args;

	if (!rs)
		return cm_fail(EBADF);
	va_start(args, cmd);
	if (cmd == F_GETFL)
		rc = O_RDWR | (rs->nonblocking ? O_NONBLOCK : 0);
	else if (cmd == F_SETFL)
		rs->nonblocking = va_arg(args, int) & O_NONBLOCK;
	else
		rc = -ENOTSUP;
	va_end(args);
	rs_put(rs);
	return rc < 0 ? cm_fail(-rc) : rc;
}

/* --- the end --- */

/* Takes it from the table. What was sent is the peer's before the connection goes; calls that other
 * threads are in end, the last one frees it. */
CM_EXPORT int rclose(int fd)
{
	struct rsocket *rs;
	uint64_t until = RS_NEVER;

	lock_table();
	rs = find_locked(fd);
	if (rs)
		table.of[fd] = NULL;
	unlock_table();
	if (!rs)
		return cm_fail(EBADF);
	pthread_mutex_lock(&rs->lock);
	if (rs->lingers && rs->linger_s >= 0)
		until = cm_now_ms() + (uint64_t)rs->linger_s * 1000;
	if (rs->state == RS_ACCEPTED)
		rs_await_connection(rs, false);
	if (rs->state == RS_CONNECTED)
		rs_shut(rs, SHUT_RDWR, until);
	rs->state = RS_OVER;
	rs_wake(rs);
	rs_put(rs);
	return 0;
}
