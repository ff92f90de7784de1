/* SPDX-License-Identifier: BSD-3-Clause */
/* A campaign as a tree of results: its cells, and what a page says of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/report.h"
#include "report/terminal.h"
#include "scenarios/stores.h"

/* --- what a page shows of a cell, in words --- */

static json_t *case_json(const struct report *r, unsigned config, const struct report_case *one)
{
	char takes[REPORT_TAKES] = "";
	json_t *replay = JSON_PRINTED(out, if (one->trace) fputs("tidemark replay ", out),
				      write_word(out, one->trace));
	if (one->takes)
		report_takes(&r->campaign->config[config], one->takes, takes, sizeof(takes));
	return json_pack("{s:s, s:s, s:o, s:o, s:i, s:i, s:b}", "how", one->text, "takes", takes,
			 "trace", json_text(one->trace), "replay", replay, "operations",
			 (int)one->operations, "deviations", (int)one->deviations, "whole",
			 one->whole);
}

static void add_words(json_t *shown, const char *field, const char *before, const char *words)
{
	json_object_set_new(shown, field, json_sprintf("%s%s", before, words));
}

static json_t *shown_json(const struct report *r, unsigned config, unsigned k)
{
	const struct report_cell *more = &r->cell[config][k];
	const bool expects = more->surprise && !more->strange && !more->often;
	const char mark[2] = {report_mark(r, config, k)},
		   *left_out = campaign_left_out(r->campaign, config);
	char sentence[REPORT_SENTENCE];
	struct holds_on holds;
	json_t *shown = json_pack("{s:s, s:s}", "mark", mark, "left_out", left_out ? left_out : ""),
	       *cases;
	report_broken_in(r, config, k, sentence, sizeof(sentence));
	if (r->campaign->cell[config][k].broken) {
		const int pad = snprintf(NULL, 0, "%" PRIu64, r->campaign->total[config].states) -
				(int)strcspn(sentence, " ");
		add_words(shown, "broken_in", "", sentence);
		json_object_set_new(shown, "pad", json_sprintf("%*s", pad > 0 ? pad : 0, ""));
	}
	if (!more->surprise && !more->cases)
		return shown;
	if (more->surprise)
		add_words(shown, "surprise", "", report_surprise(more));
	if (report_holds_on(r, config, k, &holds)) {
		add_words(shown, "holds_on", "", holds.rows);
		json_object_set_new(shown, "folded", json_boolean(config != holds.home));
	}
	json_object_set_new(shown, "cases", cases = json_array());
	for (unsigned i = 0; i < more->cases; i++)
		json_array_append_new(cases, case_json(r, config, &more->one[i]));
	json_object_set_new(shown, "left", json_integer(more->left));
	if (report_cause(r, config, k, sentence))
		add_words(shown, "cause", "", sentence);
	if (more->why)
		add_words(shown, "why", expects ? "expected otherwise: " : "expected: ", more->why);
	return shown;
}

/* --- cells --- */

/* The cases of other causes than the first. */
static json_t *others_json(const struct campaign_config *cfg, const struct report_cell *cell)
{
	json_t *list = json_array();
	for (unsigned i = 1; list && i < cell->cases; i++) {
		const struct report_case *one = &cell->one[i];
		char takes[REPORT_TAKES];
		report_takes(cfg, one->takes, takes, sizeof(takes));
		json_array_append_new(list,
				      json_pack("{s:o, s:s, s:s}", "trace", json_text(one->trace),
						"how", one->text, "takes", takes));
	}
	return list;
}

static json_t *cell_json(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign_config *cfg = &r->campaign->config[config];
	const struct campaign_cell *cell = &r->campaign->cell[config][k];
	const struct report_cell *more = &r->cell[config][k];
	char takes[REPORT_TAKES], sentence[REPORT_SENTENCE];
	unsigned parts;
	const uint64_t judged = explore_judged(
		&r->campaign->total[config], r->campaign->config[config].store->servers, k, &parts);
	report_takes(cfg, more->one[0].takes, takes, sizeof(takes));
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:b, s:i, s:I, s:I, s:I, s:b, s:o, s:b, "
			 "s:b, s:s, s:s, s:s, s:o, s:o}",
			 "store", cfg->store->name, "variant", cfg->variant, "config", cfg->name,
			 "contract", contract_name(k), "promised",
			 !!(cfg->store->promises & TM_BIT(k)), "verdict",
			 cell->broken		       ? "broken"
			 : report_unsure(r, config, k) ? "could not tell"
						       : "holds",
			 "complete", report_is_whole(r, config), "workloads_not_run",
			 (int)report_not_run(r->campaign, config, sentence), "states",
			 (json_int_t)r->campaign->total[config].states, "broken_states",
			 (json_int_t)cell->broken_states, "judged", (json_int_t)judged,
			 "exhaustive", !campaign_left_out(r->campaign, config), "trace",
			 json_text(more->one[0].trace), "as_expected", !more->surprise, "accepted",
			 more->accepted, "how", more->one[0].text, "takes", takes, "why",
			 more->why && (cell->broken || more->surprise) ? more->why : "", "others",
			 others_json(cfg, more), "shown", shown_json(r, config, k));
}

static void add_cases(json_t *all, const struct report *r)
{
	const struct campaign *c = r->campaign;
	char suite[REPORT_NAME];
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++) {
		unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		const struct report_cell *more = &r->cell[config][k];
		bool broken = c->cell[config][k].broken;
		if (!(store_judged(c->config[config].store) & TM_BIT(k)))
			continue;
		config_name(&c->config[config], suite, sizeof(suite));
		if (report_unsure(r, config, k))
			tree_case(all, CASE_SKIPPED, suite, contract_name(k), "%s",
				  report_is_whole(r, config) ? "not everything was looked at"
							     : "left off before the end");
		else if (!more->surprise)
			tree_case(all, CASE_PASSED, suite, contract_name(k), NULL);
		else if (more->one[0].trace)
			tree_case(all, CASE_FAILED, suite, contract_name(k), "%s\n%s replay %s",
				  more->one[0].text, program, more->one[0].trace);
		else
			tree_case(all, CASE_FAILED, suite, contract_name(k), "%s",
				  broken ? "broken" : "expected to break, and holds");
	}
}

static json_t *configs_json(const struct report *r)
{
	const struct campaign *c = r->campaign;
	json_t *list = json_array();
	for (unsigned i = 0; i < c->configs; i++) {
		const struct campaign_config *cfg = &c->config[i];
		const struct explore_counts *t = &c->total[i];
		char name[REPORT_NAME], not_run[REPORT_SENTENCE];
		config_name(cfg, name, sizeof(name));
		if ((i && same_group(&c->config[i - 1], cfg)) || !report_not_run(c, i, not_run))
			*not_run = '\0';
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:s, s:i, s:I, s:I, s:I, "
				  "s:I, s:I, s:I, s:I, s:I}",
				  "store", cfg->store->name, "variant", cfg->variant, "config",
				  cfg->name, "name", name, "runs", (json_int_t)t->runs, "states",
				  (json_int_t)t->states, "in_short", report_in_short(r, i),
				  "not_run", not_run, "done", (int)campaign_done(c, i), "points",
				  (json_int_t)(t->points - t->points_seen), "points_seen",
				  (json_int_t)t->points_seen, "nested_states",
				  (json_int_t)t->nested_states, "life_states",
				  (json_int_t)t->life_states, "lives", (json_int_t)t->lives,
				  "points_bounded", (json_int_t)t->points_bounded, "spared",
				  (json_int_t)t->spared, "unsure", (json_int_t)t->unsure));
	}
	return list;
}

static json_t *bounds_json(const struct report *r)
{
	const struct campaign *c = r->campaign;
	json_t *workloads = json_array();
	char hw[256];
	hardware_print(&hardware_default, true, hw, sizeof(hw));
	bool several = false, faults = false;
	for (unsigned i = 0; i < c->configs; i++)
		several |= c->config[i].store->servers > 1;
	for (unsigned w = 0; w < c->workloads && c->options.exhaustive; w++) {
		faults |= campaign_faults(c, w) > 0;
		json_array_append_new(workloads,
				      json_pack("{s:s, s:i}", "name", c->workload[w].name, "faults",
						(int)campaign_faults(c, w)));
	}
	json_t *bounds = json_pack("{s:s, s:o, s:i, s:i, s:I, s:I, s:b, s:i, s:b}", "hardware", hw,
				   "of", workloads, "workloads", (int)c->workloads, "traces",
				   (int)r->traces, "runs", (json_int_t)c->options.runs, "states",
				   (json_int_t)c->options.states, "all_runs", c->options.exhaustive,
				   "preemptions", (int)c->options.preemptions, "baseline",
				   r->baseline != NULL);
	if (several && c->options.exhaustive)
		json_object_set_new(bounds, faults ? "servers_fail" : "servers_stay", json_true());
	return bounds;
}

json_t *report_tree(const struct report *r)
{
	const struct campaign *c = r->campaign;
	json_t *cells = json_array();
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++) {
		unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		if (store_judged(c->config[config].store) & TM_BIT(k))
			json_array_append_new(cells, cell_json(r, config, k));
	}
	json_t *all = json_pack("{s:o, s:o, s:o, s:o, s:b, s:f, s:I, s:i}", "cells", cells,
				"contracts", tree_contracts(report_judged(c)), "configs",
				configs_json(r), "bounds", bounds_json(r), "complete", !r->undone,
				"seconds", c->seconds, "seed", (json_int_t)c->options.seed, "jobs",
				(int)c->options.jobs);
	if (all)
		add_cases(all, r);
	return all;
}
