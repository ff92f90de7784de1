/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_VISITED_H
#define TM_CHECKER_EXPLORE_VISITED_H
/* The set of visited states: 64-bit hashes, each with a few notes of the caller's. It grows. */
#include <stdbool.h>
#include <stdint.h>

#define VISITED_NOTES 4

struct visited_entry {
	uint64_t hash;
	uint16_t note[VISITED_NOTES];
	uint32_t check; /* the caller's, to see that it is the same state */
};
struct visited;
struct visited *visited_new(void); /* NULL: out of memory */
void visited_free(struct visited *set);
void visited_clear(struct visited *set);
/* The entry of `hash`, and whether it is new. Valid until the next call. When the set cannot grow
 * any more (VISITED_MAX entries) it is emptied: work is then repeated, but nothing is missed. */
#define VISITED_MAX (1u << 23)
struct visited_entry *visited_add(struct visited *set, uint64_t hash, bool *is_new);
bool visited_has(const struct visited *set, uint64_t hash);
/* NULL: it is not in the set. Valid as above. */
const struct visited_entry *visited_find(const struct visited *set, uint64_t hash);
/* How often the set was emptied: what was in it before may be new again. */
uint32_t visited_emptied(const struct visited *set);

#endif
