/* SPDX-License-Identifier: BSD-3-Clause */
/* See conclusion.h. */
#include "report/conclusion.h"
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include "report/output.h"
#include "report/terminal.h"

static void add(struct conclusion *c, const char *fmt, va_list ap)
{
	size_t len = strlen(c->text);
	vsnprintf(c->text + len, sizeof(c->text) - len, fmt, ap);
}

void conclude(struct conclusion *c, int status, const char *fmt, ...)
{
	va_list ap;
	*c = (struct conclusion){.status = status};
	va_start(ap, fmt);
	add(c, fmt, ap);
	va_end(ap);
}

void conclusion_add(struct conclusion *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	add(c, fmt, ap);
	va_end(ap);
}

void conclusion_left_off(struct conclusion *c, const char *why, const char *part)
{
	char text[CONCLUSION_TEXT];
	memcpy(text, c->text, sizeof(text));
	if (c->status == EXIT_HELD)
		conclude(c, EXIT_UNSURE, "Left off %s: %s; what was done is as expected.", why,
			 part);
	else
		conclude(c, c->status, "Left off %s: %s. %s", why, part, text);
}

/* --- where it is said --- */

void conclusion_print(const struct conclusion *c)
{
	fputs(paint(c->status == EXIT_HELD     ? GREEN
		    : c->status == EXIT_UNSURE ? YELLOW
					       : RED),
	      stdout);
	print_wrapped(0, c->text);
	fputs(paint(PLAIN), stdout);
}

void conclusion_junit(const struct conclusion *c, struct junit *j)
{
	j->verdict = strdup(c->text);
	j->no_memory |= !j->verdict;
	/* Else the other cases pass, or one of them fails. */
	if (c->status != EXIT_HELD && c->status != EXIT_BROKEN)
		junit_add(j, c->status == EXIT_UNSURE ? JUNIT_SKIPPED : JUNIT_ERROR, "tidemark",
			  "verdict", "%s", c->text);
}

json_t *json_text(const char *text)
{
	json_t *string = json_string(text);
	return string ? string : json_string("(not UTF-8)");
}

static int write_json(FILE *out, const void *all)
{
	return json_dumpf(all, out, JSON_INDENT(1)) || fputc('\n', out) == EOF ? -EIO : 0;
}

int json_save(json_t *all, const struct conclusion *c, const char *path)
{
	if (c && (json_object_set_new(all, "status", json_integer(c->status)) ||
		  json_object_set_new(all, "verdict", json_text(c->text))))
		return -ENOMEM;
	if (json_object_set_new(all, "tidemark", json_string(tidemark_version)))
		return -ENOMEM;
	return save_file(path, write_json, all);
}

/* --- without results --- */

int conclusion_save_json(const struct conclusion *c, const char *path)
{
	json_t *all = json_pack("{s:b}", "complete", 0);
	int error = all ? json_save(all, c, path) : -ENOMEM;
	json_decref(all);
	return error;
}

int conclusion_save_junit(const struct conclusion *c, const char *path)
{
	struct junit j = {0};
	conclusion_junit(c, &j);
	int error = junit_save(&j, path);
	junit_free(&j);
	return error;
}
