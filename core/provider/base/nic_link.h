/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_NIC_LINK_H
#define TM_PROVIDER_BASE_NIC_LINK_H
/*
 * A link of the live world: the transport's side of it (core/rnic/transport/link.h), and what the
 * NIC calls to receive packets (nic.c).
 */
#include "core/rnic/count.h"
#include "core/rnic/transport/link.h"

/* A process that shares the CPUs with others may not run for a while: a peer is not given up
 * before it has been silent for this long. */
#define LINK_SILENCE_NS 1000000000ull

/* Where several processes share an address: the slot of the process that a packet to queue pair
 * 1 is for. */
typedef unsigned management_slot_fn(const struct packet *pkt, const char *directory,
				    unsigned own_slot);

struct nic_link {
	struct link link;
	uint32_t address; /* IPv4, host byte order: the port's GID */
	unsigned mtu;	  /* bytes of payload that fit into a packet: the port's active MTU */
	uint64_t *count;  /* by enum rnic_count; NULL: nothing is counted */
	bool by_slot;	  /* packets to queue pair 1 name their receiver by its slot (cm/qp1.h) */
	uint32_t sender;  /* shm: the slot of the process that sent the packet which take() returned
			     last */
	uint32_t flip;	  /* not 0: flip this bit, counted from 1, of the next packet on the wire */
	uint32_t qpn_first, qpn_limit; /* the range of this process's queue pair numbers, which no
					  other process of the host has */
	/* The next packet that has arrived; NULL: none. Under the NIC's lock, as link.send. */
	struct packet *(*take)(struct nic_link *nic, struct rnic_net *net);
	/* Without the lock: sleep until a packet arrives, wake() is called, or ns have passed;
	 * UINT64_MAX: no limit. A packet that arrives between a take() that found nothing and
	 * this call is not missed. */
	void (*sleep)(struct nic_link *nic, uint64_t ns);
	void (*wake)(struct nic_link *nic);
	/* The process ends: release everything that other processes can see. No function is
	 * called after this one. */
	void (*leave)(struct nic_link *nic);
	/* In a child of fork(), which calls no other function: close what would outlive the
	 * parent. May be NULL. */
	void (*forked)(struct nic_link *nic);
};

static inline void link_count(uint64_t *count, enum rnic_count what)
{
	if (count)
		count[what]++;
}
/* The counter for a packet that wire_decode() refused with this error. */
enum rnic_count link_refusal(int error);

#endif
