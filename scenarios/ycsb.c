/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * YCSB: many operations on a few popular keys.
 *
 * The mixes are those of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC
 * 2010): A half reads, half updates; B 95 % reads; C reads only; and U, updates
 * only, which papers on persistent stores add. Updates are PUTs of the whole value.
 * Keys have 32 bytes, "user" and a number, all loaded.
 *
 * Which key: Zipf with exponent 0.99, as in YCSB. The rank i (from 1) comes with
 * probability i^-0.99 / sum over j of j^-0.99. YCSB approximates this with the
 * formula of Gray et al. (SIGMOD 1994), because it has too many items for a table,
 * and scrambles by hashing the rank modulo the number of keys, which with few keys
 * makes ranks collide. Here a table gives the distribution exactly, and a random
 * permutation, drawn from the seed, says which key has which rank: popular keys
 * are spread, and the skew stays what it should be.
 *
 * A workload's name fixes it on every machine and compiler: all arithmetic is on
 * integers. i^0.99 is i / i^0.01, and i^0.01 is the product of i^(2^-b) over the
 * bits b that 0.01 has as a binary fraction: repeated integer square roots.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "scenarios/workload.h"

static const struct {
	const char *name, *what;
	unsigned read_percent;
} mixes[] = {
	{"ycsb-a", "YCSB A: half GETs, half PUTs, Zipf 0.99", 50},
	{"ycsb-b", "YCSB B: 95 % GETs, 5 % PUTs, Zipf 0.99", 95},
	{"ycsb-c", "YCSB C: GETs only, Zipf 0.99", 100},
	{"ycsb-u", "YCSB's keys with PUTs only, Zipf 0.99", 0},
};

const char *ycsb_default(unsigned i, struct ycsb *y, const char **what)
{
	if (i >= sizeof(mixes) / sizeof(mixes[0]))
		return NULL;
	*y = (struct ycsb){
		.read_percent = mixes[i].read_percent,
		.clients = 2,
		.keys = 8,
		.ops = 40,
		.vlen = 64,
		.seed = 1,
	};
	*what = mixes[i].what;
	return mixes[i].name;
}

/* A decimal number of up to 10 digits that ends at a comma or the end; moves *p there. -1: there is none. */
static int64_t parse_number(const char **p)
{
	const char *start = *p;
	int64_t n = 0;

	while (**p >= '0' && **p <= '9') {
		if (*p - start == 10)
			return -1;
		n = n * 10 + (*(*p)++ - '0');
	}
	return *p == start || (**p && **p != ',') ? -1 : n;
}

int ycsb_parse(struct ycsb *y, const char *text, const char **expected)
{
	const struct {
		const char *name;
		unsigned *value;
		int64_t min, max;
		const char *expected;
	} size[] = {
		{"clients=", &y->clients, 1, TM_MAX_CLIENTS, "clients=1 to clients=16"},
		{"keys=", &y->keys, 1, WORKLOAD_MAX_KEYS, "keys=1 to keys=1024"},
		{"ops=", &y->ops, 1, WORKLOAD_MAX_OPS, "ops=1 to ops=4096, of all clients together"},
		{"vlen=", &y->vlen, WORKLOAD_MIN_VLEN, TM_MAX_VALUE, "vlen=8 to vlen=65536, bytes"},
		{"seed=", &y->seed, 0, UINT32_MAX, "seed=0 to seed=4294967295"},
	};
	const unsigned sizes = sizeof(size) / sizeof(size[0]);
	unsigned given = 0;

	_Static_assert(TM_MAX_CLIENTS == 16 && WORKLOAD_MAX_KEYS == 1024, "texts above");
	_Static_assert(WORKLOAD_MAX_OPS == 4096 && TM_MAX_VALUE == 65536, "texts above");
	for (;;) {
		unsigned i = 0;
		int64_t n;

		while (i < sizes && strncmp(text, size[i].name, strlen(size[i].name)))
			i++;
		*expected = "clients=, keys=, ops=, vlen= or seed= and a number, with commas between them";
		if (i == sizes)
			return -EINVAL;
		*expected = "each of clients, keys, ops, vlen and seed at most once";
		if (given & 1u << i)
			return -EINVAL;
		given |= 1u << i;
		text += strlen(size[i].name);
		n = parse_number(&text);
		*expected = size[i].expected;
		if (n < size[i].min || n > size[i].max)
			return -EINVAL;
		*size[i].value = (unsigned)n;
		if (!*text)
			return 0;
		text++;
	}
}

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static unsigned random_below(uint64_t *state, unsigned n)
{
	assert(n > 0);
	return (unsigned)((next_random(state) >> 32) * n >> 32);
}

static uint64_t square_root(uint64_t x)
{
	uint64_t root = 0;

	for (uint64_t bit = (uint64_t)1 << 31; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= x)
			root |= bit;
	return root;
}

#define ONE_BITS \
	26 /* fixed point for numbers up to WORKLOAD_MAX_KEYS: 2^10 * 2^26, shifted again, fits 64 bits */
_Static_assert(WORKLOAD_MAX_KEYS <= 1024, "fixed point");

/* i^-0.99 with 36 binary places. */
static uint64_t zipf_weight(unsigned i)
{
	const uint32_t hundredth = 42949673; /* 0.01 * 2^32 */
	uint64_t root = (uint64_t)i << ONE_BITS;
	uint64_t power = (uint64_t)1 << ONE_BITS; /* becomes i^0.01 */

	assert(i >= 1 && i <= WORKLOAD_MAX_KEYS);
	for (unsigned bit = 1; bit <= 32; bit++) {
		root = square_root(root << ONE_BITS);
		if (hundredth >> (32 - bit) & 1)
			power = power * root >> ONE_BITS;
	}
	return power * ((uint64_t)1 << (62 - ONE_BITS)) / i >> ONE_BITS;
}

struct zipf {
	uint64_t below[WORKLOAD_MAX_KEYS]; /* sum of the weights up to and with this rank */
	uint16_t key[WORKLOAD_MAX_KEYS];   /* of this rank */
	unsigned keys;
};

static void zipf_init(struct zipf *z, unsigned keys, uint64_t *state)
{
	uint64_t sum = 0;

	assert(keys >= 1 && keys <= WORKLOAD_MAX_KEYS);
	z->keys = keys;
	for (unsigned i = 0; i < keys; i++) {
		sum += zipf_weight(i + 1);
		z->below[i] = sum;
		z->key[i] = (uint16_t)i;
	}
	for (unsigned i = keys - 1; i > 0; i--) {
		unsigned j = random_below(state, i + 1);
		uint16_t key = z->key[i];

		z->key[i] = z->key[j];
		z->key[j] = key;
	}
}

static unsigned zipf_draw(const struct zipf *z, uint64_t *state)
{
	/* The sum is below 2^39; what the remainder prefers is beyond any test. */
	uint64_t x = next_random(state) % z->below[z->keys - 1];
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

int ycsb_make(const struct ycsb *y, struct workload *w)
{
	uint64_t state = y->seed;
	struct zipf zipf;
	int rc = 0;

	assert(y->read_percent <= 100 && y->clients >= 1 && y->clients <= TM_MAX_CLIENTS);
	assert(y->vlen >= WORKLOAD_MIN_VLEN && y->vlen <= TM_MAX_VALUE && y->ops <= WORKLOAD_MAX_OPS);
	assert(!w->keys && !w->clients);
	zipf_init(&zipf, y->keys, &state);
	for (unsigned k = 0; k < y->keys && rc >= 0; k++) {
		char name[TM_MAX_KEY + 1];

		snprintf(name, sizeof(name), "user%028u", k);
		rc = workload_key_add(w, name, strlen(name), (int32_t)y->vlen);
	}
	if (rc < 0)
		goto err;
	w->clients = y->clients;
	for (unsigned i = 0; i < y->ops; i++) {
		enum op_kind kind = random_below(&state, 100) < y->read_percent ? OP_GET : OP_PUT;

		rc = workload_op_add(w, i % y->clients + 1, kind, zipf_draw(&zipf, &state), y->vlen);
		if (rc)
			goto err;
	}
	return 0;
err:
	assert(rc == -ENOMEM);
	workload_free(w);
	return rc;
}
