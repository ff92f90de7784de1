/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lines of source around the places that matter: those that the cause's sentence and facts
 * name, and those of its events. The files are looked for where the compiler found them, and in the
 * same tree as a file that was found so. One that is not there, or has been changed since the
 * program was built, is left out with a word.
 */
#include "report/page/source.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "report/page/page.h"

#define PLACES	   64
#define PLACE	   160 /* bytes of a place's name */
#define AROUND	   3   /* lines before and after */
#define LINE_BYTES 400 /* the rest of a longer line is cut off */

static const char tree[] = "core/stores/"; /* how a place in Tidemark's own stores begins */

struct spot {
	char file[PLACE]; /* as where_print() names it */
	int line;
	const char *path; /* of debug information, or NULL */
};

struct spots {
	struct spot place[PLACES];
	unsigned n;
};

/* --- places --- */

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

static void add_place(struct spots *all, const char *place, size_t len, const char *path)
{
	struct spot p = {.path = path};
	const char *colon = memrchr(place, ':', len);
	snprintf(p.file, sizeof(p.file), "%.*s", (int)(colon - place), place);
	p.line = atoi(colon + 1);
	for (unsigned i = 0; i < all->n; i++) {
		struct spot *other = &all->place[i];
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
	for (const char *at = text; (at = source_next_place(at, &len)); at += len)
		add_place(all, at, len, NULL);
}

static int compare_places(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;
	int files = strcmp(x->file, y->file);
	return files ? files : x->line - y->line;
}

/* What debug information says of the files: any event of theirs will do. */
static void find_paths(const struct page *p, struct spots *all)
{
	char name[PLACE];
	for (size_t i = 0; i < p->r->events; i++) {
		int number;
		const char *path = where_source(p->st->where, p->r->event[i].pc, &number);
		if (!path)
			continue;
		where_print(p->st->where, p->r->event[i].pc, name, sizeof(name));
		*strrchr(name, ':') = '\0';
		for (unsigned k = 0; k < all->n; k++)
			if (!all->place[k].path && !strcmp(all->place[k].file, name))
				all->place[k].path = path;
	}
}

static void gather(const struct page *p, struct spots *all)
{
	const struct cause *c = &p->st->cause;
	char name[PLACE];
	add_places_of(all, c->sentence);
	for (unsigned i = 0; i < c->facts; i++)
		add_places_of(all, c->fact[i]);
	for (unsigned i = 0; i < c->events; i++) {
		int number;
		uintptr_t pc = p->r->event[c->event[i]].pc;
		const char *path = where_source(p->st->where, pc, &number);
		where_print(p->st->where, pc, name, sizeof(name));
		if (path)
			add_place(all, name, strlen(name), path);
	}
	find_paths(p, all);
	qsort(all->place, all->n, sizeof(all->place[0]), compare_places);
}

/* --- files --- */

/* The path of a place's file. False: it is not known. */
static bool find_file(const struct spots *all, const struct spot *at, char path[PATH_MAX])
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

/* Why a file is not shown; NULL: it is, in *in. */
static const char *open_source(const struct spots *all, const struct spot *at, FILE **in)
{
	char path[PATH_MAX];
	struct stat source, built;
	if (!find_file(all, at, path) || stat(path, &source) || !S_ISREG(source.st_mode))
		return "this file is not on this machine";
	if (stat("/proc/self/exe", &built) || source.st_mtime > built.st_mtime)
		return "this file is newer than the program: its lines may be others by now";
	*in = fopen(path, "re");
	return *in ? NULL : "this file cannot be read";
}

/* --- lines --- */

static void print_line(const struct page *p, const struct spot *at, unsigned n, int number,
		       const char *text)
{
	char name[PLACE + 16], place[PLACE + 16];
	bool named = false;
	for (unsigned i = 0; i < n; i++)
		named |= at[i].line == number;
	snprintf(place, sizeof(place), "%s:%d", at->file, number);
	page_place_name(place, strlen(place), name, sizeof(name));
	if (named)
		fprintf(p->out, "<span class=named id=\"%s\">", name);
	fprintf(p->out, "<i>%5d</i>  ", number);
	for (unsigned column = 0; *text && *text != '\n' && *text != '\r'; text++) {
		char one[2] = {*text, '\0'};
		unsigned width = *text == '\t' ? 8 - column % 8 : 1;
		column += width;
		if (*text == '\t')
			fprintf(p->out, "%*s", (int)width, "");
		else
			page_escape(p->out, one);
	}
	fputs(named ? "</span>\n" : "\n", p->out);
}

/* The rest of a line that was too long. */
static void skip_rest(FILE *in, const char *text)
{
	int c = 0;
	while (!strchr(text, '\n') && c != '\n' && c != EOF)
		c = getc(in);
}

/* The places at[0..n) of one file. */
static void print_places(const struct page *p, const struct spot *at, unsigned n, FILE *in)
{
	char text[LINE_BYTES];
	unsigned next = 0;
	for (int number = 1, last = 0; next < n && fgets(text, sizeof(text), in); number++) {
		skip_rest(in, text);
		if (number < at[next].line - AROUND)
			continue;
		if (last && last + 1 < number)
			fputs("<i>    &#8943;</i>\n", p->out);
		last = number;
		print_line(p, at, n, number, text);
		while (next < n && number >= at[next].line + AROUND)
			next++;
	}
}

/* They are named all the same, for the links that lead here. */
static void print_names(const struct page *p, const struct spot *at, unsigned n)
{
	char name[PLACE + 16], place[PLACE + 16];
	for (unsigned i = 0; i < n; i++) {
		snprintf(place, sizeof(place), "%s:%d", at[i].file, at[i].line);
		page_place_name(place, strlen(place), name, sizeof(name));
		fprintf(p->out, "<span id=\"%s\"></span>", name);
	}
}

int page_sources(const struct page *p)
{
	struct spots *all = calloc(1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	gather(p, all);
	if (all->n)
		fputs("<section id=source>\n<h2>The source around the cause</h2>\n", p->out);
	for (unsigned i = 0, n; i < all->n; i += n) {
		const struct spot *at = &all->place[i];
		FILE *in = NULL;
		for (n = 1; i + n < all->n && !strcmp(at[n].file, at->file);)
			n++;
		const char *why = open_source(all, at, &in);
		page_element(p->out, "<h3>", at->file, "</h3>\n");
		if (why) {
			print_names(p, at, n);
			fprintf(p->out, "<p class=dim>%s</p>\n", why);
			continue;
		}
		fputs("<pre class=source>", p->out);
		print_places(p, at, n, in);
		fputs("</pre>\n", p->out);
		fclose(in);
	}
	if (all->n)
		fputs("</section>\n", p->out);
	free(all);
	return 0;
}
