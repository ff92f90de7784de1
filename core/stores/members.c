/* SPDX-License-Identifier: BSD-3-Clause */
/* See members.h. */
#include "core/stores/members.h"
#include <errno.h>
#include "core/rt/rt.h"
#include "core/stores/kv.h"

#define PATIENCE_NS 1000000

struct tm_env members_env(const struct tm_env *own, unsigned to)
{
	struct tm_env env = *own;

	env.server = to;
	env.client = members_client(own->params, own->server);
	return env;
}

struct tm_env members_env_primary(const struct tm_env *own)
{
	struct tm_env env = *own;
	struct rt_config now;

	rt_config_get(&now);
	env.server = now.primary;
	return env;
}

struct tm_env members_env_served(const struct tm_env *own, unsigned servers, struct tm_params *more)
{
	struct tm_env env = *own;

	*more = *own->params;
	more->clients += servers;
	env.params = more;
	return env;
}

int members_set(const struct rt_config *seen, uint32_t members, unsigned primary)
{
	const struct rt_config next = {
		.epoch = seen->epoch + 1, .members = members, .primary = primary};

	return rt_config_set(&next);
}

int members_change(const struct tm_env *env, uint32_t members)
{
	struct rt_config now;
	int rc;

	do {
		rc = rt_config_get(&now);
		if (rc || now.primary != env->server)
			return -EHOSTDOWN;
		rc = members_set(&now, members, now.primary);
	} while (rc == -EAGAIN);
	return rc ? -EHOSTDOWN : 0;
}

void members_leave(const struct tm_env *env)
{
	uint64_t nap = KV_NAP_NS;
	struct rt_config now;

	while (rt_config_get(&now) ||
	       (now.primary != env->server && now.members & members_bit(env) &&
		members_set(&now, now.members & ~members_bit(env), now.primary)))
		kv_nap(&nap);
}

void members_wait_all(const struct tm_env *env, const bool *serves)
{
	const uint64_t until = rt_now() + PATIENCE_NS;
	const uint32_t all = (1u << env->servers) - 1;
	struct rt_config now;

	do {
		rt_sleep(10000);
		rt_config_get(&now);
	} while ((now.primary == env->server && !*serves) ||
		 (now.members != all && now.alive == all && rt_now() < until));
}
