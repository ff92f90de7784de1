/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FAULTINJECT_WORDS_H
#define TM_FAULTINJECT_WORDS_H
/*
 * The words of each kind of choice: its points, its answers, and what they bring about. One row
 * a kind (words.c); deviation.c makes whole lines of them.
 */
#include "faultinject/deviation.h"

/* "before store 3" */
void words_print_point(const struct deviation *d, char *buf, size_t n);
/* Fills kind, a, b and c. 0 or -EINVAL. */
int words_parse_point(struct deviation *d, const char *text);
/* "delay 500ns" */
void words_print_answer(const struct deviation *d, char *buf, size_t n);
/* The answer, or -1 with *expected. */
int words_parse_answer(const struct deviation *d, const char *text, const char **expected);

/*
 * Where `text` matches the pattern: what comes after it, or NULL. Each "%u" of the pattern is a
 * number as printf writes it, without signs and leading zeros, and goes to the next of `out`.
 */
const char *words_match(const char *text, const char *pattern, uint32_t *out);
/* The same, and nothing comes after it. */
bool words_are(const char *text, const char *pattern, uint32_t *out);

#endif
