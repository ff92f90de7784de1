/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses, ports and routes of the connection manager.
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
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/provider/cm/cm.h"

#define PORT_TRIES 1000

/* --- addresses --- */

/* The port is in the same place in both families. */
static __be16 *port_of(struct sockaddr *addr)
{
	return &((struct sockaddr_in *)addr)->sin_port;
}

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

bool cm_addr_same(const struct sockaddr *a, const struct sockaddr *b)
{
	struct in6_addr wide_a = widen(a), wide_b = widen(b);

	return IN6_ARE_ADDR_EQUAL(&wide_a, &wide_b);
}

/* Is a request to `dst` for this listener? */
static bool covers(const struct cm_id *id, const struct sockaddr *dst)
{
	const struct sockaddr *at = &id->user.route.addr.src_addr;

	if (!sockaddr_is_any(at))
		return cm_addr_same(at, dst);
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

/* May both have the port? As with sockets: both have asked for reuse, and neither listens. */
static bool may_share(const struct cm_id *a, const struct cm_id *b)
{
	return a->conn.options.reuse && b->conn.options.reuse && a->state != CM_LISTEN &&
	       b->state != CM_LISTEN;
}

static int reserve(struct cm_id *id)
{
	struct range range = range_of(id);
	int rc;

	assert(cm.locked);
	assert(range.len && range.from + range.len <= cm_port_range(UINT16_MAX) + CM_PORT_RANGE);
	for (struct cm_id *other = cm.ids; other; other = other->next) {
		if (other != id && other->reserved && overlap(range_of(other), range) &&
		    !may_share(id, other))
			return -EADDRINUSE;
	}
	rc = cm_fabric_reserve(range.from, range.len,
			       id->conn.options.reuse && id->state != CM_LISTEN);
	id->reserved = id->reserved || !rc;
	return rc;
}

int cm_claim_listen(struct cm_id *id)
{
	enum cm_state before = id->state;
	int rc;

	cm_to_state(id, CM_LISTEN);
	rc = reserve(id);
	if (rc)
		cm_to_state(id, before);
	return rc;
}

void cm_release_port(struct cm_id *id)
{
	struct range range = range_of(id);

	assert(cm.locked);
	if (!id->reserved)
		return;
	id->reserved = false;
	cm_fabric_release(range.from, range.len);
	/* Releasing the range has also released the locks of other identifiers of this process:
	 * take them again. */
	for (struct cm_id *other = cm.ids; other; other = other->next) {
		if (other->reserved && overlap(range_of(other), range))
			reserve(other);
	}
}

static int reserve_any_port(struct cm_id *id)
{
	__be16 *port = port_of(&id->user.route.addr.src_addr);
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

struct cm_id *cm_find_listener(uint16_t port_space, const struct sockaddr *dst)
{
	for (struct cm_id *id = cm.ids; id; id = id->next) {
		if (id->state == CM_LISTEN && id->user.ps == port_space &&
		    sockaddr_port(&id->user.route.addr.src_addr) == sockaddr_port(dst) &&
		    covers(id, dst))
			return id;
	}
	return NULL;
}

/* Locked. */
int cm_bind(struct cm_id *id, const struct sockaddr *addr)
{
	struct rdma_addr *at = &id->user.route.addr;
	int rc;

	if (id->state != CM_IDLE)
		return -EINVAL;
	if (!sockaddr_len(addr))
		return -EAFNOSUPPORT;
	if (!sockaddr_is_any(addr) && !cm_fabric_is_own(addr))
		return -EADDRNOTAVAIL;
	memcpy(&at->src_storage, addr, sockaddr_len(addr));
	rc = sockaddr_port(addr) ? reserve(id) : reserve_any_port(id);
	if (rc) {
		memset(&at->src_storage, 0, sizeof(at->src_storage));
		return rc;
	}
	assert(id->reserved);
	cm_to_state(id, CM_BOUND);
	if (!sockaddr_is_any(addr))
		cm_bind_device(id);
	return 0;
}

EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	int rc;

	if (!addr)
		return cm_fail(EINVAL);
	cm_lock();
	rc = cm_bind(to_cm(id), addr);
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}

EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return *port_of(&id->route.addr.src_addr);
}

EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return *port_of(&id->route.addr.dst_addr);
}

/* --- resolution --- */

/* The address of this host from which `dst` is reached; the port is 0. */
static int source_for(const struct sockaddr *dst, struct sockaddr_storage *src)
{
	socklen_t len = sockaddr_len(dst);
	struct sockaddr_storage to;
	int fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return -errno;
	memcpy(&to, dst, len);
	*port_of((struct sockaddr *)&to) = htons(
		1); /* a datagram socket sends nothing on connect() */
	if (connect(fd, (struct sockaddr *)&to, len) ||
	    getsockname(fd, (struct sockaddr *)src, &len))
		rc = -errno;
	close(fd);
	*port_of((struct sockaddr *)src) = 0;
	return rc;
}

/* A wildcard as the destination means this host. */
static void settle_destination(struct cm_id *id, const struct sockaddr *dst)
{
	struct rdma_addr *at = &id->user.route.addr;

	memset(&at->dst_storage, 0, sizeof(at->dst_storage));
	memcpy(&at->dst_storage, dst, sockaddr_len(dst));
	if (!sockaddr_is_any(dst))
		return;
	if (dst->sa_family == AF_INET)
		at->dst_sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		at->dst_sin6.sin6_addr = in6addr_loopback;
}

/* If the identifier is bound to a wildcard, the address becomes the one that it uses. The port
 * stays reserved. */
static int settle_source(struct cm_id *id)
{
	struct rdma_addr *at = &id->user.route.addr;
	struct sockaddr_storage src = {0};
	int rc;

	if (id->state == CM_BOUND && !sockaddr_is_any(&at->src_addr))
		return 0;
	rc = source_for(&at->dst_addr, &src);
	if (rc)
		return rc;
	if (id->state == CM_IDLE)
		return cm_bind(id, (struct sockaddr *)&src);
	*port_of((struct sockaddr *)&src) = *port_of(&at->src_addr);
	cm_release_port(id);
	at->src_storage = src;
	return reserve(id);
}

static int resolve_addr(struct cm_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct cm_event *event;
	int rc = 0;

	if (id->state != CM_IDLE && id->state != CM_BOUND)
		return -EINVAL;
	if (!dst || !sockaddr_len(dst))
		return dst ? -EAFNOSUPPORT : -EINVAL;
	if (src && sockaddr_len(src) && id->state == CM_IDLE)
		rc = cm_bind(id, src);
	if (rc)
		return rc;
	settle_destination(id, dst);
	rc = cm_fabric_reaches(&id->user.route.addr.dst_addr) ? settle_source(id) : -EHOSTUNREACH;
	event = cm_event(id, rc ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, rc);
	if (!event)
		return -ENOMEM;
	if (!rc) {
		cm_to_state(id, CM_ADDR_RESOLVED);
		cm_bind_device(id);
	}
	cm_report(event, id);
	return 0;
}

/* The result is known at once, so the timeout does not matter. */
EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
			     int timeout_ms)
{
	int rc;

	(void)timeout_ms;
	cm_lock();
	rc = resolve_addr(to_cm(id), src, dst);
	cm_unlock();
	return rc ? cm_fail(-rc) : cm_complete(to_cm(id));
}

static int resolve_route(struct cm_id *id)
{
	struct rdma_addr *at = &id->user.route.addr;
	struct cm_event *event;

	if (id->state != CM_ADDR_RESOLVED)
		return -EINVAL;
	event = cm_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (!event)
		return -ENOMEM;
	cm_fabric_route((uint16_t)id->user.ps, &at->dst_addr, &at->addr.ibaddr.dgid);
	cm_show_route(&id->user, &id->path, &id->conn.options, (uint8_t)cm.device.port.active_mtu);
	cm_to_state(id, CM_ROUTE_RESOLVED);
	cm_report(event, id);
	return 0;
}

EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	int rc;

	(void)timeout_ms;
	cm_lock();
	rc = resolve_route(to_cm(id));
	cm_unlock();
	return rc ? cm_fail(-rc) : cm_complete(to_cm(id));
}

/* --- rdma_getaddrinfo --- */

EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}

static int copy_bytes(void **to, const void *from, size_t len)
{
	*to = NULL;
	if (!from || !len)
		return 0;
	*to = malloc(len);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, len);
	return 0;
}

/* Only connections in TCP's port space are supported; the rest of the hints is filled in. */
static int settle_kind(struct rdma_addrinfo *rai)
{
	if (!rai->ai_port_space)
		rai->ai_port_space = RDMA_PS_TCP;
	if (!rai->ai_qp_type)
		rai->ai_qp_type = IBV_QPT_RC;
	if (rai->ai_port_space != RDMA_PS_TCP)
		return EAI_SERVICE;
	return rai->ai_qp_type == IBV_QPT_RC || rai->ai_qp_type == IBV_QPT_UC ? 0 : EAI_SOCKTYPE;
}

static int take_address(struct rdma_addrinfo *rai, const struct addrinfo *ai, bool passive)
{
	struct sockaddr **addr = passive ? &rai->ai_src_addr : &rai->ai_dst_addr;
	char **name = passive ? &rai->ai_src_canonname : &rai->ai_dst_canonname;

	*(passive ? &rai->ai_src_len : &rai->ai_dst_len) = ai->ai_addrlen;
	rai->ai_family = ai->ai_family;
	if (ai->ai_canonname) {
		*name = strdup(ai->ai_canonname);
		if (!*name)
			return EAI_MEMORY;
	}
	return copy_bytes((void **)addr, ai->ai_addr, ai->ai_addrlen);
}

/* Find the address by name, which takes precedence, or in the hints. */
static int find_address(struct rdma_addrinfo *rai, const char *node, const char *service,
			const struct rdma_addrinfo *hints)
{
	bool passive = rai->ai_flags & RAI_PASSIVE;
	struct addrinfo ask = {.ai_socktype = SOCK_STREAM}, *ai;
	int rc;

	if (node || service) {
		ask.ai_flags = (passive ? AI_PASSIVE : 0) |
			       (rai->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0);
		if (rai->ai_flags & RAI_FAMILY)
			ask.ai_family = hints->ai_family;
		rc = getaddrinfo(node, service, &ask, &ai);
		if (rc)
			return rc;
		rc = take_address(rai, ai, passive);
		freeaddrinfo(ai);
		return rc;
	}
	rai->ai_dst_len = passive ? 0 : hints->ai_dst_len;
	rai->ai_family = hints->ai_family;
	if (rai->ai_dst_len)
		rai->ai_family = hints->ai_dst_addr->sa_family;
	else if (hints->ai_src_len)
		rai->ai_family = hints->ai_src_addr->sa_family;
	return copy_bytes((void **)&rai->ai_dst_addr, hints->ai_dst_addr, rai->ai_dst_len);
}

EXPORT int rdma_getaddrinfo(const char *node, const char *service,
			    const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	const int known = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY;
	struct rdma_addrinfo *rai;
	int rc;

	if (!node && !service && !hints)
		return EAI_NONAME;
	if (hints && hints->ai_flags & ~known)
		return EAI_BADFLAGS;
	if (!node && !service && !hints->ai_src_len && !hints->ai_dst_len)
		return EAI_NONAME;
	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return EAI_MEMORY;
	if (hints) {
		rai->ai_flags = hints->ai_flags;
		rai->ai_qp_type = hints->ai_qp_type;
		rai->ai_port_space = hints->ai_port_space;
	}
	rc = settle_kind(rai);
	if (!rc)
		rc = find_address(rai, node, service, hints);
	if (!rc && hints && !rai->ai_src_len && hints->ai_src_len) {
		rai->ai_src_len = hints->ai_src_len;
		rc = copy_bytes((void **)&rai->ai_src_addr, hints->ai_src_addr, hints->ai_src_len);
	}
	if (!rc && hints && hints->ai_connect_len) {
		rai->ai_connect_len = hints->ai_connect_len;
		rc = copy_bytes(&rai->ai_connect, hints->ai_connect, hints->ai_connect_len);
	}
	if (rc) {
		rdma_freeaddrinfo(rai);
		return rc;
	}
	*res = rai;
	return 0;
}
