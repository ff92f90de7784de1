/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_FIBER_H
#define TM_RT_FIBER_H
/*
 * Context switch between a scheduler and its tasks, on Boost.Context's C entry
 * points. AddressSanitizer hears of each switch.
 */
#include <stddef.h>
#include <stdint.h>

struct fiber {
	void *context; /* where it left off */
	void *stack;   /* NULL: the stack that was there before (a scheduler) */
	size_t stack_bytes;
	void *shadow; /* AddressSanitizer's fake stack while it is switched out */
	void (*main)(void *);
	void *arg;
	struct fiber *from; /* the one that switched to it last */
};

#define FIBER_STACK_BYTES (256 * 1024) /* committed page by page as used */

/* Give the fiber a stack with a guard page, once; kept until fiber_free(). What it holds is not
 * specified. 0 or -ENOMEM. */
int fiber_alloc(struct fiber *fiber);
/* Its stack is kept for the next fiber of this thread. */
void fiber_free(struct fiber *fiber);
/* No frame on its stack goes on. Where another one may begin: near the stack's top, 64-byte
 * aligned. A signal's handler may do this. */
uintptr_t fiber_abandon(const struct fiber *fiber);
/* Make it start at main(arg) when it is switched to next. */
void fiber_make(struct fiber *fiber, void (*main)(void *), void *arg);
/* Leave `self`, go on in `to`; returns when another fiber switches back to `self`. */
void fiber_switch(struct fiber *self, struct fiber *to);
/* The same, for good. */
_Noreturn void fiber_exit(struct fiber *self, struct fiber *to);

#endif
