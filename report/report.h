/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_REPORT_H
#define TM_REPORT_REPORT_H
/* The matrix that people see, and the same for machines. */
#include <jansson.h>
#include "checker/trace/minimized.h"
#include "report/case.h"
#include "report/tree.h"

#define REPORT_WHY	600 /* bytes of a message */
#define REPORT_NAME	(2 * CAMPAIGN_NAME)
#define REPORT_SENTENCE (BLAME_TEXT + 1024)
#define REPORT_TAKES	400
/* So many configurations may have tables that fit on a screen or two. */
#define REPORT_TABLES 2

struct report_cell {
	struct report_case one[MINIMIZED_MAX];
	unsigned cases;	 /* none: it holds, or was not looked at again */
	unsigned left;	 /* as in struct minimized */
	bool surprise;	 /* not as expected */
	bool strange;	 /* it is, for it may break, but not for this cause, */
	bool often;	 /* or not in so many runs */
	bool accepted;	 /* it would need attention, but the baseline accepts its causes */
	bool unseen;	 /* it is expected to break, and need not have with so small a budget */
	const char *why; /* the expectation's sentence, or NULL */
};

struct report {
	const struct campaign *campaign;
	struct report_cell (*cell)[TM_CONTRACTS];
	bool whole;    /* the default campaign in full: expectations count in both directions */
	bool budgeted; /* it would be, with more runs and states */
	unsigned surprises, traces;
	unsigned open;	      /* configurations in which a systematic search left something out */
	unsigned undone;      /* configurations of which not all workloads are done */
	const char *out;      /* where the traces are, NULL: none were asked for */
	const char *baseline; /* the file of campaign->options.baseline; NULL: none */
	int unwritten; /* the status, if a trace or another file could not be written; or 0 */
	/* Why the campaign was left off, and the command that does all of it; NULL: it was not. */
	const char *left_off, *whole_command;
	char tried[200]; /* what is less than usual: "60 of the usual 600 runs ..."; "": nothing */
	struct conclusion conclusion;
};

/* The matrix while it is printed. */
struct report_matrix {
	struct report *report;
	unsigned next;	/* the first configuration that is not printed */
	unsigned split; /* == next: an earlier one of its store has a row of its own */
	unsigned rows, width;
	unsigned contracts; /* TM_BIT()s: those of which something can be said */
	bool narrow;	    /* their names are on two lines, by turns */
	bool ended;	    /* no more is going to be done */
};

/* "erda one_flush": the store, and its variant where it is not the default. */
void group_name(const struct campaign_config *cfg, char *buf, size_t n);
/* "erda one_flush (ddio=off)" */
void config_name(const struct campaign_config *cfg, char *buf, size_t n);
/* Of the same store, and the same variant of it? */
bool same_group(const struct campaign_config *a, const struct campaign_config *b);
/* Before the campaign, of which the configurations are known; campaign and whole are set. 0 or
 * -ENOMEM. */
int report_open(struct report *r);
/* Judge a configuration by what is done of it. Is a cell of it not as expected? */
bool report_judge(struct report *r, unsigned config);
/* Judge all, when the campaign has ended. */
void report_judge_all(struct report *r);
/* r->conclusion, after that, of what is known of r->unwritten until now. */
void report_conclude(struct report *r);
/* All workloads of this configuration are done. */
bool report_is_whole(const struct report *r, unsigned config);
/* A shape's column in which everything is as expected: one line, and no traces. After
 * report_judge(). */
bool report_in_short(const struct report *r, unsigned config);
void report_close(struct report *r);
/*
 * How the broken cells break: shrunk, each case with a trace below r->out; NULL: as found, without
 * a trace. 0 or -errno with *why; -EPROTO: a run does not break its contract a second time.
 */
int report_traces(struct report *r, bool quiet, char why[REPORT_WHY]);
/* For people: a table for each configuration, and all that is to be said of its cells; or what
 * matters of that, on about one screen: the matrix, of which rows can be printed while the campaign
 * runs, and what is below it. `tree`: report_tree(). */
void report_tables(const struct report *r, const json_t *tree);
void report_matrix_begin(struct report_matrix *m, struct report *r);
/* Rows that are finished, and judged. */
void report_matrix_rows(struct report_matrix *m);
/* All others, and the legend. */
void report_matrix_end(struct report_matrix *m);
void report_summary(const struct report *r, const json_t *tree);
/* For outputs_write(), with a case for each cell. NULL without memory. */
json_t *report_tree(const struct report *r);

/* --- parts of both texts --- */

/* It is not broken, but not all was tried in which it could have been. */
bool report_unsure(const struct report *r, unsigned config, unsigned k);
/* A cell's mark in the matrix, as its legend says; ' ': the store is not judged by the contract. */
char report_mark(const struct report *r, unsigned config, unsigned k);
/* The matrix's columns: contracts by which some store is judged, as TM_BIT()s. */
unsigned report_judged(const struct campaign *c);
/* "12 of 345 runs and states": in how many the contract is broken. */
void report_broken_in(const struct report *r, unsigned config, unsigned k, char *buf, size_t n);
/* Are the two cells the same surprise under two configurations? */
bool same_surprise(const struct report *r, unsigned a, unsigned b, unsigned k);

#define REPORT_ROWS 256

/* A contract that breaks, which is a surprise, in most rows of the hardware, and holds in a few. */
struct holds_on {
	unsigned home;		/* the configuration with the default hardware */
	unsigned contracts;	/* TM_BIT()s of those that hold in the same rows */
	bool first;		/* it is told with this cell */
	char rows[REPORT_ROWS]; /* where it holds: "ddio=off, domain=mhp" */
};

/* False: the cell is no part of such a thing. */
bool report_holds_on(const struct report *r, unsigned config, unsigned k, struct holds_on *out);
/* Where it breaks, as a row of expected.txt has it: "ddio=on+domain=dmp". */
void holds_on_condition(const struct holds_on *h, char text[REPORT_ROWS]);
/* In capitals, what is not as expected of a cell. */
const char *report_surprise(const struct report_cell *cell);
/* For which cause a surprising cell broke, or how often, if that is the surprise: a sentence.
 * False: it is not. */
bool report_cause(const struct report *r, unsigned config, unsigned k,
		  char sentence[REPORT_SENTENCE]);
/* "compress_get=literal, grace=none" */
void report_takes(const struct campaign_config *cfg, uint32_t takes, char *buf, size_t n);
/* How many workloads of a configuration's store were not run, because of its limits; a sentence. */
unsigned report_not_run(const struct campaign *c, unsigned config, char sentence[REPORT_SENTENCE]);
/* A cell in report_tree(). */
json_t *report_cell_of(const struct report *r, const json_t *tree, unsigned config, unsigned k);
/* Which traces this campaign has written, and which are older. */
void report_written(const struct report *r);
/* The last lines: traces, states, and the conclusion. */
void report_end(const struct report *r);

#endif
