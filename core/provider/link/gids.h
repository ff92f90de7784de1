/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_GIDS_H
#define TM_PROVIDER_LINK_GIDS_H
/*
 * The table of GIDs of a port with an IPv4 address. Linux fills it with two forms of GID, each for
 * two versions of RoCE:
 *
 *	index   GID                                     version
 *	0       ::ffff:a.b.c.d                          RoCE v2
 *	1       fe80::, then an EUI-64 of the MAC       RoCE v2
 *	2       ::ffff:a.b.c.d                          RoCE v1
 *	3       fe80::, then an EUI-64 of the MAC       RoCE v1
 *
 * (Linux has numbers 0 and 3 the other way round. Here the one that most programs look for comes
 * first, for those that take the first.) The MAC is 02:74 and the address, so that each form leads
 * to the port. Packets are those of RoCE v2 over IPv4 in any case.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define GIDS_FILLED 4

/* `address`: IPv4, host byte order. */
void gid_of_index(uint32_t address, unsigned index, union ibv_gid *gid);
bool gid_is_v2(unsigned index);
/* The IPv4 address in a GID of either form; false: it has none. */
bool gid_to_address(const union ibv_gid *gid, uint32_t *address);
/* The first two bytes of the MAC address of every port. */
extern const uint8_t gid_mac_prefix[2];

#endif
