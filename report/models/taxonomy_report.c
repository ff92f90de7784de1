/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `tidemark taxonomy` has measured: first the command that replays each break, then the
 * matrix, one table for each transport and kind, with the cheapest sound methods below it, and
 * at the end how all of it compares with the papers' tables.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/terminal.h"
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

void taxonomy_print_replay(const struct taxonomy_report *r, const struct taxonomy_cell *cell,
			   unsigned brk)
{
	const struct taxonomy_break *broken = &cell->result.broken[brk];
	const char *trace = r->trace[cell - r->t->cell][brk];
	if (!trace) {
		puts("no trace was written: without --no-traces there is one for tidemark replay");
		return;
	}
	print_replay(trace);
	printf("%s\n", broken->whole ? "   (could not be shrunk)" : "");
}

/* --- what broke --- */

static void print_breaks(const struct taxonomy_report *r)
{
	char config[TAXONOMY_CONFIG];
	unsigned breaks = 0;
	for (unsigned i = 0; i < r->t->cells; i++) {
		const struct taxonomy_cell *cell = &r->t->cell[i];
		taxonomy_config(NULL, cell->column, cell->transport, config, sizeof(config));
		for (unsigned b = 0; b < cell->result.breaks; b++, breaks++) {
			if (!r->request->options.traces)
				continue;
			printf("%-5s %-50s %-4s  ", taxonomy_method(cell->method), config,
			       contract_name(cell->result.broken[b].contract));
			taxonomy_print_replay(r, cell, b);
		}
	}
	if (breaks && !r->request->options.traces)
		printf("%u break%s; no trace was written: without --no-traces there is one for "
		       "each\n",
		       breaks, plural(breaks));
	if (breaks)
		putchar('\n');
}

/* --- the matrix --- */

static void print_heading(const char *title)
{
	static const char *const domain[] = {"dmp", "mhp", "wsp"}, *const ddio[] = {"on", "off"},
				 *const rqwrb[] = {"dram", "pm"};
	printf("%s\n  domain ", title);
	for (unsigned d = 0; d < 3; d++)
		printf("  %-20s", domain[d]);
	printf("\n  ddio   ");
	for (unsigned c = 0; c < TAXONOMY_COLUMNS; c += 2)
		printf("%s%-10s", c % 4 ? "" : "  ", ddio[c / 2 % 2]);
	printf("\n  rqwrb  ");
	for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++)
		printf("%s%-5s", c % 4 ? "" : "  ", rqwrb[c % 2]);
	putchar('\n');
}

static void print_cell(const struct taxonomy_report *r, const struct taxonomy_cell *cell)
{
	char word[16];
	if (!cell) {
		printf("%-5s", "");
		return;
	}
	enum taxonomy_compared compared = taxonomy_compare(r, cell);
	snprintf(word, sizeof(word), "%s%s",
		 cell->result.measured ? taxonomy_word(cell->result.verdict) : "",
		 compared == TAXONOMY_DIFFERS  ? "!"
		 : compared == TAXONOMY_UNSURE ? "?"
					       : "");
	printf("%s%-5s%s",
	       paint(compared == TAXONOMY_DIFFERS			   ? RED
		     : cell->result.verdict || compared == TAXONOMY_UNSURE ? YELLOW
									   : GREEN),
	       word, paint(PLAIN));
}

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

static void print_choices(const struct taxonomy_report *r, bool compound, unsigned transport)
{
	static const char *const name[] = {"Write", "WriteImm", "Send", "Commit"};
	puts("  the cheapest that is sound, by primitive:");
	for (unsigned p = 0; p < TAXONOMY_PRIMITIVES; p++) {
		printf("  %-8s ", name[p]);
		for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++) {
			const struct taxonomy_cell *best = taxonomy_cheapest(
				r->t, compound, (enum taxonomy_primitive)p, c, transport, NULL);
			bool there = taxonomy_at(r->t, 0, c, transport);
			printf("%s%-5s", c % 4 ? "" : "  ",
			       best    ? taxonomy_method(best->method)
			       : there ? "none"
				       : "");
		}
		putchar('\n');
	}
}

static void print_matrix(const struct taxonomy_report *r, bool compound, unsigned transport)
{
	char title[100];
	unsigned methods = taxonomy_methods(), rows = 0;
	for (unsigned m = 0; m < methods; m++)
		rows += asked_for(r, m, compound);
	if (!rows || !has_cells(r->t, transport))
		return;
	snprintf(title, sizeof(title), "== %s, %s",
		 transport == TRANSPORT_IB ? "InfiniBand (ib)" : "iWARP (iwarp)",
		 compound ? "a strictly before b (table 3)" : "one update (table 2)");
	print_heading(title);
	for (unsigned m = 0; m < methods; m++) {
		if (!asked_for(r, m, compound))
			continue;
		printf("  %-7s", taxonomy_method(m));
		for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++) {
			fputs(c % 4 ? "" : "  ", stdout);
			print_cell(r, taxonomy_at(r->t, m, c, transport));
		}
		putchar('\n');
	}
	if (r->request->all)
		print_choices(r, compound, transport);
	putchar('\n');
}

static void print_methods(const struct taxonomy_report *r)
{
	char text[200];
	struct acts acts;
	puts("The methods; ack: the server's reply; wait: for the completion of the step before");
	for (unsigned m = 0; m < taxonomy_methods(); m++) {
		const struct taxonomy_cell any = {.method = (uint8_t)m};
		if (!(r->request->methods >> m & 1))
			continue;
		taxonomy_acts(r->t, &any, &acts);
		method_print(&acts, text, sizeof(text));
		printf("  %-5s  %s\n", taxonomy_method(m), text);
	}
	putchar('\n');
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

/* Counts the choices that differ, and sets *compared to how many can be compared. `print`: say
 * where. */
static unsigned compare_choices(const struct taxonomy_report *r, bool print, unsigned *compared)
{
	static const char *const kind[] = {"one update", "a before b"};
	const char *best, *gives;
	char config[TAXONOMY_CONFIG];
	unsigned differ = 0, known[TAXONOMY_NOT_COMPARED + 1];
	*compared = 0;
	taxonomy_count(r, known);
	/* Where cells are not known, neither is the cheapest method. */
	for (unsigned i = 0; r->request->all && !known[TAXONOMY_UNSURE] &&
			     i < 2 * TAXONOMY_PRIMITIVES * TAXONOMY_COLUMNS * TAXONOMY_TRANSPORTS;
	     i++) {
		unsigned transport = i % TAXONOMY_TRANSPORTS,
			 c = i / TAXONOMY_TRANSPORTS % TAXONOMY_COLUMNS,
			 k = i / TAXONOMY_TRANSPORTS / TAXONOMY_COLUMNS,
			 p = k % TAXONOMY_PRIMITIVES;
		bool compound = k / TAXONOMY_PRIMITIVES;
		if (!taxonomy_at(r->t, 0, c, transport))
			continue;
		bool otherwise = choice_differs(r, compound, (enum taxonomy_primitive)p, c,
						transport, &best, &gives);
		*compared += gives != NULL;
		differ += otherwise;
		if (!otherwise || !print)
			continue;
		taxonomy_config(r->t, c, transport, config, sizeof(config));
		printf("DIFFERS: the cheapest for %s by %s at %s is %s; the papers' table gives "
		       "%s\n",
		       kind[compound], taxonomy_primitive_name[p], config, best, gives);
	}
	return differ;
}

unsigned taxonomy_choices_differ(const struct taxonomy_report *r)
{
	unsigned compared;
	return r->request->advise ? 0 : compare_choices(r, false, &compared);
}

/* The same search once more, as a command. */
static void print_search(const struct taxonomy_report *r, const struct taxonomy_cell *cell)
{
	char config[TAXONOMY_CONFIG], *save = NULL;
	taxonomy_config(r->t, cell->column, cell->transport, config, sizeof(config));
	printf("    ");
	print_word(program);
	printf(" taxonomy %s", taxonomy_method(cell->method));
	for (char *knob = strtok_r(config, " ", &save); knob; knob = strtok_r(NULL, " ", &save))
		printf(" --knob %s", knob);
	putchar('\n');
}

static void print_difference(const struct taxonomy_report *r, const struct taxonomy_cell *cell)
{
	char config[TAXONOMY_CONFIG];
	unsigned line = 0;
	int says = table_says(r, cell, &line);
	taxonomy_config(r->t, cell->column, cell->transport, config, sizeof(config));
	printf("%s%s%s: %s at %s is %s; %s:%u says %s\n", paint(RED),
	       taxonomy_compare(r, cell) == TAXONOMY_DIFFERS ? "DIFFERS" : "NOT KNOWN",
	       paint(PLAIN), taxonomy_method(cell->method), config,
	       cell->result.complete ? taxonomy_word(cell->result.verdict)
				     : "not searched to the end",
	       r->request->table_name, line, says < 0 ? "nothing" : taxonomy_word((unsigned)says));
	for (unsigned b = 0; b < cell->result.breaks; b++) {
		if (*cell->result.broken[b].text) {
			printf("    ");
			print_wrapped(4, cell->result.broken[b].text);
		}
		if (r->trace[cell - r->t->cell][b]) {
			printf("    ");
			taxonomy_print_replay(r, cell, b);
		}
	}
	if (!cell->result.breaks || !r->request->options.traces)
		print_search(r, cell);
}

/* "; cw2f, of which it has no row, is as cw2c in 24 of 24 cells" */
static void print_likes(const struct taxonomy_report *r)
{
	for (unsigned i = 0; i < r->table->likes; i++) {
		const struct taxonomy_like *like = &r->table->like[i];
		int method = taxonomy_find_method(like->method),
		    other = taxonomy_find_method(like->other);
		unsigned cells = 0, equal = 0;
		for (unsigned k = 0; k < r->t->cells && method >= 0 && other >= 0; k++) {
			const struct taxonomy_cell *cell = &r->t->cell[k], *as;
			if (cell->method != method)
				continue;
			as = taxonomy_at(r->t, (unsigned)other, cell->column, cell->transport);
			cells += as != NULL;
			equal += as && as->result.verdict == cell->result.verdict;
		}
		if (cells)
			printf("%s, which has no rows of its own there, is as %s in %u of %u "
			       "cells\n",
			       like->method, like->other, equal, cells);
	}
}

static void print_summary(const struct taxonomy_report *r)
{
	unsigned count[TAXONOMY_NOT_COMPARED + 1], with_rows = 0, equal = 0, choices;
	taxonomy_count(r, count);
	for (unsigned i = 0; i < r->t->cells; i++) {
		const struct taxonomy_cell *cell = &r->t->cell[i];
		enum taxonomy_compared compared = taxonomy_compare(r, cell);
		bool own = !taxonomy_like(r->table, taxonomy_method(cell->method));
		with_rows += own && compared != TAXONOMY_NOT_COMPARED;
		equal += own && compared == TAXONOMY_EQUAL;
		if (compared == TAXONOMY_DIFFERS || compared == TAXONOMY_UNSURE)
			print_difference(r, cell);
	}
	unsigned differ = compare_choices(r, true, &choices);
	printf("%s%u of %u cell%s equal%s %s%s\n",
	       paint(count[TAXONOMY_DIFFERS]  ? RED
		     : count[TAXONOMY_UNSURE] ? YELLOW
					      : GREEN),
	       equal, with_rows, plural(with_rows), equal == 1 ? "s" : "", r->request->table_name,
	       paint(PLAIN));
	print_likes(r);
	if (choices)
		printf("%u of %u choices of the cheapest method equal the papers' tables\n",
		       choices - differ, choices);
	if (count[TAXONOMY_NOT_COMPARED])
		printf("%u cell%s not compared: of such switches %s says nothing\n",
		       count[TAXONOMY_NOT_COMPARED],
		       count[TAXONOMY_NOT_COMPARED] == 1 ? " was" : "s were",
		       r->request->table_name);
}

static void print_bounds(const struct taxonomy_report *r)
{
	char text[900];
	unsigned sound = 0, unsure = 0;
	for (unsigned i = 0; i < r->t->cells; i++) {
		sound += !r->t->cell[i].result.verdict && r->t->cell[i].result.complete;
		unsure += !r->t->cell[i].result.complete;
	}
	snprintf(text, sizeof(text),
		 "%u cells. %u are sound, that is, exhaustively searched: all schedules of "
		 "workload %s with "
		 "at "
		 "most %u preemptions and no lost packet, one power failure at each point of each "
		 "of them, "
		 "every "
		 "image that it can leave (docs/search.md); \"ok\" says no more than that. The "
		 "others were "
		 "searched until all had broken that can, or to the same end%s. %" PRIu64
		 " runs, %" PRIu64 " crash states; %" PRIu64
		 " delays were left out because they only reorder independent steps; %.1f s, %u "
		 "job%s.",
		 r->t->cells, sound, r->t->options.workload->name, r->t->options.preemptions,
		 unsure ? ", or until the budget was used up" : "", r->t->runs, r->t->states,
		 r->t->spared, r->seconds, r->t->options.jobs, plural(r->t->options.jobs));
	print_wrapped(0, text);
}

void taxonomy_print(const struct taxonomy_report *r)
{
	print_breaks(r);
	print_methods(r);
	puts("ok: sound; L: an update that was reported durable can be lost; O: b can be durable "
	     "without a;\n"
	     "X: something else breaks; !: not as the table says; ?: could not tell\n");
	for (unsigned transport = 0; transport < TAXONOMY_TRANSPORTS; transport++) {
		print_matrix(r, false, transport);
		print_matrix(r, true, transport);
	}
	print_bounds(r);
	print_summary(r);
}

/* --- for machines --- */

static json_t *cell_json(const struct taxonomy_report *r, const struct taxonomy_cell *cell)
{
	static const char *const compared[] = {"equal", "differs", "could not tell",
					       "not compared"};
	const struct append_method *rl = taxonomy_append(r->t, cell);
	struct method_cost cost = taxonomy_cost(r->t, cell);
	char config[TAXONOMY_CONFIG];
	int says = table_says(r, cell, NULL);
	const char *first = r->trace[cell - r->t->cell][0];
	json_t *breaks = json_array();
	taxonomy_config(r->t, cell->column, cell->transport, config, sizeof(config));
	for (unsigned b = 0; b < cell->result.breaks; b++) {
		const struct taxonomy_break *broken = &cell->result.broken[b];
		const char *trace = r->trace[cell - r->t->cell][b];
		json_array_append_new(breaks, json_pack("{s:s, s:s, s:s}", "contract",
							contract_name(broken->contract), "how",
							broken->text, "trace", trace ? trace : ""));
	}
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:s, s:o, s:{s:i, s:i, "
		"s:i, s:i, s:i}}",
		"store", method_store()->name, "variant", rl->name, "config", config, "kind",
		rl->compound ? "compound" : "singleton", "primitive",
		taxonomy_primitive_name[method_primitive(rl)], "verdict",
		cell->result.measured ? taxonomy_word(cell->result.verdict) : "", "table",
		says < 0 ? "" : taxonomy_word((unsigned)says), "compared",
		compared[taxonomy_compare(r, cell)], "states", (json_int_t)cell->result.states,
		"runs", (json_int_t)cell->result.runs, "exhaustive", (int)cell->result.exhaustive,
		"trace", first ? first : "", "breaks", breaks, "cost", "round_trips",
		(int)cost.round_trips, "cpu_waited", (int)cost.cpu_waited, "cpu_later",
		(int)cost.cpu_later, "messages", (int)cost.messages, "bytes", (int)cost.bytes);
}

static json_t *choices_json(const struct taxonomy_report *r)
{
	json_t *list = json_array();
	const char *best, *gives;
	char config[TAXONOMY_CONFIG];
	bool known = r->request->all && !r->unmeasured;
	for (unsigned transport = 0; transport < TAXONOMY_TRANSPORTS && known; transport++) {
		for (unsigned k = 0; k < 2 * TAXONOMY_PRIMITIVES; k++) {
			enum taxonomy_primitive p = (enum taxonomy_primitive)(k %
									      TAXONOMY_PRIMITIVES);
			for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++) {
				if (!taxonomy_at(r->t, 0, c, transport))
					continue;
				choice_differs(r, k / TAXONOMY_PRIMITIVES, p, c, transport, &best,
					       &gives);
				taxonomy_config(r->t, c, transport, config, sizeof(config));
				json_array_append_new(
					list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind",
							k / TAXONOMY_PRIMITIVES ? "compound"
										: "singleton",
							"primitive", taxonomy_primitive_name[p],
							"config", config, "cheapest", best, "table",
							gives ? gives : ""));
			}
		}
	}
	return list;
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
	json_t *cells = json_array();
	for (unsigned i = 0; i < r->t->cells; i++)
		json_array_append_new(cells, cell_json(r, &r->t->cell[i]));
	json_t *all = json_pack("{s:o, s:o, s:o, s:b, s:s, s:i, s:s, s:f, s:i}", "cells", cells,
				"choices", choices_json(r), "methods", taxonomy_methods_json(r),
				"complete", !r->unmeasured, "workload",
				r->t->options.workload->name, "preemptions",
				(int)r->t->options.preemptions, "table", r->request->table_name,
				"seconds", r->seconds, "jobs", (int)r->t->options.jobs);
	/* Cases of a suite, which is a method, stand together. */
	for (unsigned m = 0; m < taxonomy_methods(); m++)
		for (unsigned i = 0; i < r->t->cells; i++)
			if (r->t->cell[i].method == m)
				add_test(r, &r->t->cell[i], all);
	return all;
}
