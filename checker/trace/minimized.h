/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CASES_H
#define TM_CASES_H
/*
 * Cases of a contract that broke in a campaign, as small as they get. Of those with one
 * fingerprint, which are most likely of one cause, the first stays.
 */
#include "checker/explore/campaign.h"
#include "checker/trace/fingerprint.h"

#define CASES_MAX    8	/* of one contract at most */
#define CASES_SHRUNK 64 /* for them */

struct broken_case {
	unsigned kinds; /* of the run that it was made of */
	struct setup setup;
	struct deviations path;
	char text[300]; /* how it breaks */
	bool whole;	/* it is as it was found, shrinking failed */
	struct fingerprint fingerprint;
	uint32_t takes; /* 1 << k: not so with knob k of the store at its default and all else as it
			   is */
};

struct cases {
	struct broken_case found[CASES_MAX];
	unsigned n;
	unsigned left; /* ways of breaking it that nobody looked at: there were too many */
};

/* The case of the first run that broke the contract. 0, -ENOMEM, or -ENOENT: it does not break
 * again. */
int cases_first(const struct campaign *c, unsigned config, unsigned contract, struct cases *out);
/* One case for each cause: each way of each workload is looked at, small workloads first.
 * Likewise. */
int cases_find(const struct campaign *c, unsigned config, unsigned contract, struct cases *out);
void cases_free(struct cases *cases);

#endif
