/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_ROWS_CAUSES_H
#define TM_REPORT_ROWS_CAUSES_H
/* Recording what a store's expected breaks are blamed on, and how often: its causes.txt. */
#include "checker/campaign/campaign.h"
#include "core/text/text.h"

/*
 * Add what a campaign with options.all_causes has seen to the rows of the file; it need not exist.
 * A row that is another one with something added goes. Comments before the first row stay. 0,
 * -errno, or -EINVAL with *error: the file holds something else.
 */
int causes_record(const struct campaign *c, const char *path, struct input_error *error);
/* Raise the numbers of the file's rows to those of a campaign of one store, of which they are. The
 * same results. */
int shares_record(const struct campaign *c, const char *path, struct input_error *error);
/* Could they read the file? With the same results; nothing is written. */
int causes_check(const char *path, struct input_error *error);

#endif
