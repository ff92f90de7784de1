/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_MEMBERS_H
#define TM_STORES_MEMBERS_H
/* What the servers of one store share: connections to each other, by rpc.h, and the configuration
 * that they change. */
#include "core/rt/config.h"
#include "core/tidemark.h"

/* As which client a server connects to the others. */
static inline uint32_t members_client(const struct tm_params *params, unsigned server)
{
	return params->clients + 1 + server;
}

/* To connect from the server whose environment is `own` to another one. */
static inline struct tm_env members_env(const struct tm_env *own, unsigned to)
{
	struct tm_env env = *own;
	env.server = to;
	env.client = members_client(own->params, own->server);
	return env;
}

/* Make it so, if the configuration is still the one that was seen; -EAGAIN: it is not. */
static inline int members_set(const struct rt_config *seen, uint32_t members, unsigned primary)
{
	const struct rt_config next = {
		.epoch = seen->epoch + 1, .members = members, .primary = primary};
	return rt_config_set(&next);
}

#endif
