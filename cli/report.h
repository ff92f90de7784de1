/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_H
#define TM_REPORT_H
/* The matrix that people see, and the same for machines. */
#include "checker/campaign.h"

struct report_cell {
	char *trace;			 /* file, NULL if none */
	char text[300];			 /* how it breaks */
	unsigned operations, deviations; /* of the trace */
	bool whole;			 /* the trace is as it was found, shrinking failed */
	bool surprise;			 /* not as expected */
	const char *why;		 /* the expectation's sentence, or NULL */
};

struct report {
	const struct campaign *campaign;
	struct report_cell (*cell)[TM_CONTRACTS];
	bool whole; /* the default campaign in full: expectations count in both directions */
	unsigned surprises, traces;
	unsigned open; /* configurations in which a systematic search left something out */
	const char *out; /* where the traces are, NULL: none were asked for */
};

void report_print(const struct report *r);
/* 0 or -errno; nothing partial is left behind, unless `path` is no plain file and is written as it stands. */
int report_json(const struct report *r, const char *path);

#endif
