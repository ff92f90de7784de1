/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * <string.h> and <strings.h> for store code. (memcpy, memmove, memset and memcmp are in
 * core/pmem/hooks.c.)
 */
#include "core/libc/string.h"
#include <ctype.h>
#include <stdbool.h>
#include "core/hardware/hardware.h"
#include "core/libc/traced.h"
#include "core/rt/process/libc.h"

size_t traced_length(const char *s, size_t max, uintptr_t pc)
{
	struct reader r = {.pc = pc};
	size_t n = 0;
	while (n < max && get(&r, s + n))
		n++;
	return n;
}

size_t sim_strlen(const char *s)
{
	return traced_length(s, SIZE_MAX, PC);
}

size_t sim_strnlen(const char *s, size_t max)
{
	return traced_length(s, max, PC);
}

/* --- comparing --- */

static int compare(const char *a, const char *b, size_t max, bool any_case, uintptr_t pc)
{
	struct reader ra = {.pc = pc}, rb = {.pc = pc};
	for (; max; a++, b++, max--) {
		int first = get(&ra, a), second = get(&rb, b);
		if (any_case) {
			first = tolower(first);
			second = tolower(second);
		}
		if (first != second)
			return first - second;
		if (!first)
			return 0;
	}
	return 0;
}

int sim_strcmp(const char *a, const char *b)
{
	return compare(a, b, SIZE_MAX, false, PC);
}

int sim_strncmp(const char *a, const char *b, size_t max)
{
	return compare(a, b, max, false, PC);
}

int sim_strcasecmp(const char *a, const char *b)
{
	return compare(a, b, SIZE_MAX, true, PC);
}

int sim_strncasecmp(const char *a, const char *b, size_t max)
{
	return compare(a, b, max, true, PC);
}

int sim_bcmp(const void *a, const void *b, size_t len)
{
	access_load(a, len, PC);
	access_load(b, len, PC);
	return memcmp(a, b, len);
}

/* --- copying --- */

/* At most `max` bytes, with the NUL if it is one of them; line by line. Returns where it ended: at
 * the NUL, or after the last byte. */
static char *copy_string(char *to, const char *from, size_t max, uintptr_t pc)
{
	struct reader r = {.pc = pc};
	char piece[LINE];
	for (bool more = true; more && max;) {
		size_t part = LINE - (uintptr_t)to % LINE, n = 0;
		part = part < max ? part : max;
		do {
			piece[n] = (char)get(&r, from + n);
			more = piece[n++];
		} while (more && n < part);
		put(to, piece, n, pc);
		to += more ? n : n - 1;
		from += n;
		max -= n;
	}
	return to;
}

char *sim_strcpy(char *to, const char *from)
{
	copy_string(to, from, SIZE_MAX, PC);
	return to;
}

char *sim_stpcpy(char *to, const char *from)
{
	return copy_string(to, from, SIZE_MAX, PC);
}

static char *copy_padded(char *to, const char *from, size_t max, uintptr_t pc)
{
	char *end = copy_string(to, from, max, pc);
	access_copy(end, NULL, 0, max - (size_t)(end - to), pc);
	return end;
}

char *sim_strncpy(char *to, const char *from, size_t max)
{
	copy_padded(to, from, max, PC);
	return to;
}

char *sim_stpncpy(char *to, const char *from, size_t max)
{
	return copy_padded(to, from, max, PC);
}

char *sim_strcat(char *to, const char *from)
{
	copy_string(to + traced_length(to, SIZE_MAX, PC), from, SIZE_MAX, PC);
	return to;
}

char *sim_strncat(char *to, const char *from, size_t max)
{
	char *at = to + traced_length(to, SIZE_MAX, PC), *end = copy_string(at, from, max, PC);
	if (end == at + max)
		put(end, "", 1, PC);
	return to;
}

void *sim_mempcpy(void *to, const void *from, size_t len)
{
	return (char *)access_copy(to, from, 0, len, PC) + len;
}

void sim_bzero(void *to, size_t len)
{
	access_copy(to, NULL, 0, len, PC);
}

void sim_explicit_bzero(void *to, size_t len) __attribute__((alias("sim_bzero")));

static char *duplicate(const char *s, size_t max, uintptr_t pc)
{
	struct text t;
	text_open(&t);
	text_add_string(&t, s, max, pc);
	char *copy = sim_malloc(t.len + 1);
	if (copy)
		memcpy(copy, t.at, t.len + 1);
	text_close(&t);
	return copy;
}

char *sim_strdup(const char *s)
{
	return duplicate(s, SIZE_MAX, PC);
}

char *sim_strndup(const char *s, size_t max)
{
	return duplicate(s, max, PC);
}

/* --- searching --- */

/* Find a byte among the first `max`; with `string` the string's end ends the search, too. */
static void *find(const void *s, int byte, size_t max, bool string, uintptr_t pc)
{
	struct reader r = {.pc = pc};
	for (const unsigned char *at = s; max; at++, max--) {
		unsigned char c = get(&r, at);
		if (c == (unsigned char)byte)
			return (void *)at;
		if (string && !c)
			return NULL;
	}
	return NULL;
}

void *sim_memchr(const void *s, int byte, size_t len)
{
	return find(s, byte, len, false, PC);
}

void *sim_rawmemchr(const void *s, int byte)
{
	return find(s, byte, SIZE_MAX, false, PC);
}

char *sim_strchr(const char *s, int byte)
{
	return find(s, byte, SIZE_MAX, true, PC);
}

char *sim_index(const char *s, int byte) __attribute__((alias("sim_strchr")));

char *sim_strchrnul(const char *s, int byte)
{
	struct reader r = {.pc = PC};
	unsigned char c;
	while ((c = get(&r, s)) && c != (unsigned char)byte)
		s++;
	return (char *)s;
}

void *sim_memrchr(const void *s, int byte, size_t len)
{
	struct reader r = {.pc = PC};
	for (const unsigned char *at = (const unsigned char *)s + len; len; len--)
		if (get(&r, --at) == (unsigned char)byte)
			return (void *)at;
	return NULL;
}

char *sim_strrchr(const char *s, int byte)
{
	struct reader r = {.pc = PC};
	const char *last = NULL;
	for (unsigned char c = 1; c; s++) {
		c = get(&r, s);
		if (c == (unsigned char)byte)
			last = s;
	}
	return (char *)last;
}

char *sim_rindex(const char *s, int byte) __attribute__((alias("sim_strrchr")));

/* `len` bytes of the needle; the haystack has `room`, or ends with a NUL. */
static void *find_bytes(const char *hay, size_t room, bool string, const char *needle, size_t len,
			bool any_case, uintptr_t pc)
{
	struct reader rh = {.pc = pc}, rn = {.pc = pc};
	for (;; hay++, room--) {
		size_t n = 0;
		int c = 1;
		for (; n < len && n < room; n++) {
			int wanted = get(&rn, needle + n);
			c = get(&rh, hay + n);
			if (any_case ? tolower(c) != tolower(wanted) : c != wanted)
				break;
		}
		if (n == len)
			return (void *)hay;
		if (n == room || (string && !c))
			return NULL;
	}
}

char *sim_strstr(const char *hay, const char *needle)
{
	return find_bytes(hay, SIZE_MAX, true, needle, traced_length(needle, SIZE_MAX, PC), false,
			  PC);
}

char *sim_strcasestr(const char *hay, const char *needle)
{
	return find_bytes(hay, SIZE_MAX, true, needle, traced_length(needle, SIZE_MAX, PC), true,
			  PC);
}

void *sim_memmem(const void *hay, size_t room, const void *needle, size_t len)
{
	return find_bytes(hay, room, false, needle, len, false, PC);
}

/* Number of characters before the first one that is, or is not, in the set. */
static size_t span(const char *s, const char *set, bool in, uintptr_t pc)
{
	struct reader r = {.pc = pc};
	bool member[256] = {false};
	size_t n = 0;
	struct reader rs = {.pc = pc};
	for (unsigned char c; (c = get(&rs, set)); set++)
		member[c] = true;
	for (unsigned char c; (c = get(&r, s + n)) && member[c] == in;)
		n++;
	return n;
}

size_t sim_strspn(const char *s, const char *set)
{
	return span(s, set, true, PC);
}

size_t sim_strcspn(const char *s, const char *set)
{
	return span(s, set, false, PC);
}

char *sim_strpbrk(const char *s, const char *set)
{
	struct reader r = {.pc = PC};
	s += span(s, set, false, PC);
	return get(&r, s) ? (char *)s : NULL;
}

/* --- words of a text --- */

/* The word that begins at s: it is ended where a character of the set follows. The rest, NULL:
 * there is none. */
static char *end_word(char *s, const char *set, uintptr_t pc)
{
	struct reader r = {.pc = pc};
	char *end = s + span(s, set, false, pc);
	if (!get(&r, end))
		return NULL;
	put(end, "", 1, pc);
	return end + 1;
}

char *sim_strtok_r(char *s, const char *set, char **save)
{
	struct reader r = {.pc = PC};
	if (!s)
		take(&s, save, sizeof(s), PC);
	s += span(s, set, true, PC);
	char *word = get(&r, s) ? s : NULL, *rest = word ? end_word(s, set, PC) : s;
	if (!rest)
		rest = s + traced_length(s, SIZE_MAX, PC);
	put(save, &rest, sizeof(rest), PC);
	return word;
}

char *sim_strsep(char **rest, const char *set)
{
	char *s, *next;
	take(&s, rest, sizeof(s), PC);
	if (!s)
		return NULL;
	next = end_word(s, set, PC);
	put(rest, &next, sizeof(next), PC);
	return s;
}
