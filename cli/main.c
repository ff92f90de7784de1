/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark: finds the sub-command. */
#include "cli/cli.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *program = "tidemark";

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *what;
} commands[] = {
	{"crashtest", crashtest_main, "[STORE...]  explore crashes, print what holds and what breaks, write traces"},
	{"replay", replay_main, "FILE...        tell a trace step by step"},
	{"shrink", shrink_main, "FILE           make a trace smaller"},
	{"list", list_main, "[stores|bugs|knobs|workloads|contracts]"},
	{"bench", bench_main, "               measure the simulator"},
};

int fail(int status, const char *fmt, ...)
{
	va_list ap;
	fputs("tidemark: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}

bool number_option(const char *name, const char *text, unsigned long long lo, unsigned long long hi,
		   unsigned long long *out)
{
	char *end;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && *out >= lo && *out <= hi)
		return true;
	fail(EXIT_USAGE, "%s: \"%.40s\" is not a whole number from %llu to %llu", name, text, lo, hi);
	return false;
}

bool colours(FILE *stream)
{
	const char *no = getenv("NO_COLOR");
	return isatty(fileno(stream)) && (!no || !*no);
}

static int usage(FILE *out)
{
	fputs("usage: tidemark COMMAND [OPTION...]   (tidemark COMMAND --help says more)\n\n", out);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
	fputs("\nexit status: 0 as promised, 1 a promise broken, 2 usage or bad input, 3 could not tell,\n"
	      "4 fixed (replay), 70 internal error, 77 skipped\n",
	      out);
	return out == stdout ? 0 : EXIT_USAGE;
}

int main(int argc, char **argv)
{
	program = argv[0];
	if (argc < 2)
		return usage(stderr);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help") || !strcmp(argv[1], "-h"))
		return usage(stdout);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		int status = commands[i].main(argc - 1, argv + 1);
		/* A full disk shows when the last of the output is written. */
		if (fflush(stdout) || ferror(stdout))
			return fail(EXIT_USAGE, "standard output: %s", strerror(errno));
		return status;
	}
	return fail(EXIT_USAGE, "no command \"%.40s\"; there are crashtest, replay, shrink, list, bench", argv[1]);
}
