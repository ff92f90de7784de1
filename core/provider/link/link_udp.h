/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_LINK_UDP_H
#define TM_PROVIDER_LINK_LINK_UDP_H
/*
 * The link over UDP: RoCEv2 (wire.h), to processes of this host or to anything else that speaks it.
 *
 * Without an address each process has one of its own, 127.77.x.y, made of its slot in the net
 * (link_shm.h): loopback only, nothing from outside can come in. Such an address and port belong to
 * one process, so only what is sent from port 4791 is taken.
 *
 * With an address, all processes of the user that have this address share it and its port 4791: the
 * kernel gives each packet to one of them (SO_REUSEPORT), and stops giving to one that has died. A
 * packet for a queue pair of another process of the net goes on to that one's inbox in shared
 * memory.
 */
#include "core/provider/base/nic_link.h"

/* address: IPv4, host byte order; 0: one of the process's own on loopback. 0 or -errno. */
int link_udp_open(struct nic_link **out, const char *directory, uint32_t address,
		  management_slot_fn *management_slot);

#endif
