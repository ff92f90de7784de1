/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `tidemark claims` found, for people and for machines: for each claim what it says, and for
 * each of its cases what was expected, what was measured, and how to replay what broke.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/hunt/claims_report.h"
#include "report/terminal.h"
#include "report/report.h"
#include "core/text/text.h"

#define INDENT 8

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

static const char *verdict_text(enum claim_verdict v)
{
	static const char *const text[] = {"as expected", "DIFFERS", "could not tell"};
	return text[v];
}

/* "erda/sure timeout=1ms: w-r w-w-r" */
static void case_text(const struct claim_case *test, char *buf, size_t n)
{
	const struct campaign_config *cfg = &test->config;
	bool plain = !strcmp(cfg->name, "default"), variant = strcmp(cfg->variant, "default");
	size_t at = (size_t)snprintf(buf, n, "%s%s%s%s%s:", cfg->store->name, variant ? "/" : "",
				     variant ? cfg->variant : "", plain ? "" : " ",
				     plain ? "" : cfg->name);
	for (unsigned w = 0; w < test->workloads; w++)
		at += (size_t)snprintf(buf + at, at < n ? n - at : 0, " %s",
				       test->workload[w].name);
}

static void print_field(const char *name, const char *text)
{
	printf("%*s%-9s ", INDENT + 2, "", name);
	print_wrapped(INDENT + 12, text);
}

static void print_heading(const struct claim *claim)
{
	char text[1024];
	snprintf(text, sizeof(text), "%s [%s]", claim->says, claim->source);
	printf("%-*s", INDENT, claim->id);
	if (strlen(claim->id) >= INDENT)
		printf("\n%*s", INDENT, "");
	print_wrapped(INDENT, text);
}

static void print_remarks(const struct claim *claim)
{
	const char *lead[] = {"note: ", "open: "}, *text[] = {claim->note, claim->open};
	for (unsigned i = 0; i < 2; i++) {
		if (!text[i])
			continue;
		char line[2048];
		snprintf(line, sizeof(line), "%s%s", lead[i], text[i]);
		print_indented(INDENT, line);
	}
}

static void print_case(const struct run_case *c, const struct report_case *one)
{
	enum claim_verdict v = claim_judge(c->test, &c->result);
	const char *colour = v == CLAIM_AS_EXPECTED ? GREEN : RED;
	char text[2048];
	case_text(c->test, text, sizeof(text));
	print_indented(INDENT, text);
	expected_text(c->test, text, sizeof(text));
	print_field("expected", text);
	measured_text(c, one, text, sizeof(text));
	print_field("measured", text);
	printf("%*s%s%s%s\n", INDENT + 2, "", paint(colour), verdict_text(v), paint(PLAIN));
	if (!one->trace)
		return;
	printf("%*s", INDENT + 2, "");
	report_case_replay(one);
}

void claims_print(const struct claims_report *r)
{
	const struct claims_run *run = r->run;
	unsigned at = 0, open = 0, count[3] = {0};
	for (unsigned i = 0; i < run->claims; i++) {
		print_heading(run->claim[i]);
		for (unsigned k = 0; k < run->claim[i]->tests; k++, at++) {
			print_case(&run->cases[at], &r->one[at]);
			count[claim_judge(run->cases[at].test, &run->cases[at].result)]++;
		}
		print_remarks(run->claim[i]);
		putchar('\n');
		open += run->claim[i]->open != NULL;
	}
	printf("%u claim%s, %u case%s: %u as expected, %u differ%s, %u could not be told; %u "
	       "claim%s "
	       "open, wholly or in part\n",
	       run->claims, plural(run->claims), run->n, plural(run->n), count[CLAIM_AS_EXPECTED],
	       count[CLAIM_DIFFERS], count[CLAIM_DIFFERS] == 1 ? "s" : "", count[CLAIM_UNSURE],
	       open, open == 1 ? " is" : "s are");
	printf("%" PRIu64 " state%s in %.1f s, %u job%s\n", run->states, plural(run->states),
	       r->seconds, run->jobs, plural(run->jobs));
	for (unsigned i = 0; i < run->n; i++) {
		enum claim_verdict v = claim_judge(run->cases[i].test, &run->cases[i].result);
		if (v != CLAIM_AS_EXPECTED)
			printf("%s:%u: %s: %s\n", run->cases[i].test->file,
			       run->cases[i].test->line, run->cases[i].claim->id, verdict_text(v));
	}
}

/* --- for machines --- */

static json_t *case_json(const struct run_case *c, const struct report_case *one)
{
	const struct claim_case *test = c->test;
	static const char *const kind[] = {"pass", "fail", "count"};
	static const char *const verdict[] = {"as expected", "differs", "could not tell"};
	json_t *workloads = json_array(), *contracts = json_array();
	char measured[1024];
	measured_text(c, one, measured, sizeof(measured));
	for (unsigned w = 0; w < test->workloads; w++)
		json_array_append_new(workloads, json_string(test->workload[w].name));
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (test->contracts & TM_BIT(k))
			json_array_append_new(contracts, json_string(contract_name(k)));
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s}",
			 "store", test->config.store->name, "variant", test->config.variant,
			 "config", test->config.name, "workloads", workloads, "contracts",
			 contracts, "expected", kind[test->kind], "verdict",
			 verdict[claim_judge(test, &c->result)], "broken",
			 c->result.broken ? contract_name(c->result.contract) : "", "measured",
			 measured, "states", (json_int_t)c->result.states, "broken_states",
			 (json_int_t)c->result.broken_states, "runs", (json_int_t)c->result.runs,
			 "trace", one->trace ? one->trace : "");
}

void claims_conclude(const struct claims_report *r, struct conclusion *c)
{
	const struct claims_run *run = r->run;
	unsigned count[3] = {0};
	for (unsigned i = 0; i < run->n; i++)
		count[claim_judge(run->cases[i].test, &run->cases[i].result)]++;
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
	json_t *list = json_array();
	for (unsigned i = 0, at = 0; i < run->claims; i++) {
		const struct claim *claim = run->claim[i];
		json_t *cases = json_array();
		for (unsigned k = 0; k < claim->tests; k++, at++)
			json_array_append_new(cases, case_json(&run->cases[at], &r->one[at]));
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "id", claim->id,
						"source", claim->source, "says", claim->says,
						"note", claim->note ? claim->note : "", "open",
						claim->open ? claim->open : "", "cases", cases));
	}
	return json_pack("{s:o, s:b, s:f, s:I, s:i}", "claims", list, "complete",
			 run->done == run->units, "seconds", r->seconds, "seed",
			 (json_int_t)run->budget.seed, "jobs", (int)run->jobs);
}

void claims_print_list(const struct claim *const *claim, unsigned claims)
{
	for (unsigned i = 0; i < claims; i++) {
		print_heading(claim[i]);
		for (unsigned k = 0; k < claim[i]->tests; k++) {
			const struct claim_case *test = &claim[i]->test[k];
			char text[2048], expected[128];
			case_text(test, text, sizeof(text));
			print_indented(INDENT, text);
			expected_text(test, expected, sizeof(expected));
			snprintf(text, sizeof(text), "%s; %u run%s of each workload", expected,
				 test->runs, plural(test->runs));
			print_field("expected", text);
		}
		print_remarks(claim[i]);
		putchar('\n');
	}
}
