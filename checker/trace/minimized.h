/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_TRACE_MINIMIZED_H
#define TM_CHECKER_TRACE_MINIMIZED_H
/*
 * Cases of a contract that broke in a campaign, as small as they get. Of those with one
 * fingerprint, which are most likely of one cause, the first stays.
 */
#include "checker/explore/campaign.h"
#include "checker/trace/fingerprint.h"

#define MINIMIZED_MAX	 8  /* of one contract at most */
#define MINIMIZED_SHRUNK 64 /* for them */

struct minimized_failure {
	unsigned kinds; /* of the run that it was made of */
	struct setup setup;
	struct deviations path;
	char text[300]; /* how it breaks */
	bool whole;	/* it is as it was found, shrinking failed */
	struct fingerprint fingerprint;
	uint32_t takes; /* 1 << k: not so with knob k of the store at its default and all else as it
			   is */
};

struct minimized {
	struct minimized_failure found[MINIMIZED_MAX];
	unsigned n;
	unsigned left; /* ways of breaking it that nobody looked at: there were too many */
};

/* The case of the first run that broke the contract. 0, -ENOMEM, or -ENOENT: it does not break
 * again. */
int minimized_first(const struct campaign *c, unsigned config, unsigned contract,
		    struct minimized *out);
/* One case for each cause: each way of each workload is looked at, small workloads first.
 * Likewise. */
int minimized_find(const struct campaign *c, unsigned config, unsigned contract,
		   struct minimized *out);
void minimized_free(struct minimized *cases);

#endif
