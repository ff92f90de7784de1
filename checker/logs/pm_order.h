/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_PM_ORDER_H
#define TM_CHECKER_LOGS_PM_ORDER_H
/*
 * Stores whose place in the log is not known. One that was noticed (pm_event.noticed) stands where
 * somebody looked for it; it may have been made at any time since its process had looked
 * everywhere, as it does before all its events but stores and flushes. Stores that stand between
 * may be earlier or later than it. But it comes after what stands before it of its own line: that
 * is looked at before each store that a program tells of.
 *
 * Where a failure takes each line by itself this means nothing, as images are made with it and
 * without it. Where all that was stored is left, an image of what stands before it may be none.
 */
#include "checker/logs/pm_log.h"

struct pm_order {
	const struct pm_log *log;
	uint32_t *late; /* by event: the end of what stands there or later and may have come before
			 * a store that stands before it; 0: nothing may have */
};

int pm_order_open(struct pm_order *o, const struct pm_log *log); /* 0 or -ENOMEM */
void pm_order_close(struct pm_order *o);
/* May this event have come before event `at`, which does not come after it? */
bool pm_order_may_precede(const struct pm_order *o, size_t event, size_t at);

#endif
