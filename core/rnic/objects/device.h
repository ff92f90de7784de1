/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_DEVICE_H
#define TM_RNIC_OBJECTS_DEVICE_H
/*
 * The device: a net of hosts with the link between them, and a host's RNIC as a verbs context.
 * Every object of the RNIC begins with the structure that libibverbs shows its user.
 */
#include <infiniband/verbs.h>
#include <stddef.h>
#include <string.h>
#include "core/hardware/hardware.h"
#include "core/rnic/ground.h"
#include "core/rnic/memory.h"
#include "core/rnic/rnic.h"

struct final_answer;
struct hosts;
struct key_mixup;
struct packet;
struct rnic_ah;
struct rnic_cq;
struct rnic_hca;
struct rnic_mr;
struct rnic_qp;

#define BUFFER_CLASSES 31	  /* powers of two up to 2^30 bytes */
#define MAX_MESSAGE    (1u << 30) /* bytes */
#define MAX_WR	       16384	  /* of one work queue */
#define MAX_SGE	       16
#define MAX_INLINE     1024 /* bytes */
#define MAX_CQE	       4194303
#define MAX_OBJECTS    65536	 /* of one host, of each kind below, at a time */
#define MAX_MR	       65535	 /* of one host, at a time */
#define LOSSY_ROOM     16	 /* entries that queues have at least, on a lossy link */
#define QPN_FIRST      16	 /* 0 and 1 are special in InfiniBand */
#define QPN_LIMIT      0xffffffu /* which is the number of all multicast groups */

struct rnic_net {
	struct rnic_ground ground;
	struct hardware hw; /* of hosts that have none of their own */
	struct link *link;
	struct rnic_qp **qp; /* by number - qpn_first; NULL: destroyed */
	uint32_t qps, qp_room, qp_cursor;
	uint32_t qpn_first, qpn_limit;
	struct rnic_qp *free_qp; /* that were given back: qp_give_back() */
	struct rnic_cq *free_cq;
	struct packet *free_packet;
	void *free_buffer[BUFFER_CLASSES]; /* first word: next */
	struct final_answer *time_wait;	   /* time_wait.c; NULL: none was needed yet */
	unsigned time_wait_next;
	uint64_t *count;	/* by enum rnic_count; NULL: nothing is counted */
	struct hosts *programs; /* core/rnic/host; NULL: not in use */
	/* Takes the packets for queue pair 1. NULL: they are for no queue pair. */
	void (*management)(struct rnic_net *net, struct packet *pkt);
	/* What cards of the field have and a simulation has not (rnic_net_on()). */
	bool equal_keys;   /* a region's rkey is its lkey */
	bool gathers_late; /* a request waits until its completion is asked for: post_ask() */
	unsigned gids;	   /* that may be sources of a path; the link resolves more than one each */
	uint16_t lid, lids; /* the first one of the ports of the net, whose link layer is
			       InfiniBand, and how many; 0: Ethernet */
	/* A key was taken for the region's other one (mixed_keys.h). May be NULL. */
	void (*mixed_up)(const struct key_mixup *mixup);
	/* The part of the packet that was to land has landed (packet.torn). Does not return. */
	void (*torn)(const struct packet *pkt);
	unsigned hosts;
	struct rnic_hca *hca[]; /* by host; NULL: it has opened no RNIC */
};

/* Tell the program of completions and events. NULL: it is not told, and polls. */
struct rnic_hooks {
	void (*completion)(struct rnic_cq *cq); /* what the queue was armed for is there */
	/* `element`: the queue pair, completion queue, shared receive queue; NULL: the port. */
	void (*event)(struct rnic_hca *hca, enum ibv_event_type type, void *element);
	void *arg; /* theirs */
	/* NULL, or the process has ended (rnic_close()); its objects are still there. */
	void (*ended)(struct rnic_hca *hca);
};

/* One host's RNIC. */
struct rnic_hca {
	struct rnic_net *net;
	struct hardware hw;
	unsigned host;
	unsigned qps;			/* created so far: their names' numbers */
	unsigned objects;		/* that the user has to give back */
	unsigned pds, cqs, shared, ahs; /* of these */
	unsigned srqs;			/* created so far: their numbers */
	struct rnic_ah *free_ah;
	struct rnic_hooks hooks;
	const struct rnic_memory *memory;
	void *memory_arg; /* its first argument */
	union ibv_gid gid;
	struct rnic_mr **mr; /* by slot, from 1; dead ones stay */
	uint32_t mrs, mr_room, mr_cursor;
	uint32_t *slots;   /* random keys: the first slot of each hash of a key's index */
	unsigned windows;  /* that are bound */
	uint32_t *old_qpn; /* numbers that its queue pairs take before new ones, in this order */
	uint32_t old_qpns, old_qpn_next;
	struct ibv_device device;
	struct verbs_context verbs; /* what the user holds is its .context */
};

/* The context `old` is closed, and `context` is opened for the same host: numbers go on, or begin
 * again, as rnic_open_again() says. */
void rnic_follow(struct ibv_context *context, const struct ibv_context *old);

static inline struct rnic_hca *to_hca(struct ibv_context *context)
{
	return (struct rnic_hca *)((char *)context - offsetof(struct rnic_hca, verbs.context));
}

/* What the program gives to be sent; it may lie in its PM. */
static inline void hca_load(const struct rnic_hca *hca, void *to, const void *from, size_t len)
{
	if (hca->memory->load)
		hca->memory->load(hca->memory_arg, to, from, len);
	else
		memcpy(to, from, len);
}

/* The kinds that are counted by themselves are among all objects. */
static inline bool hca_adds_up(const struct rnic_hca *hca)
{
	return (uint64_t)hca->pds + hca->cqs + hca->shared + hca->ahs <= hca->objects;
}

/* The GID of an IPv4 address, in host byte order: ::ffff:a.b.c.d (RoCEv2). */
void rnic_gid(uint32_t address, union ibv_gid *gid);
/* The one entry of the device's table of GIDs, cut to the room for it. */
static inline void hca_gid_entry(const struct rnic_hca *hca, uint32_t interface,
				 struct ibv_gid_entry *entry, size_t size)
{
	struct ibv_gid_entry ours = {.gid = hca->gid,
				     .port_num = 1,
				     .gid_type = IBV_GID_TYPE_ROCE_V2,
				     .ndev_ifindex = interface};

	memset(entry, 0, size);
	memcpy(entry, &ours, size < sizeof(ours) ? size : sizeof(ours));
}
/* The default GIDs' addresses: 10.0.0.1, 10.0.0.2, ... */
#define RNIC_ADDRESS(host) ((10u << 24) + (host) + 1)

/* Tell the program of an affiliated event, or, element NULL, one of the port. */
static inline void rnic_event(struct rnic_hca *hca, enum ibv_event_type type, void *element)
{
	if (hca->hooks.event)
		hca->hooks.event(hca, type, element);
}

#endif
