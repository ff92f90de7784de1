/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_EVENT_TRACE_H
#define TM_REPORT_EVENT_TRACE_H
/* A replay told: on standard output (story.c), as a page (page.c). Both read one record of it. */
#include "checker/trace/cause.h"
#include "checker/trace/event_log.h"
#include "checker/trace/replay.h"
#include "checker/trace/trace.h"
#include "checker/trace/where.h"

struct story {
	const struct trace *trace;
	const char *name; /* of the trace */
	struct where *where;
	bool brief; /* leave out single stores, reads, flushes, fences and posts */
	struct event_log record;
	struct replay_outcome outcome;
	struct cause cause;
};

/* The run is over and its cause is found: tell it all. */
void story_print(const struct story *st);
/* The same as one HTML page; for save_file(). 0 or -errno. */
int story_page(FILE *out, const void *story);

/* What stands behind "lost" and "kept": "version 0 of 1". */
void story_survived(const struct logged_line *l, char *buf, size_t n);
/* The operation that an event belongs to: "c1.put1#2", or "". */
void story_label(const struct logged_event *e, char *buf, size_t n);

#endif
