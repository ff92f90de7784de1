/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first page of a campaign: what needs attention, a matrix of stores and hardware against
 * contracts whose broken cells lead to the pages of their traces, what each contract says, and of
 * each broken cell how it breaks, why that was expected, and the command that replays it. Nothing
 * in it depends on the time or the number of jobs.
 */
#include "report/page/campaign.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/output.h"
#include "report/page/page.h"
#include "report/terminal.h"
#include "scenarios/stores.h"
#include "core/text/text.h"

/* --- words --- */

static const struct meaning {
	char mark;
	const char *class, *sign, *text;
} meanings[] = {
	{'.', "holds", "&#10003;", "holds: no failure was found"},
	{'x', "breaks", "&#215;", "broken as the design says: the store does not promise it"},
	{'X', "breaks flaw", "&#10006;", "broken and promised: a known flaw"},
	{'a', "breaks", "&#8776;", "broken, and accepted by the baseline"},
	{'-', "unsure", "-", "nothing broken until now: not finished"},
	{'?', "unsure", "?", "could not tell"},
	{'!', "attention", "!", "surprise: needs attention"},
};
#define MEANINGS (sizeof(meanings) / sizeof(meanings[0]))

static const struct meaning *meaning_of(char mark)
{
	for (size_t i = 0; i < MEANINGS; i++)
		if (meanings[i].mark == mark)
			return &meanings[i];
	return NULL;
}

/* A file's name in a link. */
static void put_link(FILE *out, const char *file)
{
	for (; *file; file++) {
		unsigned char c = (unsigned char)*file;
		fprintf(out, isalnum(c) || strchr("-._~=", c) ? "%c" : "%%%02X", c);
	}
}

static void put_page_link(FILE *out, const struct report_case *one, const char *more)
{
	char file[PAGE_FILE];
	campaign_page_file(one->trace, file);
	fprintf(out, "<a%s href=\"", more);
	put_link(out, file);
	fputs("\"", out);
}

static void put_command(FILE *out, const char *trace)
{
	char *text = NULL;
	size_t len = 0;
	FILE *words = open_memstream(&text, &len);
	if (!words)
		return;
	fputs("tidemark replay ", words);
	write_word(words, trace);
	if (!fclose(words))
		page_element(out, "<code>", text, "</code>");
	free(text);
}

/* --- the matrix --- */

static bool has_page(const struct report *r, unsigned config, unsigned k)
{
	const struct report_cell *cell = &r->cell[config][k];
	return cell->cases && cell->one[0].trace;
}

static void print_mark(FILE *out, const struct report *r, unsigned config, unsigned k)
{
	const struct campaign_cell *cell = &r->campaign->cell[config][k];
	const struct meaning *is = meaning_of(report_mark(r, config, k));
	char name[REPORT_NAME], in[80];
	if (!is) {
		fputs("<td>", out);
		return;
	}
	config_name(&r->campaign->config[config], name, sizeof(name));
	fprintf(out, "<td class=\"%s\">", is->class);
	bool linked = has_page(r, config, k);
	if (linked)
		put_page_link(out, &r->cell[config][k].one[0], "");
	else
		fputs("<span", out);
	page_element(out, " title=\"", name, "");
	fprintf(out, ", %s: %s", contract_name(k), is->text);
	report_broken_in(r, config, k, in, sizeof(in));
	if (cell->broken)
		fprintf(out, ", in %s", in);
	fprintf(out, "\">%s</%s>", is->sign, linked ? "a" : "span");
}

static void print_row(FILE *out, const struct report *r, unsigned config, unsigned judged)
{
	char name[REPORT_NAME];
	config_name(&r->campaign->config[config], name, sizeof(name));
	page_element(out, "<tr><th scope=row>", name, "");
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (judged & TM_BIT(k))
			print_mark(out, r, config, k);
	fprintf(out, "<td class=figure>%" PRIu64 "<td class=figure>%" PRIu64 "</tr>\n",
		r->campaign->total[config].runs, r->campaign->total[config].states);
}

/* The configurations of which something is told alone; or the others. */
static unsigned print_rows(FILE *out, const struct report *r, bool in_short)
{
	const struct campaign *c = r->campaign;
	const unsigned judged = report_judged(c);
	unsigned rows = 0;
	for (unsigned i = 0; i < c->configs; i++) {
		if (report_in_short(r, i) != in_short)
			continue;
		if (!rows++) {
			fputs("<div class=wide><table class=matrix>\n<thead><tr><th>store, "
			      "hardware",
			      out);
			for (unsigned k = 0; k < TM_CONTRACTS; k++)
				if (judged & TM_BIT(k))
					page_element(out, "<th scope=col><abbr title=\"",
						     contract_what(k), "\">"),
						fprintf(out, "%s</abbr>", contract_name(k));
			fputs("<th class=figure>runs<th "
			      "class=figure>states</tr></thead>\n<tbody>\n",
			      out);
		}
		print_row(out, r, i, judged);
	}
	if (rows)
		fputs("</tbody></table></div>\n", out);
	return rows;
}

static void print_matrix(FILE *out, const struct report *r)
{
	unsigned shapes = 0;
	fputs("<section id=matrix>\n<h2>Which contract holds where</h2>\n", out);
	print_rows(out, r, false);
	fputs("<ul class=marks>\n", out);
	for (size_t i = 0; i < MEANINGS; i++)
		if (r->baseline || meanings[i].mark != 'a')
			fprintf(out, "<li><b class=\"%s\">%s</b> %s</li>\n", meanings[i].class,
				meanings[i].sign, meanings[i].text);
	fputs("</ul>\n<p class=dim>A cell that breaks leads to the page of its smallest "
	      "trace.</p>\n",
	      out);
	for (unsigned i = 0; i < r->campaign->configs; i++)
		shapes += report_in_short(r, i);
	if (shapes) {
		fprintf(out,
			"<details>\n<summary>%u shape%s in which all is as expected (no traces are "
			"written of these)</summary>\n",
			shapes, plural(shapes));
		print_rows(out, r, true);
		fputs("</details>\n", out);
	}
	fputs("</section>\n", out);
}

static void print_contracts(FILE *out, const struct report *r)
{
	const unsigned judged = report_judged(r->campaign);
	fputs("<section id=contracts>\n<h2>What each contract says</h2>\n<dl class=contracts>\n",
	      out);
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		if (!(judged & TM_BIT(k)))
			continue;
		fprintf(out, "<dt>%s", contract_name(k));
		page_element(out, "<dd>", contract_what(k), "\n");
	}
	fputs("</dl>\n</section>\n", out);
}

/* --- cells --- */

static void print_case(FILE *out, const struct report *r, unsigned config,
		       const struct report_case *one)
{
	char takes[REPORT_TAKES];
	page_element(out, "<p>", one->text, "");
	if (one->takes) {
		report_takes(&r->campaign->config[config], one->takes, takes, sizeof(takes));
		page_element(out, "<br>it takes ", takes, "");
	}
	if (one->trace) {
		fputs("<br>", out);
		put_page_link(out, one, " class=page");
		fprintf(out, ">the page of the trace</a> (%u operation%s, %u deviation%s%s) ",
			one->operations, plural(one->operations), one->deviations,
			plural(one->deviations), one->whole ? "; could not be shrunk" : "");
		put_command(out, one->trace);
	}
	fputs("</p>\n", out);
}

static void print_cell(FILE *out, const struct report *r, unsigned config, unsigned k)
{
	const struct campaign *c = r->campaign;
	const struct report_cell *more = &r->cell[config][k];
	const struct campaign_cell *cell = &c->cell[config][k];
	char name[REPORT_NAME], sentence[REPORT_SENTENCE];
	struct holds_on holds;
	config_name(&c->config[config], name, sizeof(name));
	fprintf(out, "<article class=%s>\n", more->surprise ? "attention" : "breaks");
	page_element(out, "<h3>", name, "");
	fprintf(out, " %s", contract_name(k));
	if (more->surprise)
		page_element(out, ": <strong>", report_surprise(more), "</strong>");
	report_broken_in(r, config, k, sentence, sizeof(sentence));
	if (cell->broken)
		fprintf(out, ", in %s</h3>\n", sentence);
	else
		fprintf(out, ", it holds in %" PRIu64 " state%s</h3>\n", c->total[config].states,
			plural(c->total[config].states));
	if (report_holds_on(r, config, k, &holds))
		page_element(out, "<p>holds on: ", holds.rows, "</p>\n");
	for (unsigned i = 0; i < more->cases; i++)
		print_case(out, r, config, &more->one[i]);
	if (more->left)
		fprintf(out, "<p>%u more way%s of breaking it %s not looked at</p>\n", more->left,
			plural(more->left), more->left == 1 ? "was" : "were");
	if (report_cause(r, config, k, sentence))
		page_element(out, "<p>", sentence, "</p>\n");
	if (more->why)
		page_element(out,
			     more->surprise && !more->strange && !more->often
				     ? "<p class=dim>expected otherwise: "
				     : "<p class=dim>expected: ",
			     more->why, "</p>\n");
	fputs("</article>\n", out);
}

/* Those that are surprises; or those that break as expected. */
static void print_cells(FILE *out, const struct report *r, bool surprise, const char *head)
{
	const struct campaign *c = r->campaign;
	struct holds_on holds;
	bool any = false;
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++) {
		unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		const struct report_cell *cell = &r->cell[config][k];
		if (cell->surprise != surprise || (!surprise && !cell->cases))
			continue;
		/* On other hardware it is the same. */
		if (report_holds_on(r, config, k, &holds) && config != holds.home)
			continue;
		if (!any)
			fputs(head, out);
		any = true;
		print_cell(out, r, config, k);
	}
	if (any)
		fputs("</section>\n", out);
}

/* --- all together --- */

static void print_figure(FILE *out, uint64_t n, const char *what)
{
	fprintf(out, "<li><b>%" PRIu64 "</b> %s%s</li>\n", n, what, plural(n));
}

static void print_figures(FILE *out, const struct report *r)
{
	const struct campaign *c = r->campaign;
	uint64_t runs = 0, states = 0;
	char not_run[REPORT_SENTENCE];
	for (unsigned i = 0; i < c->configs; i++) {
		runs += c->total[i].runs;
		states += c->total[i].states;
	}
	fputs("<ul class=figures>\n", out);
	print_figure(out, c->configs, "configuration");
	print_figure(out, c->workloads, "workload");
	print_figure(out, runs, "run");
	print_figure(out, states, "crash state");
	print_figure(out, r->traces, "trace");
	if (c->options.exhaustive)
		fprintf(out, "<li>all runs with at most <b>%u</b> preemption%s</li>\n",
			c->options.preemptions, plural(c->options.preemptions));
	else
		fprintf(out,
			"<li>seed <b>%" PRIu64 "</b>, at most <b>%" PRIu64
			"</b> runs and <b>%" PRIu64 "</b> states of a workload</li>\n",
			c->options.seed, c->options.runs, c->options.states);
	fprintf(out, "<li>tidemark %s</li>\n</ul>\n", tidemark_version);
	for (unsigned i = 0; i < c->configs; i++)
		if ((!i || !same_group(&c->config[i - 1], &c->config[i])) &&
		    report_not_run(c, i, not_run))
			fprintf(out, "<p>%s.</p>\n", not_run);
}

int campaign_index(FILE *out, const void *report)
{
	const struct report *r = report;
	fputs(EVENT_PAGE_HEAD
	      "\n<meta name=viewport content=\"width=device-width,initial-scale=1\">\n"
	      "<title>Crash test</title>\n<style>\n",
	      out);
	fputs(page_css, out);
	fputs(campaign_css, out);
	fputs("</style></head>\n<body>\n<main>\n<h1>Crash test</h1>\n", out);
	conclusion_page(out, &r->conclusion);
	print_figures(out, r);
	print_cells(out, r, true, "<section id=attention>\n<h2>What needs attention</h2>\n");
	print_matrix(out, r);
	print_contracts(out, r);
	print_cells(out, r, false, "<section id=expected>\n<h2>What breaks as expected</h2>\n");
	fputs("</main>\n</body></html>\n", out);
	return 0;
}
