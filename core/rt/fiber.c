/* SPDX-License-Identifier: BSD-3-Clause */
/* Switching stacks with Boost.Context, and stacks with a guard page. See fiber.h. */
#include "core/rt/fiber.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/rt/asan.h"

/* Boost.Context's C interface (boost/context/detail/fcontext.hpp is C++ only). */
typedef void *fcontext_t;
struct transfer {
	fcontext_t from;
	void *data;
};
extern struct transfer jump_fcontext(fcontext_t to, void *data);
extern fcontext_t make_fcontext(void *stack_top, size_t size, void (*fn)(struct transfer));

#if TM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
static void asan_leave(struct fiber *self, struct fiber *to, int for_good)
{
	__sanitizer_start_switch_fiber(for_good ? NULL : &self->shadow, to->stack, to->stack_bytes);
}
static void asan_enter(struct fiber *self)
{
	const void *bottom;
	size_t size;
	__sanitizer_finish_switch_fiber(self->shadow, &bottom, &size);
	if (!self->from->stack_bytes || !self->from->stack) {
		/* The scheduler's stack is known only now that we have left it. */
		self->from->stack = (void *)bottom;
		self->from->stack_bytes = size;
	}
	self->shadow = NULL;
}
#else
static void asan_leave(struct fiber *self, struct fiber *to, int for_good)
{
	(void)self, (void)to, (void)for_good;
}
static void asan_enter(struct fiber *self)
{
}
#endif

#define GUARD_BYTES 4096

/* Stacks that no fiber has, linked through their last bytes. To map one costs as much as a short
 * run, and a campaign opens thousands of worlds. */
static _Thread_local char *idle_stacks;

static char **next_idle(char *stack)
{
	return (char **)(stack + FIBER_STACK_BYTES - sizeof(char *));
}

int fiber_alloc(struct fiber *fiber)
{
	static_assert(FIBER_STACK_BYTES % GUARD_BYTES == 0, "whole pages");
	if (fiber->stack)
		return 0;
	if (idle_stacks) {
		fiber->stack = idle_stacks;
		idle_stacks = *next_idle(idle_stacks);
	} else {
		char *memory = mmap(NULL, FIBER_STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED)
			return -ENOMEM;
		mprotect(memory, GUARD_BYTES, PROT_NONE);
		fiber->stack = memory + GUARD_BYTES;
	}
	fiber->stack_bytes = FIBER_STACK_BYTES;
	return 0;
}

/* Frames that were abandoned leave marks of AddressSanitizer. */
static void forget_frames(const struct fiber *fiber)
{
#if TM_ASAN
	__asan_unpoison_memory_region(fiber->stack, fiber->stack_bytes);
#else
#endif
}

uintptr_t fiber_abandon(const struct fiber *fiber)
{
	forget_frames(fiber);
	return ((uintptr_t)fiber->stack + fiber->stack_bytes - 256) & ~(uintptr_t)63;
}

void fiber_free(struct fiber *fiber)
{
	if (fiber->stack) {
		forget_frames(fiber);
		*next_idle(fiber->stack) = idle_stacks;
		idle_stacks = fiber->stack;
	}
	memset(fiber, 0, sizeof(*fiber));
}

static void entry(struct transfer from)
{
	struct fiber *self = from.data;
	assert(self->from && self->main);
	assert((uintptr_t)__builtin_frame_address(0) - (uintptr_t)self->stack < self->stack_bytes);
	self->from->context = from.from;
	asan_enter(self);
	self->main(self->arg);
	abort(); /* main ends with fiber_exit */
}

void fiber_make(struct fiber *fiber, void (*main)(void *), void *arg)
{
	assert(fiber->stack && fiber->stack_bytes);
	assert(main);
	fiber->main = main;
	fiber->arg = arg;
	fiber->shadow = NULL;
	forget_frames(fiber);
	fiber->context = make_fcontext((char *)fiber->stack + fiber->stack_bytes,
				       fiber->stack_bytes, entry);
}

void fiber_switch(struct fiber *self, struct fiber *to)
{
	assert(self != to && to->context);
	to->from = self;
	asan_leave(self, to, 0);
	struct transfer back = jump_fcontext(to->context, to);
	assert(back.data == self); /* the stack that goes on is the intended one */
	self->from->context = back.from;
	asan_enter(self);
}

void fiber_exit(struct fiber *self, struct fiber *to)
{
	assert(self != to && to->context);
	assert(self->stack); /* a scheduler does not end */
	to->from = self;
	asan_leave(self, to, 1);
	jump_fcontext(to->context, to);
	abort();
}
