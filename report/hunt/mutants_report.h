/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_MUTANTS_REPORT_H
#define TM_REPORT_HUNT_MUTANTS_REPORT_H
/* The seeded bugs that were looked for, for people and for machines. */
#include "checker/hunt/mutants_run.h"
#include "report/conclusion.h"

void mutants_print(const struct mutants_run *r);
/* A file: 0 or -errno. */
void mutants_conclude(const struct mutants_run *r, struct conclusion *c);
int mutants_json(const struct mutants_run *r, const struct conclusion *c, const char *path);

#endif
