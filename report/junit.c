/* SPDX-License-Identifier: BSD-3-Clause */
/* See junit.h. */
#include "report/junit.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/output.h"

void junit_add(struct junit *j, enum junit_result result, const char *suite, const char *name,
	       const char *fmt, ...)
{
	struct junit_case test = {.result = result, .suite = strdup(suite), .name = strdup(name)};
	va_list ap;
	if (j->tests == j->room) {
		unsigned room = j->room ? 2 * j->room : 32;
		struct junit_case *grown = realloc(j->test, room * sizeof(*grown));
		j->no_memory |= !grown;
		j->test = grown ? grown : j->test;
		j->room = grown ? room : j->room;
	}
	va_start(ap, fmt);
	if (fmt && vasprintf(&test.text, fmt, ap) < 0)
		test.text = NULL;
	va_end(ap);
	j->no_memory |= !test.suite || !test.name || (fmt && !test.text);
	if (!j->no_memory) {
		j->test[j->tests++] = test;
		return;
	}
	free(test.suite);
	free(test.name);
	free(test.text);
}

void junit_took(struct junit *j, double seconds)
{
	const unsigned last = j->tests ? j->tests - 1 : 0;
	for (unsigned i = j->tests; i && !strcmp(j->test[i - 1].suite, j->test[last].suite); i--)
		j->test[i - 1].took = seconds;
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
	static const char *const element[JUNIT_RESULTS] = {
		[JUNIT_FAILED] = "failure", [JUNIT_SKIPPED] = "skipped", [JUNIT_ERROR] = "error"};
	const char *name = element[t->result];
	fputs("  <testcase", out);
	write_attribute(out, "classname", t->suite, strlen(t->suite));
	write_attribute(out, "name", t->name, strlen(t->name));
	if (t->result == JUNIT_PASSED) {
		fputs("/>\n", out);
		return;
	}
	fprintf(out, "><%s", name);
	write_attribute(out, "message", t->text, strcspn(t->text, "\n"));
	fputc('>', out);
	if (t->result != JUNIT_SKIPPED)
		escape(out, t->text, strlen(t->text));
	fprintf(out, "</%s></testcase>\n", name);
}

static void write_verdict(FILE *out, const char *text)
{
	fputs("  <properties><property name=\"verdict\"", out);
	write_attribute(out, "value", text, strlen(text));
	fputs("/></properties>\n", out);
}

/* What was not measured has no time. */
static void write_time(FILE *out, double seconds)
{
	if (seconds > 0)
		fprintf(out, " time=\"%.3f\"", seconds);
}

static unsigned count(const struct junit *j, enum junit_result result, unsigned from, unsigned to)
{
	unsigned n = 0;
	for (; from < to; from++)
		n += j->test[from].result == result;
	return n;
}

static void write_counts(FILE *out, const struct junit *j, unsigned from, unsigned to)
{
	fprintf(out, " tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"%u\"", to - from,
		count(j, JUNIT_FAILED, from, to), count(j, JUNIT_ERROR, from, to),
		count(j, JUNIT_SKIPPED, from, to));
}

static int write_all(FILE *out, const void *arg)
{
	const struct junit *j = arg;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" JUNIT_MARK, out);
	write_counts(out, j, 0, j->tests);
	write_time(out, j->seconds);
	fputs(">\n", out);
	for (unsigned from = 0, to; from < j->tests; from = to) {
		const char *suite = j->test[from].suite;
		for (to = from; to < j->tests && !strcmp(j->test[to].suite, suite); to++)
			;
		fputs(" <testsuite", out);
		write_attribute(out, "name", suite, strlen(suite));
		write_counts(out, j, from, to);
		write_time(out, j->test[from].took);
		fputs(">\n", out);
		if (!from && j->verdict)
			write_verdict(out, j->verdict);
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
		free(j->test[i].text);
	}
	free(j->test);
	free(j->verdict);
	memset(j, 0, sizeof(*j));
}
