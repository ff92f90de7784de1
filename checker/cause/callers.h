/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAUSE_CALLERS_H
#define TM_CHECKER_CAUSE_CALLERS_H
/*
 * Where a task is: which function of the store does something, and which ones have called it. A
 * store writes, flushes and compares by small functions of its own; who calls them says more.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "checker/world/where.h"

#define CALLERS_DEEP 24 /* addresses that are kept, the innermost */

struct callers {
	uintptr_t (*stack)[CALLERS_DEEP]; /* each that has been met; 0: no more. [0] is empty */
	uint32_t *slot;			  /* by hash: its place above, 0: none */
	uint32_t n, room;
};

/* The stack of the running task, as a number that is the same for the same one; 0: not known. */
uint32_t callers_note(struct callers *c);
void callers_free(struct callers *c);

/* The addresses in the store's own code, from the innermost; `pc`: where it is known to begin, or
 * 0. Returns how many, at most n. */
unsigned callers_in_store(const struct callers *c, uint32_t stack, uintptr_t pc,
			  struct where *where, uintptr_t *out, unsigned n);
/* Is the function around this address called from several places, so that those say more? */
bool callers_are_many(const struct callers *c, struct where *where, uintptr_t pc);
/* Is this address in the store's own code, and not in what stores share? 0: it is not. */
bool callers_of_store(struct where *where, uintptr_t pc);
/* Or in that? */
bool callers_of_stores(struct where *where, uintptr_t pc);

#endif
