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
/* How many bytes of the address's chunk lie before it; 0: it is not in the arena. */
size_t arena_before(const struct arena *arena, const void *addr);
/* A hash of all that has been handed out since the last reset; 0: it is more than `most` bytes.
 * Memory in the same place counts: what holds pointers is alike in the same process only. */
uint64_t arena_hash(const struct arena *arena, size_t most);
/* What has been handed out since then; brought back in the same place, whatever was handed out
 * meanwhile. */
struct snapshot;
void arena_exchange(struct arena *arena, struct snapshot *s);
/* Twice the room for an array of malloc()'s; NULL has none. Out of memory ends the process. */
void *array_grow(void *array, uint32_t *room, size_t each);
/* Out of memory is not an error that a run could handle: says so and ends the process with 70. */
_Noreturn void arena_exhausted(void);

#endif
