/* SPDX-License-Identifier: BSD-3-Clause */
/* The columns of the chart: which event, and which completion that is taken, stands where. */
#include <errno.h>
#include <stdlib.h>
#include "report/page/page.h"

#define COLUMNS 1200 /* of more, the chart shows the last */
#define MACHINE 12   /* columns of a machine at least: its label needs them */

/* Adjacent stores of one task to one line share a column, and so do pieces of one message. */
static bool shares(const struct page *p, const struct logged_event *a, const struct logged_event *b,
		   size_t at)
{
	if (event_is_cause(p->st, at) || a->machine != b->machine || a->actor != b->actor ||
	    a->kind != b->kind || a->message != b->message)
		return false;
	if (!event_log_writes(a))
		return a->kind == TRACED_LOAD;
	return a->off / LINE == b->off / LINE;
}

static bool is_charted(const struct page *p, size_t event)
{
	const struct logged_event *e = &p->r->event[event];
	if (event_is_cause(p->st, event))
		return true;
	if (e->kind == TRACED_CHECK || p->again[event])
		return false;
	/* A store that polls would fill the chart with nothing else. */
	return e->kind != TRACED_LOAD || p->r->loads <= COLUMNS / 4;
}

/* The completions that are taken before event `at`. True: there were some. */
static bool place_takings(struct page *p, unsigned machine, size_t at, size_t *next)
{
	const struct event_log *r = p->r;
	size_t from = *next;
	for (; *next < r->takings && r->taking[*next].before <= at &&
	       r->taking[*next].machine == machine;
	     (*next)++)
		p->taken_at[*next] = p->again[r->taking[*next].before] ? -1 : (int)++p->columns;
	return *next > from;
}

static void place_machine(struct page *p, unsigned m, size_t *taking)
{
	const struct event_log *r = p->r;
	const struct logged_event *last = NULL;
	const unsigned before = p->columns;
	for (size_t i = r->machine_from[m]; i < r->machine_from[m + 1]; i++) {
		const struct logged_event *e = &r->event[i];
		p->column[i] = -1;
		if (!is_charted(p, i))
			continue;
		if (place_takings(p, m, i, taking) || !last || !shares(p, last, e, i))
			p->columns++;
		p->column[i] = (int)p->columns;
		last = e;
	}
	place_takings(p, m, r->machine_from[m + 1], taking);
	p->columns += 2;
	if (p->columns < before + MACHINE)
		p->columns = before + MACHINE;
	p->cut[m] = (int)p->columns;
}

/* Too long for one picture: what comes before column `first` is only in the list. */
static void skip_before(struct page *p, int first)
{
	for (size_t i = 0; i < p->r->events; i++) {
		p->skipped += p->column[i] >= 0 && p->column[i] < first;
		p->column[i] = p->column[i] < first ? -1 : p->column[i] - first;
	}
	for (size_t i = 0; i < p->r->takings; i++)
		p->taken_at[i] = p->taken_at[i] < first ? -1 : p->taken_at[i] - first;
	for (unsigned m = 0; m < p->r->machines; m++)
		p->cut[m] -= first;
	p->columns -= (unsigned)first;
}

int page_make_columns(struct page *p)
{
	size_t taking = 0;
	p->column = calloc(p->r->events + 1, sizeof(*p->column));
	p->taken_at = calloc(p->r->takings + 1, sizeof(*p->taken_at));
	if (!p->column || !p->taken_at)
		return -ENOMEM;
	p->columns = 1;
	for (unsigned m = 0; m < p->r->machines; m++)
		place_machine(p, m, &taking);
	p->columns += 2;
	skip_before(p, p->columns > COLUMNS ? (int)(p->columns - COLUMNS) : 0);
	return 0;
}
