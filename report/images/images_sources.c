/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of source around the places in the program that a cause names. A recording says where
 * the files are (pm_place); of a log they are looked for under the name that it gives them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "report/images/images_shown.h"
#include "report/page/source.h"

#define PLACES 32

/* A frame of the program. */
struct frame_place {
	const char *file; /* of a frame "put (store.c:12)": "store.c" */
	size_t len;
	int line;
	const char *path, *program; /* as pm_place; NULL: not known */
};

struct frame_places {
	const struct images_report *r;
	struct frame_place place[PLACES];
	unsigned n;
};

/* --- frames --- */

/* Of the frame "put (store.c:12)": "store.c" and 12. False: it names no line. */
static bool parse_frame(const char *frame, size_t len, struct frame_place *out)
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
	*out = (struct frame_place){
		.file = open + 1, .len = (size_t)(colon - open - 1), .line = atoi(colon + 1)};
	return out->len < SOURCE_FILE;
}

static int compare(const struct frame_place *a, const struct frame_place *b)
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

static bool read_frame(const struct frame_places *s, const char *frame, size_t len,
		       struct frame_place *out)
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

static const struct frame_place *find_place(const struct frame_places *s,
					    const struct frame_place *place)
{
	for (unsigned i = 0; i < s->n; i++)
		if (!compare(&s->place[i], place))
			return &s->place[i];
	return NULL;
}

static void add_source(struct frame_places *s, uint32_t source)
{
	struct frame_place place;
	const char *at = s->r->log->source[source];
	for (size_t len; *at; at += len + (at[len] == ';')) {
		len = strcspn(at, ";");
		if (read_frame(s, at, len, &place) && s->n < PLACES && !find_place(s, &place))
			s->place[s->n++] = place;
	}
}

static void add_event(struct frame_places *s, size_t event)
{
	if (event < s->r->log->events && s->r->log->event[event].kind != PM_MARK)
		add_source(s, s->r->log->event[event].source);
}

static void find_places(struct frame_places *s, const struct image_cause *cause,
			const struct image_scene *scene)
{
	for (unsigned i = 0; i < cause->parts; i++) {
		add_event(s, cause->part[i].event);
		add_event(s, scene->fate[i].flush);
		add_event(s, scene->fate[i].durable);
	}
	add_event(s, cause->at);
	qsort(s->place, s->n, sizeof(s->place[0]), compare_places);
}

/* After this moment a file may have changed: the recording was made before that, and so was the
 * program that it is of. */
static time_t built_at(const struct frame_places *s, const struct frame_place *place)
{
	const time_t unknown = sizeof(time_t) == sizeof(int64_t) ? INT64_MAX : INT32_MAX;
	struct stat log, program;
	time_t built = stat(s->r->name, &log) ? unknown : log.st_mtime;
	if (place->program && !stat(place->program, &program) && program.st_mtime < built)
		built = program.st_mtime;
	return built;
}

static bool same_file(const struct frame_place *a, const struct frame_place *b)
{
	return a->len == b->len && !strncmp(a->file, b->file, a->len) &&
	       (!a->path || !b->path || !strcmp(a->path, b->path));
}

json_t *images_sources(const struct images_report *r, const struct image_cause *cause,
		       const struct image_scene *scene)
{
	struct frame_places *s = calloc(1, sizeof(*s));
	struct source_place *at = calloc(PLACES, sizeof(*at));
	json_t *all = json_array();
	if (s && at) {
		s->r = r;
		find_places(s, cause, scene);
	}
	for (unsigned i = 0, n; s && at && i < s->n; i += n) {
		const struct frame_place *first = &s->place[i];
		for (n = 0; i + n < s->n && same_file(first, &first[n]); n++) {
			at[n] = (struct source_place){.line = first[n].line};
			snprintf(at[n].file, sizeof(at[n].file), "%.*s", (int)first->len,
				 first->file);
		}
		/* A log names files as the debugger found them. */
		json_array_append_new(all, source_json(at, n, first->path ? first->path : at->file,
						       built_at(s, first)));
	}
	free(at);
	free(s);
	return all;
}
