/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark diff: what has changed between two campaigns, by their JSON files. */
#include <getopt.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/options.h"
#include "report/diff.h"
#include "report/text.h"

struct request {
	bool figures, quiet;
};

static const struct option_row rows[] = {
	{"figures", NULL,
	 "compare what depends on the budget, too: crash states, runs, how many of them break",
	 OPTION_FIELD(struct request, figures)},
	{"quiet", NULL, "print nothing: the exit status says it",
	 OPTION_FIELD(struct request, quiet), .letter = 'q'},
	OPTION_END};

static const struct options options = {
	"diff", "BEFORE.json AFTER.json [OPTION...]",
	"Says what has changed between two results of the same command, as it wrote them with "
	"--json: what breaks now and did not, what it is blamed on, what is found or costs "
	"otherwise. How long it took is not compared.",
	rows, "0 nothing has changed, 1 something has, 2 usage or bad input"};

int diff_main(int argc, char **argv)
{
	struct request r = {0};
	struct diff d;
	int status = options_read(&options, &r, argc, argv);
	if (status >= 0)
		return status;
	if (argc - optind != 2)
		return fail(EXIT_USAGE, "diff: expected two JSON files (tidemark diff --help)");
	const char *const name[2] = {argv[optind], argv[optind + 1]};
	json_t *before = input_json(name[0]), *after = before ? input_json(name[1]) : NULL;
	if (!after) {
		json_decref(before);
		return EXIT_USAGE;
	}
	if (diff_open(&d, before, after, r.figures)) {
		status = fail(EXIT_INTERNAL, "out of memory");
	} else if (!diff_comparable(&d)) {
		status = fail(
			EXIT_USAGE,
			"%s and %s: not one entry is in both; expected results of the same command",
			name[0], name[1]);
	} else {
		json_t *all = diff_tree(&d, name);
		if (!r.quiet)
			text_print(all, "diff");
		json_decref(all);
		status = d.changed || d.only[0] || d.only[1] ? EXIT_BROKEN : EXIT_HELD;
	}
	diff_free(&d);
	json_decref(before);
	json_decref(after);
	return status;
}
