/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_ROWS_SHARES_H
#define TM_REPORT_ROWS_SHARES_H
/* Recording how often a store breaks for each known cause: its shares.txt. */
#include "checker/campaign/campaign.h"
#include "core/text/text.h"

/*
 * Raise the numbers of the file to those of a campaign of one store; it need not exist. Lines of
 * rows that causes.txt no longer has go; comments before the first line stay. 0, -errno, or -EINVAL
 * with *error: the file holds something else.
 */
int shares_record(const struct campaign *c, const char *path, struct input_error *error);
/* Could it read the file? With the same results; nothing is written. */
int shares_check(const char *path, struct input_error *error);

#endif
