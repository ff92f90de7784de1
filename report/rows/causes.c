/* SPDX-License-Identifier: BSD-3-Clause */
/* See causes.h. */
#include "report/rows/causes.h"
#include <assert.h>
#include <string.h>
#include "checker/judge/known.h"
#include "report/rows/blame_rows.h"

static int read_row(struct text *t, char *rest, void *rows)
{
	const char *configs = text_word(&rest), *wrong = NULL;
	struct blame_row row = {.bare = !strcmp(text_skip_blanks(rest), "compared")};
	snprintf(row.key, sizeof(row.key), "%s", configs);
	snprintf(row.words, sizeof(row.words), "%s", text_skip_blanks(rest));
	if (!row.bare)
		wrong = blame_parse(&row.blame, rest);
	return wrong ? text_wrong(t, "%s", wrong) : blame_rows_add(rows, &row);
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
	if (!rc)
		rc = blame_rows_save(&rows, path, true);
	blame_rows_free(&rows);
	return rc;
}
