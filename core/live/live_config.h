/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_CONFIG_H
#define TM_LIVE_CONFIG_H
/*
 * What servers and clients of a store with several servers ask of the service that keeps the
 * configuration (core/rt/config.h; cli/live/members.c is the service): requests and answers of a
 * rendezvous. Clients have the numbers up to TM_MAX_CLIENTS there, servers those after them.
 *
 * A server is alive from CONFIG_READY on, as long as its connection lasts, which it ends itself
 * when there is no answer. Its lease is shorter than the time after which the service takes a
 * silent connection for ended, or another service for one of a server that is gone.
 *
 * All words are in network order.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include "core/tidemark.h"

#define LIVE_SERVERS   4  /* of one store, at most */
#define CONFIG_ADDRESS 96 /* bytes of "ADDRESS:PORT" with its NUL */
#define CONFIG_MAGIC   "tidemark-members 1"

#define CONFIG_LEASE_NS 1000000000ull /* from when it asked, until it asks again */
#define CONFIG_GRACE_NS 1500000000ull /* a service that begins takes servers for alive so long */

/* CONFIG_AGAIN: as CONFIG_READY, of a server that has told an earlier service. */
enum config_op { CONFIG_GET = 1, CONFIG_SET, CONFIG_READY, CONFIG_AGAIN };

struct config_request {
	uint32_t op;
	uint32_t epoch, members, primary; /* CONFIG_SET: as in struct rt_config */
	char address[CONFIG_ADDRESS];	  /* CONFIG_READY: where that server listens */
};

struct config_answer {
	uint32_t epoch, members, alive, primary;
	uint32_t servers;
	/* How often a server became alive when no other one was: what is recorded as the boot. */
	uint32_t boot;
	char address[LIVE_SERVERS][CONFIG_ADDRESS]; /* of those that have been alive */
};

/* Turn what it says from this machine's order to that of the network, or back. */
static inline void config_answer_turn(struct config_answer *a)
{
	uint32_t *const word[] = {&a->epoch,   &a->members, &a->alive,
				  &a->primary, &a->servers, &a->boot};
	for (unsigned i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		*word[i] = htonl(*word[i]);
}

static inline unsigned config_number(unsigned server)
{
	return TM_MAX_CLIENTS + 1 + server;
}

#endif
