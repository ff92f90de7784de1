/* SPDX-License-Identifier: BSD-3-Clause */
/* See text.h. */
#include "report/text.h"
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"
#include "report/terminal.h"
#include "texts_built.h"

#define WORD 80 /* bytes of a name, or of a format */

/* All files of report/text, after an empty line. */
extern const char report_texts[];
__asm__(".section .rodata\n.global report_texts\nreport_texts:\n.ascii \"\\n\"\n" TEXTS
	".byte 0\n.previous\n");

/* Objects in each other, the innermost first. */
struct scope {
	const json_t *value;
	const struct scope *outer;
};

static FILE *base; /* standard output, or what text_made() makes */
static FILE *out;  /* this; or `line`, which is going to be wrapped */
static char *line;
static size_t line_size;
static unsigned column, indent;

static const char *print_part(const struct scope *in, const char *at, bool live);

/* NULL: there is no such field. */
static const json_t *find(const struct scope *in, const char *path, size_t len)
{
	const json_t *value = NULL;
	if (len == 1 && *path == '.')
		return in->value;
	for (; in && !value; in = in->outer) {
		value = in->value;
		for (size_t from = 0, n; value && from < len; from += n + 1) {
			const char *dot = memchr(path + from, '.', len - from);
			n = dot ? (size_t)(dot - path) - from : len - from;
			value = isdigit((unsigned char)path[from])
					? json_array_get(value, strtoul(path + from, NULL, 10))
					: json_object_getn(value, path + from, n);
		}
	}
	return value;
}

static bool is_true(const json_t *value)
{
	return json_is_string(value)   ? json_string_length(value) > 0
	       : json_is_number(value) ? json_number_value(value) != 0
	       : json_is_array(value)  ? json_array_size(value) > 0
				       : json_is_object(value) || json_is_true(value);
}

/* As printf() has it with `how` after the "%". To be freed. */
static char *text_of(const json_t *value, const char *how, size_t len)
{
	char format[WORD], *text = NULL;
	const bool hex = len && how[len - 1] == 'x';
	const char *type = json_is_string(value)     ? "s"
			   : !json_is_integer(value) ? ""
			   : hex		     ? "llx"
						     : "lld";
	snprintf(format, sizeof(format), "%%%.*s%s", (int)len - hex, how, type);
	assert(json_is_string(value) || json_is_number(value));
	int n = json_is_string(value)	 ? asprintf(&text, format, json_string_value(value))
		: json_is_integer(value) ? asprintf(&text, format, json_integer_value(value))
					 : asprintf(&text, format, json_real_value(value));
	assert(n >= 0);
	return text;
}

/* Its lines stand below each other. */
static void print_bytes(const char *text, size_t len)
{
	const char *end;
	while ((end = memchr(text, '\n', len))) {
		fprintf(out, "%.*s\n%*s", (int)(end - text), text, (int)column, "");
		len -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	fwrite(text, 1, len, out);
	column += (unsigned)len;
}

/* The end of a line of the text itself. */
static void end_line(void)
{
	if (out != base) {
		fclose(out);
		out = base;
		print_wrapped(indent, line);
		free(line);
	} else {
		putc('\n', out);
	}
	column = 0;
}

/* --- what is in braces, and returns what is after them --- */

static const char *choose(const struct scope *in, const char *at, bool live, bool first)
{
	at = print_part(in, at, live && first);
	if (*at == '|')
		at = print_part(in, at + 1, live && !first);
	assert(*at == '}');
	return at + 1;
}

static const char *repeat(const struct scope *in, const char *at, bool live, const json_t *value)
{
	const char *between = print_part(in, at, false),
		   *end = *between == '|' ? print_part(in, between + 1, false) : between;
	const size_t n = json_is_array(value) ? json_array_size(value) : is_true(value);
	for (size_t i = 0; i < n && live; i++) {
		const struct scope one = {json_is_array(value) ? json_array_get(value, i) : value,
					  in};
		print_part(&one, at, true);
		if (i + 1 < n && *between == '|')
			print_part(in, between + 1, true);
	}
	assert(*end == '}');
	return end + 1;
}

static const char *text_named(const char *name, size_t len)
{
	char head[WORD];
	int n = snprintf(head, sizeof(head), "\n@%.*s\n", (int)len, name);
	const char *at = strstr(report_texts, head);
	assert(at);
	return at + n;
}

/* "{>}", "{>9}", "{!red}", "{+name}", "{$word}". */
static void print_mark(const struct scope *in, const char *at, size_t len)
{
	if (*at == '$') {
		const json_t *word = find(in, at + 1, len - 1);
		write_word(out, word ? json_string_value(word) : program);
	} else if (*at == '+') {
		print_part(in, text_named(at + 1, len - 1), true);
	} else if (*at == '!') {
		fputs(base != stdout ? ""
				     : paint(at[1] == 'b'   ? BOLD
					     : at[1] == 'r' ? RED
					     : at[1] == 'g' ? GREEN
					     : at[1] == 'y' ? YELLOW
							    : PLAIN),
		      out);
	} else {
		assert(out == stdout);
		indent = len > 1 ? (unsigned)atoi(at + 1) : column;
		out = open_memstream(&line, &line_size);
		assert(out);
	}
}

static const char *print_braces(const struct scope *in, const char *at, bool live)
{
	const size_t len = strcspn(at, ":?=* }");
	const char *rest = at + len, *end = strchr(rest, '}');
	const json_t *value = find(in, at, len);
	if (*rest == '?')
		return choose(in, rest + 1, live, is_true(value));
	if (*rest == '*')
		return repeat(in, rest + 1, live, value);
	if (*rest == '=') {
		end = strchr(rest, '?');
		char *text = value ? text_of(value, "", 0) : NULL;
		const size_t word = (size_t)(end - rest) - 1;
		bool is = text && strlen(text) == word && !strncmp(text, rest + 1, word);
		free(text);
		return choose(in, end + 1, live, is);
	}
	if (live && strchr("+!>$", *at)) {
		print_mark(in, at, len);
	} else if (live) {
		const size_t how = *rest == ':' ? (size_t)(end - rest) - 1 : 0;
		char *text = text_of(value, rest + 1, how);
		const size_t n = strlen(text);
		print_bytes(text, n - (n && text[n - 1] == '\n'));
		free(text);
		if (*rest == ' ')
			print_bytes(rest, (size_t)(end - rest));
		if (*rest == ' ' && json_integer_value(value) != 1)
			print_bytes("s", 1);
	}
	return end + 1;
}

/* Up to the end of the text, or of this part of it; that is what is returned. */
static const char *print_part(const struct scope *in, const char *at, bool live)
{
	while (*at && *at != '|' && *at != '}' && !(*at == '@' && at[-1] == '\n')) {
		const bool taken = *at == '\\';
		at += taken;
		if (taken && *at == '\n') {
			at += 1 + strspn(at + 1, "\t");
		} else if (*at == '{' && !taken) {
			at = print_braces(in, at + 1, live);
		} else {
			if (live && *at == (taken ? 'n' : '\n'))
				end_line();
			else if (live)
				print_bytes(at, 1);
			at++;
		}
	}
	return at;
}

static void print(FILE *to, const json_t *tree, const char *name)
{
	const struct scope all = {tree, NULL};
	out = base = to;
	column = 0;
	const char *end = print_part(&all, text_named(name, strlen(name)), true);
	assert(out == base && (!*end || *end == '@'));
}

void text_print(const json_t *tree, const char *name)
{
	print(stdout, tree, name);
}

char *text_made(json_t *tree, const char *name)
{
	char *text = TEXT_PRINTED(to, print(to, tree, name));
	json_decref(tree);
	return text;
}
