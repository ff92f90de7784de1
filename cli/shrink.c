/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark shrink: the smallest case that breaks a trace's contract. */
#include "checker/shrink.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/story.h"

int read_trace(const char *path, struct trace *t);

static void progress(void *arg, unsigned operations, unsigned deviations)
{
	(void)arg;
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "%u operations, %u deviations\n", operations, deviations);
}

int shrink_main(int argc, char **argv)
{
	const char *in = NULL, *out = NULL;
	char text[300];
	struct trace t;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help")) {
			puts("usage: tidemark shrink FILE [-o OUT]\nWrites the smallest case found; OUT is FILE unless named.");
			return 0;
		}
		if (!strcmp(argv[i], "-o") && i + 1 < argc)
			out = argv[++i];
		else if (argv[i][0] == '-' || in)
			return fail(EXIT_USAGE, "shrink: \"%.40s\" was not expected (tidemark shrink --help)", argv[i]);
		else
			in = argv[i];
	}
	if (!in)
		return fail(EXIT_USAGE, "shrink: no trace named (tidemark shrink --help)");
	int status = read_trace(in, &t);
	if (status)
		return status;
	if (t.contract < 0)
		return fail(EXIT_USAGE, "%s: names no broken contract", in);
	unsigned operations = workload_ops(&t.setup.w), deviations = t.deviations.n;
	int error = shrink(&t.setup, &t.deviations, (unsigned)t.contract, text, sizeof(text), progress, NULL);
	if (error == -ENOENT) {
		printf("%s: fixed, nothing to shrink\n", in);
		status = EXIT_FIXED;
	} else if (error) {
		status = fail(EXIT_INTERNAL, "%s: %s", in, strerror(-error));
	} else {
		out = out ? out : in;
		error = trace_save(out, &t.setup, &t.deviations, t.contract, text);
		if (error)
			status = fail(EXIT_USAGE, "%s: %s", out, strerror(-error));
		else
			printf("%s: %u operations, %u deviations (was %u, %u)\n", out, workload_ops(&t.setup.w), t.deviations.n,
			       operations, deviations);
	}
	trace_free(&t);
	return status;
}
