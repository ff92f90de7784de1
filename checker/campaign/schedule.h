/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAMPAIGN_SCHEDULE_H
#define TM_CHECKER_CAMPAIGN_SCHEDULE_H
/*
 * The random runs of a campaign, by number. A run depends on the seed, its number and the
 * plain run alone, so that any of them can be repeated by itself.
 *
 * Run 0 is the plain one. Most of the others draw all their deviations at random; the rest stop a
 * task at a step of the plain run, or let the server's process or a client die there
 * (faultinject/stops.h), with fewer random deviations. Some stop one at such a step, and again at a
 * step of the run that this makes, which is recorded when it is wanted.
 */
#include "checker/world/world.h"
#include "faultinject/stops.h"
#include "faultinject/random_source.h"

struct schedule {
	uint64_t seed;
	unsigned deviations; /* random ones of a run at most */
	struct stops stops;  /* `wanted` may be less, after schedule_open(); ... */
	unsigned events;     /* that befall several servers in one run, at most; 0: 1; likewise */
	struct durations durations; /* that the plain run has measured */
	struct worlds *worlds;
	struct stops again; /* of a run that is stopped ... */
	uint64_t again_of;  /* ... the nth such, from 1; 0: none yet */
	bool can_stop_again;
	struct random_source random; /* random.taken: what the run deviated */
};

/* Records the plain run in world 0, which is free. 0 or -ENOMEM; to be closed in any case. */
int schedule_open(struct schedule *s, struct worlds *worlds, uint64_t seed, unsigned deviations);
void schedule_close(struct schedule *s);
/* The source of the run; NULL: nothing deviates. World 0 is free. */
struct source *schedule_run(struct schedule *s, uint64_t run);

#endif
