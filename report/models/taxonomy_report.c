/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tidemark taxonomy` has measured, and how it compares with the papers' tables. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/tree.h"
#include "report/report.h"
#include "report/models/taxonomy_report.h"
#include "core/text/text.h"

/* --- comparing --- */

static int table_says(const struct taxonomy_report *r, const struct taxonomy_cell *cell,
		      unsigned *line)
{
	return taxonomy_says(r->table, taxonomy_method(cell->method), cell->column, cell->transport,
			     &r->request->options.knobs, line);
}

enum taxonomy_compared taxonomy_compare(const struct taxonomy_report *r,
					const struct taxonomy_cell *cell)
{
	int says = table_says(r, cell, NULL);
	unsigned verdict = cell->result.verdict;
	if (says >= 0 && verdict & ~(unsigned)says)
		return TAXONOMY_DIFFERS;
	if (!cell->result.complete)
		return TAXONOMY_UNSURE;
	if (says < 0)
		return TAXONOMY_NOT_COMPARED;
	return verdict == (unsigned)says ? TAXONOMY_EQUAL : TAXONOMY_DIFFERS;
}

void taxonomy_count(const struct taxonomy_report *r, unsigned count[TAXONOMY_NOT_COMPARED + 1])
{
	memset(count, 0, (TAXONOMY_NOT_COMPARED + 1) * sizeof(*count));
	for (unsigned i = 0; i < r->t->cells; i++)
		if (r->t->cell[i].result.measured || r->unmeasured)
			count[taxonomy_compare(r, &r->t->cell[i])]++;
}

/* --- words --- */

void taxonomy_config(const struct taxonomy *t, unsigned column, unsigned transport, char *buf,
		     size_t n)
{
	struct hardware hw = hardware_default;
	char all[TAXONOMY_CONFIG * 2], *rest;
	taxonomy_hardware(&hw, column, transport);
	hardware_print(&hw, true, all, sizeof(all));
	/* The four come first. */
	rest = strstr(all, " mtu=");
	snprintf(buf, n, "%.*s", (int)(rest ? rest - all : (int)strlen(all)), all);
	for (unsigned i = 0; t && i < t->options.knobs.knobs; i++) {
		size_t len = strlen(buf);
		if (!strstr(buf, t->options.knobs.knob[i]))
			snprintf(buf + len, n - len, " %s", t->options.knobs.knob[i]);
	}
}

/* --- what a text shows beside the cells --- */

static bool is_compound(const struct taxonomy *t, unsigned method)
{
	const struct taxonomy_cell any = {.method = (uint8_t)method};
	return taxonomy_append(t, &any)->compound;
}

static bool asked_for(const struct taxonomy_report *r, unsigned method, bool compound)
{
	return r->request->methods >> method & 1 && is_compound(r->t, method) == compound;
}

static bool has_cells(const struct taxonomy *t, unsigned transport)
{
	for (unsigned i = 0; i < t->cells; i++)
		if (t->cell[i].transport == transport)
			return true;
	return false;
}

/* A cell of the matrix, as it is printed: "L!". */
static json_t *mark_json(const struct taxonomy_report *r, const struct taxonomy_cell *cell)
{
	if (!cell)
		return json_pack("{s:s}", "word", "");
	const enum taxonomy_compared compared = taxonomy_compare(r, cell);
	const char *mark = compared == TAXONOMY_DIFFERS	 ? "!"
			   : compared == TAXONOMY_UNSURE ? "?"
							 : "";
	return json_pack("{s:s+, s:s}", "word",
			 cell->result.measured ? taxonomy_word(cell->result.verdict) : "", mark,
			 "colour",
			 *mark == '!'				? "red"
			 : cell->result.verdict || *mark == '?' ? "yellow"
								: "green");
}

/* What stands in the columns of a row, which are four for each domain. */
static json_t *row_json(const struct taxonomy_report *r, const char *name, unsigned which,
			unsigned transport, bool compound, bool choices)
{
	json_t *domains = json_array(), *cells = NULL;
	for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++) {
		if (c % 4 == 0)
			json_array_append_new(domains, cells = json_array());
		const struct taxonomy_cell *cell = choices ? taxonomy_cheapest(
								     r->t, compound,
								     (enum taxonomy_primitive)which,
								     c, transport, NULL)
							   : taxonomy_at(r->t, which, c, transport);
		json_array_append_new(
			cells, !choices ? mark_json(r, cell)
					: json_pack("{s:s}", "word",
						    cell ? taxonomy_method(cell->method)
						    : taxonomy_at(r->t, 0, c, transport) ? "none"
											 : ""));
	}
	return json_pack("{s:s, s:o}", "name", name, "domains", domains);
}

static json_t *matrix_json(const struct taxonomy_report *r, bool compound, unsigned transport)
{
	static const char *const name[] = {"Write", "WriteImm", "Send", "Commit"};
	json_t *rows = json_array(), *choices = json_array();
	for (unsigned m = 0; m < taxonomy_methods() && has_cells(r->t, transport); m++)
		if (asked_for(r, m, compound))
			json_array_append_new(rows, row_json(r, taxonomy_method(m), m, transport,
							     compound, false));
	for (unsigned p = 0; p < TAXONOMY_PRIMITIVES && r->request->all; p++)
		json_array_append_new(choices, row_json(r, name[p], p, transport, compound, true));
	return json_pack("{s:b, s:b, s:o, s:o}", "ib", transport == TRANSPORT_IB, "compound",
			 compound, "rows", rows, "choices", choices);
}

static json_t *words_json(const struct taxonomy_report *r)
{
	json_t *all = json_array();
	char text[200];
	struct acts acts;
	for (unsigned m = 0; m < taxonomy_methods(); m++) {
		const struct taxonomy_cell any = {.method = (uint8_t)m};
		if (!(r->request->methods >> m & 1))
			continue;
		taxonomy_acts(r->t, &any, &acts);
		method_print(&acts, text, sizeof(text));
		json_array_append_new(
			all, json_pack("{s:s, s:s}", "method", taxonomy_method(m), "words", text));
	}
	return all;
}

/* --- how it compares --- */

/* Visit each choice; true: it is otherwise than the table has it. */
static bool choice_differs(const struct taxonomy_report *r, bool compound,
			   enum taxonomy_primitive primitive, unsigned column, unsigned transport,
			   const char **best, const char **gives)
{
	const struct taxonomy_cell *cell = taxonomy_cheapest(r->t, compound, primitive, column,
							     transport, NULL);
	*gives = taxonomy_gives(r->table, compound, primitive, column, transport,
				&r->request->options.knobs);
	*best = cell ? taxonomy_method(cell->method) : "none";
	return *gives && strcmp(*best, *gives);
}

/* The choices; of `differ`, unless it is NULL, how many differ, and of *compared how many can be
 * compared. */
static json_t *choices_json(const struct taxonomy_report *r, unsigned *differ, unsigned *compared)
{
	json_t *list = json_array();
	const char *best, *gives;
	char config[TAXONOMY_CONFIG];
	unsigned known[TAXONOMY_NOT_COMPARED + 1];
	*differ = *compared = 0;
	taxonomy_count(r, known);
	for (unsigned i = 0; r->request->all && !r->unmeasured &&
			     i < 2 * TAXONOMY_PRIMITIVES * TAXONOMY_COLUMNS * TAXONOMY_TRANSPORTS;
	     i++) {
		unsigned transport = i % TAXONOMY_TRANSPORTS,
			 c = i / TAXONOMY_TRANSPORTS % TAXONOMY_COLUMNS,
			 k = i / TAXONOMY_TRANSPORTS / TAXONOMY_COLUMNS;
		enum taxonomy_primitive p = (enum taxonomy_primitive)(k % TAXONOMY_PRIMITIVES);
		if (!taxonomy_at(r->t, 0, c, transport))
			continue;
		bool differs = choice_differs(r, k / TAXONOMY_PRIMITIVES, p, c, transport, &best,
					      &gives);
		/* Where cells are not known, neither is the cheapest method. */
		differs &= !known[TAXONOMY_UNSURE];
		*compared += gives && !known[TAXONOMY_UNSURE];
		*differ += differs;
		taxonomy_config(r->t, c, transport, config, sizeof(config));
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "kind",
						k / TAXONOMY_PRIMITIVES ? "compound" : "singleton",
						"primitive", taxonomy_primitive_name[p], "config",
						config, "cheapest", best, "table",
						gives ? gives : "", "differs", differs));
	}
	return list;
}

unsigned taxonomy_choices_differ(const struct taxonomy_report *r)
{
	unsigned differ = 0, compared;
	if (!r->request->advise)
		json_decref(choices_json(r, &differ, &compared));
	return differ;
}

/* "cw2f, of which it has no row, is as cw2c in 24 of 24 cells" */
static json_t *likes_json(const struct taxonomy_report *r)
{
	json_t *all = json_array();
	for (unsigned i = 0; i < r->table->likes; i++) {
		const struct taxonomy_like *like = &r->table->like[i];
		int method = taxonomy_find_method(like->method),
		    other = taxonomy_find_method(like->other);
		int cells = 0, equal = 0;
		for (unsigned k = 0; k < r->t->cells && method >= 0 && other >= 0; k++) {
			const struct taxonomy_cell *cell = &r->t->cell[k], *as;
			if (cell->method != method)
				continue;
			as = taxonomy_at(r->t, (unsigned)other, cell->column, cell->transport);
			cells += as != NULL;
			equal += as && as->result.verdict == cell->result.verdict;
		}
		if (cells)
			json_array_append_new(all, json_pack("{s:s, s:s, s:i, s:i}", "method",
							     like->method, "other", like->other,
							     "equal", equal, "cells", cells));
	}
	return all;
}

static json_t *shown_json(const struct taxonomy_report *r, unsigned differ, unsigned choices)
{
	unsigned count[TAXONOMY_NOT_COMPARED + 1], with_rows = 0, equal = 0, sound = 0, unsure = 0,
						   breaks = 0;
	json_t *matrices = json_array();
	taxonomy_count(r, count);
	for (unsigned i = 0; i < r->t->cells; i++) {
		const struct taxonomy_cell *cell = &r->t->cell[i];
		enum taxonomy_compared compared = taxonomy_compare(r, cell);
		bool own = !taxonomy_like(r->table, taxonomy_method(cell->method));
		with_rows += own && compared != TAXONOMY_NOT_COMPARED;
		equal += own && compared == TAXONOMY_EQUAL;
		sound += !cell->result.verdict && cell->result.complete;
		unsure += !cell->result.complete;
		breaks += cell->result.breaks;
	}
	for (unsigned i = 0; i < 2 * TAXONOMY_TRANSPORTS; i++)
		json_array_append_new(matrices, matrix_json(r, i % 2, i / 2));
	return json_pack("{s:o, s:b, s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, "
			 "s:i, s:i, s:I, s:I, s:I}",
			 "table", json_text(r->request->table_name), "traces",
			 r->request->options.traces, "methods", words_json(r), "matrices", matrices,
			 "likes", likes_json(r), "cells", (int)r->t->cells, "sound", (int)sound,
			 "unsure", (int)unsure, "breaks", (int)breaks, "differ",
			 (int)count[TAXONOMY_DIFFERS], "untold", (int)count[TAXONOMY_UNSURE],
			 "not_compared", (int)count[TAXONOMY_NOT_COMPARED], "with_rows",
			 (int)with_rows, "equal", (int)equal, "choices", (int)choices,
			 "choices_equal", (int)(choices - differ), "runs", (json_int_t)r->t->runs,
			 "states", (json_int_t)r->t->states, "spared", (json_int_t)r->t->spared);
}

/* --- the tree --- */

/* The knobs of a search, one by one, for the command that does it again. */
static json_t *knobs_json(char *config)
{
	json_t *all = json_array();
	char *save = NULL;
	for (char *knob = strtok_r(config, " ", &save); knob; knob = strtok_r(NULL, " ", &save))
		json_array_append_new(all, json_string(knob));
	return all;
}

json_t *taxonomy_breaks_json(const struct taxonomy_report *r, const struct taxonomy_cell *cell)
{
	json_t *breaks = json_array();
	for (unsigned b = 0; b < cell->result.breaks; b++) {
		const struct taxonomy_break *broken = &cell->result.broken[b];
		const char *trace = r->trace[cell - r->t->cell][b];
		json_array_append_new(breaks, json_pack("{s:s, s:s, s:o, s:b}", "contract",
							contract_name(broken->contract), "how",
							broken->text, "trace", json_text(trace),
							"whole", broken->whole));
	}
	return breaks;
}

static json_t *cell_json(const struct taxonomy_report *r, const struct taxonomy_cell *cell)
{
	static const char *const compared[] = {"equal", "differs", "could not tell",
					       "not compared"};
	const struct append_method *rl = taxonomy_append(r->t, cell);
	struct method_cost cost = taxonomy_cost(r->t, cell);
	char config[TAXONOMY_CONFIG], hardware[TAXONOMY_CONFIG];
	unsigned line = 0;
	int says = table_says(r, cell, &line);
	const char *first = r->trace[cell - r->t->cell][0];
	taxonomy_config(r->t, cell->column, cell->transport, config, sizeof(config));
	taxonomy_config(NULL, cell->column, cell->transport, hardware, sizeof(hardware));
	json_t *all = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:b, s:o, s:o, s:{s:i, "
		"s:i, s:i, s:i, s:i}}",
		"store", method_store()->name, "variant", rl->name, "config", config, "kind",
		rl->compound ? "compound" : "singleton", "primitive",
		taxonomy_primitive_name[method_primitive(rl)], "verdict",
		cell->result.measured ? taxonomy_word(cell->result.verdict) : "", "table",
		says < 0 ? "" : taxonomy_word((unsigned)says), "compared",
		compared[taxonomy_compare(r, cell)], "states", (json_int_t)cell->result.states,
		"runs", (json_int_t)cell->result.runs, "exhaustive", (int)cell->result.exhaustive,
		"complete", (int)cell->result.complete, "trace", json_text(first), "breaks",
		taxonomy_breaks_json(r, cell), "cost", "round_trips", (int)cost.round_trips,
		"cpu_waited", (int)cost.cpu_waited, "cpu_later", (int)cost.cpu_later, "messages",
		(int)cost.messages, "bytes", (int)cost.bytes);
	json_object_set_new(all, "shown",
			    json_pack("{s:s, s:i, s:o}", "hardware", hardware, "line", (int)line,
				      "knobs", knobs_json(config)));
	return all;
}

void taxonomy_conclude(const struct taxonomy_report *r, struct conclusion *c)
{
	unsigned count[TAXONOMY_NOT_COMPARED + 1], choices = taxonomy_choices_differ(r);
	taxonomy_count(r, count);
	if (count[TAXONOMY_DIFFERS] || choices)
		conclude(c, EXIT_BROKEN,
			 "%u cell%s and %u choice%s of the cheapest method differ from %s.",
			 count[TAXONOMY_DIFFERS], plural(count[TAXONOMY_DIFFERS]), choices,
			 plural(choices), r->request->table_name);
	else if (count[TAXONOMY_UNSURE])
		conclude(c, EXIT_UNSURE,
			 "%u cell%s not searched to the end; the others are as %s says.",
			 count[TAXONOMY_UNSURE], count[TAXONOMY_UNSURE] == 1 ? " was" : "s were",
			 r->request->table_name);
	else if (count[TAXONOMY_EQUAL])
		conclude(c, EXIT_HELD, "Every cell that is compared is as %s says.",
			 r->request->table_name);
	else
		conclude(c, EXIT_HELD, "No cell is compared with %s.", r->request->table_name);
}

static void add_test(const struct taxonomy_report *r, const struct taxonomy_cell *cell, json_t *all)
{
	char config[TAXONOMY_CONFIG], suite[100];
	enum taxonomy_compared compared = taxonomy_compare(r, cell);
	int says = table_says(r, cell, NULL);
	const char *trace = r->trace[cell - r->t->cell][0],
		   *expected = says < 0 ? "" : taxonomy_word((unsigned)says);
	taxonomy_config(r->t, cell->column, cell->transport, config, sizeof(config));
	snprintf(suite, sizeof(suite), "taxonomy %s", taxonomy_method(cell->method));
	if (compared == TAXONOMY_DIFFERS)
		tree_case(all, CASE_FAILED, suite, config,
			  "%s, expected %s\n%s\ntidemark replay %s",
			  taxonomy_word(cell->result.verdict), expected,
			  cell->result.broken[0].text, trace ? trace : "");
	else if (!cell->result.measured)
		tree_case(all, CASE_SKIPPED, suite, config, "left off before the end");
	else if (compared == TAXONOMY_UNSURE)
		tree_case(all, CASE_SKIPPED, suite, config, "could not tell, expected %s",
			  expected);
	else
		tree_case(all, CASE_PASSED, suite, config, NULL);
}

json_t *taxonomy_tree(const struct taxonomy_report *r)
{
	unsigned differ, compared;
	json_t *cells = json_array(), *choices = choices_json(r, &differ, &compared);
	for (unsigned i = 0; i < r->t->cells; i++)
		json_array_append_new(cells, cell_json(r, &r->t->cell[i]));
	json_t *all = json_pack("{s:o, s:o, s:o, s:o, s:b, s:s, s:i, s:o, s:f, s:i}", "cells",
				cells, "choices", choices, "shown", shown_json(r, differ, compared),
				"methods", taxonomy_methods_json(r), "complete", !r->unmeasured,
				"workload", r->t->options.workload->name, "preemptions",
				(int)r->t->options.preemptions, "table",
				json_text(r->request->table_name), "seconds", r->seconds, "jobs",
				(int)r->t->options.how.jobs);
	/* Cases of a suite, which is a method, stand together. */
	for (unsigned m = 0; m < taxonomy_methods(); m++)
		for (unsigned i = 0; i < r->t->cells; i++)
			if (r->t->cell[i].method == m)
				add_test(r, &r->t->cell[i], all);
	return all;
}
