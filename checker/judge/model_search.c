/* SPDX-License-Identifier: BSD-3-Clause */
/* See model_search.h. */
#include "checker/judge/model_search.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "core/rt/arena.h"

void model_set_free(struct model_set *set)
{
	free(set->config);
	free(set->state);
	*set = (struct model_set){0};
}

static void make_room(const struct tm_model *model, struct model_set *set, unsigned n)
{
	if (n <= set->room)
		return;
	unsigned room = set->room ? 2 * set->room : 16;
	room = room < n ? n : room;
	set->config = realloc(set->config, room * sizeof(*set->config));
	set->state = realloc(set->state, room * model->bytes + 1);
	if (!set->config || !set->state)
		arena_exhausted();
	set->room = room;
}

void model_set_copy(const struct tm_model *model, struct model_set *to,
		    const struct model_set *from)
{
	make_room(model, to, from->n);
	to->n = from->n;
	if (!from->n)
		return;
	memcpy(to->config, from->config, from->n * sizeof(*from->config));
	memcpy(to->state, from->state, from->n * model->bytes);
}

static uint64_t hash_of(const struct tm_model *model, const uint8_t *state, uint64_t done)
{
	return XXH3_64bits_withSeed(state, model->bytes, done);
}

int model_set_find(const struct tm_model *model, const struct model_set *set, const uint8_t *state,
		   uint64_t done)
{
	const uint64_t hash = hash_of(model, state, done);
	for (unsigned i = 0; i < set->n; i++)
		if (set->config[i].hash == hash && set->config[i].done == done &&
		    !memcmp(set->state + i * model->bytes, state, model->bytes))
			return (int)i;
	return -1;
}

bool model_set_add(const struct tm_model *model, struct model_set *set, const uint8_t *state,
		   uint64_t done)
{
	if (model_set_find(model, set, state, done) >= 0)
		return true;
	if (set->n == MODEL_CONFIGS)
		return false;
	make_room(model, set, set->n + 1);
	set->config[set->n] = (struct model_config){done, hash_of(model, state, done)};
	memcpy(set->state + set->n++ * model->bytes, state, model->bytes);
	return true;
}

static uint8_t *state_of(const struct model_search *s, unsigned i)
{
	return s->set.state + i * s->model->bytes;
}

/* As model_set_add(), unless another one has done the same but fewer operations without an
 * answer. */
static bool add(struct model_search *s, const uint8_t *state, uint64_t done)
{
	for (unsigned i = 0; i < s->set.n && s->facts; i++) {
		uint64_t other = s->set.config[i].done;
		if (!(other & ~done) && !(done & ~other & ~s->optional) &&
		    !memcmp(state_of(s, i), state, s->model->bytes))
			return true;
	}
	return model_set_add(s->model, &s->set, state, done);
}

/* Is there one before it that could stand for it, and has not taken effect? */
static bool has_twin(const struct model_search *s, uint64_t rest, unsigned slot)
{
	const struct tm_event *e = &s->event[s->open.op[slot]];
	if (!s->facts || !(s->optional >> slot & 1))
		return false;
	for (rest &= s->optional & ((1ull << slot) - 1); rest; rest &= rest - 1)
		if (s->facts->alike(&s->event[s->open.op[__builtin_ctzll(rest)]], e))
			return true;
	return false;
}

/* Operations of this configuration that only look, and whose answers fit, are done at once. */
static void look(struct model_search *s, unsigned i)
{
	struct model_config *c = &s->set.config[i];
	for (uint64_t rest = s->open.used & ~c->done; rest; rest &= rest - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(rest);
		const struct tm_event *e = &s->event[s->open.op[slot]];
		if (!e->answered || !s->facts->looks(e))
			continue;
		memcpy(s->scratch, state_of(s, i), s->model->bytes);
		if (s->model->apply(s->scratch, e))
			c->done |= 1ull << slot;
	}
	c->hash = hash_of(s->model, state_of(s, i), c->done);
}

/* Let one more open operation take effect, in all ways, until nothing new comes of it. */
static void close_set(struct model_search *s)
{
	const size_t bytes = s->model->bytes;
	for (unsigned i = 0; i < s->set.n && !s->full; i++) {
		if (s->facts)
			look(s, i);
		const uint64_t left = s->open.used & ~s->set.config[i].done;
		for (uint64_t rest = left; rest; rest &= rest - 1) {
			unsigned slot = (unsigned)__builtin_ctzll(rest);
			const struct tm_event *e = &s->event[s->open.op[slot]];
			if (has_twin(s, left, slot))
				continue;
			memcpy(s->scratch, state_of(s, i), bytes);
			if (!s->model->apply(s->scratch, e))
				continue;
			/* What changes nothing and is not waited for need not be followed. */
			if (!e->answered && !memcmp(s->scratch, state_of(s, i), bytes))
				continue;
			s->full |= !add(s, s->scratch, s->set.config[i].done | 1ull << slot);
		}
	}
}

void model_begin(struct model_search *s, const struct model_set *start)
{
	model_set_copy(s->model, &s->set, start);
	s->open.used = s->optional = 0;
	s->full = false;
}

void model_invoke(struct model_search *s, unsigned op)
{
	if (!~s->open.used) {
		s->full = true;
		return;
	}
	unsigned slot = (unsigned)__builtin_ctzll(~s->open.used);
	s->open.used |= 1ull << slot;
	if (s->facts && !s->event[op].answered)
		s->optional |= 1ull << slot;
	s->open.op[slot] = op;
	close_set(s);
}

/* Keep the configurations that have all of `bits` done, and take these from them. */
static void keep(struct model_search *s, uint64_t having, uint64_t drop)
{
	const size_t bytes = s->model->bytes;
	unsigned n = s->set.n;
	s->set.n = 0;
	for (unsigned i = 0; i < n; i++) {
		uint64_t done = s->set.config[i].done;
		if ((done & having) != having)
			continue;
		/* It moves towards the beginning, where those before it have made room. */
		memcpy(s->scratch, state_of(s, i), bytes);
		add(s, s->scratch, done & ~drop);
	}
}

uint64_t model_slot(const struct model_slots *slots, unsigned op)
{
	uint64_t rest = slots->used;
	while (rest && slots->op[__builtin_ctzll(rest)] != op)
		rest &= rest - 1;
	assert(rest); /* it was invoked, and is open */
	return rest & -rest;
}

bool model_return(struct model_search *s, unsigned op)
{
	if (!s->event[op].answered || s->full)
		return true;
	uint64_t bit = model_slot(&s->open, op);
	keep(s, bit, bit);
	s->open.used &= ~bit;
	/* Operations that have taken effect in all of them need not be waited for. */
	uint64_t all = s->optional;
	for (unsigned i = 0; i < s->set.n; i++)
		all &= s->set.config[i].done;
	if (all)
		keep(s, 0, all);
	s->open.used &= ~all;
	s->optional &= ~all;
	return s->set.n > 0;
}

void model_crash(struct model_search *s)
{
	keep(s, 0, UINT64_MAX);
	s->open.used = s->optional = 0;
}
