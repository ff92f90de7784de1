/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_WORDS_H
#define TM_SCENARIOS_WORDS_H
/* For readers of the project's line-by-line files. */
#include <stdlib.h>
#include <string.h>

/* The next word, cut off at blanks; "" at the end. */
static inline char *next_word(char **rest)
{
	char *start = *rest + strspn(*rest, " \t");
	char *end = start + strcspn(start, " \t");
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return start;
}

/* Room for one more element behind `n` of them; NULL: no memory. */
static inline void *room_for_one(void *array, unsigned n, size_t size)
{
	if (n & (n - 1)) /* there is room up to the next power of two */
		return array;
	return realloc(array, (n ? 2 * (size_t)n : 1) * size);
}

#endif
