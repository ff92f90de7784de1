/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_FINDING_PLACE_H
#define TM_REPORT_FINDING_PLACE_H
/* The line of source that a broken contract is about. */
#include "report/trace/event_trace.h"
#include "report/findings.h"

/* The top of the source tree that the working directory is in: of its repository, or that
 * directory. */
void finding_top(char top[FINDING_FILE]);
/* Of a replayed trace, whose cause is found: fills one->file and one->line. */
void finding_place(const struct event_trace *st, const char *top, struct finding *one);
/* Of a store without a trace: its recovery. */
void finding_place_of_store(const struct tm_store *store, const char *top, struct finding *one);

#endif
