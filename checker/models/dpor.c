/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All runs of a small program that differ in an order that matters.
 *
 * A run is a sequence of events; which chain (a thread, a queue pair's landing, ...: choose.h)
 * makes the next one is up to the scheduler, which is this. Two runs that differ only in the
 * order of neighbours that have nothing to do with each other end alike, and one of them will do.
 * This is dynamic partial order reduction with source sets and sleep sets (Abdulla, Aronis,
 * Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction, POPL 2014, algorithm 1):
 *
 *	related	Which events have to do with each other is seen while they run: they touch the
 *		same bytes and one of them writes; or what they do to what a power failure can
 *		leave has to be seen in both orders (conflicts() says which). Besides, some come
 *		first by nature: an earlier event of the same chain, the one that asked for
 *		this one, the one that gave what this one takes.
 *	races	Two related events, with nothing in between that puts them in order. The other
 *		order is to be tried, too: before the first of the two, one of the chains that
 *		lead to the second one goes on (its initials). If one of these is tried there
 *		anyway, nothing is added.
 *	sleep	What was tried at a state sleeps in all that is tried there later, until a
 *		related event: before that, it would be the same run once more. A run in
 *		which everybody sleeps is known, and ends.
 *
 * An event may have choices of its own (the order in which lines land); all answers are tried.
 *
 * A program has no clock and no faults: it runs from its beginning each time, the first events as
 * in the run before. Every run ends, so the search does. `whole` tries every chain at every state;
 * the test holds the two against each other.
 */
#include "checker/models/dpor.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SET_WORDS  (DPOR_EVENTS / 64)
#define MAX_CHOICE 16 /* choices of one event */

/* A set of chains. */
__extension__ typedef unsigned __int128 procs;

static procs proc_bit(unsigned proc)
{
	return (procs)1 << proc;
}

static unsigned first_proc(procs set)
{
	uint64_t low = (uint64_t)set;
	return low ? (unsigned)__builtin_ctzll(low)
		   : 64 + (unsigned)__builtin_ctzll((uint64_t)(set >> 64));
}

/* A set of events. */
struct set {
	uint64_t word[SET_WORDS];
};

struct dpor_event {
	uint8_t proc;
	uint32_t touch, touches; /* in orders.touch */
	struct set before;	 /* all that happen before it */
	struct set nature;	 /* those that come first by nature, direct ones only */
};

struct sleeper {
	uint8_t proc;
	uint32_t first, n; /* in orders.slept */
};

/* Before event d: who could go on, who did. */
struct dpor_state {
	procs could, backtrack, done, sleeps;
	uint8_t proc; /* who goes on now */
	struct sleeper
		sleeper[DPOR_PROCS]; /* first those from before, then those that are done here */
	unsigned sleepers, inherited;
	unsigned slept_end; /* of orders.slept, with what its sleepers touch */
	uint32_t foot; /* what the current process touched, choices before this one: from here to
			  slept_end */
	struct {
		unsigned n, answer;
	} choice[MAX_CHOICE];
	unsigned choices;
};

static void set_add(struct set *set, unsigned i)
{
	set->word[i / 64] |= 1ull << i % 64;
}

static bool set_has(const struct set *set, unsigned i)
{
	return set->word[i / 64] >> i % 64 & 1;
}

static void set_join(struct set *set, const struct set *other)
{
	for (unsigned w = 0; w < SET_WORDS; w++)
		set->word[w] |= other->word[w];
}

static void *more(struct dpor *o, void *array, unsigned n, unsigned *room, size_t each)
{
	if (n < *room)
		return array;
	unsigned wanted = *room ? 2 * *room : 256;
	void *grown = realloc(array, wanted * each);
	if (!grown) {
		o->failed = true;
		return array;
	}
	*room = wanted;
	return grown;
}

/* --- what has to do with what --- */

static bool conflicts(const struct dpor_touch *a, const struct dpor_touch *b)
{
	if (a->kind <= DPOR_WRITE || b->kind <= DPOR_WRITE)
		return a->kind <= DPOR_WRITE && b->kind <= DPOR_WRITE &&
		       (a->kind == DPOR_WRITE || b->kind == DPOR_WRITE) &&
		       a->where < b->where + b->len && b->where < a->where + a->len;
	/*
	 * What can be left after two that grow includes what can be left after each of them alone,
	 * and before two that shrink what is left after one of them. All else is to be seen in both
	 * orders.
	 */
	return a->kind != b->kind || a->kind == DPOR_LEARN;
}

static bool touches_conflict(const struct dpor_touch *a, unsigned n, const struct dpor_touch *b,
			     unsigned m)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < m; j++)
			if (conflicts(&a[i], &b[j]))
				return true;
	return false;
}

/* --- what the simulation tells --- */

static unsigned proc_of(struct dpor *o, uint64_t chain)
{
	unsigned p = 0;
	while (p < o->procs && o->chain[p] != chain)
		p++;
	assert(p < DPOR_PROCS);
	if (p == o->procs)
		o->chain[o->procs++] = chain;
	return p;
}

/* Is the event that goes on now one of those that the run before had? Then all about it is
 * known. */
static bool is_replayed(const struct dpor *o)
{
	return o->depth < o->replay;
}

void dpor_touch(struct dpor *o, enum dpor_touch_kind kind, uint64_t where, uint64_t len)
{
	if (!o->in_event || is_replayed(o))
		return;
	o->touch = more(o, o->touch, o->touches, &o->touch_room, sizeof(*o->touch));
	if (!o->failed)
		o->touch[o->touches++] = (struct dpor_touch){.where = where,
							     .len = (uint32_t)len,
							     .event = (uint16_t)(o->depth - 1),
							     .kind = (uint8_t)kind};
}

static struct dpor *of_scheduler(struct scheduler *scheduler)
{
	return (struct dpor *)((char *)scheduler - offsetof(struct dpor, scheduler));
}

static void touched(struct scheduler *scheduler, enum touch what, uint64_t where, uint64_t len)
{
	struct dpor *o = of_scheduler(scheduler);
	if (what == TOUCH_DRAM_READ || what == TOUCH_DRAM_WRITE)
		dpor_touch(o, what == TOUCH_DRAM_WRITE ? DPOR_WRITE : DPOR_READ, where, len);
	else
		o->touched(o->arg, what, where, len);
}

static void enables(struct scheduler *scheduler, uint64_t chain)
{
	struct dpor *o = of_scheduler(scheduler);
	if (o->in_event ? is_replayed(o) : o->tried > 1) /* else: before the program begins */
		return;
	o->enabled = more(o, o->enabled, o->enableds, &o->enabled_room, sizeof(*o->enabled));
	if (o->failed)
		return;
	o->enabled[o->enableds].proc = (uint8_t)proc_of(o, chain);
	o->enabled[o->enableds++].event = (int)o->depth - 1;
}

static void gives(struct scheduler *scheduler, uint64_t thing)
{
	struct dpor *o = of_scheduler(scheduler);
	if (!o->in_event || is_replayed(o))
		return;
	o->gift = more(o, o->gift, o->gifts, &o->gift_room, sizeof(*o->gift));
	if (o->failed)
		return;
	o->gift[o->gifts].thing = thing;
	o->gift[o->gifts++].event = (int)o->depth - 1;
}

static void takes(struct scheduler *scheduler, uint64_t thing)
{
	struct dpor *o = of_scheduler(scheduler);
	if (!o->in_event || is_replayed(o))
		return;
	for (unsigned i = o->gifts; i-- > 0;) {
		if (o->gift[i].thing != thing)
			continue;
		if (o->gift[i].event != (int)o->depth - 1)
			set_add(&o->event[o->depth - 1].nature, (unsigned)o->gift[i].event);
		return;
	}
}

static unsigned answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct dpor *o = (struct dpor *)((char *)source - offsetof(struct dpor, source));
	if (at->kind != CHOICE_ORDER || !o->in_event)
		return 0;
	struct dpor_state *s = &o->state[o->depth - 1];
	unsigned i = o->choices++;
	assert(i < MAX_CHOICE);
	if (i == s->choices) {
		s->choice[i].n = n;
		s->choice[i].answer = 0;
		s->choices++;
	}
	assert(s->choice[i].answer < n);
	return s->choice[i].answer;
}

/* --- races --- */

/* The event before this one in its chain, and the one that asked for this one. */
static void add_chain_nature(struct dpor *o, unsigned j)
{
	struct dpor_event *e = &o->event[j];
	unsigned nth = 0;
	for (unsigned i = 0; i < j; i++)
		nth += o->event[i].proc == e->proc;
	for (unsigned i = j; nth && i-- > 0;) {
		if (o->event[i].proc != e->proc)
			continue;
		set_add(&e->nature, i);
		break;
	}
	for (unsigned i = 0; i < o->enableds; i++) {
		if (o->enabled[i].proc != e->proc || nth--)
			continue;
		if (o->enabled[i].event >= 0 && o->enabled[i].event != (int)j)
			set_add(&e->nature, (unsigned)o->enabled[i].event);
		break;
	}
}

/* The chains that can go first on the way to event j without event i. */
static procs initials(const struct dpor *o, unsigned i, unsigned j)
{
	struct set v = {0};
	procs first_ones = 0;
	for (unsigned k = i + 1; k <= j; k++) {
		if (k < j && set_has(&o->event[k].before, i))
			continue;
		bool first = true;
		for (unsigned w = 0; w < SET_WORDS && first; w++)
			first = !(o->event[k].before.word[w] & v.word[w]);
		if (first)
			first_ones |= proc_bit(o->event[k].proc);
		set_add(&v, k);
	}
	return first_ones;
}

/* Events i and j race: see to it that j can come before i, too. */
static void reverse(struct dpor *o, unsigned i, unsigned j)
{
	struct dpor_state *s = &o->state[i];
	procs ways = initials(o, i, j);
	if (ways & (s->backtrack | s->sleeps))
		return;
	ways &= s->could;
	s->backtrack |= ways ? proc_bit(first_proc(ways)) : s->could;
}

/* Event j is over: what came before it, and which races it ends. */
static void finish(struct dpor *o, unsigned j)
{
	struct dpor_event *e = &o->event[j];
	struct set with = {0}, between = {0};
	e->touches = o->touches - e->touch;
	add_chain_nature(o, j);
	for (unsigned t = 0; t < e->touch; t++) {
		const struct dpor_touch *earlier = &o->touch[t];
		if (!set_has(&with, earlier->event) && o->event[earlier->event].proc != e->proc &&
		    touches_conflict(earlier, 1, &o->touch[e->touch], e->touches))
			set_add(&with, earlier->event);
	}
	struct set direct = with;
	set_join(&direct, &e->nature);
	for (unsigned i = 0; i < j; i++)
		if (set_has(&direct, i))
			set_join(&between, &o->event[i].before);
	e->before = between;
	set_join(&e->before, &direct);
	for (unsigned i = 0; i < j && !o->whole; i++)
		if (set_has(&with, i) && !set_has(&e->nature, i) && !set_has(&between, i))
			reverse(o, i, j);
}

/* --- states --- */

/* Of those who slept before event d - 1, or were done there, the ones that it has nothing to do
 * with still sleep. */
static void inherit(struct dpor *o, struct dpor_state *s, unsigned d)
{
	s->sleepers = 0;
	s->sleeps = 0;
	s->slept_end = o->slepts;
	if (!d || o->whole)
		return;
	const struct dpor_state *from = &o->state[d - 1];
	const struct dpor_event *e = &o->event[d - 1];
	for (unsigned i = 0; i < from->sleepers; i++) {
		const struct sleeper *sleeper = &from->sleeper[i];
		if (sleeper->proc == e->proc ||
		    touches_conflict(&o->touch[e->touch], e->touches, &o->slept[sleeper->first],
				     sleeper->n))
			continue;
		s->sleeper[s->sleepers++] = *sleeper;
		s->sleeps |= proc_bit(sleeper->proc);
	}
}

/* What has the least to do with others comes first: what is tried anew then stands near the end of
 * runs. */
static int rank_of(uint64_t chain)
{
	static const int rank[CHAIN_KINDS] = {
		[CHAIN_SEND] = 0, [CHAIN_REQUESTS] = 0, [CHAIN_RESPONSES] = 0, [CHAIN_OTHER] = 0,
		[CHAIN_TASK] = 1, [CHAIN_STORES] = 2,	[CHAIN_ANSWER] = 3,    [CHAIN_LAND] = 4,
	};
	return rank[chain_kind(chain)];
}

/* A state that was not met before. False: everybody sleeps. */
static bool enter(struct dpor *o, unsigned d, const uint64_t *chain, unsigned n)
{
	struct dpor_state *s = &o->state[d];
	inherit(o, s, d);
	s->inherited = s->sleepers;
	s->could = s->done = s->backtrack = 0;
	s->choices = 0;
	s->foot = o->slepts;
	int first = -1, rank = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned p = proc_of(o, chain[i]);
		s->could |= proc_bit(p);
		if (s->sleeps >> p & 1 || (first >= 0 && rank_of(chain[i]) >= rank))
			continue;
		first = (int)p;
		rank = rank_of(chain[i]);
	}
	if (first < 0)
		return false;
	s->proc = (uint8_t)first;
	s->backtrack = o->whole ? s->could : proc_bit((unsigned)first);
	return true;
}

void dpor_settle(struct dpor *o)
{
	bool matters = false;
	if (!o->in_event)
		return;
	o->in_event = false;
	if (o->depth < o->replay)
		return;
	unsigned j = o->depth - 1;
	finish(o, j);
	for (unsigned t = o->event[j].touch; t < o->touches && !matters; t++)
		matters = o->touch[t].kind >= DPOR_GROW;
	if (matters)
		o->after(o->arg);
}

/* Event d begins. */
static void begin(struct dpor *o, unsigned d)
{
	o->depth++;
	o->choices = 0;
	o->in_event = true;
	if (!is_replayed(o)) {
		struct dpor_event *e = &o->event[d];
		memset(e, 0, sizeof(*e));
		e->proc = o->state[d].proc;
		e->touch = o->touches;
	}
	if (o->begins)
		o->begins(o->arg, o->chain[o->state[d].proc]);
}

static bool knows(struct scheduler *scheduler, uint64_t *chain)
{
	struct dpor *o = of_scheduler(scheduler);
	unsigned d = o->depth;
	if (d >= o->replay || (o->again && d == o->kept_depth))
		return false;
	dpor_settle(o);
	*chain = o->chain[o->state[d].proc];
	begin(o, d);
	return true;
}

static unsigned pick(struct scheduler *scheduler, const uint64_t *chain, unsigned n)
{
	struct dpor *o = of_scheduler(scheduler);
	dpor_settle(o);
	unsigned d = o->depth, i = 0;
	if (o->again && d == o->kept_depth) {
		sim_stop(o->sim, SIM_DONE);
		return 0;
	}
	if (!o->first_seen)
		o->after(o->arg);
	o->first_seen = true;
	if (d == DPOR_EVENTS || o->failed)
		o->complete = false;
	if (d == DPOR_EVENTS || o->failed || !enter(o, d, chain, n)) {
		o->known = true;
		sim_stop(o->sim, SIM_DONE);
		return 0;
	}
	while (chain[i] != o->chain[o->state[d].proc])
		i++;
	begin(o, d);
	return i;
}

/* --- the search --- */

/* Keep what the current process of the state has touched. */
static void keep_foot(struct dpor *o, struct dpor_state *s, const struct dpor_event *e)
{
	for (unsigned t = 0; t < e->touches; t++) {
		o->slept = more(o, o->slept, o->slepts, &o->slept_room, sizeof(*o->slept));
		if (o->failed)
			return;
		o->slept[o->slepts++] = o->touch[e->touch + t];
	}
	s->slept_end = o->slepts;
}

/* The next answers to the choices of the state's event. False: all were given. */
static bool next_answers(struct dpor_state *s)
{
	while (s->choices) {
		unsigned last = s->choices - 1;
		if (++s->choice[last].answer < s->choice[last].n)
			return true;
		s->choices--;
	}
	return false;
}

/* The next process of the state. False: all that have to be tried were. */
static bool next_proc(struct dpor *o, struct dpor_state *s)
{
	s->sleeper[s->sleepers++] = (struct sleeper){s->proc, s->foot, o->slepts - s->foot};
	s->done |= proc_bit(s->proc);
	s->sleeps |= proc_bit(s->proc);
	procs left = s->backtrack & ~s->done;
	for (unsigned i = 0; i < s->inherited; i++)
		left &= ~proc_bit(s->sleeper[i].proc);
	if (!left)
		return false;
	s->proc = (uint8_t)first_proc(left);
	s->foot = o->slepts;
	s->choices = 0;
	return true;
}

/* Go back to the newest state at which something is left to be tried. False: there is none. */
static bool go_back(struct dpor *o)
{
	for (unsigned d = o->depth; d-- > 0;) {
		struct dpor_state *s = &o->state[d];
		o->slepts = s->slept_end;
		keep_foot(o, s, &o->event[d]);
		o->touches = o->event[d].touch;
		while (o->gifts && o->gift[o->gifts - 1].event >= (int)d)
			o->gifts--;
		while (o->enableds && o->enabled[o->enableds - 1].event >= (int)d)
			o->enableds--;
		if (next_answers(s) || next_proc(o, s)) {
			o->replay = d + 1;
			return true;
		}
	}
	return false;
}

void dpor_search(struct dpor *o, void (*run)(void *arg))
{
	o->complete = true;
	do {
		if (o->tried == o->max_runs) {
			o->complete = false;
			return;
		}
		o->depth = 0;
		o->in_event = o->known = false;
		o->tried++;
		run(o->arg);
		assert(!o->in_event);
		if (!o->known)
			o->runs++;
		if (o->depth > o->longest)
			o->longest = o->depth;
	} while (!o->failed && go_back(o));
}

unsigned dpor_length(const struct dpor *o)
{
	unsigned length = o->depth;
	for (unsigned d = 1; d < o->depth; d++)
		length += o->state[d].proc != o->state[d - 1].proc;
	return length;
}

void dpor_keep(struct dpor *o)
{
	o->kept_depth = o->depth;
	memcpy(o->kept, o->state, o->depth * sizeof(*o->state));
}

void dpor_again(struct dpor *o, void (*run)(void *arg))
{
	memcpy(o->state, o->kept, o->kept_depth * sizeof(*o->state));
	o->replay = o->kept_depth + 1;
	o->depth = 0;
	o->known = false;
	o->again = true;
	run(o->arg);
	o->again = false;
}

int dpor_open(struct dpor *o)
{
	o->scheduler = (struct scheduler){.knows = knows,
					  .pick = pick,
					  .enables = enables,
					  .touched = touched,
					  .gives = gives,
					  .takes = takes};
	o->source = (struct source){.answer = answer};
	o->state = calloc(DPOR_EVENTS, sizeof(*o->state));
	o->kept = calloc(DPOR_EVENTS, sizeof(*o->kept));
	o->event = calloc(DPOR_EVENTS, sizeof(*o->event));
	return o->state && o->kept && o->event ? 0 : -ENOMEM;
}

void dpor_close(struct dpor *o)
{
	free(o->state);
	free(o->kept);
	free(o->event);
	free(o->touch);
	free(o->slept);
	free(o->gift);
	free(o->enabled);
}
