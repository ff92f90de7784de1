/* SPDX-License-Identifier: BSD-3-Clause */
/* See stops.h. */
#include "faultinject/stops.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "core/hardware/hardware.h"
#include "faultinject/random_source.h"

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

static struct stop_point *add(struct stops *stops, enum stop_group group, struct stop_point made)
{
	struct stop_points *to = &stops->group[group];
	assert(to->n <= to->room);
	if (to->n == MOST)
		return NULL;
	if (!ARRAY_RESERVE(to->point, to->n, 1, to->room)) {
		stops->failed = true;
		return NULL;
	}
	to->point[to->n] = made;
	return &to->point[to->n++];
}

static struct stop_point point_of(const struct choice_point *at, unsigned n, uint32_t line)
{
	return (struct stop_point){.key = choice_key(at),
				   .who = at->who->name_hash,
				   .a = at->a,
				   .b = at->b,
				   .op = at->op,
				   .line = line,
				   .server = at->a != STEP_BEGIN && n <= DELAY_FOREVER};
}

static bool is_at(const struct stop_point *point, const struct choice_point *at)
{
	return point->a == at->a && point->b == at->b && point->key == choice_key(at);
}

/* The answer that stops the recorded run at this step; 0: it is not stopped. */
static unsigned first_answer(struct stops *stops, const struct choice_point *at)
{
	assert(stops->firsts <= STOPS_FIRST);
	for (unsigned i = 0; i < stops->firsts; i++)
		if (!stops->first[i].taken && is_at(&stops->first[i].at, at)) {
			stops->first[i].taken = true;
			return choice_delay_answer(CHOICE_STEP, stops->first[i].k);
		}
	if (!stops->first[stops->from].taken || at->a != STEP_BEGIN || !stops->begins ||
	    --stops->begins)
		return 0;
	assert(stops->firsts < STOPS_FIRST);
	stops->first[stops->firsts].at = point_of(at, 1, 0);
	stops->first[stops->firsts].k = DELAY_QUIESCENCE;
	stops->first[stops->firsts++].taken = true;
	return choice_delay_answer(CHOICE_STEP, DELAY_QUIESCENCE);
}

static unsigned record(struct source *source, const struct choice_point *at, unsigned n)
{
	struct stops *stops = (struct stops *)source;
	assert(at->kind == CHOICE_STEP && at->who);
	if (stops->firsts) {
		unsigned answer = first_answer(stops, at);
		if (answer || !stops->first[stops->from].taken)
			return answer;
	}
	enum stop_group group = group_of(at, n);
	uint64_t who = at->who->name_hash;
	/* What a fence makes durable is mostly what its task flushed just before. */
	uint32_t before = at->a == STEP_FENCE && stops->last && stops->last->who == who
				  ? stops->last->line
				  : 0;
	stops->last = add(stops, group, point_of(at, n, before));
	return 0;
}

static struct stop_line *line_of(struct stops *stops, uint32_t line)
{
	unsigned i = line * 0x9e3779b1u % STOP_LINES;
	assert(line && stops->lines < STOP_LINES); /* so the search ends */
	while (stops->line[i].line && stops->line[i].line != line)
		i = (i + 1) % STOP_LINES;
	return &stops->line[i];
}

static void touched(struct source *source, const struct actor *who, enum touch what, uint64_t where,
		    uint64_t len)
{
	struct stops *stops = (struct stops *)source;
	bool write = what == TOUCH_WRITE || what == TOUCH_SHOW;
	uint64_t name = who ? who->name_hash : 0;
	if ((!write && what != TOUCH_READ) || !len)
		return;
	if (stops->last && who && stops->last->who == name && !stops->last->line)
		stops->last->line = (uint32_t)(where / LINE) + 1;
	for (uint64_t l = where / LINE; l <= (where + len - 1) / LINE; l++) {
		struct stop_line *line = line_of(stops, (uint32_t)l + 1);
		if (!line->line) {
			if (stops->lines == STOP_LINES - 1)
				return;
			stops->lines++;
			*line = (struct stop_line){.line = (uint32_t)l + 1, .who = name};
		}
		line->shared |= line->who != name;
		line->written |= write;
	}
}

void stops_record(struct stops *stops)
{
	memset(stops, 0, sizeof(*stops));
	stops->source = (struct source){.answer = record, .begins = true, .touched = touched};
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		stops->source.skip[k] = k == CHOICE_STEP ? 0 : UINT32_MAX;
}

static bool meets(struct stops *stops, const struct stop_point *point)
{
	if (point->a == STEP_POST)
		return true;
	if (!point->line)
		return false;
	const struct stop_line *line = line_of(stops, point->line);
	return line->shared && line->written;
}

static bool follows(const struct stop_point *point, const struct stop_point *before)
{
	return before->who == point->who && before->line == point->line && before->a == point->a;
}

void stops_recorded(struct stops *stops)
{
	static const enum stop_group from[] = {STOPS_SERVER, STOPS_CLIENT};
	assert(!stops->group[STOPS_MEET].n);
	for (unsigned g = 0; g < sizeof(from) / sizeof(from[0]); g++)
		for (unsigned i = 0; i < stops->group[from[g]].n; i++) {
			const struct stop_point *list = stops->group[from[g]].point;
			const struct stop_point point = list[i];
			/* The first of the stores with which a task fills a line stands for all. */
			if (meets(stops, &point) &&
			    !(i && point.a == STEP_STORE && follows(&point, &list[i - 1])))
				add(stops, STOPS_MEET, point);
		}
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

/* Has a run in which that is held before a chance to come to the stop? Not if what is held is
 * the cause of it: the same operation, or the call for the cleaning that is stopped. */
static bool may_wait(const struct stop_point *held, const struct stop_point *stop)
{
	return held->who != stop->who && !op_label_equal(held->op, stop->op) &&
	       !(stop->op.kind == OP_NONE && held->op.kind == OP_CLEAN);
}

static enum happening happening(enum server_event event)
{
	return server_is_cut(event)   ? HAPPENS_CUT
	       : event == SERVER_LOST ? HAPPENS_LOST
				      : HAPPENS_POWER;
}

bool stops_servers_fail(const struct stops *stops)
{
	return stops->may & stops->wanted & HAPPENS_TO_ONE;
}

/* What happens to one of several servers, where something does. */
static enum server_event server_event(uint64_t draw, const struct stops *stops)
{
	static const enum server_event one_of[16] = {
		SERVER_POWER, SERVER_POWER,	   SERVER_POWER,	 SERVER_POWER,
		SERVER_POWER, SERVER_LOST,	   SERVER_LOST,		 SERVER_LOST,
		SERVER_LOST,  SERVER_CUT,	   SERVER_CUT,		 SERVER_CUT_FOR_EVER,
		SERVER_CUT,   SERVER_CUT_FOR_EVER, SERVER_POWER_BRIEFLY, SERVER_POWER_LONG};
	enum server_event event = draw % 64 ? one_of[draw % 16] : SERVER_CUT_BRIEFLY;
	const bool for_ever = !server_events[event].lasts_ns;
	if (server_is_cut(event) && !(stops->may & HAPPENS_CUT))
		event = for_ever && stops->may & HAPPENS_LOST ? SERVER_LOST : SERVER_POWER;
	else if (for_ever && !(stops->may & HAPPENS_LOST))
		event = server_is_cut(event) ? SERVER_CUT : SERVER_POWER;
	return stops->wanted & happening(event) ? event : server_event(draw + 1, stops);
}

/* A step of a client that can be held before the stop; NULL: a few draws met none. */
static const struct stop_point *to_hold(const struct stops *stops, enum stop_group group,
					const struct stop_point *stop, uint64_t *state)
{
	for (unsigned tries = 0; tries < 8 && stops->group[group].n; tries++) {
		const struct stop_point
			*p = &stops->group[group].point[random_next(state) % stops->group[group].n];
		if (may_wait(p, stop))
			return p;
	}
	return NULL;
}

/* `about`: whom or what the question is about. */
typedef bool point_is(const struct stop_point *point, const void *about);

/* One of the steps for which `is` holds; NULL: there is none. */
static const struct stop_point *one_that(point_is *is, const void *about, const struct stops *stops,
					 enum stop_group group, uint64_t draw)
{
	const struct stop_point *point = stops->group[group].point;
	unsigned n = 0, all = stops->group[group].n;
	for (unsigned i = 0; i < all; i++)
		n += is(&point[i], about);
	if (!n)
		return NULL;
	unsigned left = draw % n;
	while (!is(point, about) || left--)
		point++;
	return point;
}

struct pair {
	const struct stop_point *held, *stop;
};

static bool can_meet(const struct stop_point *point, const void *about)
{
	const struct pair *p = about;
	return op_label_equal(point->op, p->held->op) && point->who != p->stop->who;
}

/* A step at which what was held meets others, while it works for the same operation; not of the
 * actor that is stopped already. */
static const struct stop_point *to_meet(const struct stops *stops, const struct stop_point *held,
					const struct stop_point *stop, uint64_t draw)
{
	return one_that(can_meet, &(struct pair){held, stop}, stops, STOPS_MEET, draw);
}

static bool is_for(const struct stop_point *point, const void *op)
{
	return op_label_equal(point->op, *(const struct op_label *)op);
}

/* What the nth run in which something stops does at which step. */
struct turn {
	enum stop_group group;
	unsigned before; /* turns of this group before it, of eight */
	unsigned k;	 /* DELAY_QUIESCENCE, or what dies */
};

static void hold(const struct stop_point *point, struct random_source *r)
{
	random_stop(r, point->key, point->a, point->b, DELAY_QUIESCENCE);
}

void stops_begin_late(const struct stops *stops, struct random_source *r)
{
	const struct stop_points *begins = &stops->group[STOPS_BEGIN];
	const uint64_t draw = random_next(&r->times);
	if (r->durations.n && begins->n && draw % 2)
		hold(&begins->point[draw / 2 % begins->n], r);
}

/* Where others are then matters as much: mostly another client is held before, or two. */
static const struct stop_point *hold_others(const struct stops *stops,
					    const struct stop_point *stop, uint64_t draw,
					    struct random_source *r)
{
	const struct stop_point *first = NULL, *second = NULL;
	if (draw % 4)
		first = to_hold(stops, draw % 4 == 1 ? STOPS_CLIENT : STOPS_BEGIN, stop, &r->state);
	if (first)
		hold(first, r);
	if (first && draw / 4 % 4 == 0)
		second = to_hold(stops, STOPS_BEGIN, stop, &r->state);
	if (second && second->who != first->who)
		hold(second, r);
	return first;
}

static void take_turn(const struct stops *stops, const struct turn turn[8], uint64_t nth,
		      struct random_source *r)
{
	const struct turn *t = &turn[nth % 8];
	const struct stop_point *held, *stop, *next = NULL;
	unsigned in_eight = 0, k = t->k;
	for (unsigned i = 0; i < 8; i++)
		in_eight += turn[i].group == t->group;
	assert(t->before < in_eight);
	stop = evenly(stops, t->group, nth / 8 * in_eight + t->before);
	if (!stop)
		return;
	uint64_t draw = random_next(&r->state);
	/* A failure of one of several servers in most runs. */
	if (stops_servers_fail(stops) && (k == DEATH_SERVER || draw >> 40 & 3))
		k = death_of(server_event(draw >> 42, stops),
			     (unsigned)(draw / 1024 % stops->servers));
	else if (stops->servers && k == DEATH_SERVER)
		k = DELAY_QUIESCENCE;
	held = hold_others(stops, stop, draw, r);
	random_stop(r, stop->key, stop->a, stop->b,
		    held && k == DELAY_QUIESCENCE ? DELAY_SWITCH : k);
	if (held && k == DELAY_QUIESCENCE && stop->server && draw / 16 % 4)
		next = to_meet(stops, held, stop, draw >> 16);
	if (next)
		random_stop(r, next->key, next->a, next->b,
			    !next->server && draw / 64 % 4 == 0 ? DEATH_PROCESS : DELAY_SWITCH);
	/* The server may still be at work for the dead client when that has come back. */
	if (k == DEATH_PROCESS && draw / 16 % 4) {
		next = one_that(is_for, &stop->op, stops, STOPS_SERVER, draw >> 16);
		if (next)
			hold(next, r);
	}
}

void stops_choose(const struct stops *stops, uint64_t nth, struct random_source *r)
{
	/* In 3 of 8 runs stop a task where it meets another, in 2 the server but not at a load, in
	 * 1 at a load, in 2 a client. */
	static const struct turn turn[8] = {
		{STOPS_SERVER, 0, DELAY_QUIESCENCE}, {STOPS_CLIENT, 0, DELAY_QUIESCENCE},
		{STOPS_MEET, 0, DELAY_QUIESCENCE},   {STOPS_SERVER_LOADS, 0, DELAY_QUIESCENCE},
		{STOPS_MEET, 1, DELAY_QUIESCENCE},   {STOPS_SERVER, 1, DELAY_QUIESCENCE},
		{STOPS_MEET, 2, DELAY_QUIESCENCE},   {STOPS_CLIENT, 1, DELAY_QUIESCENCE}};
	take_turn(stops, turn, nth, r);
}

static bool in_server(const struct stop_point *point, const void *about)
{
	(void)about;
	return point->server && point->a != STEP_POLL;
}

static bool in_background(const struct stop_point *point, const void *about)
{
	return in_server(point, about) && point->op.kind == OP_NONE;
}

/* A step of a server's task that works for no operation; where the server has no such task, one of
 * those that do. */
static const struct stop_point *of_long_work(const struct stops *stops, enum stop_group group,
					     uint64_t draw)
{
	const struct stop_point *point = one_that(in_background, NULL, stops, group, draw);
	return point ? point : one_that(in_server, NULL, stops, group, draw);
}

/* Does its client begin another operation after this one? */
static bool goes_on(const struct stops *stops, const struct stop_point *begin)
{
	const struct stop_point *last = stops->group[STOPS_BEGIN].point +
					stops->group[STOPS_BEGIN].n - 1;
	assert(stops->group[STOPS_BEGIN].n && begin <= last);
	while (last > begin && last->who != begin->who)
		last--;
	return last > begin;
}

bool stops_record_stopped(struct stops *stops, const struct stops *plain, uint64_t seed)
{
	uint64_t state = seed;
	enum stop_group group = random_next(&state) % 2 ? STOPS_MEET : STOPS_SERVER;
	const struct stop_point *stop = of_long_work(plain, group, random_next(&state) >> 8);
	const struct stop_point *held = stop ? to_hold(plain, STOPS_BEGIN, stop, &state) : NULL;
	/* Rather an operation that another one follows: that one can be held then. */
	for (unsigned tries = 0; tries < 3 && held && !goes_on(plain, held); tries++)
		held = to_hold(plain, STOPS_BEGIN, stop, &state);
	stops_record(stops);
	if (!held)
		return false;
	stops->first[0].at = *held;
	stops->first[0].k = DELAY_QUIESCENCE;
	stops->first[1].at = *stop;
	stops->first[1].k = DELAY_SWITCH;
	stops->firsts = 2;
	stops->from = 1;
	stops->begins = 1 + random_next(&state) % 8 / 7;
	return true;
}

void stops_again(const struct stops *stops, uint64_t nth, struct random_source *r)
{
	const struct stop_point *stop, *held = stops->firsts > 2 ? &stops->first[2].at : NULL;
	const struct stop_point *next = NULL;
	uint64_t draw = random_next(&r->state);
	for (unsigned i = 0; i < stops->firsts; i++)
		random_stop(r, stops->first[i].at.key, stops->first[i].at.a, stops->first[i].at.b,
			    stops->first[i].k);
	stop = of_long_work(stops, nth % 4 ? STOPS_MEET : STOPS_SERVER, draw >> 16);
	if (!stop)
		return;
	random_stop(r, stop->key, stop->a, stop->b, held ? DELAY_SWITCH : DELAY_QUIESCENCE);
	if (held && nth % 3)
		next = to_meet(stops, held, stop, draw >> 40);
	if (next)
		random_stop(r, next->key, next->a, next->b,
			    !next->server && draw % 4 == 0 ? DEATH_PROCESS : DELAY_SWITCH);
}

/* Any step, of a server's task rather, and what happens there. */
static const struct stop_point *event_at(const struct stops *stops, uint64_t draw, unsigned *k)
{
	static const enum stop_group groups[] = {STOPS_SERVER, STOPS_MEET, STOPS_CLIENT,
						 STOPS_SERVER};
	*k = death_of(server_event(draw >> 42, stops), (unsigned)(draw / 1024 % stops->servers));
	return evenly(stops, groups[draw % 4], draw >> 2 & 0xff);
}

bool stops_record_event(struct stops *stops, const struct stops *plain, uint64_t seed)
{
	unsigned k;
	const struct stop_point *stop = event_at(plain, random_next(&seed), &k);
	stops_record(stops);
	stops->servers = plain->servers;
	stops->may = plain->may;
	stops->wanted = plain->wanted;
	if (!stop)
		return false;
	stops->first[0].at = *stop;
	stops->first[0].k = k;
	stops->firsts = 1;
	return true;
}

void stops_event_again(const struct stops *stops, uint64_t nth, struct random_source *r)
{
	unsigned k;
	const struct stop_point *stop = event_at(stops, random_next(&r->state) + nth, &k);
	random_stop(r, stops->first[0].at.key, stops->first[0].at.a, stops->first[0].at.b,
		    stops->first[0].k);
	if (stop)
		random_stop(r, stop->key, stop->a, stop->b, k);
}

void stops_kill(const struct stops *stops, uint64_t nth, struct random_source *r)
{
	/* In 6 of 8 runs kill the server's process, in 2 of these at a client's step, while the
	 * server may wait. */
	static const struct turn turn[8] = {
		{STOPS_SERVER, 0, DEATH_SERVER}, {STOPS_CLIENT, 0, DEATH_PROCESS},
		{STOPS_SERVER, 1, DEATH_SERVER}, {STOPS_CLIENT, 1, DEATH_SERVER},
		{STOPS_SERVER, 2, DEATH_SERVER}, {STOPS_CLIENT, 2, DEATH_MACHINE},
		{STOPS_SERVER, 3, DEATH_SERVER}, {STOPS_CLIENT, 3, DEATH_SERVER}};
	take_turn(stops, turn, nth, r);
}
