/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_WORLD_CLIENT_H
#define TM_CHECKER_WORLD_WORLD_CLIENT_H
/* What clients of a world do, on their tasks. For the files that make up a world. */
#include "checker/world/world.h"

#define AFTERMATH_NS 150000 /* what goes on after the last operation */

/* What is wrong with the machine: a contract that is not judged from the history. `live`: LIVE,
 * else FSCK. The first one counts. */
void world_trouble(struct world *w, bool live, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Likewise LIVE, for a function of the store has returned an error: `fmt`, which function, the
 * error, and the last call that failed there. */
void world_refused(struct world *w, const char *function, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The store's structural check. `after`: what is over, in words. */
void world_fsck(struct world *w, const char *after);
/* Connect. If that fails the world ends. */
void client_open(struct world_client *c);
void client_do(struct world_client *c, const struct workload_op *op, uint8_t *buf);
/* GET every key, and look. So many GETs and operations of the store's own the client has done
 * already. */
void client_read_keys(struct world_client *c, unsigned gets, unsigned calls, uint8_t *buf);

#endif
