/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_source.h. */
#include "checker/recall/image_source.h"
#include <assert.h>
#include <stddef.h>
#include <string.h>
#include "checker/recall/observed.h"
#include "checker/recall/tree.h"
#include "faultinject/random_source.h"

#define LIFE_CUTS 4 /* the power fails at one of so many places of a life */
/* Lines that stand for what is drawn or planned. */
#define MARK_DRAW TREE_MARKS
#define MARK_LIFE (TREE_MARKS + 1)

static unsigned life_answer_to(struct image_source *is, const struct choice_point *at,
			       unsigned client, unsigned n)
{
	unsigned answer = is->visit == VISIT_PLANNED
				  ? is->plan[is->world->machine].answer[at->a - 1][client]
				  : life_draw(is->world->setup, at, client, &is->life);
	if (!answer || answer >= n)
		return 0;
	deviation_record(&is->lived[is->lives++], at, answer, n);
	return answer;
}

/* What a client does in a life. */
static unsigned life_answer_of(struct image_source *is, const struct choice_point *at, unsigned n)
{
	unsigned client = life_client(is->world, at);
	if (!is->lives) {
		is->read = is->used;
		is->read_lines = pmem_touched(is->world->pm).lines;
		is->read_rest = pmem_touched_again(is->world->pm).lines;
	}
	if (is->visit < VISIT_LIFE) {
		is->source.skip[CHOICE_LIFE] = UINT32_MAX;
		return 0;
	}
	unsigned answer = life_answer_to(is, at, client, n);
	pmem_note_mark(is->world->pm, MARK_LIFE + at->a * LIFE_CLIENTS + client, answer + 1);
	return answer;
}

bool image_draws_failure(struct image_source *is, bool led)
{
	if (led) {
		assert(is->drawn < is->draws);
		unsigned i = is->drawn++;
		return is->draw[i / 64] >> i % 64 & 1;
	}
	pmem_note_mark(is->world->pm, MARK_DRAW, 1);
	return random_next(&is->life) % LIFE_CUTS == 0;
}

uint64_t image_ways(const struct image_source *is)
{
	/* What lives put is other bytes on each machine. */
	const unsigned machine = is->world->machine;
	const uint64_t lives = is->visit < VISIT_LIFE ? 0 : 16u * machine;
	return lives + (is->visit == VISIT_PLANNED ? 8 + is->plan[machine].cut : 1 + is->visit);
}

uint64_t image_mark(struct image_source *is, uint32_t line)
{
	const struct setup *s = is->world->setup;
	if (line == MARK_DRAW) {
		bool fails = random_next(&is->life) % LIFE_CUTS == 0;
		if (is->draws == MAX_DRAWS)
			return 0; /* it is run */
		is->draw[is->draws / 64] &= ~(1ull << is->draws % 64);
		is->draw[is->draws / 64] |= (uint64_t)fails << is->draws % 64;
		is->draws++;
		return 1;
	}
	const unsigned client = (line - MARK_LIFE) % LIFE_CLIENTS;
	const struct choice_point at = {.kind = CHOICE_LIFE,
					.who = &is->world->life.who[client],
					.occurrence = 1,
					.a = (line - MARK_LIFE) / LIFE_CLIENTS};
	return life_answer_to(is, &at, client, life_kinds(s)) + 1;
}

unsigned image_decide(struct image_source *is, uint32_t line, unsigned answers)
{
	if (is->used == MAX_DECISIONS)
		return 0;
	struct decision *d = &is->decision[is->used++];
	if (is->used <= is->depth) {
		/* The same image so far: recovery and the readers ask for the same lines. */
		if (d->line == line && d->answer < d->answers)
			return d->answer;
		is->strayed = true;
		is->depth = is->used;
	}
	*d = (struct decision){
		.line = line, .answers = answers, .failed = pmem_failed(is->world->pm, line)};
	uint64_t *random = is->visit == VISIT_LIFE ? &is->life : &is->random;
	if (is->sampling || is->visit == VISIT_LIFE) {
		d->answer = (unsigned)(random_next(random) % d->answers);
		if (random_next(random) % 3 == 0)
			d->answer = 0;
	}
	return d->answer;
}

static unsigned image_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct image_source *is = (struct image_source *)source;
	if (at->kind == CHOICE_LIFE)
		return life_answer_of(is, at, n);
	if (at->kind != CHOICE_LINE) {
		source->skip[at->kind] = UINT32_MAX;
		return 0;
	}
	assert(n >= 2); /* else there is nothing to decide */
	return image_decide(is, (uint32_t)at->a, n);
}

void image_reset(struct image_source *is)
{
	memset(is, 0, offsetof(struct image_source, decision));
}

void image_start(struct image_source *is)
{
	assert(is->used <= MAX_DECISIONS && is->depth <= is->used);
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		is->source.skip[k] = k == CHOICE_LINE || k == CHOICE_LIFE ? 0 : UINT32_MAX;
	is->source.answer = image_answer;
	is->used = is->lives = 0;
	is->strayed = false;
	is->read = MAX_DECISIONS;
	is->read_lines = is->read_rest = OBSERVED_NEVER;
}

bool image_next(struct image_source *is)
{
	assert(!is->sampling && is->used <= MAX_DECISIONS);
	while (is->used) {
		struct decision *d = &is->decision[is->used - 1];
		assert(d->answer < d->answers);
		unsigned answer = pmem_line_next(d->failed, d->line, d->answer + 1);
		if (answer < d->answers) {
			d->answer = answer;
			is->depth = is->used;
			return true;
		}
		is->used--;
	}
	return false;
}
