/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_FEATURES_H
#define TM_CHECKER_HUNT_FEATURES_H
/*
 * What is new about a run, for fuzzing: 64-bit names of states that it reached. A run
 * that has a feature which no run before it had is worth keeping and changing further.
 * features.c says what the features are.
 */
#include "checker/explore/explore.h"

#define FEATURES_OUTCOMES 64

struct features {
	void (*found)(void *arg, uint64_t feature);
	void *arg;
	/* private: the power failure at hand, and the outcomes of its images */
	uint64_t point, outcome[FEATURES_OUTCOMES];
	unsigned outcomes;
};

/* The history of a run up to its end or its power failure. */
void features_history(struct features *f, const struct history *h);
/* A machine that booted after a power failure and was read back. */
void features_image(struct features *f, const struct explorer *ex, unsigned machine);
/* The run is over: report the features of its last power failure. */
void features_end(struct features *f);

#endif
