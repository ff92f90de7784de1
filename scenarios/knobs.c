/* SPDX-License-Identifier: BSD-3-Clause */
/* See knobs.h. */
#include "scenarios/knobs.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/text/text.h"

int knob_set(const struct tm_store *store, struct tm_params *params, const char *name,
	     const char *value, const char **expected)
{
	for (unsigned k = 0; store->knobs[k].name; k++) {
		if (strcmp(store->knobs[k].name, name))
			continue;
		int i = word_list_find(store->knobs[k].values, value);
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
	size_t len;
	const char *word = word_list_at(store->knobs[knob].values, params->knob[knob], &len);
	assert(word);
	snprintf(buf, n, "%.*s", (int)len, word);
}

int knob_variant(const struct tm_store *store, const char *name,
		 int (*set)(void *arg, const char *name, const char *value), void *arg)
{
	const struct tm_variant *v = store->variants;
	char knobs[256], *rest = knobs, *knob;
	int error = 0;
	if (!strcmp(name, "default"))
		return 0;
	while (v->name && strcmp(v->name, name))
		v++;
	if (!v->name)
		return -ENOENT;
	assert(strlen(v->knobs) < sizeof(knobs));
	strcpy(knobs, v->knobs);
	while (!error && *(knob = text_word(&rest))) {
		const char *value = text_value(knob);
		assert(value); /* the store's own table */
		error = set(arg, knob, value);
	}
	return error;
}
