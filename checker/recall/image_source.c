/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_source.h. */
#include "checker/recall/image_source.h"
#include <assert.h>
#include <stddef.h>
#include <string.h>
#include "checker/recall/observed.h"

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
	unsigned answer = is->visit == VISIT_PLANNED
				  ? is->plan[is->world->machine].answer[at->a - 1][client]
				  : life_draw(is->world->setup, at, client, &is->life);
	if (!answer || answer >= n)
		return 0;
	deviation_record(&is->lived[is->lives++], at, answer, n);
	return answer;
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
