/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast of the connection manager. On RoCE nobody has to be asked (annex A17): the group's GID
 * is made of its address, and to be a member is to have a queue pair attached to it. That is done
 * as the program retrieves MULTICAST_JOIN; without a queue pair of the identifier's the program
 * does it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/provider/cm/cm.h"

#define MULTICAST_QPN 0xffffffu

struct cm_membership {
	struct cm_membership *next;
	struct sockaddr_storage addr;
	union ibv_gid gid;
	void *context;
	bool sends_only, attached;
};

/* Of another family, or no group's: false. */
static bool group_gid(const struct sockaddr *addr, union ibv_gid *gid)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	memset(gid, 0, sizeof(*gid));
	if (addr->sa_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(gid->raw + 12, &in->sin_addr, 4);
		return IN_MULTICAST(ntohl(in->sin_addr.s_addr));
	}
	if (addr->sa_family != AF_INET6)
		return false;
	memcpy(gid->raw, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
	return gid->raw[0] == 0xff;
}

static struct cm_membership **find(struct cm_id *id, const struct sockaddr *addr)
{
	struct cm_membership **at = &id->memberships;

	while (*at && !(cm_addr_len(addr) && cm_addr_same((struct sockaddr *)&(*at)->addr, addr)))
		at = &(*at)->next;
	return at;
}

static int join(struct cm_id *id, const struct sockaddr *addr, bool sends_only, void *context)
{
	struct cm_membership *member;
	struct cm_event *event;
	union ibv_gid gid;

	if (!cm_is_ud(id) ||
	    (id->state != CM_BOUND && id->state != CM_ADDR_RESOLVED &&
	     id->state != CM_ROUTE_RESOLVED) ||
	    !id->user.verbs || !group_gid(addr, &gid))
		return -EINVAL;
	if (!cm.device.attr.max_mcast_grp)
		return -EOPNOTSUPP;
	if (*find(id, addr))
		return -EADDRINUSE;
	member = calloc(1, sizeof(*member));
	event = member ? cm_event(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0) : NULL;
	if (!event) {
		free(member);
		return -ENOMEM;
	}
	memcpy(&member->addr, addr, cm_addr_len(addr));
	member->gid = gid;
	member->context = context;
	member->sends_only = sends_only;
	member->next = id->memberships;
	id->memberships = member;
	event->user.param.ud = (struct rdma_ud_param){
		.private_data = context,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = gid,
				    .hop_limit = CM_HOP_LIMIT,
				    .traffic_class = id->tos}},
		.qp_num = MULTICAST_QPN,
		.qkey = RDMA_UDP_QKEY,
	};
	cm_report(event, id);
	return 0;
}

void cm_joined(struct cm_event *event)
{
	struct cm_id *id = to_cm(event->user.id);
	const union ibv_gid *gid = &event->user.param.ud.ah_attr.grh.dgid;
	struct cm_membership *member = id->memberships;
	int rc;

	while (member && !cm_same_gid(&member->gid, gid))
		member = member->next;
	if (!member || member->sends_only || !id->user.qp)
		return;
	rc = ibv_attach_mcast(id->user.qp, gid, 0);
	member->attached = !rc;
	if (!rc)
		return;
	event->user.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	event->user.status = -rc;
}

static void leave(struct cm_id *id, struct cm_membership **at)
{
	struct cm_membership *member = *at;

	if (member->attached && id->user.qp)
		ibv_detach_mcast(id->user.qp, &member->gid, 0);
	*at = member->next;
	free(member);
}

void cm_leave_all(struct cm_id *id)
{
	while (id->memberships)
		leave(id, &id->memberships);
}

CM_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
				     void *context)
{
	const uint32_t all = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	int rc;

	if (!id || !attr || attr->comp_mask & ~all)
		return cm_fail(attr && id ? ENOTSUP : EINVAL);
	if (attr->comp_mask != all || !attr->addr || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return cm_fail(EINVAL);
	cm_lock();
	rc = join(to_cm(id), attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		  context);
	cm_unlock();
	return rc ? cm_fail(-rc) : cm_complete(to_cm(id));
}

CM_EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = addr,
	};

	return rdma_join_multicast_ex(id, &attr, context);
}

CM_EXPORT int rdma_leave_multicast(struct rdma_cm_id *user, struct sockaddr *addr)
{
	struct cm_id *id = to_cm(user);
	struct cm_membership **at;
	int rc = -EADDRNOTAVAIL;

	if (!addr)
		return cm_fail(EINVAL);
	cm_lock();
	at = find(id, addr);
	if (*at) {
		cm_forget_join(id, &(*at)->gid);
		leave(id, at);
		rc = 0;
	}
	cm_unlock();
	return rc ? cm_fail(-rc) : 0;
}
