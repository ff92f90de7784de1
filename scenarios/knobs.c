/* SPDX-License-Identifier: BSD-3-Clause */
/* See knobs.h. */
#include "scenarios/knobs.h"
#include <assert.h>
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

int knob_set(const struct tm_store *store, struct tm_params *params, const char *name,
	     const char *value, const char **expected)
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

void knob_value(const struct tm_store *store, const struct tm_params *params, unsigned knob,
		char *buf, size_t n)
{
	const char *words = store->knobs[knob].values;
	for (unsigned i = 0; i < params->knob[knob]; i++)
		words += strcspn(words, " ") + 1;
	snprintf(buf, n, "%.*s", (int)strcspn(words, " "), words);
}

int knob_variant(const struct tm_store *store, const char *name,
		 int (*set)(void *arg, const char *name, const char *value), void *arg)
{
	const struct tm_variant *v = store->variants;
	char knobs[256], *save = NULL;
	int error = 0;
	if (!strcmp(name, "default"))
		return 0;
	while (v->name && strcmp(v->name, name))
		v++;
	if (!v->name)
		return -ENOENT;
	assert(strlen(v->knobs) < sizeof(knobs));
	strcpy(knobs, v->knobs);
	for (char *word = strtok_r(knobs, " ", &save); word && !error;
	     word = strtok_r(NULL, " ", &save)) {
		char *equals = strchr(word, '=');
		assert(equals); /* the store's own table */
		*equals = '\0';
		error = set(arg, word, equals + 1);
	}
	return error;
}
