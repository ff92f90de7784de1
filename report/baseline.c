/* SPDX-License-Identifier: BSD-3-Clause */
/* See baseline.h. */
#include "report/baseline.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "checker/judge/baseline.h"
#include "checker/judge/names.h"
#include "report/output.h"
#include "report/terminal.h"

#define ROW_KEY	  (REPORT_NAME + 64)
#define ROW_WORDS (ROW_KEY + BLAME_TEXT)

/* --- what it accepts --- */

/* The row was not seen, although all was done in which it could be. */
static bool is_gone(const struct report *r, unsigned config, unsigned row)
{
	return report_is_whole(r, config) &&
	       !(campaign_accepted(r->campaign, config) & 1ull << row);
}

static unsigned rows_of(const struct report *r, unsigned config, unsigned *first)
{
	const struct campaign_config *cfg = &r->campaign->config[config];
	return baseline_rows(r->campaign->options.baseline, cfg->store->name, cfg->variant,
			     cfg->name, first);
}

/* "Accepted by known.baseline: erda DUR, efactory (ddio=off) MONO" */
static void print_accepted(const struct report *r, const char *path)
{
	char *text = NULL, name[REPORT_NAME];
	size_t len;
	unsigned n = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return;
	for (unsigned i = 0; i < r->campaign->configs * TM_CONTRACTS; i++) {
		if (!r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].accepted)
			continue;
		config_name(&r->campaign->config[i / TM_CONTRACTS], name, sizeof(name));
		fprintf(out, "%s %s", n++ ? "," : "", name);
		fprintf(out, " %s", contract_name(i % TM_CONTRACTS));
	}
	if (!fclose(out) && n)
		printf("Accepted by %s:%s\n", path, text);
	free(text);
}

void report_baseline(const struct report *r, const char *path)
{
	const struct baseline *b = r->campaign->options.baseline;
	unsigned first;
	print_accepted(r, path);
	for (unsigned i = 0; i < r->campaign->configs; i++)
		for (unsigned n = rows_of(r, i, &first), row = 0; row < n; row++)
			if (is_gone(r, i, row))
				printf("No longer breaks: remove it from %s: %s\n", path,
				       b->row[first + row].words);
}

/* --- the one that accepts all --- */

struct row {
	char key[ROW_KEY]; /* store, variant, configuration */
	struct blame blame;
	char words[ROW_WORDS]; /* the whole row */
};

struct rows {
	struct row *row;
	unsigned n, room;
};

/* Add it, unless it is a row with something added; rows that are it with something added go. */
static int add_row(struct rows *rows, const struct row *new)
{
	unsigned left = 0;
	for (unsigned i = 0; i < rows->n; i++)
		if (!strcmp(rows->row[i].key, new->key) &&
		    blame_includes(&new->blame, &rows->row[i].blame))
			return 0;
	for (unsigned i = 0; i < rows->n; i++)
		if (strcmp(rows->row[i].key, new->key) != 0 ||
		    !blame_includes(&rows->row[i].blame, &new->blame))
			rows->row[left++] = rows->row[i];
	rows->n = left;
	if (!ARRAY_RESERVE(rows->row, left, 1, rows->room))
		return -ENOMEM;
	rows->row[rows->n++] = *new;
	return 0;
}

static int add_strange(struct rows *rows, const struct report *r, unsigned unit, unsigned k)
{
	const struct campaign *c = r->campaign;
	const struct campaign_config *cfg = &c->config[unit / c->workloads];
	const struct strange *strange = &c->unit[unit].contract[k].strange;
	char config[CAMPAIGN_NAME], words[BLAME_TEXT];
	struct setup s;
	int error = campaign_setup(c, unit, &s);
	baseline_config(cfg->name, config, sizeof(config));
	for (unsigned i = 0; i < strange->n && !error; i++) {
		struct row row = {.blame = strange->one[i].blame};
		blame_coarsen(&row.blame);
		blame_print(&row.blame, s.region, s.regions, words, sizeof(words));
		snprintf(row.key, sizeof(row.key), "%s %s %s", cfg->store->name, cfg->variant,
			 config);
		snprintf(row.words, sizeof(row.words), "%s %s", row.key, words);
		error = add_row(rows, &row);
	}
	setup_free(&s);
	return error;
}

/* A row of the campaign's own baseline: is its configuration in the campaign, and was it not seen?
 */
static bool was_gone(const struct report *r, unsigned number)
{
	unsigned first;
	for (unsigned i = 0; i < r->campaign->configs; i++) {
		unsigned n = rows_of(r, i, &first);
		if (number >= first && number < first + n)
			return is_gone(r, i, number - first);
	}
	return false;
}

static int add_old(struct rows *rows, const struct report *r)
{
	const struct baseline *b = r->campaign->options.baseline;
	int error = 0;
	for (unsigned i = 0; b && i < b->n && !error; i++) {
		const struct baseline_row *old = &b->row[i];
		struct row row = {.blame = b->blame[i]};
		if (was_gone(r, i))
			continue;
		snprintf(row.key, sizeof(row.key), "%s %s %s", old->store, old->variant,
			 old->config);
		snprintf(row.words, sizeof(row.words), "%s", old->words);
		error = add_row(rows, &row);
	}
	return error;
}

static int by_words(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	return strcmp(x->words, y->words);
}

static int write_rows(FILE *out, const void *arg)
{
	const struct rows *rows = arg;
	int failed = fputs(BASELINE_MAGIC "\n", out) == EOF;
	for (unsigned i = 0; i < rows->n; i++)
		failed |= fprintf(out, "%s\n", rows->row[i].words) < 0;
	return failed ? -EIO : 0;
}

int report_baseline_save(const struct report *r, const char *path, bool *more)
{
	const struct campaign *c = r->campaign;
	struct rows rows = {0};
	int error = add_old(&rows, r);
	*more = false;
	for (unsigned u = 0; u < c->configs * c->workloads; u++)
		for (unsigned k = 0; k < TM_CONTRACTS && !error; k++) {
			const struct report_cell *cell = &r->cell[u / c->workloads][k];
			const struct strange *strange = &c->unit[u].contract[k].strange;
			if (!cell->surprise || cell->often || !strange->n)
				continue;
			*more |= strange->more;
			error = add_strange(&rows, r, u, k);
		}
	if (!error && rows.n)
		qsort(rows.row, rows.n, sizeof(rows.row[0]), by_words);
	if (!error)
		error = save_file(path, write_rows, &rows);
	free(rows.row);
	return error;
}
