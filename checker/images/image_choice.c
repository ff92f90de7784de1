/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_choice.h. */
#include "checker/images/image_choice.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "core/pmem/crash.h"
#include "faultinject/random_source.h"

/* With more versions a line is told apart by where the first ones of it come from. */
#define SOURCE_VERSIONS 1024

enum { EVERYTHING, NOTHING, ONE_CUT, ONE_MISSING, ONE_ALONE, ONE_SOURCE, MOMENTS, REST, PHASES };

void image_choice_init(struct image_choice *c, const struct pm_replay *replay, unsigned most)
{
	memset(c, 0, sizeof(*c));
	c->replay = replay;
	c->most = most;
	c->limit = UINT_MAX;
}

void image_choice_free(struct image_choice *c)
{
	free(c->left);
	free(c->source);
	memset(c, 0, sizeof(*c));
}

static const struct pm_line *line_of(const struct image_choice *c, unsigned i)
{
	return &c->replay->dirty[i];
}

static uint32_t source_of(const struct image_choice *c, unsigned line, unsigned nth)
{
	const struct pm_replay *r = c->replay;
	return r->log->event[pm_replay_event(line_of(c, line), nth)].source;
}

/* Versions of a line that are looked at for where they come from. */
static unsigned sourced(const struct image_choice *c, unsigned line)
{
	unsigned versions = line_of(c, line)->versions;
	return versions < SOURCE_VERSIONS ? versions : SOURCE_VERSIONS;
}

static bool add_source(struct image_choice *c, uint32_t source)
{
	for (unsigned i = 0; i < c->sources; i++)
		if (c->source[i] == source)
			return true;
	if (!ARRAY_RESERVE(c->source, c->sources, 1, c->source_room))
		return false;
	c->source[c->sources++] = source;
	return true;
}

static bool find_sources(struct image_choice *c)
{
	bool room = true;
	c->sources = 0;
	for (unsigned i = 0; i < c->lines; i++) {
		/* So many lines are not told apart by where they come from. */
		for (unsigned n = 0; n < sourced(c, i) && c->sources < c->most && room; n++)
			room = add_source(c, source_of(c, i, n));
	}
	return room;
}

static bool can_cut(const struct image_choice *c, unsigned line)
{
	const struct pm_line *l = line_of(c, line);
	return pm_replay_answers(c->replay, l) > l->versions + 1;
}

/* After `left` of its versions, or after such a cut, the next cut of the line with a content that
 * is no other's. 0: there is none. */
static unsigned next_cut(struct image_choice *c, unsigned line, unsigned left)
{
	const struct pm_line *l = line_of(c, line);
	unsigned answers = pm_replay_answers(c->replay, l);
	if (!can_cut(c, line) || l->versions > CUT_VERSIONS)
		return 0;
	for (unsigned v = 0; v <= l->versions; v++)
		pm_replay_content(c->replay, l, v, (uint8_t *)c->history[v].word);
	unsigned next = pmem_answer_next(c->history, l->versions, answers,
					 (left > l->versions ? left : l->versions) + 1);
	assert(next > left && next <= answers); /* so a line's cuts come to an end */
	return next < answers ? next : 0;
}

/* How many different things may be left of the line; `enough`: so many, or more. */
static unsigned count_left(struct image_choice *c, unsigned line, unsigned enough)
{
	unsigned n = line_of(c, line)->versions + 1;
	for (unsigned cut = 0; n < enough && (cut = next_cut(c, line, cut));)
		n++;
	return n;
}

/* For three numbers of each line, and for one where there is none. */
static bool make_room(struct image_choice *c)
{
	if (!ARRAY_RESERVE(c->left, 0, 3 * (size_t)c->lines + 1, c->room))
		return false;
	c->whole = c->left + c->lines;
	c->count = c->whole + c->lines;
	return true;
}

int image_choice_begin(struct image_choice *c)
{
	c->lines = c->replay->dirties;
	if (!make_room(c))
		return -ENOMEM;
	for (unsigned i = 0; i < c->lines; i++)
		c->whole[i] = line_of(c, i)->versions;
	uint64_t images = 1;
	for (unsigned i = 0; i < c->lines && images <= c->most; i++)
		images *= count_left(c, i, c->most + 1);
	memset(c->count, 0, c->lines * sizeof(*c->count));
	c->all = images <= c->most;
	c->bounded = !c->all;
	c->one = false;
	c->phase = c->i = c->j = c->given = 0;
	c->random = c->replay->at;
	return find_sources(c) ? 0 : -ENOMEM;
}

static void set_all(struct image_choice *c, bool left)
{
	if (left)
		memcpy(c->left, c->whole, c->lines * sizeof(*c->left));
	else
		memset(c->left, 0, c->lines * sizeof(*c->left));
}

/* What came before the line's first version of this source. */
static void leave_out(struct image_choice *c, uint32_t source)
{
	for (unsigned i = 0; i < c->lines; i++) {
		unsigned n = 0;
		while (n < sourced(c, i) && source_of(c, i, n) != source)
			n++;
		c->left[i] = n < sourced(c, i) ? n : line_of(c, i)->versions;
	}
}

/* The process dies before this event, which changes a line. What it does after that is not counted
 * any more: it was taken back when those events were asked for. */
static void leave_until(struct image_choice *c, const struct pm_event *e)
{
	const struct pm_replay *r = c->replay;
	uint32_t slot = r->slot[e->file][e->off / PM_LINE];
	if (slot && c->count[slot - 1] &&
	    pm_replay_event(&r->dirty[slot - 1], c->count[slot - 1] - 1) ==
		    (uint32_t)(e - r->log->event))
		c->count[slot - 1]--;
	memcpy(c->left, c->count, c->lines * sizeof(*c->left));
}

/* Count up. False: that was the last. The count is kept, as not every image is allowed. */
static bool count_up(struct image_choice *c)
{
	unsigned i = 0;
	if (!c->i++) {
		memset(c->count, 0, c->lines * sizeof(*c->count));
	} else {
		for (; i < c->lines; i++) {
			bool whole = c->count[i] < line_of(c, i)->versions;
			c->count[i] = whole ? c->count[i] + 1 : next_cut(c, i, c->count[i]);
			if (c->count[i])
				break;
		}
		if (i == c->lines)
			return false;
	}
	memcpy(c->left, c->count, c->lines * sizeof(*c->left));
	return true;
}

static unsigned draw(struct image_choice *c, unsigned line)
{
	unsigned versions = line_of(c, line)->versions;
	uint64_t random = random_next(&c->random);
	if (!can_cut(c, line) || random & 1)
		return (unsigned)((can_cut(c, line) ? random >> 1 : random) % (versions + 1));
	unsigned cuts = pm_replay_answers(c->replay, line_of(c, line)) - versions - 1;
	return versions + 1 + (unsigned)((random >> 1) % cuts);
}

/* Cuts of one line, with all that is in flight on the others, and with nothing of that: one of each
 * line, then another of each. False: there are no more, or so many that other images need their
 * turn. */
static bool one_cut(struct image_choice *c)
{
	unsigned without = 0;
	if (pm_replay_torn(c->replay) == TORN_OFF || c->given > c->most / 2)
		return false;
	for (; !c->j && without < c->lines; without++) {
		c->i = (c->i + 1) % c->lines;
		if (c->count[c->i] == UINT_MAX)
			continue; /* it has no more */
		c->count[c->i] = next_cut(c, c->i, c->count[c->i]);
		if (c->count[c->i])
			break;
		c->count[c->i] = UINT_MAX;
	}
	if (without == c->lines)
		return false;
	set_all(c, !c->j);
	c->left[c->i] = c->count[c->i];
	c->j = !c->j;
	return true;
}

/* The jth way for line i to miss something, or to be there alone: fewer versions. */
static bool one_line(struct image_choice *c, bool missing)
{
	if (c->i == c->lines)
		return false;
	set_all(c, missing);
	unsigned versions = line_of(c, c->i)->versions;
	assert(c->j < versions); /* a line in flight has one at least */
	c->left[c->i] = missing ? c->j : versions - c->j;
	if (++c->j == versions) {
		c->i++;
		c->j = 0;
	}
	return true;
}

/* The next image of the phase. False: it has no more. */
static bool step(struct image_choice *c)
{
	switch (c->phase) {
	case EVERYTHING:
	case NOTHING:
		set_all(c, c->phase == EVERYTHING);
		return !c->i++;
	case ONE_CUT:
		return one_cut(c);
	case ONE_MISSING:
	case ONE_ALONE:
		return one_line(c, c->phase == ONE_MISSING);
	case ONE_SOURCE:
		if (c->i == c->sources || c->sources == 1)
			return false;
		leave_out(c, c->source[c->i++]);
		return true;
	case MOMENTS:
		/* The versions in flight in the order of their events, the latest first. */
		if (!c->j) {
			c->j = (unsigned)c->replay->last_change + 1;
			set_all(c, true);
			memcpy(c->count, c->left, c->lines * sizeof(*c->count));
		}
		while (--c->j && c->i < c->most) {
			const struct pm_event *e = &c->replay->log->event[c->j];
			if (e->kind == PM_FENCE || e->kind == PM_SYNC || e->kind == PM_ACK)
				return false;
			if (e->kind != PM_STORE && e->kind != PM_LAND)
				continue;
			c->i++;
			leave_until(c, e);
			return true;
		}
		return false;
	default:
		if (c->all)
			return count_up(c);
		for (unsigned i = 0; i < c->lines; i++)
			c->left[i] = draw(c, i);
		return true;
	}
}

bool image_choice_next(struct image_choice *c)
{
	if (c->one) {
		set_all(c, true);
		return !c->given++;
	}
	assert(c->lines == c->replay->dirties); /* it stands where the choice began */
	/* Some come twice: what is bounded is what is tried. */
	if (c->given == c->limit || c->given == c->most * (c->all ? 8 : 1))
		return false;
	while (c->phase < PHASES) {
		if (step(c)) {
			pm_replay_allow(c->replay, c->left);
			c->given++;
			return true;
		}
		if (++c->phase == PHASES)
			break;
		c->i = c->j = 0;
	}
	return false;
}
