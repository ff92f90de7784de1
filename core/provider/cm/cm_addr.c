/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses, ports and routes of a process's connection manager.
 *
 * Every address of this host belongs to the one device: an address selects a listener, not a
 * device. Packets are sent to the peer's GID, which comes with its messages.
 *
 * A port belongs to a port space, at one address or at all of them, as with sockets. It is reserved
 * twice: in this process by the list of identifiers, and in the fabric by a lock (cm_fabric.c) on a
 * range for the port's addresses. IPv4 addresses come first in it, by value, then as many places
 * for IPv6 addresses, by a hash. A wildcard covers all addresses of a family.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netdb.h>
#include <sys/random.h>
#include <unistd.h>
#include "core/provider/cm/cm.h"

#define PORT_TRIES 1000

/* --- addresses --- */

/* The address as an IPv6 address. */
static struct in6_addr widen(const struct sockaddr *addr)
{
	struct in6_addr wide = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	if (addr->sa_family == AF_INET6)
		return ((const struct sockaddr_in6 *)addr)->sin6_addr;
	memcpy(&wide.s6_addr[12], &((const struct sockaddr_in *)addr)->sin_addr, 4);
	return wide;
}

static bool is_v4(const struct sockaddr *addr)
{
	struct in6_addr wide = widen(addr);

	return IN6_IS_ADDR_V4MAPPED(&wide);
}

bool covers(const struct cm_id *id, const struct sockaddr *dst)
{
	const struct sockaddr *at = &id->user.route.addr.src_addr;

	if (!sockaddr_is_any(at)) {
		struct in6_addr wide_at = widen(at), wide_dst = widen(dst);
		return IN6_ARE_ADDR_EQUAL(&wide_at, &wide_dst);
	}
	if (at->sa_family == AF_INET)
		return is_v4(dst);
	return !id->conn.options.v6_only || !is_v4(dst);
}

/* --- ports --- */

uint64_t cm_port_range(uint16_t port)
{
	return port * CM_PORT_RANGE;
}

struct range {
	uint64_t from, len;
};

static struct range range_of(const struct cm_id *id)
{
	const struct sockaddr *at = &id->user.route.addr.src_addr;
	struct in6_addr wide = widen(at);
	uint64_t base = cm_port_range(sockaddr_port(at)), half = CM_PORT_RANGE / 2;
	uint32_t hash = 0;

	if (sockaddr_is_any(at)) {
		if (at->sa_family == AF_INET)
			return (struct range){base, half};
		return id->conn.options.v6_only ? (struct range){base + half, half}
						: (struct range){base, 2 * half};
	}
	if (is_v4(at)) {
		memcpy(&hash, &wide.s6_addr[12], 4);
		return (struct range){base + ntohl(hash), 1};
	}
	for (unsigned i = 0; i < 16; i++)
		hash = hash * 31 + wide.s6_addr[i];
	return (struct range){base + half + hash, 1};
}

static bool overlap(struct range a, struct range b)
{
	return a.from < b.from + b.len && b.from < a.from + a.len;
}

static int reserve(struct cm_id *id)
{
	struct range range = range_of(id);

	assert(manager.locked);
	assert(range.len && range.from + range.len <= cm_port_range(UINT16_MAX) + CM_PORT_RANGE);
	for (struct cm_id *other = manager.cm.ids; other; other = other->next) {
		if (other != id && other->bound && overlap(range_of(other), range) &&
		    !cm_may_share(id, other))
			return -EADDRINUSE;
	}
	int rc = cm_fabric_reserve(range.from, range.len,
				   id->conn.options.reuse && id->state != CM_LISTEN);
	id->bound = id->bound || !rc;
	return rc;
}

static void give_back(struct cm_id *id)
{
	struct range range = range_of(id);

	assert(manager.locked);
	if (!id->bound)
		return;
	id->bound = false;
	cm_fabric_release(range.from, range.len);
	/* Releasing the range has also released the locks of other identifiers of this process:
	 * take them again. */
	for (struct cm_id *other = manager.cm.ids; other; other = other->next) {
		if (other->bound && overlap(range_of(other), range))
			reserve(other);
	}
}

static int reserve_any_port(struct cm_id *id)
{
	__be16 *port = &id->user.route.addr.src_sin.sin_port;
	uint32_t random = 0;
	int rc = -EADDRINUSE;

	if (getrandom(&random, sizeof(random), 0) < 0)
		random = (uint32_t)getpid() * 7919;
	for (unsigned n = 0; n < PORT_TRIES && rc == -EADDRINUSE; n++) {
		*port = htons((uint16_t)(CM_PORT_FIRST + (random + n) % CM_PORT_COUNT));
		rc = reserve(id);
	}
	if (rc)
		*port = 0;
	return rc == -EADDRINUSE ? -EADDRNOTAVAIL : rc;
}

int reserve_port(struct cm_id *id)
{
	const struct sockaddr *addr = &id->user.route.addr.src_addr;

	if (!sockaddr_is_any(addr) && !cm_fabric_is_own(addr))
		return -EADDRNOTAVAIL;
	return sockaddr_port(addr) ? reserve(id) : reserve_any_port(id);
}

int listen_at(struct cm_id *id)
{
	int rc = reserve(id); /* what it shared it has alone now */

	return rc ? rc
		  : cm_fabric_listen((uint16_t)id->user.ps, &id->user.route.addr.src_addr,
				     id->conn.options.v6_only);
}

void release_port(struct cm_id *id)
{
	if (id->state == CM_LISTEN)
		cm_fabric_unlisten((uint16_t)id->user.ps, &id->user.route.addr.src_addr,
				   id->conn.options.v6_only);
	give_back(id);
}

/* --- routes --- */

/* The address of this host from which `dst` is reached; the port is 0. */
static int source_for(const struct sockaddr *dst, struct sockaddr_storage *src)
{
	socklen_t len = sockaddr_len(dst);
	struct sockaddr_storage to;
	int fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return -errno;
	memcpy(&to, dst, len);
	((struct sockaddr_in *)&to)->sin_port = htons(
		1); /* a datagram socket sends nothing on connect() */
	if (connect(fd, (struct sockaddr *)&to, len) ||
	    getsockname(fd, (struct sockaddr *)src, &len))
		rc = -errno;
	close(fd);
	((struct sockaddr_in *)src)->sin_port = 0;
	return rc;
}

/* If the identifier is bound to a wildcard, the address becomes the one that it uses. The port
 * stays reserved. */
static int settle_source(struct cm_id *id)
{
	struct rdma_addr *at = &id->user.route.addr;
	struct sockaddr_storage src = {0};

	if (id->state == CM_BOUND && !sockaddr_is_any(&at->src_addr))
		return 0;
	int rc = source_for(&at->dst_addr, &src);
	if (rc)
		return rc;
	if (id->state == CM_IDLE)
		return cm_bind(id, (struct sockaddr *)&src);
	((struct sockaddr_in *)&src)->sin_port = at->src_sin.sin_port;
	give_back(id);
	at->src_storage = src;
	return reserve(id);
}

int find_source(struct cm_id *id)
{
	struct rdma_addr *at = &id->user.route.addr;

	/* A wildcard as the destination means this host. */
	if (sockaddr_is_any(&at->dst_addr) && at->dst_addr.sa_family == AF_INET)
		at->dst_sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (sockaddr_is_any(&at->dst_addr))
		at->dst_sin6.sin6_addr = in6addr_loopback;
	return cm_fabric_reaches(&at->dst_addr) ? -settle_source(id) : EHOSTUNREACH;
}

int find_route(struct cm_id *id, union ibv_gid *gid, uint8_t *mtu)
{
	place_of(id)->found_slot = cm_fabric_route((uint16_t)id->user.ps,
						   &id->user.route.addr.dst_addr, gid);
	if (mtu)
		*mtu = id->cm->mtu;
	return 0;
}

int find_name(const char *node, const char *service, const struct rdma_addrinfo *hints,
	      struct sockaddr_storage *at)
{
	int flags = hints ? hints->ai_flags : 0;
	struct addrinfo ask = {.ai_socktype = SOCK_STREAM}, *ai;

	ask.ai_flags = (flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
		       (flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0);
	if (flags & RAI_FAMILY)
		ask.ai_family = hints->ai_family;
	int rc = getaddrinfo(node, service, &ask, &ai);
	if (rc)
		return rc;
	cm_copy_address(at, ai->ai_addr);
	freeaddrinfo(ai);
	return 0;
}
