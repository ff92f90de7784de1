/* SPDX-License-Identifier: BSD-3-Clause */
/* The terminal: colours, the line of progress, lines of text; and the signals that come from it. */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "cli/cli.h"

#define COLUMNS 100

bool colours(FILE *stream)
{
	const char *no = getenv("NO_COLOR");
	return isatty(fileno(stream)) && (!no || !*no);
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

/* --- signals --- */

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
static pid_t parent;

/* Dies of the signal, as whoever called us expects, but leaves the terminal's line clean. */
static void end(int sig)
{
	if (progress_shown && write(STDERR_FILENO, erase, sizeof(erase) - 1) < 0)
		_Exit(EXIT_INTERNAL);
	signal(sig, SIG_DFL);
	raise(sig);
}

/* A campaign's processes have nobody to report to when their parent is gone. */
static void child_starts(void)
{
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (signal(ending[i], SIG_DFL) == SIG_IGN)
			signal(ending[i], SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_Exit(EXIT_INTERNAL);
}

void signals_begin(void)
{
	parent = getpid();
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (signal(ending[i], end) == SIG_IGN)
			signal(ending[i], SIG_IGN); /* nohup, or in the background of a script */
	pthread_atfork(NULL, NULL, child_starts);
}

void signals_catch(void (*handler)(int))
{
	struct sigaction old, new = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_RESETHAND};
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		if (!handler)
			new = (struct sigaction){.sa_handler = end};
		if (!sigaction(ending[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(ending[i], &new, NULL);
	}
}

static void hold(int how)
{
	sigset_t set;
	sigemptyset(&set);
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		sigaddset(&set, ending[i]);
	sigprocmask(how, &set, NULL);
}

void signals_hold(void)
{
	hold(SIG_BLOCK);
}

void signals_release(void)
{
	hold(SIG_UNBLOCK);
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
