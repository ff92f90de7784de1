/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_ARENA_H
#define TM_RT_ARENA_H
/*
 * Memory of one simulated run: handed out zeroed, taken back all at once. Chunks
 * are kept, so a world that is used again allocates nothing.
 */
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;
struct arena {
	struct arena_chunk *first, *now;
	size_t used; /* of the chunk `now` */
};

void arena_init(struct arena *arena);
void arena_free(struct arena *arena);
void arena_reset(struct arena *arena);
void *arena_alloc(struct arena *arena, size_t bytes); /* zeroed, 16-byte aligned, never NULL */
/* Out of memory is not an error that a run could handle: says so and ends the process with 70. */
_Noreturn void arena_exhausted(void);

#endif
