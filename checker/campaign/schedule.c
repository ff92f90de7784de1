/* SPDX-License-Identifier: BSD-3-Clause */
/* See schedule.h. */
#include "checker/campaign/schedule.h"
#include "faultinject/random_source.h"
#include <errno.h>
#include <string.h>

#define STOP_EVERY  4  /* one run in so many stops a task */
#define KILL_EVERY  16 /* in one run in so many something dies */
#define AGAIN_EVERY 4  /* one run in so many stops a task twice */
#define AGAIN_RUNS  8  /* so many of these stop it in the same way at first */

static void record(struct schedule *s, struct stops *stops)
{
	world_run(s->worlds, &stops->source, NULL, NULL);
	world_end(s->worlds, 0);
	stops_recorded(stops);
}

int schedule_open(struct schedule *s, struct worlds *worlds, uint64_t seed, unsigned deviations)
{
	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->deviations = deviations;
	s->worlds = worlds;
	stops_record(&s->stops);
	record(s, &s->stops);
	s->durations = *sim_durations(worlds->world[0].sim);
	const struct setup *setup = worlds->world[0].setup;
	s->stops.wanted = HAPPENINGS;
	if (setup->servers > 1) {
		const unsigned promises = setup->store->promises;
		s->stops.servers = setup->servers;
		s->stops.may = HAPPENS_POWER | (promises & TM_BIT(TM_DURN) ? HAPPENS_LOST : 0) |
			       (promises & TM_BIT(TM_FENCE) ? HAPPENS_CUT : 0);
	}
	return s->stops.failed ? -ENOMEM : 0;
}

void schedule_close(struct schedule *s)
{
	stops_free(&s->stops);
	stops_free(&s->again);
	deviations_free(&s->random.taken);
}

/* The nth run that stops a task twice. */
static void stop_again(struct schedule *s, uint64_t nth)
{
	uint64_t first = nth / AGAIN_RUNS + 1;
	if (s->again_of != first) {
		stops_free(&s->again);
		s->again_of = first;
		s->can_stop_again = (s->events > 1 ? stops_record_event : stops_record_stopped)(
			&s->again, &s->stops, s->seed * 1000003 + first);
		if (s->can_stop_again)
			record(s, &s->again);
	}
	if (s->can_stop_again && !s->again.failed)
		(s->events > 1 ? stops_event_again : stops_again)(&s->again, nth, &s->random);
}

struct source *schedule_run(struct schedule *s, uint64_t run)
{
	if (!run) {
		s->random.taken.n = 0;
		return NULL;
	}
	const uint64_t seed = s->seed * 1000003 + run;
	random_start(&s->random, seed, s->deviations);
	random_durations(&s->random, seed, &s->durations);
	if (stops_servers_fail(&s->stops))
		random_survivors(&s->random, seed);
	if (run % STOP_EVERY == STOP_EVERY - 1)
		stops_choose(&s->stops, run / STOP_EVERY, &s->random);
	else if (run % KILL_EVERY == KILL_EVERY / 2 && s->stops.wanted & HAPPENS_DEATH)
		stops_kill(&s->stops, run / KILL_EVERY, &s->random);
	else if (run % AGAIN_EVERY == 1)
		stop_again(s, run / AGAIN_EVERY);
	else
		stops_begin_late(&s->stops, &s->random);
	return &s->random.source;
}
