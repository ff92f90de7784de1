/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, the same ones in each run. */
#include <stdlib.h>
#include "core/libc/process.h"
#include "core/libc/stdlib.h"
#include "core/libc/traced.h"
#include "core/rt/process/sim_libc.h"

int sim_rand(void)
{
	int32_t value;
	random_r(&process()->random, &value);
	return value;
}

void sim_srand(unsigned seed)
{
	srandom_r(seed, &process()->random);
}

long sim_random(void)
{
	return sim_rand();
}

void sim_srandom(unsigned seed) __attribute__((alias("sim_srand")));

int sim_rand_r(unsigned *seed)
{
	unsigned own;
	take(&own, seed, sizeof(own), PC);
	int value = rand_r(&own);
	put(seed, &own, sizeof(own), PC);
	return value;
}

double sim_drand48(void)
{
	double value;
	drand48_r(&process()->real, &value);
	return value;
}

long sim_lrand48(void)
{
	long value;
	lrand48_r(&process()->real, &value);
	return value;
}

long sim_mrand48(void)
{
	long value;
	mrand48_r(&process()->real, &value);
	return value;
}

void sim_srand48(long seed)
{
	srand48_r(seed, &process()->real);
}

#define WITH_STATE(T, name, libc)                    \
	T name(unsigned short state[3])              \
	{                                            \
		unsigned short own[3];               \
		T value;                             \
		take(own, state, sizeof(own), PC);   \
		libc(own, &process()->real, &value); \
		put(state, own, sizeof(own), PC);    \
		return value;                        \
	}
WITH_STATE(double, sim_erand48, erand48_r)
WITH_STATE(long, sim_nrand48, nrand48_r)
WITH_STATE(long, sim_jrand48, jrand48_r)

/* Entropy: a generator (splitmix64) whose seed is the process. */
uint64_t sim_random_word(void)
{
	struct sim *sim = sim_current();
	struct sim_process_number me = sim_process_number(sim);
	uint64_t z = ((uint64_t)sim_host(sim) << 48) + ((uint64_t)me.boot << 40) +
		     ((uint64_t)me.life << 32) + ++process()->entropy;
	z *= 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void fill(void *to, size_t len, uintptr_t pc)
{
	for (size_t part, done = 0; done < len; done += part) {
		uint64_t word = sim_random_word();
		part = len - done < sizeof(word) ? len - done : sizeof(word);
		put((char *)to + done, &word, part, pc);
	}
}

ssize_t sim_getrandom(void *to, size_t len, unsigned flags)
{
	(void)flags;
	fill(to, len, PC);
	return (ssize_t)len;
}

int sim_getentropy(void *to, size_t len)
{
	fill(to, len, PC);
	return 0;
}

uint32_t sim_arc4random(void)
{
	return (uint32_t)sim_random_word();
}

uint32_t sim_arc4random_uniform(uint32_t below)
{
	return below ? (uint32_t)(sim_random_word() % below) : 0;
}

void sim_arc4random_buf(void *to, size_t len)
{
	fill(to, len, PC);
}
