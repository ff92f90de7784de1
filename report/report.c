/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table for each store and configuration, a line for each contract; below it, what
 * is to be said of single cells: how they break, why that was expected, the command
 * that replays it. What is true of all tables is said once, at the end. Where that would
 * be too long to be read, report/summary.c says what matters of it.
 */
#include "report/report.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "checker/judge/shares.h"
#include "report/terminal.h"
#include "scenarios/stores.h"
#include "core/text/text.h"

bool same_group(const struct campaign_config *a, const struct campaign_config *b)
{
	return a->store == b->store && !strcmp(a->variant, b->variant);
}

void group_name(const struct campaign_config *cfg, char *buf, size_t n)
{
	bool variant = strcmp(cfg->variant, "default");
	snprintf(buf, n, "%s%s%s", cfg->store->name, variant ? " " : "",
		 variant ? cfg->variant : "");
}

void config_name(const struct campaign_config *cfg, char *buf, size_t n)
{
	group_name(cfg, buf, n);
	size_t len = strlen(buf);
	if (strcmp(cfg->name, "default"))
		snprintf(buf + len, n - len, " (%s)", cfg->name);
}

static void print_config(const struct campaign_config *cfg)
{
	char name[REPORT_NAME];
	config_name(cfg, name, sizeof(name));
	fputs(name, stdout);
}

const char *report_surprise(const struct report_cell *cell)
{
	assert(cell->surprise);
	return cell->strange ? "BROKEN FOR ANOTHER CAUSE"
	       : cell->often ? "BROKEN FAR MORE OFTEN"
	       : cell->why   ? "NOT AS EXPECTED"
			     : "A PROMISE IS BROKEN";
}

static void print_cell(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign_config *cfg = &r->campaign->config[config];
	const struct campaign_cell *cell = &r->campaign->cell[config][k];
	const struct report_cell *more = &r->cell[config][k];
	bool promised = cfg->store->promises & TM_BIT(k);
	uint64_t states = r->campaign->total[config].states;
	int width = snprintf(NULL, 0, "%" PRIu64, states),
	    digits = snprintf(NULL, 0, "%" PRIu64, cell->broken_states);
	char in[80];
	bool left_off = !report_is_whole(r, config), unsure = report_unsure(r, config, k);
	printf("  %-5s  %-8s  %s%-6s%s  ", contract_name(k), promised ? "promised" : "-",
	       paint(unsure	      ? YELLOW
		     : !cell->broken  ? GREEN
		     : more->surprise ? RED
				      : YELLOW),
	       unsure	      ? "unsure"
	       : cell->broken ? "broken"
			      : "holds",
	       paint(PLAIN));
	const char *left_out = campaign_left_out(r->campaign, config);
	report_broken_in(r, config, k, in, sizeof(in));
	if (cell->broken)
		printf("%*s%s", width > digits ? width - digits : 0, "", in);
	else
		printf("%*" PRIu64 " state%s", width, states, plural(states));
	if (!left_out)
		printf(", exhaustive");
	else if (!cell->broken)
		printf(", bounded (%s)", left_out);
	if (unsure && left_off)
		printf(", nothing broken in %u of %u workload%s",
		       campaign_done(r->campaign, config), r->campaign->workloads,
		       plural(r->campaign->workloads));
	if (more->surprise)
		printf(", %s%s%s", paint(RED), report_surprise(more), paint(PLAIN));
	else if (more->accepted)
		printf(", accepted by the baseline");
	else if (more->why && cell->broken)
		printf(", as its design says");
	putchar('\n');
}

void report_takes(const struct campaign_config *cfg, uint32_t takes, char *buf, size_t n)
{
	char value[64];
	*buf = '\0';
	for (unsigned k = 0; cfg->store->knobs[k].name; k++) {
		size_t len = strlen(buf);
		setup_knob_value(&cfg->setup, k, value, sizeof(value));
		if (takes & 1u << k)
			snprintf(buf + len, n - len, "%s%s=%s", len ? ", " : "",
				 cfg->store->knobs[k].name, value);
	}
}

/* Of a break for an unknown cause: what it is blamed on. */
static void blame_sentence(const struct report *r, unsigned config, unsigned k,
			   char sentence[REPORT_SENTENCE])
{
	const struct campaign_cell *cell = &r->campaign->cell[config][k];
	const struct campaign_config *cfg = &r->campaign->config[config];
	char words[BLAME_TEXT], column[SHARES_NAME];
	struct setup s;
	shares_column_name(cfg->store, cfg->variant, cfg->name, column);
	if (!campaign_setup(r->campaign, cell->strange_unit, &s))
		blame_print(&cell->blame, s.region, s.regions, words, sizeof(words));
	else
		snprintf(words, sizeof(words), "%s", contract_name(k));
	setup_free(&s);
	if (cell->baselined) {
		snprintf(sentence, REPORT_SENTENCE,
			 "another cause than the baseline accepts, in %" PRIu64 " of %" PRIu64
			 " broken state%s, %" PRIu64 " run%s: %s",
			 cell->strange_states, cell->broken_states, plural(cell->broken_states),
			 cell->strange_runs, plural(cell->strange_runs), words);
		return;
	}
	snprintf(sentence, REPORT_SENTENCE,
		 "another cause than the known ones, in %" PRIu64 " of %" PRIu64
		 " broken state%s, %" PRIu64 " run%s; as a row of core/stores/%s/causes.txt: %s %s",
		 cell->strange_states, cell->broken_states, plural(cell->broken_states),
		 cell->strange_runs, plural(cell->strange_runs), cfg->store->name, column, words);
}

/* Of a break in far more runs than recorded: by how much. */
static void often_sentence(const struct report *r, unsigned config, unsigned k,
			   char sentence[REPORT_SENTENCE])
{
	const struct campaign *c = r->campaign;
	const struct campaign_cell *cell = &c->cell[config][k];
	snprintf(sentence, REPORT_SENTENCE,
		 "a known cause, but %" PRIu64 " runs show it and at most %" PRIu32
		 " are recorded (core/stores/%s/shares.txt; told above %" PRIu64
		 "), most of them in workload %s; its row is %s",
		 cell->often_runs, cell->recorded, c->config[config].store->name,
		 shares_limit(cell->recorded), c->workload[cell->often_unit % c->workloads].name,
		 known_words(cell->often_row));
}

bool report_cause(const struct report *r, unsigned config, unsigned k,
		  char sentence[REPORT_SENTENCE])
{
	const struct report_cell *cell = &r->cell[config][k];
	assert(!cell->strange || !cell->often);
	if (cell->strange)
		blame_sentence(r, config, k, sentence);
	else if (cell->often)
		often_sentence(r, config, k, sentence);
	return cell->strange || cell->often;
}

/* What is to be said of a cell below the table. */
static void print_notes(const struct report *r, unsigned config, unsigned k)
{
	const struct report_cell *more = &r->cell[config][k];
	bool broken = r->campaign->cell[config][k].broken;
	const char *name = contract_name(k);
	char takes[REPORT_TAKES], sentence[REPORT_SENTENCE];
	for (unsigned i = 0; i < more->cases; i++) {
		printf("  %-5s  ", name);
		print_wrapped(9, more->one[i].text);
		name = "";
		if (more->one[i].takes) {
			report_takes(&r->campaign->config[config], more->one[i].takes, takes,
				     sizeof(takes));
			snprintf(sentence, sizeof(sentence), "it takes %s", takes);
			printf("  %5s  ", "");
			print_wrapped(9, sentence);
		}
		if (!more->one[i].trace)
			continue;
		printf("  %5s  ", "");
		report_case_replay(&more->one[i]);
	}
	if (more->left)
		printf("  %5s  %u more way%s of breaking it %s not looked at\n", "", more->left,
		       plural(more->left), more->left == 1 ? "was" : "were");
	if (report_cause(r, config, k, sentence)) {
		printf("  %5s  ", "");
		print_wrapped(9, sentence);
	}
	if (more->why && (broken || more->surprise)) {
		const char *lead = more->surprise && !more->strange && !more->often
					   ? "expected otherwise: "
					   : "expected: ";
		snprintf(sentence, sizeof(sentence), "%s%s", lead, more->why);
		printf("  %-5s  ", name);
		print_wrapped(9, sentence);
	}
	if (broken && !r->out) {
		printf("  %5s  ", "");
		puts("no trace was written: without --no-traces there is one for tidemark replay");
	}
}

/* How far the exploration went. */
static void print_bounds(const struct explore_counts *t)
{
	char text[600];
	snprintf(text, sizeof(text),
		 "%" PRIu64 " run%s; the power failed at %" PRIu64 " point%s (%" PRIu64
		 " more %s equal to one of these), "
		 "%" PRIu64 " state%s of a second failure in recovery, %" PRIu64 " from %" PRIu64
		 " li%s after recovery",
		 t->runs, plural(t->runs), t->points - t->points_seen,
		 plural(t->points - t->points_seen), t->points_seen,
		 t->points_seen == 1 ? "was" : "were", t->nested_states,
		 t->nested_states == 1 ? " is" : "s are", t->life_states, t->lives,
		 t->lives == 1 ? "fe" : "ves");
	if (t->points_bounded)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "; at %" PRIu64 " point%s the images are a sample", t->points_bounded,
			 plural(t->points_bounded));
	if (t->spared)
		snprintf(
			text + strlen(text), sizeof(text) - strlen(text),
			"; %" PRIu64
			" delays, and all that would follow them, were left out, because they only "
			"reorder independent steps",
			t->spared);
	if (t->unsure)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "; %" PRIu64
			 " histories were too concurrent for the search and are not judged",
			 t->unsure);
	fputs("  ", stdout);
	print_wrapped(2, text);
}

unsigned report_not_run(const struct campaign *c, unsigned config, char sentence[REPORT_SENTENCE])
{
	const struct campaign_config *cfg = &c->config[config];
	unsigned n[CAMPAIGN_USES] = {0}, not_run, len;
	char name[REPORT_NAME];
	for (unsigned w = 0; w < c->workloads; w++)
		n[campaign_use(c, config * c->workloads + w)]++;
	not_run = n[CAMPAIGN_MORE_KEYS] + n[CAMPAIGN_ANOTHER];
	group_name(cfg, name, sizeof(name));
	len = (unsigned)snprintf(
		sentence, REPORT_SENTENCE, "%s: %u of %u workload%s not run: ", name, not_run,
		not_run + n[CAMPAIGN_USED], not_run + n[CAMPAIGN_USED] == 1 ? " was" : "s were");
	if (n[CAMPAIGN_MORE_KEYS])
		len += (unsigned)snprintf(sentence + len, REPORT_SENTENCE - len,
					  "%u need%s more than %u key%s%s", n[CAMPAIGN_MORE_KEYS],
					  n[CAMPAIGN_MORE_KEYS] == 1 ? "s" : "",
					  cfg->store->max_keys, plural(cfg->store->max_keys),
					  n[CAMPAIGN_ANOTHER] ? ", " : "");
	if (n[CAMPAIGN_ANOTHER])
		snprintf(sentence + len, REPORT_SENTENCE - len,
			 "%u %s within the store's limits the same as another one",
			 n[CAMPAIGN_ANOTHER], n[CAMPAIGN_ANOTHER] == 1 ? "is" : "are");
	return not_run;
}

void report_exhaustive(const struct report *r)
{
	const struct campaign *c = r->campaign;
	char text[800];
	int n = snprintf(text, sizeof(text),
			 "all runs with at most %u preemption%s (docs/search.md), one power "
			 "failure in each, at "
			 "each place and with all images that can be left, of the workloads",
			 c->options.preemptions, plural(c->options.preemptions));
	for (unsigned w = 0; w < c->workloads && n < (int)sizeof(text) - 200; w++) {
		unsigned faults = campaign_faults(c, w);
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s %s", w ? "," : "",
			      c->workload[w].name);
		if (faults)
			n += snprintf(text + n, sizeof(text) - (size_t)n,
				      " (with at most %u fault%s)", faults, plural(faults));
	}
	snprintf(text + n, sizeof(text) - (size_t)n,
		 ". States that are equal, and runs that only reorder independent steps, are "
		 "looked at once.");
	fputs("\nexhaustive: ", stdout);
	print_wrapped(12, text);
}

/* A column for a shape in which everything is as expected: one line. */
static void print_in_short(const struct report *r, unsigned config)
{
	const struct campaign *c = r->campaign;
	fputs("  ", stdout);
	print_config(&c->config[config]);
	printf(": %" PRIu64 " run%s, %" PRIu64 " state%s;", c->total[config].runs,
	       plural(c->total[config].runs), c->total[config].states,
	       plural(c->total[config].states));
	for (unsigned broken = 0; broken < 2; broken++)
		for (unsigned k = 0, n = 0; k < TM_CONTRACTS; k++) {
			bool promised = c->config[config].store->promises & TM_BIT(k);
			if (c->cell[config][k].broken != broken || (!broken && !promised))
				continue;
			printf("%s %s", n++ ? "" : broken ? "; broken" : " hold", contract_name(k));
		}
	putchar('\n');
}

static void print_table(const struct report *r, unsigned config)
{
	const struct campaign *c = r->campaign;
	char not_run[REPORT_SENTENCE];
	printf("\n%s", paint(BOLD));
	print_config(&c->config[config]);
	printf("%s\n", paint(PLAIN));
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (store_judged(c->config[config].store) & TM_BIT(k))
			print_cell(r, config, k);
	print_bounds(&c->total[config]);
	if (report_not_run(c, config, not_run)) {
		fputs("  ", stdout);
		print_wrapped(2, not_run);
	}
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		print_notes(r, config, k);
}

void report_tables(const struct report *r)
{
	const struct campaign *c = r->campaign;
	bool shapes = false; /* were printed last */
	char hw[256];
	hardware_print(&hardware_default, true, hw, sizeof(hw));
	fputs("hardware, where a table does not say otherwise: ", stdout);
	print_wrapped(48, hw);
	for (unsigned i = 0; i < c->configs; i++) {
		bool in_short = report_in_short(r, i);
		if (in_short ? !report_is_whole(r, i) : !campaign_done(c, i))
			continue;
		if (in_short && !shapes)
			printf("\n%sshapes%s, as expected: which promises hold, what breaks\n",
			       paint(BOLD), paint(PLAIN));
		shapes = in_short;
		if (in_short)
			print_in_short(r, i);
		else
			print_table(r, i);
	}
	if (c->options.exhaustive) {
		report_exhaustive(r);
	} else {
		fputs("\nbounded: ", stdout);
		print_wrapped(
			9,
			"schedules and faults are seeded random runs, not all there are. Where the "
			"power fails, all images "
			"that can be left are tried, unless a table says that they are a sample.");
	}
	report_end(r);
}
