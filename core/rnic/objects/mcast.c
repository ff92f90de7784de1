/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast of datagrams (IBA vol. 1, 10.5). A group is a GID. Queue pairs of a host are attached
 * to it; the host joins it on the link as long as there is one.
 *
 * A datagram to queue pair MULTICAST_QPN with an address handle of a group's GID goes to all hosts
 * that have joined. Here each queue pair that is attached gets a copy, as if it had been sent to it
 * alone: Q_Key, receive request, length. Whoever has sent it gets one, too, if it is attached
 * itself: packets are looped back by the link.
 *
 *      link ---- one packet a host ----> group ---- a copy each ----> queue pairs
 */
#include <errno.h>
#include <string.h>
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/link.h"
#include "core/rnic/objects/qp.h"

struct member {
	struct member *next;
	struct rnic_qp *qp;
};

struct group {
	struct group *next;
	union ibv_gid gid;
	struct member *members;
};

bool rnic_is_group(const union ibv_gid *gid)
{
	union ibv_gid ipv4;
	rnic_gid(0, &ipv4);
	return gid->raw[0] == 0xff || (!memcmp(gid, &ipv4, 12) && gid->raw[12] >> 4 == 14);
}

/* Where the group is, or would be, in the net's list. */
static struct group **find_group(struct rnic_net *net, const union ibv_gid *gid)
{
	struct group **at = &net->groups;
	while (*at && memcmp(&(*at)->gid, gid, sizeof(*gid)))
		at = &(*at)->next;
	return at;
}

static struct member **find_member(struct group *group, const struct rnic_qp *qp)
{
	struct member **at = &group->members;
	while (*at && (*at)->qp != qp)
		at = &(*at)->next;
	return at;
}

/* Has one of the host's queue pairs been attached? */
static bool has_joined(const struct group *group, const struct rnic_hca *hca)
{
	for (const struct member *member = group->members; member; member = member->next)
		if (member->qp->hca == hca)
			return true;
	return false;
}

static unsigned count_groups(const struct rnic_net *net)
{
	unsigned n = 0;
	for (const struct group *group = net->groups; group; group = group->next)
		n++;
	return n;
}

static unsigned count_members(const struct group *group)
{
	unsigned n = 0;
	for (const struct member *member = group->members; member; member = member->next)
		n++;
	return n;
}

/* Groups come and go: the net keeps what is not in use. */
static struct member *get_member(struct rnic_net *net)
{
	struct member *member = net->free_member;
	if (!member)
		return sim_alloc(net->sim, sizeof(*member));
	net->free_member = member->next;
	return member;
}

static struct group *get_group(struct rnic_net *net)
{
	struct group *group = net->free_group;
	if (!group)
		return sim_alloc(net->sim, sizeof(*group));
	net->free_group = group->next;
	return group;
}

static void put_group(struct rnic_net *net, struct group **at)
{
	struct group *group = *at;
	*at = group->next;
	group->next = net->free_group;
	net->free_group = group;
}

static int check(const struct rnic_qp *qp, const union ibv_gid *gid)
{
	if (qp->dead || qp->service != SERVICE_UD || !rnic_is_group(gid))
		return EINVAL;
	return qp->hca->net->link->join ? 0 : EOPNOTSUPP;
}

static int join(const struct rnic_qp *qp, const struct group *group, bool joins)
{
	struct link *link = qp->hca->net->link;
	return has_joined(group, qp->hca) ? 0
					  : -link->join(link, qp->hca->host, &group->gid, joins);
}

int rnic_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	struct rnic_net *net = qp->hca->net;
	int error = check(qp, gid);
	struct group **at, *group;
	struct member *member;
	(void)lid; /* Ethernet has none */
	if (error)
		return error;
	at = find_group(net, gid);
	group = *at;
	if (group && *find_member(group, qp))
		return 0;
	if (group ? count_members(group) >= GROUP_MEMBERS : count_groups(net) >= GROUPS)
		return ENOMEM;
	if (!group) {
		*at = group = get_group(net);
		*group = (struct group){.gid = *gid};
	}
	error = join(qp, group, true);
	if (error) {
		if (!group->members)
			put_group(net, at);
		return error;
	}
	member = get_member(net);
	*member = (struct member){.next = group->members, .qp = qp};
	group->members = member;
	qp->groups++;
	return 0;
}

static void detach(struct rnic_qp *qp, struct group **at)
{
	struct rnic_net *net = qp->hca->net;
	struct member **place = find_member(*at, qp), *member = *place;
	*place = member->next;
	member->next = net->free_member;
	net->free_member = member;
	qp->groups--;
	join(qp, *at, false);
	if (!(*at)->members)
		put_group(net, at);
}

int rnic_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	int error = check(qp, gid);
	struct group **at;
	(void)lid;
	if (error)
		return error;
	at = find_group(qp->hca->net, gid);
	if (!*at || !*find_member(*at, qp))
		return EINVAL;
	detach(qp, at);
	return 0;
}

void mcast_detach_all(struct rnic_qp *qp)
{
	struct group **at = &qp->hca->net->groups, *group;
	while (qp->groups && (group = *at)) {
		if (*find_member(group, qp))
			detach(qp, at);
		if (*at == group)
			at = &group->next;
	}
}

void mcast_take(struct rnic_net *net, const struct rnic_hca *hca, struct packet *pkt)
{
	struct group *group = *find_group(net, &pkt->group);
	bool taken = false;
	for (struct member *member = group ? group->members : NULL; member; member = member->next) {
		if (hca && member->qp->hca != hca)
			continue;
		rnic_take(net, member->qp, packet_copy(net, pkt));
		taken = true;
	}
	if (!taken)
		COUNT_ONE(net, unknown_qp);
	packet_put(net, pkt);
}
