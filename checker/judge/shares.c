/* SPDX-License-Identifier: BSD-3-Clause */
/* See shares.h. As the tables of expect.c and known.c, these are constant once they are read. */
#include "checker/judge/shares.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "scenarios/stores.h"

#define SHARES_STORES 32

/* No count that seeds 1 to 5 gave is above the limit that the other four seeds give; the nearest
 * comes to nine tenths of it. */
#define FAR_DIVISOR 2  /* far above is a half more, */
#define FAR_FEW	    20 /* and so many more */

static struct shares table[SHARES_STORES]; /* by number of the store */
static char mistake[300];
static pthread_once_t once = PTHREAD_ONCE_INIT;

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

int shares_read(struct shares *s, struct text *t)
{
	char *line;
	int rc;
	while ((rc = text_line(t, &line)) > 0) {
		if (text_check_bytes(t, line, strchr(line, '#')))
			return -EINVAL;
		char *rest = text_skip_blanks(line);
		if (!*rest || *rest == '#')
			continue;
		bool column = !strncmp(rest, "column ", strlen("column "));
		if (column)
			text_word(&rest);
		rc = column ? read_column(s, t, rest) : read_line(s, t, rest);
		if (rc)
			return rc;
	}
	return rc;
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

static bool read_store(unsigned number)
{
	struct store_file file = store_shares(number);
	struct input_error error = {0};
	struct text t;
	assert(number < SHARES_STORES);
	char *bytes = strdup(file.text);
	assert(bytes);
	text_start(&t, bytes, strlen(bytes), &error);
	int rc = shares_read(&table[number], &t);
	assert(rc != -ENOMEM);
	if (rc)
		snprintf(mistake, sizeof(mistake), "%s%s: %s", file.path, input_place(&error).text,
			 error.message);
	free(bytes);
	return !rc;
}

static void read_all(void)
{
	for (unsigned i = 0; stores[i] && read_store(i);)
		i++;
}

const char *shares_mistake(void)
{
	pthread_once(&once, read_all);
	return mistake[0] ? mistake : NULL;
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
	unsigned number = 0;
	pthread_once(&once, read_all);
	while (stores[number] != store)
		number++;
	shares_column_name(store, variant, config, name);
	int column = shares_column(&table[number], name);
	const struct shares_line *line = shares_line(&table[number], known_words(row));
	if (column < 0 || !line)
		return false;
	*runs = line->runs[column];
	return true;
}
