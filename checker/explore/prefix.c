/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See prefix.h.
 *
 * A source says of each kind of choice how many questions of that kind it answers with 0 unasked
 * (struct source, skip), so the recorded questions are kept by kind, too: the next one that it is
 * really asked is the first, over all kinds, of those that it does not skip. Sources differ in
 * whether they are asked before an operation begins; steps are listed with these questions and
 * without.
 */
#include "checker/explore/prefix.h"
#include <assert.h>
#include <stdlib.h>
#include "core/rt/actors.h"
#include "core/rt/arena.h"
#include "core/rt/sim.h"

#define SPACING 12 /* questions between two marks of a short run */

void marks_clear(struct marks *m)
{
	m->n = 0;
	m->spacing = SPACING;
}

void marks_free(struct marks *m)
{
	for (unsigned i = 0; i < MARKS; i++)
		snapshot_free(&m->mark[i].at);
	*m = (struct marks){0};
}

/* Every other one goes; its memory is of use again. */
static void thin_out(struct marks *m)
{
	for (unsigned i = 1; 2 * i < MARKS; i++) {
		const struct mark kept = m->mark[2 * i];
		m->mark[2 * i] = m->mark[i];
		m->mark[i] = kept;
	}
	m->n = MARKS / 2;
	m->spacing *= 2;
}

struct mark *marks_next(struct marks *m, uint32_t position)
{
	struct mark *last = m->n ? &m->mark[m->n - 1] : NULL;
	if (last && !position)
		return last;
	if (last && position < last->position + m->spacing)
		return NULL;
	if (m->n == MARKS)
		thin_out(m);
	m->mark[m->n].position = position;
	return &m->mark[m->n++];
}

struct mark *marks_before(struct marks *m, uint32_t position)
{
	unsigned n = m->n;
	while (n && m->mark[n - 1].position > position)
		n--;
	return n ? &m->mark[n - 1] : NULL;
}

/* --- the plain run --- */

struct question {
	struct choice_point at; /* who: one of prefix.actors */
	unsigned n;
};

/* Questions of one kind, by their numbers. */
struct list {
	uint32_t *at, n, room;
};

#define STEPS_AND_BEGINS CHOICE_KINDS /* the list of steps with those before an operation */

struct prefix {
	struct source recorder;
	struct question *question;
	uint32_t questions, room;
	struct list list[CHOICE_KINDS + 1];
	struct actors *actors;
	struct marks marks;
	bool known; /* the record is of use */
	struct {
		struct source source;
		struct source *inner;
		unsigned answer; /* to the question after those it skips; 0: `inner` is asked */
	} rest;
};

struct prefix *prefix_new(void)
{
	struct prefix *p = calloc(1, sizeof(*p));
	if (p)
		p->actors = actors_new();
	if (p && p->actors)
		return p;
	free(p);
	return NULL;
}

void prefix_free(struct prefix *p)
{
	if (!p)
		return;
	for (unsigned k = 0; k <= CHOICE_KINDS; k++)
		free(p->list[k].at);
	free(p->question);
	actors_free(p->actors);
	marks_free(&p->marks);
	free(p);
}

static void add_to(struct list *l, uint32_t question)
{
	if (l->n == l->room)
		l->at = array_grow(l->at, &l->room, sizeof(*l->at));
	l->at[l->n++] = question;
}

static unsigned record(struct source *source, const struct choice_point *at, unsigned n)
{
	struct prefix *p = (struct prefix *)source;
	struct question q = {.at = *at, .n = n};
	q.at.who = actors_at(p->actors, actors_number(p->actors, at->who));
	if (at->kind != CHOICE_STEP || at->a != STEP_BEGIN)
		add_to(&p->list[at->kind], p->questions);
	if (at->kind == CHOICE_STEP)
		add_to(&p->list[STEPS_AND_BEGINS], p->questions);
	if (p->questions == p->room)
		p->question = array_grow(p->question, &p->room, sizeof(*p->question));
	p->question[p->questions++] = q;
	return 0;
}

struct source *prefix_record(struct prefix *p)
{
	p->recorder = (struct source){.answer = record, .begins = true};
	p->questions = 0;
	p->known = false;
	for (unsigned k = 0; k <= CHOICE_KINDS; k++)
		p->list[k].n = 0;
	marks_clear(&p->marks);
	return &p->recorder;
}

struct marks *prefix_marks(struct prefix *p, const uint32_t **position)
{
	*position = &p->questions;
	return &p->marks;
}

void prefix_recorded(struct prefix *p)
{
	p->known = p->marks.n && !p->marks.mark[0].position;
}

/* --- a source whose run is to come --- */

static const struct list *list_of(const struct prefix *p, unsigned kind, bool begins)
{
	return &p->list[kind == CHOICE_STEP && begins ? STEPS_AND_BEGINS : kind];
}

/* How many of the list come before the question. */
static uint32_t before(const struct list *l, uint32_t question)
{
	uint32_t low = 0, high = l->n;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (l->at[middle] < question)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The next question that the source does not skip; all of them: there is none. `past`: by kind, how
 * many questions came before its skip[] counts. */
static uint32_t next_asked(const struct prefix *p, const struct source *source,
			   const uint32_t past[CHOICE_KINDS])
{
	uint32_t next = p->questions;
	for (unsigned k = 0; k < CHOICE_KINDS; k++) {
		const struct list *l = list_of(p, k, source->begins);
		const uint64_t i = (uint64_t)past[k] + source->skip[k];
		if (i < l->n && l->at[i] < next)
			next = l->at[i];
	}
	return next;
}

/* The source is as after all questions before this one. */
static void skip_to(const struct prefix *p, struct source *source, uint32_t past[CHOICE_KINDS],
		    uint32_t question)
{
	for (unsigned k = 0; k < CHOICE_KINDS; k++) {
		const uint32_t now = before(list_of(p, k, source->begins), question);
		if (now <= past[k]) /* the last one that was asked */
			continue;
		assert(source->skip[k] >= now - past[k]);
		source->skip[k] -= now - past[k];
		past[k] = now;
	}
}

/* Its questions between mark and deviation are over. */
static unsigned rest_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct prefix *p = (struct prefix *)((char *)source - offsetof(struct prefix, rest.source));
	struct source *inner = p->rest.inner;
	sim_source(sim_current(), inner);
	if (p->rest.answer)
		return p->rest.answer;
	if (inner->skip[at->kind]) {
		inner->skip[at->kind]--;
		return 0;
	}
	return inner->answer(inner, at, n);
}

struct mark *prefix_ask(struct prefix *p, struct source *source, struct source **rest,
			enum checkpoint_mutant mutant)
{
	uint32_t past[CHOICE_KINDS] = {0}, question = 0;
	unsigned answer = 0;
	const bool begins = source->begins;
	if (!p->known)
		return NULL;
	while (!answer) {
		question = next_asked(p, source, past);
		if (question == p->questions)
			break;
		const struct question *q = &p->question[question];
		const unsigned kind = q->at.kind;
		past[kind] += source->skip[kind];
		assert(list_of(p, kind, begins)->at[past[kind]] == question);
		source->skip[kind] = 0;
		past[kind]++;
		answer = source->answer(source, &q->at, q->n);
		assert(answer || source->begins == begins);
	}
	p->rest.source = (struct source){.answer = rest_answer, .begins = begins};
	p->rest.inner = source;
	p->rest.answer = answer;
	struct mark *from = marks_before(&p->marks, question);
	if (mutant == CHECKPOINT_LATE && from < &p->marks.mark[p->marks.n - 1])
		from++;
	for (unsigned k = 0; k < CHOICE_KINDS; k++) {
		const struct list *l = list_of(p, k, begins);
		p->rest.source.skip[k] = before(l, question) - before(l, from->position);
		if (mutant == CHECKPOINT_MISCOUNTED && p->rest.source.skip[k])
			p->rest.source.skip[k]--;
	}
	skip_to(p, source, past, question);
	*rest = &p->rest.source;
	return from;
}
