/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_TRACE_MINIMIZED_H
#define TM_CHECKER_TRACE_MINIMIZED_H
/*
 * Minimized failures: for each contract that broke in a campaign, shrunk runs that break it. Runs
 * with the same fingerprint most likely have the same cause, so only the first of them stays.
 */
#include "checker/campaign/campaign.h"
#include "checker/trace/fingerprint.h"

#define MINIMIZED_MAX	 8  /* of one contract at most */
#define MINIMIZED_SHRUNK 64 /* so many failures are shrunk to find them */
#define MINIMIZED_KNOWN	 8  /* or fewer: so many in a row had no cause that was new */

struct minimized_failure {
	unsigned kinds; /* of the run that it was shrunk from */
	struct setup setup;
	struct deviations path;
	char text[300]; /* how it breaks */
	bool whole;	/* it is as it was found, shrinking failed */
	struct fingerprint fingerprint;
	uint32_t takes; /* 1 << k: it does not break with the store's knob k at its default */
};

struct minimized {
	struct minimized_failure found[MINIMIZED_MAX];
	unsigned n;
	unsigned left; /* failure modes that were not looked at: there were too many */
};

/* Minimize the first run that broke the contract. 0, -ENOMEM, or -ENOENT: it does not break again.
 * -ENOTRECOVERABLE: found[0] is the run of which the tree of recoveries was wrong, to be freed. */
int minimized_first(const struct campaign *c, unsigned config, unsigned contract,
		    struct minimized *out);
/* Likewise the first run that broke it for an unknown cause, or else for the one that is too
 * frequent; it still does so. */
int minimized_strange(const struct campaign *c, unsigned config, unsigned contract,
		      struct minimized *out);
/* Minimize one run for each failure mode of each workload, those of few kinds of deviations and
 * small workloads first. Likewise. */
int minimized_find(const struct campaign *c, unsigned config, unsigned contract,
		   struct minimized *out);
void minimized_free(struct minimized *failures);

#endif
