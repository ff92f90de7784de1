/* SPDX-License-Identifier: BSD-3-Clause */
/* See schedule.h. */
#include "checker/explore/schedule.h"
#include <errno.h>
#include <string.h>

#define STOP_EVERY 4  /* one run in so many stops a task */
#define KILL_EVERY 16 /* in one run in so many something dies */

int schedule_open(struct schedule *s, struct worlds *worlds, uint64_t seed, unsigned deviations)
{
	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->deviations = deviations;
	stops_record(&s->stops);
	world_run(worlds, &s->stops.source, NULL, NULL);
	world_end(worlds, 0);
	return s->stops.failed ? -ENOMEM : 0;
}

void schedule_close(struct schedule *s)
{
	stops_free(&s->stops);
	deviations_free(&s->random.taken);
}

struct source *schedule_run(struct schedule *s, uint64_t run)
{
	if (!run) {
		s->random.taken.n = 0;
		return NULL;
	}
	random_start(&s->random, s->seed * 1000003 + run, s->deviations);
	if (run % STOP_EVERY == STOP_EVERY - 1)
		stops_choose(&s->stops, run / STOP_EVERY, &s->random);
	else if (run % KILL_EVERY == KILL_EVERY / 2)
		stops_kill(&s->stops, run / KILL_EVERY, &s->random);
	return &s->random.source;
}
