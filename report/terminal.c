/* SPDX-License-Identifier: BSD-3-Clause */
/* See terminal.h. */
#include "core/clock.h"
#include "report/terminal.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS		100 /* of text at most */
#define COLUMNS_MIN	60
#define LINE_EVERY_S	30 /* of progress, where stderr is no terminal */
#define REPAINT_EVERY_S 0.1

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

int output_flush(void)
{
	static int first; /* the error of a stream does not say which one it was */
	errno = 0;
	if ((fflush(stdout) || ferror(stdout)) && !first)
		first = errno ? errno : EIO;
	return -first;
}

/* --- progress --- */

static volatile sig_atomic_t progress_shown;
static const char erase[] = "\r\033[K";

/* The line changes a few times in a second; where it cannot change, there is one now and then. */
static bool is_due(bool terminal)
{
	static double last;
	const double now = clock_seconds(), every = terminal ? REPAINT_EVERY_S : LINE_EVERY_S;
	if (terminal && !progress_shown)
		last = 0; /* there is none yet */
	else if (!last)
		last = now;
	if (now - last < every)
		return false;
	last = now;
	return true;
}

/* How many columns a terminal has; 0: it is none, or does not say. */
static unsigned width_of(int fd)
{
	struct winsize size;
	return ioctl(fd, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

static void show_line(const char *text, bool terminal)
{
	unsigned width = width_of(STDERR_FILENO);
	/* A line that goes on in the next one could not be taken away. */
	if (terminal)
		fprintf(stderr, "%s%.*s", progress_shown ? erase : "",
			width ? (int)width - 1 : COLUMNS, text);
	else
		fprintf(stderr, "tidemark: %s\n", text);
	progress_shown = terminal;
}

void progress_line(const char *fmt, ...)
{
	char text[2 * COLUMNS];
	va_list ap;
	if (!fmt && progress_shown) {
		fputs(erase, stderr);
		progress_shown = 0;
	}
	bool terminal = isatty(STDERR_FILENO);
	if (fmt && is_due(terminal)) {
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		show_line(text, terminal);
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
	unsigned width = width_of(STDOUT_FILENO);
	if (!width || width > COLUMNS)
		return COLUMNS;
	return width < COLUMNS_MIN ? COLUMNS_MIN : width;
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
