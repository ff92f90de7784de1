/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CM_SOCKADDR_H
#define TM_CM_SOCKADDR_H
/* Socket addresses of both families. */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* 0: an unknown family */
static inline socklen_t sockaddr_len(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

/* The port is in the same place in both families. */
static inline uint16_t sockaddr_port(const struct sockaddr *addr)
{
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

static inline bool sockaddr_is_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ((const struct sockaddr_in *)addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

#endif
