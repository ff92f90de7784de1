/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_MEMBERS_H
#define TM_STORES_MEMBERS_H
/*
 * What the servers of one store share: connections to each other, by rpc.h, and the configuration
 * that they change.
 */
#include "core/rt/config.h"
#include "core/tidemark.h"

static inline uint32_t members_bit(const struct tm_env *env)
{
	return 1u << env->server;
}

/* --- connections --- */

/* As which client a server connects to the others. Clients' own numbers come before. */
static inline uint32_t members_client(const struct tm_params *params, unsigned server)
{
	return params->clients + 1 + server;
}

/* To connect from the server whose environment is `own` to another one. */
struct tm_env members_env(const struct tm_env *own, unsigned to);
/* To connect as the client whose environment is `own` to the primary. */
struct tm_env members_env_primary(const struct tm_env *own);
/* For rpc_server_init() of a server to which the `servers` of the store connect, too. `more`: they
 * are among its clients. */
struct tm_env members_env_served(const struct tm_env *own, unsigned servers,
				 struct tm_params *more);

/* --- the configuration --- */

/* Make it so, if the configuration is still the one that was seen; -EAGAIN: it is not. */
int members_set(const struct rt_config *seen, uint32_t members, unsigned primary);
/* Change who is a member, while this server is the primary. If it is not, or if there is no answer,
 * and it may be so or not: -EHOSTDOWN. */
int members_change(const struct tm_env *env, uint32_t members);
/* A server that has just begun is no member, as its pool may not be what it was, unless it is the
 * primary. */
void members_leave(const struct tm_env *env);

/* Wait until the primary serves, which it says in `serves`, and until all are members: clients
 * need not wait for the others longer than it takes. */
void members_wait_all(const struct tm_env *env, const bool *serves);

/* --- two servers: the primary, and one that has a copy and is a member, or is to get one --- */

#define MEMBERS_BOTH 3u

static inline unsigned members_other(const struct tm_env *env)
{
	return !env->server;
}

static inline struct tm_env members_env_other(const struct tm_env *own)
{
	return members_env(own, members_other(own));
}

/* The number that the other server has as this one's client. */
static inline uint32_t members_other_client(const struct tm_env *env)
{
	return members_client(env->params, members_other(env));
}

#endif
