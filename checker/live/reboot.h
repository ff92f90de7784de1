/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_REBOOT_H
#define TM_CHECKER_LIVE_REBOOT_H
/*
 * Booting, in the sim world, the pool that a live server left: recovery, the store's own check, and
 * reading back through the store's own GET.
 *
 * It is like the second machine of checker/world/world.h, but there was no first one: there is no
 * workload, no history and nothing in flight.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/tidemark.h"

struct rebooter;
/* `store` and `params` are the caller's. 0 or -ENOMEM. */
int rebooter_new(struct rebooter **out, const struct tm_store *store,
		 const struct tm_params *params);
void rebooter_free(struct rebooter *r);

/* The result, apart from the values. */
struct rebooted {
	bool live_broken; /* recovery, the server or an operation fails or does not end: */
	char why[200];	  /* how, one line */
	bool fsck_broken;
	char defect[240]; /* the first one, one line */
	bool full;	  /* there was no room for the PUT that proves life: not proved */
	unsigned read;	  /* so many of the keys were read, from the first on */
};

/* A GET of keys[i]: 0 or -ENOENT. */
typedef void rebooted_value(void *arg, unsigned i, int error, const uint8_t *bytes, size_t len);
/* Boot a copy of `pool` (pm_bytes() of the store), read these live keys in their order, PUT and
 * GET. */
void reboot_image(struct rebooter *r, const uint8_t *pool, const uint32_t *keys, unsigned n,
		  rebooted_value *value, void *arg, struct rebooted *out);

#endif
