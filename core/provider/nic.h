/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_NIC_H
#define TM_PROVIDER_NIC_H
/*
 * The soft RNIC of a process of the live world, and which thread drives it.
 *
 * The transport is core/rnic, as in the sim world, over the links of core/provider/link. All of it
 * runs under one lock. A thread that polls a completion queue drives the NIC (nic_progress()).
 * While no thread polls, the NIC's own thread does it, so that the target of an RDMA access may
 * sleep. docs/nic/guide.md says why there is no NIC process.
 *
 * The child of a fork() has no NIC until it opens one of its own; packets from the objects that it
 * has copied from its parent go nowhere.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include "core/provider/base/nic_link.h"
#include "core/rnic/objects/cq.h"

/* With the link layer InfiniBand all processes of the host share the ports of the devices, and
 * their LIDs, which begin with this one. */
#define NIC_LID 1

struct nic {
	struct engine *engine;
	struct rnic_net *net;
	struct nic_link *link;
};

/* The process's NIC, made by the first call. NULL and errno: it cannot be made, for a reason
 * that is printed on stderr. */
struct nic *nic_get(void);
void nic_lock(struct nic *nic);
void nic_unlock(struct nic *nic);
/* Locked: run the events that are due; do not look for packets. */
void nic_run(struct nic *nic);
/* Locked: take the packets that have arrived, and run the events that are due. Was there
 * anything? */
bool nic_progress(struct nic *nic);
/* Locked: answer what has arrived; for a moment at most. */
void nic_drain(struct nic *nic);
/* Locked, by a thread that polls a queue: the same, until the queue has `entries`. The NIC's
 * thread pauses for a while. */
void nic_poll(struct nic *nic, const struct rnic_cq *cq, uint32_t entries);
/* Locked: the end of a poll. `found`: there were completions. */
void nic_polled(struct nic *nic, bool found);
/* The caller is about to wait for an event: the NIC's thread takes over now. */
void nic_hand_over(struct nic *nic);

/* Call core/rnic under the lock, and run what has become due. */
#define LOCKED(type, call)                    \
	({                                    \
		struct nic *nic_ = nic_get(); \
		nic_lock(nic_);               \
		type result_ = (call);        \
		nic_run(nic_);                \
		nic_unlock(nic_);             \
		result_;                      \
	})

/* Queue pair 1, for the connection manager. cm/qp1.c registers it before main() begins. */
struct nic_management {
	/* The process has a NIC now. 0 or -errno. */
	int (*open)(struct nic *nic, const char *directory);
	/* It has no NIC any more: making it failed, or this is a child of fork(). */
	void (*close)(void);
	management_slot_fn *slot;
};
void nic_register_management(const struct nic_management *management);

#endif
