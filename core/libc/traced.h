/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIBC_TRACED_H
#define TM_LIBC_TRACED_H
/*
 * The functions of core/libc read and write a store's memory by these: the persistence model sees
 * each access, at the place in the store where the function was called.
 */
#include <stdint.h>
#include <string.h>
#include "core/pmem/access.h"
#include "core/rt/places.h"

/* Reads bytes one after the other. PM is loaded by aligned words, each once for as long as it is
 * the last one: what others change meanwhile is not seen, as with any load. */
struct reader {
	uintptr_t pc, word; /* word: address of the last one; 0: none */
	unsigned char bytes[8];
};

static inline unsigned char get(struct reader *r, const void *at)
{
	uintptr_t word = (uintptr_t)at & ~(uintptr_t)7;
	if (!access_is_pm(at)) {
		access_load(at, 1, r->pc);
		return *(const unsigned char *)at;
	}
	if (r->word != word) {
		access_load((const void *)word, 8, r->pc);
		memcpy(r->bytes, (const void *)word, 8);
		r->word = word;
	}
	return r->bytes[(uintptr_t)at - word];
}

/* A copy of what a pointer points to, and back. */
static inline void take(void *own, const void *from, size_t len, uintptr_t pc)
{
	access_copy(own, from, 0, len, pc);
}

static inline void put(void *to, const void *own, size_t len, uintptr_t pc)
{
	access_copy(to, own, 0, len, pc);
}

/* Length of a string, at most `max`. */
size_t traced_length(const char *s, size_t max, uintptr_t pc);

/* A growing text in memory of the simulation: a task may be gone from any access on, without
 * having freed it. Always ends with a NUL. */
struct text {
	char *at;
	size_t len, room;
};
void text_open(struct text *t);
void text_close(struct text *t);
void text_room(struct text *t, size_t more); /* for so many characters and the NUL */
void text_add(struct text *t, char c);
/* A string of the store's, at most `max` characters. */
void text_add_string(struct text *t, const char *s, size_t max, uintptr_t pc);

#endif
