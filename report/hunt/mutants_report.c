/* SPDX-License-Identifier: BSD-3-Clause */
/* Which seeded bugs were found, and how soon. */
#include "report/hunt/hunt_report.h"
#include <stdlib.h>
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "report/report.h"
#include "core/text/text.h"
#include "report/terminal.h"

static const char *const kinds[] = {"store", "model", "checker", "control"};

static int by_seconds(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static json_t *mutant_json(const struct mutant *m, const struct mutant_result *r, bool done)
{
	const struct expect_canary *c = m->canary;
	char set[64], anyway[64];
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:b, s:i, "
		"s:i, s:s, s:b, s:o*, s:s, s:b, s:I}",
		"kind", kinds[m->kind], "part", m->part, "name", m->name, "breaks",
		contract_list(m->breaks, " ", set, sizeof(set)), "found", r->found, "breaks_anyway",
		contract_list(r->anyway, " ", anyway, sizeof(anyway)), "contract",
		r->contract < TM_CONTRACTS ? contract_name(r->contract) : "", "store", r->store,
		"variant", r->variant, "hardware", r->hardware, "workload", r->workload, "runs",
		(json_int_t)r->runs, "states", (json_int_t)r->states, "seconds", r->seconds,
		"shrunk", r->shrunk, "operations", (int)r->operations, "deviations",
		(int)r->deviations, "how", r->text, "complete", done, "canary",
		c ? json_pack("{s:s, s:s, s:s}", "store", c->store, "variant", c->variant, "knob",
			      c->knob ? c->knob : "")
		  : NULL,
		"with",
		m->kind == MUTANT_CONTROL && !m->ack_early && m->store ? "ack_early=off" : "",
		"of_store", m->store != NULL, "run", (json_int_t)r->run);
}

void mutants_conclude(const struct mutants_run *r, struct conclusion *c)
{
	if (r->missed || r->dirty || r->unsure)
		conclude(c, EXIT_BROKEN,
			 "%u bug%s not found; %u control%s; %u trace%s could not be shrunk, or did "
			 "not replay.",
			 r->missed, r->missed == 1 ? " is" : "s are", r->dirty,
			 r->dirty == 1 ? " breaks" : "s break", r->unsure, plural(r->unsure));
	else if (r->untold)
		conclude(c, EXIT_UNSURE,
			 "Of %u bug%s nobody can tell: it breaks what breaks without it, too. "
			 "--knob names hardware on which the store keeps the contract; or record "
			 "for which causes it breaks it (docs/cli.md).",
			 r->untold, plural(r->untold));
	else
		conclude(c, EXIT_HELD, "Every bug is found, and the controls are clean.");
}

/* How many are told of each kind, how many bugs were found, and how soon. */
static json_t *shown_json(const struct mutants_run *r)
{
	double seconds[MUTANTS_MAX];
	unsigned n = 0, told[4] = {0}, slowest = 0;
	for (unsigned i = 0; i < r->mutants; i++) {
		const struct mutant_result *result = &r->answer[i].result;
		const enum mutant_kind kind = r->mutant[i].kind;
		told[kind] += r->done[i];
		if (!r->done[i] || !result->found || kind == MUTANT_CONTROL ||
		    kind == MUTANT_CHECKER)
			continue;
		if (!n || result->seconds > r->answer[slowest].result.seconds)
			slowest = i;
		seconds[n++] = result->seconds;
	}
	const unsigned bugs = told[MUTANT_STORE] + told[MUTANT_MODEL] + told[MUTANT_CHECKER];
	json_t *all = json_pack("{s:i, s:i, s:i, s:i}", "found",
				(int)(bugs - r->missed - r->untold), "bugs", (int)bugs, "untold",
				(int)r->untold, "unsure", (int)r->unsure);
	for (unsigned k = 0; k < 4; k++)
		json_object_set_new(all, kinds[k], json_integer(told[k]));
	if (!n)
		return all;
	qsort(seconds, n, sizeof(seconds[0]), by_seconds);
	/* One field, as it depends on the machine. */
	json_object_set_new(
		all, "seconds",
		json_sprintf("median %.3f s, slowest %.1f s (%s %s)",
			     n % 2 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2,
			     seconds[n - 1], r->mutant[slowest].part, r->mutant[slowest].name));
	return all;
}

static void add_case(json_t *all, const struct mutant *m, const struct mutant_result *r, bool done)
{
	const bool control = m->kind == MUTANT_CONTROL;
	char name[128];
	snprintf(name, sizeof(name), "%s %s", m->part, m->name);
	if (!done || r->anyway)
		tree_case(all, CASE_SKIPPED, kinds[m->kind], name, "%s",
			  done ? "what it breaks breaks without it, too"
			       : "left off before the end");
	else if (r->found != control)
		tree_case(all, CASE_PASSED, kinds[m->kind], name, NULL);
	else
		tree_case(all, CASE_FAILED, kinds[m->kind], name, "%s\n%s mutants %s",
			  control ? r->text : "not found", program, control ? m->part : m->name);
}

json_t *mutants_tree(const struct mutants_run *r)
{
	json_t *bugs = json_array(),
	       *all = json_pack("{s:o, s:o}", "bugs", bugs, "shown", shown_json(r));
	for (unsigned i = 0; i < r->mutants; i++)
		json_array_append_new(bugs,
				      mutant_json(&r->mutant[i], &r->answer[i].result, r->done[i]));
	/* Cases of a suite, which is a kind, stand together. */
	for (unsigned i = 0; i < 4 * r->mutants; i++)
		if (r->mutant[i % r->mutants].kind == (enum mutant_kind)(i / r->mutants))
			add_case(all, &r->mutant[i % r->mutants], &r->answer[i % r->mutants].result,
				 r->done[i % r->mutants]);
	return all;
}
