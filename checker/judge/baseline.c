/* SPDX-License-Identifier: BSD-3-Clause */
/* See baseline.h. */
#include "checker/judge/baseline.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"

#define FILE_MAX (1u << 20)

/* --- reading --- */

static bool same_config(const struct baseline_row *row, const char *store, const char *variant,
			const char *config)
{
	return !strcmp(row->store, store) && !strcmp(row->variant, variant) &&
	       !strcmp(row->config, config);
}

static int read_row(struct text *t, char *line, void *baseline)
{
	struct baseline *b = baseline;
	char *words = ARRAY_ROOM_FOR_ONE(b->row, b->n) && ARRAY_ROOM_FOR_ONE(b->blame, b->n)
			      ? text_tidy(line)
			      : NULL;
	if (!words)
		return -ENOMEM;
	struct baseline_row *row = &b->row[b->n];
	*row = (struct baseline_row){.store = text_word(&line), .words = words, .read = b->n};
	row->variant = text_word(&line);
	row->config = text_word(&line);
	b->n++;
	if (!*text_skip_blanks(line))
		return text_wrong(t,
				  "expected STORE VARIANT CONFIG CONTRACT SAW AGAINST [PART...]");
	const char *wrong = blame_parse(&b->blame[b->n - 1], line);
	if (wrong)
		return text_wrong(t, "%s", wrong);
	unsigned same = 0;
	for (unsigned i = 0; i < b->n; i++)
		same += same_config(&b->row[i], row->store, row->variant, row->config);
	return same > KNOWN_ACCEPTED ? text_wrong(t, "expected at most %d rows of a configuration",
						  KNOWN_ACCEPTED)
				     : 0;
}

static int read_rows(struct baseline *b, struct text *t)
{
	char *line;
	int rc = text_line(t, &line);
	if (rc <= 0 || strcmp(line, BASELINE_MAGIC) != 0)
		return rc < 0 ? rc : text_wrong(t, "expected \"%s\"", BASELINE_MAGIC);
	t->ascii = true;
	return text_rows(t, read_row, b);
}

static int by_words(const void *a, const void *b)
{
	const struct baseline_row *x = a, *y = b;
	return strcmp(x->words, y->words);
}

/* Rows of one configuration are together, those of `blame` likewise. */
static int sort(struct baseline *b)
{
	struct blame *blame = calloc(b->n + 1, sizeof(*blame));
	if (!blame)
		return -ENOMEM;
	if (b->n)
		qsort(b->row, b->n, sizeof(b->row[0]), by_words);
	for (unsigned i = 0; i < b->n; i++)
		blame[i] = b->blame[b->row[i].read];
	free(b->blame);
	b->blame = blame;
	return 0;
}

int baseline_read(const char *path, struct baseline *out, struct input_error *error)
{
	struct text t;
	size_t len;
	int rc;
	memset(out, 0, sizeof(*out));
	out->bytes = text_read_path(path, FILE_MAX, &len, error, &rc);
	if (!out->bytes)
		return rc;
	text_start(&t, out->bytes, len, error);
	rc = len > FILE_MAX ? text_wrong(&t, "expected at most %u bytes", FILE_MAX)
			    : read_rows(out, &t);
	return rc ? rc : sort(out);
}

void baseline_free(struct baseline *b)
{
	for (unsigned i = 0; i < b->n; i++)
		free(b->row[i].words);
	free(b->row);
	free(b->blame);
	free(b->bytes);
	memset(b, 0, sizeof(*b));
}

/* --- rows --- */

void baseline_config(const char *name, char *buf, size_t n)
{
	snprintf(buf, n, "%s", name);
	for (char *p = buf; *p; p++)
		*p = *p == ' ' ? ',' : *p;
}

unsigned baseline_rows(const struct baseline *b, const char *store, const char *variant,
		       const char *config, unsigned *first)
{
	char word[256];
	unsigned n = 0;
	baseline_config(config, word, sizeof(word));
	*first = 0;
	for (unsigned i = 0; i < b->n; i++)
		if (same_config(&b->row[i], store, variant, word) && !n++)
			*first = i;
	return n;
}

void baseline_accept(const struct baseline *b, const struct tm_store *store, const char *variant,
		     const char *config, struct known *out)
{
	unsigned first, n = baseline_rows(b, store->name, variant, config, &first);
	known_accept(out, store, variant, config, b->blame + first, n);
}
