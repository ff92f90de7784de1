/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each place of a store is good for. Three lists: places without which something breaks, with
 * the trace that shows it; places that only other hardware needs, or none; places that no workload
 * reaches.
 */
#include "report/hunt/ablate_report.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/report.h"
#include "report/terminal.h"
#include "core/text/text.h"

#define INDENT 8

/* --- for people --- */

static bool needed_here(const struct ablated *p)
{
	return p->result.broken && !p->result.lane;
}

/* "core/stores/erda/log.c:41  pmem_persist in log_take" */
static void print_place(const struct ablated *p)
{
	const char *function = strchr(p->place.name, ':') + 1, *call = strchr(function, ':') + 1;
	printf("  %-36s %s in %.*s\n", p->place.where, call, (int)(call - function - 1), function);
}

/* "KEEP breaks in workload wc: how (3 operations, 2 deviations)" */
static void print_break(const struct ablation *a, const struct ablated *p)
{
	const struct ablate_result *r = &p->result;
	char text[600];
	if (r->contract == TM_CONTRACTS) {
		snprintf(text, sizeof(text), "workload %s: %s", a->workload[r->workload].name,
			 r->text);
		print_indented(INDENT, text);
		return;
	}
	snprintf(text, sizeof(text), "%s, workload %s: %s (%u operation%s, %u deviation%s)",
		 contract_name(r->contract), a->workload[r->workload].name, r->text, r->operations,
		 plural(r->operations), r->deviations, plural(r->deviations));
	print_indented(INDENT, text);
	print_replay_line(INDENT, r->trace);
}

static unsigned reaching(const struct ablation *a, unsigned at, unsigned lane)
{
	unsigned n = 0;
	for (unsigned w = 0; w < a->workloads; w++)
		n += ablate_reaches(a, lane, w, at);
	return n;
}

/* Where else something breaks: "needed with ddio=off, line_torn=on". */
static void print_elsewhere(const struct ablation *a, const struct ablated *p)
{
	char text[600] = "needed with";
	size_t at = strlen(text);
	for (unsigned lane = 1; lane < a->lanes; lane++)
		if (p->result.lanes & 1u << lane)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %s",
					       at > strlen("needed with") ? "," : "",
					       a->lane[lane].name);
	print_indented(INDENT, text);
	print_break(a, p);
}

/* What the campaign showed that the store's list names. */
static void print_rare(const struct ablated *p)
{
	const struct ablate_row *row = p->row;
	const struct ablate_result *r = &p->rare;
	char text[600];
	if (!row || row->verdict != ABLATE_RARE)
		return;
	if (r->broken)
		snprintf(text, sizeof(text), "with more runs, %s, %s, workload %s: %s",
			 contract_name(row->contract), row->config, row->workload, r->text);
	else
		snprintf(text, sizeof(text),
			 "nothing with more runs either, %s, workload %s, in %" PRIu64
			 " run%s and %" PRIu64 " state%s",
			 row->config, row->workload, r->runs, plural(r->runs), r->states,
			 plural(r->states));
	print_indented(INDENT, text);
	print_replay_line(INDENT, r->trace);
}

static void print_row(const struct ablated *p)
{
	char text[1000];
	if (!p->row) {
		printf("%*s%snot explained%s: the store's ablation.txt says nothing of %s\n",
		       INDENT, "", paint(RED), paint(PLAIN), p->place.name);
		return;
	}
	if (p->surprise)
		printf("%*s%sno longer so%s: the store's ablation.txt says of %s\n", INDENT, "",
		       paint(RED), paint(PLAIN), p->place.name);
	snprintf(text, sizeof(text), "%s: %s", ablate_verdict_name(p->row->verdict), p->row->why);
	print_indented(INDENT, text);
}

static void print_needed(const struct ablation *a)
{
	printf("%splaces without which something breaks%s\n", paint(BOLD), paint(PLAIN));
	for (unsigned i = 0; i < a->places; i++) {
		const struct ablated *p = &a->place[i];
		if (!needed_here(p))
			continue;
		print_place(p);
		print_break(a, p);
		if (p->row)
			print_row(p);
	}
}

static void print_unneeded(const struct ablation *a)
{
	printf("\n%splaces without which nothing breaks%s\n", paint(BOLD), paint(PLAIN));
	for (unsigned i = 0; i < a->places; i++) {
		const struct ablated *p = &a->place[i];
		if (needed_here(p) || !p->result.reached)
			continue;
		print_place(p);
		if (p->result.broken)
			print_elsewhere(a, p);
		else
			printf("%*sreached by %u of %u workload%s; nothing, in %" PRIu64
			       " run%s and %" PRIu64 " state%s\n",
			       INDENT, "", reaching(a, i, 0), a->workloads, plural(a->workloads),
			       p->result.runs, plural(p->result.runs), p->result.states,
			       plural(p->result.states));
		print_rare(p);
		print_row(p);
	}
	printf("\n%splaces that no workload reaches%s\n", paint(BOLD), paint(PLAIN));
	for (unsigned i = 0; i < a->places; i++) {
		if (a->place[i].result.reached)
			continue;
		print_place(&a->place[i]);
		print_row(&a->place[i]);
	}
}

static void print_sum(const struct ablation *a)
{
	unsigned needed = 0, elsewhere = 0, unreached = 0;
	uint64_t runs = 0, states = 0;
	for (unsigned i = 0; i < a->places; i++) {
		const struct ablated *p = &a->place[i];
		needed += needed_here(p);
		elsewhere += p->result.broken && p->result.lane;
		unreached += !p->result.reached;
		runs += p->result.runs;
		states += p->result.states;
	}
	printf("\n%u place%s: %u needed, %u needed by other hardware only, %u not needed, %u not "
	       "reached; %" PRIu64 " run%s, %" PRIu64 " state%s\n",
	       a->places, plural(a->places), needed, elsewhere,
	       a->places - needed - elsewhere - unreached, unreached, runs, plural(runs), states,
	       plural(states));
	for (unsigned i = 0; i < a->list.n && a->vanished; i++)
		if (!ablate_list_place(a, &a->list.row[i]))
			printf("ablation.txt speaks of %s; there is no such place (any more)\n",
			       a->list.row[i].place);
}

void ablate_print(const struct ablation *a)
{
	const struct campaign_config *base = a->base;
	printf("%s%s%s", paint(BOLD), base->store->name, paint(PLAIN));
	if (strcmp(base->variant, "default"))
		printf("/%s", base->variant);
	printf("%s%s%s\n\n", strcmp(base->name, "default") ? " (" : "",
	       strcmp(base->name, "default") ? base->name : "",
	       strcmp(base->name, "default") ? ")" : "");
	print_needed(a);
	print_unneeded(a);
	print_sum(a);
}

/* --- for machines --- */

static json_t *lanes_json(const struct ablation *a, const struct ablate_result *r)
{
	json_t *list = json_array();
	for (unsigned lane = 0; lane < a->lanes; lane++)
		if (r->lanes & 1u << lane)
			json_array_append_new(list, json_string(a->lane[lane].name));
	return list;
}

static json_t *place_json(const struct ablation *a, unsigned at)
{
	const struct ablated *p = &a->place[at];
	const struct ablate_result *r = &p->result;
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:b, s:i, s:o, s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:I, "
		"s:I, s:s, s:s, s:b}",
		"store", a->base->store->name, "variant", a->base->variant, "place", p->place.name,
		"where", p->place.where, "kind", place_kinds[p->place.kind], "reached", r->reached,
		"workloads_reaching", (int)reaching(a, at, 0), "broken_with", lanes_json(a, r),
		"contract",
		r->broken && r->contract < TM_CONTRACTS ? contract_name(r->contract) : "",
		"workload", r->broken ? a->workload[r->workload].name : "", "how", r->text,
		"operations", (int)r->operations, "deviations", (int)r->deviations, "trace",
		r->trace, "hardware", r->broken ? a->lane[r->lane].name : "", "runs",
		(json_int_t)r->runs, "states", (json_int_t)r->states, "verdict",
		p->row ? ablate_verdict_name(p->row->verdict) : "", "why",
		p->row ? p->row->why : "", "surprise", p->surprise);
}

void ablate_conclude(const struct ablation *a, struct conclusion *c)
{
	if (a->surprises)
		conclude(c, EXIT_BROKEN, "%u place%s not as the store's ablation.txt says.",
			 a->surprises, a->surprises == 1 ? " is" : "s are");
	else
		conclude(c, EXIT_HELD, "Every place that breaks nothing is explained.");
}

json_t *ablate_tree(const struct ablation *a)
{
	json_t *places = json_array(), *all = json_pack("{s:o}", "places", places);
	for (unsigned i = 0; i < a->places; i++)
		json_array_append_new(places, place_json(a, i));
	return all;
}
