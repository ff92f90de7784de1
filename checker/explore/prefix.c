/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See prefix.h.
 *
 * To note all that a run is asked takes as long as a tenth of a run, and most runs begin a stretch
 * that no other will. So a run is noted only from where it leaves the tree, and only if an earlier
 * one has left it there which did not deviate any more until its end: such runs are repeated. What
 * the run deviates from there on is noted as further stretches. A run that does not deviate where
 * an earlier one did, beyond which nothing is known, leaves the tree, too; the stretch goes on
 * then.
 */
#include "checker/explore/prefix.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "checker/explore/stretch.h"
#include "core/rt/sim.h"

#define WAY 48 /* deviations of a run that are led along the tree, at most */

/* A part of the way from the mark to where the source's own run begins. */
struct step {
	const struct stretch *along;
	uint32_t skip[CHOICE_KINDS]; /* so many of its questions are answered with 0, ... */
	uint32_t question;	     /* ... until this one is */
	unsigned answer;	     /* with this; 0: the way ends before */
};

struct prefix {
	struct stretches tree;
	struct source recorder;
	struct marks marks;
	bool usable;
	struct source rest;
	struct source *inner; /* the source of the run; NULL: of the plain one */
	struct step way[WAY];
	unsigned steps, taken;
	struct stretch *at;   /* where the run ends, if it is noted or known */
	struct stretch *note; /* questions are noted there; NULL: they are not */
	/* The last stretch that the run noted, and the one where it left the tree, which had so
	 * many questions. */
	struct stretch *tip, *base;
	uint32_t base_questions;
	uint32_t asked; /* by the plain run */
};

struct prefix *prefix_new(size_t bytes)
{
	struct prefix *p = calloc(1, sizeof(*p));
	if (p && !stretches_init(&p->tree, bytes))
		return p;
	free(p);
	return NULL;
}

void prefix_free(struct prefix *p)
{
	if (!p)
		return;
	stretches_free(&p->tree);
	marks_free(&p->marks);
	free(p);
}

/* --- a run that is noted --- */

/* As the simulation would ask. */
static unsigned ask(struct source *source, const struct choice_point *at, unsigned n)
{
	if (!source || (at->kind == CHOICE_STEP && at->a == STEP_BEGIN && !source->begins))
		return 0;
	if (source->skip[at->kind]) {
		source->skip[at->kind]--;
		return 0;
	}
	return source->answer(source, at, n);
}

static unsigned record(struct source *source, const struct choice_point *at, unsigned n)
{
	struct prefix *p = (struct prefix *)((char *)source - offsetof(struct prefix, recorder));
	const unsigned answer = ask(p->inner, at, n);
	struct stretch *s = p->note;
	if (!s)
		return answer;
	stretch_note(&p->tree, s, at, n);
	p->asked++;
	if (answer) {
		p->at = p->note = stretches_add(&p->tree, s, s->questions - 1, answer);
		p->tip = p->note ? p->note : s;
	}
	return answer;
}

struct source *prefix_record(struct prefix *p)
{
	stretches_clear(&p->tree);
	marks_clear(&p->marks);
	p->recorder = (struct source){.answer = record, .begins = true};
	p->inner = NULL;
	p->at = p->note = p->tip = &p->tree.root;
	p->asked = 0;
	p->usable = false;
	return &p->recorder;
}

struct marks *prefix_marks(struct prefix *p, const uint32_t **position)
{
	*position = &p->asked;
	return &p->marks;
}

/* The run left the tree and was not noted. */
static void see_end(struct prefix *p, unsigned taken)
{
	const struct step *last = &p->way[p->steps - 1];
	if (taken == p->steps - !last->answer)
		stretches_see(&p->tree, last->along, last->question, last->answer);
}

/* What a run has noted is useless if it did not look at all of its points: a run that is led along
 * could get there with deviations still to come. */
static void forget_noted(struct prefix *p)
{
	while (p->tip != p->base) {
		struct stretch *s = p->tip;
		p->tip = s->parent;
		stretches_drop(&p->tree, s);
	}
	p->base->questions = p->base_questions;
}

void prefix_made(struct prefix *p, bool whole, unsigned taken, const struct known_run *run)
{
	struct stretch *s = p->at;
	if (!p->inner)
		p->usable = p->marks.n && !p->marks.mark[0].position;
	if (p->inner && p->tip && !whole) {
		forget_noted(p);
		s = NULL;
	} else if (p->note) {
		s->ended = whole;
	}
	if (s && s->ended && run) {
		s->known = true;
		s->run = *run;
	}
	if (!s && whole)
		see_end(p, taken);
	p->at = p->note = p->tip = NULL;
}

/* --- a source whose run is to come --- */

/* Ask the source along the stretch. Its first answer that is not 0, with *question; 0: there is
 * none. */
static unsigned ask_along(const struct stretch *s, struct source *source, uint32_t *question)
{
	unsigned answer = 0;
	uint32_t i;
	for (i = 0; i < s->questions && !answer; i++) {
		const unsigned kind = s->kind[i];
		if (kind < CHOICE_KINDS && source->skip[kind])
			source->skip[kind]--;
		else
			answer = ask(source, &s->question[i].at, s->question[i].n);
	}
	*question = answer ? i - 1 : i;
	return answer;
}

/* Ask it along the tree. The stretch at whose end the run ends; NULL: it leaves the tree. */
static struct stretch *ask_all(struct prefix *p, struct source *source)
{
	struct stretch *s, *next = &p->tree.root;
	struct step *step;
	p->steps = 0;
	do {
		s = next;
		step = &p->way[p->steps++];
		step->along = s;
		step->answer = ask_along(s, source, &step->question);
		next = step->answer ? stretches_find(&p->tree, s, step->question, step->answer)
				    : NULL;
	} while (next && p->steps < WAY);
	stretches_use(&p->tree, s);
	return !step->answer && s->ended ? s : NULL;
}

/* Where is what the source's run is asked to be noted from now on? NULL: it is not. */
static struct stretch *note_from(struct prefix *p)
{
	const struct step *last = &p->way[p->steps - 1];
	struct stretch *s = (struct stretch *)last->along;
	if (p->steps == WAY || !stretches_seen(&p->tree, s, last->question, last->answer))
		return NULL;
	p->base = s;
	p->base_questions = s->questions;
	return last->answer ? stretches_add(&p->tree, s, last->question, last->answer) : s;
}

/* The questions of a step between the mark and its deviation. */
static void count_skipped(struct step *step, uint32_t from, enum checkpoint_mutant mutant)
{
	memset(step->skip, 0, sizeof(step->skip));
	for (uint32_t i = from; i < step->question; i++) {
		const unsigned kind = step->along->kind[i];
		step->skip[kind == STRETCH_BEGIN ? CHOICE_STEP : kind]++;
	}
	for (unsigned k = 0; k < CHOICE_KINDS && mutant == CHECKPOINT_MISCOUNTED; k++)
		step->skip[k] -= step->skip[k] > 0;
}

static void begin_step(struct prefix *p)
{
	memcpy(p->rest.skip, p->way[p->taken].skip, sizeof(p->rest.skip));
}

/* The questions of a step are over, or all of them, and a caller kept this source to give it back
 * later, as the world does while a new server is looked at. */
static unsigned rest_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct prefix *p = (struct prefix *)((char *)source - offsetof(struct prefix, rest));
	const unsigned answer = p->taken < p->steps ? p->way[p->taken++].answer : 0;
	if (p->taken < p->steps) {
		assert(answer);
		begin_step(p);
		return answer;
	}
	struct source *next = p->note ? &p->recorder : p->inner;
	sim_source(sim_current(), next);
	return answer ? answer : ask(next, at, n);
}

struct mark *prefix_ask(struct prefix *p, struct source *source, struct source **rest,
			enum checkpoint_mutant mutant)
{
	if (!p->usable)
		return NULL;
	p->tree.mutant = mutant;
	p->inner = source;
	p->at = ask_all(p, source);
	p->tip = p->note = p->at ? NULL : note_from(p);
	if (p->note)
		p->at = p->note;
	if (!p->at && mutant == PREFIX_WRONG_RUN)
		p->at = &p->tree.root;
	const uint32_t first = p->way[mutant == CHECKPOINT_OTHER_BRANCH ? p->steps - 1 : 0]
				       .question;
	struct mark *from = marks_before(&p->marks, first);
	if (mutant == CHECKPOINT_LATE && from < &p->marks.mark[p->marks.n - 1])
		from++;
	for (unsigned i = 0; i < p->steps; i++)
		count_skipped(&p->way[i], i ? 0 : from->position, mutant);
	p->rest = (struct source){.answer = rest_answer, .begins = true};
	p->taken = 0;
	begin_step(p);
	*rest = &p->rest;
	return from;
}

const struct known_run *prefix_known(const struct prefix *p)
{
	return p->at && p->at->known ? &p->at->run : NULL;
}
