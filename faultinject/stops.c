/* SPDX-License-Identifier: BSD-3-Clause */
/* See stops.h. */
#include "faultinject/stops.h"
#include <assert.h>
#include <stdlib.h>

/* A task that polls memory loads without end; more than this is not worth its memory. */
#define MOST 65536

/* --- recording --- */

static enum stop_group group_of(const struct choice_point *at, unsigned n)
{
	if (at->a == STEP_BEGIN)
		return STOPS_BEGIN;
	if (n > DELAY_FOREVER) /* the server's tasks never die */
		return STOPS_CLIENT;
	return at->a == STEP_LOAD ? STOPS_SERVER_LOADS : STOPS_SERVER;
}

static unsigned record(struct source *source, const struct choice_point *at, unsigned n)
{
	struct stops *stops = (struct stops *)source;
	assert(at->kind == CHOICE_STEP && at->who);
	unsigned group = group_of(at, n), room = stops->group[group].room;
	struct stop_point *point = stops->group[group].point;
	if (stops->group[group].n == MOST)
		return 0;
	if (stops->group[group].n == room) {
		room = room ? 2 * room : 256;
		point = realloc(point, room * sizeof(*point));
		if (!point) {
			stops->failed = true;
			return 0;
		}
		stops->group[group].point = point;
		stops->group[group].room = room;
	}
	point[stops->group[group].n++] = (struct stop_point){choice_key(at), at->who->name_hash,
							     at->a, at->b};
	return 0;
}

void stops_record(struct stops *stops)
{
	*stops = (struct stops){.source = {.answer = record, .begins = true}};
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		stops->source.skip[k] = k == CHOICE_STEP ? 0 : UINT32_MAX;
}

void stops_free(struct stops *stops)
{
	for (unsigned g = 0; g < STOP_GROUPS; g++)
		free(stops->group[g].point);
	*stops = (struct stops){0};
}

/* --- choosing --- */

/* The multiples of the golden ratio, modulo 1, leave no large gap, however many there are. */
static const struct stop_point *evenly(const struct stops *stops, enum stop_group group,
				       uint64_t nth)
{
	uint64_t fraction = (nth + 1) * 0x9e3779b97f4a7c15u >> 32;
	unsigned n = stops->group[group].n;
	return n ? &stops->group[group].point[fraction * n >> 32] : NULL;
}

/* A step of another actor; NULL: a few draws met none. */
static const struct stop_point *of_another(const struct stops *stops, enum stop_group group,
					   uint64_t who, uint64_t *state)
{
	for (unsigned tries = 0; tries < 8 && stops->group[group].n; tries++) {
		const struct stop_point
			*p = &stops->group[group].point[random_next(state) % stops->group[group].n];
		if (p->who != who)
			return p;
	}
	return NULL;
}

/* What the nth run in which something stops does at which step. */
struct turn {
	enum stop_group group;
	unsigned before; /* turns of this group before it, of eight */
	unsigned k;	 /* DELAY_QUIESCENCE, or who dies */
};

/* Where others stand then matters as much: mostly another client is held before. */
static void take_turn(const struct stops *stops, const struct turn turn[8], uint64_t nth,
		      struct random_source *r)
{
	const struct turn *t = &turn[nth % 8];
	const struct stop_point *before = NULL, *stop;
	unsigned in_eight = 0, k = t->k;
	for (unsigned i = 0; i < 8; i++)
		in_eight += turn[i].group == t->group;
	assert(t->before < in_eight);
	stop = evenly(stops, t->group, nth / 8 * in_eight + t->before);
	if (!stop)
		return;
	uint64_t draw = random_next(&r->state);
	if (draw % 4)
		before = of_another(stops, draw % 4 == 1 ? STOPS_CLIENT : STOPS_BEGIN, stop->who,
				    &r->state);
	if (before)
		random_stop(r, before->key, before->a, before->b, DELAY_QUIESCENCE);
	random_stop(r, stop->key, stop->a, stop->b,
		    before && k == DELAY_QUIESCENCE ? DELAY_SWITCH : k);
}

void stops_choose(const struct stops *stops, uint64_t nth, struct random_source *r)
{
	/* Of eight runs four stop the server at what it does, one at a load, three a client. */
	static const struct turn turn[8] = {
		{STOPS_SERVER, 0, DELAY_QUIESCENCE}, {STOPS_CLIENT, 0, DELAY_QUIESCENCE},
		{STOPS_SERVER, 1, DELAY_QUIESCENCE}, {STOPS_CLIENT, 1, DELAY_QUIESCENCE},
		{STOPS_SERVER, 2, DELAY_QUIESCENCE}, {STOPS_SERVER_LOADS, 0, DELAY_QUIESCENCE},
		{STOPS_SERVER, 3, DELAY_QUIESCENCE}, {STOPS_CLIENT, 2, DELAY_QUIESCENCE}};
	take_turn(stops, turn, nth, r);
}

void stops_kill(const struct stops *stops, uint64_t nth, struct random_source *r)
{
	/* Of eight runs six kill the server's process, two of these at a client's step, while the
	 * server may wait. */
	static const struct turn turn[8] = {
		{STOPS_SERVER, 0, DEATH_SERVER}, {STOPS_CLIENT, 0, DEATH_PROCESS},
		{STOPS_SERVER, 1, DEATH_SERVER}, {STOPS_CLIENT, 1, DEATH_SERVER},
		{STOPS_SERVER, 2, DEATH_SERVER}, {STOPS_CLIENT, 2, DEATH_MACHINE},
		{STOPS_SERVER, 3, DEATH_SERVER}, {STOPS_CLIENT, 3, DEATH_SERVER}};
	take_turn(stops, turn, nth, r);
}
