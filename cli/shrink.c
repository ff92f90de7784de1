/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark shrink: the smallest case that breaks a trace's contract. */
#include "checker/trace/shrink.h"
#include <errno.h>
#include <string.h>
#include "checker/trace/trace.h"
#include "cli/cli.h"
#include "report/output.h"

static void progress(void *arg, unsigned operations, unsigned deviations)
{
	const bool *quiet = arg;
	if (!*quiet)
		progress_line("%u operations, %u deviations", operations, deviations);
}

static int shrink_trace(struct trace *t, const char *in, const char *out, bool quiet)
{
	char text[300];
	unsigned operations = workload_ops(&t->setup.w), deviations = t->deviations.n;
	if (t->contract < 0)
		return fail(EXIT_USAGE,
			    "%s: \"broken none\"; expected a trace of a broken contract", in);
	int error = shrink(&t->setup, &t->deviations, (unsigned)t->contract, text, sizeof(text),
			   progress, &quiet);
	progress_line(NULL);
	if (error == -ENOENT) {
		printf("%s: fixed, nothing to shrink\n", in);
		return EXIT_FIXED;
	}
	if (error)
		return fail(EXIT_INTERNAL, "%s: %s", in, strerror(-error));
	error = save_trace(out, &t->setup, &t->deviations, t->contract, text);
	if (error)
		return fail(EXIT_USAGE, "%s: %s", out, strerror(-error));
	printf("%s: %u operations, %u deviations (was %u, %u)\n", out, workload_ops(&t->setup.w),
	       t->deviations.n, operations, deviations);
	return EXIT_HELD;
}

int shrink_main(int argc, char **argv)
{
	const char *in = NULL, *out = NULL;
	bool quiet = false;
	struct trace t;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help")) {
			puts("usage: tidemark shrink FILE [-o OUT] [-q]\n"
			     "Writes the smallest case found that breaks the same contract.\n\n"
			     "  -o OUT       the file to write (FILE)\n"
			     "  -q, --quiet  no progress\n"
			     "  --help       this text\n\n"
			     "exit status: 0 written, 2 not a good trace, 4 it breaks nothing any "
			     "more, 70 "
			     "internal error");
			return 0;
		}
		if (!strcmp(argv[i], "-o")) {
			if (i + 1 == argc)
				return fail(EXIT_USAGE, "shrink: -o wants the name of a file");
			out = argv[++i];
		} else if (!strcmp(argv[i], "-q") || !strcmp(argv[i], "--quiet")) {
			quiet = true;
		} else if (argv[i][0] == '-') {
			return fail(EXIT_USAGE,
				    "shrink: unknown option \"%.40s\" (tidemark shrink --help)",
				    argv[i]);
		} else if (in) {
			return fail(EXIT_USAGE,
				    "shrink: a second file \"%.60s\"; expected one (and -o OUT)",
				    argv[i]);
		} else {
			in = argv[i];
		}
	}
	if (!in)
		return fail(EXIT_USAGE, "shrink: no trace named (tidemark shrink --help)");
	out = out ? out : in;
	int status = read_trace(in, &t);
	if (status)
		return status;
	status = check_output("-o", out);
	if (!status)
		status = shrink_trace(&t, in, out, quiet);
	trace_free(&t);
	return status;
}
