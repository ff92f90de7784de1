/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_BASELINE_H
#define TM_CHECKER_JUDGE_BASELINE_H
/*
 * Breaks that need attention and that a user accepts for now: the file of crashtest --baseline. Its
 * first line is BASELINE_MAGIC; each other one is
 *
 *	STORE VARIANT CONFIG CONTRACT SAW AGAINST [PART...]
 *
 * CONFIG is a configuration's name with commas instead of blanks. The rest is as in
 * checker/judge/blame.h. A row accepts a break under its configuration that shows the same and has
 * at least its parts. Breaks that a store is expected to have belong to its expectations, not to a
 * baseline. Blank lines and those that begin with '#' are skipped.
 */
#include "checker/judge/known.h"
#include "core/text/text.h"

#define BASELINE_MAGIC "tidemark-baseline 1"

struct baseline_row {
	const char *store, *variant, *config;
	char *words;   /* the whole line, one blank between words */
	unsigned read; /* as which row, from 0 */
};

struct baseline {
	struct baseline_row *row; /* by store, variant, configuration; the caller's */
	struct blame *blame;	  /* of each */
	unsigned n;
	char *bytes; /* the rows point into it */
};

/* Read a file. 0, -ENOMEM, or -errno with *error. To be freed in any case. */
int baseline_read(const char *path, struct baseline *out, struct input_error *error);
void baseline_free(struct baseline *b);
/* A configuration's name as a word. */
void baseline_config(const char *name, char *buf, size_t n);
/* The rows of a configuration: how many, *first the first one of them. */
unsigned baseline_rows(const struct baseline *b, const char *store, const char *variant,
		       const char *config, unsigned *first);
/* known_accept() what the rows of the configuration say. */
void baseline_accept(const struct baseline *b, const struct tm_store *store, const char *variant,
		     const char *config, struct known *out);

#endif
