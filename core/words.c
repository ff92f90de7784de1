/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of words separated by single spaces. */
#include "core/words.h"
#include <stdio.h>
#include <string.h>

const char *words_nth(const char *words, unsigned n, size_t *len)
{
	while (n--) {
		words = strchr(words, ' ');
		if (!words)
			return NULL;
		words++;
	}
	*len = strcspn(words, " ");
	return *len ? words : NULL;
}

int words_copy(const char *words, unsigned n, char *buf, size_t size)
{
	size_t len;
	const char *word = words_nth(words, n, &len);

	if (!word)
		return -1;
	snprintf(buf, size, "%.*s", (int)len, word);
	return 0;
}

unsigned words_count(const char *words)
{
	unsigned n = 0;
	size_t len;

	while (words_nth(words, n, &len))
		n++;
	return n;
}

int words_find(const char *words, const char *word)
{
	size_t len;
	const char *nth;

	for (unsigned n = 0; (nth = words_nth(words, n, &len)) != NULL; n++)
		if (strlen(word) == len && !memcmp(word, nth, len))
			return (int)n;
	return -1;
}
