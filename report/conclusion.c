/* SPDX-License-Identifier: BSD-3-Clause */
/* See conclusion.h. */
#include "report/conclusion.h"
#include <stdarg.h>
#include <string.h>
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
