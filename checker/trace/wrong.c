/* SPDX-License-Identifier: BSD-3-Clause */
/* See wrong.h. */
#include "checker/trace/wrong.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/trace/trace.h"

#define WRONG_HINT "crashtest --no-tree takes nothing for known"

int wrong_save(const struct setup *s, const struct deviations *path, const char *text, char *why,
	       size_t n)
{
	char what[sizeof(((struct failure *)0)->text)];
	snprintf(what, sizeof(what), "%s", text);
	driver_hold(SIG_BLOCK);
	int error = trace_save(WRONG_TRACE, s, path, -1, NULL);
	driver_hold(SIG_UNBLOCK);
	snprintf(why, n, "%.180s; " WRONG_HINT "; the run: %s%s", what, WRONG_TRACE,
		 error ? " (which cannot be written)" : "");
	return -ENOTRECOVERABLE;
}

void wrong_explore(const struct campaign *c, unsigned unit, unsigned stop_at,
		   struct campaign_unit *result, struct broken_run *first)
{
	struct broken_run own, *run = first ? first : &own;
	campaign_explore(c, unit, stop_at, result, run);
	if (result->error == -ENOTRECOVERABLE)
		wrong_save(&run->setup, &run->path, run->text, result->why, sizeof(result->why));
	if (!first)
		broken_run_free(&own);
}

void wrong_again(const struct campaign *c, unsigned unit, char why[WORLDS_WHY])
{
	struct campaign_unit *again = calloc(1, sizeof(*again));
	/* What is known of recoveries is shared among the workloads of a process. */
	snprintf(why, WORLDS_WHY,
		 "what was taken for known was something else, and the workload alone does not "
		 "show it; " WRONG_HINT);
	if (again)
		wrong_explore(c, unit, 0, again, NULL);
	if (again && again->error == -ENOTRECOVERABLE)
		memcpy(why, again->why, WORLDS_WHY);
	free(again);
}
