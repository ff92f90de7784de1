/* SPDX-License-Identifier: BSD-3-Clause */
/* See tree.h. */
#include "report/tree.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "report/output.h"

static const char *const results[CASE_RESULTS] = {"passed", "failed", "skipped", "error"};

json_t *json_text(const char *text)
{
	json_t *string = json_string(text);
	char *copy = string ? NULL : strdup(text);
	for (char *p = copy; p && *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	string = copy ? json_string(copy) : string;
	free(copy);
	return string;
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
	return json_dumpf(tree, out, JSON_INDENT(1)) || fputc('\n', out) == EOF ? -EIO : 0;
}
