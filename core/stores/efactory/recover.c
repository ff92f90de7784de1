/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An empty pool, and a pool after a power failure.
 *
 * The paper gives the principle (EF 4.1): go back along the version list to an
 * intact version. Ours, step by step, for each used entry:
 *
 *	1. From the newest version back: accept the first that is valid and whose
 *	   CRC is right. A flag of 0 says nothing (the flag is flushed lazily); a
 *	   flag of 1 is not believed either (knob trust_flag).
 *	2. If that is not the newest, the entry names it from now on. If there is
 *	   none the key has no version; its entry stays, because linear probing
 *	   wants no holes.
 *	3. The accepted version has no newer one, and is durable.
 *
 * A PUT that was in flight, never acknowledged, may come back if its bytes are
 * complete. Nothing behind the last reachable object need be cleared: an object
 * is reachable only after its whole header was written anew and persisted, and
 * stale bytes of the value area count for a value only if they are the value.
 * The log's tail, the stamps and the verifier's list are volatile; ef_serve()
 * derives the first two from the entries and starts with an empty list, as no
 * writer survives.
 */
#include "core/stores/efactory/efactory.h"

#include <errno.h>
#include <libpmem.h>

int ef_format(const struct tm_env *env)
{
	struct ef_pool pool;
	uint64_t *magic;

	ef_pool_map(&pool, env->params, env->pm);
	magic = (uint64_t *)pool.log;
	*magic = EF_MAGIC;
	pmem_persist(magic, sizeof(*magic));
	return 0;
}

static bool acceptable(const struct ef_pool *pool, const struct ef_object *object)
{
	const struct tm_params *params = pool->params;

	if (!(object->state & EF_VALID) && !ef_knob(params, EF_IGNORE_VALID))
		return false;
	if (ef_bug(params, EF_BUG_RECOVER_NO_CRC))
		return true;
	if ((object->state & EF_FLAG) && ef_knob(params, EF_TRUST_FLAG))
		return true;
	return ef_crc_ok(object);
}

/* The newest version from `off` back that can be accepted; 0: none. */
static uint64_t newest_intact(const struct ef_pool *pool, uint64_t off)
{
	while (off) {
		if (!ef_fits(pool, off))
			return 0;
		if (acceptable(pool, ef_at(pool, off)))
			return off;
		if (ef_bug(pool->params, EF_BUG_RECOVER_HEAD_ONLY))
			return 0;
		off = ef_older(pool, off);
	}
	return 0;
}

/* The accepted version becomes what a newest version is at rest. */
static void settle(const struct ef_pool *pool, struct ef_object *object)
{
	const struct tm_params *params = pool->params;

	if (object->next && !ef_bug(params, EF_BUG_RECOVER_NEXT)) {
		object->next = 0;
		pmem_persist(&object->next, sizeof(object->next));
	}
	if (object->state != EF_DURABLE && !ef_bug(params, EF_BUG_RECOVER_NO_FLAG)) {
		pmem_persist(object->value, object->vlen);
		object->state = EF_DURABLE;
		pmem_persist(&object->state, sizeof(object->state));
	}
}

static void recover_entry(const struct ef_pool *pool, struct ef_entry *entry)
{
	uint64_t *head = ef_head(entry);
	uint64_t newest = *head;
	uint64_t intact = newest_intact(pool, newest);

	if (intact != newest) {
		if (ef_bug(pool->params, EF_BUG_RECOVER_CLEARS)) {
			*head = 0;
			pmem_persist(head, sizeof(*head));
		}
		*head = intact;
		pmem_persist(head, sizeof(*head));
	}
	if (intact)
		settle(pool, ef_at(pool, intact));
}

int ef_recover(const struct tm_env *env)
{
	struct ef_pool pool;

	ef_pool_map(&pool, env->params, env->pm);
	if (*(uint64_t *)pool.log != EF_MAGIC)
		return -EINVAL;
	for (uint64_t i = 0; i < pool.slots; i++) {
		if (pool.table[i].ctl & EF_USED)
			recover_entry(&pool, &pool.table[i]);
	}
	return 0;
}
