/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SEEN_H
#define TM_SEEN_H
/* A growing set of 64-bit hashes, each with a few bytes of what is known of it. */
#include <stdbool.h>
#include <stdint.h>

#define SEEN_NOTES 4

struct seen_entry {
	uint64_t hash;
	uint16_t note[SEEN_NOTES];
};
struct seen;
struct seen *seen_new(void); /* NULL: out of memory */
void seen_free(struct seen *seen);
void seen_clear(struct seen *seen);
/* The entry of `hash`, and whether it is new. Valid until the next call. When the set cannot grow
 * any more (SEEN_MAX entries) it is emptied: work is then done twice, nothing is missed. */
#define SEEN_MAX (1u << 23)
struct seen_entry *seen_add(struct seen *seen, uint64_t hash, bool *is_new);
bool seen_has(const struct seen *seen, uint64_t hash);

#endif
