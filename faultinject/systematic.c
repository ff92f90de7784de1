/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run under given deviations, each taken where its point comes; every other answer
 * is 0. What the search wants to know of the run:
 *
 *	the log		the points after the last deviation, and what was touched between
 *			them, and by whom: there the search goes on;
 *	a window	all that was touched while one of the deviations' delays lasted: by
 *			this the search knows which delays make no difference.
 *
 * Two touches depend on each other if their order can matter:
 *
 *	- the same line of PM, or the same eight bytes of DRAM, one of them a write. A
 *	  flush reads its line: it matters what it finds there;
 *	- one makes images fewer (data becomes durable), and the other makes more, or fewer,
 *	  or is a place where the power can fail: a failure would leave other images;
 *	- one writes PM and the other is a place where the power can fail. The images of the
 *	  order in which the write comes first contain those of the other. But a failure
 *	  after which all images agree says more: that a version was durable from then
 *	  on (KEEP), so the other order can break a promise that this one cannot.
 */
#include "faultinject/systematic.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "core/rt/sim.h"

#define DRAM_SPACE (1ull << 63)

/* --- footprints --- */

void footprint_clear(struct footprint *f)
{
	f->age++;
	f->used = 0;
	f->power = f->pm_write = f->commit = false;
}

static bool is_dram(const struct log_touch *t)
{
	return t->what == TOUCH_DRAM_READ || t->what == TOUCH_DRAM_WRITE;
}

static bool is_write(const struct log_touch *t)
{
	return t->what == TOUCH_WRITE || t->what == TOUCH_COMMIT || t->what == TOUCH_DRAM_WRITE;
}

/* The first and the last place of a touch. False: it has none. */
static bool places(const struct log_touch *t, uint64_t *first, uint64_t *last)
{
	unsigned each = is_dram(t) ? 8 : LINE;
	uint64_t space = is_dram(t) ? DRAM_SPACE : 0;
	if (!t->len)
		return false;
	*first = t->where / each | space;
	*last = (t->where + t->len - 1) / each | space;
	return true;
}

static uint32_t find(const struct footprint *f, uint64_t what)
{
	uint32_t i = (uint32_t)(what * 0x9e3779b97f4a7c15u >> 40) % FOOTPRINT_ROOM;
	assert(f->used < FOOTPRINT_ROOM); /* so that the loop ends */
	while (f->slot[i].age == f->age && f->slot[i].what != what)
		i = (i + 1) % FOOTPRINT_ROOM;
	return i;
}

static bool is_full(const struct footprint *f)
{
	return f->used > FOOTPRINT_ROOM / 2;
}

void footprint_add(struct footprint *f, const struct log_touch *t)
{
	uint64_t first, last;
	f->power |= t->what == TOUCH_POWER;
	f->pm_write |= t->what == TOUCH_WRITE;
	f->commit |= t->what == TOUCH_COMMIT;
	if (!places(t, &first, &last))
		return;
	for (uint64_t what = first; what <= last && !is_full(f); what++) {
		uint32_t i = find(f, what);
		if (f->slot[i].age != f->age) {
			f->slot[i].age = f->age;
			f->slot[i].what = what;
			f->slot[i].write = false;
			f->used++;
		}
		assert(f->slot[i].what == what);
		f->slot[i].write |= is_write(t);
	}
	assert(f->used <= FOOTPRINT_ROOM / 2 + 1);
}

bool footprint_depends(const struct footprint *f, const struct log_touch *t)
{
	uint64_t first, last;
	if (is_full(f))
		return true;
	if (t->what == TOUCH_WRITE && f->power)
		return true;
	if ((t->what == TOUCH_COMMIT || t->what == TOUCH_POWER) &&
	    (f->power || f->pm_write || f->commit))
		return true;
	if (!places(t, &first, &last))
		return false;
	for (uint64_t what = first; what <= last; what++) {
		uint32_t i = find(f, what);
		if (f->slot[i].age == f->age && (f->slot[i].write || is_write(t)))
			return true;
	}
	return false;
}

/* --- the log --- */

#define ROOM_FOR_ONE(s, array, n, room) ((s)->failed |= !ARRAY_RESERVE(array, n, 1, room))

void run_log_free(struct run_log *log)
{
	free(log->point);
	free(log->touch);
	*log = (struct run_log){0};
}

static void note(struct systematic_source *s, const struct log_touch *t)
{
	bool any;
	uint32_t delayed = s->taken.n ? sim_delayed(sim_current(), &any) : 0;
	if ((!s->log || s->log->lines_only) && !delayed && s->taken.n == s->list->n) {
		s->source.touched = NULL; /* all windows are closed */
		return;
	}
	for (unsigned i = 0; delayed && i < SYSTEMATIC_BOUND; i++)
		if (delayed >> i & 1 && s->window[i])
			footprint_add(s->window[i], t);
	struct run_log *log = s->log;
	if (!log || log->lines_only || s->taken.n < s->list->n)
		return;
	ROOM_FOR_ONE(s, log->touch, log->touches, log->touch_room);
	assert(s->failed || log->touches < log->touch_room);
	if (!s->failed)
		log->touch[log->touches++] = *t;
}

static void touched(struct source *source, const struct actor *who, enum touch what, uint64_t where,
		    uint64_t len)
{
	struct log_touch t = {.who = who, .what = (uint8_t)what, .where = where, .len = len};
	t.server = (uint8_t)(who ? host_server(sim_host(sim_current())) : SIM_SERVERS);
	if (what == TOUCH_ARRIVE)
		t.what = TOUCH_COMMIT;
	else if (what == TOUCH_SHOW)
		t.what = TOUCH_WRITE;
	note((struct systematic_source *)source, &t);
}

/* Steps of a task are a chain; lines of a packet are one. */
static uint64_t chain_of(const struct choice_point *at)
{
	struct choice_point first = *at;
	if (at->kind == CHOICE_STEP)
		return at->who->name_hash;
	first.c &= ~choice_traits[at->kind].chain;
	return choice_key(&first);
}

static void log_point(struct systematic_source *s, const struct choice_point *at, unsigned n)
{
	struct run_log *log = s->log;
	assert(s->taken.n == s->list->n); /* what comes before the last deviation is not logged */
	ROOM_FOR_ONE(s, log->point, log->points, log->point_room);
	if (s->failed)
		return;
	assert(log->points < log->point_room);
	struct log_point *p = &log->point[log->points++];
	s->logged = log->points;
	deviation_record(&p->d, at, 0, n);
	p->who = at->who;
	p->chain = chain_of(at);
	p->before = (int)log->points - 2;
	while (p->before >= 0 && log->point[p->before].chain != p->chain)
		p->before--;
	p->touches = log->touches;
	p->now = sim_now(sim_current());
	p->power = p->cut = 0;
	sim_delayed(sim_current(), &p->delayed);
}

/* --- the source --- */

static unsigned answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct systematic_source *s = (struct systematic_source *)source;
	unsigned next = s->taken.n;
	if (at->kind == CHOICE_CRASH) {
		note(s, &(struct log_touch){.who = at->who, .what = TOUCH_POWER});
		return 0;
	}
	if (next == s->list->n) {
		if (s->log && !choice_traits[at->kind].unsearched &&
		    (!s->log->lines_only || at->kind == CHOICE_LINE))
			log_point(s, at, n);
		return 0;
	}
	assert(next < s->list->n);
	if (choice_key(at) != s->key[next] || !choice_allows(at->kind, n, s->list->d[next].answer))
		return 0;
	s->failed |= deviations_add(&s->taken, &s->list->d[next]) != 0;
	assert(s->failed || s->taken.n == next + 1);
	if (next + 1 == s->list->n)
		s->logged = 0;
	return s->list->d[next].answer;
}

void systematic_start(struct systematic_source *s, const struct deviations *list)
{
	s->source = (struct source){
		.answer = answer, .begins = true, .atomics = true, .touched = touched};
	assert(list->n <= SYSTEMATIC_DEPTH);
	s->list = list;
	s->taken.n = 0;
	s->logged = list->n ? NOT_LOGGED : 0;
	for (unsigned i = 0; i < list->n; i++) {
		assert(list->d[i].answer); /* 0 deviates from nothing */
		s->key[i] = deviation_key(&list->d[i]);
	}
	if (s->log)
		s->log->points = s->log->touches = 0;
	bool wanted = s->log && !s->log->lines_only;
	for (unsigned i = 0; i < SYSTEMATIC_BOUND; i++)
		wanted |= s->window[i] != NULL;
	if (!wanted)
		s->source.touched = NULL;
}

void systematic_go_on(struct systematic_source *s, unsigned taken)
{
	assert(!s->taken.n && taken <= s->list->n);
	for (unsigned i = 0; i < taken; i++)
		s->failed |= deviations_add(&s->taken, &s->list->d[i]) != 0;
}
