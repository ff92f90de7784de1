/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_LINK_SHM_H
#define TM_PROVIDER_LINK_LINK_SHM_H
/*
 * The link between processes of one host: shared memory.
 *
 * A *net* is a directory, of the user alone, in which each process has a slot and in it an inbox:
 * for each possible sender a ring that only this sender fills and only the owner empties. A packet
 * is written there, and dropped if the ring is full, as a switch would; the transport sends it
 * again. A queue pair's number begins with its process's slot, which is how a packet finds its
 * inbox.
 *
 * The owner holds a lock on its file as long as it lives, so an inbox without a lock is a dead
 * process's, and whoever needs a slot takes it. What a sender writes is copied before it is looked
 * at: a sender may be malicious, or die at any moment.
 */
#include "core/provider/base/nic_link.h"

#define SHM_SLOTS     256 /* 0 is nobody */
#define SHM_QPN_SHIFT 16  /* a queue pair's number: slot, then number in the process */

/* Take a slot of the net in this directory (fabric_dir_make()). 0 or -errno. */
int link_shm_open(struct nic_link **out, const char *directory);

#endif
