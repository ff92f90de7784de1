/* SPDX-License-Identifier: BSD-3-Clause */
/* See knobs.h. */
#include "scenarios/knobs.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int word_index(const char *words, const char *word)
{
	size_t len = strlen(word);
	for (int i = 0;; i++) {
		size_t n = strcspn(words, " ");
		if (n == len && !strncmp(words, word, n))
			return i;
		if (!words[n])
			return -1;
		words += n + 1;
	}
}

int knob_set(const struct tm_store *store, struct tm_params *params, const char *name, const char *value,
	     const char **expected)
{
	for (unsigned k = 0; store->knobs[k].name; k++) {
		if (strcmp(store->knobs[k].name, name))
			continue;
		int i = word_index(store->knobs[k].values, value);
		if (i < 0) {
			*expected = store->knobs[k].values;
			return -EINVAL;
		}
		params->knob[k] = (uint8_t)i;
		return 0;
	}
	return -ENOENT;
}

void knob_value(const struct tm_store *store, const struct tm_params *params, unsigned knob, char *buf,
		size_t n)
{
	const char *words = store->knobs[knob].values;
	for (unsigned i = 0; i < params->knob[knob]; i++)
		words += strcspn(words, " ") + 1;
	snprintf(buf, n, "%.*s", (int)strcspn(words, " "), words);
}
