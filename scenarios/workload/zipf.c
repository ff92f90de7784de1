/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zipf with exponent 0.99, as in YCSB: the rank i (from 1) comes with probability
 * i^-0.99 / sum over j of j^-0.99. YCSB approximates this with the formula of Gray et
 * al. (SIGMOD 1994), because it has too many items for a table, and scrambles by hashing
 * the rank modulo the number of keys, which with few keys makes ranks collide. Here a
 * table gives the distribution exactly, and a random permutation says which key has which
 * rank: popular keys are spread, and the skew stays what it should be.
 *
 * Whatever is drawn depends on integers alone. i^0.99 is i / i^0.01, and i^0.01 is the
 * product of i^(2^-b) over the bits b that 0.01 has as a binary fraction: repeated integer square
 * roots.
 */
#include "scenarios/workload/zipf.h"
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "faultinject/random_source.h"

/* Fixed point. A key's number has 20 bits, so what a root is taken of has at most 72. */
#define ONE_BITS 26
_Static_assert(ZIPF_MAX_KEYS == 1u << 20, "see there");

unsigned random_below(uint64_t *state, unsigned n)
{
	assert(n > 0);
	return (unsigned)((random_next(state) >> 32) * n >> 32);
}

/* Rounded down. The processor's own root is near; how near does not matter to the answer. */
static uint64_t square_root(unsigned __int128 x)
{
	uint64_t root = (uint64_t)sqrt((double)x);

	while ((unsigned __int128)root * root > x)
		root--;
	while ((unsigned __int128)(root + 1) * (root + 1) <= x)
		root++;
	return root;
}

/* i^-0.99 with 36 binary places. */
static uint64_t zipf_weight(unsigned i)
{
	const uint32_t hundredth = 42949673; /* 0.01 * 2^32 */
	uint64_t root = (uint64_t)i << ONE_BITS;
	uint64_t power = (uint64_t)1 << ONE_BITS; /* becomes i^0.01 */

	assert(i >= 1 && i <= ZIPF_MAX_KEYS);
	for (unsigned bit = 1; bit <= 32; bit++) {
		root = square_root((unsigned __int128)root << ONE_BITS);
		if (hundredth >> (32 - bit) & 1)
			power = power * root >> ONE_BITS;
	}
	return power * ((uint64_t)1 << (62 - ONE_BITS)) / i >> ONE_BITS;
}

int zipf_init(struct zipf *z, unsigned keys, uint64_t *state)
{
	uint64_t sum = 0;

	assert(keys >= 1 && keys <= ZIPF_MAX_KEYS);
	z->keys = keys;
	z->below = malloc(keys * sizeof(*z->below));
	z->key = malloc(keys * sizeof(*z->key));
	if (!z->below || !z->key) {
		zipf_free(z);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < keys; i++) {
		sum += zipf_weight(i + 1);
		z->below[i] = sum;
		z->key[i] = i;
	}
	for (unsigned i = keys - 1; i > 0; i--) {
		unsigned j = random_below(state, i + 1);
		uint32_t key = z->key[i];

		z->key[i] = z->key[j];
		z->key[j] = key;
	}
	return 0;
}

void zipf_free(struct zipf *z)
{
	free(z->below);
	free(z->key);
	*z = (struct zipf){0};
}

unsigned zipf_draw(const struct zipf *z, uint64_t *state)
{
	/* The sum is below 2^41; what the remainder prefers is beyond any test. */
	uint64_t x = random_next(state) % z->below[z->keys - 1];
	unsigned low = 0, high = z->keys - 1;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (x < z->below[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return z->key[low];
}
