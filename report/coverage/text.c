/* SPDX-License-Identifier: BSD-3-Clause */
/* Coverage as a short text: of each store what never ran and what was never cut. */
#include <inttypes.h>
#include "core/rnic/opcode.h"
#include "report/coverage/coverage.h"
#include "report/text.h"
#include "report/tree.h"

/* Which lines a list is about. */
typedef bool listed(const struct covered_line *line);

static bool never_ran(const struct covered_line *line)
{
	return !line->count[COVERAGE_RUN] && !line->count[COVERAGE_RECOVERY] &&
	       !line->count[COVERAGE_AFTER];
}

static bool not_recovered(const struct covered_line *line)
{
	return line->in_recovery && !line->count[COVERAGE_RECOVERY];
}

/* "core/stores/erda/log.c:12-15, 31; core/stores/erda/server.c:7". Lines between which there is
 * no other code are one range. */
static void print_list(FILE *out, const struct covered_report *r, listed *is)
{
	int file = -1;
	for (unsigned i = 0; i < r->n; i++) {
		if (!is(&r->line[i]))
			continue;
		unsigned last = i;
		while (last + 1 < r->n && r->line[last + 1].file == r->line[i].file &&
		       is(&r->line[last + 1]))
			last++;
		if ((int)r->line[i].file != file)
			fprintf(out, "%s%s:", file < 0 ? "" : "; ",
				r->lines->file[r->line[i].file].shown);
		else
			fputs(", ", out);
		fprintf(out, "%u", r->line[i].line);
		if (last > i)
			fprintf(out, "-%u", r->line[last].line);
		file = (int)r->line[i].file;
		i = last;
	}
}

static json_t *phase_json(const struct covered_report *r, enum coverage_phase phase)
{
	static const char *const names[COVERAGE_PHASES] = {[COVERAGE_RUN] = "run",
							   [COVERAGE_RECOVERY] = "recovery",
							   [COVERAGE_AFTER] = "second life"};
	const bool recovery = phase == COVERAGE_RECOVERY;
	int all = 0, ran = 0;
	for (unsigned i = 0; i < r->n; i++) {
		const struct covered_line *line = &r->line[i];
		const bool of_it = !recovery || line->in_recovery;
		all += of_it;
		ran += of_it && line->count[phase] > 0;
	}
	return json_pack("{s:s, s:i, s:i, s:b}", "name", names[phase], "ran", ran, "all", all,
			 "recovery", recovery);
}

static json_t *kind_json(const struct covered_report *r, enum cut_kind kind)
{
	static const char *const names[CUT_KINDS] = {"flushes", "fences", "landings"};
	int all = 0, cut = 0;
	for (unsigned i = 0; i < r->cuts; i++) {
		all += r->cut[i].kind == kind;
		cut += r->cut[i].kind == kind && r->cut[i].fate[CUT_DONE] > 0;
	}
	return json_pack("{s:s, s:i, s:i}", "name", names[kind], "cut", cut, "all", all);
}

/* What was never cut, and why. */
static json_t *cut_json(const struct covered_report *r, const struct covered_cut *cut)
{
	static const char *const says[CUT_FATES] = {
		[CUT_KNOWN] = "could leave only what was known",
		[CUT_BUDGET] = "had no budget",
		[CUT_APART] = "where power is not cut",
		[CUT_NOTHING] = "changed nothing that survives",
	};
	const unsigned number = operation_number(cut->code);
	const bool known = cut->file >= 0 && number != OPERATIONS;
	json_t *fates = json_array();
	for (unsigned f = CUT_DONE + 1; f < CUT_FATES; f++)
		if (cut->fate[f])
			json_array_append_new(
				fates, json_sprintf("%" PRIu64 " %s", cut->fate[f], says[f]));
	return json_pack("{s:o, s:i, s:s, s:b, s:I, s:o}", "file",
			 json_text(cut->file < 0 ? "" : r->lines->file[cut->file].shown), "line",
			 (int)cut->line, "landing",
			 cut->kind != CUT_LANDING ? ""
			 : known		  ? operations[number].name
						  : "a request",
			 "flush", cut->kind == CUT_FLUSH, "times", (json_int_t)cut->times, "fates",
			 fates);
}

void coverage_print(const struct covered_report *r)
{
	json_t *phases = json_array(), *kinds = json_array(), *never = json_array();
	for (unsigned p = COVERAGE_RUN; p < COVERAGE_PHASES; p++)
		json_array_append_new(phases, phase_json(r, p));
	for (unsigned k = 0; k < CUT_KINDS; k++)
		json_array_append_new(kinds, kind_json(r, k));
	for (unsigned i = 0; i < r->cuts; i++)
		if (!r->cut[i].fate[CUT_DONE])
			json_array_append_new(never, cut_json(r, &r->cut[i]));
	json_t *all = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "store", r->store->name, "phases",
				phases, "kinds", kinds, "never_ran",
				JSON_PRINTED(out, print_list(out, r, never_ran)), "not_recovered",
				JSON_PRINTED(out, print_list(out, r, not_recovered)), "never_cut",
				never);
	text_print(all, "coverage");
	json_decref(all);
}
