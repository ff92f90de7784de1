/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See libc.h. Freed memory is kept in lists by size class within the run; a block's header
 * remembers its class. Classes are powers of two, and from 16 KiB on four to each: servers take
 * large buffers at each boot, and all of a block is cleared.
 */
#include "core/rt/process/libc.h"
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "core/rt/sim.h"
#include "core/rt/process/sim_libc.h"

#define CLASSES SIM_FREE_LISTS
#define LARGE	14 /* the first class of 16 KiB */
#define HEADER	16
#define FREED	(UINT64_C(1) << 32) /* in a block's class: it is in a list */
#define MALLOC_MAX \
	((size_t)64 << 20) /* more is a length that recovery took from a torn image: refused */

struct block {
	uint64_t class; /* 0: an aligned block */
	union {
		struct block *next; /* while free */
		size_t bytes;	    /* of an aligned block in use */
	};
	/* The user's memory begins here (HEADER bytes in). */
};
_Static_assert(sizeof(struct block) == HEADER, "the user's memory is aligned as malloc()'s");

static size_t bytes_of(unsigned class)
{
	const unsigned step = class - LARGE;
	return class < LARGE ? (size_t)1 << class
			     : (size_t)(4 + step % 4) << (LARGE - 2 + step / 4);
}

static unsigned class_of(size_t bytes)
{
	unsigned class = 5; /* 32 bytes */
	while (bytes_of(class) < bytes + HEADER)
		class ++;
	assert(class < CLASSES);
	return class;
}

static void *no_memory(const char *name, uintptr_t pc)
{
	sim_call_returned(sim_current(), name, ENOMEM, pc);
	errno = ENOMEM;
	return NULL;
}

void *sim_take(size_t bytes)
{
	struct sim *sim = sim_current();
	struct block **list = sim_free_lists(sim);
	unsigned class = class_of(bytes);
	struct block *block = list[class];
	if (block) {
		list[class] = block->next;
		block->next = NULL;
	} else {
		block = sim_alloc(sim, bytes_of(class));
	}
	block->class = class;
	return (char *)block + HEADER;
}

static void *allocate(const char *name, size_t bytes, uintptr_t pc)
{
	return bytes > MALLOC_MAX || sim_fails(FAIL_MEMORY) ? no_memory(name, pc) : sim_take(bytes);
}

void *sim_malloc(size_t bytes)
{
	return allocate("malloc", bytes, PC);
}

void *sim_calloc(size_t count, size_t bytes)
{
	size_t total;
	if (__builtin_mul_overflow(count, bytes, &total))
		return no_memory("calloc", PC);
	return allocate("calloc", total, PC);
}

/* The block of a pointer that malloc gave and free has not had back; else the store's task ends
 * here. */
static struct block *block_of(void *memory, const char *otherwise, uintptr_t pc)
{
	struct block *block = (struct block *)((char *)memory - HEADER);
	if (block->class < CLASSES)
		return block;
	sim_fault_at(pc, otherwise);
}

static size_t room_of(const struct block *block)
{
	return block->class ? bytes_of((unsigned)block->class) - HEADER : block->bytes;
}

void sim_free_memory(void *memory)
{
	if (!memory)
		return;
	struct block *block = block_of(memory, "free() of what is not allocated", PC);
	struct block **list = &sim_free_lists(sim_current())[block->class];
	/* Nothing of it shows again: a read of uninitialised bytes stays deterministic, and memory
	 * that is free is alike whatever was there (sim_state_hash()). */
	if (block->class)
		memset(memory, 0, room_of(block));
	block->class |= FREED;
	block->next = *list;
	*list = block;
}

void *sim_realloc(void *memory, size_t bytes)
{
	if (!memory)
		return allocate("realloc", bytes, PC);
	size_t room = room_of(block_of(memory, "realloc() of what is not allocated", PC));
	if (bytes <= room)
		return memory;
	void *bigger = allocate("realloc", bytes, PC);
	if (!bigger)
		return NULL;
	memcpy(bigger, memory, room);
	sim_free_memory(memory);
	return bigger;
}

static void *allocate_aligned(const char *name, size_t align, size_t bytes, uintptr_t pc)
{
	/* Aligned blocks are not given back: stores allocate them once, for registered buffers. */
	if (bytes > MALLOC_MAX || sim_fails(FAIL_MEMORY))
		return no_memory(name, pc);
	char *memory = sim_alloc(sim_current(), bytes + align + HEADER + sizeof(struct block));
	uintptr_t user = ((uintptr_t)memory + HEADER + align - 1) & ~(uintptr_t)(align - 1);
	*(struct block *)(user - HEADER) = (struct block){.class = 0, .bytes = bytes};
	return (void *)user;
}

void *sim_aligned_alloc(size_t align, size_t bytes)
{
	return allocate_aligned("aligned_alloc", align, bytes, PC);
}

int sim_posix_memalign(void **memory, size_t align, size_t bytes)
{
	*memory = allocate_aligned("posix_memalign", align, bytes, PC);
	return *memory ? 0 : ENOMEM;
}

size_t sim_usable_size(void *memory)
{
	return memory ? room_of((struct block *)((char *)memory - HEADER)) : 0;
}

void sim_fault_at(uintptr_t pc, const char *what)
{
	struct sim *sim = sim_current();
	sim_set_fault(sim, pc, what);
	sim_abandon(sim, SIM_FAULT);
}

void sim_abort(void)
{
	sim_fault_at(PC, "abort()");
}

void sim_assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
	char text[96];
	const char *slash = strrchr(file, '/');
	snprintf(text, sizeof(text), "assertion failed at %s:%u: %s", slash ? slash + 1 : file,
		 line, what);
	sim_fault_at(PC, text);
}
