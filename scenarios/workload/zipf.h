/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_WORKLOAD_ZIPF_H
#define TM_SCENARIOS_WORKLOAD_ZIPF_H
/*
 * Which key: YCSB's Zipf distribution with exponent 0.99, exactly.
 * The same seed draws the same keys on every machine and with every compiler.
 */
#include <stdint.h>

#define ZIPF_MAX_KEYS (1u << 20)

struct zipf {
	uint64_t *below; /* sum of the weights up to and with this rank */
	uint32_t *key;	 /* of this rank */
	unsigned keys;
};

/* From 0 to n - 1; advances *state as random_next() does. */
unsigned random_below(uint64_t *state, unsigned n);

/* 1 to ZIPF_MAX_KEYS keys; which of them are the popular ones is drawn from *state. 0 or
 * -ENOMEM. */
int zipf_init(struct zipf *z, unsigned keys, uint64_t *state);
void zipf_free(struct zipf *z);
unsigned zipf_draw(const struct zipf *z, uint64_t *state);

#endif
