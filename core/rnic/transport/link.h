/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_TRANSPORT_LINK_H
#define TM_RNIC_TRANSPORT_LINK_H
/*
 * What the transport knows of the thing that carries its packets: hand over a
 * packet, and be handed one. A link may lose, duplicate, delay and reorder; it
 * never changes a packet or makes one up (a wire that corrupts drops by its
 * checksum). The transport does not know which link it is on.
 */
#include <infiniband/verbs.h>
#include "core/rnic/transport/packet.h"

struct rnic_qp;

#define LINK_READY_NS	 10000
#define LINK_PATIENCE_NS 1000000000ull /* the other end may be waiting for a CPU */

struct link {
	/* The link's number for the host with this GID, to be put into packet.peer; -errno: no
	 * route. */
	int (*resolve)(struct link *link, const union ibv_gid *gid);
	/* The other way round. */
	void (*gid)(struct link *link, uint32_t number, union ibv_gid *gid);
	/* Takes the packet. `from`: the sending host. Calls rnic_deliver() later, never at once. */
	void (*send)(struct link *link, unsigned from, struct packet *pkt);
	/* Is there room for a packet to this queue pair of that host? False: rather a little later,
	 * or it may be lost; *taken is another number than before if the other end has taken
	 * something since. NULL: always. */
	bool (*ready)(struct link *link, uint32_t peer, uint32_t dest_qpn, uint64_t *taken);
	/* Where the payload of the next packet that send() gets should lie, so that it need not be
	 * copied there; if that packet is never sent, nothing is to be given back. NULL: anywhere,
	 * as without this function. */
	uint8_t *(*reserve)(struct link *link, uint32_t dest_qpn, uint32_t len);
	/* A peer that says nothing for so long may only be waiting for a CPU: a requester gives it
	 * up after this time at the earliest, whatever its queue pair's timeout. ns; 0: no such
	 * limit. */
	uint64_t silence_ns;
	/* Packets get lost or change places now and then: both ends do more to get over it, see
	 * loss_recovery.c. Once there are queue pairs rnic_becomes_lossy() sets it. */
	bool lossy;
	/* Number of packets that the other end has room for, if it is like this one; 0: any. */
	uint32_t burst;
	/* A packet may stand for several (packet.h, segmentation offload), of so many bytes at
	 * most. 0: every packet is one of the wire. May change at any ready(). */
	uint32_t offload_bytes;
};

/* What a queue pair knows of a link that has no room. All zero: it had some the last time. */
struct link_patience {
	uint64_t until; /* ns */
	uint64_t taken; /* of ready() */
};

/*
 * A link that has ready(): may a packet be sent there at `now`? False: try again after
 * LINK_READY_NS. When the other end has taken nothing for LINK_PATIENCE_NS, packets are lost, as a
 * switch would have it, so that the transport learns of it. While it takes others' packets there is
 * nothing to be learned.
 */
static inline bool link_ready(struct link *link, uint32_t peer, uint32_t dest_qpn, uint64_t now,
			      struct link_patience *patience)
{
	uint64_t taken = 0;
	if (link->ready(link, peer, dest_qpn, &taken)) {
		patience->until = 0;
		return true;
	}
	if (!patience->until || taken != patience->taken) {
		patience->until = now + LINK_PATIENCE_NS;
		patience->taken = taken;
	}
	return now >= patience->until;
}

/* A packet has come in for `host`; takes it. */
void rnic_deliver(struct rnic_net *net, unsigned host, struct packet *pkt);
/* The net's link has been as good as lossless, and is lossy from now on. */
void rnic_becomes_lossy(struct rnic_net *net);
/* A packet has come in for a queue pair (NULL: it does not exist). Takes the packet. */
void rnic_take(struct rnic_net *net, struct rnic_qp *qp, struct packet *pkt);

#endif
