/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_CLAIMS_REPORT_H
#define TM_REPORT_CLAIMS_REPORT_H
/* What `tidemark claims` was asked for, what it found, and its other half, --knobs. */
#include "checker/hunt/claims.h"

struct claims_options {
	struct claim_budget budget;
	unsigned jobs;
	const char *out, *json;
	bool quiet, no_traces, list, knobs;
};

/* A case of a claim that was asked for. */
struct run_case {
	const struct claim *claim;
	const struct claim_case *test;
	unsigned number; /* within the claim, from 1 */
	struct claim_result result;
	char *trace; /* file, NULL if none */
	char text[300];
	unsigned operations, deviations;
	bool whole; /* could not be shrunk */
};

/* What is reported. */
struct claims_report {
	const struct claims_options *options;
	const struct claim *const *claim;
	unsigned claims;
	struct run_case *cases; /* of all these claims, in their order */
	unsigned n;
	uint64_t states;
	double seconds;
};

/* As a table on stdout; as a JSON file: 0 or -errno. */
void claims_print(const struct claims_report *r);
int claims_json(const struct claims_report *r, const char *path);
/* What would be tested. */
void claims_print_list(const struct claim *const *claim, unsigned claims);

/* Test what the file says of each value of each switch, and print it. The exit status. */
int claims_knobs(const struct claims_options *o, const struct claims *all);

#endif
