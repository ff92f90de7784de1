/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark shrink: the smallest case that breaks a trace's contract. */
#include "checker/trace/shrink.h"
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include "checker/trace/trace.h"
#include "checker/trace/wrong.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "core/text/text.h"
#include "report/output.h"

static void progress(void *arg, unsigned operations, unsigned deviations)
{
	const bool *quiet = arg;
	if (!*quiet)
		progress_line("%u operation%s, %u deviation%s", operations, plural(operations),
			      deviations, plural(deviations));
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
	if (error == -ENOTRECOVERABLE) {
		wrong_save(&t->setup, &t->deviations, text, text, sizeof(text));
		return fail(EXIT_INTERNAL, "%s: %s", in, text);
	}
	if (error == -ENOENT) {
		printf("%s: fixed, nothing to shrink%s\n", in, trace_anew(t).text);
		return EXIT_FIXED;
	}
	if (error)
		return fail(EXIT_INTERNAL, "%s: %s", in, strerror(-error));
	error = save_trace(out, &t->setup, &t->deviations, t->contract, text);
	if (error)
		return fail(EXIT_USAGE, "%s: %s", out, strerror(-error));
	unsigned left = workload_ops(&t->setup.w);
	printf("%s: %u operation%s, %u deviation%s (was %u, %u)\n", out, left, plural(left),
	       t->deviations.n, plural(t->deviations.n), operations, deviations);
	return EXIT_HELD;
}

struct request {
	const char *out;
	bool quiet;
};

static const struct option_row rows[] = {{"output", "OUT", "the file to write (FILE)",
					  OPTION_FIELD(struct request, out), .letter = 'o'},
					 OPTION_QUIET(struct request, quiet),
					 OPTION_END};

static const struct options options = {
	"shrink", "FILE [OPTION...]",
	"Writes the smallest case found that breaks the same contract.", rows,
	"0 written, 2 not a good trace, 4 it breaks nothing any more, 70 internal error"};

int shrink_main(int argc, char **argv)
{
	struct request r = {0};
	struct trace t;
	int status = options_read(&options, &r, argc, argv);
	if (status >= 0)
		return status;
	if (optind == argc)
		return fail(EXIT_USAGE, "shrink: no trace named (tidemark shrink --help)");
	if (argc - optind > 1)
		return fail(EXIT_USAGE,
			    "shrink: a second file \"%.60s\"; expected one (and -o OUT)",
			    argv[optind + 1]);
	const char *in = argv[optind], *out = r.out ? r.out : in;
	if (!r.out && !strcmp(in, "-"))
		return fail(
			EXIT_USAGE,
			"shrink: the trace is standard input; expected -o OUT, the file to write");
	status = read_trace(in, &t, false);
	if (status)
		return status;
	status = check_output(r.out ? "-o" : "FILE", out, OUTPUT_TRACE);
	if (!status)
		status = shrink_trace(&t, in, out, r.quiet);
	trace_free(&t);
	return status;
}
