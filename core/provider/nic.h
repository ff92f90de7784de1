/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_NIC_H
#define TM_PROVIDER_NIC_H
/*
 * The soft RNIC of a process of the live world, and who drives it.
 *
 * The transport is core/rnic, as in the sim world; engine.h is the ground that it stands on;
 * link_shm.h carries its packets to other processes. All of it runs under one lock. Whoever
 * polls a completion queue drives the NIC on the way (nic_progress()); while nobody does, the NIC's
 * own thread takes over, so that the target of an RDMA access may sleep. docs/nic/guide.md says
 * why there is no NIC process.
 *
 * A process that fork()s: the child has no NIC until it opens one of its own, and what it has of
 * its parent's objects leads nowhere.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include "core/provider/base/nic_link.h"
#include "core/rnic/objects/device.h"

struct nic {
	struct engine *engine;
	struct rnic_net *net;
	struct nic_link *link;
};

/* The process's NIC, made at the first call. NULL and errno: it cannot be made; a line on stderr
 * says why. */
struct nic *nic_get(void);
void nic_lock(struct nic *nic);
void nic_unlock(struct nic *nic);
/* Locked: let happen what is due, packets that come in aside. */
void nic_run(struct nic *nic);
/* Locked: let everything happen that can. Was there anything? */
bool nic_progress(struct nic *nic);
/* Locked: let what has come in be answered; for a moment at most. */
void nic_drain(struct nic *nic);
/* Locked, by whoever polls a queue: let everything happen that can, until there are `entries`. The
 * NIC's thread rests for a while. */
void nic_poll(struct nic *nic, const struct rnic_cq *cq, uint32_t entries);
/* Locked: the end of a poll. Were there completions? */
void nic_polled(struct nic *nic, bool found);
/* The caller is going to wait for an event: the NIC's thread takes over now. */
void nic_hand_over(struct nic *nic);

/* Call core/rnic under the lock; what becomes due by it runs, too. */
#define LOCKED(type, call)                    \
	({                                    \
		struct nic *nic_ = nic_get(); \
		nic_lock(nic_);               \
		type result_ = (call);        \
		nic_run(nic_);                \
		nic_unlock(nic_);             \
		result_;                      \
	})

/* Queue pair 1, for the connection manager: cm/qp1.c registers it before main() begins. */
struct nic_management {
	/* The process has a NIC now. 0 or -errno. */
	int (*open)(struct nic *nic, const char *directory);
	/* It has none any more: it could not be made, or this is a child of fork(). */
	void (*close)(void);
	management_slot_fn *slot;
};
void nic_register_management(const struct nic_management *management);

#endif
