/* SPDX-License-Identifier: BSD-3-Clause */
/* The listed events as a chart: a lane for each thread and each queue pair, and one for each line
 * of PM of which something was lost; arrows lead from what was lost to the flush and the fence that
 * made it durable in the run, where the power did not fail. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker/cause/event_log.h"
#include "core/record/format.h"
#include "report/images/images_page.h"
#include "report/page/html.h"

#define COLUMN 24 /* pixels */
#define LANES  40
#define LINES  8 /* of PM */
#define NONE   (-1)

struct lane {
	bool is_line;
	uint32_t thread;
	unsigned file;
	uint64_t line;
};

struct chart {
	const struct section *s;
	struct lane lane[LANES];
	unsigned lanes, threads;
	int column[SECTION_EVENTS]; /* of the events */
	int columns, width;	    /* width: in pixels */
	int cut;		    /* the column in which the power fails */
};

static const struct kind {
	unsigned shape; /* as page_shape() has it */
	const char *class;
} kinds[PM_EVENT_KINDS] = {
	[PM_STORE] = {TRACED_STORE, "st"},  [PM_LAND] = {TRACED_STORE, "st"},
	[PM_FLUSH] = {TRACED_FLUSH, "fl"},  [PM_FENCE] = {TRACED_FENCE, "fe"},
	[PM_SYNC] = {TRACED_FENCE, "fe"},   [PM_RDMA_FLUSH] = {TRACED_FENCE, "fe"},
	[PM_COMMIT] = {TRACED_FENCE, "fe"}, [PM_PUSH] = {TRACED_FETCH, "ld"},
	[PM_ACK] = {TRACED_RETURN, "su"},   [PM_MARK] = {TRACED_SURVIVED, "w"},
};

static const struct pm_event *event_of(const struct chart *c, unsigned i)
{
	return &c->s->r->log->event[c->s->event[i]];
}

/* --- whose an event is --- */

/* Clients that are in no recording have acknowledgements alone, and no thread. */
static bool is_cpu(const struct pm_log *log, uint32_t thread)
{
	return log->threads && thread && !(thread & RECORD_RNIC);
}

int section_find_threads(struct section_threads *t, const struct pm_log *log)
{
	uint32_t last = 0;
	for (size_t i = 0; i < log->events; i++) {
		const uint32_t thread = log->event[i].thread;
		unsigned k = 0;
		if (thread == last || !is_cpu(log, thread))
			continue;
		last = thread;
		while (k < t->n && t->id[k] != thread)
			k++;
		if (k < t->n)
			continue;
		if (t->n == t->room) {
			unsigned room = t->room * 2 + 16;
			uint32_t *grown = realloc(t->id, room * sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			t->id = grown;
			t->room = room;
		}
		t->id[t->n++] = thread;
	}
	return 0;
}

static void print_thread(const struct section *s, uint32_t thread)
{
	unsigned n = 0;
	if (!s->r->log->threads)
		fputs("the program", s->out);
	else if (thread & RECORD_RNIC)
		fprintf(s->out, "queue pair %u", thread & ~RECORD_RNIC);
	else if (!thread)
		fputs("clients", s->out);
	else {
		while (n < s->threads->n && s->threads->id[n] != thread)
			n++;
		fprintf(s->out, "thread %u", n + 1);
	}
}

void section_print_thread(const struct section *s, const struct pm_event *e)
{
	print_thread(s, e->thread);
}

/* --- lanes and columns --- */

static int lane_of_thread(const struct chart *c, uint32_t thread)
{
	for (unsigned i = 0; i < c->threads; i++)
		if (c->lane[i].thread == thread)
			return (int)i;
	return NONE;
}

static void make_lanes(struct chart *c)
{
	const struct image_scene *scene = c->s->scene;
	for (unsigned i = 0; i < c->s->events && c->threads < LANES - LINES; i++)
		if (lane_of_thread(c, event_of(c, i)->thread) == NONE)
			c->lane[c->threads++] = (struct lane){.thread = event_of(c, i)->thread};
	c->lanes = c->threads;
	for (unsigned i = 0; i < scene->lines && i < LINES; i++) {
		const struct scene_line *l = &scene->line[i];
		if (l->left != l->versions)
			c->lane[c->lanes++] = (struct lane){
				.is_line = true, .file = l->file, .line = l->line};
	}
}

/* Events that are left out have a column together. */
static void make_columns(struct chart *c)
{
	const struct section *s = c->s;
	c->cut = NONE;
	for (unsigned i = 0; i < s->events; i++) {
		c->columns += i ? s->event[i] > s->event[i - 1] + 1 : s->event[i] > 0;
		if (c->cut == NONE && s->event[i] >= s->cause->at)
			c->cut = c->columns++;
		c->column[i] = c->columns++;
	}
	if (c->cut == NONE)
		c->cut = c->columns++;
}

/* The place of an event in the list; NONE: it is not listed. */
static int find_event(const struct chart *c, size_t event)
{
	for (unsigned i = 0; i < c->s->events; i++)
		if (c->s->event[i] == event)
			return (int)i;
	return NONE;
}

static int middle(int column)
{
	return column * COLUMN + COLUMN / 2;
}

static int top_of(int lane)
{
	return PAGE_HEAD + lane * PAGE_LANE;
}

/* --- marks --- */

static bool is_in_lane(const struct pm_event *e, const struct lane *l)
{
	if (!l->is_line)
		return e->thread == l->thread;
	return section_has_range(e) && e->file == l->file && e->off / PM_LINE <= l->line &&
	       l->line <= (e->off + e->len - 1) / PM_LINE;
}

static void print_mark(const struct chart *c, unsigned i)
{
	const struct kind *kind = &kinds[event_of(c, i)->kind];
	const bool lost = section_is_lost(c->s, c->s->event[i]);
	const int x = middle(c->column[i]);
	fprintf(c->s->out, "<g class=\"m %s%s\">", kind->class, lost ? " cause" : "");
	if (lost)
		fprintf(c->s->out, "<circle class=halo cx=\"%d\" cy=\"%d\" r=\"9\"/>", x,
			PAGE_LANE / 2);
	page_shape(c->s->out, kind->shape, x);
	fprintf(c->s->out, "<title>event %zu, ", c->s->event[i]);
	section_print_thread(c->s, event_of(c, i));
	fputs(": ", c->s->out);
	section_print_what(c->s, c->s->event[i]);
	fputs("</title></g>\n", c->s->out);
}

static void print_lane(const struct chart *c, unsigned k)
{
	const struct lane *l = &c->lane[k];
	fprintf(c->s->out,
		"<g transform=\"translate(0,%d)\"><rect class=\"lane%s\" x=\"0\" y=\"0\" "
		"width=\"%d\" height=\"%d\"/>\n",
		top_of((int)k), k % 2 ? " odd" : "", c->width, PAGE_LANE);
	for (unsigned i = 0; i < c->s->events; i++)
		if (is_in_lane(event_of(c, i), l))
			print_mark(c, i);
	if (l->is_line)
		fprintf(c->s->out,
			"<g class=\"fate lost\"><circle cx=\"%d\" cy=\"%d\" r=\"8\"/><text "
			"x=\"%d\" "
			"y=\"%d\">&#215;</text><title>the line is not whole</title></g>\n",
			middle(c->cut), PAGE_LANE / 2, middle(c->cut), PAGE_LANE / 2 + 4);
	fputs("</g>\n", c->s->out);
}

/* --- arrows --- */

static void print_arrow(const struct chart *c, size_t from, size_t to, const char *what)
{
	int a = from == SCENE_NEVER ? NONE : find_event(c, from);
	int b = to == SCENE_NEVER ? NONE : find_event(c, to);
	if (a == NONE || b == NONE)
		return;
	int from_lane = lane_of_thread(c, event_of(c, (unsigned)a)->thread);
	int to_lane = lane_of_thread(c, event_of(c, (unsigned)b)->thread);
	if (from_lane == NONE || to_lane == NONE)
		return;
	const int x1 = middle(c->column[a]), x2 = middle(c->column[b]);
	const int y1 = top_of(from_lane) + PAGE_LANE / 2, y2 = top_of(to_lane) + PAGE_LANE / 2;
	const int bend = (x2 - x1) / 3, rise = from_lane == to_lane ? 16 : 0;
	fprintf(c->s->out,
		"<path class=\"arrow%s\" marker-end=\"url(#tip)\" d=\"M%d %dC%d %d %d %d %d "
		"%d\"><title>%s</title></path>\n",
		to >= c->s->cause->at ? " taken" : "", x1, y1, x1 + bend, y1 - rise, x2 - bend,
		y2 - rise, x2, y2, what);
}

static void print_arrows(const struct chart *c)
{
	for (unsigned p = 0; p < c->s->cause->parts; p++) {
		const struct scene_fate *fate = &c->s->scene->fate[p];
		const size_t lost = c->s->cause->part[p].event;
		print_arrow(c, lost, fate->flush, "its flush");
		if (fate->durable != SCENE_NEVER)
			print_arrow(c, fate->flush == SCENE_NEVER ? lost : fate->flush,
				    fate->durable, "with which it was durable in the run");
	}
}

/* --- all together --- */

static void print_names(const struct chart *c)
{
	FILE *out = c->s->out;
	for (unsigned k = 0; k < c->lanes; k++) {
		const struct lane *l = &c->lane[k];
		if (!l->is_line) {
			fprintf(out, "<div class=\"name %s\">",
				l->thread & RECORD_RNIC ? "nic" : "client");
			print_thread(c->s, l->thread);
		} else {
			const char *name = c->s->r->log->file[l->file].name;
			const char *slash = strrchr(name, '/');
			page_element(out, "<div class=\"name pm\" title=\"", name, "");
			fprintf(out, "+0x%" PRIx64 "\">", l->line * PM_LINE);
			page_escape(out, slash ? slash + 1 : name);
			fprintf(out, "+0x%" PRIx64, l->line * PM_LINE);
		}
		fputs("</div>\n", out);
	}
}

static void print_gaps(const struct chart *c)
{
	size_t last = 0;
	for (unsigned i = 0; i < c->s->events; last = c->s->event[i++]) {
		size_t more = i ? c->s->event[i] - last - 1 : c->s->event[0];
		if (more)
			fprintf(c->s->out,
				"<g><text class=phase x=\"%d\" y=\"28\">&#8943;</text><title>%zu "
				"more</title></g>\n",
				(c->column[i] - 1 - (c->cut == c->column[i] - 1)) * COLUMN + 6,
				more);
	}
}

static const char legend[] =
	"<ul class=legend>\n"
	"<li><b class=\"k st\">&#9632;</b> a store, or a landing</li>\n"
	"<li><b class=\"k fl\">&#9660;</b> a flush</li>\n"
	"<li><b class=\"k fl\">&#10074;</b> a fence, msync or RDMA FLUSH</li>\n"
	"<li><b class=\"k ld\">&#9679;</b> a READ after landings</li>\n"
	"<li><b class=\"k su\">&#9664;</b> an acknowledgement</li>\n"
	"<li><b class=\"k w\">&#9670;</b> a marker</li>\n"
	"<li><b class=\"k ring\">&#9711;</b> is lost</li>\n"
	"<li><b class=\"k line\">&#8594;</b> to its flush, and to what made it durable; dashed: "
	"after the failure, in the run</li>\n"
	"</ul>\n";

void section_print_chart(const struct section *s)
{
	struct chart c = {.s = s};
	make_lanes(&c);
	make_columns(&c);
	const int cut = middle(c.cut), words = cut + 140; /* beside the line */
	c.width = c.columns * COLUMN > words ? c.columns * COLUMN : words;
	const int height = PAGE_HEAD + (int)c.lanes * PAGE_LANE + 8;
	fprintf(s->out, "<div class=\"chart%s\" style=\"--fit:%.3f\">\n<div class=names>\n",
		c.width + PAGE_NAMES > 2200 ? " long" : "",
		c.width + PAGE_NAMES > 1000 ? 1000.0 / (c.width + PAGE_NAMES) : 1.0);
	print_names(&c);
	fprintf(s->out,
		"</div><div class=scroll tabindex=0><svg width=\"%d\" height=\"%d\" role=img "
		"aria-label=\"events by thread\">\n",
		c.width, height);
	for (unsigned k = 0; k < c.lanes; k++)
		print_lane(&c, k);
	print_arrows(&c);
	print_gaps(&c);
	fprintf(s->out,
		"<g class=crash><path d=\"M%d 4V%d\"/><text x=\"%d\" y=\"14\">%s</text></g>\n"
		"<text class=phase x=\"%d\" y=\"28\">the run goes on</text>\n",
		cut, height, cut + 6,
		s->r->options->model == PM_KILL ? "the process dies" : "power fails", cut + 6);
	fputs("</svg></div></div>\n", s->out);
	if (s->number == 1)
		fputs(legend, s->out);
}
