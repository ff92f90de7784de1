/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_ARGUMENTS_H
#define TM_ARGUMENTS_H
/* What `tidemark crashtest` was asked for. */
#include "checker/campaign.h"

#define MAX_CONFIGS 64
#define MAX_KNOBS   32
#define MAX_NAMES   64

struct arguments {
	const char *store[MAX_NAMES], *variant[MAX_NAMES], *workload[MAX_NAMES];
	unsigned stores, variants, workloads;
	const char *knob[MAX_KNOBS];
	unsigned knobs;
	const char *ops, *out, *json;
	bool quiet, no_traces;
	bool runs_given, states_given, faults_given, bounds_given; /* bounds: preemptions or faults */
	struct campaign_options options;
};

/* Read the command line. -1: go on; else the exit status, behind a message or the help. */
int arguments_parse(struct arguments *a, int argc, char **argv);
/*
 * Configurations and workloads of a campaign; c->config has room for MAX_CONFIGS.
 * 0, or the status behind a message; what is in *c is then still the caller's.
 */
int arguments_apply(const struct arguments *a, struct campaign *c);

#endif
