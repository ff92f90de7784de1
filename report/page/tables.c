/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of the page: the lines of PM in flight at each power failure, and every event. What
 * one copy or one message did to several lines, or in several stores, is a group: the script shows
 * one row for it, which unfolds.
 */
#include <errno.h>
#include <stdlib.h>
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

/* One row for the versions of n lines. */
static void print_lines_sum(const struct page *p, const struct logged_line *l, unsigned n)
{
	const struct setup *s = &p->st->trace->setup;
	char name[80];
	pmem_name_range(s->region, s->regions, (uint64_t)l->line * LINE, (uint64_t)n * LINE, name,
			sizeof(name));
	fprintf(p->out, "<tr class=sum><td>%u", l->machine + 1u);
	page_element(p->out, "<td>", name, "");
	fprintf(p->out, "<td class=\"%s\">%s: %u line%s<td>one %s<td><td></tr>\n",
		l->answer ? "bad" : "good", l->answer ? "lost" : "kept", n, plural(n),
		p->r->version[l->first_version].how.nic ? "message" : "copy");
}

/* Has one copy or message made them all? */
static bool is_one_copy(const struct page *p, const struct logged_line *l)
{
	for (unsigned v = 2; v <= l->versions; v++)
		if (!event_versions_alike(p->st, l, 1, l, v))
			return false;
	return true;
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
		n = event_lines_alike(p->st, i);
		n = is_one_copy(p, l) ? n : 1;
		bool group = is_one_copy(p, l) && n * l->versions > 1;
		fputs(group ? "<tbody class=group>\n" : "<tbody>\n", p->out);
		if (group)
			print_lines_sum(p, l, n);
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
	return *event_log_text(p->r, &p->r->event[i]) || event_is_cause(p->st, i);
}

static void print_event(const struct page *p, size_t i)
{
	const struct logged_event *e = &p->r->event[i];
	char label[40], line[160];
	event_trace_label(e, label, sizeof(label));
	where_print(p->st->where, e->pc, line, sizeof(line));
	fprintf(p->out, "<tr id=e%zu%s><td>%.3f<td>", i,
		!event_is_cause(p->st, i)  ? ""
		: *event_log_text(p->r, e) ? " class=cause"
					   : " class=\"cause quiet\"",
		(double)e->at / 1000.0);
	page_escape(p->out, event_log_actor(p->r, e));
	page_element(p->out, "<td>", label, "<td>");
	page_what(p, e, p->out);
	page_element(p->out, "<td class=src>", line, "</tr>\n");
}

static bool is_told(const void *page, size_t event)
{
	return is_listed(page, event);
}

int page_fold(struct page *p)
{
	p->again = calloc(p->r->events + 1, sizeof(*p->again));
	if (!p->again)
		return -ENOMEM;
	for (unsigned m = 0; m < p->r->machines; m++) {
		ptrdiff_t n = event_fold(p->st, m, is_told, p, &p->item[m]);
		if (n < 0)
			return -ENOMEM;
		p->items[m] = (size_t)n;
		for (size_t k = 0; k < p->items[m];) {
			const struct event_item *item = &p->item[m][k];
			k += (size_t)item->length * item->rounds;
			for (size_t i = item[item->length - 1].last + 1;
			     item->rounds > 1 && i <= p->item[m][k - 1].last; i++)
				p->again[i] = true;
			p->repeated += (size_t)item->length * (item->rounds - 1);
		}
	}
	return 0;
}

/* One row for all pieces of an item. */
static void print_sum(const struct page *p, const struct event_item *item)
{
	const struct logged_event *e = &p->r->event[item->first];
	char label[40], line[160], words[300];
	event_trace_label(e, label, sizeof(label));
	where_print(p->st->where, e->pc, line, sizeof(line));
	event_item_words(p->st, item, words, sizeof(words));
	fprintf(p->out, "<tr class=sum><td>%.3f<td>", (double)e->at / 1000.0);
	page_escape(p->out, event_log_actor(p->r, e));
	page_element(p->out, "<td>", label, "<td>");
	page_escape(p->out, words);
	page_element(p->out, "<td class=src>", line, "</tr>\n");
}

static void print_listed(const struct page *p, size_t first, size_t last)
{
	for (size_t i = first; i <= last; i++)
		if (is_listed(p, i))
			print_event(p, i);
}

static void print_item(const struct page *p, const struct event_item *item)
{
	if (item->pieces == 1) {
		fputs("<tbody>\n", p->out);
	} else {
		fputs("<tbody class=group>\n", p->out);
		print_sum(p, item);
	}
	print_listed(p, item->first, item->last);
	fputs("</tbody>\n", p->out);
}

/* The first round, and the others as a group. */
static void print_rounds(const struct page *p, const struct event_item *item)
{
	char words[120];
	const size_t all = (size_t)item->length * item->rounds;
	for (unsigned i = 0; i < item->length; i++)
		print_item(p, &item[i]);
	if (item->rounds == 1)
		return;
	event_rounds_words(p->r, item, words, sizeof(words));
	fprintf(p->out, "<tbody class=group>\n<tr class=sum><td>%.3f<td><td><td>",
		(double)p->r->event[item[item->length].first].at / 1000.0);
	page_element(p->out, "", words, "<td class=src></tr>\n");
	print_listed(p, item[item->length].first, item[all - 1].last);
	fputs("</tbody>\n", p->out);
}

void page_events(const struct page *p)
{
	fputs("<section id=events>\n", p->out);
	for (unsigned m = 0; m < p->r->machines; m++) {
		fprintf(p->out,
			"<h2>%s</h2>\n<div class=wide><table><thead><tr><th>us<th>who<th>for<th>"
			"what<th>source</tr></thead>\n",
			m ? "Recovery, and what is then read" : "The run");
		for (size_t k = 0; k < p->items[m];) {
			const struct event_item *item = &p->item[m][k];
			print_rounds(p, item);
			k += (size_t)item->length * item->rounds;
		}
		fputs("</table></div>\n", p->out);
	}
	fputs("</section>\n", p->out);
}
