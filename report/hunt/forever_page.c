/* SPDX-License-Identifier: BSD-3-Clause */
/* See forever_page.h. */
#include "report/hunt/forever_page.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "checker/judge/names.h"
#include "report/hunt/fuzz_report.h"
#include "report/output.h"
#include "report/page/page.h"
#include "report/report.h"
#include "report/terminal.h"
#include "core/text/text.h"

#define REFRESH	 30  /* s */
#define SHORTEST 0.1 /* s, of which a speed is told */

/* A chart, in the SVG's own units: it is as wide as the page. */
#define WIDTH  760
#define HEIGHT 200
#define LEFT   64 /* for the numbers of the axis */
#define TOP    12
#define BOTTOM 24
#define STEPS  4 /* lines behind a chart, at most twice as many */

static const char style[] =
	"main{max-width:62rem;margin:auto}\n"
	".over{width:100%;height:auto;background:var(--box);border:1px solid var(--line)}\n"
	".over text{font:11px system-ui,sans-serif;fill:var(--dim)}\n"
	".over .grid{stroke:var(--line);stroke-width:1}\n"
	".over .curve{fill:none;stroke:var(--read);stroke-width:2;stroke-linejoin:round}\n"
	"article p+p{margin-top:.6rem}\n"
	".matrix td.figure{color:var(--fg)}\n";

/* --- words --- */

static double number(const json_t *sample, const char *name)
{
	return json_number_value(json_object_get(sample, name));
}

static const json_t *last_sample(const struct forever_page *p)
{
	return json_array_get(p->samples, json_array_size(p->samples) - 1);
}

static void put_when(FILE *out, double at)
{
	char text[40] = "?";
	time_t seconds = (time_t)at;
	struct tm tm;
	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	fputs(text, out);
}

static void put_how_long(FILE *out, double seconds)
{
	static const struct {
		uint64_t seconds;
		const char *name, *part;
		uint64_t part_seconds;
	} units[] = {{86400, "d", "h", 3600}, {3600, "h", "min", 60}, {60, "min", "s", 1}};
	uint64_t n = (uint64_t)seconds;
	for (unsigned i = 0; i < 3; i++) {
		if (n < units[i].seconds)
			continue;
		fprintf(out, "%" PRIu64 " %s %" PRIu64 " %s", n / units[i].seconds, units[i].name,
			n % units[i].seconds / units[i].part_seconds, units[i].part);
		return;
	}
	fprintf(out, "%" PRIu64 " s", n);
}

/* With a blank between thousands. */
static void put_number(FILE *out, double value)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%.0f", value);
	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			fputs("&#8239;", out);
		fputc(text[i], out);
	}
}

static bool counts(const struct fuzz_known *k)
{
	return k->trace && !k->accepted;
}

static unsigned count_failures(const struct forever_page *p, const char *store)
{
	unsigned n = 0;
	for (unsigned i = 0; i < p->session->knowns; i++) {
		const struct fuzz_known *k = &p->session->known[i];
		n += counts(k) && (!store || !strcmp(store, k->fingerprint.store));
	}
	return n;
}

/* --- charts --- */

struct chart {
	const char *name, *title;
	/* The value at sample i; negative: there is none. */
	double (*value)(const struct forever_page *p, size_t i);
};

static double features_at(const struct forever_page *p, size_t i)
{
	return number(json_array_get(p->samples, i), "features");
}

/* States in a second, since the sample before. */
static double speed_at(const struct forever_page *p, size_t i)
{
	if (!i)
		return -1;
	const json_t *now = json_array_get(p->samples, i),
		     *before = json_array_get(p->samples, i - 1);
	double seconds = number(now, "seconds") - number(before, "seconds");
	return seconds < SHORTEST ? -1
				  : (number(now, "states") - number(before, "states")) / seconds;
}

/* Between lines: one, two or five times a power of ten. */
static double step_of(double most)
{
	double step = pow(10, floor(log10(most / STEPS)));
	while (most / step > 2 * STEPS)
		step *= step * STEPS * 4 > most ? 2 : 5;
	return step;
}

static void print_axes(FILE *out, double most, double seconds)
{
	double step = step_of(most);
	for (double at = 0; at <= most; at += step) {
		double y = TOP + HEIGHT * (1 - at / most);
		fprintf(out,
			"<path class=grid d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
			"text-anchor=end>",
			LEFT, y, LEFT + WIDTH, LEFT - 6, y + 4);
		put_number(out, at);
		fputs("</text>\n", out);
	}
	fprintf(out, "<text x=\"%d\" y=\"%d\">0</text><text x=\"%d\" y=\"%d\" text-anchor=end>",
		LEFT, TOP + HEIGHT + 16, LEFT + WIDTH, TOP + HEIGHT + 16);
	put_how_long(out, seconds);
	fputs("</text>\n", out);
}

/* A point for each unit of width at most: the last of those that are there. */
static void print_curve(FILE *out, const struct forever_page *p, const struct chart *c, double most,
			double seconds)
{
	size_t n = json_array_size(p->samples);
	double drawn = -1;
	fputs("<polyline class=curve points=\"", out);
	for (size_t i = 0; i < n; i++) {
		double value = c->value(p, i);
		double x = WIDTH * number(json_array_get(p->samples, i), "seconds") / seconds;
		if (value < 0 || (x - drawn < 1 && i + 1 < n && drawn >= 0))
			continue;
		fprintf(out, "%.1f,%.1f ", LEFT + x, TOP + HEIGHT * (1 - value / most));
		drawn = x;
	}
	fputs("\"/>\n", out);
}

static void print_chart(FILE *out, const struct forever_page *p, const struct chart *c)
{
	double most = 0, seconds = number(last_sample(p), "seconds");
	for (size_t i = 0; i < json_array_size(p->samples); i++)
		most = fmax(most, c->value(p, i));
	fprintf(out, "<section id=%s>\n<h2>%s</h2>\n", c->name, c->title);
	if (most < 1 || seconds < SHORTEST) {
		fputs("<p class=dim>There is nothing to draw yet.</p>\n</section>\n", out);
		return;
	}
	fprintf(out, "<svg class=over viewBox=\"0 0 %d %d\" role=img aria-label=\"%s\">\n",
		LEFT + WIDTH + 12, TOP + HEIGHT + BOTTOM, c->title);
	print_axes(out, most * 1.05, seconds);
	print_curve(out, p, c, most * 1.05, seconds);
	fputs("</svg>\n</section>\n", out);
}

/* --- sums --- */

static void print_figure(FILE *out, double n, const char *what)
{
	fputs("<li><b>", out);
	put_number(out, n);
	fprintf(out, "</b> %s</li>\n", what);
}

static void print_figures(FILE *out, const struct forever_page *p)
{
	const json_t *last = last_sample(p);
	double seconds = number(last, "seconds");
	fputs("<ul class=figures>\n<li>begun <b>", out);
	put_when(out, json_number_value(p->began));
	fputs("</b></li>\n<li><b>", out);
	put_how_long(out, seconds);
	fprintf(out, "</b> in <b>%.0f</b> session%s</li>\n", number(last, "session"),
		number(last, "session") == 1 ? "" : "s");
	print_figure(out, number(last, "runs"), "runs");
	print_figure(out, number(last, "states"), "crash states");
	if (seconds >= SHORTEST)
		print_figure(out, number(last, "states") / seconds, "states/s");
	print_figure(out, number(last, "inputs"), "inputs in the corpus");
	print_figure(out, number(last, "features"), "features");
	fprintf(out, "<li>tidemark %s</li>\n</ul>\n", tidemark_version);
}

static void print_stores(FILE *out, const struct forever_page *p)
{
	const json_t *all = json_object_get(last_sample(p), "stores");
	fputs("<section id=stores>\n<h2>What is tested</h2>\n<div class=wide><table "
	      "class=matrix>\n<thead><tr><th>store, hardware<th class=figure>runs<th class=figure>"
	      "states<th class=figure>inputs<th class=figure>features<th class=figure>failures"
	      "</tr></thead>\n<tbody>\n",
	      out);
	for (unsigned i = 0; i < p->turns; i++) {
		const struct campaign_config *cfg = p->turn[i].config;
		const json_t *store = json_object_get(all, cfg->store->name);
		static const char *const sums[] = {"runs", "states", "inputs", "features"};
		char name[REPORT_NAME];
		config_name(cfg, name, sizeof(name));
		page_element(out, "<tr><th scope=row>", name, "");
		for (unsigned s = 0; s < 4; s++) {
			fputs("<td class=figure>", out);
			put_number(out, number(store, sums[s]));
		}
		fprintf(out, "<td class=figure>%u</tr>\n", count_failures(p, cfg->store->name));
	}
	fputs("</tbody></table></div>\n</section>\n", out);
}

/* --- what breaks --- */

static void print_command(FILE *out, const char *trace)
{
	const char *name = strrchr(trace, '/');
	char *text = NULL;
	size_t len = 0;
	FILE *words = open_memstream(&text, &len);
	if (!words)
		return;
	fputs("tidemark replay failures/", words);
	write_word(words, name ? name + 1 : trace);
	if (!fclose(words))
		page_element(out, "<br><code>", text, "</code>");
	free(text);
}

static void print_failure(FILE *out, const struct fuzz_known *k)
{
	char parts[FUZZ_PARTS];
	fuzz_report_parts(&k->fingerprint, parts, sizeof(parts));
	page_element(out, "<p>", k->text, "");
	page_element(out, parts[0] ? "<br><span class=dim>" : "", parts, parts[0] ? "</span>" : "");
	print_command(out, k->trace);
	fprintf(out, " <span class=dim>(%u operation%s, %u deviation%s)</span></p>\n",
		k->operations, plural(k->operations), k->deviations, plural(k->deviations));
}

static void print_broken(FILE *out, const struct forever_page *p, const struct fuzz_turn *t,
			 unsigned contract)
{
	char name[REPORT_NAME];
	bool any = false;
	for (unsigned i = 0; i < p->session->knowns; i++) {
		const struct fuzz_known *k = &p->session->known[i];
		if (!counts(k) || k->fingerprint.contract != contract ||
		    strcmp(k->fingerprint.store, t->config->store->name) != 0)
			continue;
		if (!any) {
			config_name(t->config, name, sizeof(name));
			page_element(out, "<article class=attention>\n<h3>", name, "");
			fprintf(out, " %s</h3>\n", contract_name(contract));
			any = true;
		}
		print_failure(out, k);
	}
	if (any)
		fputs("</article>\n", out);
}

static void print_failures(FILE *out, const struct forever_page *p)
{
	if (!count_failures(p, NULL))
		return;
	fputs("<section id=failures>\n<h2>What breaks unexpectedly, by cause</h2>\n<p class=dim>A "
	      "shrunk trace of each cause. The commands are for the folder that this page is "
	      "in.</p>\n",
	      out);
	for (unsigned i = 0; i < p->turns; i++)
		for (unsigned c = 0; c < TM_CONTRACTS; c++)
			print_broken(out, p, &p->turn[i], c);
	fputs("</section>\n", out);
}

/* --- all together --- */

static void print_head(FILE *out, const struct forever_page *p)
{
	unsigned failures = count_failures(p, NULL);
	fputs(EVENT_PAGE_HEAD
	      "\n<meta name=viewport content=\"width=device-width,initial-scale=1\">\n",
	      out);
	if (p->running)
		fprintf(out, "<meta http-equiv=refresh content=%d>\n", REFRESH);
	fputs("<title>Fuzzing</title>\n<style>\n", out);
	fputs(page_css, out);
	fputs(campaign_css, out);
	fputs(style, out);
	fputs("</style></head>\n<body>\n<main>\n<h1>Fuzzing</h1>\n", out);
	if (failures)
		fprintf(out, "<p class=\"verdict bad\">%u cause%s of unexpected failures</p>\n",
			failures, plural(failures));
	else
		fputs("<p class=\"verdict good\">Nothing has broken unexpectedly.</p>\n", out);
	fputs(p->running ? "<p class=dim>running; as of " : "<p class=dim>stopped ", out);
	put_when(out, number(last_sample(p), "at"));
	fputs("</p>\n", out);
}

int forever_page(FILE *out, const void *page)
{
	static const struct chart coverage = {"coverage", "Features over time", features_at},
				  speed = {"speed", "States/s over time", speed_at};
	const struct forever_page *p = page;
	print_head(out, p);
	print_figures(out, p);
	print_failures(out, p);
	print_chart(out, p, &coverage);
	print_chart(out, p, &speed);
	print_stores(out, p);
	fputs("</main>\n</body></html>\n", out);
	return 0;
}
