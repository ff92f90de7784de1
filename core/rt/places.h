/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_PLACES_H
#define TM_RT_PLACES_H
/*
 * Places in a store's code that a run can do without: calls that flush, fence, wait, compare.
 * `tidemark ablate` takes them away, one at a time.
 *
 * A place is the call's address. The functions that such calls end in (core/pmem/hooks.c, and
 * rt_check() and rt_waits() of rt.h) ask sim_does(), which also notes that the place was reached.
 * checker/world/places.h knows which places there are, and their names.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In a function that store code calls: where the call is. */
#define PC ((uintptr_t)__builtin_return_address(0) - 1)

#define PLACES_MAX     1024
#define PLACES_WITHOUT 8

/* What a run does without. A key is a call's return address less 1, or less 2: see below. */
struct places_without {
	unsigned n;
	uintptr_t key[PLACES_WITHOUT];
};

/* Which of the keys that are known were reached. */
struct places_reached {
	unsigned n;
	const uintptr_t *key; /* ascending */
	uint8_t *bit;	      /* of each: was it reached? */
};

/*
 * A call can be a place twice, as a whole and with a part of what it does. Both keys are addresses
 * within the call's instruction: `pc`, which is the return address less 1, and this one.
 */
#define PLACE_PART(pc) ((pc)-1)

#endif
