/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_COVERAGE_H
#define TM_CLI_COVERAGE_H
/* crashtest --coverage. */
#include "checker/campaign/campaign.h"

/* The campaign is to cover its stores; `dir`, unless it is NULL, is to be there. 0, or the status
 * after a message; covered_close() in any case. */
int coverage_open(struct campaign *c, struct covered *covered, const char *dir);
/* It has: print that, and write files to `dir` unless it is NULL. `status`, or another one after a
 * message. */
int coverage_tell(const struct covered *covered, const char *dir, int status);

#endif
