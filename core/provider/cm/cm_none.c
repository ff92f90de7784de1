/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of librdmacm that the soft RNIC does not support: multicast groups and rsockets. They
 * exist so that programs that are linked with them can be loaded. Each refuses with librdmacm's
 * error.
 */
#include <errno.h>
#include "core/provider/cm/cm.h"

EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
				  void *context)
{
	return errno_minus(id && attr ? EOPNOTSUPP : EINVAL);
}

EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return errno_minus(id && addr ? EOPNOTSUPP : EINVAL);
}

/* The identifier cannot be a member of any group. */
EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return errno_minus(id && addr ? EADDRNOTAVAIL : EINVAL);
}

int rsocket(int domain, int type, int protocol);
EXPORT int rsocket(int domain, int type, int protocol)
{
	return errno_minus(ENOTSUP);
}

/* No descriptor is an rsocket. -1 is the error result of each function, whether it returns an
 * int, a size or an offset. */
#define NO_RSOCKET(name)                   \
	long name(void);                   \
	EXPORT long name(void)             \
	{                                  \
		return errno_minus(EBADF); \
	}

NO_RSOCKET(raccept)
NO_RSOCKET(rbind)
NO_RSOCKET(rclose)
NO_RSOCKET(rconnect)
NO_RSOCKET(rfcntl)
NO_RSOCKET(rgetpeername)
NO_RSOCKET(rgetsockname)
NO_RSOCKET(rgetsockopt)
NO_RSOCKET(riomap)
NO_RSOCKET(riounmap)
NO_RSOCKET(riowrite)
NO_RSOCKET(rlisten)
NO_RSOCKET(rpoll)
NO_RSOCKET(rread)
NO_RSOCKET(rreadv)
NO_RSOCKET(rrecv)
NO_RSOCKET(rrecvfrom)
NO_RSOCKET(rrecvmsg)
NO_RSOCKET(rselect)
NO_RSOCKET(rsend)
NO_RSOCKET(rsendmsg)
NO_RSOCKET(rsendto)
NO_RSOCKET(rsetsockopt)
NO_RSOCKET(rshutdown)
NO_RSOCKET(rwrite)
NO_RSOCKET(rwritev)
