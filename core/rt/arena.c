/* SPDX-License-Identifier: BSD-3-Clause */
/* See arena.h. */
#include "core/rt/arena.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "core/rt/snapshot.h"

#define CHUNK_BYTES ((size_t)256 * 1024)

struct arena_chunk {
	struct arena_chunk *next;
	size_t bytes;
	_Alignas(16) unsigned char memory[];
};

void arena_exhausted(void)
{
	fputs("tidemark: out of memory\n", stderr);
	_Exit(70);
}

void *array_grow(void *array, uint32_t *room, size_t each)
{
	assert(each && *room <= UINT32_MAX / 2);
	*room = *room ? 2 * *room : 64;
	array = realloc(array, *room * each);
	if (!array)
		arena_exhausted();
	return array;
}

void arena_init(struct arena *arena)
{
	memset(arena, 0, sizeof(*arena));
}

void arena_free(struct arena *arena)
{
	for (struct arena_chunk *chunk = arena->first, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	arena_init(arena);
}

void arena_reset(struct arena *arena)
{
	assert(!arena->now == !arena->first);
	assert(!arena->now || arena->used <= arena->now->bytes);
	arena->now = arena->first;
	arena->used = 0;
}

static struct arena_chunk *chunk_new(size_t bytes)
{
	size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
	struct arena_chunk *chunk = malloc(sizeof(*chunk) + size);
	if (!chunk)
		arena_exhausted();
	chunk->next = NULL;
	chunk->bytes = size;
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	assert(bytes <= SIZE_MAX / 2); /* no length that wrapped around */
	bytes = (bytes + 15) & ~(size_t)15;
	while (!arena->now || arena->used + bytes > arena->now->bytes) {
		struct arena_chunk **link = arena->now ? &arena->now->next : &arena->first;
		if (!*link)
			*link = chunk_new(bytes);
		arena->now = *link;
		arena->used = 0;
	}
	void *memory = arena->now->memory + arena->used;
	assert((uintptr_t)memory % 16 == 0);
	arena->used += bytes;
	return memset(memory, 0, bytes);
}

size_t arena_before(const struct arena *arena, const void *addr)
{
	for (const struct arena_chunk *chunk = arena->first; chunk; chunk = chunk->next) {
		const size_t before = (uintptr_t)addr - (uintptr_t)chunk->memory;
		if (before < chunk->bytes)
			return before;
	}
	return 0;
}

/* Bytes in use of a chunk that is not after `now`. */
static size_t used_of(const struct arena *arena, const struct arena_chunk *chunk)
{
	return chunk == arena->now ? arena->used : chunk->bytes;
}

void arena_exchange(struct arena *arena, struct snapshot *s)
{
	SNAPSHOT_EXCHANGE(s, arena->now);
	SNAPSHOT_EXCHANGE(s, arena->used);
	for (struct arena_chunk *chunk = arena->now ? arena->first : NULL; chunk;
	     chunk = chunk == arena->now ? NULL : chunk->next)
		snapshot_exchange(s, chunk->memory, used_of(arena, chunk));
}

uint64_t arena_hash(const struct arena *arena, size_t most)
{
	uint64_t hash = 1;
	for (const struct arena_chunk *chunk = arena->first; chunk; chunk = chunk->next) {
		size_t used = used_of(arena, chunk);
		if (used > most)
			return 0;
		most -= used;
		hash = XXH3_64bits_withSeed(chunk->memory, used, hash);
		if (chunk == arena->now)
			break;
	}
	return hash ? hash : 1;
}
