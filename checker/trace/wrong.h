/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_TRACE_WRONG_H
#define TM_CHECKER_TRACE_WRONG_H
/*
 * What an explorer took for known was something else (explore_run(): -ENOTRECOVERABLE): no result
 * is worth anything, and the program ends, with a trace that helps to mend this.
 */
#include "checker/campaign/campaign.h"

#define WRONG_TRACE "tree.trace" /* where the run goes, in the working directory */

/* Write its trace. *why, which may be `text`: the message. -ENOTRECOVERABLE. */
int wrong_save(const struct setup *s, const struct deviations *path, const char *text, char *why,
	       size_t n);
/* campaign_explore(); if the tree was wrong, with the trace, and result->why says so. */
void wrong_explore(const struct campaign *c, unsigned unit, unsigned stop_at,
		   struct campaign_unit *result, struct broken_run *first);
/* Run a unit that ended so in campaign_run() once more, for the trace. *why: the message. */
void wrong_again(const struct campaign *c, unsigned unit, char why[WORLDS_WHY]);

#endif
