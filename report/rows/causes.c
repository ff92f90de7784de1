/* SPDX-License-Identifier: BSD-3-Clause */
/* See causes.h. */
#include "report/rows/causes.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "report/rows/blame_rows.h"

static int read_row(struct text *t, char *rest, void *rows)
{
	struct blame_rows *all = rows;
	struct known_row is;
	int rc = known_read(t, rest, &all->columns, &is);
	if (rc)
		return rc > 0 ? 0 : rc;
	struct blame_row row = {.bare = is.bare, .counted = is.counted, .blame = is.blame};
	snprintf(row.key, sizeof(row.key), "%s", is.configs);
	snprintf(row.words, sizeof(row.words), "%s", is.words + strlen(is.configs) + 1);
	memcpy(row.runs, is.runs, sizeof(row.runs));
	return blame_rows_add(all, &row);
}

/* --- the campaign --- */

/* The variant's own rows, if it has none: that it is compared. */
static int add_variant(struct blame_rows *rows, const struct campaign_config *cfg)
{
	struct blame_row row = {.bare = true, .words = "compared"};
	snprintf(row.key, sizeof(row.key), "%s/*", cfg->variant);
	return known_as_default(cfg->store, cfg->variant) ? 0 : blame_rows_add(rows, &row);
}

static int add_unit(struct blame_rows *rows, const struct campaign *c, unsigned unit)
{
	const char *variant = c->config[unit / c->workloads].variant;
	bool is_default = !strcmp(variant, "default");
	char key[64];
	struct setup s;
	unsigned any = 0;
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		any += c->unit[unit].contract[k].strange.n;
	if (!any)
		return 0;
	snprintf(key, sizeof(key), "%s%s*", is_default ? "" : variant, is_default ? "" : "/");
	int rc = campaign_setup(c, unit, &s);
	for (unsigned k = 0; k < TM_CONTRACTS && !rc; k++)
		rc = blame_rows_add_strange(rows, key, &s, &c->unit[unit].contract[k].strange);
	setup_free(&s);
	return rc;
}

int causes_check(const char *path, struct input_error *error)
{
	struct blame_rows rows = {0};
	int rc = recorded_read(path, &rows.head, read_row, &rows, error);
	blame_rows_free(&rows);
	return rc;
}

int causes_record(const struct campaign *c, const char *path, struct input_error *error)
{
	struct blame_rows rows = {0};
	assert(c->options.all_causes);
	int rc = recorded_read(path, &rows.head, read_row, &rows, error);
	for (unsigned u = 0; u < c->configs * c->workloads && !rc; u++)
		rc = add_unit(&rows, c, u);
	for (unsigned i = 0; i < c->configs && !rc; i++)
		rc = add_variant(&rows, &c->config[i]);
	blame_rows_sort(&rows, true);
	if (!rc)
		rc = blame_rows_save(&rows, path);
	blame_rows_free(&rows);
	return rc;
}

/* --- how often --- */

static void column_name(const struct campaign_config *cfg, char name[KNOWN_WORDS])
{
	known_column_name(cfg->store, cfg->variant, campaign_like(cfg), name);
}

/* Those of the campaign, too. */
static int add_columns(struct known_columns *columns, const struct campaign *c)
{
	char name[KNOWN_WORDS];
	for (unsigned i = 0; i < c->configs; i++) {
		column_name(&c->config[i], name);
		if (known_column(columns, name) >= 0)
			continue;
		if (columns->n == KNOWN_COLUMNS || strlen(name) >= KNOWN_COLUMN)
			return -E2BIG;
		memcpy(columns->name[columns->n++], name, strlen(name) + 1);
	}
	return 0;
}

/* Row number `number` of the store. One about a variant has numbers if any of them is not 0, as
 * most variants have no column. */
static void count_row(struct blame_rows *rows, struct blame_row *row, const struct campaign *c,
		      unsigned number)
{
	char name[KNOWN_WORDS];
	unsigned most;
	row->counted |= !strchr(row->key, '/');
	for (unsigned i = 0; i < c->configs; i++) {
		if (c->config[i].searched)
			continue;
		column_name(&c->config[i], name);
		uint32_t *at = &row->runs[known_column(&rows->columns, name)];
		uint64_t runs = campaign_shown(c, i, number, &most);
		*at = runs > *at ? (uint32_t)runs : *at;
		row->counted |= runs > 0;
	}
}

int shares_record(const struct campaign *c, const char *path, struct input_error *error)
{
	struct blame_rows rows = {0};
	unsigned first, known = known_store_rows(c->config->store, &first);
	char words[sizeof(rows.row->key) + sizeof(rows.row->words)];
	int rc = recorded_read(path, &rows.head, read_row, &rows, error);
	if (!rc)
		rc = add_columns(&rows.columns, c);
	for (unsigned i = 0; i < rows.n && !rc; i++) {
		snprintf(words, sizeof(words), "%s %s", rows.row[i].key, rows.row[i].words);
		for (unsigned k = 0; k < known; k++)
			if (!strcmp(words, known_words(first + k)))
				count_row(&rows, &rows.row[i], c, k);
	}
	if (!rc)
		rc = blame_rows_save(&rows, path);
	blame_rows_free(&rows);
	return rc;
}
