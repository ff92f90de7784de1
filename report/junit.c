/* SPDX-License-Identifier: BSD-3-Clause */
/* See junit.h. */
#include "report/junit.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/output.h"

void junit_add(struct junit *j, const char *suite, const char *name, const char *fmt, ...)
{
	struct junit_case test = {.suite = strdup(suite), .name = strdup(name)};
	va_list ap;
	if (j->tests == j->room) {
		unsigned room = j->room ? 2 * j->room : 32;
		struct junit_case *grown = realloc(j->test, room * sizeof(*grown));
		j->no_memory |= !grown;
		j->test = grown ? grown : j->test;
		j->room = grown ? room : j->room;
	}
	va_start(ap, fmt);
	if (fmt && vasprintf(&test.failure, fmt, ap) < 0)
		test.failure = NULL;
	va_end(ap);
	j->no_memory |= !test.suite || !test.name || (fmt && !test.failure);
	if (!j->no_memory) {
		j->test[j->tests++] = test;
		return;
	}
	free(test.suite);
	free(test.name);
	free(test.failure);
}

void junit_took(struct junit *j, double seconds)
{
	const unsigned last = j->tests ? j->tests - 1 : 0;
	for (unsigned i = j->tests; i && !strcmp(j->test[i - 1].suite, j->test[last].suite); i--)
		j->test[i - 1].took = seconds;
}

void junit_skip(struct junit *j, const char *suite, const char *name, const char *why)
{
	junit_add(j, suite, name, NULL);
	if (j->no_memory)
		return;
	struct junit_case *test = &j->test[j->tests - 1];
	test->skipped = strdup(why);
	j->no_memory = !test->skipped;
}

/* The first `n` bytes of a text. What XML cannot say, and what is not ASCII, becomes a question
 * mark. */
static void escape(FILE *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		put_escaped(out, (c >= ' ' && c < 0x7f) || c == '\n' || c == '\t' ? c : '?');
	}
}

static void write_attribute(FILE *out, const char *name, const char *text, size_t n)
{
	fprintf(out, " %s=\"", name);
	escape(out, text, n);
	fputc('"', out);
}

static void write_case(FILE *out, const struct junit_case *t)
{
	fputs("  <testcase", out);
	write_attribute(out, "classname", t->suite, strlen(t->suite));
	write_attribute(out, "name", t->name, strlen(t->name));
	if (t->skipped) {
		fputs("><skipped", out);
		write_attribute(out, "message", t->skipped, strlen(t->skipped));
		fputs("/></testcase>\n", out);
		return;
	}
	if (!t->failure) {
		fputs("/>\n", out);
		return;
	}
	fputs("><failure", out);
	write_attribute(out, "message", t->failure, strcspn(t->failure, "\n"));
	fputc('>', out);
	escape(out, t->failure, strlen(t->failure));
	fputs("</failure></testcase>\n", out);
}

/* What was not measured has no time. */
static void write_time(FILE *out, double seconds)
{
	if (seconds > 0)
		fprintf(out, " time=\"%.3f\"", seconds);
}

static unsigned failures(const struct junit *j, unsigned from, unsigned to)
{
	unsigned n = 0;
	for (; from < to; from++)
		n += j->test[from].failure != NULL;
	return n;
}

static unsigned skips(const struct junit *j, unsigned from, unsigned to)
{
	unsigned n = 0;
	for (; from < to; from++)
		n += j->test[from].skipped != NULL;
	return n;
}

static int write_all(FILE *out, const void *arg)
{
	const struct junit *j = arg;
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" JUNIT_MARK " tests=\"%u\" "
		"failures=\"%u\"",
		j->tests, failures(j, 0, j->tests));
	write_time(out, j->seconds);
	fputs(">\n", out);
	for (unsigned from = 0, to; from < j->tests; from = to) {
		const char *suite = j->test[from].suite;
		for (to = from; to < j->tests && !strcmp(j->test[to].suite, suite); to++)
			;
		fputs(" <testsuite", out);
		write_attribute(out, "name", suite, strlen(suite));
		fprintf(out, " tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"%u\"", to - from,
			failures(j, from, to), skips(j, from, to));
		write_time(out, j->test[from].took);
		fputs(">\n", out);
		for (unsigned i = from; i < to; i++)
			write_case(out, &j->test[i]);
		fputs(" </testsuite>\n", out);
	}
	return fputs("</testsuites>\n", out) < 0 ? -EIO : 0;
}

int junit_save(const struct junit *j, const char *path)
{
	return j->no_memory ? -ENOMEM : save_file(path, write_all, j);
}

void junit_free(struct junit *j)
{
	for (unsigned i = 0; i < j->tests; i++) {
		free(j->test[i].suite);
		free(j->test[i].name);
		free(j->test[i].failure);
		free(j->test[i].skipped);
	}
	free(j->test);
	memset(j, 0, sizeof(*j));
}
