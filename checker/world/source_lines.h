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
#include "core/instruction.h"
#include "core/tidemark.h"

struct source_lines_file {
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

/* A conditional jump, and its line. Its two ways: on, and to its target. */
struct source_branch {
	struct conditional_jump jump;
	unsigned function, line, file;
	unsigned to[2]; /* the line at which it goes on, of the same file; 0: of another one */
	int tells[2];	/* a site to which only this way leads; -1: none */
};

struct source_lines {
	struct source_lines_file *file;
	struct source_function *function; /* ascending */
	struct source_row *row;		  /* by file, line, site */
	uintptr_t *site;       /* where rows begin, or one way of a branch: ascending, each once */
	unsigned *function_of; /* of each site */
	unsigned *row_of;      /* the first row of each site; UINT_MAX: it has none */
	struct source_branch *branch; /* ascending; none of a function that cannot be read */
	unsigned files, functions, rows, sites, branches;
};

/* 0; -ENOMEM; -ENOENT: there is no debug information. To be freed in any case. */
int source_lines_find(const struct tm_store *store, struct source_lines *out);
void source_lines_free(struct source_lines *lines);
/* Of source_lines_find(): where only one way of one branch leads to; and the branches, when those
 * are sites, too. 0 or -ENOMEM. */
typedef void source_way(void *arg, uintptr_t at);
int source_branches_ways(const struct source_lines *lines, source_way *way, void *arg);
int source_branches_find(struct source_lines *lines);
/* The site that begins there, or the function around it: -1: none. */
int source_lines_site(const struct source_lines *lines, uintptr_t at);
int source_lines_function(const struct source_lines *lines, uintptr_t at);
/* The branch there; -1: none. */
int source_lines_branch(const struct source_lines *lines, uintptr_t at);
/* The line around an address of a function that has sites, as a row; `up`: or, if no line begins
 * there, the next one. */
unsigned source_lines_row(const struct source_lines *lines, unsigned function, uintptr_t at,
			  bool up);

#endif
