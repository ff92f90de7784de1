/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_POOL_PLAN_H
#define TM_SCENARIOS_POOL_PLAN_H
/*
 * What the pool of a live server holds. If the pool already has a store, its header decides, and
 * the options must agree with it. Otherwise the options decide, or the defaults.
 */
#include "scenarios/live_store.h"

#define POOL_WHY 400 /* bytes of a message */

enum pool_size { POOL_CLIENTS, POOL_KEYS, POOL_UPDATES, POOL_VALUE, POOL_SIZES };

/* What the options ask for; 0 or NULL: nothing. */
struct pool_wish {
	const char *variant;
	const char *const *knob; /* "name=value" */
	unsigned knobs;
	unsigned long long size[POOL_SIZES];
	unsigned long long bytes; /* of the whole pool, at most */
};

extern const struct pool_limit {
	const char *option; /* "--clients" */
	unsigned long long least, most, otherwise;
} pool_limits[POOL_SIZES];
extern const unsigned long long pool_default_bytes; /* of a new pool with its header */

/*
 * Fill *s for the pool `path` and the store of this name, which exists. *fresh: the pool has no
 * store yet, and is to be formatted. 0, or -EINVAL with *why.
 */
int pool_plan(struct live_store *s, const char *path, const char *name,
	      const struct pool_wish *wish, bool *fresh, char why[POOL_WHY]);

#endif
