/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A campaign of many configurations, on about one screen: below the matrix (report/matrix.c) what
 * needs attention, each with its sentence and the command that shows it, and how to see more.
 */
#include <inttypes.h>
#include <stdio.h>
#include "checker/hunt/plan.h"
#include "checker/judge/names.h"
#include "report/report.h"
#include "report/text.h"

#define UNSEEN_NAMED 8	   /* of cells that were expected to break; of more their number is told */
#define NARROW_OF    10000 /* a break in fewer than one in so many states is narrow */

/* --- what needs attention --- */

static bool is_told(const struct report *r, unsigned config, unsigned k)
{
	for (unsigned i = 0; i < config; i++)
		if (same_surprise(r, i, config, k))
			return true;
	return false;
}

/* What a text tells of a surprise: where it is, and the first way of breaking it. */
static json_t *surprise_json(const struct report *r, const json_t *tree, unsigned config,
			     unsigned k)
{
	const struct campaign *c = r->campaign;
	json_t *cell = report_cell_of(r, tree, config, k), *also = json_array();
	const json_t *cases = json_object_get(json_object_get(cell, "shown"), "cases");
	char name[REPORT_NAME];
	config_name(&c->config[config], name, sizeof(name));
	for (unsigned i = config + 1; i < c->configs; i++)
		if (same_surprise(r, config, i, k))
			json_array_append_new(also, json_string(c->config[i].name));
	return json_pack("{s:s, s:s, s:O, s:o, s:O*, s:i}", "name", name, "contracts",
			 contract_name(k), "cell", cell, "also", also, "first",
			 json_array_get(cases, 0), "more",
			 r->cell[config][k].cases ? (int)r->cell[config][k].cases - 1 : 0);
}

/* What holds on some hardware alone: each of its contracts, and how to say that it is meant so. */
static json_t *holds_on_json(const struct report *r, const json_t *tree, const struct holds_on *h,
			     unsigned k)
{
	char contracts[CONTRACT_LIST], row[CONTRACT_LIST], condition[REPORT_ROWS];
	json_t *one = surprise_json(r, tree, h->home, k), *of = json_array();
	for (unsigned other = k; other < TM_CONTRACTS; other++)
		if (h->contracts & TM_BIT(other))
			json_array_append_new(of, surprise_json(r, tree, h->home, other));
	holds_on_condition(h, condition);
	json_object_set_new(
		one, "contracts",
		json_string(contract_list(h->contracts, ", ", contracts, sizeof(contracts))));
	json_object_set_new(one, "holds",
			    json_pack("{s:s, s:s, s:s, s:o}", "rows", h->rows, "row",
				      contract_list(h->contracts, ",", row, sizeof(row)),
				      "condition", condition, "of", of));
	return one;
}

static json_t *attention_json(const struct report *r, const json_t *tree)
{
	json_t *all = json_array();
	struct holds_on holds;
	for (unsigned i = 0; i < r->campaign->configs * TM_CONTRACTS; i++) {
		unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		if (!r->cell[config][k].surprise)
			continue;
		if (!report_holds_on(r, config, k, &holds)) {
			if (!is_told(r, config, k))
				json_array_append_new(all, surprise_json(r, tree, config, k));
		} else if (holds.first) {
			json_array_append_new(all, holds_on_json(r, tree, &holds, k));
		}
	}
	return all;
}

/* How many of the surprises are told of; others are the same under other hardware. */
static unsigned count_told(const struct report *r)
{
	struct holds_on holds;
	unsigned told = 0;
	for (unsigned i = 0; i < r->campaign->configs * TM_CONTRACTS; i++)
		if (r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].surprise)
			told += !report_holds_on(r, i / TM_CONTRACTS, i % TM_CONTRACTS, &holds) ||
				holds.first;
	return told;
}

/* --- how to see more --- */

/* The shapes in which all is as expected; NULL: there are no shapes. */
static json_t *shapes_json(const struct report *r)
{
	const struct campaign *c = r->campaign;
	int shapes = 0, whole = 0, begun = 0;
	uint64_t states = 0;
	for (unsigned i = 0; i < c->configs; i++) {
		shapes += c->config[i].shape;
		if (!report_in_short(r, i))
			continue;
		bool done = report_is_whole(r, i);
		whole += done;
		begun += !done && campaign_done(c, i);
		states += c->total[i].states;
	}
	return shapes ? json_pack("{s:i, s:i, s:i, s:I}", "shapes", shapes, "whole", whole, "begun",
				  begun, "states", (json_int_t)states)
		      : NULL;
}

static unsigned size_of(const struct report_case *one)
{
	return one->operations + one->deviations;
}

/* What breaks as expected, with the smallest trace; of promises first. */
static json_t *example_json(const struct report *r)
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
	return best ? json_pack("{s:s, s:s, s:o}", "store",
				c->config[at / TM_CONTRACTS].store->name, "contract",
				contract_name(at % TM_CONTRACTS), "trace", json_text(best->trace))
		    : NULL;
}

/* What is expected to break, and did not with so small a budget; NULL: nothing. */
static json_t *unseen_json(const struct report *r)
{
	const struct campaign *c = r->campaign;
	json_t *of = json_array();
	char name[REPORT_NAME];
	int left = 0;
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++) {
		if (!r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].unseen)
			continue;
		config_name(&c->config[i / TM_CONTRACTS], name, sizeof(name));
		if (json_array_size(of) == UNSEEN_NAMED)
			left++;
		else
			json_array_append_new(
				of, json_sprintf("%s %s", name, contract_name(i % TM_CONTRACTS)));
	}
	if (!json_array_size(of)) {
		json_decref(of);
		return NULL;
	}
	return json_pack("{s:o, s:i}", "of", of, "left", left);
}

/* How a cell was found, or not, that another seed could have judged otherwise. False: it is not
 * so. */
static bool is_narrow(const struct report *r, unsigned config, unsigned k, char *text, size_t n)
{
	const struct campaign *c = r->campaign;
	const struct campaign_cell *cell = &c->cell[config][k];
	unsigned parts;
	const uint64_t of = explore_judged(&c->total[config], c->config[config].store->servers, k,
					   &parts);
	const struct report_cell *judged = &r->cell[config][k];
	const bool surprise = judged->surprise;
	if (campaign_searches(c, config))
		return false; /* no seed tells otherwise */
	/* What breaks by design besides is no part of what was found. */
	const uint64_t states = judged->strange ? cell->strange_states : cell->broken_states;
	const uint64_t limit = judged->often ? known_limit(cell->recorded) : 0;
	if (surprise && judged->often && cell->often_runs * NEAR_PARTS <= limit * (NEAR_PARTS + 1))
		snprintf(text, n, "%" PRIu64 " runs for one cause, told above %" PRIu64,
			 cell->often_runs, limit);
	else if (surprise && cell->broken && states * NARROW_OF < of)
		snprintf(text, n, "in %" PRIu64 " of %" PRIu64, states, of);
	else if (!surprise && cell->nearly_limit && c->options.shares)
		snprintf(text, n, "%" PRIu64 " runs for one cause, told from %" PRIu64,
			 cell->nearly_runs, cell->nearly_limit);
	else
		return false;
	return true;
}

/* Those, and the first one's store; NULL: there is none. */
static json_t *narrow_json(const struct report *r)
{
	const struct campaign *c = r->campaign;
	const char *store = NULL;
	json_t *of = json_array();
	char name[REPORT_NAME], how[100];
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++) {
		const unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		if (!is_narrow(r, config, k, how, sizeof(how)) ||
		    json_array_size(of) == UNSEEN_NAMED)
			continue;
		store = store ? store : c->config[config].store->name;
		config_name(&c->config[config], name, sizeof(name));
		json_array_append_new(of, json_sprintf("%s %s (%s)", name, contract_name(k), how));
	}
	if (!store) {
		json_decref(of);
		return NULL;
	}
	return json_pack("{s:o, s:s, s:I}", "of", of, "store", store, "seed",
			 (json_int_t)c->options.seed + 1);
}

void report_summary(const struct report *r, const json_t *tree)
{
	const struct campaign *c = r->campaign;
	uint64_t unsure = 0;
	for (unsigned i = 0; i < c->configs; i++)
		unsure += c->total[i].unsure;
	json_t *all = json_pack(
		"{s:o*, s:o, s:i, s:i, s:b, s:i, s:i, s:i, s:O, s:I, s:b, s:o*, s:o*, s:o*}",
		"shapes", shapes_json(r), "attention", attention_json(r, tree), "told",
		(int)count_told(r), "surprises", (int)r->surprises, "folded",
		count_told(r) < r->surprises, "undone", (int)r->undone, "open", (int)r->open,
		"configs", (int)c->configs, "bounds", json_object_get(tree, "bounds"), "unsure",
		(json_int_t)unsure, "traces_asked", r->out != NULL, "example",
		r->surprises ? NULL : example_json(r), "unseen", unseen_json(r), "narrow",
		narrow_json(r));
	text_print(all, "crashtest_summary");
	json_decref(all);
	report_end(r);
}
