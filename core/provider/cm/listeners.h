/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_CM_LISTENERS_H
#define TM_PROVIDER_CM_LISTENERS_H
/*
 * The listeners of a fabric. Its processes may all have the same address, and then share one queue
 * pair 1: a connection request that arrives there is for the process that listens at the port which
 * it names.
 *
 * Each listening identifier has a name in the fabric's directory, cm-SPACE-PORT-ADDRESS, where
 * ADDRESS is "any4", "any6" or "any" for wildcards. The name is a symbolic link. Its target is not
 * a file but "SLOT-IPV4": the slot of the process, and the address of its RNIC. The link may
 * outlive its process, so a reader checks that the slot's process is alive.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct listener_place {
	unsigned slot;
	uint32_t address; /* the address of its RNIC: IPv4, host byte order */
};

/* Replaces what a dead process has left. 0 or -errno. */
int listeners_add(const char *directory, uint16_t port_space, const struct sockaddr *at,
		  bool v6_only, const struct listener_place *place);
void listeners_remove(const char *directory, uint16_t port_space, const struct sockaddr *at,
		      bool v6_only);
/* Find the listener for a request to this address: at the address itself, at all addresses of
 * the family, at all. `own_slot`: the caller's. False: there is none. */
bool listeners_find(const char *directory, uint16_t port_space, const struct sockaddr *dst,
		    unsigned own_slot, struct listener_place *place);

#endif
