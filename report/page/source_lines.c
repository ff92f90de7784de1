/* SPDX-License-Identifier: BSD-3-Clause */
/* See source.h. */
#include "report/page/source.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/text/regular.h"
#include "report/tree.h"

#define AROUND	   3   /* lines before and after */
#define LINE_BYTES 400 /* the rest of a longer line is cut off */

/* --- lines --- */

/* The rest of a line that was too long. */
static void skip_rest(FILE *in, const char *text)
{
	int c = 0;
	while (!strchr(text, '\n') && c != '\n' && c != EOF)
		c = getc(in);
}

static json_t *lines_json(const struct source_place *at, unsigned n, FILE *in)
{
	char text[LINE_BYTES];
	unsigned next = 0;
	json_t *lines = json_array();
	for (int number = 1; next < n && fgets(text, sizeof(text), in); number++) {
		skip_rest(in, text);
		if (number < at[next].line - AROUND)
			continue;
		text[strcspn(text, "\r\n")] = '\0';
		json_array_append_new(lines, json_pack("[i, o]", number, json_text(text)));
		while (next < n && number >= at[next].line + AROUND)
			next++;
	}
	return lines;
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

json_t *source_json(const struct source_place *at, unsigned n, const char *path, time_t built)
{
	FILE *in = NULL;
	const char *why = open_source(path, built, &in);
	json_t *places = json_array();
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(places, json_integer(at[i].line));
	json_t *all = json_pack("{s:o, s:o, s:s*, s:o*}", "file", json_text(at->file), "places",
				places, "why", why, "lines", why ? NULL : lines_json(at, n, in));
	if (in)
		fclose(in);
	return all;
}
