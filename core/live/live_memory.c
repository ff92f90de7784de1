/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a live host's store code: plain heap memory, in a list, so that the host
 * gives back what the store still has when it ends. A task calls, and has the baton.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/live/live_fails.h"
#include "core/live/live_host.h"

#define ALIGN 16 /* as malloc() aligns */

_Static_assert(sizeof(struct live_block) % ALIGN == 0, "what follows a block is aligned");

static struct live_block *block_of(void *p)
{
	return (struct live_block *)p - 1;
}

static void *book(void *start, size_t offset, size_t size)
{
	struct live_host *host = live_self()->host;
	struct live_block *block = block_of((char *)start + offset);
	assert(offset >= sizeof(*block)); /* else it would lie in front of what was allocated */
	assert(!host->blocks || !host->blocks->previous);
	*block = (struct live_block){.next = host->blocks, .start = start, .size = size};
	if (host->blocks)
		host->blocks->previous = block;
	host->blocks = block;
	return block + 1;
}

static void unbook(struct live_block *block)
{
	assert((block->previous ? block->previous->next : live_self()->host->blocks) == block);
	assert(!block->next || block->next->previous == block);
	if (block->previous)
		block->previous->next = block->next;
	else
		live_self()->host->blocks = block->next;
	if (block->next)
		block->next->previous = block->previous;
}

/* The check of a failure point comes first: a call of no bytes can fail, too. */
static bool refused(size_t size)
{
	if (!live_fails(FAIL_MEMORY) && size <= SIZE_MAX / 2)
		return false;
	errno = ENOMEM;
	return true;
}

void *live_malloc(size_t size)
{
	void *start = refused(size) ? NULL : malloc(sizeof(struct live_block) + size);
	return start ? book(start, sizeof(struct live_block), size) : NULL;
}

void *live_calloc(size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX;
	void *start = refused(bytes) ? NULL : calloc(1, sizeof(struct live_block) + bytes);
	return start ? book(start, sizeof(struct live_block), bytes) : NULL;
}

void *live_realloc(void *old, size_t size)
{
	void *new = live_malloc(size);
	if (!new || !old)
		return new;
	size_t had = block_of(old)->size;
	memcpy(new, old, had < size ? had : size);
	live_free(old);
	return new;
}

int live_posix_memalign(void **out, size_t align, size_t size)
{
	size_t offset = align > sizeof(struct live_block) ? align : sizeof(struct live_block);
	void *start;
	if (refused(size))
		return ENOMEM;
	int error = posix_memalign(&start, align, offset + size);
	if (!error)
		*out = book(start, offset, size);
	return error;
}

void live_free(void *p)
{
	if (!p)
		return;
	void *start = block_of(p)->start;
	unbook(block_of(p));
	free(start);
}

void live_blocks_free(struct live_host *host)
{
	while (host->blocks) {
		struct live_block *block = host->blocks;
		host->blocks = block->next;
		free(block->start);
	}
}
