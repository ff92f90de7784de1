/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FAULTINJECT_SOURCES_H
#define TM_FAULTINJECT_SOURCES_H
/*
 * Where the answers of sim_choose() come from: a seed (random_source), or a list of deviations
 * (trace_source). faultinject/systematic.h enumerates all answers, faultinject/bytes.h takes them
 * from a fuzzer's bytes. Each is a struct source (core/rt/choose.h).
 */
#include "faultinject/deviation.h"

/*
 * Random: a seed decides, per kind of choice, how often it deviates in this run
 * (often, rarely, never: swarm testing), and then each answer. Answers that are not
 * 0 are recorded. Never fails the power: that is the explorer's. Besides, a run can be told to
 * delay tasks at some steps (faultinject/stops.h).
 */
#define RANDOM_STOPS 6
struct random_source {
	struct source source;
	uint64_t state;
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
/* After random_start(): at the step that is named so (choice_key(), a and b) delay its task for
 * "delay k", and deviate less otherwise. */
void random_stop(struct random_source *r, uint64_t key, uint32_t a, uint32_t b, unsigned k);
uint64_t random_next(uint64_t *state); /* splitmix64 */

/*
 * Trace: the deviations of a list, every other answer 0. `used[i]` tells which
 * were asked for. In a lenient source one whose answer does not exist is left out;
 * in a strict one it is counted as not used. What is really taken is in `taken`.
 */
struct trace_source {
	struct source source;
	const struct deviations *list;
	uint64_t *key; /* of each deviation; has room for list->n */
	bool *used;
	struct deviations taken;
};
int trace_start(struct trace_source *t, const struct deviations *list); /* 0 or -ENOMEM */
void trace_finish(struct trace_source *t);
/* The first deviation that was not used, or NULL. */
const struct deviation *trace_unused(const struct trace_source *t);

#endif
