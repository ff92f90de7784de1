/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_KV_ROOMS_H
#define TM_STORES_KV_ROOMS_H
/*
 * Which lines of an area are in use, in DRAM: for stores that give room away again. After a restart
 * a store marks what it has found in PM.
 */
#include <stdbool.h>
#include <stdint.h>

/* Lines that are in use until then. */
struct kv_leased {
	uint64_t first, lines;
	uint64_t until; /* rt_now() */
};

struct kv_rooms {
	bool *used; /* by line */
	uint64_t lines;
	uint64_t all_used; /* so many of the first lines are */
	struct kv_leased *leased;
	uint64_t leases, leases_max;
};

/* All lines are free. -ENOMEM. */
int kv_rooms_init(struct kv_rooms *rooms, uint64_t lines);
/* Take the first `lines` lines in a row that are free, one at least. -ENOSPC: there are not so
 * many. */
int kv_rooms_take(struct kv_rooms *rooms, uint64_t lines, uint64_t *first);
void kv_rooms_mark(struct kv_rooms *rooms, uint64_t first, uint64_t lines, bool used);
/* These lines are free when rt_now() is `until`. */
void kv_rooms_free_at(struct kv_rooms *rooms, uint64_t first, uint64_t lines, uint64_t until);

#endif
