/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HISTORY_REPORT_H
#define TM_REPORT_HISTORY_REPORT_H
/* What clients' answers contradict by themselves, as JSON. */
#include <jansson.h>
#include "checker/logs/announced.h"

json_t *history_json(const struct announcements *a, const struct announced_fault *fault,
		     unsigned faults);

#endif
