/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_ARRAY_H
#define TM_ARRAY_H
/* Arrays of malloc()'s that grow where memory may be out; array_grow() (core/rt/arena.h) ends the
 * process then. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Room for `more` elements after the first n. `*array` NULL, `*room` 0: there are none yet. False:
 * memory is out, and all is as it was. */
static inline bool array_reserve(void **array, size_t n, size_t more, size_t *room, size_t each)
{
	size_t want = *room ? *room : 64;

	if (n + more <= *room)
		return true;
	while (want < n + more)
		want *= 2;
	void *grown = realloc(*array, want * each);
	if (!grown)
		return false;
	*array = grown;
	*room = want;
	return true;
}

/* The same of an array by its name. */
#define ARRAY_RESERVE(array, n, more, room) \
	array_reserve((void **)&(array), n, more, &(room), sizeof(*(array)))

#endif
