/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_choice.h. */
#include "checker/images/image_choice.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "faultinject/sources.h"

enum { NOTHING, EVERYTHING, ONE_MISSING, ONE_ALONE, ONE_SOURCE, MOMENTS, REST, PHASES };

void image_choice_init(struct image_choice *c, const struct pm_replay *replay, unsigned most)
{
	memset(c, 0, sizeof(*c));
	c->replay = replay;
	c->most = most;
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

static uint32_t source_of(const struct image_choice *c, uint32_t version)
{
	return c->replay->log->event[c->replay->version[version].event].source;
}

static bool add_source(struct image_choice *c, uint32_t source)
{
	for (unsigned i = 0; i < c->sources; i++)
		if (c->source[i] == source)
			return true;
	if (c->sources == c->source_room) {
		unsigned room = c->source_room ? c->source_room * 2 : 16;
		uint32_t *grown = realloc(c->source, room * sizeof(*grown));
		if (!grown)
			return false;
		c->source = grown;
		c->source_room = room;
	}
	c->source[c->sources++] = source;
	return true;
}

static bool find_sources(struct image_choice *c)
{
	bool room = true;
	c->sources = 0;
	for (unsigned i = 0; i < c->lines; i++) {
		uint32_t v = line_of(c, i)->first;
		/* So many lines are not told apart by where they come from. */
		for (unsigned n = 0; n < line_of(c, i)->versions && c->sources < c->most && room;
		     n++, v = c->replay->version[v].next)
			room = add_source(c, source_of(c, v));
	}
	return room;
}

int image_choice_begin(struct image_choice *c)
{
	c->lines = c->replay->dirties;
	if (c->lines > c->room || !c->left) {
		unsigned room = c->lines * 2 + 8;
		unsigned *grown = realloc(c->left, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		c->left = grown;
		c->room = room;
	}
	uint64_t images = 1;
	for (unsigned i = 0; i < c->lines && images <= c->most; i++)
		images *= line_of(c, i)->versions + 1;
	c->all = images <= c->most;
	c->bounded = !c->all;
	c->one = false;
	c->phase = c->i = c->j = c->given = 0;
	c->random = c->replay->at;
	return find_sources(c) ? 0 : -ENOMEM;
}

static void set_all(struct image_choice *c, bool left)
{
	for (unsigned i = 0; i < c->lines; i++)
		c->left[i] = left ? line_of(c, i)->versions : 0;
}

/* What came before the line's first version of this source. */
static void leave_out(struct image_choice *c, uint32_t source)
{
	for (unsigned i = 0; i < c->lines; i++) {
		uint32_t v = line_of(c, i)->first;
		unsigned n = 0;
		while (n < line_of(c, i)->versions && source_of(c, v) != source) {
			v = c->replay->version[v].next;
			n++;
		}
		c->left[i] = n;
	}
}

/* The process dies before this event. */
static void leave_until(struct image_choice *c, uint32_t event)
{
	for (unsigned i = 0; i < c->lines; i++) {
		uint32_t v = line_of(c, i)->first;
		unsigned n = 0;
		while (n < line_of(c, i)->versions && c->replay->version[v].event < event) {
			v = c->replay->version[v].next;
			n++;
		}
		c->left[i] = n;
	}
}

/* Count up. False: that was the last. */
static bool count_up(struct image_choice *c)
{
	for (unsigned i = 0; i < c->lines; i++) {
		if (c->left[i]++ < line_of(c, i)->versions)
			return true;
		c->left[i] = 0;
	}
	return false;
}

/* The jth way for line i to miss something, or to be there alone: fewer versions. */
static bool one_line(struct image_choice *c, bool missing)
{
	if (c->i == c->lines)
		return false;
	set_all(c, missing);
	unsigned versions = line_of(c, c->i)->versions;
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
	case NOTHING:
	case EVERYTHING:
		set_all(c, c->phase == EVERYTHING);
		return !c->i++;
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
		if (!c->j)
			c->j = (unsigned)c->replay->last_change + 1;
		while (--c->j && c->i < c->most) {
			const struct pm_event *e = &c->replay->log->event[c->j];
			if (e->kind == PM_FENCE || e->kind == PM_SYNC || e->kind == PM_ACK)
				return false;
			if (e->kind != PM_STORE && e->kind != PM_LAND)
				continue;
			c->i++;
			leave_until(c, c->j);
			return true;
		}
		return false;
	default:
		if (c->all) {
			if (!c->i++) {
				set_all(c, false);
				return true;
			}
			return count_up(c);
		}
		for (unsigned i = 0; i < c->lines; i++)
			c->left[i] = (unsigned)(random_next(&c->random) %
						(line_of(c, i)->versions + 1));
		return true;
	}
}

bool image_choice_next(struct image_choice *c)
{
	if (c->one) {
		set_all(c, true);
		return !c->given++;
	}
	/* Some come twice: what is bounded is what is tried. */
	if (c->given == c->most * (c->all ? 8 : 1))
		return false;
	while (c->phase < PHASES) {
		if (step(c)) {
			c->given++;
			return true;
		}
		if (++c->phase == PHASES)
			break;
		c->i = c->j = 0;
	}
	return false;
}
