/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_ABLATE_REPORT_H
#define TM_REPORT_HUNT_ABLATE_REPORT_H
/* What each place of a store is good for: a table, and JSON. */
#include "checker/hunt/ablate.h"
#include "report/conclusion.h"

void ablate_print(const struct ablation *a);
/* 0 or -errno. */
void ablate_conclude(const struct ablation *a, struct conclusion *c);
int ablate_json(const struct ablation *a, const struct conclusion *c, const char *path);

#endif
