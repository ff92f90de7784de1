/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets, which are not there: librdmacm has them, and programs that never make one, such as rping, are
 * linked with their names. None can be made, so no descriptor is one: calls that want one say so, and those
 * that take any descriptor do what poll() and select() do.
 */
#include <errno.h>
#include <rdma/rsocket.h>
#include "core/nic/cm.h"

CM_EXPORT int rsocket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	(void)protocol;
	return cm_fail(EPROTONOSUPPORT);
}

CM_EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}

CM_EXPORT int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	return select(nfds, readfds, writefds, exceptfds, timeout);
}

/* A call on a descriptor that is no rsocket; it does not look at the rest. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NO_RSOCKET(type, name, ...)      \
	CM_EXPORT type name(__VA_ARGS__) \
	{                                \
		errno = EBADF;           \
		return (type)-1;         \
	}

NO_RSOCKET(int, rbind, int fd, const struct sockaddr *addr, socklen_t len)
NO_RSOCKET(int, rlisten, int fd, int backlog)
NO_RSOCKET(int, raccept, int fd, struct sockaddr *addr, socklen_t *len)
NO_RSOCKET(int, rconnect, int fd, const struct sockaddr *addr, socklen_t len)
NO_RSOCKET(int, rshutdown, int fd, int how)
NO_RSOCKET(int, rclose, int fd)
NO_RSOCKET(ssize_t, rrecv, int fd, void *buf, size_t len, int flags)
NO_RSOCKET(ssize_t, rrecvfrom, int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
	   socklen_t *size)
NO_RSOCKET(ssize_t, rrecvmsg, int fd, struct msghdr *msg, int flags)
NO_RSOCKET(ssize_t, rsend, int fd, const void *buf, size_t len, int flags)
NO_RSOCKET(ssize_t, rsendto, int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
	   socklen_t size)
NO_RSOCKET(ssize_t, rsendmsg, int fd, const struct msghdr *msg, int flags)
NO_RSOCKET(ssize_t, rread, int fd, void *buf, size_t count)
NO_RSOCKET(ssize_t, rreadv, int fd, const struct iovec *parts, int count)
NO_RSOCKET(ssize_t, rwrite, int fd, const void *buf, size_t count)
NO_RSOCKET(ssize_t, rwritev, int fd, const struct iovec *parts, int count)
NO_RSOCKET(int, rgetpeername, int fd, struct sockaddr *addr, socklen_t *len)
NO_RSOCKET(int, rgetsockname, int fd, struct sockaddr *addr, socklen_t *len)
NO_RSOCKET(int, rsetsockopt, int fd, int level, int name, const void *value, socklen_t len)
NO_RSOCKET(int, rgetsockopt, int fd, int level, int name, void *value, socklen_t *len)
NO_RSOCKET(int, rfcntl, int fd, int cmd, ...)
NO_RSOCKET(off_t, riomap, int fd, void *buf, size_t len, int prot, int flags, off_t offset)
NO_RSOCKET(int, riounmap, int fd, void *buf, size_t len)
NO_RSOCKET(size_t, riowrite, int fd, const void *buf, size_t count, off_t offset, int flags)
