/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lanes of the chart: who did something, and which lines of PM matter. Lines that lie behind
 * each other, are written by the same copies and messages and of which the same survived share a
 * lane.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/page/page.h"

#define PM_LINES 256 /* of a run that writes more, the last are only in the list */

/* Clients, the server's tasks, queue pairs. */
static enum page_rank rank_of(const char *name)
{
	if (strstr(name, "/qp"))
		return PAGE_NIC;
	return name[0] == 'c' ? PAGE_CLIENT : PAGE_TASK;
}

static int compare_lanes(const void *a, const void *b)
{
	const struct page_lane *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->actor < 0)
		return x->line < y->line ? -1 : x->line > y->line;
	size_t m = strlen(x->name), n = strlen(y->name);
	return x->rank != PAGE_TASK && m != n ? (m < n ? -1 : 1) : strcmp(x->name, y->name);
}

int page_lane_of(const struct page *p, int actor)
{
	for (unsigned i = 0; i < p->lanes && actor >= 0; i++)
		if (p->lane[i].actor == actor)
			return (int)i;
	return PAGE_NO_LANE;
}

bool page_in_lane(const struct logged_event *e, const struct page_lane *l)
{
	if (l->actor >= 0)
		return e->actor == l->actor;
	return e->kind != TRACED_SURVIVED &&
	       event_log_overlaps(e, (uint64_t)l->line * LINE, (uint64_t)l->lines * LINE);
}

static void add_actor(struct page *p, int actor)
{
	if (actor < 0 || page_lane_of(p, actor) != PAGE_NO_LANE)
		return;
	struct page_lane *l = &p->lane[p->lanes++];
	*l = (struct page_lane){.actor = actor};
	snprintf(l->name, sizeof(l->name), "%s", p->r->actor[actor]);
	l->rank = rank_of(l->name);
}

static void add_line(struct page *p, unsigned before, uint32_t line)
{
	if (p->lanes - before == PM_LINES)
		return;
	for (unsigned i = before; i < p->lanes; i++)
		if (p->lane[i].line == line)
			return;
	p->lane[p->lanes++] = (struct page_lane){
		.actor = EVENT_LOG_NONE, .line = line, .lines = 1, .rank = PAGE_PM};
}

static void add_lines_of(struct page *p, unsigned before, const struct logged_event *e)
{
	for (uint64_t l = e->off / LINE; e->len && l <= (e->off + e->len - 1) / LINE; l++)
		add_line(p, before, (uint32_t)l);
}

/* Lines of the cause first, then those in flight at a failure, then those that are written, while
 * there is room. */
static void add_lines(struct page *p)
{
	const struct event_log *r = p->r;
	const unsigned before = p->lanes;
	for (unsigned i = 0; i < p->st->cause.events; i++)
		add_lines_of(p, before, &r->event[p->st->cause.event[i]]);
	for (unsigned i = 0; i < r->lines; i++)
		add_line(p, before, r->line[i].line);
	for (size_t i = 0; i < r->events; i++)
		if (event_log_writes(&r->event[i]) && r->event[i].machine == 0)
			add_line(p, before, (uint32_t)(r->event[i].off / LINE));
}

/* --- lines of one copy --- */

static void mix(uint64_t *sum, uint64_t a)
{
	struct run_state mixed = {.hash = *sum};
	run_mix(&mixed, a, 0);
	*sum = mixed.hash;
}

/* What is written to the line, in which order, and what survived of it: equal for lines of one
 * copy. Of one message, or of stores of one place in the code, it does not matter how many. */
static uint64_t story_of(const struct page *p, uint32_t line)
{
	const struct event_log *r = p->r;
	uint64_t sum = 1, last = 0;
	for (size_t i = 0; i < r->events; i++) {
		const struct logged_event *e = &r->event[i];
		if (!event_log_writes(e) || !event_log_overlaps(e, (uint64_t)line * LINE, LINE))
			continue;
		uint64_t writer = e->message;
		if (!writer) {
			mix(&writer, e->pc);
			mix(&writer, (uint64_t)e->actor << 32 | (uint64_t)e->op.client << 24 |
					     (uint64_t)e->op.nth << 8 | e->op.kind);
			mix(&writer, (uint64_t)e->occurrence << 8 | e->machine);
		}
		if (writer != last)
			mix(&sum, writer);
		last = writer;
	}
	for (unsigned i = 0; i < r->lines; i++)
		if (r->line[i].line == line)
			mix(&sum, (uint64_t)r->line[i].machine << 48 |
					  (uint64_t)r->line[i].versions << 24 | r->line[i].answer);
	return sum;
}

static void name_lane(const struct page *p, struct page_lane *l)
{
	const struct setup *s = &p->st->trace->setup;
	if (l->lines > 1)
		pmem_name_range(s->region, s->regions, (uint64_t)l->line * LINE,
				(uint64_t)l->lines * LINE, l->name, sizeof(l->name));
	else
		pmem_name(s->region, s->regions, (uint64_t)l->line * LINE, l->name,
			  sizeof(l->name));
}

/* The lanes are sorted, those of PM are the last. */
static void join_lines(struct page *p)
{
	const struct setup *s = &p->st->trace->setup;
	unsigned n = 0;
	uint64_t story = 0;
	for (unsigned i = 0; i < p->lanes; i++) {
		struct page_lane l = p->lane[i], *last = n ? &p->lane[n - 1] : NULL;
		uint64_t its = l.actor < 0 ? story_of(p, l.line) : 0;
		if (last && last->actor < 0 && l.actor < 0 && its == story &&
		    last->line + last->lines == l.line &&
		    setup_region(s, (uint64_t)last->line * LINE) ==
			    setup_region(s, (uint64_t)l.line * LINE)) {
			last->lines++;
			continue;
		}
		story = its;
		p->lane[n++] = l;
	}
	p->lanes = n;
	for (unsigned i = 0; i < n; i++)
		if (p->lane[i].actor < 0)
			name_lane(p, &p->lane[i]);
}

int page_make_lanes(struct page *p)
{
	const struct event_log *r = p->r;
	p->lane = calloc(r->actors + PM_LINES + 1, sizeof(*p->lane));
	if (!p->lane)
		return -ENOMEM;
	for (size_t i = 0; i < r->events; i++) {
		const struct logged_event *e = &r->event[i];
		if (e->kind != TRACED_WORDS || *event_log_text(r, e))
			add_actor(p, e->actor);
	}
	for (size_t i = 0; i < r->takings; i++)
		add_actor(p, r->taking[i].actor);
	add_lines(p);
	qsort(p->lane, p->lanes, sizeof(*p->lane), compare_lanes);
	join_lines(p);
	return 0;
}
