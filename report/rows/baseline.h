/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_ROWS_BASELINE_H
#define TM_REPORT_ROWS_BASELINE_H
/* A campaign and its baseline (checker/judge/baseline.h): what the baseline accepts of it, and the
 * baseline that accepts all of it. */
#include "report/report.h"

/* What is accepted, a line; and each row that is not needed any more, a line. `path`: the
 * baseline's name. */
void report_baseline(const struct report *r, const char *path);
/*
 * A baseline that accepts each break that needs attention, for the causes that were seen; with
 * those of the campaign's own baseline that were seen, too, or could not be. Not accepted are that
 * something holds and that a known cause is far too frequent. For a campaign with options.blames.
 * *more: there are causes of which there is no room to say what they are. As save_file().
 */
int report_baseline_save(const struct report *r, const char *path, bool *more);

#endif
