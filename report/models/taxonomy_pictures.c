/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The taxonomy's pictures, as SVG: the matrix of each transport, coloured by verdict; the course of
 * each method between the parts of the two machines; and the way of the data with what survives
 * where. All are made of what was measured and of the methods' acts, in whole numbers, so they
 * are the same everywhere, byte for byte.
 *
 * Colours are told apart by those who see few of them (blue, orange, yellow, vermilion), every
 * cell says in letters what its colour says, and the rest follows the reader's light or dark
 * screen.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/output.h"
#include "report/models/taxonomy_report.h"
#include "core/text/text.h"

struct picture {
	FILE *out;
	const struct taxonomy_report *r;
	unsigned which; /* transport, or method */
};

static void begin(FILE *out, int width, int height, const char *title)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 "
		"0 %d %d\" "
		"font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"12\" "
		"role=\"img\">\n<title>%s"
		"</title>\n",
		width, height, width, height, title);
	fputs("<style>\n"
	      ".page{fill:#ffffff}.ink{fill:#1b1f24}.dim{fill:#59636e}.rule{stroke:#8a939d;fill:"
	      "none}\n"
	      ".host{fill:#f3f5f7;stroke:#c5ccd3}.part{fill:#ffffff;stroke:#59636e}\n"
	      ".safe{fill:#56b4e9;fill-opacity:.25}.way{stroke:#1b1f24;fill:none}.tip{fill:#1b1f24}"
	      "\n"
	      ".late{stroke:#6b7580;fill:none;stroke-dasharray:5 4}.latetip{fill:#6b7580}\n"
	      ".busy{fill:#e69f00}.mark{fill:none;stroke:#111111;stroke-width:3}.halo{stroke:#"
	      "ffffff}\n"
	      "@media (prefers-color-scheme:dark){\n"
	      ".page{fill:#15191e}.ink{fill:#e6e9ec}.dim{fill:#a3adb8}.rule{stroke:#6b7580}\n"
	      ".host{fill:#1f252c;stroke:#3c4650}.part{fill:#15191e;stroke:#a3adb8}\n"
	      ".way{stroke:#e6e9ec}.tip{fill:#e6e9ec}.late{stroke:#8e99a4}.latetip{fill:#8e99a4}\n"
	      ".halo{stroke:#15191e}}\n"
	      ".halo{stroke-width:4;paint-order:stroke;stroke-linejoin:round}\n"
	      ".cell{fill:#111111;font-weight:bold}.ok{fill:#7cc4ee}.l{fill:#e69f00}.o{fill:#"
	      "f0e442}"
	      ".lo{fill:#d55e00}\n"
	      "</style>\n",
	      out);
	fprintf(out, "<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n", width, height);
}

static void end(FILE *out)
{
	fputs("</svg>\n", out);
}

static void rectangle(FILE *out, const char *class, int x, int y, int w, int h, int round)
{
	fprintf(out,
		"<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/>\n",
		class, x, y, w, h, round);
}

static void line(FILE *out, const char *class, int x1, int y1, int x2, int y2)
{
	fprintf(out, "<path class=\"%s\" d=\"M%d %dL%d %d\"/>\n", class, x1, y1, x2, y2);
}

/* anchor: "start", "middle" or "end". */
static void text(FILE *out, const char *class, int x, int y, const char *anchor, const char *fmt,
		 ...) __attribute__((format(printf, 6, 7)));

static void text(FILE *out, const char *class, int x, int y, const char *anchor, const char *fmt,
		 ...)
{
	char words[300];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	fprintf(out, "<text class=\"%s\" x=\"%d\" y=\"%d\" text-anchor=\"%s\">", class, x, y,
		anchor);
	for (const char *p = words; *p; p++)
		put_escaped(out, (unsigned char)*p);
	fputs("</text>\n", out);
}

static int finish(FILE *out)
{
	return ferror(out) ? -EIO : 0;
}

/* --- the matrix --- */

#define CELL_W	   46
#define CELL_H	   25
#define MATRIX_X   510 /* of the first column */
#define GROUP_GAP  12  /* between domains */
#define HEADING_H  86
#define KIND_GAP   26
#define MATRIX_END (MATRIX_X + TAXONOMY_COLUMNS * CELL_W + 2 * GROUP_GAP)

static int column_x(unsigned column)
{
	return MATRIX_X + (int)column * CELL_W + (int)(column / 4) * GROUP_GAP;
}

static void matrix_heading(FILE *out, int y, const char *title)
{
	static const char *const domain[] = {"DMP: memory survives", "MHP: caches too",
					     "WSP: NIC too"};
	text(out, "ink", 20, y + 20, "start", "%s", title);
	text(out, "dim", MATRIX_X - 12, y + 20, "end", "domain");
	text(out, "dim", MATRIX_X - 12, y + 44, "end", "DDIO");
	text(out, "dim", MATRIX_X - 12, y + 68, "end", "receive buffers");
	for (unsigned d = 0; d < 3; d++)
		text(out, "ink", column_x(4 * d) + 2 * CELL_W, y + 20, "middle", "%s", domain[d]);
	for (unsigned c = 0; c < TAXONOMY_COLUMNS; c += 2) {
		text(out, "ink", column_x(c) + CELL_W, y + 44, "middle", c % 4 ? "off" : "on");
		line(out, "rule", column_x(c) + 4, y + 50, column_x(c) + 2 * CELL_W - 4, y + 50);
	}
	for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++)
		text(out, "ink", column_x(c) + CELL_W / 2, y + 68, "middle", c % 2 ? "PM" : "DRAM");
}

static const char *verdict_class(unsigned verdict)
{
	static const char *const class[] = {"ok", "l", "o", "lo"};
	return class[verdict & 3];
}

/* Is it the cheapest that is sound, of its primitive? */
static bool is_chosen(const struct taxonomy *t, const struct taxonomy_cell *cell)
{
	const struct append_method *rl = taxonomy_append(t, cell);
	return taxonomy_cheapest(t, rl->compound, method_primitive(rl), cell->column,
				 cell->transport, NULL) == cell;
}

static void matrix_row(const struct picture *p, unsigned method, int y)
{
	const struct taxonomy *t = p->r->t;
	char words[200];
	struct acts acts;
	taxonomy_acts(t, taxonomy_at(t, method, 0, p->which), &acts);
	method_print(&acts, words, sizeof(words));
	text(p->out, "ink", 20, y + 17, "start", "%s", taxonomy_method(method));
	fputs("<g font-size=\"11\">", p->out);
	text(p->out, "dim", 64, y + 17, "start", "%s", words);
	fputs("</g>\n", p->out);
	for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++) {
		const struct taxonomy_cell *cell = taxonomy_at(t, method, c, p->which);
		unsigned verdict = cell->result.verdict;
		rectangle(p->out, verdict_class(verdict), column_x(c) + 1, y + 1, CELL_W - 2,
			  CELL_H - 2, 3);
		text(p->out, "cell", column_x(c) + CELL_W / 2, y + 17, "middle", "%s",
		     taxonomy_word(verdict));
		if (is_chosen(t, cell))
			rectangle(p->out, "mark", column_x(c) + 2, y + 2, CELL_W - 4, CELL_H - 4,
				  3);
	}
}

static void matrix_legend(FILE *out, int y)
{
	static const struct {
		const char *class, *word, *what;
		int x;
	} entries[] = {
		{"ok", "ok", "sound", 20},
		{"l", "L", "reported durable, can be lost", 140},
		{"o", "O", "b can be durable without a", 410},
		{"lo", "LO", "both", 660},
		{"mark", "", "the cheapest that is sound, of its primitive", 770},
	};
	for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if (!*entries[i].word)
			rectangle(out, "ok", entries[i].x, y, 36, 21, 3);
		rectangle(out, entries[i].class, entries[i].x, y, 36, 21, 3);
		text(out, "cell", entries[i].x + 18, y + 15, "middle", "%s", entries[i].word);
		text(out, "ink", entries[i].x + 46, y + 15, "start", "%s", entries[i].what);
	}
}

static int draw_matrix(FILE *out, const void *arg)
{
	struct picture p = *(const struct picture *)arg;
	const struct taxonomy *t = p.r->t;
	const char *title = p.which == TRANSPORT_IB ? "InfiniBand and RoCE" : "iWARP";
	int height = 44 + 2 * HEADING_H + (int)taxonomy_methods() * CELL_H + KIND_GAP + 60, y = 44;
	p.out = out;
	begin(out, MATRIX_END + 20, height, title);
	fputs("<g font-size=\"16\" font-weight=\"bold\">", out);
	text(out, "ink", 20, 30, "start", "Which method is sound where: %s", title);
	fputs("</g>\n", out);
	for (unsigned kind = 0; kind < 2; kind++) {
		matrix_heading(out, y, kind ? "Two updates, a strictly before b" : "One update");
		y += HEADING_H;
		for (unsigned m = 0; m < taxonomy_methods(); m++) {
			if (taxonomy_append(t, taxonomy_at(t, m, 0, p.which))->compound != kind)
				continue;
			matrix_row(&p, m, y);
			y += CELL_H;
		}
		y += kind ? 0 : KIND_GAP;
	}
	matrix_legend(out, y + 22);
	end(out);
	return finish(out);
}

/* --- the course of a method --- */

#define ROW_H	 34
#define LATER_H	 22  /* between what the requester waits for and the rest */
#define COURSE_Y 158 /* of the first act */
#define PART_W	 124
#define PART_TOP 82

/* Where the lifelines stand. The wire is between the two NICs. */
static int part_x(enum part part, bool ddio)
{
	static const int x[PARTS] = {
		[PART_REQUESTER] = 90, [PART_ITS_NIC] = 222, [PART_NIC] = 456, [PART_CPU] = 590,
		[PART_CACHE] = 724,    [PART_IIO] = 858,     [PART_PM] = 992};
	return part == PART_PM && ddio ? x[PART_IIO] : x[part];
}

static bool part_drawn(enum part part, bool ddio)
{
	return part != PART_IIO || !ddio;
}

static void draw_parts(FILE *out, const struct hardware *hw, int bottom)
{
	bool ddio = hw->ddio == DDIO_ON;
	int right = part_x(PART_PM, ddio) + PART_W / 2 + 14;
	rectangle(out, "host", 14, PART_TOP - 26, 284, bottom - PART_TOP + 34, 8);
	rectangle(out, "host", 380, PART_TOP - 26, right - 380, bottom - PART_TOP + 34, 8);
	text(out, "dim", 28, PART_TOP - 10, "start", "requester's machine");
	text(out, "dim", 394, PART_TOP - 10, "start",
	     "responder's machine; what is blue survives a power failure");
	for (unsigned p = 0; p < PARTS; p++) {
		int x = part_x((enum part)p, ddio);
		if (!part_drawn((enum part)p, ddio))
			continue;
		if (part_survives((enum part)p, hw))
			rectangle(out, "safe", x - PART_W / 2, PART_TOP, PART_W, bottom - PART_TOP,
				  6);
		line(out, "rule", x, PART_TOP + 30, x, bottom);
		rectangle(out, "part", x - PART_W / 2, PART_TOP, PART_W, 30, 5);
		text(out, "ink", x, PART_TOP + 20, "middle", "%s", part_name[p]);
	}
}

static void arrow(FILE *out, int from, int to, int y, bool late)
{
	int back = to > from ? -9 : 9;
	line(out, late ? "late" : "way", from, y, to, y);
	fprintf(out, "<path class=\"%s\" d=\"M%d %dL%d %dL%d %dZ\"/>\n", late ? "latetip" : "tip",
		to, y, to + back, y - 5, to + back, y + 5);
}

/* What crosses the wire is named on it, all else where it begins or ends. */
static void draw_act(FILE *out, const struct act *act, bool ddio, int y)
{
	int from = part_x((enum part)act->from, ddio), to = part_x((enum part)act->to, ddio);
	bool wire = (act->from <= PART_ITS_NIC) != (act->to <= PART_ITS_NIC);
	bool late = act->later || act->kind == ACT_COMPLETE || act->kind == ACT_RESULT;
	int left = from < to ? from : to;
	arrow(out, from, to, y, late);
	if (wire)
		text(out, "ink halo", (part_x(PART_ITS_NIC, ddio) + part_x(PART_NIC, ddio)) / 2,
		     y - 5, "middle", "%s", act->text);
	else
		text(out, "ink halo", left + 10, y - 5, "start", "%s%s", act->text,
		     act->kind == ACT_FLUSH ? ", fence" : "");
}

static int act_y(const struct acts *acts, unsigned i)
{
	return COURSE_Y + (int)i * ROW_H + (i > acts->done ? LATER_H : 0);
}

/* The requester stands still from its last post on. */
static void draw_waits(FILE *out, const struct acts *acts)
{
	int x = part_x(PART_REQUESTER, true), posted = 0;
	for (unsigned i = 0; i < acts->n; i++) {
		const struct act *act = &acts->act[i];
		if (act->kind == ACT_POST && act->from == PART_REQUESTER)
			posted = act_y(acts, i);
		if (act->to == PART_REQUESTER)
			rectangle(out, "busy", x - 5, posted, 10, act_y(acts, i) - posted, 0);
	}
}

/* Where the papers' table gives the method; of one that it never gives, where it is sound first. */
static unsigned column_of(const struct taxonomy_report *r, unsigned method)
{
	const struct taxonomy_knobs none = {NULL, 0};
	const struct append_method *rl = taxonomy_append(
		r->t, taxonomy_at(r->t, method, 0, TRANSPORT_IB));
	unsigned first = 0;
	for (unsigned c = TAXONOMY_COLUMNS; c-- > 0;)
		if (!taxonomy_at(r->t, method, c, TRANSPORT_IB)->result.verdict)
			first = c;
	for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++) {
		const char *gives = taxonomy_gives(r->table, rl->compound, method_primitive(rl), c,
						   TRANSPORT_IB, &none);
		if (gives && !strcmp(gives, rl->name))
			return c;
	}
	return first;
}

static void course_title(FILE *out, const char *method, const struct hardware *hw,
			 const struct acts *acts)
{
	static const char *const domain[] = {"DMP", "MHP", "WSP"};
	struct method_cost cost = method_cost(acts);
	char words[200];
	method_print(acts, words, sizeof(words));
	fputs("<g font-size=\"15\" font-weight=\"bold\">", out);
	text(out, "ink", 14, 24, "start", "%s: %s", method, words);
	fputs("</g>\n", out);
	text(out, "dim", 14, 44, "start",
	     "%s, DDIO %s, receive buffers in %s, InfiniBand. %u round trip%s; CPU: %u acts while "
	     "the "
	     "requester "
	     "waits, %u later; %u message%s",
	     domain[hw->domain - DOMAIN_DMP], hw->ddio == DDIO_ON ? "on" : "off",
	     hw->rqwrb_pm ? "PM" : "DRAM", cost.round_trips, plural(cost.round_trips),
	     cost.cpu_waited, cost.cpu_later, cost.messages, plural(cost.messages));
}

static int draw_course(FILE *out, const void *arg)
{
	const struct picture *p = arg;
	const struct taxonomy_cell *cell = taxonomy_at(p->r->t, p->which, column_of(p->r, p->which),
						       TRANSPORT_IB);
	const char *method = taxonomy_method(p->which);
	struct hardware hw = hardware_default;
	struct acts acts;
	taxonomy_acts(p->r->t, cell, &acts);
	taxonomy_hardware(&hw, cell->column, cell->transport);
	bool ddio = hw.ddio == DDIO_ON;
	int bottom = act_y(&acts, acts.n), right = part_x(PART_PM, ddio) + PART_W / 2 + 28;
	begin(out, right, bottom + 30, method);
	course_title(out, method, &hw, &acts);
	draw_parts(out, &hw, bottom);
	draw_waits(out, &acts);
	for (unsigned i = 0; i < acts.n; i++)
		draw_act(out, &acts.act[i], ddio, act_y(&acts, i));
	int y = act_y(&acts, acts.done);
	text(out, "ink halo", part_x(PART_REQUESTER, true), y + 18, "middle", "reports: durable");
	if (acts.done + 1 < acts.n)
		line(out, "late", 14, y + 30, right - 14, y + 30);
	end(out);
	return finish(out);
}

/* --- the way of the data --- */

#define FAILURE_MODE_Y 96
#define BOX_W	       150
#define BOX_H	       56

static void way_box(FILE *out, int x, int y, const char *name, const char *what)
{
	rectangle(out, "part", x, y, BOX_W, BOX_H, 6);
	text(out, "ink", x + BOX_W / 2, y + 24, "middle", "%s", name);
	text(out, "dim", x + BOX_W / 2, y + 43, "middle", "%s", what);
}

static void way_domain(FILE *out, int x, int y, int right, const char *what)
{
	rectangle(out, "safe", x, y, right - x, 30, 6);
	text(out, "ink", x + 12, y + 20, "start", "%s", what);
}

static int draw_way(FILE *out, const void *arg)
{
	static const int x[] = {30, 270, 520, 770}; /* of the stages */
	const int right = x[3] + BOX_W, low = FAILURE_MODE_Y + 90,
		  arrows = FAILURE_MODE_Y + BOX_H / 2 + 45;
	(void)arg;
	begin(out, right + 30, 430, "The way of the data");
	fputs("<g font-size=\"16\" font-weight=\"bold\">", out);
	text(out, "ink", 20, 30, "start", "The way of the data, and what survives");
	fputs("</g>\n", out);
	for (unsigned i = 0; i < 4; i++)
		text(out, "dim", x[i] + BOX_W / 2, 70, "middle", "stage %u", i);
	way_box(out, x[0], FAILURE_MODE_Y + 45, "requester", "its NIC, the wire");
	way_box(out, x[1], FAILURE_MODE_Y + 45, "responder's NIC", "its buffers");
	way_box(out, x[2], FAILURE_MODE_Y, "L3 cache", "DDIO on: visible");
	way_box(out, x[2], low, "I/O buffers", "DDIO off: visible");
	way_box(out, x[3], FAILURE_MODE_Y + 45, "persistent memory", "and its queue");
	arrow(out, x[0] + BOX_W, x[1], arrows, false);
	arrow(out, x[1] + BOX_W, x[2], FAILURE_MODE_Y + 50, false);
	arrow(out, x[1] + BOX_W, x[2], low + 8, false);
	arrow(out, x[2] + BOX_W, x[3], FAILURE_MODE_Y + 50, true);
	arrow(out, x[2] + BOX_W, x[3], low + 8, true);
	text(out, "ink halo", (x[1] + BOX_W + x[2]) / 2, arrows + 4, "middle", "in order");
	text(out, "ink halo", (x[2] + BOX_W + x[3]) / 2, FAILURE_MODE_Y + 36, "middle",
	     "write-back");
	text(out, "ink halo", (x[2] + BOX_W + x[3]) / 2, arrows + 4, "middle", "any order");
	text(out, "ink halo", (x[2] + BOX_W + x[3]) / 2, low + 30, "middle", "drain, FLUSH");
	text(out, "ink", 30, 275, "start", "survives a power failure");
	way_domain(out, x[3] - 10, 255, right + 10, "DMP");
	way_domain(out, x[2] - 10, 293, right + 10,
		   "MHP; iio_in_mhp=off leaves the I/O buffers out");
	way_domain(out, x[1] - 10, 331, right + 10,
		   "WSP; where receive buffers are in DRAM, not what a SEND has brought");
	text(out, "ink", 30, 390, "start",
	     "A completion says that the data have come to stage 1 (iWARP: 0), or further. That of "
	     "a FLUSH "
	     "says "
	     "stage 2; with DDIO off, stage 3.");
	text(out, "ink", 30, 410, "start",
	     "A receive completion says stage 2. What the CPU has flushed and fenced is at stage "
	     "3. Nothing "
	     "else is known.");
	end(out);
	return finish(out);
}

/* --- files --- */

static int draw(const char *dir, const char *name, int (*write)(FILE *out, const void *arg),
		const struct picture *p)
{
	char *path;
	if (asprintf(&path, "%s/%s.svg", dir, name) < 0)
		return -ENOMEM;
	int error = save_file(path, write, p);
	free(path);
	return error;
}

int taxonomy_pictures(const struct taxonomy_report *r, const char *dir)
{
	struct picture p = {.r = r};
	char name[40];
	int error = draw(dir, "way", draw_way, &p);
	for (p.which = 0; p.which < TAXONOMY_TRANSPORTS && !error; p.which++)
		error = draw(dir, p.which == TRANSPORT_IB ? "matrix-ib" : "matrix-iwarp",
			     draw_matrix, &p);
	for (p.which = 0; p.which < taxonomy_methods() && !error; p.which++) {
		snprintf(name, sizeof(name), "method-%s", taxonomy_method(p.which));
		error = draw(dir, name, draw_course, &p);
	}
	return error;
}
