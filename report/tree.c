/* SPDX-License-Identifier: BSD-3-Clause */
/* See tree.h. */
#include "report/tree.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/output.h"

static const char *const results[CASE_RESULTS] = {"passed", "failed", "skipped", "error"};

json_t *json_text(const char *text)
{
	return json_string_nocheck(text ? text : "");
}

json_t *json_of(char *text)
{
	json_t *json = json_text(text);
	free(text);
	return json;
}

json_t *json_lines(char *text)
{
	json_t *all = json_array();
	for (char *at = text, *line; (line = strsep(&at, "\n"));)
		if (*line)
			json_array_append_new(all, json_text(line));
	free(text);
	return all;
}

json_t *tree_contracts(unsigned contracts)
{
	json_t *all = json_array();
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (contracts & TM_BIT(k))
			json_array_append_new(all, json_pack("{s:s, s:s}", "name", contract_name(k),
							     "what", contract_what(k)));
	return all;
}

/* What is no UTF-8, which files cannot say, becomes question marks. */
static void make_utf8(json_t *value)
{
	const char *key;
	json_t *one;
	size_t i;
	if (json_is_object(value)) {
		json_object_foreach(value, key, one) make_utf8(one);
	} else if (json_is_array(value)) {
		json_array_foreach(value, i, one) make_utf8(one);
	} else if (json_is_string(value) && json_string_set(value, json_string_value(value))) {
		char *copy = strdup(json_string_value(value));
		for (char *p = copy; p && *p; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
		json_string_set(value, copy);
		free(copy);
	}
}

json_t *tree_for_file(const json_t *tree)
{
	json_t *copy = json_deep_copy(tree);
	make_utf8(copy);
	return copy;
}

const char *tree_text(const json_t *object, const char *field)
{
	const char *text = json_string_value(json_object_get(object, field));
	return text ? text : "";
}

void tree_case(json_t *all, enum case_result result, const char *suite, const char *name,
	       const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (fmt && vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!json_object_get(all, "test_cases"))
		json_object_set_new(all, "test_cases", json_array());
	json_array_append_new(json_object_get(all, "test_cases"),
			      json_pack("{s:o, s:o, s:s, s:o*}", "suite", json_text(suite), "name",
					json_text(name), "result", results[result], "text",
					text ? json_text(text) : NULL));
	free(text);
}

int tree_end(json_t *all, const struct conclusion *c)
{
	return (c && (json_object_set_new(all, "status", json_integer(c->status)) ||
		      json_object_set_new(all, "verdict", json_text(c->text)))) ||
			       json_object_set_new(all, "tidemark", json_string(tidemark_version))
		       ? -ENOMEM
		       : 0;
}

int tree_write_json(FILE *out, const void *tree)
{
	json_t *all = tree_for_file(tree);
	int error = json_dumpf(all, out, JSON_INDENT(1)) || fputc('\n', out) == EOF ? -EIO : 0;
	json_decref(all);
	return error;
}
