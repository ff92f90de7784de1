/* SPDX-License-Identifier: BSD-3-Clause */
/* What each place of a store is good for, and what the store's ablation.txt says of it. */
#include "report/hunt/hunt_report.h"
#include <string.h>
#include "checker/judge/names.h"
#include "report/report.h"
#include "report/terminal.h"

static unsigned reaching(const struct ablation *a, unsigned at, unsigned lane)
{
	unsigned n = 0;
	for (unsigned w = 0; w < a->workloads; w++)
		n += ablate_reaches(a, lane, w, at);
	return n;
}

static json_t *lanes_json(const struct ablation *a, const struct ablate_result *r)
{
	json_t *list = json_array();
	for (unsigned lane = 0; lane < a->lanes; lane++)
		if (r->lanes & 1u << lane)
			json_array_append_new(list, json_string(a->lane[lane].name));
	return list;
}

/* What the campaign showed that the store's list names; NULL: it names none. */
static json_t *rare_json(const struct ablated *p)
{
	const struct ablate_row *row = p->row;
	const struct ablate_result *r = &p->rare;
	if (!row || row->verdict != ABLATE_RARE)
		return NULL;
	return json_pack("{s:b, s:s, s:s, s:s, s:s, s:I, s:I, s:o}", "broken", r->broken,
			 "contract", contract_name(row->contract), "config", row->config,
			 "workload", row->workload, "how", r->text, "runs", (json_int_t)r->runs,
			 "states", (json_int_t)r->states, "trace", json_text(r->trace));
}

/* Where is it needed? */
static const char *needed(const struct ablate_result *r)
{
	return r->broken    ? (r->lane ? "elsewhere" : "here")
	       : r->reached ? "nowhere"
			    : "not reached";
}

static json_t *place_json(const struct ablation *a, unsigned at)
{
	const struct ablated *p = &a->place[at];
	const struct ablate_result *r = &p->result;
	/* "FILE:FUNCTION:CALL" */
	const char *function = strchr(p->place.name, ':') + 1, *call = strchr(function, ':') + 1;
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s%, s:s, s:s, s:b, s:i, s:o, s:s, s:s, s:s, "
			 "s:i, s:i, s:o, s:s, s:I, s:I, s:s, s:s, s:b, s:o*}",
			 "store", a->base->store->name, "variant", a->base->variant, "place",
			 p->place.name, "where", p->place.where, "kind", place_kinds[p->place.kind],
			 "function", function, (size_t)(call - function - 1), "call", call,
			 "needed", needed(r), "reached", r->reached, "workloads_reaching",
			 (int)reaching(a, at, 0), "broken_with", lanes_json(a, r), "contract",
			 r->broken && r->contract < TM_CONTRACTS ? contract_name(r->contract) : "",
			 "workload", r->broken ? a->workload[r->workload].name : "", "how", r->text,
			 "operations", (int)r->operations, "deviations", (int)r->deviations,
			 "trace", json_text(r->trace), "hardware",
			 r->broken ? a->lane[r->lane].name : "", "runs", (json_int_t)r->runs,
			 "states", (json_int_t)r->states, "verdict",
			 p->row ? ablate_verdict_name(p->row->verdict) : "", "why",
			 p->row ? p->row->why : "", "surprise", p->surprise, "rare", rare_json(p));
}

void ablate_conclude(const struct ablation *a, struct conclusion *c)
{
	if (a->surprises)
		conclude(c, EXIT_BROKEN, "%u place%s not as the store's ablation.txt says.",
			 a->surprises, a->surprises == 1 ? " is" : "s are");
	else
		conclude(c, EXIT_HELD, "Every place that breaks nothing is explained.");
}

static json_t *shown_json(const struct ablation *a)
{
	int here = 0, elsewhere = 0, unreached = 0;
	uint64_t runs = 0, states = 0;
	json_t *vanished = json_array();
	for (unsigned i = 0; i < a->places; i++) {
		const struct ablate_result *r = &a->place[i].result;
		here += r->broken && !r->lane;
		elsewhere += r->broken && r->lane;
		unreached += !r->reached;
		runs += r->runs;
		states += r->states;
	}
	for (unsigned i = 0; i < a->list.n && a->vanished; i++)
		if (!ablate_list_place(a, &a->list.row[i]))
			json_array_append_new(vanished, json_string(a->list.row[i].place));
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:o}", "places", (int)a->places,
			 "here", here, "elsewhere", elsewhere, "unreached", unreached, "nowhere",
			 (int)a->places - here - elsewhere - unreached, "runs", (json_int_t)runs,
			 "states", (json_int_t)states, "vanished", vanished);
}

/* A case for each place. */
static void add_case(json_t *all, const struct ablation *a, const struct ablated *p)
{
	const char *trace = *p->rare.trace ? p->rare.trace : p->result.trace;
	char suite[REPORT_NAME];
	config_name(a->base, suite, sizeof(suite));
	tree_case(all, p->surprise ? CASE_FAILED : CASE_PASSED, suite, p->place.name,
		  p->surprise ? "%s: the store's ablation.txt says %s%s%s%s%s" : NULL,
		  p->result.broken ? p->result.text : "nothing breaks without it",
		  p->row ? ablate_verdict_name(p->row->verdict) : "nothing of it",
		  *trace ? "\n" : "", *trace ? program : "", *trace ? " replay " : "", trace);
}

json_t *ablate_tree(const struct ablation *a)
{
	json_t *places = json_array(),
	       *all = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o}", "store", a->base->store->name,
				"variant", a->base->variant, "config", a->base->name, "workloads",
				(int)a->workloads, "places", places, "shown", shown_json(a));
	for (unsigned i = 0; i < a->places; i++) {
		json_array_append_new(places, place_json(a, i));
		add_case(all, a, &a->place[i]);
	}
	return all;
}
