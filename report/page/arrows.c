/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arrows of the chart: from a posted request to where its data lands or is read, or where it
 * takes effect, from there to the task that takes the completion; and of a SEND, which touches no
 * PM, from the post to the task that receives it. The reply of a server is such a SEND, or a WRITE,
 * too.
 */
#include <errno.h>
#include <stdlib.h>
#include "report/page/page.h"

static int add(struct page *p, struct page_arrow a)
{
	if (a.from < 0 || a.to < 0 || a.from_column < 0 || a.to_column < 0)
		return 0;
	if (p->arrows == p->arrow_room) {
		unsigned room = p->arrow_room ? 2 * p->arrow_room : 64;
		struct page_arrow *more = realloc(p->arrow, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		p->arrow = more;
		p->arrow_room = room;
	}
	p->arrow[p->arrows++] = a;
	return 0;
}

static bool is_of(const struct logged_event *e, const struct logged_event *post)
{
	return e->message == post->message && e->machine == post->machine &&
	       e->kind != TRACED_POST && e->kind != TRACED_DRAIN && e->kind != TRACED_FAILED;
}

/* To each place in time where some of it lands: lines that follow each other have one arrow. */
static int add_landings(struct page *p, struct page_arrow a, const struct logged_event *post)
{
	int error = 0, last = -1;
	for (size_t i = (size_t)a.post + 1; i < p->r->machine_from[post->machine + 1] && !error;
	     i++) {
		const struct logged_event *e = &p->r->event[i];
		if (p->column[i] < 0 || !is_of(e, post))
			continue;
		a.to_column = p->column[i];
		a.to = page_lane_of(p, e->actor);
		if (last < 0 || p->column[i] > last + 1 || event_is_cause(p->st, i))
			error = add(p, a);
		last = p->column[i];
	}
	return error;
}

/* The last landing of the message before its completion is taken; or the post. */
static int landed_before(const struct page *p, int post, const struct logged_taking *t)
{
	int found = post;
	for (size_t i = (size_t)post + 1; i < t->before; i++)
		if (p->column[i] >= 0 && is_of(&p->r->event[i], &p->r->event[post]))
			found = (int)i;
	return found;
}

static int add_takings(struct page *p, struct page_arrow a, const struct logged_event *post)
{
	int error = 0;
	for (size_t i = 0; i < p->r->takings && !error; i++) {
		const struct logged_taking *t = &p->r->taking[i];
		if (t->message != post->message || t->machine != post->machine)
			continue;
		const int from = landed_before(p, a.post, t);
		/* Acknowledged, and nothing has landed yet: the task need not point at itself. */
		if (from == a.post && !t->received)
			continue;
		a.kind = from == a.post ? PAGE_ARRIVES : PAGE_TAKEN;
		a.from_column = p->column[from];
		a.from = page_lane_of(p, p->r->event[from].actor);
		a.to_column = p->taken_at[i];
		a.to = page_lane_of(p, t->actor);
		error = add(p, a);
	}
	return error;
}

int page_make_arrows(struct page *p)
{
	int error = 0;
	for (size_t i = 0; i < p->r->events && !error; i++) {
		const struct logged_event *e = &p->r->event[i];
		if (e->kind != TRACED_POST || !e->message || p->column[i] < 0)
			continue;
		struct page_arrow a = {.kind = PAGE_LANDS,
				       .from_column = p->column[i],
				       .from = page_lane_of(p, e->actor),
				       .post = (int)i};
		a.reply = a.from >= 0 && p->lane[a.from].rank == PAGE_TASK;
		error = add_landings(p, a, e);
		if (!error)
			error = add_takings(p, a, e);
	}
	return error;
}
