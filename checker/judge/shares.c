/* SPDX-License-Identifier: BSD-3-Clause */
/* See shares.h. */
#include "checker/judge/shares.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/rows.h"
#include "core/array.h"

#define SHARES_STORES 32

/* No count that seeds 1 to 5 gave is above the limit that the other four seeds give; the nearest
 * comes to nine tenths of it. */
#define FAR_DIVISOR 2  /* far above is a half more, */
#define FAR_FEW	    20 /* and so many more */

static struct shares of_store[SHARES_STORES]; /* by number of the store */

uint64_t shares_limit(uint32_t recorded)
{
	return (uint64_t)recorded + recorded / FAR_DIVISOR + FAR_FEW;
}

/* --- the text --- */

static int read_column(struct shares *s, struct text *t, char *rest)
{
	const char *name = text_word(&rest);
	if (!*name || *text_skip_blanks(rest) || strlen(name) >= sizeof(s->column[0]))
		return text_wrong(t, "expected a configuration's name");
	if (s->lines || s->columns == SHARES_COLUMNS)
		return text_wrong(t, s->lines ? "columns come first" : "too many columns");
	if (shares_column(s, name) >= 0)
		return text_wrong(t, "%s: the same column twice", text_show(name).text);
	memcpy(s->column[s->columns++], name, strlen(name) + 1);
	return 0;
}

static int add_line(struct shares *s)
{
	if (!ARRAY_RESERVE(s->line, s->lines, 1, s->room))
		return -ENOMEM;
	memset(&s->line[s->lines++], 0, sizeof(s->line[0]));
	return 0;
}

static int read_line(struct shares *s, struct text *t, char *rest)
{
	bool more;
	const char *row = text_part(&rest, '|', &more);
	if (!more || !*row || strlen(row) >= sizeof(s->line[0].row))
		return text_wrong(t, "expected \"column CONFIG\" or \"ROW | RUNS ...\"");
	if (shares_line(s, row))
		return text_wrong(t, "the same row twice");
	if (add_line(s))
		return -ENOMEM;
	struct shares_line *line = &s->line[s->lines - 1];
	memcpy(line->row, row, strlen(row) + 1);
	for (unsigned i = 0; i < s->columns; i++) {
		const char *word = text_word(&rest);
		uint64_t runs = 0;
		if (strcmp(word, ".") != 0 && !text_number(word, 1, UINT32_MAX, &runs))
			return text_wrong(t,
					  "expected a number of runs, or \".\", for each column");
		line->runs[i] = (uint32_t)runs;
	}
	return *text_skip_blanks(rest) ? text_wrong(t, "more numbers than columns") : 0;
}

int shares_row(struct text *t, char *rest, void *shares)
{
	bool column = !strncmp(rest, "column ", strlen("column "));
	if (column)
		text_word(&rest);
	return column ? read_column(shares, t, rest) : read_line(shares, t, rest);
}

int shares_column(const struct shares *s, const char *name)
{
	for (unsigned i = 0; i < s->columns; i++)
		if (!strcmp(s->column[i], name))
			return (int)i;
	return -1;
}

struct shares_line *shares_line(const struct shares *s, const char *row)
{
	for (unsigned i = 0; i < s->lines; i++)
		if (!strcmp(s->line[i].row, row))
			return &s->line[i];
	return NULL;
}

void shares_free(struct shares *s)
{
	free(s->line);
	memset(s, 0, sizeof(*s));
}

/* --- what is compiled in --- */

static struct shares *shares_of(const struct tm_store *store)
{
	unsigned number = 0;
	while (stores[number] != store)
		number++;
	assert(number < SHARES_STORES);
	return &of_store[number];
}

static int read_recorded(struct text *t, char *line, void *store)
{
	return shares_row(t, line, shares_of(store));
}

static struct row_table table = {.text = STORE_SHARES, .row = read_recorded, .ascii = true};

const char *shares_mistake(void)
{
	return rows_read(&table);
}

void shares_column_name(const struct tm_store *store, const char *variant, const char *config,
			char name[SHARES_NAME])
{
	const char *base = variant_base(store, variant);
	bool plain = !strcmp(base, "default");
	snprintf(name, SHARES_NAME, "%s%s%s", plain ? "" : base, plain ? "" : "/", config);
}

bool shares_recorded(const struct tm_store *store, const char *variant, const char *config,
		     unsigned row, uint32_t *runs)
{
	char name[SHARES_NAME];
	rows_read(&table);
	const struct shares *s = shares_of(store);
	shares_column_name(store, variant, config, name);
	int column = shares_column(s, name);
	const struct shares_line *line = shares_line(s, known_words(row));
	if (column < 0 || !line)
		return false;
	*runs = line->runs[column];
	return true;
}
