/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user gave: messages about it, and checks. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "checker/trace/trace.h"
#include "cli/cli.h"
#include "scenarios/stores.h"

#define MAX_SECONDS (30 * 86400)
#define WORD_MAX    48 /* longer words are not compared: no name is that long */

char failure[FAILURE];

int fail(int status, const char *fmt, ...)
{
	char line[FAILURE];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* Names come from the user; whatever is in them, this stays one line. */
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	progress_line(NULL);
	fprintf(stderr, "tidemark: %s\n", line);
	if (!*failure)
		memcpy(failure, line, sizeof(failure));
	return status;
}

int no_memory(void)
{
	return fail(EXIT_INTERNAL, "out of memory");
}

bool whole_number(const char *text, unsigned long long lo, unsigned long long hi,
		  unsigned long long *out)
{
	char *end;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && !errno && *out >= lo && *out <= hi;
}

bool number_option(const char *name, const char *text, unsigned long long lo, unsigned long long hi,
		   unsigned long long *out)
{
	if (whole_number(text, lo, hi, out))
		return true;
	fail(EXIT_USAGE, "%s: \"%.40s\" is not a whole number from %llu to %llu", name, text, lo,
	     hi);
	return false;
}

bool time_option(const char *name, const char *text, double *seconds)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	unsigned unit = !strcmp(end, "h")	     ? 3600
			: !strcmp(end, "m")	     ? 60
			: !*end || !strcmp(end, "s") ? 1
						     : 0;
	*seconds = (double)n * unit;
	if (text[0] >= '0' && text[0] <= '9' && unit && n && !errno && *seconds <= MAX_SECONDS)
		return true;
	fail(EXIT_USAGE,
	     "%s: \"%.40s\"; expected whole seconds, such as 90, or 90s, 30m or 8h, at most %d "
	     "days",
	     name, text, MAX_SECONDS / 86400);
	return false;
}

char *input_read(const char *path, size_t max, size_t *len, struct input_error *where, int *error)
{
	*error = 0;
	return strcmp(path, "-") ? text_read_path(path, max, len, where, error)
				 : text_read(stdin, max, len, where, error);
}

int input_status(const char *path, int error, const struct input_error *where)
{
	if (!error)
		return 0;
	return fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s%s: %s",
		    strcmp(path, "-") ? path : "standard input", input_place(where).text,
		    where->message[0] ? where->message : strerror(-error));
}

int read_trace(const char *path, struct trace *t, bool cuts)
{
	struct input_error where = {0};
	bool standard = !strcmp(path, "-");
	FILE *in = standard ? stdin : fopen(path, "re");
	if (!in)
		return fail(EXIT_USAGE, "%s: cannot be opened: %s", path, strerror(errno));
	int error = (cuts ? trace_read_any : trace_read_file)(in, t, store_find, &where);
	if (!standard)
		fclose(in);
	return input_status(path, error, &where);
}

/* Letters to insert, remove or change until a is b. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1];
	size_t n = strlen(b);
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0];
		row[0] = i + 1;
		for (unsigned j = 0; j < n; j++) {
			unsigned best = diagonal + (a[i] != b[j]);
			diagonal = row[j + 1];
			if (diagonal + 1 < best)
				best = diagonal + 1;
			if (row[j] + 1 < best)
				best = row[j] + 1;
			row[j + 1] = best;
		}
	}
	return row[n];
}

void nearest_init(struct nearest *n, const char *word)
{
	size_t len = strlen(word);
	unsigned most = len < 6 ? 1 : (unsigned)len / 3; /* letters may be wrong */
	*n = (struct nearest){.word = word, .distance = len > WORD_MAX ? 0 : most + 1};
}

void nearest_try(struct nearest *n, const char *name)
{
	if (!n->distance || strlen(name) > WORD_MAX)
		return;
	unsigned d = distance(n->word, name);
	if (d >= n->distance)
		return;
	n->distance = d;
	snprintf(n->hint, sizeof(n->hint), ", did you mean \"%s\"?", name);
}

json_t *input_json(const char *path)
{
	json_error_t where;
	struct stat st;
	if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
		fail(EXIT_USAGE, "%s: a folder; expected JSON as --json writes it", path);
		return NULL;
	}
	FILE *in = fopen(path, "re");
	json_t *all = in ? json_loadf(in, JSON_REJECT_DUPLICATES, &where) : NULL;
	if (!in)
		fail(EXIT_USAGE, "%s: %s", path, strerror(errno));
	else if (!all && where.line > 0)
		fail(EXIT_USAGE, "%s:%d:%d: %s; expected JSON as --json writes it", path,
		     where.line, where.column, where.text);
	else if (!all)
		fail(EXIT_USAGE, "%s: %s; expected JSON as --json writes it", path, where.text);
	if (in)
		fclose(in);
	return all;
}
