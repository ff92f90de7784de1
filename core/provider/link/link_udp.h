/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_LINK_UDP_H
#define TM_PROVIDER_LINK_LINK_UDP_H
/*
 * The link over UDP: RoCEv2 (wire.h), between processes of this host, or with anything else that
 * speaks it.
 *
 * Without an address each process has one of its own, 127.77.x.y, made of its slot in the fabric
 * (link_shm.h). It is on the loopback, so that nothing can arrive from outside. Only packets from
 * port 4791 are accepted: on such an address that port belongs to a process of the fabric.
 *
 * With an address, all processes of the user that have this address share it and its port 4791. The
 * kernel gives each packet to one of them that is alive (SO_REUSEPORT). A packet for a queue pair
 * of another process of the fabric is forwarded to that process's inbox in shared memory.
 */
#include "core/provider/base/nic_link.h"

/* address: IPv4, host byte order; 0: one of the process's own on the loopback. 0 or -errno. */
int link_udp_open(struct nic_link **out, const char *directory, uint32_t address,
		  management_slot_fn *management_slot);

#endif
