/* SPDX-License-Identifier: BSD-3-Clause */
/* From sites and addresses to lines: see coverage.h. */
#include "report/coverage/coverage.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/rnic/opcode.h"
#include "core/text/text.h"

const char *const coverage_phase_names[COVERAGE_PHASES] = {
	[COVERAGE_OUTSIDE] = "outside",
	[COVERAGE_RUN] = "run",
	[COVERAGE_RECOVERY] = "recovery",
	[COVERAGE_AFTER] = "second life",
};

/* --- lines --- */

/* Of each function: did a part of it run in this phase? To be freed; NULL without memory. */
static bool *functions_run(const struct covered_store *s, enum coverage_phase phase)
{
	bool *ran = calloc(s->lines.functions + 1, sizeof(*ran));
	for (unsigned i = 0; ran && i < s->lines.sites; i++)
		ran[s->lines.function_of[i]] |= s->count.site[phase][i] > 0;
	return ran;
}

/* Does the function count? What only the checker calls does not, nor what a store does not call of
 * a file that it shares with others. */
static bool counts(const struct covered_store *s, const struct source_row *row, const bool *machine,
		   const bool *outside)
{
	unsigned function = s->lines.function_of[row->site];
	return machine[function] || (!outside[function] && !s->lines.file[row->file].shared);
}

static void add_row(const struct covered_store *s, const struct source_row *row, bool recovery,
		    struct covered_report *out)
{
	struct covered_line *last = out->n ? &out->line[out->n - 1] : NULL;
	if (!last || last->file != row->file || last->line != row->line) {
		last = &out->line[out->n++];
		*last = (struct covered_line){.file = row->file, .line = row->line};
	}
	for (unsigned p = 0; p < COVERAGE_PHASES; p++)
		if (last->count[p] < s->count.site[p][row->site])
			last->count[p] = s->count.site[p][row->site];
	last->in_recovery |= recovery;
	last->part |= recovery && !s->count.site[COVERAGE_RECOVERY][row->site];
}

static int make_lines(const struct covered_store *s, struct covered_report *out)
{
	bool *ran[COVERAGE_PHASES], *machine = calloc(s->lines.functions + 1, sizeof(*machine));
	int error = machine ? 0 : -ENOMEM;
	for (unsigned p = 0; p < COVERAGE_PHASES; p++) {
		ran[p] = functions_run(s, p);
		error = ran[p] ? error : -ENOMEM;
	}
	for (unsigned f = 0; f < s->lines.functions && !error; f++)
		for (unsigned p = COVERAGE_RUN; p < COVERAGE_PHASES; p++)
			machine[f] |= ran[p][f];
	for (unsigned i = 0; i < s->lines.rows && !error; i++) {
		const struct source_row *row = &s->lines.row[i];
		if (counts(s, row, machine, ran[COVERAGE_OUTSIDE]))
			add_row(s, row, ran[COVERAGE_RECOVERY][s->lines.function_of[row->site]],
				out);
	}
	for (unsigned i = 0; i < out->n; i++)
		out->line[i].part &= out->line[i].count[COVERAGE_RECOVERY] > 0;
	for (unsigned p = 0; p < COVERAGE_PHASES; p++)
		free(ran[p]);
	free(machine);
	return error;
}

struct covered_line *coverage_line(const struct covered_report *r, unsigned file, unsigned line)
{
	unsigned lo = 0, hi = r->n;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		const struct covered_line *l = &r->line[mid];
		if (l->file < file || (l->file == file && l->line < line))
			lo = mid + 1;
		else
			hi = mid;
	}
	struct covered_line *found = &r->line[lo];
	return lo < r->n && found->file == file && found->line == line ? found : NULL;
}

/* --- branches --- */

static int by_code(const void *a, const void *b)
{
	const struct covered_branch *x = a, *y = b;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	int order = strcmp(x->function, y->function);
	return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

int coverage_missed_way(const struct covered_branch *branch)
{
	return !branch->count[0] == !branch->count[1] ? -1 : branch->count[0] ? 1 : 0;
}

void coverage_way_name(const struct covered_branch *branch, unsigned way, char *buf, size_t n)
{
	if (!branch->to[way])
		snprintf(buf, n, "never out of this file");
	else if (branch->to[way] == branch->line)
		snprintf(buf, n, "never on in the line");
	else
		snprintf(buf, n, "never to line %u", branch->to[way]);
}

static void make_branches(const struct covered_store *s, struct covered_report *out)
{
	const struct source_lines *l = &s->lines;
	unsigned n = 0;
	for (unsigned i = 0; i < l->branches; i++) {
		const struct source_branch *b = &l->branch[i];
		const struct covered_line *line = coverage_line(out, b->file, b->line);
		if (line && line->in_recovery)
			out->branch[out->branches++] = (struct covered_branch){
				.file = b->file,
				.line = b->line,
				.to = {b->to[0], b->to[1]},
				.count = {s->count.branch[0][i], s->count.branch[1][i]},
				.function = l->function[b->function].name,
				.at = b->jump.at - l->function[b->function].begin};
	}
	if (out->branches)
		qsort(out->branch, out->branches, sizeof(*out->branch), by_code);
	for (unsigned i = 0; i < out->branches; i++) {
		struct covered_branch *last = n ? &out->branch[n - 1] : NULL;
		if (!last || by_code(last, &out->branch[i]) != 0) {
			out->branch[n++] = out->branch[i];
			continue;
		}
		for (unsigned way = 0; way < 2; way++)
			if (last->count[way] < out->branch[i].count[way])
				last->count[way] = out->branch[i].count[way];
	}
	out->branches = n;
	for (unsigned i = 0; i < n; i++)
		if (coverage_missed_way(&out->branch[i]) >= 0)
			coverage_line(out, out->branch[i].file, out->branch[i].line)->part = true;
}

bool coverage_has_file(const struct covered_report *r, unsigned file)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->line[i].file == file)
			return true;
	return false;
}

struct covered_figures coverage_figures(const struct covered_report *r, enum coverage_phase phase,
					int file)
{
	struct covered_figures f = {0};
	for (unsigned i = 0; i < r->n; i++) {
		const struct covered_line *line = &r->line[i];
		if ((file >= 0 && line->file != (unsigned)file) ||
		    (phase == COVERAGE_RECOVERY && !line->in_recovery))
			continue;
		f.all++;
		f.ran += line->count[phase] > 0;
	}
	return f;
}

/* --- places --- */

/* The line around an address. */
static void find_line(const struct source_lines *l, uintptr_t pc, struct covered_cut *cut)
{
	int function = source_lines_function(l, pc);
	cut->file = -1;
	if (function < 0 || !l->function[function].sites)
		return;
	const struct source_row *row = &l->row[source_lines_row(l, (unsigned)function, pc, false)];
	cut->file = (int)row->file;
	cut->line = row->line;
}

static int by_place(const void *a, const void *b)
{
	const struct covered_cut *x = a, *y = b;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->code < y->code ? -1 : x->code > y->code;
}

static struct covered_cut *cut_of(struct covered_report *out, const struct covered_cut *cut)
{
	unsigned at = 0;
	while (at < out->cuts && by_place(&out->cut[at], cut) != 0)
		at++;
	if (at == out->cuts)
		out->cut[out->cuts++] = *cut;
	return &out->cut[at];
}

/* A call that flushes or fences, in a line that never ran. */
static void add_unreached(const struct covered_store *s, const struct place *place,
			  struct covered_report *out)
{
	struct covered_cut cut = {.kind = CUT_FLUSH};
	find_line(&s->lines, place->key, &cut);
	const struct covered_line *line = cut.file < 0 ? NULL
						       : coverage_line(out, (unsigned)cut.file,
								       cut.line);
	if (!line || place->part || line->count[COVERAGE_RUN] || line->count[COVERAGE_RECOVERY] ||
	    line->count[COVERAGE_AFTER])
		return;
	if (place->kind != PLACE_FENCE)
		cut_of(out, &cut);
	cut.kind = CUT_FENCE;
	if (place->kind != PLACE_FLUSH)
		cut_of(out, &cut);
}

static int make_cuts(const struct covered_store *s, const struct place_list *places,
		     struct covered_report *out)
{
	out->cut = calloc(s->places + 2ull * places->n + 1, sizeof(*out->cut));
	if (!out->cut)
		return -ENOMEM;
	for (unsigned i = 0; i < s->places; i++) {
		const struct cut_place *place = &s->place[i];
		struct covered_cut cut = {.kind = place->kind, .code = place->code};
		find_line(&s->lines, place->pc, &cut);
		struct covered_cut *into = cut_of(out, &cut);
		for (unsigned f = 0; f < CUT_FATES; f++) {
			into->fate[f] += place->fate[f];
			into->times += place->fate[f];
		}
	}
	for (unsigned i = 0; i < places->n; i++)
		if (places->place[i].kind == PLACE_FLUSH || places->place[i].kind == PLACE_FENCE ||
		    places->place[i].kind == PLACE_PERSIST)
			add_unreached(s, &places->place[i], out);
	if (out->cuts)
		qsort(out->cut, out->cuts, sizeof(*out->cut), by_place);
	return 0;
}

void coverage_cut_name(const struct covered_cut *cut, char *buf, size_t n)
{
	unsigned number = operation_number(cut->code);
	if (cut->kind != CUT_LANDING)
		snprintf(buf, n, "%s", cut->kind == CUT_FLUSH ? "flush" : "fence");
	else
		snprintf(buf, n, "landing of %s",
			 cut->file < 0 || number == OPERATIONS ? "a request"
							       : operations[number].name);
}

void coverage_cut_why(const struct covered_cut *cut, char *buf, size_t n)
{
	static const char *const says[CUT_FATES] = {
		[CUT_KNOWN] = "could leave only what was known",
		[CUT_BUDGET] = "had no budget",
		[CUT_APART] = "where power is not cut",
		[CUT_NOTHING] = "changed nothing that survives",
	};
	size_t len = (size_t)snprintf(buf, n, "%" PRIu64 " time%s", cut->times, plural(cut->times));
	const char *before = ": ";
	if (!cut->times)
		snprintf(buf, n, "never come to");
	for (unsigned f = CUT_DONE + 1; f < CUT_FATES; f++) {
		if (!cut->fate[f] || len >= n)
			continue;
		len += (size_t)snprintf(buf + len, n - len, "%s%" PRIu64 " %s", before,
					cut->fate[f], says[f]);
		before = ", ";
	}
}

/* --- all --- */

int coverage_report(const struct covered_store *store, const struct place_list *places,
		    struct covered_report *out)
{
	memset(out, 0, sizeof(*out));
	out->store = store->store;
	out->lines = &store->lines;
	out->count = &store->count;
	out->line = calloc(store->lines.rows + 1, sizeof(*out->line));
	out->branch = calloc(store->lines.branches + 1, sizeof(*out->branch));
	if (!out->line || !out->branch)
		return -ENOMEM;
	int error = make_lines(store, out);
	if (error)
		return error;
	make_branches(store, out);
	return make_cuts(store, places, out);
}

void coverage_report_free(struct covered_report *r)
{
	free(r->line);
	free(r->cut);
	free(r->branch);
	memset(r, 0, sizeof(*r));
}
