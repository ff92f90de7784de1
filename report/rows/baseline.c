/* SPDX-License-Identifier: BSD-3-Clause */
/* See baseline.h. */
#include "report/rows/baseline.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/baseline.h"
#include "checker/judge/names.h"
#include "report/rows/blame_rows.h"
#include "report/terminal.h"

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
			     campaign_like(cfg), first);
}

/* "Accepted by known.baseline: erda DUR, efactory (ddio=off) MONO" */
static void print_accepted(const struct report *r, const char *path)
{
	char name[REPORT_NAME];
	unsigned n = 0;
	for (unsigned i = 0; i < r->campaign->configs * TM_CONTRACTS; i++) {
		if (!r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].accepted)
			continue;
		config_name(&r->campaign->config[i / TM_CONTRACTS], name, sizeof(name));
		if (n++)
			printf(", %s", name);
		else
			printf("Accepted by %s: %s", path, name);
		printf(" %s", contract_name(i % TM_CONTRACTS));
	}
	if (n)
		putchar('\n');
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

static int add_strange(struct blame_rows *rows, const struct report *r, unsigned unit, unsigned k)
{
	const struct campaign *c = r->campaign;
	const struct campaign_config *cfg = &c->config[unit / c->workloads];
	char config[CAMPAIGN_NAME], key[sizeof(((struct blame_row *)0)->key)];
	struct setup s;
	int error = campaign_setup(c, unit, &s);
	baseline_config(campaign_like(cfg), config, sizeof(config));
	snprintf(key, sizeof(key), "%s %s %s", cfg->store->name, cfg->variant, config);
	if (!error)
		error = blame_rows_add_strange(rows, key, &s, &c->unit[unit].contract[k].strange);
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

static int add_old(struct blame_rows *rows, const struct report *r)
{
	const struct baseline *b = r->campaign->options.baseline;
	int error = 0;
	for (unsigned i = 0; b && i < b->n && !error; i++) {
		const struct baseline_row *old = &b->row[i];
		struct blame_row row = {.blame = b->blame[i]};
		if (was_gone(r, i))
			continue;
		int len = snprintf(row.key, sizeof(row.key), "%s %s %s", old->store, old->variant,
				   old->config);
		snprintf(row.words, sizeof(row.words), "%s", old->words + len + 1);
		error = blame_rows_add(rows, &row);
	}
	return error;
}

int report_baseline_save(const struct report *r, const char *path, bool *more)
{
	const struct campaign *c = r->campaign;
	struct blame_rows rows = {.head = strdup(BASELINE_MAGIC "\n")};
	int error = rows.head ? add_old(&rows, r) : -ENOMEM;
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
	blame_rows_sort(&rows, false);
	if (!error)
		error = blame_rows_save(&rows, path);
	blame_rows_free(&rows);
	return error;
}
