/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chart as SVG: lanes, marks, arrows, power failures and what they left. Each lane is a group
 * at its own height, so that the script can hide lanes and move the others up. A pointer over a
 * mark shows its words (<title>).
 */
#include "core/text/text.h"
#include "report/page/page.h"
#include "core/pmem/crash.h"

static const char *const kind_class[TRACED_KINDS] = {
	[TRACED_WORDS] = "w",	  [TRACED_CALL] = "call", [TRACED_RETURN] = "ret",
	[TRACED_STORE] = "st",	  [TRACED_LOAD] = "ld",	  [TRACED_FLUSH] = "fl",
	[TRACED_FENCE] = "fe",	  [TRACED_LAND] = "st",	  [TRACED_FETCH] = "ld",
	[TRACED_SURVIVED] = "su", [TRACED_POST] = "po",	  [TRACED_CHECK] = "w",
	[TRACED_REFUSED] = "re",  [TRACED_FAILED] = "re", [TRACED_EFFECT] = "fl",
	[TRACED_DRAIN] = "fe",
};

static int middle(int column)
{
	return column * PAGE_COLUMN + PAGE_COLUMN / 2;
}

static int top_of(unsigned lane)
{
	return PAGE_HEAD + (int)lane * PAGE_LANE;
}

void page_what(const struct page *p, const struct logged_event *e, FILE *out)
{
	const struct setup *s = &p->st->trace->setup;
	const char *text = event_log_text(p->r, e);
	char name[64];
	if (*text) {
		page_escape(out, text);
		return;
	}
	if (e->kind == TRACED_CHECK) {
		fprintf(out, "a check %s", e->holds ? "holds" : "does not hold");
		return;
	}
	pmem_name(s->region, s->regions, e->off, name, sizeof(name));
	fprintf(out, "loads %llu byte%s at ", (unsigned long long)e->len, plural(e->len));
	page_escape(out, name);
}

static void event_words(const struct page *p, const struct logged_event *e)
{
	char label[40], line[160];
	fprintf(p->out, "%.3f us ", (double)e->at / 1000.0);
	event_trace_label(e, label, sizeof(label));
	page_escape(p->out, event_log_actor(p->r, e));
	page_element(p->out, *label ? " for " : "", label, ": ");
	page_what(p, e, p->out);
	where_print(p->st->where, e->pc, line, sizeof(line));
	page_element(p->out, *line ? ", " : "", line, "");
}

/* --- marks: coordinates are those of their lane --- */

void page_shape(FILE *out, unsigned kind, int x)
{
	const int y = PAGE_LANE / 2;
	switch (kind) {
	case TRACED_LOAD:
	case TRACED_FETCH:
		fprintf(out, "<circle cx=\"%d\" cy=\"%d\" r=\"3.5\"/>", x, y);
		return;
	case TRACED_FLUSH:
	case TRACED_EFFECT:
		fprintf(out, "<path d=\"M%d %dh9l-4.5 9z\"/>", x - 4, y - 4);
		return;
	case TRACED_FENCE:
	case TRACED_DRAIN:
		fprintf(out, "<path d=\"M%d %dh3v14h-3z\"/>", x - 1, y - 7);
		return;
	case TRACED_CALL:
		fprintf(out, "<path d=\"M%d %dl8 5l-8 5z\"/>", x - 4, y - 5);
		return;
	case TRACED_RETURN:
		fprintf(out, "<path d=\"M%d %dl-8 5l8 5z\"/>", x + 4, y - 5);
		return;
	case TRACED_SURVIVED:
		fprintf(out, "<path d=\"M%d %dl5 5l-5 5l-5-5z\"/>", x, y - 5);
		return;
	case TRACED_POST:
		fprintf(out, "<path d=\"M%d %dh4v-3l5 6l-5 6v-3h-4z\"/>", x - 5, y - 3);
		return;
	default:
		fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"8\" height=\"8\"/>", x - 4, y - 4);
	}
}

static void print_mark(const struct page *p, size_t i)
{
	const struct logged_event *e = &p->r->event[i];
	const bool cause = event_is_cause(p->st, i);
	const int x = middle(p->column[i]);
	fprintf(p->out, "<g class=\"m %s%s\" data-e=\"%zu\">", kind_class[e->kind],
		cause ? " cause" : "", i);
	if (cause)
		fprintf(p->out, "<circle class=halo cx=\"%d\" cy=\"%d\" r=\"9\"/>", x,
			PAGE_LANE / 2);
	page_shape(p->out, e->kind, x);
	fputs("<title>", p->out);
	event_words(p, e);
	fputs("</title></g>\n", p->out);
}

/* If several are in one place, the last is drawn, and one that matters before all others. */
static void print_marks(const struct page *p, const struct page_lane *l)
{
	int last = -1, pending = -1;
	for (size_t i = 0; i < p->r->events; i++) {
		if (p->column[i] < 0 || !page_in_lane(&p->r->event[i], l))
			continue;
		if (pending >= 0 && p->column[i] != last)
			print_mark(p, (size_t)pending);
		if (p->column[i] != last || pending < 0 || !event_is_cause(p->st, (size_t)pending))
			pending = (int)i;
		last = p->column[i];
	}
	if (pending >= 0)
		print_mark(p, (size_t)pending);
}

static void print_takings(const struct page *p, const struct page_lane *l)
{
	for (size_t i = 0; i < p->r->takings && l->actor >= 0; i++) {
		const struct logged_taking *t = &p->r->taking[i];
		if (t->actor != l->actor || p->taken_at[i] < 0)
			continue;
		fprintf(p->out, "<g class=tk><circle cx=\"%d\" cy=\"%d\" r=\"3\"/><title>%.3f us ",
			middle(p->taken_at[i]), PAGE_LANE / 2, (double)t->at / 1000.0);
		page_element(p->out, "",
			     event_log_actor(p->r, &(struct logged_event){.actor = t->actor}),
			     t->received ? ": takes what has been received"
					 : ": takes the completion of its request");
		fputs("</title></g>\n", p->out);
	}
}

/* What became of the lane's lines at the failure of machine m; of joined lines it is the same. */
static void print_fate(const struct page *p, const struct page_lane *lane, unsigned m)
{
	static const char *const signs[] = {"&#10003;", "&#215;", "~"}, *const classes[] = {"kept",
											    "lost",
											    "torn"};
	char answer[PMEM_ANSWER_TEXT];
	const struct logged_line *l = lane->actor < 0 ? event_log_line(p->r, m, lane->line) : NULL;
	if (!l)
		return;
	event_trace_survived(l, answer, sizeof(answer));
	unsigned is = pmem_answer_split(l->versions, l->answer).words ? 2 : l->answer ? 1 : 0;
	int x = p->cut[m] * PAGE_COLUMN, y = PAGE_LANE / 2;
	fprintf(p->out,
		"<g class=\"fate %s\"><circle cx=\"%d\" cy=\"%d\" r=\"8\"/><text x=\"%d\" "
		"y=\"%d\">%s</text>",
		classes[is], x, y, x, y + 4, signs[is]);
	page_element(p->out, "<title>", classes[is], ": ");
	page_element(p->out, "", answer, "</title></g>\n");
}

static void print_lane(const struct page *p, unsigned k)
{
	const struct page_lane *l = &p->lane[k];
	fprintf(p->out,
		"<g class=\"row%s\" transform=\"translate(0,%d)\"><rect class=\"lane%s\" x=\"0\" "
		"y=\"0\" width=\"%d\" height=\"%d\"/>\n",
		l->rank == PAGE_PM ? " pmrow" : "", top_of(k), k % 2 ? " odd" : "",
		(int)p->columns * PAGE_COLUMN, PAGE_LANE);
	print_marks(p, l);
	print_takings(p, l);
	for (unsigned m = 0; m + 1 < p->r->machines; m++)
		print_fate(p, l, m);
	fputs("</g>\n", p->out);
}

/* --- arrows --- */

/* The script moves an arrow with its lanes: from x1, lane from, to x2, lane to. */
static void print_arrow(const struct page *p, const struct page_arrow *a)
{
	static const char *const kinds[] = {
		[PAGE_LANDS] = "lands", [PAGE_TAKEN] = "taken", [PAGE_ARRIVES] = "arrives"};
	const int x1 = middle(a->from_column), x2 = middle(a->to_column),
		  y1 = top_of((unsigned)a->from) + PAGE_LANE / 2,
		  y2 = top_of((unsigned)a->to) + PAGE_LANE / 2, bend = (x2 - x1) / 2;
	fprintf(p->out,
		"<path class=\"arrow %s%s\" data-post=\"%d\" data-from=\"%d\" data-to=\"%d\" "
		"data-x1=\"%d\" data-x2=\"%d\" marker-end=\"url(#%s)\" d=\"M%d %dC%d %d %d %d %d "
		"%d\"><title>",
		kinds[a->kind], a->reply ? " reply" : "", a->post, a->from, a->to, x1, x2,
		a->reply ? "tip-reply" : "tip", x1, y1, x1 + bend, y1, x2 - bend, y2, x2, y2);
	event_words(p, &p->r->event[a->post]);
	fputs("</title></path>\n", p->out);
}

void page_tips(FILE *out)
{
	static const char *const tips[] = {"tip", "tip-reply"};
	fputs("<defs>", out);
	for (unsigned i = 0; i < 2; i++)
		fprintf(out,
			"<marker id=\"%s\" viewBox=\"0 0 8 8\" refX=\"10\" refY=\"4\" "
			"markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0l8 "
			"4l-8 "
			"4z\"/></marker>",
			tips[i]);
	fputs("</defs>\n", out);
}

/* --- all together --- */

static void print_machine(const struct page *p, unsigned m, int height)
{
	int from = m ? p->cut[m - 1] * PAGE_COLUMN : 0;
	fprintf(p->out, "<text class=phase x=\"%d\" y=\"14\">%s</text>\n", from < 0 ? 8 : from + 8,
		m ? "recovery, and what is read" : "the run");
	if (m + 1 == p->r->machines)
		return;
	fprintf(p->out,
		"<g class=crash><path d=\"M%d 4V%d\"/><text x=\"%d\" y=\"28\">power "
		"fails</text></g>\n",
		p->cut[m] * PAGE_COLUMN, height, p->cut[m] * PAGE_COLUMN + 6);
}

static void print_names(const struct page *p)
{
	static const char *const groups[] = {[PAGE_CLIENT] = "client",
					     [PAGE_TASK] = "task",
					     [PAGE_NIC] = "nic",
					     [PAGE_PM] = "pm"};
	const struct setup *s = &p->st->trace->setup;
	char name[64];
	for (unsigned k = 0; k < p->lanes; k++) {
		const struct page_lane *l = &p->lane[k];
		fprintf(p->out, "<div class=\"name %s\" data-lane=\"", groups[l->rank]);
		if (l->actor >= 0)
			page_escape(p->out, l->name);
		for (uint32_t i = 0; i < l->lines && l->actor < 0; i++) {
			pmem_name(s->region, s->regions, (uint64_t)(l->line + i) * LINE, name,
				  sizeof(name));
			page_element(p->out, i ? " " : "", name, "");
		}
		page_element(p->out, "\" title=\"", l->name, "");
		if (l->lines > 1)
			fprintf(p->out, ": %u lines of one copy or message", l->lines);
		fputs("\">", p->out);
		page_element(p->out, "", l->name, "</div>\n");
	}
}

static const char controls[] =
	"<div class=controls hidden><label>lanes <input id=filter type=search size=22 "
	"placeholder=\"server log-a\" aria-label=\"show lanes whose names have one of these "
	"words\"></label>\n"
	"<label><input type=checkbox data-group=client checked> clients</label>\n"
	"<label><input type=checkbox data-group=task checked> server</label>\n"
	"<label><input type=checkbox data-group=nic checked> queue pairs</label>\n"
	"<label><input type=checkbox data-group=pm checked> lines of PM</label>\n"
	"<label><input type=checkbox id=arrows checked> arrows</label>\n"
	"<span class=keys><kbd>&#8592;</kbd> <kbd>&#8594;</kbd> event before, after &nbsp; "
	"<kbd>c</kbd> next of the cause "
	"&nbsp; <kbd>Enter</kbd> in the list &nbsp; <kbd>/</kbd> lanes &nbsp; <kbd>a</kbd> arrows "
	"&nbsp; <kbd>Esc</kbd> "
	"all again</span></div>\n";

static const char legend[] =
	"<ul class=legend>\n"
	"<li><b class=\"k call\">&#9654;</b> an operation is called</li>\n"
	"<li><b class=\"k call\">&#9664;</b> it returns</li>\n"
	"<li><b class=\"k po\">&#10140;</b> a request is posted</li>\n"
	"<li><b class=\"k st\">&#9632;</b> PM is written</li>\n"
	"<li><b class=\"k ld\">&#9679;</b> PM is read</li>\n"
	"<li><b class=\"k fl\">&#9660;</b> a flush</li>\n"
	"<li><b class=\"k fl\">&#10074;</b> a fence</li>\n"
	"<li><b class=\"k w\">&#9632;</b> anything else</li>\n"
	"<li><b class=\"k tk\">&#9675;</b> a completion is taken</li>\n"
	"<li><b class=\"k line\">&#8594;</b> request: to where it lands, and to who takes it</li>\n"
	"<li><b class=\"k rep\">&#8594;</b> the same of what the server sends</li>\n"
	"<li><b class=\"k su\">&#9670;</b> first touch of a line after a failure</li>\n"
	"<li><b class=\"k ring\">&#9711;</b> belongs to the cause</li>\n"
	"<li><b class=\"k lost\">&#215;</b> the newest version is lost</li>\n"
	"<li><b class=\"k kept\">&#10003;</b> it is kept</li>\n"
	"<li><b class=\"k lost\">~</b> the line is torn</li>\n"
	"</ul>\n";

void page_chart(const struct page *p)
{
	const int width = (int)p->columns * PAGE_COLUMN,
		  height = PAGE_HEAD + (int)p->lanes * PAGE_LANE + 8;
	fputs("<section id=chart>\n<h2>What happened</h2>\n", p->out);
	fputs(controls, p->out);
	/* For paper, whose width in pixels is about 1000. */
	fprintf(p->out, "<div class=\"chart%s\" style=\"--fit:%.3f\">\n<div class=names>\n",
		width + PAGE_NAMES > 2200 ? " long" : "",
		width + PAGE_NAMES > 1000 ? 1000.0 / (width + PAGE_NAMES) : 1.0);
	print_names(p);
	fprintf(p->out,
		"</div><div class=scroll tabindex=0><svg width=\"%d\" height=\"%d\" role=img "
		"aria-label=\"events by lane and time\">\n",
		width, height);
	page_tips(p->out);
	for (unsigned k = 0; k < p->lanes; k++)
		print_lane(p, k);
	for (unsigned i = 0; i < p->arrows; i++)
		print_arrow(p, &p->arrow[i]);
	for (unsigned m = 0; m < p->r->machines; m++)
		print_machine(p, m, height);
	fputs("</svg></div></div>\n<p class=now id=now aria-live=polite></p>\n", p->out);
	if (p->skipped)
		fprintf(p->out,
			"<p>The chart shows the end of a long run; %zu earlier events are only in "
			"the list.</p>\n",
			p->skipped);
	if (p->repeated)
		fprintf(p->out,
			"<p>%zu events that repeat those before them are only in the list.</p>\n",
			p->repeated);
	if (width + PAGE_NAMES > 2200)
		fputs("<p class=cut>The chart is longer than the paper is wide: its beginning is "
		      "shown. All events are in the list.</p>\n",
		      p->out);
	fputs(legend, p->out);
	fputs("</section>\n", p->out);
}
