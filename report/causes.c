/* SPDX-License-Identifier: BSD-3-Clause */
/* See causes.h. */
#include "report/causes.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "checker/judge/known.h"
#include "report/output.h"

#define FILE_MAX (1u << 20)

struct cause_row {
	char configs[64];
	bool bare; /* as in checker/judge/known.c */
	struct blame blame;
	char words[BLAME_TEXT];
};

struct cause_rows {
	struct cause_row *row;
	unsigned n, room;
	char *head; /* the file up to its first row */
};

/* Is the row about all that the other one is about? */
static bool is_about_all(const struct cause_row *row, const struct cause_row *other)
{
	return !strcmp(row->configs, "*") || !strcmp(row->configs, other->configs);
}

/* Is the new row needless beside the old one? */
static bool covers(const struct cause_row *old, const struct cause_row *new)
{
	if (new->bare)
		return !strcmp(old->configs, new->configs);
	return !old->bare && is_about_all(old, new) && blame_includes(&new->blame, &old->blame);
}

/* Add it, unless it is a row with something added; rows that are it with something added go. */
static int add_row(struct cause_rows *rows, const struct cause_row *new)
{
	unsigned left = 0;
	for (unsigned i = 0; i < rows->n; i++)
		if (covers(&rows->row[i], new))
			return 0;
	for (unsigned i = 0; i < rows->n; i++) {
		const struct cause_row *old = &rows->row[i];
		if (old->bare ? strcmp(old->configs, new->configs) != 0 : !covers(new, old))
			rows->row[left++] = *old;
	}
	rows->n = left;
	if (!ARRAY_RESERVE(rows->row, left, 1, rows->room))
		return -ENOMEM;
	rows->row[rows->n++] = *new;
	return 0;
}

/* --- the file --- */

static int read_rows(struct cause_rows *rows, struct text *t)
{
	char *line;
	int rc;
	while ((rc = text_line(t, &line)) > 0) {
		if (text_check_bytes(t, line, strchr(line, '#')))
			return -EINVAL;
		struct cause_row *row = calloc(1, sizeof(*row));
		if (!row)
			return -ENOMEM;
		char *rest = line;
		const char *configs = text_word(&rest), *wrong = NULL;
		row->bare = !strcmp(text_skip_blanks(rest), "compared");
		bool skip = !*configs || *configs == '#';
		snprintf(row->configs, sizeof(row->configs), "%s", configs);
		snprintf(row->words, sizeof(row->words), "%s", text_skip_blanks(rest));
		if (!skip && !row->bare)
			wrong = blame_parse(&row->blame, rest);
		rc = skip || wrong ? 0 : add_row(rows, row);
		free(row);
		if (wrong)
			return text_wrong(t, "%s", wrong);
		if (rc)
			return rc;
	}
	return rc;
}

static int read_file(struct cause_rows *rows, const char *path, struct input_error *error)
{
	FILE *in = fopen(path, "r");
	struct text t;
	size_t len;
	int rc = 0;
	if (!in && errno == ENOENT)
		return 0;
	if (!in)
		return -errno;
	char *bytes = text_read(in, FILE_MAX, &len, error, &rc);
	fclose(in);
	if (!bytes)
		return rc;
	rows->head = text_head(bytes);
	if (rows->head) {
		text_start(&t, bytes, len, error);
		rc = read_rows(rows, &t);
	} else {
		rc = -ENOMEM;
	}
	free(bytes);
	return rc;
}

static int by_words(const void *a, const void *b)
{
	const struct cause_row *x = a, *y = b;
	int order = strcmp(x->configs, y->configs);
	if (!order && x->blame.contract != y->blame.contract)
		order = x->blame.contract < y->blame.contract ? -1 : 1;
	return order ? order : strcmp(x->words, y->words);
}

static int write_rows(FILE *out, const void *arg)
{
	const struct cause_rows *rows = arg;
	if (rows->head && fputs(rows->head, out) == EOF)
		return -EIO;
	for (unsigned i = 0; i < rows->n; i++)
		if (fprintf(out, "%s %s\n", rows->row[i].configs, rows->row[i].words) < 0)
			return -EIO;
	return 0;
}

/* --- the campaign --- */

static int add_strange(struct cause_rows *rows, const struct campaign *c, unsigned unit,
		       const struct setup *s, const struct strange *strange)
{
	const char *variant = c->config[unit / c->workloads].variant;
	bool is_default = !strcmp(variant, "default");
	int rc = 0;
	for (unsigned i = 0; i < strange->n && !rc; i++) {
		struct cause_row row = {.blame = strange->one[i].blame};
		snprintf(row.configs, sizeof(row.configs), "%s%s*", is_default ? "" : variant,
			 is_default ? "" : "/");
		blame_coarsen(&row.blame);
		blame_print(&row.blame, s->region, s->regions, row.words, sizeof(row.words));
		rc = add_row(rows, &row);
	}
	return rc;
}

/* The variant's own rows, if it has none: that it is compared. */
static int add_variant(struct cause_rows *rows, const struct campaign_config *cfg)
{
	struct cause_row row = {.bare = true, .words = "compared"};
	snprintf(row.configs, sizeof(row.configs), "%s/*", cfg->variant);
	return known_as_default(cfg->store, cfg->variant) ? 0 : add_row(rows, &row);
}

static int add_unit(struct cause_rows *rows, const struct campaign *c, unsigned unit)
{
	struct setup s;
	unsigned any = 0;
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		any += c->unit[unit].contract[k].strange.n;
	if (!any)
		return 0;
	int rc = campaign_setup(c, unit, &s);
	for (unsigned k = 0; k < TM_CONTRACTS && !rc; k++)
		rc = add_strange(rows, c, unit, &s, &c->unit[unit].contract[k].strange);
	setup_free(&s);
	return rc;
}

int causes_check(const char *path, struct input_error *error)
{
	struct cause_rows rows = {0};
	memset(error, 0, sizeof(*error));
	int rc = read_file(&rows, path, error);
	free(rows.head);
	free(rows.row);
	return rc;
}

int causes_record(const struct campaign *c, const char *path, struct input_error *error)
{
	struct cause_rows rows = {0};
	assert(c->options.all_causes);
	memset(error, 0, sizeof(*error));
	int rc = read_file(&rows, path, error);
	for (unsigned u = 0; u < c->configs * c->workloads && !rc; u++)
		rc = add_unit(&rows, c, u);
	for (unsigned i = 0; i < c->configs && !rc; i++)
		rc = add_variant(&rows, &c->config[i]);
	if (!rc && rows.n)
		qsort(rows.row, rows.n, sizeof(rows.row[0]), by_words);
	if (!rc)
		rc = save_file(path, write_rows, &rows);
	free(rows.head);
	free(rows.row);
	return rc;
}
