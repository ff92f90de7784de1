/* SPDX-License-Identifier: BSD-3-Clause */
/* See source.h. */
#include "report/page/source.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/text/regular.h"
#include "report/page/html.h"

#define AROUND	   3   /* lines before and after */
#define LINE_BYTES 400 /* the rest of a longer line is cut off */

/* --- places in texts --- */

static bool is_of_name(unsigned char c)
{
	return isalnum(c) || strchr("_./+-=", c);
}

static bool ends_in_source(const char *name, size_t len)
{
	static const char *const tails[] = {".c", ".h", ".cc", ".hh", ".cpp", ".hpp", ".cxx"};
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		size_t tail = strlen(tails[i]);
		if (len > tail && !strncmp(name + len - tail, tails[i], tail))
			return true;
	}
	return false;
}

const char *source_next_place(const char *text, size_t *len)
{
	for (const char *colon = text; (colon = strchr(colon, ':')); colon++) {
		const char *from = colon, *to = colon + 1;
		while (from > text && is_of_name((unsigned char)from[-1]))
			from--;
		while (isdigit((unsigned char)*to))
			to++;
		if (to == colon + 1 || !ends_in_source(from, (size_t)(colon - from)))
			continue;
		*len = (size_t)(to - from);
		return from;
	}
	return NULL;
}

/* --- lines --- */

static void print_line(FILE *out, const struct source_place *at, unsigned n, int number,
		       const char *text)
{
	const struct source_place *named = NULL;
	for (unsigned i = 0; i < n && !named; i++)
		named = at[i].line == number ? &at[i] : NULL;
	if (named)
		fprintf(out, "<span class=named id=\"%s\">", named->id);
	fprintf(out, "<i>%5d</i>  ", number);
	for (unsigned column = 0; *text && *text != '\n' && *text != '\r'; text++) {
		char one[2] = {*text, '\0'};
		unsigned width = *text == '\t' ? 8 - column % 8 : 1;
		column += width;
		if (*text == '\t')
			fprintf(out, "%*s", (int)width, "");
		else
			page_escape(out, one);
	}
	fputs(named ? "</span>\n" : "\n", out);
}

/* The rest of a line that was too long. */
static void skip_rest(FILE *in, const char *text)
{
	int c = 0;
	while (!strchr(text, '\n') && c != '\n' && c != EOF)
		c = getc(in);
}

/* They are named all the same, for the links that lead here. */
static void print_names(FILE *out, const struct source_place *at, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "<span id=\"%s\"></span>", at[i].id);
}

static void print_lines(FILE *out, const struct source_place *at, unsigned n, FILE *in)
{
	char text[LINE_BYTES];
	unsigned next = 0;
	int number = 1, last = 0;
	for (; next < n && fgets(text, sizeof(text), in); number++) {
		skip_rest(in, text);
		if (number < at[next].line - AROUND)
			continue;
		if (last && last + 1 < number)
			fputs("<i>    &#8943;</i>\n", out);
		last = number;
		print_line(out, at, n, number, text);
		while (next < n && number >= at[next].line + AROUND)
			next++;
	}
	/* The file may be shorter than it should be. */
	while (next < n && at[next].line < number)
		next++;
	print_names(out, at + next, n - next);
}

/* Why a file is not shown; NULL: it is, in *in. */
static const char *open_source(const char *path, time_t built, FILE **in)
{
	struct stat source;
	if (!path || stat(path, &source))
		return "this file is not on this machine";
	if (source.st_mtime > built)
		return "this file is newer than the program: its lines may be others by now";
	int fd = regular_open(path);
	*in = fd < 0 ? NULL : fdopen(fd, "r");
	return *in ? NULL : "this file cannot be read";
}

void source_print(FILE *out, const struct source_place *at, unsigned n, const char *path,
		  time_t built)
{
	FILE *in = NULL;
	const char *why = open_source(path, built, &in);
	page_element(out, "<h3>", at->file, "</h3>\n");
	if (why) {
		print_names(out, at, n);
		fprintf(out, "<p class=dim>%s</p>\n", why);
		return;
	}
	fputs("<pre class=source>", out);
	print_lines(out, at, n, in);
	fputs("</pre>\n", out);
	fclose(in);
}
