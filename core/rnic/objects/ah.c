/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses: of a queue pair's peer, in address handles, and in front of a datagram that was
 * received.
 *
 * The link layer is Ethernet: a path is a global route, whose GID the link knows or does not. Where
 * the net has LIDs it is InfiniBand: each of them is a path to the ports that all share.
 *
 * A datagram's data lie after 40 bytes that say where it comes from. With GIDs of IPv4 addresses
 * these are 20 bytes of zeros and the IPv4 header, as RoCEv2 has it (annex A17, 17.4.5.1) and the
 * kernel's rdma_rxe fills it; else an IPv6 header, which is laid out like a GRH. A reader tells
 * them apart by the IPv4 header's checksum. A completion has to say which it is, too (A17.4.5.1),
 * and libibverbs has no field for that: ConnectX cards put it into `sl`, which no packet of RoCEv2
 * has, and UCX reads it there.
 *
 * Address handles come and go with messages: the RNIC keeps those that were destroyed for the next
 * ones.
 */
#include "core/rnic/objects/ah.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "core/fail.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/pd.h"
#include "core/rnic/transport/link.h"
#include "core/rnic/transport/packet.h"

#define IPV4_AT	     20 /* in the 40 bytes */
#define PROTOCOL_UDP 17
#define HOP_LIMIT    64
/* In a completion's `sl`: after UDP, and after which header of IP. */
#define KIND_UDP  8
#define KIND_IPV6 1
#define KIND_IPV4 2
/* Between the IPv4 header and the data, and after them: UDP, BTH, DETH; ICRC. */
#define DATAGRAM_HEADERS (8 + 12 + 8)
#define ICRC_BYTES	 4

int rnic_path(const struct rnic_hca *hca, const struct ibv_ah_attr *ah, uint32_t *peer)
{
	const struct rnic_net *net = hca->net;
	struct link *link = net->link;
	static const union ibv_gid none;
	const union ibv_gid *to = ah->is_global ? &ah->grh.dgid : &hca->gid;
	if (ah->port_num != 0 && ah->port_num != 1)
		return EINVAL;
	if (ah->is_global && (!memcmp(to, &none, sizeof(none)) || ah->grh.sgid_index >= net->gids))
		return EINVAL;
	if (!ah->is_global && (!net->lid || !ah->dlid))
		return EINVAL;
	if (!ah->is_global && (uint16_t)(ah->dlid - net->lid) >= net->lids)
		return ENETUNREACH;
	int number = link->resolve(link, to);
	if (number < 0)
		return -number;
	*peer = (uint32_t)number;
	return 0;
}

/* --- address handles --- */

struct ibv_ah *rnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct rnic_hca *hca = to_hca(pd->context);
	uint32_t peer;
	bool allowed = attr->port_num == 1 && !((struct rnic_pd *)pd)->dead;
	int error = allowed ? rnic_path(hca, attr, &peer) : EINVAL;
	if (!error && hca->ahs == MAX_OBJECTS)
		error = ENOMEM;
	if (error)
		return errno_null(error);
	struct rnic_ah *ah = hca->free_ah;
	assert(!ah || !ah->live);
	if (ah)
		hca->free_ah = ah->next;
	else
		ah = ground_alloc(&hca->net->ground, sizeof(*ah));
	*ah = (struct rnic_ah){.ibv = {.context = pd->context, .pd = pd},
			       .peer = peer,
			       .traffic_class = attr->grh.traffic_class,
			       .live = true};
	((struct rnic_pd *)pd)->users++;
	hca->objects++;
	hca->ahs++;
	assert(hca->ahs <= MAX_OBJECTS && hca_adds_up(hca));
	return &ah->ibv;
}

int rnic_destroy_ah(struct ibv_ah *ibv)
{
	struct rnic_ah *ah = (struct rnic_ah *)ibv;
	struct rnic_hca *hca = to_hca(ibv->context);
	if (!ah->live)
		return EINVAL;
	assert(hca->free_ah != ah);
	assert(hca->ahs && hca_adds_up(hca));
	ah->live = false;
	ah->next = hca->free_ah;
	hca->free_ah = ah;
	((struct rnic_pd *)ibv->pd)->users--;
	hca->objects--;
	hca->ahs--;
	return 0;
}

/* --- the 40 bytes --- */

static bool is_ipv4(const union ibv_gid *gid)
{
	union ibv_gid ours;
	rnic_gid(0, &ours);
	return !memcmp(ours.raw, gid->raw, 12);
}

static void put_16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

/* The checksum of an IPv4 header without options; its own field does not count. */
static uint16_t ipv4_checksum(const uint8_t *header)
{
	uint32_t sum = 0;
	for (unsigned i = 0; i < 20; i += 2)
		if (i != 10)
			sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return (uint16_t)~sum;
}

uint8_t rnic_header_kind(const struct rnic_hca *hca)
{
	return KIND_UDP | (is_ipv4(&hca->gid) ? KIND_IPV4 : KIND_IPV6);
}

void rnic_put_grh(struct rnic_hca *hca, const struct packet *pkt, uint8_t *to)
{
	struct link *link = hca->net->link;
	union ibv_gid from = {0};
	uint32_t imm = opcode_is[pkt->opcode] & HAS_IMM ? 4 : 0;
	uint32_t bytes = DATAGRAM_HEADERS + imm + ((pkt->len + 3) & ~3u) + ICRC_BYTES;
	link->gid(link, pkt->from, &from);
	memset(to, 0, GRH_BYTES);
	if (!is_ipv4(&from) || !is_ipv4(&hca->gid)) {
		to[0] = (uint8_t)(6 << 4 | pkt->traffic_class >> 4);
		to[1] = (uint8_t)(pkt->traffic_class << 4);
		put_16(to + 4, bytes);
		to[6] = PROTOCOL_UDP;
		to[7] = HOP_LIMIT;
		memcpy(to + 8, from.raw, 16);
		memcpy(to + 24, hca->gid.raw, 16);
		return;
	}
	to += IPV4_AT;
	to[0] = 4 << 4 | 5; /* words */
	to[1] = pkt->traffic_class;
	put_16(to + 2, 20 + bytes);
	to[6] = 0x40; /* do not fragment */
	to[8] = HOP_LIMIT;
	to[9] = PROTOCOL_UDP;
	memcpy(to + 12, from.raw + 12, 4);
	memcpy(to + 16, hca->gid.raw + 12, 4);
	put_16(to + 10, ipv4_checksum(to));
}

/* The addresses in the 40 bytes, and the route back. */
static void read_grh(const uint8_t *raw, union ibv_gid *to, struct ibv_global_route *back)
{
	const uint8_t *ip = raw + IPV4_AT;
	if (ip[0] == (4 << 4 | 5) && ipv4_checksum(ip) == (ip[10] << 8 | ip[11])) {
		rnic_gid(0, &back->dgid);
		memcpy(back->dgid.raw + 12, ip + 12, 4);
		rnic_gid(0, to);
		memcpy(to->raw + 12, ip + 16, 4);
		back->traffic_class = ip[1];
		back->hop_limit = ip[8];
		return;
	}
	memcpy(back->dgid.raw, raw + 8, 16);
	memcpy(to->raw, raw + 24, 16);
	back->traffic_class = (uint8_t)(raw[0] << 4 | raw[1] >> 4);
	back->flow_label = (raw[1] & 15u) << 16 | (uint32_t)raw[2] << 8 | raw[3];
	back->hop_limit = raw[7];
}

int rnic_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			 struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	union ibv_gid to;
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl & KIND_UDP ? 0 : wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	read_grh((const uint8_t *)grh, &to, &attr->grh);
	/* Datagrams are for the GID number 0, whichever one the sender has named. */
	if (port_num != 1 || memcmp(&to, &to_hca(context)->gid, sizeof(to)))
		return errno_minus(EINVAL);
	return 0;
}

struct ibv_ah *rnic_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				      uint8_t port_num)
{
	struct ibv_ah_attr attr;
	if (rnic_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return rnic_create_ah(pd, &attr);
}
