/* SPDX-License-Identifier: BSD-3-Clause */
/* See examine_report.h. */
#include "report/live/examine_report.h"
#include <inttypes.h>
#include <stdio.h>
#include "checker/judge/names.h"
#include "report/report.h"

/* "--seed 5", "line 77 alone" */
static void name_subset(const struct exam_subset *s, char *buf, size_t n)
{
	if (s->kind == EXAM_SEED)
		snprintf(buf, n, "--seed %" PRIu64, s->number);
	else
		snprintf(buf, n, "line %" PRIu64 " %s", s->number,
			 s->kind == EXAM_ALONE ? "alone" : "missing");
}

static const char *verdict_word(const struct exam_cell *cell)
{
	return !cell->judged	     ? "not judged"
	       : cell->happened.keys ? "broken"
	       : cell->possible.keys ? "can break"
				     : "holds";
}

int exam_status(const struct cut *c, const struct exam *e)
{
	const unsigned watched = exam_watched(c->store.store);
	bool unsure = e->not_judged;

	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		if (!(watched & TM_BIT(k)))
			continue;
		if (e->cell[k].happened.keys || e->cell[k].possible.keys)
			return EXIT_BROKEN;
		unsure |= e->cell[k].unsure > 0;
	}
	return unsure ? EXIT_UNSURE : EXIT_HELD;
}

static json_t *break_json(const struct exam_break *b)
{
	char subset[64] = "";

	if (b->keys)
		name_subset(&b->subset, subset, sizeof(subset));
	return json_pack("{s:i, s:s, s:s}", "keys", (int)b->keys, "subset", subset, "how", b->text);
}

static const char *why_not_judged(unsigned contract)
{
	switch (contract) {
	case TM_OK:
		return "the recordings do not say what was injected";
	case TM_ATOM:
	case TM_SSER:
		return "the recordings have no transactions";
	case TM_DURN:
	case TM_FENCE:
		return "the recordings do not say which server failed";
	case TM_AGREE:
		return "there is the pool of one server at most";
	case TM_OWN:
		return "the recordings have no operations of the store's own";
	default:
		return CONTRACTS_BY_RUNNING & TM_BIT(contract) ? "there are no media"
							       : "it is about several keys";
	}
}

static json_t *cells_json(const struct cut *c, const struct exam *e)
{
	const unsigned watched = exam_watched(c->store.store);
	json_t *cells = json_array();

	for (unsigned k = 0; cells && k < TM_CONTRACTS; k++) {
		const struct exam_cell *cell = &e->cell[k];

		json_array_append_new(
			cells,
			json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:s, s:s, s:i, s:o, s:o}",
				  "store", c->store.store->name, "variant", c->store.variant,
				  "contract", contract_name(k), "config", "live", "promised",
				  !!(c->store.store->promises & TM_BIT(k)), "watched",
				  !!(watched & TM_BIT(k)), "of_keys",
				  !(CONTRACTS_BY_RUNNING & TM_BIT(k)), "verdict",
				  verdict_word(cell), "why", cell->judged ? "" : why_not_judged(k),
				  "unsure", (int)cell->unsure, "happened",
				  break_json(&cell->happened), "possible",
				  break_json(&cell->possible)));
	}
	return cells;
}

json_t *exam_tree(const struct crash_bundle *a, const struct exam *e)
{
	const struct cut *c = &a->cut;

	return json_pack(
		"{s:s, s:s, s:b, s:b, s:o, s:i, s:i, s:i, s:I, s:i, s:i, s:i, s:b, s:b, s:i, "
		"s:i, s:i, s:i, s:i, s:i, s:s, s:i, s:i, s:s, s:b}",
		"store", c->store.store->name, "variant", c->store.variant, "media",
		c->pool != NULL, "running", c->store.running, "cells", cells_json(c, e), "boot",
		(int)c->boot, "first_boot", (int)e->first, "boots", (int)(e->last - e->first + 1),
		"seed", (json_int_t)a->options.seed, "recordings", (int)c->recordings, "keys",
		(int)e->keys, "operations", (int)e->operations, "start_known",
		c->started || e->first <= 1, "cache", c->cached, "left_out", (int)e->left_out,
		"left_out_keys", (int)e->trimmed, "lines_in_flight", (int)e->lines,
		"lines_survived", (int)e->survived, "subsets", (int)e->images, "not_judged",
		(int)e->not_judged, "why_not", e->why_not, "whole", (int)e->torn.whole, "torn",
		(int)e->torn.torn, "torn_how", e->torn.text, "full", e->full);
}
