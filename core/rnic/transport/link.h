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

#define LINK_THIS_HOST	 UINT32_MAX /* as a peer: the process of this host that has the number */
#define LINK_READY_NS	 10000
#define LINK_PATIENCE_NS 100000000 /* of those who send again what is lost */
#define LINK_UNRELIABLE_PATIENCE_NS \
	1000000000		    /* of the others: the peer may be waiting for a CPU */
#define LINK_WATCH_NS	    1000000 /* how often it is asked whether a peer starves ... */
#define LINK_WATCH_SHORT_NS 100000  /* ... in a time-out that is shorter; in between it may idle */
#define LINK_STARVES_NS	    30000000000 /* ... and how long at most */

/* The wait for another end that does not answer, or takes nothing. All zero: there was none yet. */
struct link_watch {
	uint64_t thing, since; /* what is waited for, by number; ns: since when the link is asked
				  about it */
	uint64_t due, period;  /* ns: this try was due, and how long it was given */
	bool program; /* it is the other end's program that should have done something, not its
		       * NIC */
	/* The link's own; all zero when a try begins. */
	bool asked, could;
	uint32_t turns, idle;
	uint64_t sent;
	uint64_t asked_at, rests_since, had_first, had_ns;
};

struct link {
	/* The link's number for the host with this GID, to be put into packet.peer; -errno: no
	 * route. */
	int (*resolve)(struct link *link, const union ibv_gid *gid);
	/* The other way round. */
	void (*gid)(struct link *link, uint32_t number, union ibv_gid *gid);
	/* Multicast groups; NULL: there are none. The number of a group, for packets to
	 * MULTICAST_QPN; -errno. */
	int (*group)(struct link *link, const union ibv_gid *gid);
	/* Packets to a group come in for this host from now on, its own among them; or no longer. 0
	 * or -errno. */
	int (*join)(struct link *link, unsigned host, const union ibv_gid *gid, bool joins);
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
	/* Something was due from this end at watch->due, and is not there: had it, or this process,
	 * no CPU for that? Then nothing is lost, and it is asked again a little later. NULL:
	 * never. */
	bool (*starves)(struct link *link, uint32_t peer, uint32_t dest_qpn, uint64_t now,
			struct link_watch *watch);
	/* Takes a packet of SERVICE_HOST for the process of this host that has the number dest_qpn,
	 * unless there is none (-ESRCH) or no room (-EAGAIN). What was taken comes in there, once,
	 * behind what was taken before. NULL: a host is one process. */
	int (*pass)(struct link *link, struct packet *pkt);
	/* A number that is the same as long as that process lives; 0: there is none. With pass()
	 * only. */
	uint32_t (*owner)(struct link *link, uint32_t number);
	/* Packets get lost or change places now and then: both ends do more to get over it, see
	 * repair.c. Once there are queue pairs rnic_becomes_lossy() sets it. */
	bool lossy;
	/* So many packets at once the other end can hold, if it is like this one; 0: any number. */
	uint32_t burst;
	/* A packet may be a run (packet.h) of so many bytes. 0: every packet is one of the wire.
	 * May change at any ready(). */
	uint32_t run_bytes;
};

/* What a queue pair knows of a link that has no room. All zero: it had some the last time. */
struct link_patience {
	uint64_t until; /* ns */
	uint64_t taken; /* of ready() */
	struct link_watch watch;
};

/* May it be that the other end only had no CPU? `due`: when something should have been there, after
 * `period`; `thing`: what it is, by number, whatever the try. */
static inline bool link_starves(struct link *link, uint32_t peer, uint32_t dest_qpn, uint64_t now,
				uint64_t thing, uint64_t due, uint64_t period,
				struct link_watch *watch)
{
	bool program = watch->program;
	if (!link->starves)
		return false;
	if (!watch->since || watch->thing != thing)
		*watch = (struct link_watch){.thing = thing, .since = now, .program = program};
	if (watch->due != due)
		*watch = (struct link_watch){.thing = thing,
					     .since = watch->since,
					     .due = due,
					     .period = period,
					     .program = program};
	return now - watch->since < LINK_STARVES_NS &&
	       link->starves(link, peer, dest_qpn, now, watch);
}

/*
 * A link that has ready(): may a packet be sent there at `now`? False: try again after
 * LINK_READY_NS. When the other end has taken nothing for patience_ns, and does not starve, packets
 * are lost, as a switch would have it, so that the transport learns of it. While it takes others'
 * packets there is nothing to be learned.
 */
static inline bool link_ready(struct link *link, uint32_t peer, uint32_t dest_qpn, uint64_t now,
			      uint64_t patience_ns, struct link_patience *patience)
{
	uint64_t taken = 0;
	if (link->ready(link, peer, dest_qpn, &taken)) {
		patience->until = 0;
		return true;
	}
	if (!patience->until || taken != patience->taken) {
		patience->until = now + patience_ns;
		patience->taken = taken;
	}
	return now >= patience->until &&
	       !link_starves(link, peer, dest_qpn, now, patience->until, patience->until,
			     patience_ns, &patience->watch);
}

/* A packet has come in for `host`; takes it. */
void rnic_deliver(struct rnic_net *net, unsigned host, struct packet *pkt);
/* The net's link has been as good as lossless, and is lossy from now on. */
void rnic_becomes_lossy(struct rnic_net *net);
/* A packet has come in for a queue pair, NULL: for none that there is; takes it. */
void rnic_take(struct rnic_net *net, struct rnic_qp *qp, struct packet *pkt);

#endif
