/* SPDX-License-Identifier: BSD-3-Clause */
/* The events around a power failure: those that matter for what was lost, and some before and after
 * them. What follows the failure is of the run, in which the power did not fail. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "report/images/images_page.h"
#include "report/page/html.h"

#define BEFORE 12 /* the failure */
#define AFTER  6
#define BESIDE 1 /* what matters */

/* --- which --- */

static void add(struct section *s, size_t event)
{
	if (event < s->r->log->events && s->events < SECTION_EVENTS)
		s->event[s->events++] = event;
}

static void add_around(struct section *s, size_t event, unsigned before, unsigned after)
{
	if (event == SCENE_NEVER)
		return;
	for (size_t i = event > before ? event - before : 0; i <= event + after; i++)
		add(s, i);
}

static int compare_events(const void *a, const void *b)
{
	const size_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void sort_events(struct section *s)
{
	unsigned n = 0;
	qsort(s->event, s->events, sizeof(s->event[0]), compare_events);
	for (unsigned i = 0; i < s->events; i++)
		if (!n || s->event[n - 1] != s->event[i])
			s->event[n++] = s->event[i];
	s->events = n;
}

void section_find_events(struct section *s)
{
	const size_t at = s->cause->at;
	/* The next event is the one before which the power fails. */
	add_around(s, at, BEFORE, AFTER - 1);
	for (unsigned i = 0; i < s->cause->parts; i++) {
		const struct scene_fate *fate = &s->scene->fate[i];
		add(s, s->cause->part[i].event);
		add(s, fate->flush);
		add(s, fate->durable);
		sort_events(s);
	}
	for (unsigned i = 0; i < s->cause->parts; i++) {
		const struct scene_fate *fate = &s->scene->fate[i];
		add_around(s, s->cause->part[i].event, BESIDE, BESIDE);
		add_around(s, fate->flush, BESIDE, BESIDE);
		add_around(s, fate->durable, BESIDE, BESIDE);
		sort_events(s);
	}
}

static bool is_listed(const struct section *s, size_t event)
{
	return bsearch(&event, s->event, s->events, sizeof(event), compare_events) != NULL;
}

bool section_is_lost(const struct section *s, size_t event)
{
	for (unsigned i = 0; i < s->cause->parts; i++)
		if (s->cause->part[i].event == event)
			return true;
	return false;
}

bool section_has_range(const struct pm_event *e)
{
	return e->kind == PM_STORE || e->kind == PM_LAND || e->kind == PM_FLUSH ||
	       e->kind == PM_SYNC || e->kind == PM_COMMIT || (e->kind == PM_RDMA_FLUSH && e->len);
}

/* --- words --- */

void section_print_event_link(const struct section *s, size_t event)
{
	if (is_listed(s, event))
		fprintf(s->out, "<a href=\"#c%u-e%zu\">event %zu</a>", s->number, event, event);
	else
		fprintf(s->out, "event %zu", event);
}

/* What a client was answered by this acknowledgement; NULL: that was not announced. */
static const struct pm_call *answer_of(const struct pm_log *log, size_t event)
{
	size_t from = 0, to = log->timed ? 0 : log->calls; /* with times, others are merged in */
	while (from < to) {
		size_t middle = (from + to) / 2;
		if (log->call[middle].event < event)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < log->calls && !log->timed && log->call[from].event == event; from++)
		if (log->call[from].returns)
			return &log->call[from];
	return NULL;
}

void section_print_what(const struct section *s, size_t event)
{
	const struct pm_log *log = s->r->log;
	const struct pm_event *e = &log->event[event];
	const struct pm_call *call = e->kind == PM_ACK ? answer_of(log, event) : NULL;
	if (e->kind == PM_MARK) {
		page_element(s->out, "marker ", log->source[e->source], "");
	} else if (call) {
		fprintf(s->out, "client %" PRIu64, call->client);
		page_element(s->out, " is answered: ", log->source[call->words], "");
	} else if (section_has_range(e)) {
		char text[4096 + 64] = "";
		FILE *out = fmemopen(text, sizeof(text), "w");
		if (!out)
			return;
		images_print_event(out, log, (uint32_t)event);
		fclose(out);
		page_escape(s->out, text);
	} else {
		fprintf(s->out, "%s", pm_event_name[e->kind]);
	}
}

/* --- the list --- */

static void print_row(const struct section *s, size_t event)
{
	const struct pm_event *e = &s->r->log->event[event];
	fprintf(s->out, "<tr id=c%u-e%zu%s><td>%zu<td>", s->number, event,
		section_is_lost(s, event) ? " class=cause" : "", event);
	section_print_thread(s, e);
	fputs("<td>", s->out);
	section_print_what(s, event);
	if (section_is_lost(s, event))
		fputs(" <b class=bad>lost</b>", s->out);
	fputs("<td class=src>", s->out);
	if (e->kind != PM_MARK && e->source)
		fputs(e->noticed ? "noticed at " : "", s->out);
	if (e->kind != PM_MARK)
		section_print_frames(s, e->source);
	fputs("</tr>\n", s->out);
}

static void print_failure(const struct section *s)
{
	fprintf(s->out, "<tr class=failure><td><td><td>%s<td></tr>\n",
		s->r->options->model == PM_KILL ? "the process dies" : "the power fails");
}

void section_print_list(const struct section *s)
{
	bool failed = false;
	size_t last = SIZE_MAX;
	fputs("<details open>\n<summary>The events around it</summary>\n<div class=wide><table "
	      "class=events>"
	      "<thead><tr><th>event<th>whose<th>what<th>place in the program</tr></thead>\n",
	      s->out);
	for (unsigned i = 0; i < s->events; i++) {
		const size_t event = s->event[i];
		if (!failed && event >= s->cause->at) {
			print_failure(s);
			failed = true;
		}
		if (event > last + 1 || (!i && event))
			fprintf(s->out,
				"<tr><td class=dim>&#8943;<td><td class=dim>%zu more<td></tr>\n",
				i ? event - last - 1 : event);
		print_row(s, event);
		last = event;
	}
	if (!failed)
		print_failure(s);
	fputs("</table></div>\n</details>\n", s->out);
}
