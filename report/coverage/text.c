/* SPDX-License-Identifier: BSD-3-Clause */
/* Coverage as a short text: of each store what never ran and what was never cut. */
#include <stdlib.h>
#include <string.h>
#include "report/coverage/coverage.h"
#include "report/terminal.h"

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
static void print_list(const struct covered_report *r, const char *what, listed *is)
{
	char *text = NULL;
	size_t size;
	int file = -1;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return;
	fprintf(out, "%s: ", what);
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
	if (!fclose(out) && file >= 0) {
		fputs("  ", stdout);
		print_wrapped(2, text);
	}
	free(text);
}

static void print_phase(const struct covered_report *r, enum coverage_phase phase)
{
	const struct covered_figures f = coverage_figures(r, phase);
	printf("  %-12s %5u of %5u lines%s\n", coverage_phase_names[phase], f.ran, f.all,
	       phase == COVERAGE_RECOVERY ? " of the functions that it calls" : "");
}

static void print_kind(const struct covered_report *r, enum cut_kind kind)
{
	static const char *const names[CUT_KINDS] = {"flushes", "fences", "landings"};
	unsigned all = 0, cut = 0;
	for (unsigned i = 0; i < r->cuts; i++) {
		if (r->cut[i].kind != kind)
			continue;
		all++;
		cut += r->cut[i].fate[CUT_DONE] > 0;
	}
	printf("  %-12s %5u of %5u places cut\n", names[kind], cut, all);
}

static void print_cut(const struct covered_report *r, const struct covered_cut *cut)
{
	char name[64], why[300], text[700];
	coverage_cut_name(cut, name, sizeof(name));
	coverage_cut_why(cut, why, sizeof(why));
	if (cut->file < 0)
		snprintf(text, sizeof(text), "never cut: %s, %s", name, why);
	else
		snprintf(text, sizeof(text), "never cut: %s:%u, %s, %s",
			 r->lines->file[cut->file].shown, cut->line, name, why);
	fputs("  ", stdout);
	print_wrapped(2, text);
}

void coverage_print(const struct covered_report *r)
{
	printf("\n%scoverage of %s%s\n", paint(BOLD), r->store->name, paint(PLAIN));
	for (unsigned p = COVERAGE_RUN; p < COVERAGE_PHASES; p++)
		print_phase(r, p);
	for (unsigned k = 0; k < CUT_KINDS; k++)
		print_kind(r, k);
	print_list(r, "never ran", never_ran);
	print_list(r, "never ran in recovery", not_recovered);
	for (unsigned i = 0; i < r->cuts; i++)
		if (!r->cut[i].fate[CUT_DONE])
			print_cut(r, &r->cut[i]);
}
