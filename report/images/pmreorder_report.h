/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_PMREORDER_REPORT_H
#define TM_REPORT_PMREORDER_REPORT_H
/* What came of pmreorder's states. */
#include "checker/images/pmreorder.h"
#include "report/images/images_report.h"

/* Of *r, the log and its name are used. */
void pmreorder_print(const struct images_report *r, const struct pmreorder_result *x);
void pmreorder_conclude(const struct pmreorder_result *x, struct conclusion *c);

#endif
