/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and routes of the connection manager; rdma_getaddrinfo(). */
#include <assert.h>
#include <netdb.h>
#include "core/cm/calls.h"
#include "core/cm/ground.h"
#include "core/cm/sockaddr.h"

void cm_copy_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

	memset(to, 0, sizeof(*to));
	if (from->sa_family == AF_INET)
		*(struct sockaddr_in *)to = (struct sockaddr_in){
			.sin_family = AF_INET, .sin_port = in->sin_port, .sin_addr = in->sin_addr};
	else if (from->sa_family == AF_INET6)
		*(struct sockaddr_in6 *)to = (struct sockaddr_in6){
			.sin6_family = AF_INET6,
			.sin6_port = in6->sin6_port,
			.sin6_addr = in6->sin6_addr,
			.sin6_scope_id = in6->sin6_scope_id};
}

/* As with sockets: both have asked for reuse, and neither listens. */
bool cm_may_share(const struct cm_id *a, const struct cm_id *b)
{
	return a->conn.options.reuse && b->conn.options.reuse && a->state != CM_LISTEN &&
	       b->state != CM_LISTEN;
}

struct cm_id *cm_find_listener(const struct cm *cm, uint16_t port_space, const struct sockaddr *dst)
{
	for (struct cm_id *id = cm->ids; id; id = id->next)
		if (id->state == CM_LISTEN && id->user.ps == port_space &&
		    sockaddr_port(&id->user.route.addr.src_addr) == sockaddr_port(dst) &&
		    (!cm_ground->covers || cm_ground->covers(id, dst)))
			return id;
	return NULL;
}

int cm_bind(struct cm_id *id, const struct sockaddr *addr)
{
	struct rdma_addr *at = &id->user.route.addr;

	if (id->state != CM_IDLE)
		return -EINVAL;
	cm_copy_address(&at->src_storage, addr);
	if (!at->src_storage.ss_family)
		return -EAFNOSUPPORT;
	int rc = cm_ground->reserve(id);
	if (!rc && !sockaddr_is_any(&at->src_addr))
		rc = cm_bind_device(id);
	if (rc) {
		memset(&at->src_storage, 0, sizeof(at->src_storage));
		return rc;
	}
	id->bound = true;
	cm_to_state(id, CM_BOUND);
	return 0;
}

int cm_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return addr ? cm_result(CM_LOCKED(to_cm(id), cm_bind(to_cm(id), addr)))
		    : errno_minus(EINVAL);
}

__be16 cm_get_src_port(struct rdma_cm_id *id)
{
	return id->route.addr.src_sin.sin_port; /* in the same place in both families */
}

__be16 cm_get_dst_port(struct rdma_cm_id *id)
{
	return id->route.addr.dst_sin.sin_port;
}

/* --- resolution --- */

static int resolve_addr(struct cm_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct rdma_addr *at = &id->user.route.addr;
	int rc = 0;

	if (!dst || (id->state != CM_IDLE && id->state != CM_BOUND))
		return -EINVAL;
	cm_copy_address(&at->dst_storage, dst);
	if (!at->dst_storage.ss_family)
		return -EAFNOSUPPORT;
	if (id->state == CM_IDLE && src && src->sa_family)
		rc = cm_bind(id, src);
	if (!rc)
		rc = cm_ground->source(id);
	if (!rc)
		rc = cm_bind_device(id);
	if (rc > 0)
		return cm_tell(id, RDMA_CM_EVENT_ADDR_ERROR, -rc) ? 0 : -ENOMEM;
	if (rc)
		return rc;
	cm_to_state(id, CM_ADDR_RESOLVED);
	return cm_tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0) ? 0 : -ENOMEM;
}

/* The result is known at once, so the timeout does not matter. */
int cm_resolve_addr(struct rdma_cm_id *user, struct sockaddr *src, struct sockaddr *dst,
		    int timeout_ms)
{
	struct cm_id *id = to_cm(user);

	return cm_complete(id, CM_LOCKED(id, resolve_addr(id, src, dst)));
}

static int resolve_route(struct cm_id *id)
{
	if (id->state != CM_ADDR_RESOLVED)
		return -EINVAL;
	int rc = cm_ground->route(id, &id->user.route.addr.addr.ibaddr.dgid, &id->conn.mtu);
	if (rc)
		return rc;
	cm_show_route(&id->user, &id->path, &id->conn.options, id->conn.mtu);
	cm_to_state(id, CM_ROUTE_RESOLVED);
	return cm_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0) ? 0 : -ENOMEM;
}

int cm_resolve_route(struct rdma_cm_id *user, int timeout_ms)
{
	struct cm_id *id = to_cm(user);

	return cm_complete(id, CM_LOCKED(id, resolve_route(id)));
}

/* --- rdma_getaddrinfo --- */

void cm_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		cm_ground->free(res->ai_src_addr);
		cm_ground->free(res->ai_dst_addr);
		cm_ground->free(res->ai_connect);
		cm_ground->free(res);
		res = next;
	}
}

bool cm_keep(void **to, const void *from, size_t len)
{
	if (!from || !len)
		return true;
	*to = cm_ground->calloc(1, len);
	if (*to)
		memcpy(*to, from, len);
	return *to;
}

static int copy_sockaddr(struct sockaddr **to, socklen_t *len, const struct sockaddr *from)
{
	struct sockaddr_storage clean;

	cm_copy_address(&clean, from);
	if (!clean.ss_family)
		return EAI_FAMILY;
	*len = sockaddr_len(from);
	return cm_keep((void **)to, &clean, *len) ? 0 : EAI_MEMORY;
}

/* The address by name, which takes precedence, or in the hints. */
static int find_address(struct rdma_addrinfo *rai, const char *node, const char *service,
			const struct rdma_addrinfo *hints)
{
	bool passive = rai->ai_flags & RAI_PASSIVE;
	struct sockaddr_storage at;
	int rc;

	if (node || service) {
		rc = cm_ground->find(node, service, hints, &at);
		if (rc)
			return rc;
		rai->ai_family = at.ss_family;
		return copy_sockaddr(passive ? &rai->ai_src_addr : &rai->ai_dst_addr,
				     passive ? &rai->ai_src_len : &rai->ai_dst_len,
				     (struct sockaddr *)&at);
	}
	rai->ai_family = hints->ai_dst_len && !passive ? hints->ai_dst_addr->sa_family
			 : hints->ai_src_len	       ? hints->ai_src_addr->sa_family
						       : hints->ai_family;
	return passive || !hints->ai_dst_len
		       ? 0
		       : copy_sockaddr(&rai->ai_dst_addr, &rai->ai_dst_len, hints->ai_dst_addr);
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

int cm_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		   struct rdma_addrinfo **res)
{
	const int known = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY;
	struct rdma_addrinfo *rai;

	if (!node && !service && (!hints || (!hints->ai_src_len && !hints->ai_dst_len)))
		return EAI_NONAME;
	if (hints && hints->ai_flags & ~known)
		return EAI_BADFLAGS;
	rai = cm_ground->calloc(1, sizeof(*rai));
	if (!rai)
		return EAI_MEMORY;
	if (hints) {
		rai->ai_flags = hints->ai_flags;
		rai->ai_qp_type = hints->ai_qp_type;
		rai->ai_port_space = hints->ai_port_space;
	}
	int rc = settle_kind(rai);
	if (!rc)
		rc = find_address(rai, node, service, hints);
	if (!rc && hints && !rai->ai_src_len && hints->ai_src_len)
		rc = copy_sockaddr(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr);
	if (!rc && hints && hints->ai_connect_len) {
		rai->ai_connect_len = hints->ai_connect_len;
		if (!cm_keep(&rai->ai_connect, hints->ai_connect, hints->ai_connect_len))
			rc = EAI_MEMORY;
	}
	if (rc) {
		cm_freeaddrinfo(rai);
		return rc;
	}
	*res = rai;
	return 0;
}
