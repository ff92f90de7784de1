/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_ARGUMENTS_H
#define TM_CLI_ARGUMENTS_H
/* What a command that runs stores was asked for: crashtest, fuzz, count. */
#include <getopt.h>
#include "checker/explore/campaign.h"

#define MAX_CONFIGS 64
#define MAX_KNOBS   32
#define MAX_NAMES   64
#define MAX_VALUES  32

/* Values of struct option. */
enum {
	OPT_VARIANT = 1000,
	OPT_KNOB,
	OPT_WORKLOAD,
	OPT_OPS,
	OPT_RUNS,
	OPT_STATES,
	OPT_SEED,
	OPT_JOBS,
	OPT_DOUBLE,
	OPT_EXHAUSTIVE,
	OPT_PREEMPTIONS,
	OPT_FAULTS,
	OPT_OUT,
	OPT_NO_TRACES,
	OPT_JSON,
	OPT_JUNIT,
	OPT_TIME,
	OPT_CORPUS,
	OPT_REGRESS,
	OPT_VALUE,
	OPT_KEY,
	OPT_FIELDS,
	OPT_QUIET,
	OPT_HELP
};

struct command {
	const char *name;
	const struct option *options; /* ends with .name = NULL; their values are OPT_* */
	void (*help)(void);
};
extern const struct command crashtest_command;

struct arguments {
	const char *store[MAX_NAMES], *variant[MAX_NAMES], *workload[MAX_NAMES];
	unsigned stores, variants, workloads;
	const char *knob[MAX_KNOBS];
	unsigned knobs;
	const char *ops, *out, *json, *junit, *corpus, *regress;
	double seconds;	 /* --time; 0: not given */
	bool one_config; /* the default hardware only, even if nothing else is asked for */
	bool all_stores; /* where none is named: also those that are not tested by default */
	uint32_t value[MAX_VALUES], key; /* bytes; key 0: not given */
	unsigned values;
	bool quiet, no_traces, fields;
	bool runs_given, states_given, faults_given,
		bounds_given; /* bounds: preemptions or faults */
	struct campaign_options options;
};

/* Read the command line. -1: go on; else the exit status, behind a message or the help. */
int arguments_parse(struct arguments *a, const struct command *command, int argc, char **argv);
/*
 * Configurations and workloads of a campaign; c->config has room for MAX_CONFIGS.
 * 0, or the status behind a message; what is in *c is then still the caller's.
 */
int arguments_apply(const struct arguments *a, struct campaign *c);
/* How many processes there are without --jobs: one for each core. */
unsigned arguments_jobs(void);
/* Configurations alone. */
int arguments_configs(const struct arguments *a, struct campaign *c);

#endif
