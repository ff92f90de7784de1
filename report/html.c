/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A replay as one HTML report that needs nothing else: no file, no network, and for
 * reading no script.
 *
 * On top stands the cause, then a chart: a lane for each client, each task of the
 * server, each queue pair that did something to PM, and each line of PM that matters;
 * time runs to the right. Time is that of the events, not of the clock: each moment at
 * which something happens has a column of its own, so that nothing is hidden in a
 * nanosecond or stretched over a pause. A power failure is a line across all lanes, and
 * the machine that boots after it goes on to the right of it. Below are the lines in
 * flight, then every event, with its line of source.
 *
 * A pointer over a mark shows its words (SVG's <title>); the script only marks the event
 * in the list when a mark is clicked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/output.h"
#include "report/event_trace.h"

#define COLUMN	 16 /* pixels */
#define LANE	 26
#define NAMES	 170 /* width of the lanes' names */
#define HEAD	 34  /* above the first lane */
#define PM_LANES 24
#define COLUMNS	 1200 /* of more, the chart shows the last */
#define MACHINE	 12   /* columns of a machine at least: its label needs them */

struct lane {
	char name[80];
	int actor;     /* of the record, or -1 */
	uint32_t line; /* of PM, if actor is -1 */
	unsigned rank;
};

struct html {
	FILE *out;
	const struct event_trace *st;
	const struct event_log *r;
	struct lane *lane;
	unsigned lanes;
	int *column; /* of each event; -1: not in the chart */
	unsigned columns;
	int cut[WORLDS + 1]; /* the column at which machine i's power fails */
	size_t skipped;
};

/* --- text --- */

static void escape(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '\'')
			fputs("&#39;", out);
		else
			put_escaped(out, c < ' ' || c == 0x7f ? '?' : c);
	}
}

static void element(FILE *out, const char *open, const char *text, const char *close)
{
	fputs(open, out);
	escape(out, text);
	fputs(close, out);
}

/* --- lanes --- */

/* Clients, the server's tasks, queue pairs. */
static unsigned rank_of(const char *name)
{
	if (strstr(name, "/qp"))
		return 3;
	return name[0] == 'c' ? 1 : 2;
}

static int compare_lanes(const void *a, const void *b)
{
	const struct lane *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->actor < 0)
		return x->line < y->line ? -1 : x->line > y->line;
	size_t m = strlen(x->name), n = strlen(y->name);
	return x->rank != 2 && m != n ? (m < n ? -1 : 1) : strcmp(x->name, y->name);
}

static bool marked(const struct html *p, int event)
{
	for (unsigned i = 0; i < p->st->cause.events; i++)
		if (p->st->cause.event[i] == event)
			return true;
	return false;
}

static bool has_lane(const struct html *p, int actor, uint32_t line)
{
	for (unsigned i = 0; i < p->lanes; i++)
		if (p->lane[i].actor == actor && (actor >= 0 || p->lane[i].line == line))
			return true;
	return false;
}

static void add_lane(struct html *p, int actor, uint32_t line)
{
	const struct setup *s = &p->st->trace->setup;
	if (has_lane(p, actor, line))
		return;
	struct lane *l = &p->lane[p->lanes++];
	*l = (struct lane){.actor = actor, .line = line, .rank = 4};
	if (actor >= 0) {
		snprintf(l->name, sizeof(l->name), "%s", p->r->actor[actor]);
		l->rank = rank_of(l->name);
	} else {
		pmem_name(s->region, s->regions, (uint64_t)line * LINE, l->name, sizeof(l->name));
	}
}

/* Lines of the cause first, then those in flight at a failure, then those that are written, while
 * there is room. */
static void add_pm_lanes(struct html *p)
{
	const struct event_log *r = p->r;
	unsigned before = p->lanes;
	for (unsigned i = 0; i < p->st->cause.events; i++) {
		const struct logged_event *e = &r->event[p->st->cause.event[i]];
		for (uint64_t l = e->off / LINE; e->len && l <= (e->off + e->len - 1) / LINE; l++)
			if (p->lanes - before < PM_LANES)
				add_lane(p, -1, (uint32_t)l);
	}
	for (unsigned i = 0; i < r->lines && p->lanes - before < PM_LANES; i++)
		add_lane(p, -1, r->line[i].line);
	for (size_t i = 0; i < r->events && p->lanes - before < PM_LANES; i++)
		if (event_log_writes(&r->event[i]) && r->event[i].machine == 0)
			add_lane(p, -1, (uint32_t)(r->event[i].off / LINE));
}

static int make_lanes(struct html *p)
{
	p->lane = calloc(p->r->actors + PM_LANES + 1, sizeof(*p->lane));
	if (!p->lane)
		return -ENOMEM;
	for (size_t i = 0; i < p->r->events; i++) {
		const struct logged_event *e = &p->r->event[i];
		if (e->actor >= 0 && (e->kind != TRACED_WORDS || *event_log_text(p->r, e)))
			add_lane(p, e->actor, 0);
	}
	add_pm_lanes(p);
	qsort(p->lane, p->lanes, sizeof(*p->lane), compare_lanes);
	return 0;
}

/* --- columns --- */

/* Adjacent stores of one task to one line share a column, and so do pieces of one message. */
static bool shares(const struct html *p, const struct logged_event *a, const struct logged_event *b,
		   size_t at)
{
	if (marked(p, (int)at) || a->machine != b->machine || a->actor != b->actor ||
	    a->kind != b->kind)
		return false;
	return event_log_writes(a) ? a->off / LINE == b->off / LINE : a->kind == TRACED_LOAD;
}

static int make_columns(struct html *p)
{
	const struct event_log *r = p->r;
	const struct logged_event *last = NULL;
	p->column = calloc(r->events + 1, sizeof(*p->column));
	if (!p->column)
		return -ENOMEM;
	p->columns = 1;
	for (unsigned m = 0; m < r->machines; m++) {
		unsigned before = p->columns;
		for (size_t i = r->machine_from[m]; i < r->machine_from[m + 1]; i++) {
			const struct logged_event *e = &r->event[i];
			p->column[i] = -1;
			if (e->kind == TRACED_CHECK && !marked(p, (int)i))
				continue;
			if (e->kind == TRACED_LOAD && !marked(p, (int)i) && r->loads > COLUMNS / 4)
				continue; /* a store that polls would fill the chart with nothing
					     else */
			if (!last || !shares(p, last, e, i))
				p->columns++;
			p->column[i] = (int)p->columns;
			last = e;
		}
		last = NULL;
		p->columns += 2;
		if (p->columns < before + MACHINE)
			p->columns = before + MACHINE;
		p->cut[m] = (int)p->columns;
	}
	p->columns += 2;
	/* Too long for one picture: what comes before the last columns is only in the list. */
	int first = p->columns > COLUMNS ? (int)(p->columns - COLUMNS) : 0;
	for (size_t i = 0; i < r->events; i++) {
		p->skipped += p->column[i] >= 0 && p->column[i] < first;
		p->column[i] = p->column[i] < first ? -1 : p->column[i] - first;
	}
	for (unsigned m = 0; m < r->machines; m++)
		p->cut[m] -= first;
	p->columns -= (unsigned)first;
	return 0;
}

/* --- the chart --- */

static const char *const kind_class[TRACED_KINDS] = {
	[TRACED_WORDS] = "w",	  [TRACED_CALL] = "call", [TRACED_RETURN] = "ret",
	[TRACED_STORE] = "st",	  [TRACED_LOAD] = "ld",	  [TRACED_FLUSH] = "fl",
	[TRACED_FENCE] = "fe",	  [TRACED_LAND] = "st",	  [TRACED_FETCH] = "ld",
	[TRACED_SURVIVED] = "su", [TRACED_POST] = "w",	  [TRACED_CHECK] = "w",
};

static void event_words(const struct html *p, const struct logged_event *e)
{
	const struct setup *s = &p->st->trace->setup;
	char label[40], line[160], name[64];
	const char *text = event_log_text(p->r, e);
	fprintf(p->out, "%.3f us ", (double)e->at / 1000.0);
	event_trace_label(e, label, sizeof(label));
	escape(p->out, event_log_actor(p->r, e));
	element(p->out, " ", label, ": ");
	if (*text) {
		escape(p->out, text);
	} else {
		pmem_name(s->region, s->regions, e->off, name, sizeof(name));
		fprintf(p->out, "loads %llu bytes at ", (unsigned long long)e->len);
		escape(p->out, name);
	}
	where_print(p->st->where, e->pc, line, sizeof(line));
	element(p->out, " ", line, "");
}

static void mark(const struct html *p, size_t i, unsigned lane)
{
	const struct logged_event *e = &p->r->event[i];
	int x = p->column[i] * COLUMN + COLUMN / 2, y = HEAD + (int)lane * LANE + LANE / 2;
	bool cause = marked(p, (int)i);
	fprintf(p->out, "<g class=\"m %s%s\" data-e=\"%zu\">", kind_class[e->kind],
		cause ? " cause" : "", i);
	if (cause)
		fprintf(p->out, "<circle class=halo cx=\"%d\" cy=\"%d\" r=\"9\"/>", x, y);
	if (e->kind == TRACED_LOAD || e->kind == TRACED_FETCH)
		fprintf(p->out, "<circle cx=\"%d\" cy=\"%d\" r=\"3.5\"/>", x, y);
	else if (e->kind == TRACED_FLUSH)
		fprintf(p->out, "<path d=\"M%d %dh9l-4.5 9z\"/>", x - 4, y - 4);
	else if (e->kind == TRACED_FENCE)
		fprintf(p->out, "<path d=\"M%d %dh3v14h-3z\"/>", x - 1, y - 7);
	else if (e->kind == TRACED_CALL)
		fprintf(p->out, "<path d=\"M%d %dl8 5l-8 5z\"/>", x - 4, y - 5);
	else if (e->kind == TRACED_RETURN)
		fprintf(p->out, "<path d=\"M%d %dl-8 5l8 5z\"/>", x + 4, y - 5);
	else if (e->kind == TRACED_SURVIVED)
		fprintf(p->out, "<path d=\"M%d %dl5 5l-5 5l-5-5z\"/>", x, y - 5);
	else
		fprintf(p->out, "<rect x=\"%d\" y=\"%d\" width=\"8\" height=\"8\"/>", x - 4, y - 4);
	fputs("<title>", p->out);
	event_words(p, e);
	fputs("</title></g>\n", p->out);
}

/* What became of a line at the failure of machine m: a word at the line of the failure. */
static void print_fates(const struct html *p, unsigned m)
{
	for (unsigned i = 0; i < p->r->lines; i++) {
		const struct logged_line *l = &p->r->line[i];
		char answer[PMEM_ANSWER_TEXT];
		if (l->machine != m)
			continue;
		struct pmem_answer a = pmem_answer_split(l->versions, l->answer);
		event_trace_survived(l, answer, sizeof(answer));
		for (unsigned k = 0; k < p->lanes; k++)
			if (p->lane[k].actor < 0 && p->lane[k].line == l->line)
				fprintf(p->out,
					"<g class=\"fate %s\"><circle cx=\"%d\" cy=\"%d\" "
					"r=\"8\"/><text "
					"x=\"%d\" y=\"%d\">%s</text>"
					"<title>%s</title></g>\n",
					a.words	    ? "torn"
					: l->answer ? "lost"
						    : "kept",
					p->cut[m] * COLUMN, HEAD + (int)k * LANE + LANE / 2,
					p->cut[m] * COLUMN, HEAD + (int)k * LANE + LANE / 2 + 4,
					a.words	    ? "~"
					: l->answer ? "&#215;"
						    : "&#10003;",
					answer);
	}
}

static bool in_lane(const struct logged_event *e, const struct lane *l)
{
	if (l->actor >= 0)
		return e->actor == l->actor;
	return e->kind != TRACED_SURVIVED && event_log_overlaps(e, (uint64_t)l->line * LINE, LINE);
}

static void print_marks(const struct html *p)
{
	for (unsigned k = 0; k < p->lanes; k++) {
		int last = -1, pending = -1;
		for (size_t i = 0; i <= p->r->events; i++) {
			const struct logged_event *e = &p->r->event[i];
			if (i < p->r->events && (p->column[i] < 0 || !in_lane(e, &p->lane[k])))
				continue;
			/* If several are in one place, the last is drawn, and one that matters
			 * before all others. */
			if (pending >= 0 && (i == p->r->events || p->column[i] != last))
				mark(p, (size_t)pending, k);
			if (i == p->r->events)
				break;
			if (p->column[i] != last || pending < 0 || !marked(p, pending))
				pending = (int)i;
			last = p->column[i];
		}
	}
}

static const char legend[] =
	"<p class=legend><b>&#9654;</b> call <b>&#9664;</b> return <b>&#9632;"
	"</b> write (grey: anything else) <b>&#9679;</b> read <b>&#9660;"
	"</b> flush <b>&#10074;</b> fence <b>&#9670;"
	"</b> first touch after a failure <span class=ring>&#9711;"
	"</span> belongs to the cause <b class=bad>&#215;</b> lost <b class=good>&#10003;"
	"</b> kept <b class=bad>~</b> torn. Hover over a mark for its words,"
	" click it to find it below.</p>\n";

static void print_chart(const struct html *p)
{
	int width = (int)p->columns * COLUMN, height = HEAD + (int)p->lanes * LANE + 8;
	fputs("<div class=chart><div class=names>", p->out);
	for (unsigned k = 0; k < p->lanes; k++) {
		static const char *const groups[] = {"", "client", "task", "nic", "pm"};
		fprintf(p->out, "<div class=\"name %s\" data-lane=\"", groups[p->lane[k].rank]);
		escape(p->out, p->lane[k].name);
		element(p->out, "\">", p->lane[k].name, "</div>");
	}
	fprintf(p->out,
		"</div><div class=scroll><svg width=\"%d\" height=\"%d\" role=img "
		"aria-label=\"events by "
		"lane and time\">\n",
		width, height);
	for (unsigned k = 0; k < p->lanes; k++)
		fprintf(p->out,
			"<rect class=\"lane%s%s\" x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
			k % 2 ? " odd" : "", p->lane[k].actor < 0 ? " pmlane" : "",
			HEAD + (int)k * LANE, width, LANE);
	for (unsigned m = 0; m < p->r->machines; m++) {
		int from = m ? p->cut[m - 1] * COLUMN : 0;
		fprintf(p->out, "<text class=phase x=\"%d\" y=\"14\">%s</text>\n",
			from < 0 ? 8 : from + 8, m ? "recovery, and what is read" : "the run");
		if (m + 1 == p->r->machines)
			continue;
		fprintf(p->out,
			"<g class=crash><path d=\"M%d 4V%d\"/><text x=\"%d\" y=\"28\">power "
			"fails</text></g>\n",
			p->cut[m] * COLUMN, height, p->cut[m] * COLUMN + 6);
	}
	print_marks(p);
	for (unsigned m = 0; m + 1 < p->r->machines; m++)
		print_fates(p, m);
	fputs("</svg></div></div>\n", p->out);
	if (p->skipped)
		fprintf(p->out,
			"<p>The chart shows the end of a long run; %zu earlier events are only in "
			"the "
			"list.</p>",
			p->skipped);
	fputs(legend, p->out);
}

/* --- the rest --- */

static const char style[] =
	"<style>\n"
	":root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#667;--lane:#f3f5f8;"
	"--odd:#fff;--line:#d5dae1;--bad:#c62828;--good:#2e7d32;--write:#b45309;"
	"--read:#2563eb;--order:#7c3aed;--call:#475569;--halo:#fde68a}\n"
	"@media(prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e4e7eb;--dim:#98a2b0;"
	"--lane:#1d2228;--odd:#181c21;--line:#343b45;--bad:#ff7b72;--good:#7ee08a;"
	"--write:#f0a860;--read:#7fb0ff;--order:#c4a3ff;--call:#a9b4c2;--halo:#6b5310}}\n"
	"body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;"
	"margin:0 auto;padding:1rem 1.5rem;max-width:1500px}\n"
	"h1{font-size:1.3rem;margin:.2rem 0}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}\n"
	".rule{color:var(--bad);font-weight:600;margin:.2rem 0}.why{font-size:1.1rem;"
	"border-left:4px solid var(--bad);padding:.3rem .9rem;margin:.6rem 0;max-width:75rem}"
	"\n"
	"code,table,.names,pre{font-family:ui-monospace,monospace;font-size:12.5px}\n"
	".setup{color:var(--dim);margin:.1rem 0}\n";

/* What depends on the sizes of the chart stands between the two. */
static const char style_rest[] =
	".name.client{font-weight:600}.name.nic{color:var(--dim)}.name.pm{color:var(--write)}"
	"\n"
	".scroll{overflow-x:auto;flex:1}svg{display:block}.lane{fill:var(--lane)}"
	".lane.odd{fill:var(--odd)}\n"
	".phase,.crash text{font:12px system-ui,sans-serif;fill:var(--dim)}"
	".crash text{fill:var(--bad);font-weight:600}.crash path{stroke:var(--bad);"
	"stroke-width:2}\n"
	".m{cursor:pointer;fill:var(--dim)}.m.call,.m.ret{fill:var(--call)}"
	".m.st{fill:var(--write)}.m.ld{fill:var(--read)}.m.fl,.m.fe{fill:var(--order)}"
	".m.su{fill:var(--good)}.halo{fill:var(--halo);stroke:var(--bad);stroke-width:2}\n"
	".fate text{font:bold 12px system-ui;text-anchor:middle;fill:#fff}.fate.lost circle,"
	".fate.torn circle{fill:#c62828}.fate.kept circle{fill:#2e7d32}\n"
	".legend{color:var(--dim);font-size:13px}.ring,.bad{color:var(--bad)}"
	".good{color:var(--good)}\n"
	"table{border-collapse:collapse}td,th{padding:1px 10px 1px 0;text-align:left;"
	"vertical-align:top}tr.cause td{background:var(--halo)}"
	"tr.hit td{outline:2px solid var(--read)}.src,th{color:var(--dim)}"
	".wide{overflow-x:auto}\n"
	"</style></head><body>\n";

static void print_head(const struct html *p)
{
	const struct trace *t = p->st->trace;
	const char *contract = t->contract < 0 ? "no contract"
					       : contract_name((enum tm_contract)t->contract);
	fputs(EVENT_PAGE_HEAD
	      "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<title>",
	      p->out);
	escape(p->out, t->setup.store->name);
	if (strcmp(t->setup.variant, "default") != 0)
		element(p->out, " ", t->setup.variant, "");
	element(p->out, " breaks ", contract, " (");
	element(p->out, "", p->st->name, ")</title>\n");
	fputs(style, p->out);
	fprintf(p->out,
		".chart{display:flex;border:1px solid var(--line)}.names{flex:0 0 "
		"%dpx;padding-top:%dpx;"
		"border-right:1px solid var(--line)}.name{height:%dpx;line-height:%dpx;padding:0 "
		"8px;white-space:nowrap;"
		"overflow:hidden;text-overflow:ellipsis}\n",
		NAMES, HEAD, LANE, LANE);
	fputs(style_rest, p->out);
}

static void print_top(const struct html *p)
{
	const struct event_trace *st = p->st;
	const struct trace *t = st->trace;
	const struct cause *c = &st->cause;
	char text[256];
	element(p->out, "<h1>", t->setup.store->name, "");
	if (strcmp(t->setup.variant, "default") != 0)
		element(p->out, ", variant ", t->setup.variant, "");
	if (t->contract >= 0)
		element(p->out, " breaks ", contract_name((enum tm_contract)t->contract), "");
	element(p->out, "</h1>\n<p class=setup>", st->name, "</p>\n");
	for (int k = 0; k < TM_CONTRACTS; k++) {
		if (!st->outcome.verdict[k].broken)
			continue;
		fprintf(p->out, "<p class=rule>%sbroken %s: ", k == t->contract ? "" : "also ",
			contract_name((enum tm_contract)k));
		element(p->out, "", st->outcome.text[k], "</p>\n");
	}
	if (c->sentence[0])
		element(p->out, "<p class=why id=why>", c->sentence, "</p>\n");
	if (c->facts) {
		fputs("<ul>", p->out);
		for (unsigned i = 0; i < c->facts; i++)
			element(p->out, "<li>", c->fact[i], "</li>\n");
		fputs("</ul>\n", p->out);
	}
	setup_hardware_print(&t->setup, true, text, sizeof(text));
	element(p->out, "<p class=setup>hardware ", text, "</p>\n");
}

static void print_lines(const struct html *p)
{
	const struct setup *s = &p->st->trace->setup;
	char text[PMEM_ANSWER_TEXT], label[40], line[160];
	if (!p->r->lines)
		return;
	fputs("<h2>Lines of PM in flight when the power failed</h2>\n<div "
	      "class=wide><table><tr><th>failure<th>line"
	      "<th>survived as<th>written by<th>bytes<th>source</tr>\n",
	      p->out);
	for (unsigned i = 0; i < p->r->lines; i++) {
		const struct logged_line *l = &p->r->line[i];
		for (unsigned v = 1; v <= l->versions; v++) {
			const struct logged_version
				*version = &p->r->version[l->first_version + v - 1];
			pmem_name(s->region, s->regions, (uint64_t)l->line * LINE, text,
				  sizeof(text));
			element(p->out, "<tr data-line=\"", text, "\">");
			fprintf(p->out, "<td>%u", l->machine + 1u);
			element(p->out, "<td>", text, "");
			event_trace_survived(l, text, sizeof(text));
			fprintf(p->out, "<td class=\"%s\">%s: ", l->answer ? "bad" : "good",
				l->answer ? "lost" : "kept");
			escape(p->out, text);
			op_label_print(version->how.op, version->how.occurrence, label,
				       sizeof(label));
			fprintf(p->out, "<td>version %u: ", v);
			escape(p->out, version->how.nic ? "the NIC"
				       : version->actor != EVENT_LOG_NONE
					       ? p->r->actor[version->actor]
					       : "?");
			element(p->out, " for ", label, "");
			where_print(p->st->where, version->how.pc, line, sizeof(line));
			fprintf(p->out, "<td>%u at +0x%02x", version->how.len, version->how.off);
			element(p->out, "<td class=src>", line, "</tr>\n");
		}
	}
	fputs("</table></div>\n", p->out);
}

static void print_events(const struct html *p)
{
	const struct event_log *r = p->r;
	char label[40], line[160];
	for (unsigned m = 0; m < r->machines; m++) {
		fprintf(p->out,
			"<h2>%s</h2>\n<div "
			"class=wide><table><tr><th>us<th>who<th>for<th>what<th>source</tr>\n",
			m ? "Recovery, and what is then read" : "The run");
		for (size_t i = r->machine_from[m]; i < r->machine_from[m + 1]; i++) {
			const struct logged_event *e = &r->event[i];
			if (!*event_log_text(r, e))
				continue;
			event_trace_label(e, label, sizeof(label));
			where_print(p->st->where, e->pc, line, sizeof(line));
			fprintf(p->out, "<tr id=e%zu%s><td>%.3f<td>", i,
				marked(p, (int)i) ? " class=cause" : "", (double)e->at / 1000.0);
			escape(p->out, event_log_actor(r, e));
			element(p->out, "<td>", label, "<td>");
			escape(p->out, event_log_text(r, e));
			element(p->out, "<td class=src>", line, "</tr>\n");
		}
		fputs("</table></div>\n", p->out);
	}
}

static const char script[] =
	"<script>\n"
	"document.querySelectorAll('.m').forEach(function(m){m.addEventListener('click',function(){"
	"\n"
	"document.querySelectorAll('tr.hit').forEach(function(r){r.classList.remove('hit')});\n"
	"var "
	"r=document.getElementById('e'+m.dataset.e);if(r){r.classList.add('hit');r.scrollIntoView({"
	"block:'"
	"center'})}})});\n"
	"</script>\n";

int event_trace_html(FILE *out, const void *events)
{
	struct html p = {.out = out, .st = events};
	p.r = &p.st->record;
	int error = make_lanes(&p);
	if (!error)
		error = make_columns(&p);
	if (!error) {
		print_head(&p);
		print_top(&p);
		print_chart(&p);
		print_lines(&p);
		print_events(&p);
		fputs(script, out);
		fputs("</body></html>\n", out);
	}
	free(p.lane);
	free(p.column);
	return error;
}
