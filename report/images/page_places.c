/* SPDX-License-Identifier: BSD-3-Clause */
/* The places in the program that a cause names, and the source around them. A recording says where
 * the files are (pm_place); of a log they are looked for under the name that it gives them. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "report/images/images_page.h"
#include "report/page/html.h"
#include "report/page/source.h"

/* --- frames --- */

/* Of the frame "put (store.c:12)": "store.c" and 12. False: it names no line. */
static bool parse_frame(const char *frame, size_t len, struct section_place *out)
{
	const char *open = memrchr(frame, '(', len), *end = frame + len - 1;
	if (!len || *end != ')' || !open)
		return false;
	const char *colon = memrchr(open, ':', (size_t)(end - open));
	if (!colon || colon == open + 1 || colon + 1 == end || end - colon > 9)
		return false;
	for (const char *c = colon + 1; c < end; c++)
		if (!isdigit((unsigned char)*c))
			return false;
	*out = (struct section_place){
		.file = open + 1, .len = (size_t)(colon - open - 1), .line = atoi(colon + 1)};
	return out->len < SOURCE_FILE;
}

static int compare(const struct section_place *a, const struct section_place *b)
{
	int files = strncmp(a->file, b->file, a->len < b->len ? a->len : b->len);
	if (!files)
		files = (a->len > b->len) - (a->len < b->len);
	if (!files && a->path && b->path)
		files = strcmp(a->path, b->path);
	return files ? files : a->line - b->line;
}

static int compare_places(const void *a, const void *b)
{
	return compare(a, b);
}

static bool read_frame(const struct section *s, const char *frame, size_t len,
		       struct section_place *out)
{
	const struct pm_log *log = s->r->log;
	if (!parse_frame(frame, len, out))
		return false;
	const struct pm_place *known = pm_log_find_place(log, frame, len);
	if (known) {
		out->path = log->source[known->path];
		out->program = log->source[known->program];
	}
	return true;
}

static const struct section_place *find_place(const struct section *s,
					      const struct section_place *place)
{
	for (unsigned i = 0; i < s->places; i++)
		if (!compare(&s->place[i], place))
			return &s->place[i];
	return NULL;
}

static void add_source(struct section *s, uint32_t source)
{
	struct section_place place;
	const char *at = s->r->log->source[source];
	for (size_t len; *at; at += len + (at[len] == ';')) {
		len = strcspn(at, ";");
		if (read_frame(s, at, len, &place) && s->places < SECTION_PLACES &&
		    !find_place(s, &place))
			s->place[s->places++] = place;
	}
}

static void add_event(struct section *s, size_t event)
{
	if (event < s->r->log->events && s->r->log->event[event].kind != PM_MARK)
		add_source(s, s->r->log->event[event].source);
}

void section_find_places(struct section *s)
{
	for (unsigned i = 0; i < s->cause->parts; i++) {
		add_event(s, s->cause->part[i].event);
		add_event(s, s->scene->fate[i].flush);
		add_event(s, s->scene->fate[i].durable);
	}
	add_event(s, s->cause->at);
	qsort(s->place, s->places, sizeof(s->place[0]), compare_places);
	for (unsigned i = 0; i < s->places; i++)
		snprintf(s->place[i].id, sizeof(s->place[i].id), "c%u-s%u", s->number, i + 1);
}

/* --- on the page --- */

static void print_part(FILE *out, const char *text, size_t len)
{
	char copy[1024];
	snprintf(copy, sizeof(copy), "%.*s", (int)len, text);
	page_escape(out, copy);
}

static void print_frame(const struct section *s, const char *frame, size_t len)
{
	struct section_place place;
	const struct section_place *found = NULL;
	if (read_frame(s, frame, len, &place))
		found = find_place(s, &place);
	if (!found) {
		print_part(s->out, frame, len);
		return;
	}
	print_part(s->out, frame, (size_t)(place.file - frame));
	fprintf(s->out, "<a href=\"#%s\">", found->id);
	print_part(s->out, place.file, len - 1 - (size_t)(place.file - frame));
	fputs("</a>)", s->out);
}

void section_print_frames(const struct section *s, uint32_t source)
{
	const char *text = s->r->log->source[source], *at = text;
	for (size_t len; *at; at += len + (at[len] == ';')) {
		len = strcspn(at, ";");
		if (!len)
			continue;
		fputs(at == text ? "" : ", of ", s->out);
		print_frame(s, at, len);
	}
}

/* After this moment a file may have changed: the recording was made before that, and so was the
 * program that it is of. */
static time_t built_at(const struct section *s, const struct section_place *place)
{
	const time_t unknown = sizeof(time_t) == sizeof(int64_t) ? INT64_MAX : INT32_MAX;
	struct stat log, program;
	time_t built = stat(s->r->name, &log) ? unknown : log.st_mtime;
	if (place->program && !stat(place->program, &program) && program.st_mtime < built)
		built = program.st_mtime;
	return built;
}

static bool same_file(const struct section_place *a, const struct section_place *b)
{
	return a->len == b->len && !strncmp(a->file, b->file, a->len) &&
	       (!a->path || !b->path || !strcmp(a->path, b->path));
}

int section_print_sources(const struct section *s)
{
	struct source_place *at = calloc(SECTION_PLACES, sizeof(*at));
	if (!at)
		return -ENOMEM;
	if (s->places)
		fputs("<h3>The source</h3>\n", s->out);
	for (unsigned i = 0, n; i < s->places; i += n) {
		const struct section_place *first = &s->place[i];
		for (n = 0; i + n < s->places && same_file(first, &first[n]); n++) {
			at[n] = (struct source_place){.line = first[n].line};
			snprintf(at[n].file, sizeof(at[n].file), "%.*s", (int)first->len,
				 first->file);
			snprintf(at[n].id, sizeof(at[n].id), "%s", first[n].id);
		}
		/* A log names files as the debugger found them. */
		source_print(s->out, at, n, first->path ? first->path : at->file,
			     built_at(s, first));
	}
	free(at);
	return 0;
}
