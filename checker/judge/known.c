/* SPDX-License-Identifier: BSD-3-Clause */
/* The known causes of the stores' breaks. */
#include "checker/judge/known.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/expect.h"
#include "checker/judge/rows.h"
#include "checker/judge/surprise.h"

#define STORES 32

/* No count that seeds 1 to 5 gave is above the limit that the other four seeds give; the nearest
 * comes to nine tenths of it. */
#define FAR_DIVISOR 2  /* far above is a half more, */
#define FAR_FEW	    20 /* and so many more */

static struct known_row row[KNOWN_ROWS];
static unsigned rows;
static struct known_columns columns_of[STORES]; /* by number of the store */

static int read_row(struct text *t, char *line, void *arg);
static struct row_table table = {.text = STORE_CAUSES, .row = read_row};

/* --- the text --- */

int known_column(const struct known_columns *columns, const char *name)
{
	for (unsigned i = 0; i < columns->n; i++)
		if (!strcmp(columns->name[i], name))
			return (int)i;
	return -1;
}

static int read_column(struct text *t, char *rest, struct known_columns *columns)
{
	const char *name = text_word(&rest);
	if (!*name || *text_skip_blanks(rest) || strlen(name) >= KNOWN_COLUMN)
		return text_wrong(t, "expected a configuration's name");
	if (columns->end || columns->n == KNOWN_COLUMNS)
		return text_wrong(t, columns->end ? "columns come first" : "too many columns");
	if (known_column(columns, name) >= 0)
		return text_wrong(t, "%s: the same column twice", text_show(name).text);
	snprintf(columns->name[columns->n++], KNOWN_COLUMN, "%s", name);
	return 1;
}

static int read_runs(struct text *t, char *rest, unsigned columns, uint32_t runs[KNOWN_COLUMNS])
{
	for (unsigned i = 0; i < columns; i++) {
		const char *word = text_word(&rest);
		uint64_t n = 0;
		if (strcmp(word, ".") != 0 && !text_number(word, 1, UINT32_MAX, &n))
			return text_wrong(t,
					  "expected a number of runs, or \".\", for each column");
		runs[i] = (uint32_t)n;
	}
	return *text_skip_blanks(rest) ? text_wrong(t, "more numbers than columns") : 0;
}

int known_read(struct text *t, char *line, struct known_columns *columns, struct known_row *out)
{
	if (!strncmp(line, "column ", strlen("column ")))
		return read_column(t, line + strlen("column "), columns);
	memset(out, 0, sizeof(*out));
	columns->end = true;
	char *rest = text_part(&line, '|', &out->counted), *words = text_tidy(rest);
	assert(words);
	size_t len = strlen(words);
	snprintf(out->words, sizeof(out->words), "%s", words);
	free(words);
	if (len >= KNOWN_WORDS)
		return text_wrong(t, "a row is too long: at most %d bytes", KNOWN_WORDS - 1);
	out->configs = text_word(&rest);
	out->bare = strchr(out->configs, '/') && !strcmp(text_skip_blanks(rest), "compared");
	const char *wrong = out->bare ? NULL : blame_parse(&out->blame, rest);
	if (wrong)
		return text_wrong(t, "%s", wrong);
	return out->counted ? read_runs(t, line, columns->n, out->runs) : 0;
}

/* --- what is compiled in --- */

static struct known_columns *store_columns(const struct tm_store *store)
{
	unsigned number = 0;
	while (stores[number] != store)
		number++;
	assert(number < STORES);
	return &columns_of[number];
}

/* They are together. */
static unsigned count_rows(const struct tm_store *store, unsigned *first)
{
	unsigned end = rows;
	while (end && row[end - 1].store != store)
		end--;
	*first = end;
	while (*first && row[*first - 1].store == store)
		--*first;
	return end - *first;
}

static int read_row(struct text *t, char *line, void *arg)
{
	const struct tm_store *store = arg;
	unsigned first;
	if (rows == KNOWN_ROWS || count_rows(store, &first) == KNOWN_STORE_ROWS)
		return text_wrong(t, "too many rows");
	int rc = known_read(t, line, store_columns(store), &row[rows]);
	if (rc)
		return rc > 0 ? 0 : rc;
	if (!expect_configs_are(store->name, row[rows].configs))
		return text_wrong(t, "%s: no such hardware, shape or variant",
				  text_show(row[rows].configs).text);
	row[rows++].store = store;
	return 0;
}

const char *known_mistake(void)
{
	return rows_read(&table);
}

/* Contracts whose breaking is no surprise in itself. */
static unsigned expected_to_break(const struct tm_store *store, const char *variant,
				  const char *config)
{
	unsigned set = 0;
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		const struct surprise_cell cell = {.store = store,
						   .variant = variant,
						   .config = config,
						   .contract = c,
						   .broken = true};
		const char *why;
		if (!surprise_in_cell(&cell, &why))
			set |= TM_BIT(c);
	}
	return set;
}

/* Is the row about the variant under the configuration? */
static bool is_about(const struct known_row *r, const char *variant, const char *config)
{
	const char *list = r->configs, *slash = strchr(list, '/');
	size_t len = slash ? (size_t)(slash - list) : 0;
	if (slash && (len != strlen(variant) || strncmp(list, variant, len) != 0))
		return false;
	return expect_names(r->store->name, slash ? slash + 1 : list, config);
}

void known_nothing(const struct tm_store *store, const char *variant, const char *config,
		   struct known *out)
{
	memset(out, 0, sizeof(*out));
	out->compared = expected_to_break(store, variant, config);
}

bool known_as_default(const struct tm_store *store, const char *variant)
{
	const struct tm_variant *v = variant_find(store, variant);
	return (v && v->breaks) || !strcmp(variant, "default");
}

/* Do rows about all variants include it? Variants that are no bugs have causes of their own. */
static bool has_star(const struct tm_store *store, const char *variant, const char *config)
{
	return known_as_default(store, variant) && expect_names(store->name, "*", config);
}

bool known_rows(const struct tm_store *store, const char *variant, const char *config,
		struct known *out)
{
	bool any = false, named = has_star(store, variant, config);
	rows_read(&table);
	memset(out, 0, sizeof(*out));
	count_rows(store, &out->first);
	for (unsigned i = 0; i < rows; i++) {
		any |= row[i].store == store;
		if (row[i].store != store || !is_about(&row[i], variant, config))
			continue;
		named |= strchr(row[i].configs, '/') || !strcmp(variant, "default");
		if (!row[i].bare)
			out->row.bits[i / 64] |= 1ull << i % 64;
	}
	return any && named;
}

void known_find(const struct tm_store *store, const char *variant, const char *config,
		struct known *out)
{
	if (known_rows(store, variant, config, out))
		out->compared = expected_to_break(store, variant, config);
}

void known_accept(struct known *k, const struct tm_store *store, const char *variant,
		  const char *config, const struct blame *accepted, unsigned n)
{
	const unsigned expected = expected_to_break(store, variant, config);
	assert(n <= KNOWN_ACCEPTED);
	k->accepted = accepted;
	k->accepteds = n;
	for (unsigned i = 0; i < n; i++)
		k->strict |= TM_BIT(accepted[i].contract) & ~expected;
	k->compared |= k->strict;
}

void known_collect(struct known *k)
{
	k->collected = (TM_BIT(TM_CONTRACTS) - 1) & ~k->compared;
}

void known_only(struct known *k, unsigned only)
{
	assert(only < rows && !row[only].bare);
	memset(&k->row, 0, sizeof(k->row));
	k->row.bits[only / 64] = 1ull << only % 64;
	k->inverted = true;
}

bool known_explains(const struct known *k, const struct blame *b, struct known_set *which)
{
	bool any = false;
	assert(k->compared & TM_BIT(b->contract));
	if (b->full)
		return true;
	for (unsigned w = 0; w < KNOWN_ROWS / 64; w++)
		for (uint64_t left = k->row.bits[w]; left && (which || !any); left &= left - 1) {
			uint64_t bit = left & -left;
			unsigned number = w * 64 + (unsigned)__builtin_ctzll(bit);
			if (!blame_includes(b, &row[number].blame))
				continue;
			any = true;
			if (which)
				which->bits[w] |= bit;
		}
	for (unsigned i = 0; i < k->accepteds && !k->inverted && (which || !any); i++) {
		if (!blame_includes(b, &k->accepted[i]))
			continue;
		any = true;
		if (which)
			which->accepted |= 1ull << i;
	}
	return any != k->inverted;
}

unsigned known_store_rows(const struct tm_store *store, unsigned *first)
{
	rows_read(&table);
	return count_rows(store, first);
}

const char *known_words(unsigned number)
{
	assert(number < rows);
	return row[number].words;
}

unsigned known_contract(unsigned number)
{
	assert(number < rows);
	return row[number].blame.contract;
}

/* --- how often --- */

uint64_t known_limit(uint32_t recorded)
{
	return (uint64_t)recorded + recorded / FAR_DIVISOR + FAR_FEW;
}

void known_column_name(const struct tm_store *store, const char *variant, const char *config,
		       char name[KNOWN_WORDS])
{
	const char *base = variant_base(store, variant);
	bool plain = !strcmp(base, "default");
	snprintf(name, KNOWN_WORDS, "%s%s%s", plain ? "" : base, plain ? "" : "/", config);
}

bool known_share(const struct tm_store *store, const char *variant, const char *config,
		 unsigned number, uint32_t *runs)
{
	char name[KNOWN_WORDS];
	rows_read(&table);
	assert(number < rows);
	known_column_name(store, variant, config, name);
	int column = known_column(store_columns(store), name);
	if (column < 0 || !row[number].counted)
		return false;
	*runs = row[number].runs[column];
	return true;
}
