/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_ARGUMENTS_H
#define TM_CLI_ARGUMENTS_H
/* What the commands that run stores were asked for (crashtest, fuzz, count), and their options in
 * common. */
#include "checker/hunt/plan.h"
#include "cli/leave_off.h"
#include "cli/options.h"
#include "cli/shard.h"

#define MAX_VALUES 32

struct arguments {
	struct option_names store, variant, workload, knob;
	const char *ops, *out, *html, *causes, *shares, *corpus, *regress, *place, *profile;
	const char *baseline, *write_baseline;
	double seconds;	 /* --time */
	bool one_config; /* see struct plan */
	bool searches;	 /* likewise */
	bool all_stores;
	unsigned value[MAX_VALUES], key; /* bytes */
	unsigned values;
	bool verbose, no_traces, fields, advise, annotations;
	bool coverage;
	const char *coverage_dir; /* of --coverage=DIR; NULL: none */
	bool runs_given, states_given, faults_given, preemptions_given, seconds_given;
	const struct budget *budget; /* NULL: that of campaign_default */
	struct leave_off leave_off;
	struct campaign_options options;
};

#define ARGUMENT(member) OPTION_FIELD(struct arguments, member)
#define ARGUMENT_GIVEN(member, lo, hi, flag) \
	ARGUMENT(member), lo, hi, .given = offsetof(struct arguments, flag)

/* The rows that several commands have. */
#define ROW_VARIANT                                                                              \
	{                                                                                        \
		"variant", "NAME", "a variant or a seeded bug (tidemark list); may be repeated", \
			ARGUMENT(variant)                                                        \
	}
#define ROW_KNOB                                                                             \
	{                                                                                    \
		"knob", "NAME=VALUE",                                                        \
			"a knob of the store or the hardware (tidemark list knobs); may be " \
			"repeated",                                                          \
			ARGUMENT(knob)                                                       \
	}
#define ROW_SEED(text)                                                   \
	{                                                                \
		"seed", "N", text, ARGUMENT(options.seed), 0, UINT32_MAX \
	}
#define ROW_RUNS(text)                                                                     \
	{                                                                                  \
		"runs", "N", text, ARGUMENT_GIVEN(options.runs, 1, 1000000000, runs_given) \
	}
#define ROW_OUT                                                                       \
	{                                                                             \
		"out", "DIR", "where traces go (=); it is made if it does not exist", \
			ARGUMENT(out), .use = OPTION_SHOWS                            \
	}
#define ROW_NO_TRACES                                                                     \
	{                                                                                 \
		"no-traces", NULL, "write none", ARGUMENT(no_traces), .use = OPTION_SHOWS \
	}

/* Read the command line; other words name stores. -1: go on; else the exit status. */
int arguments_read(const struct options *o, struct arguments *a, int argc, char **argv);
/* Is there each knob, of each store that is named? 0, or the status after a message. */
int arguments_knobs(const struct arguments *a);
/* Add "NAME=VALUE" to a list of knobs of the hardware, of `max` at most. 0, or the status after a
 * message. */
int hardware_knob_add(const char **list, unsigned *n, unsigned max, const char *text);
/* Check the files and folders that will be written. 0, or the status after a message. */
int arguments_check_outputs(const struct arguments *a);
/*
 * Configurations alone, or with the workloads; the rest of *c is zero. 0, or the status after a
 * message; campaign_free() in any case.
 */
int arguments_configs(const struct arguments *a, struct campaign *c);
int arguments_apply(const struct arguments *a, struct campaign *c);
/* How many there would be if no workload were named. 0, or the status after a message. */
int arguments_usual(const struct arguments *a, unsigned *configs, unsigned *workloads);
/* How many processes there are without --jobs: one for each core. */
unsigned arguments_jobs(void);

#endif
