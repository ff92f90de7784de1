/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lines of source around the places that matter: those that the cause's sentence and facts
 * name, and those of its events. The files are looked for where the compiler found them, and in the
 * same tree as a file that was found so. One that is not there, or has been changed since the
 * program was built, is left out with a word.
 */
#include "report/page/source.h"
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "report/trace/event_fold.h"

#define PLACES 64

static const char tree[] = "core/stores/"; /* how a place in Tidemark's own stores begins */

struct spots {
	struct source_place place[PLACES];
	unsigned n;
};

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

/* The first "core/stores/erda/server.c:29" in a text, and its length. NULL: there is none. */
static const char *next_place(const char *text, size_t *len)
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

/* --- places --- */

static void add_place(struct spots *all, const char *place, size_t len, const char *path)
{
	struct source_place p = {.path = path};
	const char *colon = memrchr(place, ':', len);
	snprintf(p.file, sizeof(p.file), "%.*s", (int)(colon - place), place);
	p.line = atoi(colon + 1);
	for (unsigned i = 0; i < all->n; i++) {
		struct source_place *other = &all->place[i];
		if (strcmp(other->file, p.file) != 0)
			continue;
		if (!other->path)
			other->path = path;
		if (other->line == p.line)
			return;
	}
	if (all->n < PLACES)
		all->place[all->n++] = p;
}

static void add_places_of(struct spots *all, const char *text)
{
	size_t len;
	for (const char *at = text; (at = next_place(at, &len)); at += len)
		add_place(all, at, len, NULL);
}

static int compare_places(const void *a, const void *b)
{
	const struct source_place *x = a, *y = b;
	int files = strcmp(x->file, y->file);
	return files ? files : x->line - y->line;
}

/* What debug information says of the files: any event of theirs will do. */
static void find_paths(const struct event_trace *st, struct spots *all)
{
	char name[SOURCE_FILE];
	for (size_t i = 0; i < st->record.events; i++) {
		int number;
		const char *path = where_source(st->where, st->record.event[i].pc, &number);
		if (!path)
			continue;
		where_print(st->where, st->record.event[i].pc, name, sizeof(name));
		*strrchr(name, ':') = '\0';
		for (unsigned k = 0; k < all->n; k++)
			if (!all->place[k].path && !strcmp(all->place[k].file, name))
				all->place[k].path = path;
	}
}

static void gather(const struct event_trace *st, struct spots *all)
{
	const struct cause *c = &st->cause;
	char name[SOURCE_FILE];
	add_places_of(all, c->sentence);
	for (unsigned i = 0; i < c->facts; i++)
		add_places_of(all, c->fact[i]);
	for (unsigned i = 0; i < c->events; i++) {
		int number;
		uintptr_t pc = st->record.event[c->event[i]].pc;
		const char *path = where_source(st->where, pc, &number);
		where_print(st->where, pc, name, sizeof(name));
		if (path)
			add_place(all, name, strlen(name), path);
	}
	find_paths(st, all);
	qsort(all->place, all->n, sizeof(all->place[0]), compare_places);
}

/* --- files --- */

/* The path of a place's file. False: it is not known. */
static bool find_file(const struct spots *all, const struct source_place *at, char path[PATH_MAX])
{
	if (at->path) {
		snprintf(path, PATH_MAX, "%s", at->path);
		return true;
	}
	/* Of code that did nothing in this run: in the tree of another. */
	for (unsigned i = 0; i < all->n && !strncmp(at->file, tree, strlen(tree)); i++) {
		const char *in_tree = all->place[i].path ? strstr(all->place[i].path, tree) : NULL;
		if (!in_tree)
			continue;
		snprintf(path, PATH_MAX, "%.*s%s", (int)(in_tree - all->place[i].path),
			 all->place[i].path, at->file);
		return true;
	}
	return false;
}

/* Tidemark and its stores are one program. */
static time_t built_at(void)
{
	struct stat program;
	return stat("/proc/self/exe", &program) ? 0 : program.st_mtime;
}

json_t *trace_sources(const struct event_trace *st)
{
	const time_t built = built_at();
	char path[PATH_MAX];
	json_t *sources = json_array();
	struct spots *all = calloc(1, sizeof(*all));
	if (all)
		gather(st, all);
	for (unsigned i = 0, n; all && i < all->n; i += n) {
		const struct source_place *at = &all->place[i];
		for (n = 1; i + n < all->n && !strcmp(at[n].file, at->file);)
			n++;
		json_array_append_new(
			sources, source_json(at, n, find_file(all, at, path) ? path : NULL, built));
	}
	free(all);
	return sources;
}
