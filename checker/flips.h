/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FLIPS_H
#define TM_FLIPS_H
/*
 * Does a switch matter? Each value but the default of each switch of a store, and of the
 * hardware, is set alone, and the built-in workloads are explored with it and without, until a verdict
 * is another. If no verdict, contract by contract and workload by workload, is another then, either the
 * switch changes nothing that a contract speaks of, or the workloads are too weak to show it.
 *
 * Exploring is random, and a rare break may be met on one side alone by chance. So a verdict counts
 * as changed only when the side that held also holds with several times the runs.
 *
 * Both sides are explored at the default hardware and, since much breaks there by design, where
 * acknowledged is visible.
 */
#include "checker/campaign.h"

struct flip {
	const struct tm_store *store;
	char knob[64]; /* "name=value" */
	bool hardware; /* not the store's own */
	/* results */
	int error; /* -errno: could not be tested */
	bool found;
	bool breaks; /* with the switch it breaks, without it it holds; or the other way round */
	unsigned contract, workload;
	const char *base; /* "default" or "ack_early=off" */
};

struct flips {
	unsigned runs, jobs;
	uint64_t seed;
	void (*progress)(unsigned done, unsigned flips, double seconds); /* NULL: nobody is told */
	/* results */
	struct flip *flip;
	unsigned flips;
	struct campaign campaign; /* without any switch; its workloads are those of the flips */
	/* private */
	unsigned done;
	double started;
};

/* All switches of the stores that are tested by default. 0 or -errno, as campaign_run(). */
int flips_run(struct flips *f);
void flips_free(struct flips *f);

#endif
