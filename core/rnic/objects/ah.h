/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_AH_H
#define TM_RNIC_OBJECTS_AH_H
/* Addresses: of a queue pair's peer, of datagrams: ah.c. */
#include "core/rnic/objects/device.h"

#define GRH_BYTES 40 /* in front of a datagram that was received */

struct rnic_ah {
	struct ibv_ah ibv;
	uint32_t peer; /* the link's number of the host */
	uint8_t traffic_class;
	bool live;
	struct rnic_ah *next; /* of those that are free */
};

/* The link's number of the host that the path leads to. A positive errno: there is no such path. */
int rnic_path(const struct rnic_hca *hca, const struct ibv_ah_attr *ah, uint32_t *peer);
/* The GRH_BYTES in front of a datagram's data. */
void rnic_put_grh(struct rnic_hca *hca, const struct packet *pkt, uint8_t *to);
/* What the 40 bytes are, as a datagram's completion says it in its field `sl`. */
uint8_t rnic_header_kind(const struct rnic_hca *hca);

#endif
