/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of the page: the lines of PM in flight at each power failure, and every event. What
 * one copy or one message did to several lines, or in several stores, is a group: the script shows
 * one row for it, which unfolds.
 */
#include <string.h>
#include "core/pmem/crash.h"
#include "core/text/text.h"
#include "report/page/page.h"

/* --- lines in flight --- */

static void print_version(const struct page *p, const struct logged_line *l, unsigned v)
{
	const struct setup *s = &p->st->trace->setup;
	const struct logged_version *version = &p->r->version[l->first_version + v - 1];
	char name[80], answer[PMEM_ANSWER_TEXT], label[40], line[160];
	pmem_name(s->region, s->regions, (uint64_t)l->line * LINE, name, sizeof(name));
	page_element(p->out, "<tr data-line=\"", name, "\">");
	fprintf(p->out, "<td>%u", l->machine + 1u);
	page_element(p->out, "<td>", name, "");
	event_trace_survived(l, answer, sizeof(answer));
	fprintf(p->out, "<td class=\"%s\">%s: ", l->answer ? "bad" : "good",
		l->answer ? "lost" : "kept");
	page_escape(p->out, answer);
	op_label_print(version->how.op, version->how.occurrence, label, sizeof(label));
	fprintf(p->out, "<td>version %u: ", v);
	page_escape(p->out, version->how.nic		       ? "the NIC"
			    : version->actor != EVENT_LOG_NONE ? p->r->actor[version->actor]
							       : "?");
	page_element(p->out, " for ", label, "");
	where_print(p->st->where, version->how.pc, line, sizeof(line));
	fprintf(p->out, "<td>%u at +0x%02x", version->how.len, version->how.off);
	page_element(p->out, "<td class=src>", line, "</tr>\n");
}

static int only_write(const struct page *p, const struct logged_line *l)
{
	return l->versions == 1 ? p->r->version[l->first_version].event : EVENT_LOG_NONE;
}

/* Are they written by one message, or by one copy? */
static bool same_copy(const struct logged_event *a, const struct logged_event *b)
{
	if (a->kind != b->kind || a->machine != b->machine || a->actor != b->actor ||
	    a->occurrence != b->occurrence || !op_label_equal(a->op, b->op))
		return false;
	return a->message ? a->message == b->message : a->pc == b->pc;
}

/* Line i and those behind it that the same copy has written once, and of which the same
 * survived. */
static unsigned lines_alike(const struct page *p, unsigned i)
{
	const struct logged_line *first = &p->r->line[i];
	unsigned n = 1;
	for (; i + n < p->r->lines; n++) {
		const struct logged_line *l = &p->r->line[i + n];
		int a = only_write(p, first), b = only_write(p, l);
		if (a == EVENT_LOG_NONE || b == EVENT_LOG_NONE || l->machine != first->machine ||
		    l->line != first->line + n || l->answer != first->answer ||
		    !same_copy(&p->r->event[a], &p->r->event[b]))
			break;
	}
	return n;
}

/* "log+0x40..0xff" */
static void print_range(const struct page *p, uint64_t off, uint64_t len)
{
	const struct setup *s = &p->st->trace->setup;
	char first[64], last[64];
	pmem_name(s->region, s->regions, off, first, sizeof(first));
	pmem_name(s->region, s->regions, off + len - 1, last, sizeof(last));
	const char *plus = strrchr(last, '+');
	page_element(p->out, "", first, "..");
	page_escape(p->out, plus ? plus + 1 : last);
}

void page_lines(const struct page *p)
{
	if (!p->r->lines)
		return;
	fputs("<section id=lines>\n<h2>Lines of PM in flight when the power failed</h2>\n<div "
	      "class=wide><table><thead><tr><th>failure<th>line<th>survived as<th>written "
	      "by<th>bytes<th>source</tr></thead>\n",
	      p->out);
	for (unsigned i = 0, n; i < p->r->lines; i += n) {
		const struct logged_line *l = &p->r->line[i];
		n = lines_alike(p, i);
		fputs(n > 1 ? "<tbody class=group>\n" : "<tbody>\n", p->out);
		if (n > 1) {
			fprintf(p->out, "<tr class=sum><td>%u<td>", l->machine + 1u);
			print_range(p, (uint64_t)l->line * LINE, (uint64_t)n * LINE);
			fprintf(p->out, "<td class=\"%s\">%s: %u lines<td>one %s<td><td></tr>\n",
				l->answer ? "bad" : "good", l->answer ? "lost" : "kept", n,
				p->r->version[l->first_version].how.nic ? "message" : "copy");
		}
		for (unsigned k = i; k < i + n; k++)
			for (unsigned v = 1; v <= p->r->line[k].versions; v++)
				print_version(p, &p->r->line[k], v);
		fputs("</tbody>\n", p->out);
	}
	fputs("</table></div>\n</section>\n", p->out);
}

/* --- events --- */

/* As in the text of the event trace, and what has no words there but belongs to the cause. */
static bool is_listed(const struct page *p, size_t i)
{
	return *event_log_text(p->r, &p->r->event[i]) || page_is_cause(p, (int)i);
}

static void print_event(const struct page *p, size_t i)
{
	const struct logged_event *e = &p->r->event[i];
	char label[40], line[160];
	event_trace_label(e, label, sizeof(label));
	where_print(p->st->where, e->pc, line, sizeof(line));
	fprintf(p->out, "<tr id=e%zu%s><td>%.3f<td>", i,
		!page_is_cause(p, (int)i)  ? ""
		: *event_log_text(p->r, e) ? " class=cause"
					   : " class=\"cause quiet\"",
		(double)e->at / 1000.0);
	page_escape(p->out, event_log_actor(p->r, e));
	page_element(p->out, "<td>", label, "<td>");
	page_what(p, e, p->out);
	page_element(p->out, "<td class=src>", line, "</tr>\n");
}

/* The next event in the list; `end`: there is none. */
static size_t next_listed(const struct page *p, size_t i, size_t end)
{
	do
		i++;
	while (i < end && !is_listed(p, i));
	return i < end ? i : end;
}

/* Event i and those after it that continue its copy, up to where it goes on elsewhere: the first
 * that does not. None of them belongs to the cause. */
static size_t copy_end(const struct page *p, size_t i, size_t end, unsigned *n)
{
	const struct logged_event *first = &p->r->event[i], *last = first;
	*n = 1;
	if (page_is_cause(p, (int)i) || !first->len ||
	    (!event_log_writes(first) && first->kind != TRACED_FETCH))
		return next_listed(p, i, end);
	for (i = next_listed(p, i, end); i < end; i = next_listed(p, i, end)) {
		const struct logged_event *e = &p->r->event[i];
		if (page_is_cause(p, (int)i) || !same_copy(first, e) ||
		    e->off != last->off + last->len)
			break;
		last = e;
		++*n;
	}
	return i;
}

/* One row for the n events from `i` to `last`. */
static void print_sum(const struct page *p, size_t i, size_t last, unsigned n)
{
	const struct logged_event *e = &p->r->event[i], *l = &p->r->event[last];
	char label[40], line[160];
	event_trace_label(e, label, sizeof(label));
	where_print(p->st->where, e->pc, line, sizeof(line));
	fprintf(p->out, "<tr class=sum><td>%.3f<td>", (double)e->at / 1000.0);
	page_escape(p->out, event_log_actor(p->r, e));
	page_element(p->out, "<td>", label, "<td>");
	fprintf(p->out, "%s %llu byte%s at ",
		e->kind == TRACED_STORE	  ? "stores"
		: e->kind == TRACED_FETCH ? "reads"
					  : "lands:",
		(unsigned long long)(l->off + l->len - e->off), plural(l->off + l->len - e->off));
	print_range(p, e->off, l->off + l->len - e->off);
	fprintf(p->out, ", in %u pieces", n);
	page_element(p->out, "<td class=src>", line, "</tr>\n");
}

void page_events(const struct page *p)
{
	const struct event_log *r = p->r;
	fputs("<section id=events>\n", p->out);
	for (unsigned m = 0; m < r->machines; m++) {
		const size_t end = r->machine_from[m + 1];
		fprintf(p->out,
			"<h2>%s</h2>\n<div class=wide><table><thead><tr><th>us<th>who<th>for<th>"
			"what<th>source</tr></thead>\n",
			m ? "Recovery, and what is then read" : "The run");
		size_t i = r->machine_from[m];
		if (i < end && !is_listed(p, i))
			i = next_listed(p, i, end);
		bool alone = false; /* in rows that are no group */
		while (i < end) {
			unsigned n;
			const size_t next = copy_end(p, i, end, &n);
			size_t last = i;
			for (unsigned k = 1; k < n; k++)
				last = next_listed(p, last, end);
			if (n > 1 || !alone)
				fprintf(p->out, "%s<tbody%s>\n", alone ? "</tbody>\n" : "",
					n > 1 ? " class=group" : "");
			if (n > 1)
				print_sum(p, i, last, n);
			for (size_t k = i; k <= last && k < end; k = next_listed(p, k, end))
				print_event(p, k);
			if (n > 1)
				fputs("</tbody>\n", p->out);
			alone = n == 1;
			i = next;
		}
		fprintf(p->out, "%s</table></div>\n", alone ? "</tbody>\n" : "");
	}
	fputs("</section>\n", p->out);
}
