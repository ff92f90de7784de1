/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A campaign of many configurations, by what matters, on about one screen: first what is not as
 * expected, with the command that replays it; then a matrix, a row for each store and
 * configuration, a mark for each contract; the shapes in which all is as expected, a line for each
 * store; and of what breaks as expected the smallest trace, and why.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "checker/hunt/plan.h"
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "report/report.h"
#include "report/terminal.h"
#include "scenarios/stores.h"

#define LABEL_MAX 34 /* columns; of a longer name the marks stand on the next line */

/* --- groups: the configurations of a store, or of its variant --- */

static bool same_group(const struct campaign_config *a, const struct campaign_config *b)
{
	return a->store == b->store && !strcmp(a->variant, b->variant);
}

static bool is_first_of_group(const struct campaign *c, unsigned config)
{
	for (unsigned i = 0; i < config; i++)
		if (same_group(&c->config[i], &c->config[config]))
			return false;
	return true;
}

/* --- what needs attention --- */

/* Are the two cells the same surprise under two configurations? */
static bool same_surprise(const struct report *r, unsigned a, unsigned b, unsigned k)
{
	const struct campaign *c = r->campaign;
	const struct report_cell *x = &r->cell[a][k], *y = &r->cell[b][k];
	return x->surprise && y->surprise && same_group(&c->config[a], &c->config[b]) &&
	       c->cell[a][k].broken == c->cell[b][k].broken && x->strange == y->strange &&
	       x->often == y->often;
}

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

/* A surprise: a heading, a few lines. */
static void print_surprise(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign *c = r->campaign;
	const struct report_cell *cell = &r->cell[config][k];
	const struct campaign_cell *counts = &c->cell[config][k];
	char name[REPORT_NAME], text[REPORT_SENTENCE];
	config_name(&c->config[config], name, sizeof(name));
	printf("\n%s%s %s%s: %s%s%s, ", paint(BOLD), name, contract_name(k), paint(PLAIN),
	       paint(RED), report_surprise(cell), paint(PLAIN));
	if (counts->broken)
		printf("in %" PRIu64 " of %" PRIu64 " states\n", counts->broken_states,
		       c->total[config].states);
	else
		printf("it holds in %" PRIu64 " states\n", c->total[config].states);
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
	if (r->surprises)
		printf("%s%u result%s need%s attention%s\n", paint(RED), r->surprises,
		       r->surprises == 1 ? "" : "s", r->surprises == 1 ? "s" : "", paint(PLAIN));
	else
		printf("%sNothing needs attention:%s each contract is as expected under each of %u "
		       "configurations\n",
		       paint(GREEN), paint(PLAIN), c->configs);
	if (r->open)
		printf("%sNot everything was looked at%s under %u of %u configurations\n",
		       paint(YELLOW), paint(PLAIN), r->open, c->configs);
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++) {
		unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		if (r->cell[config][k].surprise && !is_told(r, config, k))
			print_surprise(r, config, k);
	}
}

/* --- the matrix --- */

/* May the contract break by design? */
static bool may_break(const struct campaign_config *cfg, unsigned k)
{
	const struct expectation *e = strcmp(cfg->variant, "default")
					      ? NULL
					      : expect_find(cfg->store->name, cfg->name, (int)k);
	return e && (e->broken || e->open);
}

/* Was there anything in which the contract could have broken? */
static bool is_tried(const struct explore_counts *t, unsigned k)
{
	return TM_BIT(k) & CONTRACTS_IN_RUN ? t->runs : t->states;
}

char report_mark(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign *c = r->campaign;
	const struct campaign_config *cfg = &c->config[config];
	bool promised = cfg->store->promises & TM_BIT(k);
	if (!(store_judged(cfg->store) & TM_BIT(k)))
		return ' ';
	if (r->cell[config][k].surprise)
		return '!';
	if (c->cell[config][k].broken)
		return promised ? 'X' : 'x';
	if (may_break(cfg, k) || !is_tried(&c->total[config], k) ||
	    (c->options.exhaustive && campaign_left_out(c, config)))
		return '?';
	return promised ? '.' : '-';
}

static const char *mark_colour(char mark)
{
	return mark == '!' ? RED : mark == '.' || mark == '-' ? GREEN : YELLOW;
}

static void print_legend(void)
{
	puts("  .  holds, promised      x  breaks, not promised                  "
	     "!  needs attention: see above\n"
	     "  -  holds, not promised  X  breaks as expected, though promised   "
	     "?  not seen to break, but it may");
}

/* Rows of the same store, from its first on: how many, if all have the same marks; else 1. */
static unsigned rows_alike(const struct report *r, unsigned first)
{
	const struct campaign *c = r->campaign;
	unsigned n = 0;
	for (unsigned i = 0; i < c->configs; i++) {
		if (report_in_short(r, i) || c->config[i].store != c->config[first].store)
			continue;
		if (i < first || c->config[i].shape ||
		    strcmp(c->config[i].variant, c->config[first].variant))
			return 1;
		for (unsigned k = 0; k < TM_CONTRACTS; k++)
			if (report_mark(r, i, k) != report_mark(r, first, k))
				return 1;
		n++;
	}
	return n;
}

unsigned report_judged(const struct campaign *c)
{
	unsigned judged = 0;
	for (unsigned i = 0; i < c->configs; i++)
		judged |= store_judged(c->config[i].store);
	return judged;
}

/* A mark stands below the middle of its contract's name. */
static void print_row(const struct report *r, unsigned config, unsigned alike, unsigned width,
		      unsigned judged)
{
	const struct campaign *c = r->campaign;
	char name[REPORT_NAME];
	uint64_t states = 0;
	for (unsigned i = 0; i < alike; i++)
		states += c->total[config + i].states;
	config_name(&c->config[config], name, sizeof(name));
	if (alike > 1) {
		size_t len = strlen(name);
		snprintf(name + len, sizeof(name) - len, " (all hardware)");
	}
	printf("  %-*s", (int)width, name);
	if (strlen(name) > width)
		printf("\n  %*s", (int)width, "");
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		if (!(judged & TM_BIT(k)))
			continue;
		int letters = (int)strlen(contract_name(k)), before = (letters - 1) / 2;
		char is = report_mark(r, config, k);
		printf("  %*s%s%c%s%*s", before, "", paint(mark_colour(is)), is, paint(PLAIN),
		       letters - before - 1, "");
	}
	printf(" %8" PRIu64 "\n", states);
}

static void print_matrix(const struct report *r)
{
	const struct campaign *c = r->campaign;
	unsigned width = 0, rows = 0;
	const unsigned judged = report_judged(c);
	for (unsigned i = 0; i < c->configs; i++) {
		char name[REPORT_NAME];
		config_name(&c->config[i], name, sizeof(name));
		unsigned len = (unsigned)strlen(name);
		if (report_in_short(r, i))
			continue;
		rows++;
		width = len > width && len <= LABEL_MAX ? len : width;
	}
	if (!rows)
		return;
	printf("\n%s  %*s", paint(BOLD), (int)width, "");
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (judged & TM_BIT(k))
			printf("  %s", contract_name(k));
	printf(" %8s%s\n", "states", paint(PLAIN));
	for (unsigned i = 0, alike; i < c->configs; i += alike) {
		alike = 1;
		if (report_in_short(r, i))
			continue;
		alike = rows_alike(r, i);
		print_row(r, i, alike, width, judged);
	}
	print_legend();
}

/* --- shapes --- */

struct shapes {
	unsigned n, short_ones; /* of a store; of these, all as expected */
	uint64_t runs, states;	/* of the latter */
	unsigned broken;	/* TM_BIT()s: in one of the latter */
};

static struct shapes shapes_of(const struct report *r, unsigned first)
{
	const struct campaign *c = r->campaign;
	struct shapes sum = {0};
	for (unsigned i = first; i < c->configs; i++) {
		if (!c->config[i].shape || c->config[i].store != c->config[first].store)
			continue;
		sum.n++;
		if (!report_in_short(r, i))
			continue;
		sum.short_ones++;
		sum.runs += c->total[i].runs;
		sum.states += c->total[i].states;
		for (unsigned k = 0; k < TM_CONTRACTS; k++)
			sum.broken |= c->cell[i][k].broken ? TM_BIT(k) : 0;
	}
	assert(sum.short_ones <= sum.n);
	return sum;
}

static void print_shapes_of(const struct campaign_config *cfg, const struct shapes *s)
{
	char text[300], many[32];
	snprintf(many, sizeof(many), "%u", s->n);
	if (s->short_ones < s->n)
		snprintf(many, sizeof(many), "%u of %u", s->short_ones, s->n);
	snprintf(text, sizeof(text), "%s shape%s as expected: %" PRIu64 " runs, %" PRIu64 " states",
		 many, s->n == 1 ? "" : "s", s->runs, s->states);
	for (unsigned k = 0, n = 0; k < TM_CONTRACTS; k++) {
		size_t len = strlen(text);
		if (s->broken & TM_BIT(k))
			snprintf(text + len, sizeof(text) - len, "%s %s", n++ ? "" : "; broken",
				 contract_name(k));
	}
	printf("  %-10s ", cfg->store->name);
	print_wrapped(13, text);
}

/* A line for each store. */
static void print_shapes(const struct report *r)
{
	const struct campaign *c = r->campaign;
	bool any = false;
	for (unsigned i = 0; i < c->configs; i++) {
		if (!is_first_of_group(c, i))
			continue;
		struct shapes s = shapes_of(r, i);
		if (!s.short_ones)
			continue;
		if (!any)
			putchar('\n');
		any = true;
		print_shapes_of(&c->config[i], &s);
	}
}

/* --- what breaks as expected --- */

static unsigned size_of(const struct report_case *one)
{
	return one->operations + one->deviations;
}

/* The configuration of the group in which the contract breaks as expected with the smallest case;
 * c->configs: there is none. */
static unsigned smallest(const struct report *r, unsigned first, unsigned k)
{
	const struct campaign *c = r->campaign;
	unsigned best = c->configs;
	for (unsigned i = first; i < c->configs; i++) {
		const struct report_cell *cell = &r->cell[i][k];
		if (!same_group(&c->config[i], &c->config[first]) || !cell->cases || cell->surprise)
			continue;
		if (best == c->configs ||
		    size_of(&cell->one[0]) < size_of(&r->cell[best][k].one[0]))
			best = i;
	}
	return best;
}

/* Why it was expected, up to where the sentence goes into details; and how to see it. */
static void print_expected(const struct report *r, unsigned config, unsigned k)
{
	const struct report_cell *cell = &r->cell[config][k];
	const struct report_case *one = &cell->one[0];
	char text[REPORT_SENTENCE];
	if (cell->why)
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(cell->why, ";"), cell->why);
	else
		snprintf(text, sizeof(text), "not promised: %s", one->text);
	printf("  %-5s  ", contract_name(k));
	print_wrapped(9, text);
	if (!one->trace)
		return;
	printf("  %5s  ", "");
	print_replay(one->trace);
	putchar('\n');
}

static void print_by_design(const struct report *r)
{
	const struct campaign *c = r->campaign;
	for (unsigned i = 0, groups = 0; i < c->configs; i++) {
		bool any = false;
		char name[REPORT_NAME];
		group_name(&c->config[i], name, sizeof(name));
		for (unsigned k = 0; k < TM_CONTRACTS && is_first_of_group(c, i); k++) {
			unsigned config = smallest(r, i, k);
			if (config == c->configs)
				continue;
			if (!any)
				printf("%s%s%s breaks as expected%s\n", groups++ ? "" : "\n",
				       paint(BOLD), name, paint(PLAIN));
			any = true;
			print_expected(r, config, k);
		}
	}
}

void report_summary(const struct report *r)
{
	const struct campaign *c = r->campaign;
	uint64_t unsure = 0;
	print_attention(r);
	print_matrix(r);
	print_shapes(r);
	print_by_design(r);
	for (unsigned i = 0; i < c->configs; i++)
		unsure += c->total[i].unsure;
	if (c->options.exhaustive)
		report_exhaustive(r);
	else
		puts("\nbounded: seeded random schedules, not all there are. --verbose prints all "
		     "tables.");
	if (unsure)
		printf("%" PRIu64 " histories were too concurrent for the search and are not "
		       "judged\n",
		       unsure);
	if (!r->out)
		puts("no traces were written: without --no-traces there are some for tidemark "
		     "replay");
	report_end(r);
}
