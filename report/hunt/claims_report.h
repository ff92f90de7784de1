/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_CLAIMS_REPORT_H
#define TM_REPORT_HUNT_CLAIMS_REPORT_H
/* What came of claims, and of the knobs that their file speaks of. */
#include "checker/hunt/claims_run.h"
#include "checker/hunt/sensitivity.h"
#include "report/case.h"
#include "report/tree.h"

struct claims_report {
	const struct claims_run *run;
	struct report_case *one; /* by run->cases; of those that broke */
	double seconds;
};

void claims_conclude(const struct claims_report *r, struct conclusion *c);
/* For outputs_write(), and for text_print(), as "claims". NULL without memory. */
json_t *claims_tree(const struct claims_report *r);
/* What would be tested: for text_print(), as "claims_list". */
json_t *claims_list(const struct claim *const *claim, unsigned claims);

/* How many knobs' values are otherwise than the file says, or missing in it. */
unsigned sensitivity_print(const struct sensitivity *f);

#endif
