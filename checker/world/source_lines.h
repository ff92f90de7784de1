/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_SOURCE_LINES_H
#define TM_CHECKER_WORLD_SOURCE_LINES_H
/*
 * The lines of a loaded store's sources that have code, and where that code is in this process, as
 * the debug information says; and the basic blocks that they are parts of (core/pmem/coverage.h).
 * Lines of the system's headers are not the store's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/tidemark.h"

struct source_lines_file {
	char *path;	   /* the whole path */
	const char *shown; /* the folders that all files have in common left out */
};

struct source_function {
	char *name;
	uintptr_t begin, end;
	unsigned file, line;	      /* where it begins; line 0: of no line that is the store's */
	unsigned first_block, blocks; /* 0 blocks: it was not compiled for coverage */
};

/* A line has one row or more: for each part of a statement, and for each copy of the code. */
struct source_row {
	uintptr_t pc;
	unsigned file, line, function, block;
};

struct source_lines {
	struct source_lines_file *file;
	struct source_function *function; /* ascending */
	struct source_row *row;		  /* of functions that have blocks: ascending */
	uintptr_t *block;		  /* the address to which its call returns: ascending */
	size_t files, functions, rows, blocks, room[4];
};

/* 0; -ENOMEM; -ENOENT: there is no debug information; -ENOEXEC: there are no blocks. To be freed in
 * any case. */
int source_lines_find(const struct tm_store *store, struct source_lines *out);
void source_lines_free(struct source_lines *lines);
/* The row around an address; NULL: it is not in the store's own code. */
const struct source_row *source_lines_row(const struct source_lines *lines, uintptr_t at);

#endif
