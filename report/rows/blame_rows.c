/* SPDX-License-Identifier: BSD-3-Clause */
/* See blame_rows.h. */
#include "report/rows/blame_rows.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "report/output.h"

#define FILE_MAX  (1u << 20)
#define ROW_WIDTH 52 /* of most rows */

/* Is the row about all that the other one is about? */
static bool is_about_all(const struct blame_row *row, const struct blame_row *other)
{
	return !strcmp(row->key, "*") || !strcmp(row->key, other->key);
}

/* Is the new row needless beside the old one? */
static bool covers(const struct blame_row *old, const struct blame_row *new)
{
	if (new->bare)
		return !strcmp(old->key, new->key);
	return !old->bare && is_about_all(old, new) && blame_includes(&new->blame, &old->blame);
}

int blame_rows_add(struct blame_rows *rows, const struct blame_row *new)
{
	unsigned left = 0;
	for (unsigned i = 0; i < rows->n; i++)
		if (covers(&rows->row[i], new))
			return 0;
	for (unsigned i = 0; i < rows->n; i++) {
		const struct blame_row *old = &rows->row[i];
		if (old->bare ? strcmp(old->key, new->key) != 0 : !covers(new, old))
			rows->row[left++] = *old;
	}
	rows->n = left;
	if (!ARRAY_RESERVE(rows->row, left, 1, rows->room))
		return -ENOMEM;
	rows->row[rows->n++] = *new;
	return 0;
}

int blame_rows_add_strange(struct blame_rows *rows, const char *key, const struct setup *s,
			   const struct strange *strange)
{
	int error = 0;
	for (unsigned i = 0; i < strange->n && !error; i++) {
		struct blame_row row = {.blame = strange->one[i].blame};
		snprintf(row.key, sizeof(row.key), "%s", key);
		blame_coarsen(&row.blame);
		blame_print(&row.blame, s->region, s->regions, row.words, sizeof(row.words));
		error = blame_rows_add(rows, &row);
	}
	return error;
}

static int by_words(const void *a, const void *b)
{
	const struct blame_row *x = a, *y = b;
	int order = strcmp(x->key, y->key);
	return order ? order : strcmp(x->words, y->words);
}

static int by_contract(const void *a, const void *b)
{
	const struct blame_row *x = a, *y = b;
	int order = strcmp(x->key, y->key);
	if (!order)
		order = x->blame.contract - y->blame.contract;
	return order ? order : strcmp(x->words, y->words);
}

static int write_rows(FILE *out, const void *arg)
{
	const struct blame_rows *rows = arg;
	fputs(rows->head ? rows->head : "", out);
	for (unsigned i = 0; i < rows->columns.n; i++)
		fprintf(out, "column %s\n", rows->columns.name[i]);
	for (unsigned i = 0; i < rows->n; i++) {
		const struct blame_row *row = &rows->row[i];
		int len = fprintf(out, "%s %s", row->key, row->words);
		if (row->counted)
			fprintf(out, "%*s |", len < ROW_WIDTH ? ROW_WIDTH - len : 0, "");
		for (unsigned k = 0; row->counted && k < rows->columns.n; k++) {
			char runs[16] = ".";
			if (row->runs[k])
				snprintf(runs, sizeof(runs), "%" PRIu32, row->runs[k]);
			fprintf(out, " %*s", k ? 4 : 5, runs);
		}
		fputc('\n', out);
	}
	return ferror(out) ? -EIO : 0;
}

void blame_rows_sort(struct blame_rows *rows, bool contracts)
{
	if (rows->n)
		qsort(rows->row, rows->n, sizeof(rows->row[0]), contracts ? by_contract : by_words);
}

int blame_rows_save(struct blame_rows *rows, const char *path)
{
	return save_file(path, write_rows, rows);
}

void blame_rows_free(struct blame_rows *rows)
{
	free(rows->head);
	free(rows->row);
}

int recorded_read(const char *path, char **head, text_row *row, void *arg,
		  struct input_error *error)
{
	struct text t;
	size_t len;
	int rc;
	char *bytes = text_read_path(path, FILE_MAX, &len, error, &rc);
	if (!bytes)
		return rc == -ENOENT ? 0 : rc;
	*head = text_head(bytes);
	text_start(&t, bytes, len, error);
	t.ascii = true;
	rc = *head ? text_rows(&t, row, arg) : -ENOMEM;
	free(bytes);
	return rc;
}
