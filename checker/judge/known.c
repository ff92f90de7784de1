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

static struct known_row {
	const struct tm_store *store;
	const char *configs, *words;
	bool bare; /* it names a variant and explains nothing */
	struct blame blame;
} row[KNOWN_ROWS];
static unsigned rows;

static int read_row(struct text *t, char *line, void *arg);
static struct row_table table = {.text = STORE_CAUSES, .row = read_row};

static unsigned count_rows(const struct tm_store *store, unsigned *first)
{
	unsigned n = 0;
	*first = 0;
	for (unsigned i = 0; i < rows; i++)
		if (row[i].store == store && !n++)
			*first = i;
	return n;
}

static int read_row(struct text *t, char *line, void *arg)
{
	const struct tm_store *store = arg;
	unsigned first;
	char *words = text_tidy(line); /* stays */
	assert(words);
	const char *configs = text_word(&line);
	if (rows == KNOWN_ROWS || count_rows(store, &first) == KNOWN_STORE_ROWS)
		return text_wrong(t, "too many rows");
	if (strlen(words) >= KNOWN_WORDS)
		return text_wrong(t, "a row is too long: at most %d bytes", KNOWN_WORDS - 1);
	row[rows] = (struct known_row){.store = store, .configs = configs, .words = words};
	if (!expect_configs_are(store->name, configs))
		return text_wrong(t, "%s: no such hardware, shape or variant",
				  text_show(configs).text);
	row[rows].bare = strchr(configs, '/') && !strcmp(text_skip_blanks(line), "compared");
	const char *wrong = row[rows].bare ? NULL : blame_parse(&row[rows].blame, line);
	if (wrong)
		return text_wrong(t, "%s", wrong);
	rows++;
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
