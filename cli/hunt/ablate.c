/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark ablate: what is each flush, fence, wait and comparison of a store good for? */
#include <errno.h>
#include <stdlib.h>
#include "cli/arguments.h"
#include "cli/cli.h"
#include "report/hunt/hunt_report.h"

static const struct option_row rows[] = {
	{.help = "what is tested"},
	ROW_VARIANT,
	ROW_KNOB,
	{"workload", "NAME", "a built-in workload (tidemark list workloads); may be repeated",
	 ARGUMENT(workload)},
	{"place", "TEXT", "only places with this in their names: \"log.c\", \"rt_check\"",
	 ARGUMENT(place)},
	{.help = "Without a workload: every built-in one. Where nothing breaks without a place, "
		 "other hardware gets its turn."},
	{"one-config", NULL, "no other hardware", ARGUMENT(one_config)},
	{.help = "how much"},
	ROW_RUNS("schedules of each workload (=)"),
	{"states", "N", "crash states of each workload at most (=)",
	 ARGUMENT_GIVEN(options.states, 1, UINT64_MAX / 2, states_given)},
	ROW_SEED("of the schedules (=)"),
	OPTION_JOBS(struct arguments, leave_off.how.jobs),
	ROW_TIME(struct arguments, leave_off),
	{.help = "what is written"},
	ROW_OUT,
	ROW_NO_TRACES,
	ROWS_RESULTS,
	OPTION_QUIET(struct arguments, leave_off.quiet),
	OPTION_END};

static const struct options options = {
	"ablate", "STORE [OPTION...]",
	"Takes each flush, fence, wait and comparison of a store away at run time, one at a time, "
	"and prints what breaks without it, or that nothing does (docs/ablation.md).",
	rows,
	"0 every place that breaks nothing is explained in the store's ablation.txt, 1 not so, 2 "
	"usage or bad input, 3 could not tell (--time), 70 internal error, " STATUS_LEFT_OFF};

static int run_ablation(struct ablation *a, struct leave_off *l)
{
	leave_off_begin(l);
	a->options.how = l->how;
	int error = ablate_run(a);
	leave_off_end(l, &error);
	if (error == -ENOENT)
		return fail(EXIT_INTERNAL,
			    "this program has no debug information to find the places with");
	if (a->why[0])
		return fail(error == -EIO ? EXIT_USAGE : EXIT_INTERNAL, "%s", a->why);
	if (error)
		return fail(EXIT_INTERNAL, "%s", driver_error(error));
	if (!a->places && !a->undone)
		return fail(EXIT_USAGE, "--place \"%.60s\": %s has no such place",
			    a->options.place ? a->options.place : "", a->base->store->name);
	struct conclusion end;
	ablate_conclude(a, &end);
	leave_off_conclude(l, &end, a->places, a->places + a->undone, "places are done");
	return leave_off_tell(l, &end, ablate_tree(a), "ablate", 0);
}

/* All arguments are good: *c has one configuration. */
static int ablate(struct arguments *args, const struct campaign *c, bool only_base)
{
	struct ablation *a = calloc(1, sizeof(*a));
	if (!a)
		return fail(EXIT_INTERNAL, "out of memory");
	a->options = (struct ablate_options){.seed = args->options.seed,
					     .runs = args->options.runs,
					     .states = args->options.states,
					     .only_base = only_base,
					     .place = args->place,
					     .out = args->no_traces ? NULL : args->out};
	a->base = &c->config[0];
	a->workload = c->workload;
	a->workloads = c->workloads;
	int status = run_ablation(a, &args->leave_off);
	ablate_free(a);
	free(a);
	return status;
}

int ablate_main(int argc, char **argv)
{
	struct arguments args = {.out = "traces", .options = campaign_default};
	struct campaign c = {0};
	args.options.runs = ablate_default.runs;
	args.options.states = ablate_default.states;
	args.leave_off.how.jobs = arguments_jobs();
	int status = arguments_read(&options, &args, argc, argv);
	if (status >= 0)
		return status;
	if (args.store.n != 1 || args.variant.n > 1)
		return fail(EXIT_USAGE,
			    "ablate: expected one store, and at most one variant (tidemark list)");
	const bool only_base = args.one_config;
	args.one_config = true; /* the others are found by ablate_run() */
	status = arguments_apply(&args, &c);
	if (!status)
		status = arguments_check_outputs(&args);
	if (!status)
		status = ablate(&args, &c, only_base);
	campaign_free(&c);
	return status;
}
