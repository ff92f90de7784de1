/* SPDX-License-Identifier: BSD-3-Clause */
/* See shares.h. */
#include "report/rows/shares.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/shares.h"
#include "report/rows/blame_rows.h"
#include "report/output.h"

#define ROW_WIDTH 52 /* of most rows */

struct shares_file {
	struct shares old;
	struct shares *new;
	char *head; /* the file up to its first line */
};

/* The columns that there were, and those of the campaign. */
static int add_columns(struct shares *s, const struct campaign *c)
{
	char name[SHARES_NAME];
	for (unsigned i = 0; i < c->configs; i++) {
		shares_column_name(c->config[i].store, c->config[i].variant, c->config[i].name,
				   name);
		if (shares_column(s, name) >= 0)
			continue;
		if (s->columns == SHARES_COLUMNS || strlen(name) >= sizeof(s->column[0]))
			return -E2BIG;
		memcpy(s->column[s->columns++], name, strlen(name) + 1);
	}
	return 0;
}

static bool is_empty(const struct shares_line *line)
{
	for (unsigned i = 0; i < SHARES_COLUMNS; i++)
		if (line->runs[i])
			return false;
	return true;
}

/* A line for each row, in the order of causes.txt; none for what variants add to them that have no
 * column. */
static void add_lines(struct shares_file *f, const struct campaign *c)
{
	unsigned first, rows = known_store_rows(c->config->store, &first), most;
	for (unsigned i = 0; i < rows; i++) {
		struct shares_line *line = &f->new->line[f->new->lines];
		const struct shares_line *was = shares_line(&f->old, known_words(first + i));
		char name[SHARES_NAME];
		if (strlen(known_words(first + i)) >= sizeof(line->row))
			continue;
		if (was)
			*line = *was;
		snprintf(line->row, sizeof(line->row), "%s", known_words(first + i));
		for (unsigned config = 0; config < c->configs; config++) {
			shares_column_name(c->config[config].store, c->config[config].variant,
					   c->config[config].name, name);
			uint32_t *at = &line->runs[shares_column(f->new, name)];
			uint64_t runs = campaign_shown(c, config, i, &most);
			*at = runs > *at ? (uint32_t)runs : *at;
		}
		if (!strchr(line->row, '/') || !is_empty(line))
			f->new->lines++;
	}
}

static int write_lines(FILE *out, const void *arg)
{
	const struct shares_file *f = arg;
	const struct shares *s = f->new;
	fputs(f->head ? f->head : "", out);
	for (unsigned i = 0; i < s->columns; i++)
		fprintf(out, "column %s\n", s->column[i]);
	for (unsigned i = 0; i < s->lines; i++) {
		fprintf(out, "%-*s |", ROW_WIDTH, s->line[i].row);
		for (unsigned k = 0; k < s->columns; k++) {
			char runs[16] = ".";
			if (s->line[i].runs[k])
				snprintf(runs, sizeof(runs), "%" PRIu32, s->line[i].runs[k]);
			fprintf(out, " %*s", k ? 4 : 5, runs);
		}
		fputc('\n', out);
	}
	return ferror(out) ? -EIO : 0;
}

int shares_check(const char *path, struct input_error *error)
{
	struct shares_file f = {0};
	int rc = recorded_read(path, &f.head, shares_row, &f.old, error);
	shares_free(&f.old);
	free(f.head);
	return rc;
}

int shares_record(const struct campaign *c, const char *path, struct input_error *error)
{
	struct shares_file f = {.new = calloc(1, sizeof(*f.new))};
	memset(error, 0, sizeof(*error));
	if (f.new)
		f.new->line = calloc(KNOWN_STORE_ROWS, sizeof(*f.new->line));
	int rc = f.new &&f.new->line ? recorded_read(path, &f.head, shares_row, &f.old, error)
				     : -ENOMEM;
	if (!rc) {
		memcpy(f.new->column, f.old.column, sizeof(f.new->column));
		f.new->columns = f.old.columns;
		rc = add_columns(f.new, c);
	}
	if (!rc) {
		add_lines(&f, c);
		rc = save_file(path, write_lines, &f);
	}
	shares_free(&f.old);
	if (f.new)
		shares_free(f.new);
	free(f.new);
	free(f.head);
	return rc;
}
