/* SPDX-License-Identifier: BSD-3-Clause */
/* See baseline.h. */
#include "checker/judge/baseline.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1u << 20)

/* --- reading --- */

struct reading {
	struct baseline *out;
	struct text text;
	unsigned room;
};

static int make_room(struct reading *r)
{
	struct baseline *b = r->out;
	if (b->n < r->room)
		return 0;
	unsigned room = r->room ? 2 * r->room : 16;
	struct baseline_row *row = realloc(b->row, room * sizeof(*row));
	b->row = row ? row : b->row;
	struct blame *blame = row ? realloc(b->blame, room * sizeof(*blame)) : NULL;
	b->blame = blame ? blame : b->blame;
	r->room = blame ? room : r->room;
	return blame ? 0 : -ENOMEM;
}

static bool same_config(const struct baseline_row *row, const char *store, const char *variant,
			const char *config)
{
	return !strcmp(row->store, store) && !strcmp(row->variant, variant) &&
	       !strcmp(row->config, config);
}

static int take_row(struct reading *r, char *line)
{
	struct baseline *b = r->out;
	struct text *t = &r->text;
	int error = make_room(r);
	if (error)
		return error;
	char *words = text_tidy(line);
	if (!words)
		return -ENOMEM;
	struct baseline_row *row = &b->row[b->n];
	*row = (struct baseline_row){.store = text_word(&line), .words = words};
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

static int read_lines(struct reading *r)
{
	struct text *t = &r->text;
	char *line;
	int rc = text_line(t, &line);
	if (rc <= 0 || strcmp(line, BASELINE_MAGIC) != 0)
		return rc < 0 ? rc : text_wrong(t, "expected \"%s\"", BASELINE_MAGIC);
	while ((rc = text_line(t, &line)) > 0) {
		if (text_check_bytes(t, line, NULL))
			return -EINVAL;
		rc = *text_skip_blanks(line) ? take_row(r, line) : 0;
		if (rc)
			return rc;
	}
	return rc;
}

/* Rows of one configuration are together, those of `blame` likewise. */
static int sort(struct baseline *b)
{
	struct blame *blame = calloc(b->n + 1, sizeof(*blame));
	struct baseline_row *row = calloc(b->n + 1, sizeof(*row));
	unsigned n = 0;
	if (!blame || !row) {
		free(blame);
		free(row);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < b->n; i++) {
		unsigned at = n++;
		while (at && strcmp(row[at - 1].words, b->row[i].words) > 0) {
			row[at] = row[at - 1];
			blame[at] = blame[at - 1];
			at--;
		}
		row[at] = b->row[i];
		blame[at] = b->blame[i];
	}
	free(b->row);
	free(b->blame);
	b->row = row;
	b->blame = blame;
	return 0;
}

int baseline_read(const char *path, struct baseline *out, struct input_error *error)
{
	struct reading r = {.out = out};
	FILE *in = fopen(path, "r");
	size_t len;
	int rc = 0;
	memset(out, 0, sizeof(*out));
	memset(error, 0, sizeof(*error));
	if (!in)
		return -errno;
	out->bytes = text_read(in, FILE_MAX, &len, error, &rc);
	fclose(in);
	if (!out->bytes)
		return rc;
	text_start(&r.text, out->bytes, len, error);
	if (len > FILE_MAX)
		rc = text_wrong(&r.text, "expected at most %u bytes", FILE_MAX);
	if (!rc)
		rc = read_lines(&r);
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
