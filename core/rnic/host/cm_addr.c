/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses and ports of the connection manager. Every address is the server's, whatever its
 * family: where a host listens only the port counts. The hosts' own addresses are those of their
 * GIDs, 10.0.0.1 and so on.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include "core/rnic/host/cm.h"
#include "core/rnic/objects/device.h"
#include "core/rt/libc.h"
#include "core/text/text.h"

/* --- addresses --- */

static struct in6_addr mapped(uint32_t address)
{
	struct in6_addr wide;
	union ibv_gid gid;

	rnic_gid(address, &gid);
	memcpy(&wide, gid.raw, sizeof(wide));
	return wide;
}

/* The port is in the same place in both families. */
__be16 *host_cm_port(struct sockaddr_storage *addr)
{
	return &((struct sockaddr_in *)addr)->sin_port;
}

/* An address of the program's without what it may have left uninitialized; family 0: an unknown
 * one. */
static void copy_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

	memset(to, 0, sizeof(*to));
	if (from->sa_family == AF_INET)
		*(struct sockaddr_in *)to = (struct sockaddr_in){
			.sin_family = AF_INET, .sin_port = in->sin_port, .sin_addr = in->sin_addr};
	else if (from->sa_family == AF_INET6)
		*(struct sockaddr_in6 *)to = (struct sockaddr_in6){.sin6_family = AF_INET6,
								   .sin6_port = in6->sin6_port,
								   .sin6_addr = in6->sin6_addr};
}

struct sockaddr_in6 host_cm_widen(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	if (addr->ss_family == AF_INET6)
		return *(const struct sockaddr_in6 *)addr;
	return (struct sockaddr_in6){.sin6_family = AF_INET6,
				     .sin6_port = in->sin_port,
				     .sin6_addr = mapped(ntohl(in->sin_addr.s_addr))};
}

void host_cm_narrow(struct sockaddr_storage *to, const struct sockaddr_in6 *from)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = from->sin6_port};

	memset(to, 0, sizeof(*to));
	if (!IN6_IS_ADDR_V4MAPPED(&from->sin6_addr)) {
		memcpy(to, from, sizeof(*from));
		return;
	}
	memcpy(&in.sin_addr, &from->sin6_addr.s6_addr[12], 4);
	memcpy(to, &in, sizeof(in));
}

/* The host's own address, in this family. */
static struct sockaddr_storage own_address(const struct host *host, sa_family_t family)
{
	struct sockaddr_in6 wide = {.sin6_family = AF_INET6,
				    .sin6_addr = mapped(RNIC_ADDRESS(host->number))};
	struct sockaddr_storage own;

	memset(&own, 0, sizeof(own));
	if (family == AF_INET)
		host_cm_narrow(&own, &wide);
	else
		memcpy(&own, &wide, sizeof(wide));
	return own;
}

static bool is_any(const struct sockaddr_storage *addr)
{
	struct sockaddr_in6 wide = host_cm_widen(addr);

	return IN6_IS_ADDR_UNSPECIFIED(&wide.sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&wide.sin6_addr) &&
		!memcmp(&wide.sin6_addr.s6_addr[12], &(uint32_t){0}, 4));
}

/* --- ports --- */

/* As with sockets: both have asked for reuse, and neither listens. */
static bool may_share(const struct cm_id *a, const struct cm_id *b)
{
	return a->conn.options.reuse && b->conn.options.reuse && a->state != CM_LISTEN &&
	       b->state != CM_LISTEN;
}

static bool is_free(const struct cm_id *id, __be16 port)
{
	for (struct cm_id *other = id->host->ids; other; other = other->next)
		if (other != id && other->bound && !may_share(id, other) &&
		    *host_cm_port(&other->user.route.addr.src_storage) == port)
			return false;
	return true;
}

static int choose_port(struct cm_id *id)
{
	for (unsigned n = 0; n < CM_PORT_COUNT; n++) {
		uint16_t port = (uint16_t)(CM_PORT_FIRST + id->host->last_port++ % CM_PORT_COUNT);
		if (!is_free(id, htons(port)))
			continue;
		*host_cm_port(&id->user.route.addr.src_storage) = htons(port);
		return 0;
	}
	return -EADDRNOTAVAIL;
}

struct cm_id *host_cm_find_listener(const struct host *host, __be16 port)
{
	for (struct cm_id *id = host->ids; id; id = id->next)
		if (id->state == CM_LISTEN &&
		    *host_cm_port(&id->user.route.addr.src_storage) == port)
			return id;
	return NULL;
}

int host_cm_bind(struct cm_id *id, const struct sockaddr *addr)
{
	struct rdma_addr *at = &id->user.route.addr;
	int rc = 0;

	if (id->state != CM_IDLE)
		return -EINVAL;
	copy_address(&at->src_storage, addr);
	if (!at->src_storage.ss_family)
		return -EAFNOSUPPORT;
	if (!*host_cm_port(&at->src_storage))
		rc = choose_port(id);
	else if (!is_free(id, *host_cm_port(&at->src_storage)))
		rc = -EADDRINUSE;
	if (!rc && !is_any(&at->src_storage))
		rc = host_cm_bind_device(id);
	if (rc) {
		memset(&at->src_storage, 0, sizeof(at->src_storage));
		return rc;
	}
	id->bound = true;
	id->state = CM_BOUND;
	return 0;
}

int sim_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	int rc = addr ? host_cm_bind(to_cm(id), addr) : -EINVAL;

	return rc ? host_cm_fail(-rc) : 0;
}

__be16 sim_rdma_get_src_port(struct rdma_cm_id *id)
{
	return *host_cm_port(&id->route.addr.src_storage);
}

__be16 sim_rdma_get_dst_port(struct rdma_cm_id *id)
{
	return *host_cm_port(&id->route.addr.dst_storage);
}

/* --- resolution --- */

static int resolve_addr(struct cm_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct rdma_addr *at = &id->user.route.addr;
	struct sockaddr_storage own;
	int rc = 0;

	if (!dst || (id->state != CM_IDLE && id->state != CM_BOUND))
		return -EINVAL;
	copy_address(&at->dst_storage, dst);
	if (!at->dst_storage.ss_family)
		return -EAFNOSUPPORT;
	if (id->state == CM_IDLE && src && src->sa_family)
		rc = host_cm_bind(id, src);
	own = own_address(id->host, at->dst_storage.ss_family);
	if (!rc && id->state == CM_IDLE)
		rc = host_cm_bind(id, (struct sockaddr *)&own);
	if (!rc && is_any(&at->src_storage)) {
		*host_cm_port(&own) = *host_cm_port(&at->src_storage);
		at->src_storage = own;
	}
	if (!rc)
		rc = host_cm_bind_device(id);
	if (rc)
		return rc;
	id->state = CM_ADDR_RESOLVED;
	host_cm_tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, host_cm_op(id->host));
	return 0;
}

/* The result is known at once, so the timeout does not matter. */
int sim_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
			  int timeout_ms)
{
	int rc = resolve_addr(to_cm(id), src, dst);

	(void)timeout_ms;
	return rc ? host_cm_fail(-rc) : host_cm_complete(to_cm(id));
}

static int resolve_route(struct cm_id *id)
{
	struct rdma_addr *at = &id->user.route.addr;
	struct ibv_port_attr port;
	int error;

	if (id->state != CM_ADDR_RESOLVED)
		return -EINVAL;
	error = rnic_query_port_ex(id->user.verbs, 1, &port, sizeof(port));
	if (error)
		return -error;
	id->peer = HOST_SERVER;
	id->conn.mtu = (uint8_t)port.active_mtu;
	rnic_gid(RNIC_ADDRESS(id->peer), &at->addr.ibaddr.dgid);
	cm_show_route(&id->user, &id->path, &id->conn.options, id->conn.mtu);
	id->state = CM_ROUTE_RESOLVED;
	host_cm_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, host_cm_op(id->host));
	return 0;
}

int sim_rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	int rc = resolve_route(to_cm(id));

	(void)timeout_ms;
	return rc ? host_cm_fail(-rc) : host_cm_complete(to_cm(id));
}

/* --- rdma_getaddrinfo --- */

void sim_rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;
		sim_free_memory(res->ai_src_addr);
		sim_free_memory(res->ai_dst_addr);
		sim_free_memory(res->ai_connect);
		sim_free_memory(res);
		res = next;
	}
}

/* An IPv4 address by its numbers; any other name is the server's. */
static uint32_t address_of(const char *node, uint32_t otherwise)
{
	uint32_t address = 0;

	for (unsigned i = 0; i < 4; i++, node++) {
		uint64_t part;
		node = text_digits(node, 255, &part);
		if (!node || *node != (i < 3 ? '.' : '\0'))
			return otherwise;
		address = address << 8 | (uint32_t)part;
	}
	return address;
}

static int copy_bytes(void **to, const void *from, size_t len)
{
	if (!from || !len)
		return 0;
	*to = sim_calloc(1, len);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, len);
	return 0;
}

static int copy_sockaddr(struct sockaddr **to, socklen_t *len, const struct sockaddr *from)
{
	struct sockaddr_storage clean;

	copy_address(&clean, from);
	if (!clean.ss_family)
		return EAI_FAMILY;
	*len = clean.ss_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
	return copy_bytes((void **)to, &clean, *len);
}

/* The address by name, which takes precedence, or in the hints. */
static int find_address(struct rdma_addrinfo *rai, const char *node, const char *service,
			const struct rdma_addrinfo *hints)
{
	bool passive = rai->ai_flags & RAI_PASSIVE;
	struct sockaddr_in in = {.sin_family = AF_INET};
	uint64_t port = 0;
	int rc = 0;

	if (service && !text_number(service, 0, UINT16_MAX, &port))
		return EAI_SERVICE;
	if (node || service) {
		in.sin_port = htons((uint16_t)port);
		in.sin_addr.s_addr = htonl(node	     ? address_of(node, RNIC_ADDRESS(HOST_SERVER))
					   : passive ? INADDR_ANY
						     : INADDR_LOOPBACK);
		rai->ai_family = AF_INET;
		return copy_sockaddr(passive ? &rai->ai_src_addr : &rai->ai_dst_addr,
				     passive ? &rai->ai_src_len : &rai->ai_dst_len,
				     (struct sockaddr *)&in);
	}
	if (!passive && hints->ai_dst_len)
		rc = copy_sockaddr(&rai->ai_dst_addr, &rai->ai_dst_len, hints->ai_dst_addr);
	rai->ai_family = hints->ai_dst_len   ? hints->ai_dst_addr->sa_family
			 : hints->ai_src_len ? hints->ai_src_addr->sa_family
					     : hints->ai_family;
	return rc;
}

int sim_rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **res)
{
	const int known = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY;
	struct rdma_addrinfo *rai;
	int rc;

	if (!node && !service && (!hints || (!hints->ai_src_len && !hints->ai_dst_len)))
		return EAI_NONAME;
	if (hints && hints->ai_flags & ~known)
		return EAI_BADFLAGS;
	rai = sim_calloc(1, sizeof(*rai));
	if (!rai)
		return EAI_MEMORY;
	if (hints) {
		rai->ai_flags = hints->ai_flags;
		rai->ai_qp_type = hints->ai_qp_type;
		rai->ai_port_space = hints->ai_port_space;
	}
	if (!rai->ai_port_space)
		rai->ai_port_space = RDMA_PS_TCP;
	if (!rai->ai_qp_type)
		rai->ai_qp_type = IBV_QPT_RC;
	rc = rai->ai_port_space != RDMA_PS_TCP ? EAI_SERVICE
	     : rai->ai_qp_type != IBV_QPT_RC   ? EAI_SOCKTYPE
					       : find_address(rai, node, service, hints);
	if (!rc && hints && !rai->ai_src_len && hints->ai_src_len)
		rc = copy_sockaddr(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr);
	if (!rc && hints && hints->ai_connect_len) {
		rai->ai_connect_len = hints->ai_connect_len;
		rc = copy_bytes(&rai->ai_connect, hints->ai_connect, hints->ai_connect_len);
	}
	if (rc) {
		sim_rdma_freeaddrinfo(rai);
		return rc;
	}
	*res = rai;
	return 0;
}
