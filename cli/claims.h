/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_CLAIMS_H
#define TM_CLI_CLAIMS_H
/* What `tidemark claims` was asked for, and its other half, --knobs. */
#include "checker/claims.h"

struct claims_options {
	struct claim_budget budget;
	unsigned jobs;
	const char *out, *json;
	bool quiet, no_traces, list, knobs;
};

/* Set each switch alone; print which verdicts that changes, and compare with what the file says. The exit
 * status. */
int claims_knobs(const struct claims_options *o, const struct claims *all);

#endif
