/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_SOAK_H
#define TM_CHECKER_HUNT_SOAK_H
/*
 * Soaking: round after round, a store that ships here under hardware and a workload
 * that are drawn at random. What a round does depends on its options and number alone.
 */
#include "checker/explore/explore.h"

#define SOAK_KNOBS 16

struct soak_options {
	uint64_t seed;
	const char *knob[SOAK_KNOBS]; /* "name=value" of the hardware: not drawn, but so */
	unsigned knobs;
};

struct soak_result {
	struct explore_counts counts;
	unsigned contract; /* that broke; TM_CONTRACTS: none */
	char store[16], variant[48], hardware[256], workload[64];
	char text[300];			 /* how it broke */
	unsigned operations, deviations; /* of the shrunk trace */
	uint64_t rss_kib, peak_kib;	 /* of the process, after the round */
};

/* The round's store, hardware and workload, finished; *want: the contracts that count. */
int soak_setup(const struct soak_options *o, uint64_t round, struct setup *s, unsigned *want);
/*
 * 0 or -errno. What breaks is shrunk: *s and *path are then the case (the caller's in
 * any case). -ENOTRECOVERABLE: they are the run of which the tree of recoveries was wrong, and
 * out->text says how.
 */
int soak_round(const struct soak_options *o, uint64_t round, struct setup *s,
	       struct deviations *path, struct soak_result *out);

/* What many rounds came to. */
struct soak_totals {
	uint64_t rounds, states, runs, points, unsure;
	/* of a process, the largest: now, in the first fifth, in the last one, ever */
	uint64_t rss_kib, early_kib, late_kib, peak_kib;
	unsigned broken;
};
/* Add a round; `part` of all the soaking is done, from 0 to 1. */
void soak_add(struct soak_totals *t, const struct soak_result *r, double part);
/* Does a process leak memory? Caches fill in the first rounds: fewer than SOAK_FEW_ROUNDS are not
 * judged, and it does not. */
#define SOAK_FEW_ROUNDS 100
bool soak_grows(const struct soak_totals *t);

#endif
