/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_CM_LISTENERS_H
#define TM_PROVIDER_CM_LISTENERS_H
/*
 * Who listens in a net. Its processes may all have one address, and then share one queue pair 1: a
 * request that comes there is for the one who listens at the port that it names.
 *
 * For each listening identifier the net's directory has a name, cm-SPACE-PORT-ADDRESS (ADDRESS is
 * "any4", "any6" or "any" for wildcards), a symbolic link whose target, which is no file, is
 * "SLOT-IPV4": the process's slot, and the address of its RNIC. It outlives its process: whoever
 * reads it looks whether the slot's owner lives.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct listener_place {
	unsigned slot;
	uint32_t address; /* of its RNIC, IPv4, host byte order */
};

/* What was there is a dead process's. 0 or -errno. */
int listeners_add(const char *directory, uint16_t port_space, const struct sockaddr *at,
		  bool v6_only, const struct listener_place *place);
void listeners_remove(const char *directory, uint16_t port_space, const struct sockaddr *at,
		      bool v6_only);
/* Who listens for a request to this address: at the address, at all of the family, at all.
 * `own_slot`: the caller's. False: nobody. */
bool listeners_find(const char *directory, uint16_t port_space, const struct sockaddr *dst,
		    unsigned own_slot, struct listener_place *place);

#endif
