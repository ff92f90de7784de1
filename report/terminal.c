/* SPDX-License-Identifier: BSD-3-Clause */
/* See terminal.h. */
#include "report/terminal.h"
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLUMNS 100

const char *program = "tidemark";

static bool colours(FILE *stream)
{
	const char *no = getenv("NO_COLOR");
	return isatty(fileno(stream)) && (!no || !*no);
}

const char *paint(const char *colour)
{
	return colours(stdout) ? colour : "";
}

/* --- progress --- */

static volatile sig_atomic_t progress_shown;
static const char erase[] = "\r\033[K";

void progress_line(const char *fmt, ...)
{
	va_list ap;
	if (progress_shown)
		fputs(erase, stderr);
	progress_shown = 0;
	if (fmt && isatty(STDERR_FILENO)) {
		progress_shown = 1;
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
	}
	fflush(stderr);
}

bool progress_erase(void)
{
	return !progress_shown || write(STDERR_FILENO, erase, sizeof(erase) - 1) >= 0;
}

/* --- lines of text --- */

void print_wrapped(unsigned indent, const char *text)
{
	unsigned column = indent;
	text += strspn(text, " ");
	while (*text) {
		size_t len = strcspn(text, " ");
		if (column > indent && column + 1 + len > COLUMNS) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)len, text);
		column += (unsigned)len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

void write_word(FILE *out, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	if (*word && !word[strspn(word, plain)]) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", out);
		else
			fputc(*word, out);
	}
	fputc('\'', out);
}

void print_word(const char *word)
{
	write_word(stdout, word);
}

void print_replay(const char *trace)
{
	print_word(program);
	fputs(" replay ", stdout);
	print_word(trace);
}
