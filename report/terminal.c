/* SPDX-License-Identifier: BSD-3-Clause */
/* See terminal.h. */
#include "report/terminal.h"
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "checker/explore/clock.h"

#define COLUMNS	     100 /* of text at most */
#define COLUMNS_MIN  60
#define LINE_EVERY_S 30 /* of progress, where stderr is no terminal */

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

/* Where lines cannot change, there is one now and then. */
static bool is_due(void)
{
	static double last;
	double now = clock_seconds();
	if (!last)
		last = now;
	if (now - last < LINE_EVERY_S)
		return false;
	last = now;
	return true;
}

void progress_line(const char *fmt, ...)
{
	bool terminal = isatty(STDERR_FILENO);
	va_list ap;
	if (progress_shown)
		fputs(erase, stderr);
	progress_shown = 0;
	if (fmt && (terminal || is_due())) {
		progress_shown = terminal;
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
		if (!terminal)
			fputc('\n', stderr);
	}
	fflush(stderr);
}

bool progress_erase(void)
{
	return !progress_shown || write(STDERR_FILENO, erase, sizeof(erase) - 1) >= 0;
}

/* --- lines of text --- */

/* Text is as wide as the terminal, within limits. */
static unsigned columns(void)
{
	struct winsize size;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || size.ws_col > COLUMNS)
		return COLUMNS;
	return size.ws_col < COLUMNS_MIN ? COLUMNS_MIN : size.ws_col;
}

void print_wrapped(unsigned indent, const char *text)
{
	unsigned column = indent;
	const unsigned width = columns();
	text += strspn(text, " ");
	while (*text) {
		size_t len = strcspn(text, " ");
		if (column > indent && column + 1 + len > width) {
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
