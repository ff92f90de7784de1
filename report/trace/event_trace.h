/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_TRACE_EVENT_TRACE_H
#define TM_REPORT_TRACE_EVENT_TRACE_H
/*
 * The event trace of a replay: as text on standard output, and as a tree of results, of which a
 * page is made (report/page). Both are made of one event log (trace_tree.c).
 */
#include <jansson.h>
#include "checker/cause/cause.h"
#include "checker/cause/event_log.h"
#include "checker/trace/replay.h"
#include "checker/trace/trace.h"
#include "checker/world/where.h"

struct event_trace {
	const struct trace *trace;
	const char *name; /* of the trace */
	struct where *where;
	bool all;   /* fold nothing that repeats */
	bool brief; /* leave out single stores, reads, flushes, fences and posts */
	struct event_log record;
	struct replay_outcome outcome;
	struct cause cause;
	/* The store does not get through the load phase, whose events these are: why. Else "". */
	char load_why[WORLDS_WHY];
};

/* The run is over and its cause is found: print it all. */
void event_trace_print(const struct event_trace *st);
/* The same as a tree of results; NULL without memory. */
json_t *event_trace_tree(const struct event_trace *st);

#endif
