/* SPDX-License-Identifier: BSD-3-Clause */
/* See diff.h. */
#include "report/diff.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/tree.h"

#define NAME_MAX_BYTES	1000
#define FIELD_MAX_BYTES 200

/* What an entry is about, in the order in which its name has them. */
static const char *const names[] = {
	"id",	     "kind",  "part",  "name",	    "store", "variant", "config",    "contract",
	"primitive", "place", "where", "operation", "key",   "value",	"condition", "file"};
/* How long it took, where it was written, and by whom; and what is said of the cells, too. */
static const char *const never[] = {"seconds", "jobs",	    "trace",	"version",
				    "file",    "contracts", "findings", "test_cases",
				    "configs", "bounds",    "shown"};
/* How much was tried. */
static const char *const figures[] = {"states", "runs", "broken_states", "blocked", "times", "of"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool is_one_of(const char *key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(key, list[i]))
			return true;
	return false;
}

/* "yes", "12", "text"; of what is neither, its JSON. To be freed; NULL without memory. */
static char *text_of(const json_t *value)
{
	return json_is_string(value)
		       ? strdup(json_string_value(value))
		       : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS |
						   JSON_REAL_PRECISION(6));
}

/* The entry's words after those of the one that it is in. False: it has none of its own. */
static bool add_name(char *name, const json_t *object)
{
	bool any = false;
	for (size_t i = 0; i < COUNT(names); i++) {
		const json_t *value = json_object_get(object, names[i]);
		size_t len = strlen(name);
		if (json_is_string(value) && *json_string_value(value))
			snprintf(name + len, NAME_MAX_BYTES - len, "%s%s", len ? " " : "",
				 json_string_value(value));
		else if (json_is_integer(value))
			snprintf(name + len, NAME_MAX_BYTES - len, "%s%s=%" JSON_INTEGER_FORMAT,
				 len ? " " : "", names[i], json_integer_value(value));
		any |= value != NULL;
	}
	return any;
}

struct walk {
	const struct diff *d;
	json_t *entries;
	bool no_memory;
};

static bool is_entries(const json_t *value)
{
	return json_is_array(value) && json_is_object(json_array_get(value, 0));
}

static void take_entries(struct walk *w, const char *within, const json_t *list);

static void take_fields(struct walk *w, const char *name, json_t *entry, const char *prefix,
			const json_t *object)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)object, key, value)
	{
		char field[FIELD_MAX_BYTES];
		if (is_one_of(key, never, COUNT(never)) ||
		    (!*prefix && is_one_of(key, names, COUNT(names))) ||
		    (!w->d->figures && is_one_of(key, figures, COUNT(figures))))
			continue;
		snprintf(field, sizeof(field), "%s%s%s", prefix, *prefix ? "." : "", key);
		if (is_entries(value)) {
			take_entries(w, name, value);
		} else if (json_is_object(value)) {
			take_fields(w, name, entry, field, value);
		} else {
			char *text = text_of(value);
			w->no_memory |= !text ||
					json_object_set_new(entry, field, json_string(text));
			free(text);
		}
	}
}

static void take_entry(struct walk *w, const char *within, const json_t *object)
{
	char name[NAME_MAX_BYTES];
	unsigned again = 1;
	snprintf(name, sizeof(name), "%s", within);
	add_name(name, object);
	/* What has no name of its own is known by its place among such. */
	size_t len = strlen(name);
	while (json_object_get(w->entries, name))
		snprintf(name + len, sizeof(name) - len, "%s#%u", len ? " " : "", ++again);
	json_t *entry = json_object();
	w->no_memory |= json_object_set_new(w->entries, name, entry) != 0;
	if (!w->no_memory)
		take_fields(w, name, entry, "", object);
}

static void take_entries(struct walk *w, const char *within, const json_t *list)
{
	size_t i;
	const json_t *object;
	json_array_foreach(list, i, object)
	{
		if (json_is_object(object) && !w->no_memory)
			take_entry(w, within, object);
	}
}

int diff_open(struct diff *d, const json_t *before, const json_t *after, bool with_figures)
{
	const json_t *document[2] = {before, after};
	*d = (struct diff){.figures = with_figures};
	for (unsigned i = 0; i < 2; i++) {
		struct walk w = {.d = d, .entries = json_object()};
		d->entries[i] = w.entries;
		if (!w.entries)
			return -ENOMEM;
		if (json_is_array(document[i]))
			take_entries(&w, "", document[i]);
		else
			take_entry(&w, "", document[i]);
		if (w.no_memory)
			return -ENOMEM;
	}
	return 0;
}

void diff_free(struct diff *d)
{
	json_decref(d->entries[0]);
	json_decref(d->entries[1]);
}

bool diff_comparable(const struct diff *d)
{
	const char *key;
	json_t *entry;
	json_object_foreach(d->entries[0], key, entry)
	{
		if (*key && json_object_get(d->entries[1], key))
			return true;
	}
	return false;
}

/* --- what is told of them --- */

static json_t *told(const char *name, const char *in, json_t *fields)
{
	return json_pack("{s:s, s:o, s:o}", "title", *name ? name : "the campaign", "in",
			 json_text(in), "fields", fields);
}

/* A field whose text has changed, or that one of the two lacks. */
static void add_field(json_t *fields, const char *field, json_t *before, json_t *after)
{
	if (!before || !after || !json_equal(before, after))
		json_array_append_new(fields,
				      json_pack("{s:s, s:o*, s:o*}", "field", field, "before",
						before ? json_pack("{s:O}", "text", before) : NULL,
						"after",
						after ? json_pack("{s:O}", "text", after) : NULL));
}

static json_t *fields_json(json_t *before, json_t *after)
{
	json_t *fields = json_array(), *value;
	const char *field;
	json_object_foreach(before, field, value)
		add_field(fields, field, value, json_object_get(after, field));
	json_object_foreach(after, field, value)
	{
		if (!json_object_get(before, field))
			add_field(fields, field, NULL, value);
	}
	return fields;
}

json_t *diff_tree(struct diff *d, const char *const name[2])
{
	json_t *entries = json_array(), *only = json_array(), *entry;
	const char *key;
	json_object_foreach(d->entries[0], key, entry)
	{
		json_t *after = json_object_get(d->entries[1], key);
		const bool same = after && json_equal(entry, after);
		d->only[0] += !after;
		d->changed += after && !same;
		d->same += same;
		if (!same)
			json_array_append_new(
				entries, told(key, after ? NULL : name[0],
					      after ? fields_json(entry, after) : json_array()));
	}
	json_object_foreach(d->entries[1], key, entry)
	{
		if (json_object_get(d->entries[0], key))
			continue;
		json_array_append_new(entries, told(key, name[1], json_array()));
		d->only[1]++;
	}
	for (unsigned i = 0; i < 2; i++)
		if (d->only[i])
			json_array_append_new(only, json_pack("{s:i, s:o}", "n", (int)d->only[i],
							      "name", json_text(name[i])));
	return json_pack("{s:o, s:i, s:i, s:o}", "entries", entries, "both",
			 (int)(d->same + d->changed), "changed", (int)d->changed, "only", only);
}
