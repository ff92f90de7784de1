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
#include <string.h>
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
		checkpoint_free(&m->mark[i].at);
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
	struct choice_point at; /* who: see below */
	unsigned n;
	unsigned who; /* which of the actors, + 1; 0: none */
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
	struct actor *who; /* their names */
	unsigned actors, actor_room;
	struct marks marks;
	bool failed, known; /* out of memory; the record is of use */
	struct {
		struct source source;
		struct source *inner;
		unsigned answer; /* to the question after those it skips; 0: `inner` is asked */
	} rest;
};

struct prefix *prefix_new(void)
{
	return calloc(1, sizeof(struct prefix));
}

void prefix_free(struct prefix *p)
{
	if (!p)
		return;
	for (unsigned k = 0; k <= CHOICE_KINDS; k++)
		free(p->list[k].at);
	free(p->question);
	free(p->who);
	marks_free(&p->marks);
	free(p);
}

/* Room for one more. False: out of memory. */
static bool grow(struct prefix *p, void **array, uint32_t n, uint32_t *room, size_t each)
{
	if (n < *room)
		return true;
	uint32_t more = *room ? 2 * *room : 64;
	void *grown = reallocarray(*array, more, each);
	if (!grown) {
		p->failed = true;
		return false;
	}
	*array = grown;
	*room = more;
	return true;
}

static void add_to(struct prefix *p, struct list *l, uint32_t question)
{
	void *at = l->at;
	if (grow(p, &at, l->n, &l->room, sizeof(*l->at)))
		((uint32_t *)at)[l->n++] = question;
	l->at = at;
}

/* The number of the actor, + 1. */
static unsigned number_of(struct prefix *p, const struct actor *who)
{
	for (unsigned i = p->actors; i; i--)
		if (p->who[i - 1].name_hash == who->name_hash)
			return i;
	void *array = p->who;
	if (grow(p, &array, p->actors, &p->actor_room, sizeof(*p->who)))
		((struct actor *)array)[p->actors++] = *who;
	p->who = array;
	return p->actors;
}

static unsigned record(struct source *source, const struct choice_point *at, unsigned n)
{
	struct prefix *p = (struct prefix *)source;
	void *array = p->question;
	if (p->failed || !grow(p, &array, p->questions, &p->room, sizeof(*p->question)))
		return 0;
	p->question = array;
	p->question[p->questions] = (struct question){
		.at = *at, .n = n, .who = at->who ? number_of(p, at->who) : 0};
	const bool begins = at->kind == CHOICE_STEP && at->a == STEP_BEGIN;
	if (!begins)
		add_to(p, &p->list[at->kind], p->questions);
	if (at->kind == CHOICE_STEP)
		add_to(p, &p->list[STEPS_AND_BEGINS], p->questions);
	p->questions++;
	return 0;
}

struct source *prefix_record(struct prefix *p)
{
	p->recorder = (struct source){.answer = record, .begins = true};
	p->questions = p->actors = 0;
	p->failed = p->known = false;
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
	p->known = !p->failed && p->marks.n && !p->marks.mark[0].position;
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

static unsigned ask_one(const struct prefix *p, struct source *source, uint32_t question)
{
	const struct question *q = &p->question[question];
	struct choice_point at = q->at;
	at.who = q->who ? &p->who[q->who - 1] : NULL;
	return source->answer(source, &at, q->n);
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
		const unsigned kind = p->question[question].at.kind;
		past[kind] += source->skip[kind];
		assert(list_of(p, kind, begins)->at[past[kind]] == question);
		source->skip[kind] = 0;
		past[kind]++;
		answer = ask_one(p, source, question);
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
