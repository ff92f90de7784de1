/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_REPORT_H
#define TM_REPORT_REPORT_H
/* The matrix that people see, and the same for machines. */
#include <jansson.h>
#include "checker/trace/minimized.h"
#include "report/case.h"
#include "report/junit.h"

struct report_cell {
	struct report_case one[MINIMIZED_MAX];
	unsigned cases;	 /* none: it holds, or was not looked at again */
	unsigned left;	 /* as in struct minimized */
	bool surprise;	 /* not as expected */
	const char *why; /* the expectation's sentence, or NULL */
};

struct report {
	const struct campaign *campaign;
	struct report_cell (*cell)[TM_CONTRACTS];
	bool whole; /* the default campaign in full: expectations count in both directions */
	unsigned surprises, traces;
	unsigned open;	 /* configurations in which a systematic search left something out */
	const char *out; /* where the traces are, NULL: none were asked for */
};

/* "erda one_flush (ddio=off)" */
void config_name(const struct campaign_config *cfg, char *buf, size_t n);
void report_print(const struct report *r);
/* Files, with results as save_file(). */
int report_json(const struct report *r, const char *path);
int json_save(const json_t *all, const char *path);
/* A test case for each cell. */
void report_junit(const struct report *r, struct junit *j);

#endif
