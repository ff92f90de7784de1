/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Coverage as a tracefile of lcov (geninfo(1)): a test for each phase, so that they can be shown
 * apart. A count is the number of workloads, each under one configuration, in which a line ran.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "report/coverage/coverage.h"

/* Functions of one name and line, such as the copies of one in a header, are one. */
static bool is_first(const struct source_lines *l, unsigned function)
{
	const struct source_function *f = &l->function[function];
	for (unsigned i = 0; i < function; i++)
		if (l->function[i].sites && l->function[i].file == f->file &&
		    l->function[i].line == f->line && !strcmp(l->function[i].name, f->name))
			return false;
	return true;
}

static uint32_t times(const struct covered_report *r, unsigned function, enum coverage_phase phase)
{
	const struct source_lines *l = r->lines;
	const struct source_function *f = &l->function[function];
	uint32_t most = 0;
	for (unsigned i = function; i < l->functions; i++) {
		const struct source_function *other = &l->function[i];
		if (!other->sites || other->file != f->file || other->line != f->line ||
		    strcmp(other->name, f->name) != 0)
			continue;
		uint32_t n = r->count->site[phase][other->first_site];
		most = n > most ? n : most;
	}
	return most;
}

static void write_functions(FILE *out, const struct covered_report *r, unsigned file,
			    enum coverage_phase phase)
{
	const struct source_lines *l = r->lines;
	unsigned found = 0, hit = 0;
	for (unsigned i = 0; i < l->functions; i++) {
		const struct source_function *f = &l->function[i];
		if (!f->sites || f->file != file || !coverage_line(r, file, f->line) ||
		    !is_first(l, i))
			continue;
		uint32_t n = times(r, i, phase);
		fprintf(out, "FN:%u,%s\nFNDA:%" PRIu32 ",%s\n", f->line, f->name, n, f->name);
		found++;
		hit += n > 0;
	}
	fprintf(out, "FNF:%u\nFNH:%u\n", found, hit);
}

/* A branch that was never come to has no counts. */
static void write_branches(FILE *out, const struct covered_report *r, unsigned file)
{
	unsigned found = 0, hit = 0, block = 0;
	for (unsigned i = 0; i < r->branches; i++) {
		const struct covered_branch *b = &r->branch[i];
		if (b->file != file)
			continue;
		block = i && b[-1].file == file && b[-1].line == b->line ? block + 1 : 0;
		for (unsigned way = 0; way < 2; way++) {
			fprintf(out, "BRDA:%u,%u,%u,", b->line, block, way);
			if (b->count[0] || b->count[1])
				fprintf(out, "%" PRIu32 "\n", b->count[way]);
			else
				fputs("-\n", out);
			found++;
			hit += b->count[way] > 0;
		}
	}
	fprintf(out, "BRF:%u\nBRH:%u\n", found, hit);
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
	if (phase == COVERAGE_RECOVERY)
		write_branches(out, r, file);
	fprintf(out, "LF:%u\nLH:%u\nend_of_record\n", found, hit);
}

int coverage_write_lcov(FILE *out, const void *files)
{
	const struct covered_files *f = files;
	for (unsigned p = COVERAGE_RUN; p < COVERAGE_PHASES; p++)
		for (unsigned i = 0; i < f->n; i++)
			for (unsigned file = 0; file < f->report[i].lines->files; file++)
				if (coverage_has_file(&f->report[i], file))
					write_file(out, &f->report[i], file, p);
	return 0;
}
