/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_LINK_SHM_H
#define TM_PROVIDER_LINK_LINK_SHM_H
/*
 * The link between processes of one host: shared memory.
 *
 * Each process of the fabric (fabric_dir.h) has a slot, and in it an inbox: a ring for each
 * possible sender, which only that sender fills and only the owner of the inbox empties. A packet
 * is written into the ring; if the ring is full, it is dropped, as by a switch, and the transport
 * sends it again. A queue pair's number begins with the slot of its process, which is how a packet
 * finds its inbox.
 *
 * The owner holds a lock on its file as long as it lives. An inbox without a lock belongs to a dead
 * process, and a process that needs a slot may take it. A record is copied before it is checked:
 * its sender may be malicious, or die at any moment.
 */
#include "core/provider/base/fabric_dir.h"
#include "core/provider/base/nic_link.h"

#define SHM_QPN_SHIFT 16 /* a queue pair's number: slot, then number in the process */

/* Take a slot of the fabric in this directory, which is made if it is absent. 0 or -errno. */
int link_shm_open(struct nic_link **out, const char *directory);

#endif
