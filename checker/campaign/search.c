/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Systematic search (docs/search.md says what it promises).
 *
 * A run is named by its deviations, in the order in which they come. The search runs
 * a list of them, looks at the log of what came after the last one, and goes on
 * with the list and one deviation more, depth first, until the bounds on preemptions
 * and faults are used up. At each place where the power can fail in each run, the
 * explorer does what it always does.
 *
 * The reduction. Say a task goes through points s and s' (s' its next), and a is what it
 * does between them. Delayed until quiescence at s, the others do W and then comes a;
 * delayed at s', a comes first. If a is independent of all of W, these are two orders of the same
 * things, and one run is enough. So a task's points are gone through from the last to the first.
 * The runs of s' collect W: not of one run, but all that others did during the delay in any run
 * below it, so that what is said of the two runs is true of all that go on from them with the same
 * further deviations, as many as they may be. When a is independent of W, s is not tried, and W,
 * with what others did between s and s' in the run itself, is also what they would do if the task
 * were delayed at s. A delay that lets others go counts what these do into W, since they do it
 * while it lasts.
 *
 * The same goes for the lines of one packet on their way into memory, and of one READ.
 * Never left out are: a post, taking a completion, and the beginning of an operation;
 * packets; drains; orders; and faults, which delay nothing.
 *
 * Of several servers one fails at its own places only: docs/model.md argues why that is enough.
 *
 * faultinject/systematic.c decides what depends on what. The reduction looks at order, not at
 * nanoseconds: store code that reads the clock may see other times in the two runs.
 */
#include "checker/campaign/search.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

const struct search_limits search_default = {
	.preemptions = 2, .runs = UINT64_MAX, .depends = footprint_depends, .places = PLACES_ALL};

static void try_all(struct search *s, unsigned preemptions, unsigned faults);

static bool goes_on(struct search *s)
{
	if (s->ex->counts.runs >= s->limits.runs || !explore_more(s->ex) || s->failed)
		s->complete = false;
	return s->complete;
}

/* Runs go on from marks: where the list's run is to, if it is like that of the list without its
 * last deviation, which its log has, until that point. */
static void find_mark(struct search *s, const struct log_point *p)
{
	const unsigned n = s->list.n;
	struct search_level *before = &s->level[n], *level = &s->level[n + 1];
	level->from = NULL;
	if (before->emptied != explore_emptied(s->ex))
		return;
	level->from = marks_before(&before->marks, (uint32_t)(p - before->log.point));
	level->taken = n;
	if (!level->from) {
		level->from = before->from;
		level->taken = before->taken;
	}
}

/* Of several servers one has lost its power. */
static bool one_failed(const struct search *s)
{
	for (unsigned i = 0; i < s->list.n; i++) {
		const unsigned k = choice_delay(s->list.d[i].kind, s->list.d[i].answer);
		if (delay_befalls_one(k) && !server_is_cut(death_event(k)))
			return true;
	}
	return false;
}

/* Run the list. Its log is level[list.n].log, if it is asked for; `leaf`: but for lines that a
 * server has lost nothing more deviates. */
static void run_list(struct search *s, bool log, bool leaf)
{
	struct explorer *ex = s->ex;
	struct search_level *level = &s->level[s->list.n];
	assert(s->list.n <= SYSTEMATIC_DEPTH);
	s->source.log = log ? &level->log : NULL;
	level->log.lines_only = leaf;
	systematic_start(&s->source, &s->list);
	if (level->from)
		systematic_go_on(&s->source, level->taken);
	marks_clear(&level->marks);
	level->emptied = explore_emptied(ex);
	ex->marks = log && ex->prefix ? &level->marks : NULL;
	ex->mark_once = leaf; /* a fork right after the failure is enough */
	ex->position = &s->source.logged;
	int error = explore_run_from(ex, level->from, &s->source.source, &s->source.taken);
	s->error = s->error ? s->error : error;
	ex->marks = NULL;
	ex->mark_once = false;
	assert(s->source.taken.n <= s->list.n); /* the list is all that deviates */
	/* Each of them was met before, and nothing that comes before it is different now; but a
	 * run ends early where the budget does. */
	if (s->source.taken.n < s->list.n || !ex->run_whole)
		s->complete = false;
	s->failed |= s->source.failed;
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		if (s->seen[c] || !ex->failure[c].found)
			continue;
		s->seen[c] = true;
		s->failed |= deviations_append(&s->failing[c], &s->list) != 0;
	}
}

/* Everything that begins with the list and this answer at the point. */
static void go_down(struct search *s, const struct log_point *p, unsigned answer,
		    unsigned preemptions, unsigned faults)
{
	struct deviation d = p->d;
	unsigned k = choice_delay(d.kind, answer);
	bool delays = k == DELAY_QUIESCENCE || k == DELAY_SWITCH;
	unsigned n = s->list.n;
	assert(n + preemptions + faults < SYSTEMATIC_DEPTH);
	if (!goes_on(s))
		return;
	d.answer = answer;
	assert(s->delays <= n);
	if (delays)
		s->source.window[s->delays++] = &s->level[s->list.n].others;
	find_mark(s, p);
	s->failed |= deviations_add(&s->list, &d) != 0;
	if (!s->failed)
		try_all(s, preemptions, faults);
	assert(s->failed || s->list.n == n + 1);
	s->list.n = n;
	if (delays)
		s->source.window[--s->delays] = NULL;
}

/* Is touch t, between the point and the chain's next, the chain's own? */
static bool is_own(const struct log_point *p, const struct run_log *log, unsigned t)
{
	if (p->d.kind == CHOICE_STEP)
		return log->touch[t].who == p->who;
	/* A line that lands is one touch; where visible is durable, a place at which the power can
	 * fail precedes it. */
	return t == p->touches || (t == p->touches + 1 && log->touch[t].what == TOUCH_POWER);
}

/* Does a delay at p have the effect of one at `next`, during which others touched `others`? Then
 * add what they do in between. */
static bool only_reorders(struct search *s, const struct run_log *log, const struct log_point *p,
			  const struct log_point *next, struct footprint *others)
{
	const struct deviation *d = &p->d;
	if (s->limits.whole)
		return false;
	const bool step = d->kind == CHOICE_STEP;
	if (step ? d->a >= STEP_POST && d->a != STEP_ATOMIC : !choice_traits[d->kind].chain)
		return false;
	for (unsigned t = p->touches; t < next->touches; t++)
		if (!is_own(p, log, t))
			footprint_add(others, &log->touch[t]);
	for (unsigned t = p->touches; t < next->touches; t++)
		if (is_own(p, log, t) && s->limits.depends(others, &log->touch[t]))
			return false;
	return true;
}

/* Delay a chain at each of its points, from the last to the first. */
static void try_chain(struct search *s, const struct run_log *log, unsigned last, unsigned k,
		      unsigned preemptions, unsigned faults)
{
	struct footprint *others = &s->level[s->list.n].others;
	const struct log_point *next = NULL;
	assert(preemptions && last < log->points);
	for (int i = (int)last; i >= 0 && s->complete; i = log->point[i].before) {
		const struct log_point *p = &log->point[i];
		assert(p->before < i && (!next || p->chain == next->chain));
		if (k == DELAY_SWITCH && !p->delayed)
			continue;
		if (next && only_reorders(s, log, p, next, others)) {
			s->ex->counts.spared++;
		} else {
			footprint_clear(others);
			go_down(s, p, choice_delay_answer(p->d.kind, k), preemptions - 1, faults);
		}
		next = p;
	}
}

static void try_delays(struct search *s, const struct run_log *log, unsigned preemptions,
		       unsigned faults)
{
	for (unsigned i = log->points; i-- > 0;) {
		bool last = choice_traits[log->point[i].d.kind].delay;
		for (unsigned j = i + 1; j < log->points && last; j++)
			last = log->point[j].before != (int)i;
		if (!last)
			continue;
		try_chain(s, log, i, DELAY_QUIESCENCE, preemptions, faults);
		try_chain(s, log, i, DELAY_SWITCH, preemptions, faults);
	}
}

static void try_orders(struct search *s, const struct run_log *log, unsigned preemptions,
		       unsigned faults)
{
	assert(preemptions);
	for (unsigned i = 0; i < log->points; i++) {
		const struct log_point *p = &log->point[i];
		for (unsigned k = 1; choice_traits[p->d.kind].reorders && k < p->d.n; k++)
			go_down(s, p, k, preemptions - 1, faults);
	}
}

static void try_faults(struct search *s, const struct run_log *log, unsigned preemptions,
		       unsigned faults)
{
	assert(faults);
	for (unsigned i = 0; i < log->points; i++) {
		const struct log_point *p = &log->point[i];
		const struct choice_traits *traits = &choice_traits[p->d.kind];
		for (unsigned answer = 1; answer <= traits->faults; answer++)
			go_down(s, p, answer, preemptions, faults - 1);
		if (traits->forever && p->d.n > DELAY_FOREVER)
			go_down(s, p, choice_delay_answer(p->d.kind, DELAY_FOREVER), preemptions,
				faults - 1);
	}
}

/* --- one of several servers --- */

/* What others learn of a server, or its images lose; no bit: nothing. Which server: *server. */
static unsigned place_of(const struct search *s, const struct log_touch *t, unsigned *server)
{
	const struct world *w = &s->ex->worlds.world[0];
	const bool config = t->where == (uintptr_t)sim_config(w->sim);
	/* Where visible is durable, what is written takes the place of what was. */
	if (t->what == TOUCH_COMMIT ||
	    (t->what == TOUCH_WRITE && setup_hw_at(w->setup, t->where).domain != DOMAIN_DMP)) {
		*server = setup_server_at(w->setup, t->where);
		return PLACE_SHRINKS;
	}
	if (t->what == TOUCH_LEAVES) {
		*server = host_server(leaving_host(t->where));
		return PLACE_LEAVES;
	}
	if (!config || t->server == SIM_SERVERS)
		return 0;
	*server = t->server;
	return t->what == TOUCH_DRAM_WRITE ? PLACE_CONFIG : PLACE_ASKS;
}

/* Is it one of the steps at which a server's failure is tried? What an atomic changes is DRAM,
 * which the failure takes with it. */
static bool fails_at(const struct log_point *p)
{
	return p->d.kind == CHOICE_STEP && p->d.a != STEP_ATOMIC;
}

/* Which steps of the log are the last before something of a server's. */
static void find_places(struct search *s, struct run_log *log)
{
	struct log_point *at = NULL; /* the last step before the touch */
	unsigned i = 0;
	for (unsigned t = 0; t < log->touches; t++) {
		unsigned server = 0;
		const unsigned place = place_of(s, &log->touch[t], &server);
		for (; i < log->points && log->point[i].touches <= t; i++)
			at = fails_at(&log->point[i]) ? &log->point[i] : at;
		struct log_point *last = at;
		/* What waits for the port leaves later. */
		for (unsigned k = i; place & PLACE_LEAVES && k < log->points &&
				     log->point[k].now < leaving_ns(log->touch[t].where);
		     k++)
			last = fails_at(&log->point[k]) ? &log->point[k] : last;
		if (!last || !(place & s->limits.places))
			continue;
		assert(server < s->ex->setup->servers);
		last->power |= (uint8_t)((place & ~PLACE_ASKS ? 1u : 0) << server);
		last->cut |= (uint8_t)((place & ~PLACE_SHRINKS ? 1u : 0) << server);
	}
	for (; i < log->points; i++)
		at = fails_at(&log->point[i]) ? &log->point[i] : at;
	if (at && s->limits.places & PLACE_END)
		at->power = at->cut = UINT8_MAX;
}

/* Is the store asked for it (docs/model.md)? */
static bool may_happen(const struct tm_store *store, enum server_event event)
{
	const unsigned lost = server_events[event].lasts_ns ? 0 : TM_BIT(TM_DURN);
	const unsigned asked = lost | (server_is_cut(event) ? TM_BIT(TM_FENCE) : 0);
	return (store->promises & asked) == asked;
}

static void try_servers(struct search *s, struct run_log *log, unsigned preemptions,
			unsigned faults)
{
	const struct setup *setup = s->ex->setup;
	assert(faults && setup->servers > 1);
	find_places(s, log);
	for (unsigned i = 0; i < log->points; i++) {
		const struct log_point *p = &log->point[i];
		const bool any = s->limits.places & PLACE_ANY;
		for (unsigned e = 0; e < SERVER_EVENTS_END && fails_at(p); e++)
			for (unsigned server = 0; server < setup->servers; server++)
				if ((any || (server_is_cut(e) ? p->cut : p->power) >> server & 1) &&
				    may_happen(setup->store, e))
					go_down(s, p,
						choice_delay_answer(CHOICE_STEP,
								    death_of(e, server)),
						preemptions, faults - 1);
	}
}

/* What a server finds on a line after its power failure, other than the newest version: that is no
 * fault more. */
static void try_lines(struct search *s, const struct run_log *log, unsigned preemptions,
		      unsigned faults)
{
	for (unsigned i = 0; i < log->points; i++) {
		const struct log_point *p = &log->point[i];
		if (p->d.kind != CHOICE_LINE)
			continue;
		const bool room = s->list.n + preemptions + faults < SYSTEMATIC_DEPTH;
		s->ex->counts.points_bounded += !room;
		for (unsigned answer = 1; room && answer < p->d.n; answer++)
			go_down(s, p, answer, preemptions, faults);
	}
}

/* The list, and all that begins with it. */
static void try_all(struct search *s, unsigned preemptions, unsigned faults)
{
	struct run_log *log = &s->level[s->list.n].log;
	const bool leaf = !preemptions && !faults, lost = one_failed(s);
	run_list(s, !leaf || lost, leaf);
	if (preemptions) {
		try_delays(s, log, preemptions, faults);
		try_orders(s, log, preemptions, faults);
	}
	if (faults)
		try_faults(s, log, preemptions, faults);
	if (faults && s->ex->setup->servers > 1)
		try_servers(s, log, preemptions, faults);
	if (lost)
		try_lines(s, log, preemptions, faults);
}

int search_run(struct search *s, struct explorer *ex, const struct search_limits *limits)
{
	memset(s, 0, sizeof(*s));
	s->ex = ex;
	s->limits = *limits;
	s->complete = true;
	if (limits->preemptions + limits->faults > SYSTEMATIC_BOUND)
		return -EINVAL;
	for (unsigned i = 0; i <= SYSTEMATIC_DEPTH; i++)
		footprint_clear(&s->level[i].others);
	try_all(s, limits->preemptions, limits->faults);
	assert(!s->list.n && !s->delays); /* each step down was taken back */
	assert(s->complete || s->failed || ex->counts.runs || ex->unstarted || s->error);
	return s->failed ? -ENOMEM : s->error;
}

void search_close(struct search *s)
{
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		deviations_free(&s->failing[c]);
	for (unsigned i = 0; i <= SYSTEMATIC_DEPTH; i++) {
		run_log_free(&s->level[i].log);
		marks_free(&s->level[i].marks);
	}
	deviations_free(&s->list);
	deviations_free(&s->source.taken);
}
