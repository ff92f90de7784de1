/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark list: what there is to choose from. */
#include <getopt.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/options.h"
#include "report/catalogue.h"

static const struct option_row rows[] = {OPTION_END};

static const struct options options = {
	"list", "[stores|variants|bugs|knobs|workloads|contracts|failures|operations|costs]",
	"Without an argument: all of them. Bugs are variants too: crashtest --variant takes both.",
	rows, "0, 2 usage"};

static int unknown(const char *what)
{
	struct nearest n;
	nearest_init(&n, what);
	for (const struct catalogue_section *s = catalogue; s->name; s++)
		nearest_try(&n, s->name);
	return fail(EXIT_USAGE, "list: no \"%.40s\"%s (tidemark list --help)", what, n.hint);
}

int list_main(int argc, char **argv)
{
	int status = options_read(&options, NULL, argc, argv);
	if (status >= 0)
		return status;
	const char *what = optind < argc ? argv[optind++] : "all";
	status = options_end(&options, argc, argv);
	if (status >= 0)
		return status;
	bool all = !strcmp(what, "all"), known = all;
	for (const struct catalogue_section *s = catalogue; s->name; s++) {
		if (!all && strcmp(what, s->name) != 0)
			continue;
		if (all)
			printf("== %s\n", s->name);
		s->print();
		known = true;
	}
	return known ? EXIT_HELD : unknown(what);
}
