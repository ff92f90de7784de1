/* SPDX-License-Identifier: BSD-3-Clause */
/* See examine_report.h. */
#include "report/live/examine_report.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include "checker/judge/names.h"
#include "report/report.h"
#include "core/text/text.h"

/* "--seed 5", "line 77 alone" */
static void name_subset(const struct exam_subset *s, char *buf, size_t n)
{
	if (s->kind == EXAM_SEED)
		snprintf(buf, n, "--seed %" PRIu64, s->number);
	else
		snprintf(buf, n, "line %" PRIu64 " %s", s->number,
			 s->kind == EXAM_ALONE ? "alone" : "missing");
}

static void print_break(const struct exam_break *b, unsigned contract, bool happened)
{
	char subset[64];

	name_subset(&b->subset, subset, sizeof(subset));
	printf("        %s", happened ? "it has happened" : "with other lines");
	if (!(CONTRACTS_BY_RUNNING & TM_BIT(contract)))
		printf(", %u key%s", b->keys, plural(b->keys));
	printf(happened ? ": " : " (%s): ", subset);
	puts(b->text);
}

static const char *verdict_word(const struct exam_cell *cell)
{
	return !cell->judged	     ? "not judged"
	       : cell->happened.keys ? "broken"
	       : cell->possible.keys ? "can break"
				     : "holds";
}

static void print_cell(const struct exam *e, unsigned k, unsigned watched)
{
	const struct exam_cell *cell = &e->cell[k];

	printf("  %-5s %s%s", contract_name(k), verdict_word(cell),
	       cell->judged ? ""
	       : k == TM_OK ? ": the recordings do not say what was injected"
			    : ": it is about several keys");
	if ((cell->happened.keys || cell->possible.keys) && !(watched & TM_BIT(k)))
		fputs(", which is known of this store", stdout);
	if (cell->unsure)
		printf(" (could not tell for %u key%s)", cell->unsure, plural(cell->unsure));
	putchar('\n');
	if (cell->happened.keys)
		print_break(&cell->happened, k, true);
	if (cell->possible.keys)
		print_break(&cell->possible, k, false);
}

void exam_print(const struct crash_bundle *a, const struct exam *e)
{
	const struct cut *c = &a->cut;

	printf("store %s, variant %s, boot %u, %s\n", c->store.store->name, c->store.variant,
	       c->boot, c->store.running ? "cut while it was running" : "stopped in order");
	printf("%u key%s, %u operation%s of boot%s %u", e->keys, plural(e->keys), e->operations,
	       plural(e->operations), e->first == e->last ? "" : "s", e->first);
	if (e->first != e->last)
		printf(" to %u", e->last);
	printf(", %u recording%s\n", c->recordings, plural(c->recordings));
	if (e->left_out)
		printf("left out: %u operation%s of %u key%s with more than a history holds\n",
		       e->left_out, plural(e->left_out), e->trimmed, plural(e->trimmed));
	if (!c->started && e->first > 1)
		printf("where keys stood before boot %u is not known (--recovered)\n", e->first);
	if (c->cached)
		printf("%u line%s in flight, %u of them survived; %u subset%s tried\n", e->lines,
		       plural(e->lines), e->survived, e->images, plural(e->images));
	printf("values in the pool: %u whole, %u torn\n", e->torn.whole, e->torn.torn);
	if (e->torn.torn)
		printf("        %s\n", e->torn.text);
	if (e->not_judged)
		printf("%u key%s not judged: %s\n", e->not_judged, plural(e->not_judged),
		       e->why_not);
	if (e->full)
		puts("the pool has no room for another PUT, so that it can still be written is not "
		     "proved");
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		print_cell(e, k, exam_watched(c->store.store));
}

/* --- for machines --- */

static json_t *break_json(const struct exam_break *b)
{
	char subset[64] = "";

	if (b->keys)
		name_subset(&b->subset, subset, sizeof(subset));
	return json_pack("{s:i, s:s, s:s}", "keys", (int)b->keys, "subset", subset, "how", b->text);
}

static json_t *cells_json(const struct cut *c, const struct exam *e)
{
	json_t *cells = json_array();

	for (unsigned k = 0; cells && k < TM_CONTRACTS; k++) {
		const struct exam_cell *cell = &e->cell[k];

		json_array_append_new(
			cells, json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:s, s:i, s:o, s:o}",
					 "store", c->store.store->name, "variant", c->store.variant,
					 "contract", contract_name(k), "config", "live", "promised",
					 !!(c->store.store->promises & TM_BIT(k)), "watched",
					 !!(exam_watched(c->store.store) & TM_BIT(k)), "verdict",
					 verdict_word(cell), "unsure", (int)cell->unsure,
					 "happened", break_json(&cell->happened), "possible",
					 break_json(&cell->possible)));
	}
	return cells;
}

json_t *exam_tree(const struct crash_bundle *a, const struct exam *e, int status,
		  const char *bundle)
{
	return json_pack(
		"{s:o, s:i, s:i, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:s}",
		"cells", cells_json(&a->cut, e), "boot", (int)a->cut.boot, "first_boot",
		(int)e->first, "seed", (json_int_t)a->options.seed, "keys", (int)e->keys,
		"operations", (int)e->operations, "left_out", (int)e->left_out, "lines_in_flight",
		(int)e->lines, "lines_survived", (int)e->survived, "subsets", (int)e->images,
		"not_judged", (int)e->not_judged, "whole", (int)e->torn.whole, "torn",
		(int)e->torn.torn, "full", e->full, "status", status, "artefact", bundle);
}
