/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of a tree of results as JUnit XML. */
#include <errno.h>
#include <string.h>
#include "report/tree.h"

static void put_escaped(FILE *out, unsigned char c)
{
	if (c == '&')
		fputs("&amp;", out);
	else if (c == '<')
		fputs("&lt;", out);
	else if (c == '>')
		fputs("&gt;", out);
	else if (c == '"')
		fputs("&quot;", out);
	else
		fputc(c, out);
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

static const char *element_of(const json_t *one)
{
	const char *result = tree_text(one, "result");
	return strcmp(result, "failed") ? result : "failure";
}

static void write_case(FILE *out, const json_t *one)
{
	const char *suite = tree_text(one, "suite"), *name = tree_text(one, "name"),
		   *text = tree_text(one, "text"), *element = element_of(one);
	fputs("  <testcase", out);
	write_attribute(out, "classname", suite, strlen(suite));
	write_attribute(out, "name", name, strlen(name));
	if (!strcmp(element, "passed")) {
		fputs("/>\n", out);
		return;
	}
	fprintf(out, "><%s", element);
	write_attribute(out, "message", text, strcspn(text, "\n"));
	fputc('>', out);
	if (strcmp(element, "skipped") != 0)
		escape(out, text, strlen(text));
	fprintf(out, "</%s></testcase>\n", element);
}

static unsigned count(const json_t *cases, const char *element, size_t from, size_t to)
{
	unsigned n = 0;
	for (; from < to; from++)
		n += !strcmp(element_of(json_array_get(cases, from)), element);
	return n;
}

static void write_counts(FILE *out, const json_t *cases, size_t from, size_t to)
{
	fprintf(out, " tests=\"%zu\" failures=\"%u\" errors=\"%u\" skipped=\"%u\"", to - from,
		count(cases, "failure", from, to), count(cases, "error", from, to),
		count(cases, "skipped", from, to));
}

static void write_suite(FILE *out, const json_t *cases, size_t from, size_t to, const char *verdict)
{
	const char *suite = tree_text(json_array_get(cases, from), "suite");
	fputs(" <testsuite", out);
	write_attribute(out, "name", suite, strlen(suite));
	write_counts(out, cases, from, to);
	fputs(">\n", out);
	if (!from && *verdict) {
		fputs("  <properties><property name=\"verdict\"", out);
		write_attribute(out, "value", verdict, strlen(verdict));
		fputs("/></properties>\n", out);
	}
	for (; from < to; from++)
		write_case(out, json_array_get(cases, from));
	fputs(" </testsuite>\n", out);
}

/* With the verdict, where there are no others, or these do not say what it says.
 */
static json_t *cases_of(const json_t *tree, const char *verdict)
{
	const json_int_t status = json_integer_value(json_object_get(tree, "status"));
	json_t *all = json_object(), *cases = json_array();
	const bool alone = *verdict && !json_object_get(tree, "test_cases");
	if (alone || (status != EXIT_HELD && status != EXIT_BROKEN))
		tree_case(all,
			  status == EXIT_HELD	  ? CASE_PASSED
			  : status == EXIT_BROKEN ? CASE_FAILED
			  : status == EXIT_UNSURE ? CASE_SKIPPED
						  : CASE_ERROR,
			  "tidemark", "verdict", "%s", verdict);
	json_array_extend(cases, json_object_get(all, "test_cases"));
	json_array_extend(cases, json_object_get(tree, "test_cases"));
	json_decref(all);
	return cases;
}

int tree_write_junit(FILE *out, const void *tree)
{
	const char *verdict = tree_text(tree, "verdict");
	const double seconds = json_number_value(json_object_get(tree, "seconds"));
	json_t *cases = cases_of(tree, verdict);
	const size_t n = json_array_size(cases);
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" JUNIT_MARK, out);
	write_counts(out, cases, 0, n);
	if (seconds > 0)
		fprintf(out, " time=\"%.3f\"", seconds);
	fputs(">\n", out);
	for (size_t from = 0, to; from < n; from = to) {
		const char *suite = tree_text(json_array_get(cases, from), "suite");
		for (to = from; to < n; to++)
			if (strcmp(tree_text(json_array_get(cases, to), "suite"), suite) != 0)
				break;
		write_suite(out, cases, from, to, verdict);
	}
	json_decref(cases);
	return fputs("</testsuites>\n", out) < 0 ? -EIO : 0;
}
