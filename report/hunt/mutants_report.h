/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_MUTANTS_REPORT_H
#define TM_REPORT_HUNT_MUTANTS_REPORT_H
/* The seeded bugs that were looked for, for people and for machines. */
#include "checker/hunt/mutants_run.h"
#include "report/tree.h"

void mutants_conclude(const struct mutants_run *r, struct conclusion *c);
/* For outputs_write(), and for text_print(), as "mutants". NULL without memory. */
json_t *mutants_tree(const struct mutants_run *r);

#endif
