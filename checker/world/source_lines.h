/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_SOURCE_LINES_H
#define TM_CHECKER_WORLD_SOURCE_LINES_H
/*
 * The lines of a store's sources that have code, and where that code is in this process, as the
 * debug information says. Those of the system's headers are not the store's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/tidemark.h"

struct source_file {
	char *path;	   /* the whole path */
	const char *shown; /* what is common to all files left out; "core/stores/erda/log.c" */
	bool shared;	   /* other stores use it, too */
};

struct source_function {
	char *name;
	uintptr_t begin, end;
	unsigned file, line; /* where it begins; 0: of no line that is the store's */
	unsigned sites, first_site;
};

/* A line has one row or more: for each part of a statement, and for each copy of the code. */
struct source_row {
	unsigned file, line, site;
};

struct source_lines {
	struct source_file *file;
	struct source_function *function; /* ascending */
	struct source_row *row;		  /* by file, line, site */
	uintptr_t *site;		  /* where rows begin: ascending, each once */
	unsigned *function_of;		  /* of each site */
	unsigned files, functions, rows, sites;
};

/* 0; -ENOMEM; -ENOENT: there is no debug information. To be freed in any case. */
int source_lines_find(const struct tm_store *store, struct source_lines *out);
void source_lines_free(struct source_lines *lines);
/* The site that begins there, or the function around it: -1: none. */
int source_lines_site(const struct source_lines *lines, uintptr_t at);
int source_lines_function(const struct source_lines *lines, uintptr_t at);

#endif
