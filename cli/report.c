/* SPDX-License-Identifier: BSD-3-Clause */
/* See report.h. */
#include "cli/report.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "checker/names.h"
#include "cli/cli.h"

#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN  "\033[0m"

static const char *paint(const char *colour)
{
	return colours(stdout) ? colour : "";
}

static void print_why_bounded(const struct explore_counts *t)
{
	printf("  bounded: schedules and faults are %" PRIu64 " seeded runs, not all there are; images of a power failure "
	       "are all tried",
	       t->runs);
	if (t->points_bounded)
		printf(" but at %" PRIu64 " points, where they are sampled", t->points_bounded);
	printf("\n  %" PRIu64 " points where the power failed, %" PRIu64 " more skipped as equal to one of them; %" PRIu64
	       " states (%" PRIu64 " of them after a second failure, in recovery)\n",
	       t->points - t->points_seen, t->points_seen, t->states, t->nested_states);
	if (t->unsure)
		printf("  %" PRIu64 " histories were too concurrent for the search and count as not judged\n", t->unsure);
}

static void print_cell(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign_config *cfg = &r->campaign->config[config];
	const struct campaign_cell *cell = &r->campaign->cell[config][k];
	const struct report_cell *more = &r->cell[config][k];
	bool promised = cfg->store->promises & TM_BIT(k);
	printf("  %-6s %-8s ", contract_name(k), promised ? "promised" : "-");
	if (!cell->broken)
		printf("%sholds%s   %11" PRIu64 " states", paint(GREEN), paint(PLAIN), r->campaign->total[config].states);
	else
		printf("%sbroken%s  %11" PRIu64 " states", paint(promised ? RED : YELLOW), paint(PLAIN), cell->broken_states);
	if (more->surprise)
		printf("  %sNOT AS EXPECTED%s", paint(RED), paint(PLAIN));
	putchar('\n');
	if (cell->broken && more->text[0])
		printf("  %15s %s\n", "", more->text);
	if (more->why && (cell->broken || more->surprise))
		printf("  %15s %s: %s\n", "", more->surprise ? "expected otherwise" : "expected", more->why);
	if (more->trace[0])
		printf("  %15s %s replay %s   (%u operations, %u deviations)\n", "", program, more->trace, more->operations,
		       more->deviations);
}

void report_print(const struct report *r)
{
	const struct campaign *c = r->campaign;
	uint64_t states = 0;
	for (unsigned i = 0; i < c->configs; i++) {
		const struct campaign_config *cfg = &c->config[i];
		char hw[256];
		hardware_print(&cfg->setup.hw, true, hw, sizeof(hw));
		printf("\n%s%s%s%s%s%s\n  %s\n", cfg->store->name, strcmp(cfg->variant, "default") ? " " : "",
		       strcmp(cfg->variant, "default") ? cfg->variant : "", strcmp(cfg->name, "default") ? " (" : "",
		       strcmp(cfg->name, "default") ? cfg->name : "", strcmp(cfg->name, "default") ? ")" : "", hw);
		for (unsigned k = 0; k < TM_CONTRACTS; k++)
			print_cell(r, i, k);
		print_why_bounded(&c->total[i]);
		states += c->total[i].states;
	}
	printf("\n%" PRIu64 " states in %.1f s, %.0f states/s with %u job%s\n", states, c->seconds,
	       (double)states / (c->seconds > 0 ? c->seconds : 1), c->options.jobs, c->options.jobs == 1 ? "" : "s");
}

int report_json(const struct report *r, const char *path)
{
	const struct campaign *c = r->campaign;
	json_t *cells = json_array();
	for (unsigned i = 0; i < c->configs; i++) {
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			const struct campaign_config *cfg = &c->config[i];
			const struct report_cell *more = &r->cell[i][k];
			json_t *cell = json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:I, s:b, s:s, s:b}", "store", cfg->store->name,
						 "variant", cfg->variant, "config", cfg->name, "contract", contract_name(k),
						 "promised", !!(cfg->store->promises & TM_BIT(k)), "verdict",
						 c->cell[i][k].broken ? "broken" : "holds", "states",
						 (json_int_t)c->total[i].states, "exhaustive", 0, "trace", more->trace,
						 "as_expected", !more->surprise);
			json_array_append_new(cells, cell);
		}
	}
	json_t *all = json_pack("{s:o, s:f, s:I, s:i}", "cells", cells, "seconds", c->seconds, "seed",
				(json_int_t)c->options.seed, "jobs", (int)c->options.jobs);
	char temporary[4096];
	int error = 0;
	if (!all || snprintf(temporary, sizeof(temporary), "%s.tmp.%d", path, (int)getpid()) >= (int)sizeof(temporary)) {
		json_decref(all);
		return all ? -ENAMETOOLONG : -ENOMEM;
	}
	FILE *out = fopen(temporary, "w");
	if (!out) {
		error = -errno;
	} else {
		errno = 0;
		if (json_dumpf(all, out, JSON_INDENT(1)) || fputc('\n', out) == EOF || fflush(out))
			error = errno ? -errno : -EIO;
		if (fclose(out) && !error)
			error = -errno;
		if (!error && rename(temporary, path))
			error = -errno;
		if (error)
			unlink(temporary);
	}
	json_decref(all);
	return error;
}
