/* SPDX-License-Identifier: BSD-3-Clause */
/* See kv_members.h. */
#include "core/stores/kv_members.h"
#include <errno.h>
#include "core/rt/rt.h"
#include "core/stores/kv.h"

#define PATIENCE_NS 1000000

struct tm_env kv_env_to_other(const struct tm_env *env)
{
	struct tm_env to = *env;

	to.server = kv_other(env);
	to.client = env->params->clients + 1 + env->server;
	return to;
}

uint32_t kv_other_client(const struct tm_env *env)
{
	return env->params->clients + 1 + kv_other(env);
}

int kv_configure(const struct rt_config *seen, uint32_t members, unsigned primary)
{
	const struct rt_config next = {
		.epoch = seen->epoch + 1, .members = members, .primary = primary};

	return rt_config_set(&next);
}

int kv_set_members(const struct tm_env *env, uint32_t members)
{
	struct rt_config now;
	int rc;

	do {
		rc = rt_config_get(&now);
		if (rc || now.primary != env->server)
			return -EHOSTDOWN;
		rc = kv_configure(&now, members, now.primary);
	} while (rc == -EAGAIN);
	return rc ? -EHOSTDOWN : 0;
}

void kv_leave(const struct tm_env *env)
{
	uint64_t nap = KV_NAP_NS;
	struct rt_config now;

	while (rt_config_get(&now) ||
	       (now.primary != env->server && now.members & kv_my_bit(env) &&
		kv_configure(&now, now.members & ~kv_my_bit(env), now.primary)))
		kv_nap(&nap);
}

void kv_wait_for_other(const struct tm_env *env, const bool *serves)
{
	const uint64_t until = rt_now() + PATIENCE_NS;
	struct rt_config now;

	do {
		rt_sleep(10000);
		rt_config_get(&now);
	} while ((now.primary == env->server && !*serves) ||
		 (now.members != KV_BOTH && now.alive == KV_BOTH && rt_now() < until));
}
