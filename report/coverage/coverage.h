/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_COVERAGE_COVERAGE_H
#define TM_REPORT_COVERAGE_COVERAGE_H
/* What a campaign has covered, by line and by place: as text, as an lcov file, as HTML pages.
 * docs/coverage.md says what the figures mean. */
#include <stdio.h>
#include "checker/explore/covered.h"
#include "checker/world/places.h"

struct covered_line {
	unsigned file, line;
	uint32_t count[COVERAGE_PHASES]; /* units in which it ran */
	bool in_recovery;		 /* it is of a function that recovery calls */
	bool part;			 /* it ran in recovery, but a part of it did not */
};

/* A branch in a function that recovery calls. */
struct covered_branch {
	unsigned file, line;
	unsigned to[2];	   /* as in struct source_branch */
	uint32_t count[2]; /* units in which recovery went that way */
	const char *function;
	uintptr_t at; /* within it: copies of a function are one */
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
	struct covered_line *line;     /* by file and line */
	struct covered_branch *branch; /* likewise, then in the order of the code */
	struct covered_cut *cut;       /* likewise, then by kind */
	unsigned n, branches, cuts;
	const struct covered_counts *count; /* the store's */
};

/* Lines that ran in a phase, of those that could. */
struct covered_figures {
	unsigned ran, all;
};

/* `places`: of all stores; none are known where it is empty. 0 or -ENOMEM; to be freed in any case.
 */
int coverage_report(const struct covered_store *store, const struct place_list *places,
		    struct covered_report *out);
void coverage_report_free(struct covered_report *r);

/* `file`: -1: of all. */
struct covered_figures coverage_figures(const struct covered_report *r, enum coverage_phase phase,
					int file);
/* Does a line of the file count? */
bool coverage_has_file(const struct covered_report *r, unsigned file);

/* NULL: there is no code in that line, or it does not count. */
struct covered_line *coverage_line(const struct covered_report *r, unsigned file, unsigned line);
/* Which way did the branch never go in recovery, though it went the other? -1: it went both, or
 * none. */
int coverage_missed_way(const struct covered_branch *branch);
/* "never to line 12". */
void coverage_way_name(const struct covered_branch *branch, unsigned way, char *buf, size_t n);

/* The name of a phase's column, and of a kind of place. */
extern const char *const coverage_phase_names[COVERAGE_PHASES];
/* "SEND", of the request; "flush", "fence". */
void coverage_cut_name(const struct covered_cut *cut, char *buf, size_t n);
/* Why it was never cut: "12 times; 10 changed nothing, 2 as known". */
void coverage_cut_why(const struct covered_cut *cut, char *buf, size_t n);

/* For people, on standard output. */
void coverage_print(const struct covered_report *r);
/* DIR/coverage.info, DIR/index.html and a page for each source file. 0 or -errno; *path is the file
 * that could not be written, to be freed. */
int coverage_save(const struct covered_report *reports, unsigned n, const char *dir, char **path);
/* For save_file(): struct covered_files. */
struct covered_files {
	const struct covered_report *report;
	unsigned n;
};
int coverage_write_lcov(FILE *out, const void *files);

#endif
