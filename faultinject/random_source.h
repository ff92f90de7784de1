/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FAULTINJECT_RANDOM_SOURCE_H
#define TM_FAULTINJECT_RANDOM_SOURCE_H
/*
 * Random: a seed decides, per kind of choice, how often it deviates in this run
 * (often, rarely, never: swarm testing), and then each answer. Answers that are not
 * 0 are recorded. Never fails the power: that is the explorer's. Besides, a run can be told to
 * delay tasks at some steps (faultinject/stops.h).
 */
#include "core/rt/durations.h"
#include "core/rt/source.h"
#include "faultinject/deviation.h"

#define RANDOM_STOPS 6
struct random_source {
	struct source source;
	uint64_t state;
	uint64_t lines; /* random_survivors() */
	bool survivors;
	uint64_t times;		    /* random_durations() */
	uint64_t late_ns;	    /* a little less than the last such delay; 0: there is none */
	struct durations durations; /* n 0: the run has none */
	struct {
		uint64_t key; /* choice_key() of a step, with its a and b */
		uint32_t a, b;
		unsigned answer; /* 0: it has been taken */
	} stop[RANDOM_STOPS];
	unsigned stops, stops_left;
	uint32_t step_skip;	     /* meanwhile, source.skip of the other steps */
	uint32_t mean[CHOICE_KINDS]; /* one point in so many deviates; 0: none */
	unsigned left;		     /* deviations still allowed in this run */
	struct deviations taken;
};
void random_start(struct random_source *r, uint64_t seed, unsigned max_deviations);
/* After random_start(), where one of several servers can fail: what is left of its lines is drawn.
 */
void random_survivors(struct random_source *r, uint64_t seed);
/* After random_start(), and before random_stop(): in one run in some, half of the delays are about
 * as long as something that the store measures. */
void random_durations(struct random_source *r, uint64_t seed, const struct durations *seen);
/* After random_start(): at the step that is named so (choice_key(), a and b) delay its task for
 * "delay k", and deviate less otherwise. */
void random_stop(struct random_source *r, uint64_t key, uint32_t a, uint32_t b, unsigned k);
uint64_t random_next(uint64_t *state); /* splitmix64 */

#endif
