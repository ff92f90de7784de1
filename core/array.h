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

/* The same of an array by its name; `room` is a variable of any whole type. */
#define ARRAY_RESERVE(array, n, more, room)                                              \
	({                                                                               \
		void *array_ = (array);                                                  \
		size_t room_ = (room);                                                   \
		bool there_ = array_reserve(&array_, n, more, &room_, sizeof(*(array))); \
		(array) = array_;                                                        \
		(room) = (__typeof__(room))room_;                                        \
		there_;                                                                  \
	})

/* Room for one more after the n elements of an array whose room is kept nowhere: it is the next
 * power of two. False: memory is out, and all is as it was. */
#define ARRAY_ROOM_FOR_ONE(array, n)                                                    \
	({                                                                              \
		const size_t n_ = (n);                                                  \
		void *array_ = (array);                                                 \
		if (!(n_ & (n_ - 1)))                                                   \
			array_ = realloc(array_, (n_ ? 2 * n_ : 1) * sizeof(*(array))); \
		if (array_)                                                             \
			(array) = array_;                                               \
		array_ != NULL;                                                         \
	})

#endif
