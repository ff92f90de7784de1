/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_WORKLOAD_WORDS_H
#define TM_SCENARIOS_WORKLOAD_WORDS_H
/* Arrays that readers of the project's tables make longer. */
#include <stdlib.h>

/* Room for one more element after `n` of them; NULL: no memory. */
static inline void *room_for_one(void *array, unsigned n, size_t size)
{
	if (n & (n - 1)) /* there is room up to the next power of two */
		return array;
	return realloc(array, (n ? 2 * (size_t)n : 1) * size);
}

#endif
