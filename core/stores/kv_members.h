/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_KV_MEMBERS_H
#define TM_STORES_KV_MEMBERS_H
/*
 * What stores of two servers share: of these one is the primary, the other one has a copy and is a
 * member, or is to get one.
 */
#include "core/rt/config.h"
#include "core/tidemark.h"

#define KV_BOTH 3u /* members */

static inline uint32_t kv_my_bit(const struct tm_env *env)
{
	return 1u << env->server;
}

static inline unsigned kv_other(const struct tm_env *env)
{
	return !env->server;
}

/* To connect to the other server as. */
struct tm_env kv_env_to_other(const struct tm_env *env);
/* The number that the other server has as this one's client. Numbers of clients' own come before:
 * a server takes tm_params.clients + 2 of them. */
uint32_t kv_other_client(const struct tm_env *env);
/* Make it so, if the configuration is still the one that was seen. */
int kv_configure(const struct rt_config *seen, uint32_t members, unsigned primary);
/* Change who is a member besides the primary, while that is this server. Else, or if there is no
 * answer, and it may be so or not: -EHOSTDOWN. */
int kv_set_members(const struct tm_env *env, uint32_t members);
/* A server that has just begun is no member, as its pool may not be what it was, unless it is the
 * primary. */
void kv_leave(const struct tm_env *env);
/* Wait until the primary serves, which it says in `serves`, and until both are members: clients
 * need not wait for the other one longer than it takes. */
void kv_wait_for_other(const struct tm_env *env, const bool *serves);

#endif
