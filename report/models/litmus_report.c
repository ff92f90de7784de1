/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tidemark litmus prints of its tests, and writes for machines.
 *
 * For each test: the outcomes as a table, a column for each place that is observed; conditions with
 * their verdicts; the command that shows why one fails. An outcome that alone makes a
 * condition fail is marked with "!".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "report/terminal.h"
#include "core/text/text.h"
#include "report/models/litmus_report.h"
#include "report/report.h"
#include "report/text.h"

#define MOST_ROWS   64 /* of a table */
#define PLACE_NAME  (LITMUS_NAME + 16)
#define COUNT_WIDTH 9
#define CELL_WIDTH  9 /* of --configs */

static const char *const verdicts[] = {"holds", "does not hold", "could not tell"};

/* --- tables of outcomes --- */

static void value_print(uint64_t value, char *buf, size_t n)
{
	if (value > 9999999999)
		snprintf(buf, n, "0x%" PRIx64, value);
	else
		snprintf(buf, n, "%" PRIu64, value);
}

/* Does this outcome alone make a condition fail? */
static bool is_failure(const struct litmus_test *test, const struct litmus_outcome *o, bool crash)
{
	for (unsigned c = 0; c < test->conditions; c++) {
		const struct litmus_condition *condition = &test->condition[c];
		bool bad = condition->quantifier == LITMUS_NEVER;
		if (condition->crash == crash && condition->quantifier != LITMUS_EXISTS &&
		    litmus_holds(test, condition, o->value) == bad)
			return true;
	}
	return false;
}

/* The width of each column; 0: the place has none. False: there is no table. */
static bool table_widths(const struct litmus_test *test, const struct litmus_outcomes *o,
			 bool crash, unsigned *width)
{
	bool belongs[LITMUS_OBSERVED], any = false;
	char buf[PLACE_NAME];
	litmus_places(test, crash, belongs);
	for (unsigned p = 0; p < test->observeds; p++) {
		width[p] = 0;
		if (!belongs[p])
			continue;
		any = true;
		width[p] = (unsigned)litmus_place_print(test, &test->observed[p], buf, sizeof(buf));
		for (unsigned i = 0; i < o->n; i++) {
			value_print(o->outcome[i].value[p], buf, sizeof(buf));
			if (strlen(buf) > width[p])
				width[p] = (unsigned)strlen(buf);
		}
	}
	return any && o->n;
}

static void print_outcome(const struct litmus_test *test, const struct litmus_outcome *o,
			  bool crash, const unsigned *width)
{
	char buf[PLACE_NAME];
	printf("%c %*" PRIu64, is_failure(test, o, crash) ? '!' : ' ', COUNT_WIDTH, o->count);
	for (unsigned p = 0; p < test->observeds; p++) {
		if (!width[p])
			continue;
		value_print(o->value[p], buf, sizeof(buf));
		printf("  %*s", (int)width[p], buf);
	}
	putchar('\n');
}

static void print_table(const struct litmus_test *test, const struct litmus_outcomes *o, bool crash)
{
	unsigned width[LITMUS_OBSERVED], rows = o->n < MOST_ROWS ? o->n : MOST_ROWS;
	char buf[PLACE_NAME];
	if (!table_widths(test, o, crash, width))
		return;
	printf("  %*s", COUNT_WIDTH, crash ? "crashes" : "runs");
	for (unsigned p = 0; p < test->observeds; p++) {
		litmus_place_print(test, &test->observed[p], buf, sizeof(buf));
		if (width[p])
			printf("  %*s", (int)width[p], buf);
	}
	putchar('\n');
	for (unsigned i = 0; i < rows; i++)
		print_outcome(test, &o->outcome[i], crash, width);
	if (rows < o->n)
		printf("  %*s  and %u more (--json FILE has them)\n", COUNT_WIDTH, "", o->n - rows);
}

/* --- a test --- */

/* All that differs from the plain hardware of litmus tests; "" if nothing does. */
static void hardware_text(const struct hardware *hw, char *buf, size_t n)
{
	struct hardware others = *hw;
	others.store_buffer = hardware_default.store_buffer;
	hardware_print(&others, false, buf, n);
	if (hw->store_buffer != LITMUS_STORE_BUFFER)
		snprintf(buf + strlen(buf), n - strlen(buf), "%sstore_buffer=%u", *buf ? " " : "",
			 hw->store_buffer);
}

/* The command that shows why a condition fails. */
static void print_command(FILE *out, const struct litmus_job *job, const struct litmus_case *run,
			  bool witness)
{
	write_word(out, program);
	fprintf(out, " litmus%s%s", witness ? " --witness" : "",
		job->limits.whole ? " --whole" : "");
	for (unsigned k = 0; k < job->knobs; k++) {
		fputs(" --knob ", out);
		write_word(out, job->knob[k]);
	}
	if (job->limits.runs != litmus_default.runs)
		fprintf(out, " --runs %" PRIu64, job->limits.runs);
	fputc(' ', out);
	write_word(out, run->file->path);
}

/* For a condition that fails: the command that shows it, or that no run does. */
static void add_command(const struct litmus_job *job, const struct litmus_case *run, json_t *one)
{
	bool failed = false, shown = false;
	for (unsigned c = 0; c < run->file->test->conditions; c++) {
		bool fails = litmus_judge(run, c) == VERDICT_FAILS;
		failed |= fails;
		shown |= fails && litmus_decided(run, c);
	}
	if (!failed || (shown && job->witness))
		return;
	json_object_set_new(one, "shown",
			    json_pack("{s:o, s:b}", "command",
				      JSON_PRINTED(out, print_command(out, job, run, shown)),
				      "no_run", !shown));
}

/* The verdict of a test: the worst of its conditions. */
static enum litmus_verdict worst(const struct litmus_case *run)
{
	static const unsigned rank[] = {
		[VERDICT_HOLDS] = 0, [VERDICT_UNSURE] = 1, [VERDICT_FAILS] = 2};
	enum litmus_verdict all = VERDICT_HOLDS;
	for (unsigned c = 0; c < run->file->test->conditions; c++)
		if (rank[litmus_judge(run, c)] > rank[all])
			all = litmus_judge(run, c);
	return all;
}

/* The same test with x86's own non-temporal stores: which verdicts differ. */
static json_t *x86_json(const struct litmus_case *run, const struct litmus_case *x86)
{
	json_t *conditions = json_array();
	for (unsigned c = 0; c < run->file->test->conditions; c++)
		if (litmus_judge(x86, c) != litmus_judge(run, c))
			json_array_append_new(conditions,
					      json_pack("{s:s, s:s}", "condition",
							run->file->test->condition[c].text,
							"verdict", verdicts[litmus_judge(x86, c)]));
	return json_pack("{s:s, s:o}", "verdict",
			 worst(x86) == worst(run) ? "" : verdicts[worst(x86)], "conditions",
			 conditions);
}

/* --configs: a row for each condition, a column for each hardware. */
static void print_configs(const struct litmus_case *run, unsigned runs)
{
	static const char *const domains[] = {"dmp", "mhp", "wsp"};
	static const char *const cells[] = {"holds", "-", "?"};
	const struct litmus_test *test = run->file->test;
	char cell[32];
	printf("%s\n", test->name);
	for (unsigned i = 0; i < runs; i++) {
		snprintf(cell, sizeof(cell), "%s%s", domains[run[i].hw.domain],
			 run[i].hw.ddio == DDIO_ON ? ", ddio" : "");
		printf("  %-*s", i + 1 < runs ? CELL_WIDTH : 0, cell);
	}
	putchar('\n');
	for (unsigned c = 0; c < test->conditions; c++) {
		for (unsigned i = 0; i < runs; i++) {
			snprintf(cell, sizeof(cell), "%s%s", cells[litmus_judge(&run[i], c)],
				 run[i].own ? " *" : "");
			printf("  %-*s", CELL_WIDTH, cell);
		}
		printf("  %s\n", test->condition[c].text);
	}
	if (litmus_stronger(test, &run->hw))
		puts("  stronger than x86, whose own non-temporal stores --knob nt_stores=buffered "
		     "has");
	putchar('\n');
}

/* --- for machines --- */

/* Numbers of JSON have a sign: what is larger is a string. */
static json_t *number_json(uint64_t n)
{
	char buf[32];
	if (n <= INT64_MAX)
		return json_integer((json_int_t)n);
	snprintf(buf, sizeof(buf), "%" PRIu64, n);
	return json_string(buf);
}

static json_t *outcomes_json(const struct litmus_test *test, const struct litmus_outcomes *o,
			     bool crash)
{
	json_t *all = json_array();
	bool belongs[LITMUS_OBSERVED];
	char name[PLACE_NAME];
	litmus_places(test, crash, belongs);
	for (unsigned i = 0; i < o->n; i++) {
		json_t *value = json_object();
		for (unsigned p = 0; p < test->observeds; p++) {
			if (!belongs[p])
				continue;
			litmus_place_print(test, &test->observed[p], name, sizeof(name));
			json_object_set_new(value, name, number_json(o->outcome[i].value[p]));
		}
		json_array_append_new(all, json_pack("{s:o, s:o}", "values", value, "count",
						     number_json(o->outcome[i].count)));
	}
	return all;
}

static json_t *conditions_json(const struct litmus_case *run)
{
	static const char *const quantifiers[] = {"exists", "never", "forall"};
	const struct litmus_test *test = run->file->test;
	json_t *all = json_array();
	for (unsigned c = 0; c < test->conditions; c++) {
		const struct litmus_condition *condition = &test->condition[c];
		json_t *one = json_pack(
			"{s:s, s:s, s:s, s:i, s:s, s:b, s:b}", "condition", condition->text,
			"quantifier", quantifiers[condition->quantifier], "over",
			condition->crash ? "crash" : "final", "line", (int)condition->line,
			"verdict", verdicts[litmus_judge(run, c)], "satisfied",
			run->result.condition[c].satisfied, "violated",
			run->result.condition[c].violated);
		if (run->witness[c])
			json_object_set_new(one, "witness", json_text(run->witness[c]));
		json_array_append_new(all, one);
	}
	return all;
}

static json_t *keep_json(struct litmus_job *job, const struct litmus_case *run)
{
	const struct litmus_test *test = run->file->test;
	const struct litmus_result *r = &run->result;
	char hw[512];
	hardware_print(&run->hw, true, hw, sizeof(hw));
	json_t *one = json_pack(
		"{s:s, s:o, s:o, s:s, s:b, s:b, s:o, s:o, s:o, s:s, s:o, s:o, s:b}", "name",
		test->name, "file", json_text(run->file->path), "doc",
		json_text(test->doc ? test->doc : ""), "hardware", hw, "own_hardware", run->own,
		"stronger_than_x86", litmus_stronger(test, &run->hw), "final",
		outcomes_json(test, &r->final, false), "crash",
		outcomes_json(test, &r->crash, true), "conditions", conditions_json(run), "verdict",
		verdicts[worst(run)], "runs", number_json(r->runs), "blocked",
		number_json(r->blocked), "complete", r->complete);
	json_array_append_new(json_object_get(job->tree, "tests"), one);
	return one;
}

static void keep_cases(struct litmus_job *job, const struct litmus_case *run)
{
	const struct litmus_test *test = run->file->test;
	for (unsigned c = 0; c < test->conditions; c++) {
		enum litmus_verdict v = litmus_judge(run, c);
		if (v == VERDICT_HOLDS)
			tree_case(job->tree, CASE_PASSED, test->name, test->condition[c].text,
				  NULL);
		else
			tree_case(job->tree, v == VERDICT_UNSURE ? CASE_SKIPPED : CASE_FAILED,
				  test->name, test->condition[c].text, "%s:%u: %s", run->file->path,
				  test->condition[c].line, verdicts[v]);
	}
}

void litmus_conclude(const struct litmus_job *job, struct conclusion *c)
{
	const unsigned *count = job->count,
		       all = count[VERDICT_HOLDS] + count[VERDICT_FAILS] + count[VERDICT_UNSURE];
	if (count[VERDICT_FAILS])
		conclude(c, EXIT_BROKEN, "%u of %u conditions do%s not hold.", count[VERDICT_FAILS],
			 all, count[VERDICT_FAILS] == 1 ? "es" : "");
	else if (count[VERDICT_UNSURE])
		conclude(c, EXIT_UNSURE, "%u of %u conditions could not be told; the others hold.",
			 count[VERDICT_UNSURE], all);
	else
		conclude(c, EXIT_HELD, all ? "Every condition holds." : "There is no condition.");
	if (job->bads)
		conclusion_add(c, " %u file%s could not be read.", job->bads, plural(job->bads));
	c->status = job->bads ? EXIT_USAGE : c->status;
}

json_t *litmus_tree(const struct litmus_job *job)
{
	json_t *bad = json_array();
	for (unsigned i = 0; i < job->bads; i++) {
		const struct litmus_bad *b = &job->bad[i];
		json_array_append_new(bad, json_pack("{s:o, s:i, s:i, s:o}", "file",
						     json_text(b->path), "line", (int)b->error.line,
						     "column", (int)b->error.column, "message",
						     json_text(b->error.message)));
		tree_case(job->tree, CASE_ERROR, b->path, "read", "%u:%u: %s", b->error.line,
			  b->error.column, b->error.message);
	}
	json_object_set_new(job->tree, "bad_files", bad);
	json_object_set_new(job->tree, "bad", number_json(job->bads));
	json_object_set_new(job->tree, "done", number_json(job->done));
	json_object_set_new(job->tree, "configs", json_boolean(job->configs));
	json_object_set_new(job->tree, "complete", json_boolean(job->done == job->files));
	json_object_set_new(job->tree, "hold", number_json(job->count[VERDICT_HOLDS]));
	json_object_set_new(job->tree, "do_not_hold", number_json(job->count[VERDICT_FAILS]));
	json_object_set_new(job->tree, "could_not_tell", number_json(job->count[VERDICT_UNSURE]));
	return json_incref(job->tree);
}

/* --- together --- */

void litmus_report(struct litmus_job *job, const struct litmus_case *run, unsigned runs)
{
	json_t *first = NULL;
	char knobs[512];
	job->done++;
	for (unsigned i = 0; i < runs; i++) {
		json_t *one = keep_json(job, &run[i]);
		first = first ? first : one;
		if (!run[i].own)
			continue;
		for (unsigned c = 0; c < run->file->test->conditions; c++)
			job->count[litmus_judge(&run[i], c)]++;
		keep_cases(job, &run[i]);
	}
	if (job->configs) {
		print_configs(run, runs);
		return;
	}
	hardware_text(&run->hw, knobs, sizeof(knobs));
	json_object_set_new(first, "knobs", json_string(knobs));
	add_command(job, run, first);
	if (runs > 1)
		json_object_set_new(first, "x86", x86_json(&run[0], &run[1]));
	if (job->quiet) {
		text_print(first, "litmus_brief");
		return;
	}
	text_print(first, "litmus");
	print_table(run->file->test, &run->result.final, false);
	print_table(run->file->test, &run->result.crash, true);
	text_print(first, "litmus_rest");
}

void litmus_list(const struct litmus_job *job)
{
	for (unsigned i = 0; i < job->files; i++) {
		const struct litmus_test *test = job->file[i].test;
		printf("%-28s ", test->name);
		print_wrapped(29, test->doc ? test->doc : "");
	}
}
