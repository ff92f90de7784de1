/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_MODELS_TAXONOMY_REPORT_H
#define TM_REPORT_MODELS_TAXONOMY_REPORT_H
/* What `tidemark taxonomy` was asked for, and what its files share. */
#include "checker/models/taxonomy.h"
#include "report/report.h"

#define TAXONOMY_CONFIG 200 /* bytes of a configuration in words */

struct taxonomy_request {
	struct taxonomy_options options;
	uint64_t methods; /* 1 << method */
	bool all;	  /* every method: the papers' tables can be compared */
	bool advise;
	const char *out;
	const char *table_name; /* "scenarios/taxonomy/taxonomy.txt", or the file of --table */
};

/* A cell, compared with the table. */
enum taxonomy_compared { TAXONOMY_EQUAL, TAXONOMY_DIFFERS, TAXONOMY_UNSURE, TAXONOMY_NOT_COMPARED };

struct taxonomy_report {
	const struct taxonomy_request *request;
	const struct taxonomy *t;
	const struct taxonomy_table *table;
	char *(*trace)[TAXONOMY_BREAKS]; /* files, by cell; NULL: none */
	double seconds;
	unsigned unmeasured; /* cells that were to be measured: it was left off */
	struct conclusion conclusion;
};

/* --- taxonomy_report.c --- */

enum taxonomy_compared taxonomy_compare(const struct taxonomy_report *r,
					const struct taxonomy_cell *cell);
/* "domain=dmp ddio=on rqwrb=dram transport=ib", and the knobs that were set, in words. */
void taxonomy_config(const struct taxonomy *t, unsigned column, unsigned transport, char *buf,
		     size_t n);
/* Cells of a verdict that the table has otherwise, and those that were not searched to the end. */
void taxonomy_count(const struct taxonomy_report *r, unsigned count[TAXONOMY_NOT_COMPARED + 1]);
/* Choices that are otherwise than the papers' tables have them. */
unsigned taxonomy_choices_differ(const struct taxonomy_report *r);
void taxonomy_conclude(const struct taxonomy_report *r, struct conclusion *c);
/* For outputs_write(), and for text_print(), as "taxonomy". NULL without memory. */
json_t *taxonomy_tree(const struct taxonomy_report *r);
json_t *taxonomy_breaks_json(const struct taxonomy_report *r, const struct taxonomy_cell *cell);

/* --- taxonomy_traces.c --- */

/* Write the traces of all breaks of r->t, which is *t, and name them in r->trace. 0 or -errno with
 * *why. */
int taxonomy_write_traces(struct taxonomy_report *r, struct taxonomy *t, char why[REPORT_WHY]);

/* --- taxonomy_advise.c --- */

/* For text_print(), as "taxonomy_advise". */
json_t *taxonomy_advice(const struct taxonomy_report *r);

/* --- taxonomy_methods.c --- */

json_t *taxonomy_acts_json(const struct acts *acts);
/* All methods at the default knobs; else none. */
json_t *taxonomy_methods_json(const struct taxonomy_report *r);

#endif
