/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A campaign of many configurations, on about one screen: below the matrix (report/matrix.c) what
 * needs attention, each with its sentence and the command that shows it, and how to see more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "checker/hunt/plan.h"
#include "checker/judge/names.h"
#include "report/report.h"
#include "report/terminal.h"
#include "core/text/text.h"

/* --- what needs attention --- */

static bool is_told(const struct report *r, unsigned config, unsigned k)
{
	for (unsigned i = 0; i < config; i++)
		if (same_surprise(r, i, config, k))
			return true;
	return false;
}

static void print_line(const char *text)
{
	fputs("  ", stdout);
	print_wrapped(2, text);
}

/* Under which other configurations it is so. */
static void print_also(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign *c = r->campaign;
	char text[PLAN_CONFIGS * 64] = "";
	for (unsigned i = config + 1; i < c->configs; i++) {
		size_t len = strlen(text);
		if (same_surprise(r, config, i, k))
			snprintf(text + len, sizeof(text) - len, "%s %s", len ? "," : "also under",
				 c->config[i].name);
	}
	if (*text)
		print_line(text);
}

/* The first way of breaking it, and where the traces of others are. */
static void print_first_case(const struct report *r, unsigned config, unsigned k)
{
	const struct report_cell *cell = &r->cell[config][k];
	const struct report_case *one = &cell->one[0];
	char takes[REPORT_TAKES], text[REPORT_TAKES + 16];
	if (!cell->cases)
		return;
	print_line(one->text);
	if (one->takes) {
		report_takes(&r->campaign->config[config], one->takes, takes, sizeof(takes));
		snprintf(text, sizeof(text), "it takes %s", takes);
		print_line(text);
	}
	if (one->trace) {
		fputs("  ", stdout);
		report_case_replay(one);
	}
	if (cell->cases > 1)
		printf("  %u more way%s of breaking it: the same name with a number before "
		       ".trace\n",
		       cell->cases - 1, cell->cases == 2 ? "" : "s");
}

static void print_head(const struct report *r, unsigned config, unsigned k, const char *contracts)
{
	char name[REPORT_NAME];
	config_name(&r->campaign->config[config], name, sizeof(name));
	printf("\n%s%s %s%s: %s%s%s, ", paint(BOLD), name, contracts, paint(PLAIN), paint(RED),
	       report_surprise(&r->cell[config][k]), paint(PLAIN));
}

/* What holds on some hardware alone: a heading, a few lines of each contract, and how to say that
 * it is meant so. */
static void print_holds_on(const struct report *r, const struct holds_on *h, unsigned k)
{
	char contracts[REPORT_ROWS], condition[REPORT_ROWS], text[100];
	contract_list(h->contracts, ", ", contracts, sizeof(contracts));
	print_head(r, h->home, k, contracts);
	printf("holds on: %s\n", h->rows);
	for (unsigned other = k; other < TM_CONTRACTS; other++) {
		if (!(h->contracts & TM_BIT(other)))
			continue;
		report_broken_in(r, h->home, other, text, sizeof(text));
		printf("  %s, in %s\n", contract_name(other), text);
		print_first_case(r, h->home, other);
	}
	contract_list(h->contracts, ",", contracts, sizeof(contracts));
	holds_on_condition(h, condition);
	printf("  if it is meant so, expected.txt can say it (docs/one-sided.md):\n"
	       "  if %s  %s  broken  WHY\n",
	       condition, contracts);
}

/* A surprise: a heading, a few lines. */
static void print_surprise(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign *c = r->campaign;
	const struct report_cell *cell = &r->cell[config][k];
	const struct campaign_cell *counts = &c->cell[config][k];
	char text[REPORT_SENTENCE];
	print_head(r, config, k, contract_name(k));
	report_broken_in(r, config, k, text, sizeof(text));
	if (counts->broken)
		printf("in %s\n", text);
	else
		printf("it holds in %" PRIu64 " state%s\n", c->total[config].states,
		       plural(c->total[config].states));
	print_first_case(r, config, k);
	if (report_cause(r, config, k, text)) {
		print_line(text);
	} else if (cell->why) {
		snprintf(text, sizeof(text), "expected otherwise: %s", cell->why);
		print_line(text);
	}
	print_also(r, config, k);
}

static void print_attention(const struct report *r)
{
	const struct campaign *c = r->campaign;
	struct holds_on holds;
	unsigned told = 0;
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++)
		if (r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].surprise)
			told += !report_holds_on(r, i / TM_CONTRACTS, i % TM_CONTRACTS, &holds) ||
				holds.first;
	if (r->surprises)
		printf("%s%u result%s need%s attention%s", paint(RED), told, plural(told),
		       told == 1 ? "s" : "", paint(PLAIN));
	if (told < r->surprises)
		printf(", in %u cells of the matrix", r->surprises);
	if (r->surprises)
		putchar('\n');
	else if (r->undone || r->open)
		printf("%sNothing that was found needs attention%s\n", paint(GREEN), paint(PLAIN));
	else
		printf("%sNothing needs attention:%s each contract is as expected under each of %u "
		       "configurations\n",
		       paint(GREEN), paint(PLAIN), c->configs);
	if (r->open)
		printf("%sNot everything was looked at%s under %u of %u configurations\n",
		       paint(YELLOW), paint(PLAIN), r->open, c->configs);
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++) {
		unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		if (!r->cell[config][k].surprise)
			continue;
		if (!report_holds_on(r, config, k, &holds) && !is_told(r, config, k))
			print_surprise(r, config, k);
		else if (report_holds_on(r, config, k, &holds) && holds.first)
			print_holds_on(r, &holds, k);
	}
}

/* --- how to see more --- */

/* The shapes in which all is as expected. */
static void print_shapes(const struct report *r)
{
	const struct campaign *c = r->campaign;
	unsigned shapes = 0, whole = 0, begun = 0;
	uint64_t states = 0;
	char text[300], more[60] = "";
	for (unsigned i = 0; i < c->configs; i++) {
		shapes += c->config[i].shape;
		if (!report_in_short(r, i))
			continue;
		bool done = report_is_whole(r, i);
		whole += done;
		begun += !done && campaign_done(c, i);
		states += c->total[i].states;
	}
	if (!shapes)
		return;
	if (begun)
		snprintf(more, sizeof(more), ", %u more until now", begun);
	snprintf(text, sizeof(text),
		 "%u of %u shapes (full logs, other lengths, other variants and hardware) are as "
		 "expected%s, %" PRIu64 " states; -v lists them",
		 whole, shapes, more, states);
	print_line(text);
}

static unsigned size_of(const struct report_case *one)
{
	return one->operations + one->deviations;
}

/* What breaks as expected, with the smallest trace; of promises first. */
static void print_example(const struct report *r)
{
	const struct campaign *c = r->campaign;
	const struct report_case *best = NULL;
	unsigned at = 0;
	bool best_promised = false;
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++) {
		const struct report_cell *cell = &r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS];
		bool promised = c->config[i / TM_CONTRACTS].store->promises &
				TM_BIT(i % TM_CONTRACTS);
		if (!cell->cases || !cell->one[0].trace || promised < best_promised)
			continue;
		if (best && promised == best_promised && size_of(&cell->one[0]) >= size_of(best))
			continue;
		best = &cell->one[0];
		best_promised = promised;
		at = i;
	}
	if (!best)
		return;
	printf("How %s breaks %s, step by step; likewise for each trace:\n  ",
	       c->config[at / TM_CONTRACTS].store->name, contract_name(at % TM_CONTRACTS));
	print_replay(best->trace);
	putchar('\n');
}

void report_summary(const struct report *r)
{
	const struct campaign *c = r->campaign;
	uint64_t unsure = 0;
	print_shapes(r);
	putchar('\n');
	print_attention(r);
	putchar('\n');
	for (unsigned i = 0; i < c->configs; i++)
		unsure += c->total[i].unsure;
	if (c->options.exhaustive)
		report_exhaustive(r);
	if (unsure)
		printf("%" PRIu64 " histories were too concurrent for the search and are not "
		       "judged\n",
		       unsure);
	if (!r->out)
		puts("no traces were written: without --no-traces there are some for tidemark "
		     "replay");
	else if (!r->surprises)
		print_example(r);
	report_end(r);
}
