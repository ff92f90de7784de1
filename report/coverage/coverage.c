/* SPDX-License-Identifier: BSD-3-Clause */
/* From sites and addresses to lines: see coverage.h. */
#include "report/coverage/coverage.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"

/* --- lines --- */

/* Of each function the phases, as bits, in which a part of it ran. To be freed; NULL without
 * memory. */
static uint8_t *functions_run(const struct covered_store *s)
{
	uint8_t *ran = calloc(s->lines.functions, sizeof(*ran));
	for (size_t i = 0; ran && i < s->lines.rows; i++)
		for (unsigned p = 0; p < COVERAGE_PHASES; p++)
			if (s->count[s->lines.row[i].block][p])
				ran[s->lines.row[i].function] |= (uint8_t)(1 << p);
	return ran;
}

static int by_line(const void *a, const void *b)
{
	const struct covered_line *x = a, *y = b;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* A part of a line, or another copy of it, counts where it ran most. */
static void merge_lines(struct covered_report *out)
{
	unsigned n = 0;
	if (out->n)
		qsort(out->line, out->n, sizeof(*out->line), by_line);
	for (unsigned i = 0; i < out->n; i++) {
		const struct covered_line *one = &out->line[i];
		struct covered_line *last = n ? &out->line[n - 1] : NULL;
		if (!last || by_line(last, one) != 0) {
			out->line[n++] = *one;
			continue;
		}
		last->in_recovery |= one->in_recovery;
		for (unsigned p = 0; p < COVERAGE_PHASES; p++)
			if (last->count[p] < one->count[p])
				last->count[p] = one->count[p];
	}
	out->n = n;
}

/* What only the checker calls does not count. */
static int make_lines(const struct covered_store *s, struct covered_report *out)
{
	uint8_t *ran = functions_run(s);
	if (!ran)
		return -ENOMEM;
	for (size_t i = 0; i < s->lines.rows; i++) {
		const struct source_row *row = &s->lines.row[i];
		struct covered_line *line = &out->line[out->n];
		if (ran[row->function] == 1 << COVERAGE_OUTSIDE)
			continue;
		*line = (struct covered_line){.file = row->file, .line = row->line};
		memcpy(line->count, s->count[row->block], sizeof(line->count));
		line->in_recovery = ran[row->function] >> COVERAGE_RECOVERY & 1;
		out->n++;
	}
	free(ran);
	merge_lines(out);
	return 0;
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

/* --- places --- */

/* The line around an address. */
static void find_line(const struct source_lines *l, uintptr_t pc, struct covered_cut *cut)
{
	const struct source_row *row = source_lines_row(l, pc);
	cut->file = row ? (int)row->file : -1;
	cut->line = row ? row->line : 0;
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

/* --- all --- */

int coverage_report(const struct covered_store *store, const struct place_list *places,
		    struct covered_report *out)
{
	memset(out, 0, sizeof(*out));
	out->store = store->store;
	out->lines = &store->lines;
	out->count = store->count;
	out->line = calloc(store->lines.rows + 1, sizeof(*out->line));
	int error = out->line ? make_lines(store, out) : -ENOMEM;
	return error ? error : make_cuts(store, places, out);
}

void coverage_report_free(struct covered_report *r)
{
	free(r->line);
	free(r->cut);
	memset(r, 0, sizeof(*r));
}
