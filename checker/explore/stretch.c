/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See stretch.h.
 *
 * A stretch is found by a hash of all that leads to it, so that nothing refers to one that was
 * dropped. It is used no later than its parent; so among those without children, the one used least
 * recently has the branch that was unused for the longest time.
 */
#include "checker/explore/stretch.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "core/rt/arena.h"

int stretches_init(struct stretches *t, size_t most)
{
	*t = (struct stretches){.most = most, .actors = actors_new()};
	return t->actors ? 0 : -ENOMEM;
}

static size_t bytes_of(const struct stretch *s)
{
	return s->room * sizeof(*s->question) + s->kind_room * sizeof(*s->kind);
}

static void free_memory(struct stretches *t, struct stretch *s)
{
	if (s != &t->root)
		t->bytes -= bytes_of(s);
	free(s->question);
	free(s->kind);
	s->question = NULL;
	s->kind = NULL;
	s->room = s->kind_room = 0;
}

/* It keeps its memory. */
static void reset(struct stretch *s)
{
	*s = (struct stretch){.question = s->question,
			      .kind = s->kind,
			      .room = s->room,
			      .kind_room = s->kind_room};
}

void stretches_free(struct stretches *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		free_memory(t, t->all[i]);
		free(t->all[i]);
	}
	free_memory(t, &t->root);
	assert(!t->bytes);
	actors_free(t->actors);
}

static struct stretch **chain_of(struct stretches *t, uint64_t name)
{
	return &t->by_name[name % STRETCHES];
}

void stretches_drop(struct stretches *t, struct stretch *s)
{
	struct stretch **at = chain_of(t, s->name);
	assert(!s->children && s->parent->children);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	s->parent->children--;
	const uint64_t name = s->name;
	reset(s);
	s->name = t->mutant == PREFIX_STALE ? name : 0;
	s->next = t->free;
	t->free = s;
}

void stretches_clear(struct stretches *t)
{
	reset(&t->root);
	t->free = NULL;
	for (unsigned i = 0; i < t->n; i++) {
		reset(t->all[i]);
		t->all[i]->next = t->free;
		t->free = t->all[i];
	}
	for (unsigned i = 0; i < STRETCHES; i++)
		t->by_name[i] = NULL;
	for (unsigned i = 0; i < SEEN; i++)
		t->seen[i] = 0;
	t->now = 0;
}

static uint64_t mix(uint64_t name, uint64_t part)
{
	name = (name ^ part) * 0x9e3779b97f4a7c15u;
	return name ^ name >> 29;
}

static uint64_t name_of(const struct stretches *t, const struct stretch *s, uint32_t question,
			unsigned answer)
{
	if (t->mutant == PREFIX_NO_QUESTION)
		question = 0;
	if (t->mutant == PREFIX_NO_ANSWER)
		answer = 1;
	return mix(mix(s->name, question + 1ull), answer + 1ull);
}

struct stretch *stretches_find(const struct stretches *t, const struct stretch *s,
			       uint32_t question, unsigned answer)
{
	const uint64_t name = name_of(t, s, question, answer);
	struct stretch *child = t->by_name[name % STRETCHES];
	while (child && child->name != name)
		child = child->next;
	assert(!child || child->parent == s || t->mutant);
	return child;
}

bool stretches_seen(const struct stretches *t, const struct stretch *s, uint32_t question,
		    unsigned answer)
{
	const uint64_t name = name_of(t, s, question, answer);
	return t->seen[name % SEEN] == name;
}

void stretches_see(struct stretches *t, const struct stretch *s, uint32_t question, unsigned answer)
{
	const uint64_t name = name_of(t, s, question, answer);
	t->seen[name % SEEN] = name;
}

/* Drop one that is not `kept`. False: there is none. */
static bool make_room(struct stretches *t, const struct stretch *kept)
{
	struct stretch *first = NULL;
	for (unsigned i = 0; i < t->n; i++) {
		struct stretch *s = t->all[i];
		if (s->parent && !s->children && s != kept && (!first || s->used < first->used))
			first = s;
	}
	if (first)
		stretches_drop(t, first);
	return first;
}

static struct stretch *take_free(struct stretches *t, const struct stretch *kept)
{
	if (!t->free && t->n < STRETCHES) {
		struct stretch *s = calloc(1, sizeof(*s));
		if (!s)
			arena_exhausted();
		t->all[t->n++] = s;
		return s;
	}
	if (!t->free && !make_room(t, kept))
		return NULL;
	struct stretch *s = t->free;
	t->free = s->next;
	return s;
}

struct stretch *stretches_add(struct stretches *t, struct stretch *s, uint32_t question,
			      unsigned answer)
{
	struct stretch *child = take_free(t, s);
	if (!child)
		return NULL;
	const uint64_t name = child->name ? child->name : name_of(t, s, question, answer);
	struct stretch **at = chain_of(t, name);
	reset(child);
	child->name = name;
	child->parent = s;
	child->next = *at;
	*at = child;
	s->children++;
	stretches_use(t, child);
	return child;
}

void stretches_use(struct stretches *t, struct stretch *s)
{
	for (; s; s = s->parent)
		s->used = ++t->now;
}

/* A dropped one that still has memory. */
static struct stretch *free_with_memory(const struct stretches *t)
{
	struct stretch *s = t->free;
	while (s && !s->room)
		s = s->next;
	return s;
}

static void keep_within(struct stretches *t, const struct stretch *kept)
{
	while (t->bytes > t->most) {
		struct stretch *s = free_with_memory(t);
		if (s)
			free_memory(t, s);
		else if (!make_room(t, kept))
			return;
	}
}

void stretch_note(struct stretches *t, struct stretch *s, const struct choice_point *at, unsigned n)
{
	const bool begins = at->kind == CHOICE_STEP && at->a == STEP_BEGIN;
	if (s->questions == s->room) {
		const size_t before = bytes_of(s);
		s->question = array_grow(s->question, &s->room, sizeof(*s->question));
		s->kind = array_grow(s->kind, &s->kind_room, sizeof(*s->kind));
		t->bytes += s == &t->root ? 0 : bytes_of(s) - before;
		keep_within(t, s);
	}
	assert(s->room == s->kind_room);
	struct question *q = &s->question[s->questions];
	*q = (struct question){.at = *at, .n = n};
	q->at.who = actors_at(t->actors, actors_number(t->actors, at->who));
	s->kind[s->questions++] = begins ? STRETCH_BEGIN : at->kind;
}
