/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_PAGE_CAMPAIGN_H
#define TM_REPORT_PAGE_CAMPAIGN_H
/* A whole campaign as pages: index.html with its matrix, and a page of each trace. */
#include "report/report.h"

#define PAGE_FILE (REPORT_NAME + 64) /* bytes of a page's name, without its folder */

/*
 * Write them to the folder `dir`, after report_traces() with r->out. 0 or -errno with *why;
 * -EPROTO: a trace does not run as it was written.
 */
int report_pages(const struct report *r, const char *dir, bool quiet, char why[REPORT_WHY]);

/* "efactory-DUR.html", for "traces/efactory-DUR.trace". */
void campaign_page_file(const char *trace, char file[PAGE_FILE]);
/* index.html; `report` is a struct report. For save_file(). */
int campaign_index(FILE *out, const void *report);

#endif
