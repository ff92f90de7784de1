/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `tidemark claims` found, for people and for machines: for each claim what it says, and for
 * each of its cases what was expected, what was measured, and how to replay what broke.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/hunt/hunt_report.h"
#include "report/terminal.h"
#include "report/report.h"
#include "core/text/text.h"
#include "report/text.h"

static void expected_text(const struct claim_case *test, char *buf, size_t n)
{
	char contracts[CONTRACT_LIST];
	bool several = test->contracts & (test->contracts - 1);
	contract_list(test->contracts, ", ", contracts, sizeof(contracts));
	snprintf(buf, n, "%s %s", contracts,
		 test->kind == CLAIM_PASS   ? (several ? "hold" : "holds")
		 : test->kind == CLAIM_FAIL ? (several ? "break: at least one" : "breaks")
					    : "counted");
}

static void measured_text(const struct run_case *c, const struct report_case *one, char *buf,
			  size_t n)
{
	const struct claim_case *test = c->test;
	const struct claim_result *m = &c->result;
	char contracts[CONTRACT_LIST];
	contract_list(test->contracts, ", ", contracts, sizeof(contracts));
	if (m->error)
		snprintf(buf, n, "cannot be run: %s", m->why);
	else if (test->kind == CLAIM_COUNT)
		snprintf(buf, n, "%s broken in %" PRIu64 " of %" PRIu64 " state%s (%.1f %%)",
			 contracts, m->broken_states, m->states, plural(m->states),
			 m->states ? 100.0 * (double)m->broken_states / (double)m->states : 0);
	else if (m->broken)
		snprintf(buf, n, "%s breaks in workload %s, run %" PRIu64 "%s%s",
			 contract_name(m->contract), test->workload[m->workload].name, m->run,
			 one->text[0] ? ": " : "", one->text);
	else
		snprintf(buf, n, "no break in %" PRIu64 " state%s of %" PRIu64 " run%s%s",
			 m->states, plural(m->states), m->runs, plural(m->runs),
			 m->part ? "; not the whole budget" : "");
}

static const char *const verdicts[] = {"as expected", "differs", "could not tell"};

/* A case, of which nothing is measured yet. */
static json_t *test_json(const struct claim_case *test)
{
	static const char *const kind[] = {"pass", "fail", "count"};
	json_t *workloads = json_array(), *contracts = json_array();
	char expected[128];
	expected_text(test, expected, sizeof(expected));
	for (unsigned w = 0; w < test->workloads; w++)
		json_array_append_new(workloads, json_string(test->workload[w].name));
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (test->contracts & TM_BIT(k))
			json_array_append_new(contracts, json_string(contract_name(k)));
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:s, s:s, s:I}", "store",
			 test->config.store->name, "variant", test->config.variant, "config",
			 test->config.name, "workloads", workloads, "contracts", contracts,
			 "expected", kind[test->kind], "expects", expected, "runs",
			 (json_int_t)test->runs);
}

static json_t *claim_json(const struct claim *claim, json_t *cases)
{
	return json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:o}", "id", claim->id, "id_is_long",
			 strlen(claim->id) >= 8, "source", claim->source, "says", claim->says,
			 "note", claim->note ? claim->note : "", "open",
			 claim->open ? claim->open : "", "cases", cases);
}

static json_t *case_json(const struct run_case *c, const struct report_case *one)
{
	json_t *all = test_json(c->test);
	char measured[1024];
	measured_text(c, one, measured, sizeof(measured));
	json_object_update_new(
		all,
		json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:{s:s, s:i}, s:i, s:i, s:b}",
			  "verdict", verdicts[claim_judge(c->test, &c->result)], "broken",
			  c->result.broken ? contract_name(c->result.contract) : "", "measured",
			  measured, "states", (json_int_t)c->result.states, "broken_states",
			  (json_int_t)c->result.broken_states, "runs", (json_int_t)c->result.runs,
			  "trace", json_text(one->trace), "shown", "file", c->test->file, "line",
			  (int)c->test->line, "operations", (int)one->operations, "deviations",
			  (int)one->deviations, "whole", one->whole));
	return all;
}

/* Of a claim's cases, each by its number. */
static void add_case(json_t *all, const struct run_case *c, const struct report_case *one)
{
	const enum claim_verdict v = claim_judge(c->test, &c->result);
	char measured[1024], name[32];
	measured_text(c, one, measured, sizeof(measured));
	snprintf(name, sizeof(name), "case %u", c->number);
	tree_case(all,
		  v == CLAIM_AS_EXPECTED ? CASE_PASSED
		  : v == CLAIM_DIFFERS	 ? CASE_FAILED
					 : CASE_SKIPPED,
		  c->claim->id, name, v == CLAIM_AS_EXPECTED ? NULL : "%s%s%s%s%s", measured,
		  one->trace ? "\n" : "", one->trace ? program : "", one->trace ? " replay " : "",
		  one->trace ? one->trace : "");
}

static void count_cases(const struct claims_run *run, unsigned count[3])
{
	for (unsigned i = 0; i < run->n; i++)
		count[claim_judge(run->cases[i].test, &run->cases[i].result)]++;
}

void claims_conclude(const struct claims_report *r, struct conclusion *c)
{
	const struct claims_run *run = r->run;
	unsigned count[3] = {0};
	count_cases(run, count);
	if (count[CLAIM_DIFFERS])
		conclude(c, EXIT_BROKEN, "%u of %u cases differ%s from what is expected.",
			 count[CLAIM_DIFFERS], run->n, count[CLAIM_DIFFERS] == 1 ? "s" : "");
	else if (count[CLAIM_UNSURE])
		conclude(c, EXIT_UNSURE,
			 "%u of %u cases could not be told; the others are as expected.",
			 count[CLAIM_UNSURE], run->n);
	else
		conclude(c, EXIT_HELD, "Every case is as expected.");
}

json_t *claims_tree(const struct claims_report *r)
{
	const struct claims_run *run = r->run;
	unsigned count[3] = {0}, open = 0;
	json_t *list = json_array(), *all = json_object();
	for (unsigned i = 0, at = 0; i < run->claims; i++) {
		json_t *cases = json_array();
		for (unsigned k = 0; k < run->claim[i]->tests; k++, at++) {
			json_array_append_new(cases, case_json(&run->cases[at], &r->one[at]));
			add_case(all, &run->cases[at], &r->one[at]);
		}
		json_array_append_new(list, claim_json(run->claim[i], cases));
		open += run->claim[i]->open != NULL;
	}
	count_cases(run, count);
	json_object_update_new(
		all, json_pack("{s:o, s:b, s:f, s:I, s:i, s:{s:i, s:i, s:i, s:i, s:i, s:i, s:I}}",
			       "claims", list, "complete", run->done == run->units, "seconds",
			       r->seconds, "seed", (json_int_t)run->budget.seed, "jobs",
			       (int)run->how.jobs, "shown", "claims", (int)run->claims, "cases",
			       (int)run->n, "as_expected", (int)count[CLAIM_AS_EXPECTED], "differ",
			       (int)count[CLAIM_DIFFERS], "unsure", (int)count[CLAIM_UNSURE],
			       "open", (int)open, "states", (json_int_t)run->states));
	return all;
}

void claims_list_print(const struct claim *const *claim, unsigned claims)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < claims; i++) {
		json_t *cases = json_array();
		for (unsigned k = 0; k < claim[i]->tests; k++)
			json_array_append_new(cases, test_json(&claim[i]->test[k]));
		json_array_append_new(list, claim_json(claim[i], cases));
	}
	json_t *all = json_pack("{s:o}", "claims", list);
	text_print(all, "claims_list");
	json_decref(all);
}

/* --- knobs --- */

/*
 * What values of knobs change, as the stores' claims.txt have it, and whether it is so.
 */
static void print_knob(const struct claim_knob *line, const struct knob_result *result)
{
	const struct campaign_config *cfg = &line->test.config;
	const bool variant = strcmp(cfg->variant, "default") != 0;
	json_t *all = json_pack(
		"{s:s, s:s, s:b, s:b, s:s, s:s, s:I, s:b, s:I, s:o, s:b, s:s, s:i}", "store",
		line->store ? line->store->name : "hardware", "knob", line->knob, "with",
		line->kind == KNOB_BREAKS, "broke", result->broke, "contract",
		contract_name(result->contract), "workload", result->workload, "run",
		(json_int_t)result->run, "held", result->held, "held_runs",
		(json_int_t)result->held_runs, "where",
		json_sprintf("%s%s%s %s", cfg->store->name, variant ? "/" : "",
			     variant ? cfg->variant : "", cfg->name),
		"differs", !result->held, "file", line->file, "line", (int)line->line);
	text_print(all, "claims_knob");
	json_decref(all);
}

/* How many are otherwise than the file says. */
unsigned sensitivity_print(const struct sensitivity *f)
{
	unsigned differ = 0;
	for (unsigned i = 0; i < f->claims->knobs; i++) {
		print_knob(&f->claims->knob[i], &f->result[i]);
		differ += !f->result[i].held;
	}
	printf("\n%u of %u lines about knobs differ\n", differ, f->claims->knobs);
	return differ;
}
