/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_TRACE_SHRINK_H
#define TM_CHECKER_TRACE_SHRINK_H
/*
 * Shrinking a failure: fewer clients, operations and deviations, smaller values, shorter delays, as
 * long as the contract still breaks.
 */
#include "checker/campaign/campaign.h"
#include "checker/trace/replay.h"

/*
 * `setup` (finished) with `list` breaks `contract`. Both are replaced by the smallest
 * failure that was found, and `text` says how the contract breaks. 0, -ENOMEM, or -ENOENT: the
 * contract does not break. -ENOTRECOVERABLE: both are replaced by the run of which the tree of
 * recoveries was wrong, and `text` says how. `progress` may be NULL.
 */
int shrink(struct setup *setup, struct deviations *list, unsigned contract, char *text, size_t n,
	   void (*progress)(void *arg, unsigned operations, unsigned deviations), void *arg);

/* The same of a run that broke it. *whole: shrinking failed, and it is as it was found. 0,
 * -ENOMEM or -ENOTRECOVERABLE. */
int broken_run_shrink(struct broken_run *run, unsigned contract, bool *whole);

/* Does the run of `list`, with its own or other power failures, break `contract`? *broken: false as
 * well when memory is short. 0 or -ENOTRECOVERABLE, as shrink(). */
int shrink_breaks(struct setup *setup, struct deviations *list, unsigned contract, char *text,
		  size_t n, bool *broken);

#endif
