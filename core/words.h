/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_WORDS_H
#define TM_WORDS_H
/* Lists of words separated by single spaces: the values of a knob ("dmp mhp wsp"). */
#include <stddef.h>

/* The nth word, which is not terminated, and its length. NULL: the list has fewer. */
const char *words_nth(const char *words, unsigned n, size_t *len);
/* The same as a string. -1: the list has fewer. */
int words_copy(const char *words, unsigned n, char *buf, size_t size);
unsigned words_count(const char *words);
/* The number of the word; -1: it is not in the list. */
int words_find(const char *words, const char *word);

#endif
