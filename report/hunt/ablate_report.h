/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_ABLATE_REPORT_H
#define TM_REPORT_HUNT_ABLATE_REPORT_H
/* What each place of a store is good for: a table, and JSON. */
#include "checker/hunt/ablate.h"

void ablate_print(const struct ablation *a);
/* 0 or -errno. */
int ablate_json(const struct ablation *a, const char *path);

#endif
