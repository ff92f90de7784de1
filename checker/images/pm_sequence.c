/* SPDX-License-Identifier: BSD-3-Clause */
/* See pm_sequence.h. */
#include "checker/images/pm_sequence.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "faultinject/sources.h"

#define SELECTIONS 1000 /* of one length, that a PARTIAL draws from */

void pm_sequence_init(struct pm_sequence *s)
{
	memset(s, 0, sizeof(*s));
}

void pm_sequence_free(struct pm_sequence *s)
{
	free(s->at);
	free(s->used);
	pm_sequence_init(s);
}

/* --- permutations, as their numbers are counted up --- */

/* The smallest store from `from` that is not used; s->n: there is none. */
static unsigned unused(const struct pm_sequence *s, unsigned from)
{
	while (from < s->n && s->used[from])
		from++;
	return from;
}

/* Fill the places from `place` with the smallest stores that are not used. */
static void fill(struct pm_sequence *s, unsigned place)
{
	for (unsigned store = 0; place < s->len; place++) {
		store = unused(s, store);
		s->at[place] = store;
		s->used[store] = true;
	}
}

static bool next_permutation(struct pm_sequence *s)
{
	for (unsigned place = s->len; place-- > 0;) {
		unsigned store = s->at[place];
		s->used[store] = false;
		store = unused(s, store + 1);
		if (store == s->n)
			continue;
		s->at[place] = store;
		s->used[store] = true;
		fill(s, place + 1);
		return true;
	}
	/* All are unused: a longer one. */
	if (s->len == s->n)
		return false;
	s->len++;
	fill(s, 0);
	return true;
}

/* --- selections --- */

/* How many of k stores there are of n, but at most SELECTIONS. */
static uint64_t selections(unsigned n, unsigned k)
{
	uint64_t count = 1;
	if (k > n - k)
		k = n - k;
	for (unsigned i = 0; i < k && count < SELECTIONS; i++)
		count = count * (n - i) / (i + 1);
	return count < SELECTIONS ? count : SELECTIONS;
}

static uint64_t all_selections(unsigned n)
{
	uint64_t all = 0;
	for (unsigned k = 0; k <= n; k++)
		all += selections(n, k);
	return all;
}

/* The next selection of as many, in the order of their numbers. */
static void next_selection(struct pm_sequence *s)
{
	unsigned place = s->len;
	while (place-- > 0 && s->at[place] == s->n - s->len + place)
		;
	assert(place < s->len);
	s->at[place]++;
	for (unsigned i = place + 1; i < s->len; i++)
		s->at[i] = s->at[i - 1] + 1;
}

static void go_to_selection(struct pm_sequence *s, uint64_t number)
{
	s->len = 0;
	for (uint64_t n; number >= (n = selections(s->n, s->len)); s->len++)
		number -= n;
	for (unsigned i = 0; i < s->len; i++)
		s->at[i] = i;
	while (number--)
		next_selection(s);
}

/* Different ones. */
static void draw_selections(struct pm_sequence *s, uint64_t seed)
{
	uint64_t all = all_selections(s->n);
	for (unsigned i = 0; i < PM_PARTIAL_SEQUENCES && i < all;) {
		unsigned known = 0;
		s->drawn[i] = random_next(&seed) % all;
		while (known < i && s->drawn[known] != s->drawn[i])
			known++;
		i += known == i;
	}
}

/* --- all engines --- */

int pm_sequence_begin(struct pm_sequence *s, enum pm_engine engine, unsigned n, uint64_t seed)
{
	if (n > s->room || !s->at) {
		unsigned room = n * 2 + 8;
		unsigned *at = realloc(s->at, room * sizeof(*at));
		s->at = at ? at : s->at;
		bool *used = realloc(s->used, room * sizeof(*used));
		s->used = used ? used : s->used;
		if (!at || !used)
			return -ENOMEM;
		s->room = room;
	}
	s->engine = engine;
	s->n = n;
	s->len = 0;
	s->given = 0;
	s->count = pm_sequence_count(engine, n);
	memset(s->used, 0, s->room * sizeof(*s->used));
	if (engine == PM_PARTIAL)
		draw_selections(s, seed);
	return 0;
}

bool pm_sequence_next(struct pm_sequence *s)
{
	uint64_t i = s->given;
	if (i == s->count)
		return false;
	s->given++;
	if (s->engine == PM_FULL)
		return !i || next_permutation(s);
	if (s->engine == PM_PARTIAL) {
		go_to_selection(s, s->drawn[i]);
		return true;
	}
	s->len = s->engine == PM_DO_CHECK ? s->n : (unsigned)i;
	for (unsigned k = 0; k < s->len; k++)
		s->at[k] = s->engine == PM_REVERSE ? s->n - 1 - k : k;
	return true;
}

/* Of each length k: n (n-1) ... (n-k+1). */
static uint64_t permutations(unsigned n)
{
	uint64_t all = 1, of_length = 1;
	for (unsigned k = 0; k < n; k++)
		if (__builtin_mul_overflow(of_length, (uint64_t)(n - k), &of_length) ||
		    __builtin_add_overflow(all, of_length, &all))
			return UINT64_MAX;
	return all;
}

uint64_t pm_sequence_count(enum pm_engine engine, unsigned n)
{
	switch (engine) {
	case PM_DO_CHECK:
		return 1;
	case PM_FULL:
		return permutations(n);
	case PM_ACCUMULATIVE:
	case PM_REVERSE:
		return (uint64_t)n + 1;
	case PM_PARTIAL:
		/* Of no store there is one selection, of one store there are two. */
		return n < 2 ? n + 1 : PM_PARTIAL_SEQUENCES;
	default:
		return 0;
	}
}
