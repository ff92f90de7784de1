/* SPDX-License-Identifier: BSD-3-Clause */
/* See listeners.h. */
#include "core/provider/cm/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/cm/sockaddr.h"
#include "core/provider/base/fabric_dir.h"

#define PATH_BYTES 300

static const char *address_text(const struct sockaddr *addr, bool v6_only,
				char buf[INET6_ADDRSTRLEN])
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;

	if (sockaddr_is_any(addr))
		return addr->sa_family == AF_INET ? "any4" : v6_only ? "any6" : "any";
	if (addr->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)addr)->sin_addr, buf,
			  INET6_ADDRSTRLEN);
	else if (IN6_IS_ADDR_V4MAPPED(in6))
		inet_ntop(AF_INET, &in6->s6_addr[12], buf, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, in6, buf, INET6_ADDRSTRLEN);
	return buf;
}

static void name(char path[PATH_BYTES], const char *directory, uint16_t port_space, uint16_t port,
		 const char *address)
{
	snprintf(path, PATH_BYTES, "%s/cm-%x-%u-%s", directory, port_space, port, address);
}

int listeners_add(const char *directory, uint16_t port_space, const struct sockaddr *at,
		  bool v6_only, const struct listener_place *place)
{
	char path[PATH_BYTES], text[INET6_ADDRSTRLEN], target[32];

	name(path, directory, port_space, sockaddr_port(at), address_text(at, v6_only, text));
	snprintf(target, sizeof(target), "%u-%08x", place->slot, place->address);
	unlink(path);
	return symlink(target, path) ? -errno : 0;
}

void listeners_remove(const char *directory, uint16_t port_space, const struct sockaddr *at,
		      bool v6_only)
{
	char path[PATH_BYTES], text[INET6_ADDRSTRLEN];

	name(path, directory, port_space, sockaddr_port(at), address_text(at, v6_only, text));
	unlink(path);
}

static bool look(const char *path, const char *directory, unsigned own_slot,
		 struct listener_place *place)
{
	char target[32] = "";

	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       sscanf(target, "%u-%x", &place->slot, &place->address) == 2 && place->slot &&
	       place->slot < FABRIC_SLOTS &&
	       (place->slot == own_slot || fabric_dir_slot_owner(directory, place->slot));
}

bool listeners_find(const char *directory, uint16_t port_space, const struct sockaddr *dst,
		    unsigned own_slot, struct listener_place *place)
{
	char path[PATH_BYTES], text[INET6_ADDRSTRLEN];
	const char *address = address_text(dst, false, text);
	const char *tries[] = {address, strchr(address, ':') ? "any6" : "any4", "any"};

	for (unsigned i = 0; i < 3; i++) {
		name(path, directory, port_space, sockaddr_port(dst), tries[i]);
		if (look(path, directory, own_slot, place))
			return true;
	}
	return false;
}
