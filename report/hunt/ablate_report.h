/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_ABLATE_REPORT_H
#define TM_REPORT_HUNT_ABLATE_REPORT_H
/* What each place of a store is good for: a table, and JSON. */
#include "checker/hunt/ablate.h"
#include "report/tree.h"

void ablate_conclude(const struct ablation *a, struct conclusion *c);
/* For outputs_write(), and for text_print(), as "ablate". NULL without memory. */
json_t *ablate_tree(const struct ablation *a);

#endif
