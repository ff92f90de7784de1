/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_PAGE_CAMPAIGN_H
#define TM_REPORT_PAGE_CAMPAIGN_H
/* The pages of a campaign's traces. The page of its tree, index.html, leads to them. */
#include "report/report.h"

/*
 * Write them to the folder `dir`, after report_traces() with r->out. 0 or -errno with *why;
 * -EPROTO: a trace does not run as it was written.
 */
int report_pages(const struct report *r, const char *dir, bool quiet, char why[REPORT_WHY]);

#endif
