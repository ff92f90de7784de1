/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_NIC_LINK_H
#define TM_PROVIDER_BASE_NIC_LINK_H
/*
 * A link of the live world: what the transport knows of it (core/rnic/transport/link.h), and what
 * the NIC does to get its packets (nic.c).
 */
#include "core/rnic/count.h"
#include "core/rnic/transport/link.h"

#define MAD_QPN 1 /* queue pair 1: management datagrams (cm/qp1.h) */

/* Processes share the CPUs with each other, and whatever else runs there: a peer that answers
 * nothing for less than this may only be waiting for one. */
#define LINK_SILENCE_NS 1000000000ull

/* The slot of the process that a packet to queue pair 1 is for, where several share an address. */
typedef unsigned management_slot_fn(const struct packet *pkt, const char *directory,
				    unsigned own_slot);

struct nic_link {
	struct link link;
	uint32_t address; /* IPv4, host byte order: the port's GID */
	unsigned mtu;	  /* bytes of payload that fit into a packet: the port's active MTU */
	uint64_t *count;  /* by enum rnic_count; NULL: nobody counts */
	bool by_slot;	  /* its number of a peer is the peer's slot, to queue pair 1 (qp1.h) */
	uint32_t sender;  /* shm: the slot of whoever sent what take() returned last */
	uint32_t flip;	  /* not 0: this bit of the next packet, from 1 on, is wrong on the wire */
	uint32_t qpn_first,
		qpn_limit; /* this process's numbers of queue pairs; the host has them once */
	/* The next packet that has come in; NULL: none. Under the NIC's lock, as link.send. */
	struct packet *(*take)(struct nic_link *nic, struct rnic_net *net);
	/* Without the lock: sleep until a packet comes in, wake() is called, or ns have passed;
	 * UINT64_MAX: for ever. Nothing that comes in between a take() that found nothing and this
	 * call is missed. */
	void (*sleep)(struct nic_link *nic, uint64_t ns);
	void (*wake)(struct nic_link *nic);
	/* The process ends: give everything back that others can see. Nothing is called any
	 * more. */
	void (*leave)(struct nic_link *nic);
	/* In a child of fork(), which calls nothing else: let go of what would outlive the parent.
	 * May be NULL. */
	void (*forked)(struct nic_link *nic);
};

static inline void link_count(uint64_t *count, enum rnic_count what)
{
	if (count)
		count[what]++;
}
/* What a packet that wire_decode() refused with this error counts as. */
enum rnic_count link_refusal(int error);

#endif
