/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_CASE_H
#define TM_REPORT_CASE_H
/* A broken contract as it is reported: how it breaks, and the trace that shows it. */
#include <stdbool.h>
#include <stdint.h>
#include "faultinject/deviation.h"

struct setup;

struct report_case {
	char *trace;			 /* file; NULL: none */
	char text[300];			 /* how it breaks */
	unsigned operations, deviations; /* of the trace */
	bool whole;			 /* it is as it was found, not shrunk */
	uint32_t takes;			 /* as in struct minimized_failure */
};

/* Note how large the case is; and write it to one->trace unless that is NULL. 0 or -errno. */
int report_case_save(struct report_case *one, const struct setup *s, const struct deviations *path,
		     unsigned contract);

#endif
