/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SOAK_H
#define TM_SOAK_H
/*
 * Soaking: round after round, a store that ships here under hardware and a workload
 * that are drawn at random. What a round does depends on (seed, round) alone.
 */
#include "checker/explore.h"

struct soak_result {
	struct explore_counts counts;
	unsigned contract; /* that broke; TM_CONTRACTS: none */
	char store[16], variant[48], hardware[256], workload[64];
	char text[300];			 /* how it broke */
	unsigned operations, deviations; /* of the shrunk trace */
	uint64_t rss_kib, peak_kib;	 /* of the process, after the round */
};

/* The round's store, hardware and workload, finished; *want: the contracts that count. */
int soak_setup(uint64_t seed, uint64_t round, struct setup *s, unsigned *want);
/*
 * 0 or -errno. What breaks is shrunk: *s and *path are then the case (the caller's in
 * any case).
 */
int soak_round(uint64_t seed, uint64_t round, struct setup *s, struct deviations *path,
	       struct soak_result *out);

#endif
