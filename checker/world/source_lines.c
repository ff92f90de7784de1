/* SPDX-License-Identifier: BSD-3-Clause */
/* See source_lines.h. */
#include "checker/world/source_lines.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/world/where.h"
#include "core/array.h"

#define SYSTEM "/usr/"
/* What `tidemark cc` adds to a store (scripts/sdk/). */
static const char *const sdk[] = {"/sdk/include/", "/sdk/cxx.c", "/sdk/object.c"};

/* The hook that the compiler inserts: scripts/sdk/object.c has it, so that each call is direct. */
#define HOOK	   "__sanitizer_cov_trace_pc"
#define CALL	   0xe8 /* call rel32 */
#define CALL_BYTES 5
#define PADDING	   0x67 /* before it, where the linker has replaced a longer call */

struct reader {
	struct source_lines *lines;
	bool failed;
};

/* --- files, functions, rows --- */

static bool is_own(const char *path)
{
	for (unsigned i = 0; i < sizeof(sdk) / sizeof(sdk[0]); i++)
		if (strstr(path, sdk[i]))
			return false;
	return strncmp(path, SYSTEM, strlen(SYSTEM)) != 0;
}

/* -1: there is no memory, or it is not the store's. */
static int file_of(struct reader *r, const char *path)
{
	struct source_lines *l = r->lines;
	/* Rows of one file come one after the other, mostly. */
	for (size_t i = l->files; i--;)
		if (!strcmp(l->file[i].path, path))
			return (int)i;
	if (!is_own(path))
		return -1;
	char *copy = ARRAY_RESERVE(l->file, l->files, 1, l->room[0]) ? strdup(path) : NULL;
	if (!copy) {
		r->failed = true;
		return -1;
	}
	l->file[l->files] = (struct source_lines_file){copy, copy};
	return (int)l->files++;
}

static void take_function(void *arg, const char *name, uintptr_t begin, uintptr_t end)
{
	struct reader *r = arg;
	struct source_lines *l = r->lines;
	char *copy = ARRAY_RESERVE(l->function, l->functions, 1, l->room[1]) ? strdup(name) : NULL;
	if (copy)
		l->function[l->functions++] = (struct source_function){copy, begin, end, 0,
								       0,    0,	    0};
	else
		r->failed = true;
}

static int function_of(const struct source_lines *l, uintptr_t at)
{
	size_t lo = 0, hi = l->functions;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (l->function[mid].begin <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && at < l->function[lo - 1].end ? (int)lo - 1 : -1;
}

static void take_row(void *arg, uintptr_t pc, const char *path, unsigned line)
{
	struct reader *r = arg;
	struct source_lines *l = r->lines;
	/* The linker has left out some functions, which have rows nevertheless. */
	int file = file_of(r, path), function = function_of(l, pc);
	if (file < 0 || function < 0)
		return;
	if (!ARRAY_RESERVE(l->row, l->rows, 1, l->room[2]))
		r->failed = true;
	else
		l->row[l->rows++] = (struct source_row){pc, (unsigned)file, line,
							(unsigned)function, 0};
}

/* --- their order --- */

/* The first of two names of one function counts. */
static int by_begin(const void *a, const void *b)
{
	const struct source_function *x = a, *y = b;
	return x->begin != y->begin ? x->begin < y->begin ? -1 : 1 : strcmp(x->name, y->name);
}

static int by_pc(const void *a, const void *b)
{
	const struct source_row *x = a, *y = b;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static void sort_functions(struct source_lines *l)
{
	size_t n = 0;
	if (l->functions)
		qsort(l->function, l->functions, sizeof(*l->function), by_begin);
	for (size_t i = 0; i < l->functions; i++) {
		if (n && l->function[n - 1].begin == l->function[i].begin)
			free(l->function[i].name);
		else
			l->function[n++] = l->function[i];
	}
	l->functions = n;
}

/* --- blocks --- */

static uintptr_t find_hook(const struct source_lines *l)
{
	for (size_t i = 0; i < l->functions; i++)
		if (!strcmp(l->function[i].name, HOOK))
			return l->function[i].begin;
	return 0;
}

/* Code is not optimised, so a block is what is between two calls of the hook. What stands before
 * the first one, such as a function's beginning, belongs to that. */
static bool find_blocks(struct source_lines *l, struct source_function *f, uintptr_t hook,
			struct source_row *row, const struct source_row *end)
{
	f->first_block = (unsigned)l->blocks;
	for (uintptr_t at = f->begin; at + CALL_BYTES <= f->end; at++) {
		const uint8_t *code = (const uint8_t *)at;
		int32_t distance;
		memcpy(&distance, code + 1, sizeof(distance));
		if (*code != CALL || at + CALL_BYTES + (uintptr_t)(intptr_t)distance != hook)
			continue;
		for (; f->blocks && row < end && row->pc < at - (code[-1] == PADDING); row++)
			row->block = (unsigned)l->blocks - 1;
		if (!ARRAY_RESERVE(l->block, l->blocks, 1, l->room[3]))
			return false;
		l->block[l->blocks++] = at + CALL_BYTES;
		f->blocks++;
	}
	for (; row < end; row++)
		row->block = (unsigned)l->blocks - 1;
	return true;
}

static int find_all_blocks(struct source_lines *l)
{
	const uintptr_t hook = find_hook(l);
	size_t kept = 0;
	for (size_t i = 0, end; i < l->rows; i = end) {
		struct source_function *f = &l->function[l->row[i].function];
		for (end = i; end < l->rows && l->row[end].function == l->row[i].function;)
			end++;
		f->file = l->row[i].file;
		f->line = l->row[i].line;
		if (!find_blocks(l, f, hook, &l->row[i], &l->row[end]))
			return -ENOMEM;
		for (size_t k = i; k < end && f->blocks; k++)
			l->row[kept++] = l->row[k];
	}
	l->rows = kept;
	return kept ? 0 : -ENOEXEC;
}

/* --- all --- */

static void show_files(struct source_lines *l)
{
	size_t common = strlen(l->file[0].path);
	for (size_t i = 0; i < l->files; i++) {
		size_t same = 0;
		while (same < common && l->file[i].path[same] == l->file[0].path[same])
			same++;
		common = same;
	}
	/* A single file is common to all of them. */
	while (common && l->file[0].path[common - 1] != '/')
		common--;
	for (size_t i = 0; i < l->files; i++)
		l->file[i].shown = l->file[i].path + common;
}

int source_lines_find(const struct tm_store *store, struct source_lines *out)
{
	struct reader r = {.lines = out};
	struct where *w = where_new();
	memset(out, 0, sizeof(*out));
	if (!w)
		return -ENOENT;
	where_functions(w, (uintptr_t)store->pm_bytes, take_function, &r);
	sort_functions(out);
	where_rows(w, (uintptr_t)store->pm_bytes, take_row, &r);
	where_free(w);
	if (r.failed || !out->rows)
		return r.failed ? -ENOMEM : -ENOENT;
	qsort(out->row, out->rows, sizeof(*out->row), by_pc);
	show_files(out);
	return find_all_blocks(out);
}

void source_lines_free(struct source_lines *lines)
{
	for (size_t i = 0; i < lines->files; i++)
		free(lines->file[i].path);
	for (size_t i = 0; i < lines->functions; i++)
		free(lines->function[i].name);
	free(lines->file);
	free(lines->function);
	free(lines->row);
	free(lines->block);
	memset(lines, 0, sizeof(*lines));
}

const struct source_row *source_lines_row(const struct source_lines *l, uintptr_t at)
{
	const int function = function_of(l, at);
	size_t lo = 0, hi = l->rows;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (l->row[mid].pc <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && (int)l->row[lo - 1].function == function ? &l->row[lo - 1] : NULL;
}
