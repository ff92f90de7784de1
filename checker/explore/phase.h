/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_PHASE_H
#define TM_CHECKER_EXPLORE_PHASE_H
/* What an explorer spends its time with, for the benchmark. One thing goes on within another: a
 * moment counts for the innermost. */
#include <stdint.h>
#include "core/clock.h"

enum explore_phase {
	PHASE_RUN,   /* a workload runs */
	PHASE_POINT, /* a power failure is recognised, or its images are listed */
	PHASE_WALK,  /* an image is looked up */
	PHASE_MISS,  /* one that is not known is run */
	PHASE_AGAIN, /* the power fails once more */
	PHASE_LIFE,  /* the store lives on */
	PHASE_JUDGE, /* what came of an image is judged */
	PHASES
};

struct explore_phases {
	double since, seconds[PHASES];
	uint64_t times[PHASES]; /* begun */
	enum explore_phase now;
};

/* `p`: NULL, nothing is measured. The phase that was on, for phase_back(). */
static inline enum explore_phase phase_begin(struct explore_phases *p, enum explore_phase phase)
{
	if (!p)
		return phase;
	enum explore_phase before = p->now;
	double now = clock_seconds();
	p->seconds[before] += now - p->since;
	p->since = now;
	p->now = phase;
	p->times[phase]++;
	return before;
}

static inline void phase_back(struct explore_phases *p, enum explore_phase before)
{
	if (!p)
		return;
	double now = clock_seconds();
	p->seconds[p->now] += now - p->since;
	p->since = now;
	p->now = before;
}

#endif
