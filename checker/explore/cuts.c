/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts cuts: the events of a run (core/rt/run.h) say what happens, the explorer says at which
 * points it cut the power. A point is right before the event that it is about.
 */
#include "checker/explore/cuts.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>
#include "core/rt/arena.h"

#define FRAMES 24 /* from where a request is posted to the store's own code, at most */

/* A flush or a landing that still matters. */
struct open_cut {
	unsigned place;
	enum cut_fate fate;	 /* the best until now */
	const struct actor *who; /* of a flush: whose fence ends it */
	uint64_t off, len;	 /* the bytes */
	uint64_t upto;		 /* of a landing: its line's versions since boot, with it */
};

/* A request. */
struct posted {
	uint64_t id; /* traced.id */
	uintptr_t pc;
	uint8_t code;
};

struct watched {
	struct cuts *cuts;
	struct world *world;
	struct open_cut *open;
	unsigned opened, open_room;
	struct posted *posted;
	unsigned posts, post_room;
	/* A point that the next event of this actor belongs to. */
	bool pointed;
	const struct actor *who;
	enum cut_fate fate;
	bool spent;
};

struct cuts {
	const struct source_lines *lines;
	struct cut_place *place;
	unsigned places, room;
	struct watched watched[WORLDS];
};

/* --- places --- */

static unsigned place_of(struct cuts *c, enum cut_kind kind, uintptr_t pc, uint8_t code)
{
	unsigned i = 0;
	while (i < c->places &&
	       (c->place[i].kind != kind || c->place[i].pc != pc || c->place[i].code != code))
		i++;
	if (i < c->places)
		return i;
	if (c->places == c->room)
		c->place = array_grow(c->place, &c->room, sizeof(*c->place));
	c->place[c->places] = (struct cut_place){.pc = pc, .kind = (uint8_t)kind, .code = code};
	return c->places++;
}

static void settle(struct cuts *c, const struct open_cut *one)
{
	c->place[one->place].fate[one->fate]++;
}

/* --- where a request is posted --- */

struct calls {
	const struct source_lines *lines;
	unsigned seen;
	uintptr_t pc;
};

static _Unwind_Reason_Code look_at_call(struct _Unwind_Context *context, void *arg)
{
	struct calls *calls = arg;
	uintptr_t pc = _Unwind_GetIP(context) - 1;
	if (source_lines_row(calls->lines, pc))
		calls->pc = pc;
	return calls->pc || ++calls->seen == FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* The innermost call that is in the store's own code. */
static uintptr_t calling_line(const struct source_lines *lines)
{
	struct calls calls = {.lines = lines};
	_Unwind_Backtrace(look_at_call, &calls);
	return calls.pc;
}

static void note_post(struct watched *w, const struct traced *about)
{
	if (w->posts == w->post_room)
		w->posted = array_grow(w->posted, &w->post_room, sizeof(*w->posted));
	w->posted[w->posts++] = (struct posted){
		.id = about->id, .pc = calling_line(w->cuts->lines), .code = about->code};
}

/* The post of the data that land; NULL: not known. */
static const struct posted *find_post(const struct watched *w, const struct traced *about)
{
	for (unsigned i = w->posts; i--;)
		if (w->posted[i].id == about->id)
			return &w->posted[i];
	return NULL;
}

/* --- what happens --- */

/* Does the explorer look at points of this machine now? */
static bool is_observed(const struct world *w)
{
	if (!w->observer || w->machine)
		return w->observer;
	return w->booted && (!w->reread || sim_server_life(w->sim));
}

static bool in_flight(const struct pmem *pm, uint64_t off, uint64_t len)
{
	for (uint64_t l = off / LINE; len && l <= (off + len - 1) / LINE; l++)
		if (pmem_line_versions(pm, (uint32_t)l))
			return true;
	return false;
}

/* The fate of the point right before this event; without a point, as `other` says. */
static enum cut_fate take_point(struct watched *w, const struct actor *who, enum cut_fate other)
{
	bool own = w->pointed && w->who == who;
	w->pointed = false;
	if (own)
		return w->fate;
	return is_observed(w->world) ? other : w->spent ? CUT_BUDGET : CUT_APART;
}

static void open_cut(struct watched *w, const struct open_cut *one)
{
	if (w->opened == w->open_room)
		w->open = array_grow(w->open, &w->open_room, sizeof(*w->open));
	w->open[w->opened++] = *one;
}

static void close_cut(struct watched *w, unsigned i)
{
	settle(w->cuts, &w->open[i]);
	w->open[i] = w->open[--w->opened];
}

static void note_flush(struct watched *w, const struct actor *who, uintptr_t pc,
		       const struct traced *about)
{
	struct open_cut one = {.place = place_of(w->cuts, CUT_FLUSH, pc, 0),
			       .who = who,
			       .off = about->off,
			       .len = about->len};
	one.fate = take_point(w, who, CUT_NOTHING);
	if (in_flight(w->world->pm, about->off, about->len))
		open_cut(w, &one);
	else
		settle(w->cuts, &one);
}

static void note_fence(struct watched *w, const struct actor *who, uintptr_t pc)
{
	const struct open_cut fence = {.place = place_of(w->cuts, CUT_FENCE, pc, 0),
				       .fate = take_point(w, who, CUT_NOTHING)};
	settle(w->cuts, &fence);
	for (unsigned i = w->opened; i--;)
		if (w->open[i].who == who)
			close_cut(w, i);
}

/* What is durable by now can no longer be lost. */
static void close_durable(struct watched *w)
{
	for (unsigned i = w->opened; i--;)
		if (!w->open[i].who &&
		    pmem_line_durable(w->world->pm, (uint32_t)(w->open[i].off / LINE)) >=
			    w->open[i].upto)
			close_cut(w, i);
}

static void note_landing(struct watched *w, const struct actor *who, const struct traced *about)
{
	const struct posted *post = find_post(w, about);
	const struct pmem *pm = w->world->pm;
	const uint32_t line = (uint32_t)(about->off / LINE);
	struct open_cut one = {.off = about->off, .len = about->len};
	one.place = place_of(w->cuts, CUT_LANDING, post ? post->pc : 0, post ? post->code : 0);
	one.fate = take_point(w, who, CUT_NOTHING);
	one.upto = pmem_line_durable(pm, line) + pmem_line_versions(pm, line);
	close_durable(w);
	open_cut(w, &one);
}

static void see(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
		const struct traced *about, const char *text)
{
	struct watched *w = arg;
	(void)sim, (void)text;
	switch (about->kind) {
	case TRACED_FLUSH:
		note_flush(w, who, pc, about);
		break;
	case TRACED_FENCE:
		note_fence(w, who, pc);
		break;
	case TRACED_LAND:
		note_landing(w, who, about);
		break;
	case TRACED_POST:
		note_post(w, about);
		break;
	default:
		break;
	}
}

/* --- the explorer --- */

void cuts_point(struct cuts *c, const struct world *world, const struct choice_point *at,
		enum cut_fate fate)
{
	struct watched *w = &c->watched[world->machine];
	close_durable(w);
	for (unsigned i = 0; i < w->opened; i++) {
		struct open_cut *one = &w->open[i];
		if (fate < one->fate && (!one->who || in_flight(world->pm, one->off, one->len)))
			one->fate = fate;
	}
	w->pointed = at->a == CRASH_BEFORE_FENCE || at->a == CRASH_BEFORE_LAND;
	w->who = at->who;
	w->fate = fate;
}

void cuts_begin(struct cuts *c, unsigned machine, bool spent)
{
	struct watched *w = &c->watched[machine];
	while (w->opened)
		close_cut(w, w->opened - 1);
	w->posts = 0;
	w->pointed = false;
	w->spent = spent;
}

void cuts_watch(struct cuts *c, struct worlds *worlds)
{
	for (unsigned m = 0; m < WORLDS; m++) {
		c->watched[m].cuts = c;
		c->watched[m].world = &worlds->world[m];
		worlds->world[m].tracer = see;
		worlds->world[m].tracer_arg = &c->watched[m];
		worlds->world[m].wordless = true;
	}
}

struct cuts *cuts_new(const struct source_lines *lines)
{
	struct cuts *c = calloc(1, sizeof(*c));
	if (c)
		c->lines = lines;
	return c;
}

const struct cut_place *cuts_places(struct cuts *c, unsigned *n)
{
	for (unsigned m = 0; m < WORLDS; m++)
		cuts_begin(c, m, false);
	*n = c->places;
	return c->place;
}

void cuts_free(struct cuts *c)
{
	for (unsigned m = 0; c && m < WORLDS; m++) {
		free(c->watched[m].open);
		free(c->watched[m].posted);
	}
	if (c)
		free(c->place);
	free(c);
}
