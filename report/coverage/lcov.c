/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Coverage as a tracefile of lcov (geninfo(1)): a test for each phase, so that they can be shown
 * apart. A count is the number of workloads, each under one configuration, in which a line ran.
 */
#include <inttypes.h>
#include <string.h>
#include "report/coverage/coverage.h"

static bool is_same(const struct source_function *a, const struct source_function *b)
{
	return b->blocks && a->file == b->file && a->line == b->line && !strcmp(a->name, b->name);
}

/* In how many units a function ran. Those of one name and line, such as the copies of one in a
 * header, are one: *first, it is the first of them. */
static uint32_t times(const struct covered_report *r, size_t function, enum coverage_phase phase,
		      bool *first)
{
	const struct source_function *all = r->lines->function, *f = &all[function];
	uint32_t most = 0;
	*first = true;
	for (size_t i = 0; i < r->lines->functions; i++) {
		if (!is_same(f, &all[i]))
			continue;
		*first &= i >= function;
		if (most < r->count[all[i].first_block][phase])
			most = r->count[all[i].first_block][phase];
	}
	return most;
}

static void write_functions(FILE *out, const struct covered_report *r, unsigned file,
			    enum coverage_phase phase)
{
	unsigned found = 0, hit = 0;
	for (size_t i = 0; i < r->lines->functions; i++) {
		const struct source_function *f = &r->lines->function[i];
		bool first = false;
		uint32_t n = 0;
		if (f->blocks && f->file == file && coverage_line(r, file, f->line))
			n = times(r, i, phase, &first);
		if (!first)
			continue;
		fprintf(out, "FN:%u,%s\nFNDA:%" PRIu32 ",%s\n", f->line, f->name, n, f->name);
		found++;
		hit += n > 0;
	}
	fprintf(out, "FNF:%u\nFNH:%u\n", found, hit);
}

static void write_file(FILE *out, const struct covered_report *r, unsigned file,
		       enum coverage_phase phase)
{
	static const char *const test[COVERAGE_PHASES] = {"outside", "run", "recovery",
							  "second_life"};
	unsigned found = 0, hit = 0;
	fprintf(out, "TN:%s\nSF:%s\n", test[phase], r->lines->file[file].path);
	write_functions(out, r, file, phase);
	for (unsigned i = 0; i < r->n; i++) {
		const struct covered_line *line = &r->line[i];
		if (line->file != file || (phase == COVERAGE_RECOVERY && !line->in_recovery))
			continue;
		fprintf(out, "DA:%u,%" PRIu32 "\n", line->line, line->count[phase]);
		found++;
		hit += line->count[phase] > 0;
	}
	fprintf(out, "LF:%u\nLH:%u\nend_of_record\n", found, hit);
}

static bool has_line(const struct covered_report *r, unsigned file)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->line[i].file == file)
			return true;
	return false;
}

int coverage_write_lcov(FILE *out, const void *files)
{
	const struct covered_files *f = files;
	for (unsigned p = COVERAGE_RUN; p < COVERAGE_PHASES; p++)
		for (unsigned i = 0; i < f->n; i++)
			for (unsigned file = 0; file < f->report[i].lines->files; file++)
				if (has_line(&f->report[i], file))
					write_file(out, &f->report[i], file, p);
	return 0;
}
