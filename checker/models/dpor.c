/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dynamic partial order reduction: all runs of a small program, but for those that only reorder
 * independent events.
 *
 * A run is a sequence of events. Each event belongs to a process: a thread, the packets of a queue
 * pair, the data that a queue pair lands, and so on (core/rt/choose.h calls them chains). This file
 * is the scheduler that decides which process makes the next event. If two runs differ only in the
 * order of adjacent independent events, they end in the same state, and one of them is enough. The
 * algorithm is source sets with sleep sets (Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic
 * Partial Order Reduction, POPL 2014, algorithm 1):
 *
 *	dependence	is observed while events run. Two events are dependent if they touch the
 *			same bytes and one of them writes, or if both change what a power failure
 *			can leave in a way that has to be seen in both orders (conflicts()).
 *	forced order	Some events precede another one in every run: the event before it in its
 *			process, the event that enabled it, and the event that gave what it takes.
 *	happens-before	is the transitive closure of both.
 *	races		are dependent events whose order is neither forced nor implied by events
 *			between them. The reverse order has to be tried, too: at the state before
 *			the first event, a process goes on that can lead to the second one (one of
 *			the initials). If the state tries one of these anyway, nothing is added.
 *	sleep sets	A process that has been tried at a state sleeps in all later runs from that
 *			state, until an event that depends on it: to wake it earlier would repeat
 *			a run. A run in which all processes sleep is redundant and is given up.
 *
 * An event may have choices of its own (the order in which lines land); all answers are tried.
 *
 * There is no clock and there are no faults. Each run starts the program anew and repeats the first
 * events of the run before it. Every run ends, so the search ends. With `whole` every enabled
 * process is tried at every state; tests/checker/models/test_dpor.c compares the two.
 */
#include "checker/models/dpor.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"

#define SET_WORDS  (DPOR_EVENTS / 64)
#define MAX_CHOICE 16 /* choices of one event */

/* A set of processes. */
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
	uint32_t touch, touches; /* in dpor.touch */
	struct set before;	 /* all events that happen before it */
	struct set forced;	 /* its direct predecessors in every run */
};

/* A process that sleeps, and what its next event would touch. */
struct sleeper {
	uint8_t proc;
	uint32_t first, n; /* in dpor.sleep_touch */
};

/* The state before event d. */
struct dpor_state {
	procs can;	 /* the processes that are enabled */
	procs backtrack; /* those that have to be tried */
	procs done;	 /* those that have been tried */
	procs sleeps;
	uint8_t proc; /* the one that is being tried */
	/* First those that slept in the state before, then those that are done here. */
	struct sleeper sleeper[DPOR_PROCS];
	unsigned sleepers, inherited;
	unsigned sleep_touch_end; /* of dpor.sleep_touch, with what its sleepers touch */
	/* What the current process touched with its other answers: from here to sleep_touch_end. */
	uint32_t footprint;
	struct {
		unsigned n, answer;
	} choice[MAX_CHOICE];
	unsigned choices;
};

static void set_add(struct set *set, unsigned i)
{
	assert(i < DPOR_EVENTS);
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

#define ROOM_FOR_ONE(o, array, n, room) ((o)->failed |= !ARRAY_RESERVE(array, n, 1, room))

/* --- dependence --- */

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

static bool conflict_any(const struct dpor_touch *a, unsigned n, const struct dpor_touch *b,
			 unsigned m)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < m; j++)
			if (conflicts(&a[i], &b[j]))
				return true;
	return false;
}

/* --- what the simulation reports --- */

static unsigned number_of(struct dpor *o, uint64_t process)
{
	unsigned p = 0;
	while (p < o->procs && o->process[p] != process)
		p++;
	assert(p < DPOR_PROCS);
	if (p == o->procs)
		o->process[o->procs++] = process;
	return p;
}

/* Does the event that is on repeat one of the run before? Then everything about it is known. */
static bool is_replayed(const struct dpor *o)
{
	return o->depth < o->replay;
}

void dpor_touch(struct dpor *o, enum dpor_touch_kind kind, uint64_t where, uint64_t len)
{
	if (!o->in_event || is_replayed(o))
		return;
	ROOM_FOR_ONE(o, o->touch, o->touches, o->touch_room);
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

static void enables(struct scheduler *scheduler, uint64_t process)
{
	struct dpor *o = of_scheduler(scheduler);
	if (o->in_event ? is_replayed(o) : o->tried > 1) /* else: before the program begins */
		return;
	ROOM_FOR_ONE(o, o->enabled, o->enableds, o->enabled_room);
	if (o->failed)
		return;
	o->enabled[o->enableds].proc = (uint8_t)number_of(o, process);
	o->enabled[o->enableds++].event = (int)o->depth - 1;
}

static void gives(struct scheduler *scheduler, uint64_t thing)
{
	struct dpor *o = of_scheduler(scheduler);
	if (!o->in_event || is_replayed(o))
		return;
	ROOM_FOR_ONE(o, o->gift, o->gifts, o->gift_room);
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
	/* A failure waits for nothing: it makes an end of what it finds. */
	if (chain_kind(o->process[o->state[o->depth - 1].proc]) == CHAIN_FAILS)
		return;
	for (unsigned i = o->gifts; i-- > 0;) {
		if (o->gift[i].thing != thing)
			continue;
		if (o->gift[i].event != (int)o->depth - 1)
			set_add(&o->event[o->depth - 1].forced, (unsigned)o->gift[i].event);
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

/* The event before this one in its process, and the one that enabled it. */
static void add_forced(struct dpor *o, unsigned j)
{
	struct dpor_event *e = &o->event[j];
	unsigned nth = 0;
	for (unsigned i = 0; i < j; i++)
		nth += o->event[i].proc == e->proc;
	for (unsigned i = j; nth && i-- > 0;) {
		if (o->event[i].proc != e->proc)
			continue;
		set_add(&e->forced, i);
		break;
	}
	for (unsigned i = 0; i < o->enableds; i++) {
		if (o->enabled[i].proc != e->proc || nth--)
			continue;
		if (o->enabled[i].event >= 0 && o->enabled[i].event != (int)j)
			set_add(&e->forced, (unsigned)o->enabled[i].event);
		break;
	}
}

/* The processes with which a run can begin that leads to event j without event i. */
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

/* Events i and j race: make the state before i try a run in which j comes first. */
static void reverse(struct dpor *o, unsigned i, unsigned j)
{
	struct dpor_state *s = &o->state[i];
	procs leading = initials(o, i, j);
	assert(i < j && leading);
	if (leading & (s->backtrack | s->sleeps))
		return;
	leading &= s->can;
	s->backtrack |= leading ? proc_bit(first_proc(leading)) : s->can;
	assert(!(s->backtrack & ~s->can));
}

/* Event j is over: find the events that happened before it, and those that it races with. */
static void close_event(struct dpor *o, unsigned j)
{
	struct dpor_event *e = &o->event[j];
	struct set with = {0}, between = {0};
	e->touches = o->touches - e->touch;
	add_forced(o, j);
	for (unsigned t = 0; t < e->touch; t++) {
		const struct dpor_touch *earlier = &o->touch[t];
		if (!set_has(&with, earlier->event) && o->event[earlier->event].proc != e->proc &&
		    conflict_any(earlier, 1, &o->touch[e->touch], e->touches))
			set_add(&with, earlier->event);
	}
	struct set direct = with;
	set_join(&direct, &e->forced);
	for (unsigned i = 0; i < j; i++)
		if (set_has(&direct, i))
			set_join(&between, &o->event[i].before);
	e->before = between;
	set_join(&e->before, &direct);
	assert(!set_has(&e->before, j)); /* happens-before has no cycle */
	for (unsigned i = 0; i < j && !o->whole; i++)
		if (set_has(&with, i) && !set_has(&e->forced, i) && !set_has(&between, i))
			reverse(o, i, j);
}

/* --- states --- */

/* A process that slept before event d - 1, or was done there, sleeps on if the event does not
 * depend on it. */
static void inherit_sleepers(struct dpor *o, struct dpor_state *s, unsigned d)
{
	s->sleepers = 0;
	s->sleeps = 0;
	s->sleep_touch_end = o->sleep_touches;
	if (!d || o->whole)
		return;
	const struct dpor_state *from = &o->state[d - 1];
	const struct dpor_event *e = &o->event[d - 1];
	for (unsigned i = 0; i < from->sleepers; i++) {
		const struct sleeper *sleeper = &from->sleeper[i];
		if (sleeper->proc == e->proc ||
		    conflict_any(&o->touch[e->touch], e->touches, &o->sleep_touch[sleeper->first],
				 sleeper->n))
			continue;
		s->sleeper[s->sleepers++] = *sleeper;
		s->sleeps |= proc_bit(sleeper->proc);
	}
}

/* Processes whose events depend least on others are tried first. Backtracking then changes the ends
 * of runs rather than their beginnings. */
static int rank_of(uint64_t process)
{
	static const int rank[CHAIN_KINDS] = {
		[CHAIN_SEND] = 0,   [CHAIN_REQUESTS] = 0, [CHAIN_RESPONSES] = 0,
		[CHAIN_OTHER] = 0,  [CHAIN_TASK] = 1,	  [CHAIN_STORES] = 2,
		[CHAIN_ANSWER] = 3, [CHAIN_LAND] = 4,	  [CHAIN_FAILS] = 5,
	};
	return rank[chain_kind(process)];
}

/* A new state: choose the first process to try. False: all of them sleep. */
static bool open_state(struct dpor *o, unsigned d, const uint64_t *process, unsigned n)
{
	struct dpor_state *s = &o->state[d];
	inherit_sleepers(o, s, d);
	s->inherited = s->sleepers;
	s->can = s->done = s->backtrack = 0;
	s->choices = 0;
	s->footprint = o->sleep_touches;
	int first = -1, rank = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned p = number_of(o, process[i]);
		s->can |= proc_bit(p);
		if (s->sleeps >> p & 1 || (first >= 0 && rank_of(process[i]) >= rank))
			continue;
		first = (int)p;
		rank = rank_of(process[i]);
	}
	if (first < 0)
		return false;
	s->proc = (uint8_t)first;
	s->backtrack = o->whole ? s->can : proc_bit((unsigned)first);
	assert(!(s->sleeps & ~s->can)); /* an independent event disables no process */
	assert(!(s->sleeps & proc_bit((unsigned)first)));
	return true;
}

void dpor_end_event(struct dpor *o)
{
	bool matters = false;
	if (!o->in_event)
		return;
	o->in_event = false;
	if (o->depth < o->replay)
		return;
	unsigned j = o->depth - 1;
	close_event(o, j);
	for (unsigned t = o->event[j].touch; t < o->touches && !matters; t++)
		matters = o->touch[t].kind >= DPOR_GROW;
	if (matters)
		o->after(o->arg);
}

static void begin_event(struct dpor *o, unsigned d)
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
		o->begins(o->arg, o->process[o->state[d].proc]);
}

static bool knows(struct scheduler *scheduler, uint64_t *process)
{
	struct dpor *o = of_scheduler(scheduler);
	unsigned d = o->depth;
	if (d >= o->replay || (o->rerun && d == o->saved_depth))
		return false;
	dpor_end_event(o);
	*process = o->process[o->state[d].proc];
	begin_event(o, d);
	return true;
}

static unsigned pick(struct scheduler *scheduler, const uint64_t *process, unsigned n)
{
	struct dpor *o = of_scheduler(scheduler);
	dpor_end_event(o);
	unsigned d = o->depth, i = 0;
	if (o->rerun && d == o->saved_depth) {
		sim_stop(o->sim, SIM_DONE);
		return 0;
	}
	if (!o->first_seen)
		o->after(o->arg);
	o->first_seen = true;
	if (d == DPOR_EVENTS || o->failed)
		o->complete = false;
	if (d == DPOR_EVENTS || o->failed || !open_state(o, d, process, n)) {
		o->redundant = true;
		sim_stop(o->sim, SIM_DONE);
		return 0;
	}
	while (process[i] != o->process[o->state[d].proc])
		i++;
	begin_event(o, d);
	return i;
}

/* --- the search --- */

/* Save what the current process of the state has touched, for when it sleeps. */
static void save_footprint(struct dpor *o, struct dpor_state *s, const struct dpor_event *e)
{
	for (unsigned t = 0; t < e->touches; t++) {
		ROOM_FOR_ONE(o, o->sleep_touch, o->sleep_touches, o->sleep_touch_room);
		if (o->failed)
			return;
		o->sleep_touch[o->sleep_touches++] = o->touch[e->touch + t];
	}
	s->sleep_touch_end = o->sleep_touches;
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
	assert(!(s->done & proc_bit(s->proc)) && s->sleepers < DPOR_PROCS);
	s->sleeper[s->sleepers++] = (struct sleeper){s->proc, s->footprint,
						     o->sleep_touches - s->footprint};
	s->done |= proc_bit(s->proc);
	s->sleeps |= proc_bit(s->proc);
	procs left = s->backtrack & ~s->done;
	for (unsigned i = 0; i < s->inherited; i++)
		left &= ~proc_bit(s->sleeper[i].proc);
	if (!left)
		return false;
	s->proc = (uint8_t)first_proc(left);
	s->footprint = o->sleep_touches;
	s->choices = 0;
	return true;
}

/* Go back to the newest state at which something is left to be tried. False: there is none. */
static bool go_back(struct dpor *o)
{
	for (unsigned d = o->depth; d-- > 0;) {
		struct dpor_state *s = &o->state[d];
		o->sleep_touches = s->sleep_touch_end;
		save_footprint(o, s, &o->event[d]);
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
		o->in_event = o->redundant = false;
		o->tried++;
		run(o->arg);
		assert(!o->in_event);
		if (!o->redundant)
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

void dpor_save(struct dpor *o)
{
	o->saved_depth = o->depth;
	memcpy(o->saved, o->state, o->depth * sizeof(*o->state));
}

void dpor_rerun(struct dpor *o, void (*run)(void *arg))
{
	memcpy(o->state, o->saved, o->saved_depth * sizeof(*o->state));
	o->replay = o->saved_depth + 1;
	o->depth = 0;
	o->redundant = false;
	o->rerun = true;
	run(o->arg);
	o->rerun = false;
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
	o->saved = calloc(DPOR_EVENTS, sizeof(*o->saved));
	o->event = calloc(DPOR_EVENTS, sizeof(*o->event));
	return o->state && o->saved && o->event ? 0 : -ENOMEM;
}

void dpor_close(struct dpor *o)
{
	free(o->state);
	free(o->saved);
	free(o->event);
	free(o->touch);
	free(o->sleep_touch);
	free(o->gift);
	free(o->enabled);
}
