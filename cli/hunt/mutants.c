/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark mutants: are the seeded bugs found, and how soon? */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "cli/arguments.h"
#include "cli/cli.h"
#include "report/hunt/hunt_report.h"

struct request {
	struct option_names knob, variant;
	struct mutant_options options;
	struct leave_off leave_off;
};

static const struct option_row rows[] = {
	{"variant", "NAME", "of the bugs named, this one of stores; may be repeated",
	 OPTION_FIELD(struct request, variant)},
	{"knob", "NAME=VALUE",
	 "a knob of the store or the hardware (tidemark list knobs), for a bug and for what it is "
	 "compared with; may be repeated. Bugs of stores that have it",
	 OPTION_FIELD(struct request, knob)},
	{"jobs", "N", "processes (one for each core); results but the times do not depend on it",
	 OPTION_FIELD(struct request, leave_off.how.jobs), 1, 256, .use = OPTION_WORKS},
	{"seed", "N", "of the schedules (=)", OPTION_FIELD(struct request, options.seed), 0,
	 UINT32_MAX},
	{"states", "N", "crash states of the search for one bug at most (=)",
	 OPTION_FIELD(struct request, options.states), 1, UINT64_MAX / 2},
	ROWS_RESULTS,
	ROW_TIME(struct request, leave_off),
	ROW_FAIL_FAST(struct request, leave_off,
		      "leave off at the first bug that is not found, or control that breaks"),
	OPTION_QUIET(struct request, leave_off.quiet),
	ROWS_SHARD(struct request, leave_off.shard),
	OPTION_END};

static const struct options options = {
	"mutants", "[NAME...] [OPTION...]",
	"Looks for each seeded bug (tidemark list bugs) as crashtest would, until it is found. "
	"Without a NAME: all. A NAME is a bug, or a store, or a part of Tidemark: all of its bugs.",
	rows,
	"0 all are found and the controls are clean, 1 not so, 2 usage or bad input, 3 could not "
	"tell (--time; a bug breaks only what breaks without it, too), 70 internal "
	"error, " STATUS_LEFT_OFF};

static int unknown_bug(const char *name)
{
	struct mutant *all = calloc(MUTANTS_MAX, sizeof(*all));
	unsigned n = all ? mutants_list(all) : 0;
	struct nearest near;
	nearest_init(&near, name);
	for (unsigned i = 0; i < n; i++)
		if (all[i].kind != MUTANT_CONTROL)
			nearest_try(&near, all[i].name);
	free(all);
	return fail(EXIT_USAGE, "mutants: no seeded bug \"%.40s\"%s (tidemark list bugs)", name,
		    near.hint);
}

static int choose(struct mutants_run *r, char **name, unsigned names, const struct request *q)
{
	const char *unknown;
	const struct arguments knobs = {.knob = q->knob};
	int status = arguments_knobs(&knobs);
	if (status)
		return status;
	int error = mutants_choose(r, name, names, q->variant.name, q->variant.n, &unknown);
	if (error == -ENOENT)
		return unknown_bug(unknown);
	if (error)
		return fail(EXIT_INTERNAL, "out of memory");
	if (!r->mutants && q->knob.n)
		return fail(EXIT_USAGE,
			    "--knob %.60s: expected a knob and a value that a store has whose bugs "
			    "are named, or the hardware (tidemark list knobs)",
			    q->knob.name[0]);
	return r->mutants
		       ? 0
		       : fail(EXIT_USAGE,
			      "--variant %.40s: expected a bug of those named (tidemark list bugs)",
			      q->variant.n ? q->variant.name[0] : "");
}

static int run_search(struct mutants_run *r, struct request *request)
{
	struct leave_off *l = &request->leave_off;
	unsigned failed;
	int status = leave_off_begin(l);
	if (status)
		return status;
	r->how = l->how;
	int error = mutants_search(r, &failed);
	status = leave_off_end(l, &error);
	if (status >= 0)
		return status;
	if (error == -EIO)
		return fail(EXIT_INTERNAL, "mutants: %s %s: %s", r->mutant[failed].part,
			    r->mutant[failed].name,
			    r->answer[failed].result.text[0] ? r->answer[failed].result.text
							     : strerror(-r->answer[failed].error));
	if (error)
		return fail(EXIT_INTERNAL, "mutants: %s", driver_error(error));
	struct conclusion end;
	mutants_conclude(r, &end);
	leave_off_conclude(l, &end, r->searched, r->mutants, "bugs and controls are done");
	return leave_off_tell(l, &end, mutants_tree(r), "mutants", 0);
}

int mutants_main(int argc, char **argv)
{
	struct request request = {.options = mutant_default,
				  .leave_off.how.jobs = arguments_jobs()};
	int status = options_read(&options, &request, argc, argv);
	if (status >= 0)
		return status;
	if (leave_off_check(&request.leave_off, NULL))
		return EXIT_USAGE;
	struct mutants_run *r = calloc(1, sizeof(*r));
	if (!r)
		return fail(EXIT_INTERNAL, "out of memory");
	r->options = request.options;
	r->options.knob = request.knob.name;
	r->options.knobs = request.knob.n;
	status = choose(r, argv + optind, (unsigned)(argc - optind), &request);
	if (!status)
		status = run_search(r, &request);
	free(r);
	return status;
}
