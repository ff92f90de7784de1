/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_LIVE_EXAMINE_REPORT_H
#define TM_REPORT_LIVE_EXAMINE_REPORT_H
/* What a power cut left of a live server, for people and for machines. */
#include <jansson.h>
#include "checker/live/crash_bundle.h"

/* The exit status that it comes to: only a break that is news counts. */
int exam_status(const struct cut *c, const struct exam *e);
/* For outputs_write(), without the exit status and the crash bundle; and for text_print(), as
 * "examine". NULL without memory. */
json_t *exam_tree(const struct crash_bundle *a, const struct exam *e);

#endif
