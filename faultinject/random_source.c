/* SPDX-License-Identifier: BSD-3-Clause */
#include "faultinject/random_source.h"
#include <assert.h>
#include <string.h>

#define TIMES_EVERY 2 /* one run in so many is about what the store measures */

uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Number of points until the next that deviates: about geometric with the given mean. */
static uint32_t gap(const struct random_source *r, unsigned kind, uint64_t *state)
{
	uint32_t mean = r->mean[kind];
	if (!mean || !r->left)
		return UINT32_MAX;
	return (uint32_t)(random_next(state) % (2 * (uint64_t)mean));
}

/*
 * About as long as what the run has picked from all that the store measures: at, just below, just
 * above; half and twice as much; within what clocks differ by, or something else that it measures,
 * of its end. And now and then any length, with each power of two as likely as another.
 */
static uint64_t about(struct random_source *r)
{
	static const uint32_t near[] = {0, 1000, 4000, 10000, 40000};
	const struct durations *all = &r->durations;
	const uint64_t draw = random_next(&r->times), part = random_next(&r->times);
	const uint64_t of = all->ns[0]; /* as random_durations() has put it there */
	uint64_t margin = of / 2;
	if (all->clocks_ns && draw & 64)
		margin = all->clocks_ns;
	else if (all->n > 1 && draw & 128)
		margin = all->ns[1 + draw / 4096 % (all->n - 1)];
	switch (draw % 8) {
	case 0:
		return (1024u << draw / 64 % 16) + part % (1024u << draw / 64 % 16);
	case 1:
		return (draw & 8 ? of * 2 : of / 2) + near[part % 5];
	case 2:
		return of + near[part % 5];
	case 3:
		return near[part % 5] < of ? of - near[part % 5] : of;
	case 4:
		return of + part % margin;
	default:
		return margin < of ? of - part % margin : part % of + 1;
	}
}

/* The answer that delays for about as long as what the store measures, or `k` as it was. */
static unsigned timed(struct random_source *r, unsigned k)
{
	if (!r->durations.n || random_next(&r->times) % 4 == 0)
		return k;
	/* Who meets whom: often two are late by about the same. */
	uint64_t ns = r->late_ns && random_next(&r->times) % 4
			      ? r->late_ns + random_next(&r->times) % 32768
			      : about(r);
	r->late_ns = ns > 16384 ? ns - 16384 : 0;
	if (delay_of_ns(ns) < DELAY_NS)
		ns++; /* an operation does not begin later for one of the usual times */
	return delay_of_ns(ns);
}

/* Is the step one at which the run is to stop? Then how, else 0. */
static unsigned stop_answer(struct random_source *r, const struct choice_point *at, unsigned n)
{
	for (unsigned i = 0; i < r->stops; i++) {
		unsigned answer = r->stop[i].answer;
		struct deviation d;
		if (!answer || r->stop[i].a != at->a || r->stop[i].b != at->b ||
		    r->stop[i].key != choice_key(at))
			continue;
		assert(r->stops_left && choice_allows(at->kind, n, answer));
		r->stop[i].answer = 0;
		if (!--r->stops_left) {
			r->source.begins = false;
			r->source.skip[CHOICE_STEP] = r->step_skip;
		}
		deviation_record(&d, at, answer, n);
		deviations_add(&r->taken, &d);
		return answer;
	}
	return 0;
}

/* What is left of a line that its host lost, while others go on: the newest version, or any. */
static unsigned survivor(struct random_source *r, const struct choice_point *at, unsigned n)
{
	unsigned answer = random_next(&r->lines) % 2 ? (unsigned)(random_next(&r->lines) % n) : 0;
	struct deviation d;
	if (answer) {
		deviation_record(&d, at, answer, n);
		deviations_add(&r->taken, &d);
	}
	return answer;
}

static unsigned drawn_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct random_source *r = (struct random_source *)source;
	assert(n > 1 && at->kind < CHOICE_KINDS);
	struct deviation d;
	if (at->kind == CHOICE_LINE && r->survivors)
		return survivor(r, at, n);
	unsigned answer = 1 + (unsigned)(random_next(&r->state) % (n - 1));
	if (!r->left || !r->mean[at->kind]) {
		source->skip[at->kind] = UINT32_MAX;
		return 0;
	}
	const struct choice_traits *traits = &choice_traits[at->kind];
	if (traits->usual && random_next(&r->state) % 2)
		answer = traits->usual;
	/* Dead clients are worth more than one delay in DELAYS; the server's tasks never die (n is
	 * smaller there). */
	if (traits->forever && n > DELAY_FOREVER && random_next(&r->state) % 5 == 0)
		answer = DELAY_FOREVER;
	assert(answer && answer < n);
	const unsigned k = choice_delay(at->kind, answer);
	if (k && k != DELAY_FOREVER)
		answer = choice_delay_answer(at->kind, timed(r, k));
	/* That clocks differ is no reason to have less late. */
	r->left -= at->kind != CHOICE_CLOCK || !r->durations.n;
	deviation_record(&d, at, answer, n);
	deviations_add(&r->taken, &d);
	source->skip[at->kind] = gap(r, at->kind, &r->state);
	return answer;
}

/* While a stop is still to come every step is asked about, and the others are counted here. */
static unsigned random_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct random_source *r = (struct random_source *)source;
	if (at->kind != CHOICE_STEP || !r->stops_left)
		return drawn_answer(source, at, n);
	unsigned answer = stop_answer(r, at, n);
	if (answer || at->a == STEP_BEGIN)
		return answer;
	if (r->step_skip) {
		r->step_skip--;
		return 0;
	}
	answer = drawn_answer(source, at, n);
	r->step_skip = source->skip[CHOICE_STEP];
	source->skip[CHOICE_STEP] = 0;
	return answer;
}

void random_stop(struct random_source *r, uint64_t key, uint32_t a, uint32_t b, unsigned k)
{
	assert(r->stops < RANDOM_STOPS && r->stops_left == r->stops);
	if (k == DELAY_QUIESCENCE || k == DELAY_SWITCH)
		k = timed(r, k);
	if (!r->stops) {
		r->left /= r->durations.n ? 1 : 2; /* one of those that it draws is to meet it */
		r->source.begins = true;
		r->step_skip = r->source.skip[CHOICE_STEP];
		r->source.skip[CHOICE_STEP] = 0;
	}
	r->stop[r->stops].key = key;
	r->stop[r->stops].a = a;
	r->stop[r->stops].b = b;
	r->stop[r->stops++].answer = choice_delay_answer(CHOICE_STEP, k);
	r->stops_left++;
}

void random_start(struct random_source *r, uint64_t seed, unsigned max_deviations)
{
	/* Kinds that came later draw from streams of their own: where nothing asks about them, a
	 * seed says what it said without them. */
	uint64_t salted[CHOICE_KINDS];
	uint64_t *state[CHOICE_KINDS];
	struct deviations taken = r->taken;
	assert(max_deviations);
	memset(r, 0, sizeof(*r));
	r->taken = taken;
	r->taken.n = 0;
	r->source.answer = random_answer;
	r->state = seed * 0x9e3779b97f4a7c15u + 0x1234567;
	r->left = 1 + (unsigned)(random_next(&r->state) % max_deviations);
	assert(r->left <= max_deviations);
	for (unsigned k = 0; k < CHOICE_KINDS; k++) {
		const struct choice_traits *traits = &choice_traits[k];
		salted[k] = seed ^ traits->salt;
		state[k] = traits->salt ? &salted[k] : &r->state;
		uint64_t draw = random_next(state[k]);
		/* A kind is off in half of the runs. */
		r->mean[k] = draw & 4 ? traits->mean[draw & 3] : 0;
	}
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		r->source.skip[k] = gap(r, k, state[k]);
}

void random_survivors(struct random_source *r, uint64_t seed)
{
	r->survivors = true;
	r->source.skip[CHOICE_LINE] = 0;
	r->lines = seed ^ 0x11e5;
}

void random_durations(struct random_source *r, uint64_t seed, const struct durations *seen)
{
	r->times = seed ^ 0x71e5;
	const uint64_t draw = random_next(&r->times);
	assert(!r->stops);
	if (!seen->n || draw % TIMES_EVERY)
		return;
	r->durations = *seen;
	const unsigned picked = (unsigned)(draw / TIMES_EVERY % seen->n);
	r->durations.ns[0] = seen->ns[picked];
	r->durations.ns[picked] = seen->ns[0];
	/* One thing is late, mostly nothing else; and clocks differ. */
	static const uint8_t late[] = {CHOICE_STEP,   CHOICE_FETCH, CHOICE_LAND, CHOICE_STEP,
				       CHOICE_PACKET, CHOICE_FETCH, CHOICE_STEP, CHOICE_LAND};
	const uint64_t how = random_next(&r->times);
	const unsigned one = late[how % 8];
	for (unsigned k = 0; k < CHOICE_KINDS; k++) {
		const struct choice_traits *traits = &choice_traits[k];
		if (k == one || (k == CHOICE_STEP && how / 128 % 2))
			r->mean[k] = traits->mean[how / 8 % 4];
		else if (k == CHOICE_CLOCK)
			r->mean[k] = 1;
		else if (traits->delay && how / 32 % 4)
			r->mean[k] = 0;
		else
			continue;
		r->source.skip[k] = gap(r, k, &r->times);
	}
}
