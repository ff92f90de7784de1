/* SPDX-License-Identifier: BSD-3-Clause */
/* See source_lines.h. */
#include "checker/world/source_lines.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "checker/world/where.h"
#include "scenarios/stores.h"

#define STORES "core/stores/"
#define SYSTEM "/usr/"
/* What `tidemark cc` adds to a store (scripts/sdk/). */
static const char *const sdk[] = {"/sdk/include/", "/sdk/cxx.c", "/sdk/object.c"};

struct finder {
	struct source_lines *lines;
	const char *folder; /* of a store of this tree: "erda/log.c"; NULL: it was loaded */
	size_t folder_len;
	unsigned room[3]; /* of files, functions, rows */
	bool failed;
};

static void *grow(struct finder *f, void *array, unsigned n, unsigned *room, size_t each)
{
	if (n < *room)
		return array;
	unsigned more = *room ? 2 * *room : 64;
	void *grown = f->failed ? NULL : reallocarray(array, more, each);
	if (grown)
		*room = more;
	else
		f->failed = true;
	return grown ? grown : array;
}

/* --- which files are the store's --- */

static const char *below_stores(const char *path)
{
	const char *below = strstr(path, STORES);
	return below ? below + strlen(STORES) : NULL;
}

/* "erda/" of a store of this tree, in a text that lives as long as `w`. */
static void find_folder(struct finder *f, struct where *w, const struct tm_store *store)
{
	const uintptr_t function[] = {(uintptr_t)store->recover, (uintptr_t)store->format,
				      (uintptr_t)store->serve, (uintptr_t)store->pm_bytes};
	f->folder = store_path(store) ? NULL : "";
	for (unsigned i = 0; f->folder && i < sizeof(function) / sizeof(function[0]); i++) {
		const char *path = where_path(w, function[i]);
		const char *below = path ? below_stores(path) : NULL;
		const char *slash = below ? strchr(below, '/') : NULL;
		if (!slash)
			continue;
		f->folder = below;
		f->folder_len = (size_t)(slash - below) + 1;
		return;
	}
}

static bool is_own(const struct finder *f, const char *path, bool *shared)
{
	*shared = false;
	for (unsigned i = 0; !f->folder && i < sizeof(sdk) / sizeof(sdk[0]); i++)
		if (strstr(path, sdk[i]))
			return false;
	if (!f->folder)
		return strncmp(path, SYSTEM, strlen(SYSTEM)) != 0;
	const char *below = below_stores(path);
	*shared = below && !strchr(below, '/');
	return below && (*shared || !strncmp(below, f->folder, f->folder_len));
}

/* -1: there is no memory, or it is not the store's. */
static int file_of(struct finder *f, const char *path)
{
	struct source_lines *l = f->lines;
	bool shared;
	/* Rows of one file come one after the other, mostly. */
	for (unsigned i = l->files; i--;)
		if (!strcmp(l->file[i].path, path))
			return (int)i;
	if (!is_own(f, path, &shared))
		return -1;
	l->file = grow(f, l->file, l->files, &f->room[0], sizeof(*l->file));
	char *copy = f->failed ? NULL : strdup(path);
	if (!copy) {
		f->failed = true;
		return -1;
	}
	l->file[l->files] = (struct source_lines_file){copy, copy, shared};
	return (int)l->files++;
}

/* --- reading --- */

static void take_function(void *arg, const char *name, uintptr_t begin, uintptr_t end)
{
	struct finder *f = arg;
	struct source_lines *l = f->lines;
	l->function = grow(f, l->function, l->functions, &f->room[1], sizeof(*l->function));
	char *copy = f->failed ? NULL : strdup(name);
	if (copy)
		l->function[l->functions++] = (struct source_function){copy, begin, end, 0,
								       0,    0,	    0};
	else
		f->failed = true;
}

struct read_row {
	uintptr_t pc;
	struct source_row row;
	unsigned unit, function;
};

struct reader {
	struct finder *f;
	struct read_row *read;
	unsigned n, room;
};

static void take_row(void *arg, unsigned unit, uintptr_t pc, const char *path, unsigned line)
{
	struct reader *r = arg;
	int file = file_of(r->f, path);
	if (file < 0)
		return;
	/* The linker has left out some functions, which have rows nevertheless. */
	int function = source_lines_function(r->f->lines, pc);
	if (function < 0)
		return;
	r->read = grow(r->f, r->read, r->n, &r->room, sizeof(*r->read));
	if (!r->f->failed)
		r->read[r->n++] = (struct read_row){
			pc, {(unsigned)file, line, 0}, unit, (unsigned)function};
}

/* --- the copy of the simulated world --- */

/* The program has the stores for real hardware, too. Code of the simulated world tells of its
 * accesses (core/pmem/hooks.c). */
#define HOOK	   "__tsan_"
#define CALL	   0xe8 /* call rel32 */
#define CALL_BYTES 5

static bool calls_hook(const struct source_lines *l, const struct source_function *function)
{
	for (uintptr_t at = function->begin; at + CALL_BYTES <= function->end; at++) {
		const uint8_t *code = (const uint8_t *)at;
		int32_t distance;
		if (*code != CALL)
			continue;
		memcpy(&distance, code + 1, sizeof(distance));
		uintptr_t callee = at + CALL_BYTES + (uintptr_t)(intptr_t)distance;
		int found = source_lines_function(l, callee);
		if (found >= 0 && l->function[found].begin == callee &&
		    !strncmp(l->function[found].name, HOOK, strlen(HOOK)))
			return true;
	}
	return false;
}

/* Only rows of units that have such code stay. They are in the order of units. */
static void keep_simulated(struct reader *r)
{
	const struct source_lines *l = r->f->lines;
	unsigned kept = 0;
	for (unsigned i = 0, end; i < r->n; i = end) {
		bool simulated = false;
		for (end = i; end < r->n && r->read[end].unit == r->read[i].unit; end++)
			simulated = simulated ||
				    ((end == i ||
				      r->read[end].function != r->read[end - 1].function) &&
				     calls_hook(l, &l->function[r->read[end].function]));
		for (unsigned k = i; k < end && simulated; k++)
			r->read[kept++] = r->read[k];
	}
	r->n = kept;
}

/* --- their order --- */

static int by_begin(const void *a, const void *b)
{
	const struct source_function *x = a, *y = b;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int by_pc(const void *a, const void *b)
{
	const struct read_row *x = a, *y = b;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

/* Two names of one function are one. */
static void sort_functions(struct source_lines *l)
{
	unsigned n = 0;
	if (l->functions)
		qsort(l->function, l->functions, sizeof(*l->function), by_begin);
	for (unsigned i = 0; i < l->functions; i++) {
		if (n && l->function[n - 1].begin == l->function[i].begin) {
			/* Whichever of them was read first. */
			bool other = strcmp(l->function[i].name, l->function[n - 1].name) < 0;
			free(l->function[other ? n - 1 : i].name);
			if (other)
				l->function[n - 1] = l->function[i];
			continue;
		}
		l->function[n++] = l->function[i];
	}
	l->functions = n;
}

static int make_sites(struct source_lines *l, struct read_row *read, unsigned n)
{
	l->site = calloc(n + 1, sizeof(*l->site));
	l->function_of = calloc(n + 1, sizeof(*l->function_of));
	l->row = calloc(n + 1, sizeof(*l->row));
	if (!l->site || !l->function_of || !l->row)
		return -ENOMEM;
	if (n)
		qsort(read, n, sizeof(*read), by_pc);
	for (unsigned i = 0; i < n; i++) {
		if (!l->sites || l->site[l->sites - 1] != read[i].pc) {
			int in = source_lines_function(l, read[i].pc);
			struct source_function *function = &l->function[in];
			if (!function->sites++) {
				function->first_site = l->sites;
				function->file = read[i].row.file;
				function->line = read[i].row.line;
			}
			l->function_of[l->sites] = (unsigned)in;
			l->site[l->sites++] = read[i].pc;
		}
		read[i].row.site = l->sites - 1;
		if (read[i].row.line)
			l->row[l->rows++] = read[i].row;
	}
	return 0;
}

/* --- ways of branches --- */

static void take_way(void *arg, uintptr_t at)
{
	struct reader *r = arg;
	r->read = grow(r->f, r->read, r->n, &r->room, sizeof(*r->read));
	if (!r->f->failed)
		r->read[r->n++] = (struct read_row){.pc = at};
}

/* Each becomes a site, of no line. */
static int add_ways(struct reader *r)
{
	struct source_lines *l = r->f->lines;
	int error = source_branches_ways(l, take_way, r);
	if (error || r->f->failed)
		return -ENOMEM;
	free(l->site);
	free(l->function_of);
	free(l->row);
	l->site = NULL;
	l->function_of = NULL;
	l->row = NULL;
	l->sites = l->rows = 0;
	for (unsigned i = 0; i < l->functions; i++)
		l->function[i].sites = 0;
	return make_sites(l, r->read, r->n);
}

/* --- names, and their order --- */

/* In the tree from core/stores/ on; else without the folders that all have in common. */
static void show_files(struct source_lines *l)
{
	size_t common = l->files ? strlen(l->file[0].path) : 0;
	for (unsigned i = 0; i < l->files; i++) {
		size_t same = 0;
		while (same < common && l->file[i].path[same] == l->file[0].path[same])
			same++;
		common = same;
	}
	/* A single file is common to all of them. */
	while (common && l->file[0].path[common - 1] != '/')
		common--;
	for (unsigned i = 0; i < l->files; i++) {
		const char *below = strstr(l->file[i].path, STORES);
		l->file[i].shown = below ? below : l->file[i].path + common;
	}
}

static int by_name(const void *a, const void *b)
{
	const struct source_lines_file *x = *(const struct source_lines_file *const *)a;
	const struct source_lines_file *y = *(const struct source_lines_file *const *)b;
	return strcmp(x->shown, y->shown);
}

static int by_line(const void *a, const void *b)
{
	const struct source_row *x = a, *y = b;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static int sort_files(struct source_lines *l)
{
	const struct source_lines_file **order = calloc(l->files + 1, sizeof(*order));
	struct source_lines_file *sorted = calloc(l->files + 1, sizeof(*sorted));
	unsigned *now = calloc(l->files + 1, sizeof(*now));
	int error = order && sorted && now ? 0 : -ENOMEM;
	for (unsigned i = 0; i < l->files && !error; i++)
		order[i] = &l->file[i];
	if (!error && l->files)
		qsort(order, l->files, sizeof(*order), by_name);
	for (unsigned i = 0; i < l->files && !error; i++) {
		sorted[i] = *order[i];
		now[order[i] - l->file] = i;
	}
	for (unsigned i = 0; i < l->rows && !error; i++)
		l->row[i].file = now[l->row[i].file];
	for (unsigned i = 0; i < l->functions && !error; i++)
		if (l->function[i].sites)
			l->function[i].file = now[l->function[i].file];
	if (!error) {
		free(l->file);
		l->file = sorted;
		sorted = NULL;
		if (l->rows)
			qsort(l->row, l->rows, sizeof(*l->row), by_line);
	}
	free(order);
	free(sorted);
	free(now);
	return error;
}

static int index_rows(struct source_lines *l)
{
	l->row_of = malloc((l->sites + 1) * sizeof(*l->row_of));
	if (!l->row_of)
		return -ENOMEM;
	for (unsigned i = 0; i < l->sites; i++)
		l->row_of[i] = UINT_MAX;
	for (unsigned i = l->rows; i--;)
		l->row_of[l->row[i].site] = i;
	return 0;
}

/* --- all --- */

int source_lines_find(const struct tm_store *store, struct source_lines *out)
{
	struct finder f = {.lines = out};
	struct reader r = {.f = &f};
	struct where *w = where_new();
	const uintptr_t in = (uintptr_t)store->pm_bytes;
	memset(out, 0, sizeof(*out));
	if (!w)
		return -ENOENT;
	find_folder(&f, w, store);
	where_functions(w, in, take_function, &f);
	sort_functions(out);
	where_rows(w, in, take_row, &r);
	if (f.folder)
		keep_simulated(&r);
	int error = f.failed ? -ENOMEM : make_sites(out, r.read, r.n);
	if (!error && !out->rows)
		error = -ENOENT;
	if (!error)
		error = add_ways(&r);
	if (!error) {
		show_files(out);
		error = sort_files(out);
	}
	if (!error)
		error = index_rows(out);
	if (!error)
		error = source_branches_find(out);
	free(r.read);
	where_free(w);
	return error;
}

void source_lines_free(struct source_lines *lines)
{
	for (unsigned i = 0; i < lines->files; i++)
		free(lines->file[i].path);
	for (unsigned i = 0; i < lines->functions; i++)
		free(lines->function[i].name);
	free(lines->file);
	free(lines->function);
	free(lines->row);
	free(lines->site);
	free(lines->function_of);
	free(lines->branch);
	free(lines->row_of);
	memset(lines, 0, sizeof(*lines));
}

int source_lines_site(const struct source_lines *lines, uintptr_t at)
{
	unsigned lo = 0, hi = lines->sites;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (lines->site[mid] < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < lines->sites && lines->site[lo] == at ? (int)lo : -1;
}

int source_lines_function(const struct source_lines *lines, uintptr_t at)
{
	unsigned lo = 0, hi = lines->functions;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (lines->function[mid].begin <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && at < lines->function[lo - 1].end ? (int)lo - 1 : -1;
}

int source_lines_branch(const struct source_lines *lines, uintptr_t at)
{
	unsigned lo = 0, hi = lines->branches;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (lines->branch[mid].jump.at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < lines->branches && lines->branch[lo].jump.at == at ? (int)lo : -1;
}

unsigned source_lines_row(const struct source_lines *l, unsigned function, uintptr_t at, bool up)
{
	const struct source_function *f = &l->function[function];
	unsigned lo = f->first_site, hi = lo + f->sites;
	while (lo + 1 < hi) {
		unsigned mid = (lo + hi) / 2;
		if (l->site[mid] <= at)
			lo = mid;
		else
			hi = mid;
	}
	const unsigned last = f->first_site + f->sites - 1;
	up &= l->row_of[lo] == UINT_MAX || l->site[lo] != at;
	while (up && lo < last && (l->site[lo] < at || l->row_of[lo] == UINT_MAX))
		lo++;
	while (l->row_of[lo] == UINT_MAX)
		lo--;
	return l->row_of[lo];
}
