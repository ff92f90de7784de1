/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_COVERAGE_COVERAGE_H
#define TM_REPORT_COVERAGE_COVERAGE_H
/* What a campaign has covered, by line and by place: as text, and as a tracefile of lcov, of which
 * genhtml makes pages. docs/coverage.md says what the figures mean. */
#include <stdio.h>
#include "checker/campaign/covered.h"
#include "checker/world/places.h"

struct covered_line {
	unsigned file, line;
	uint32_t count[COVERAGE_PHASES]; /* units in which it ran */
	bool in_recovery;		 /* it is of a function that recovery calls */
};

/* The flushes, fences or landings of one line. */
struct covered_cut {
	int file; /* -1: not known */
	unsigned line;
	uint8_t kind, code;		 /* as in struct cut_place */
	uint64_t times, fate[CUT_FATES]; /* 0 times: it is in a line that never ran */
};

struct covered_report {
	const struct tm_store *store;
	const struct source_lines *lines;
	struct covered_line *line; /* by file and line */
	struct covered_cut *cut;   /* likewise, then by kind */
	unsigned n, cuts;
	const uint32_t (*count)[COVERAGE_PHASES]; /* of the store's blocks */
};

/* `places`: of all stores; none are known where it is empty. 0 or -ENOMEM; to be freed in any case.
 */
int coverage_report(const struct covered_store *store, const struct place_list *places,
		    struct covered_report *out);
void coverage_report_free(struct covered_report *r);

/* NULL: there is no code in that line, or it does not count. */
struct covered_line *coverage_line(const struct covered_report *r, unsigned file, unsigned line);

/* For people, on standard output. */
void coverage_print(const struct covered_report *r);
/* For save_file(): struct covered_files. */
struct covered_files {
	const struct covered_report *report;
	unsigned n;
};
int coverage_write_lcov(FILE *out, const void *files);

#endif
